"""Units that look wrong, and torque that is not there."""

from __future__ import annotations

import numpy as np

from dynid.recording.checks.shared import NOTHING, fits, named, turning_joints
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.motion import Recording
from dynid.robot.model import Robot


def check_degrees(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Positions far beyond what a joint can turn in radians."""
    largest = np.abs(recording.position).max(axis=0)
    bound = np.full(recording.n_joints, 4.0 * np.pi)
    if robot is not None and fits(recording, robot):
        limits = np.abs(robot.position_limits).max(axis=1)
        bound = np.where(np.isfinite(limits), 3.0 * limits, 8.0 * np.pi)
    likely = turning_joints(recording, robot) & (largest > bound)
    if not likely.any():
        return NOTHING
    worst = int(np.argmax(np.where(likely, largest, 0.0)))
    finding = Finding(
        "degrees",
        "error",
        f"position of joint {recording.joint_names[worst]} reaches {largest[worst]:.4g}, which as radians would be "
        f"{largest[worst] / (2.0 * np.pi):.3g} turns: it is likely in degrees",
        'state it in a mapping file (--mapping FILE): units = {position = "deg"}',
        named(recording, likely),
        {"largest": largest},
    )
    return DataCheck((finding,), {})


def check_torque_present(recording: Recording, robot: Robot | None = None) -> DataCheck:
    """Logs without joint torque: with motor current, with external torque alone, with neither."""
    if recording.torque is not None:
        return NOTHING
    if recording.current is not None:
        finding = Finding(
            "current_only",
            "warning",
            "the log holds motor current and no torque",
            "give the drive gains in newton metre per ampere (--drive-gains)",
        )
        return DataCheck((finding,), {})
    external = recording.external_torque is not None
    held = "external torque, which is not the joint torque" if external else "no torque"
    fix = (
        "log measured joint torque or motor current; where it is there under another name, a mapping file (--mapping FILE) states it: "
        'torque = "M{number}" for columns M1, M2, ..'
    )
    if recording.reference_position is not None:
        fix += "; from commands and positions alone 'dynid actuators' finds friction, rotor inertia and delay"
    return DataCheck((Finding("no_torque", "error", f"the log holds {held}", fix),), {})
