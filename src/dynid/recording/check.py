"""The data check of a log alone: what is in it and what is wrong with it, each finding one sentence and a fix.

Here are the findings that need the log alone, or the robot's names and limits. Those that compare torque with the nominal
model are in :mod:`dynid.validation.data_check`. A new check is one file in ``checks/`` and one line here.
"""

from __future__ import annotations

from collections.abc import Callable

from dynid.recording.checks.clock import check_clock
from dynid.recording.checks.joint_names import check_joint_names
from dynid.recording.checks.length import HELD_OUT, SHORTEST_S, check_length
from dynid.recording.checks.limits import check_limits
from dynid.recording.checks.motion import check_jumps, check_motion
from dynid.recording.checks.quantisation import check_quantisation
from dynid.recording.checks.reading import check_reading, check_values
from dynid.recording.checks.repeated import check_repeated
from dynid.recording.checks.saturation import check_constant, check_saturation
from dynid.recording.checks.shared import FEWEST_ROWS
from dynid.recording.checks.units import check_degrees, check_torque_present
from dynid.recording.checks.velocity import check_velocity
from dynid.recording.finding import DataCheck
from dynid.recording.motion import Recording
from dynid.robot.model import Robot

__all__ = ["HELD_OUT", "SHORTEST_S", "check_signals"]

Check = Callable[[Recording, Robot | None], DataCheck]

#: Made on every log.
_ALWAYS: tuple[Check, ...] = (check_reading, check_joint_names, check_values, check_length)
#: Made on logs of enough rows whose values are all possible.
_SIGNALS: tuple[Check, ...] = (
    check_clock,
    check_repeated,
    check_motion,
    check_jumps,
    check_quantisation,
    check_saturation,
    check_constant,
    check_velocity,
    check_degrees,
    check_torque_present,
    check_limits,
)


def check_signals(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Findings that need no dynamics; with a robot, also its joint names and limits."""
    found = DataCheck(
        (),
        {
            "rows": recording.n_samples,
            "duration_s": recording.duration_s,
            "rate_hz": recording.rate_hz,
            "joints": recording.joint_names,
            "quantities": recording.quantities,
        },
    )
    for check in _ALWAYS:
        found = found.merged(check(recording, robot))
    if recording.n_samples < FEWEST_ROWS or found.find("impossible_value") is not None:
        return found
    for check in _SIGNALS:
        found = found.merged(check(recording, robot))
    return found
