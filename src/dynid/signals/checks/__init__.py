"""The data check of a log alone: what is in it and what is wrong with it, each finding one sentence and a fix.

Here are the findings that need the log alone, or the robot's names and limits. Those that compare torque with the nominal
model are in :mod:`dynid.validation.data_check`. A new check is one file in ``checks/`` and one line here.
"""

from __future__ import annotations

from collections.abc import Callable

from dynid.finding import DataCheck
from dynid.model.robot import Robot
from dynid.signals.checks.joints import (
    HELD_OUT,
    SHORTEST_S,
    check_clock,
    check_degrees,
    check_joint_names,
    check_jumps,
    check_length,
    check_limits,
    check_motion,
    check_reading,
    check_repeated,
    check_torque_present,
    check_values,
)
from dynid.signals.checks.sensing import check_constant, check_quantisation, check_saturation, check_velocity
from dynid.signals.measures import FEWEST_ROWS
from dynid.signals.recording import Recording

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
