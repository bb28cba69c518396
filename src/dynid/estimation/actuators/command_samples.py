"""Lightly filtered motion of position-controlled joints, with their commands."""

from __future__ import annotations

from collections.abc import Sequence

from dynid.estimation.actuators.model import ActuatorLog
from dynid.recording.motion import Recording
from dynid.recording.process import process
from dynid.recording.steps.differentiate import Differentiate
from dynid.recording.steps.lowpass import LowPass
from dynid.recording.steps.resample import Resample
from dynid.regression.command_rows import CommandSamples

SIGNAL_SHARE = 0.3
"""Band of the signals, as a share of the sampling rate, at most that below."""
SIGNAL_HZ = 40.0


def command_samples(log: ActuatorLog, joint_names: Sequence[str]) -> CommandSamples:
    """Lightly filtered motion of a log on an even clock, with its commands."""
    rate_hz = 1.0 / log.period_s
    recording = Recording(log.time, log.position, tuple(joint_names))
    steps = [
        Resample(method="cubic"),
        LowPass(cutoff_hz=min(SIGNAL_SHARE * rate_hz, SIGNAL_HZ)),
        Differentiate(velocity="position"),
    ]
    return CommandSamples(process(recording, steps), log.command, log.control)
