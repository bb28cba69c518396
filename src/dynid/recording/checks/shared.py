"""What several checks need."""

from __future__ import annotations

import numpy as np

from dynid.arrays import BoolArray
from dynid.recording.finding import DataCheck
from dynid.recording.motion import Recording
from dynid.robot.model import Robot

FEWEST_ROWS = 64
"""Rows of a log, or of its longest uninterrupted part, below which its signals are not judged."""

NOTHING = DataCheck((), {})
"""No finding and no fact."""


def named(recording: Recording, mask: BoolArray) -> tuple[str, ...]:
    """Names of the joints that a mask chooses."""
    return tuple(name for name, chosen in zip(recording.joint_names, mask, strict=True) if chosen)


def fits(recording: Recording, robot: Robot | None) -> bool:
    """Whether limits and kinds of the robot's joints can be put beside the columns of the log."""
    return robot is not None and robot.n_dof == recording.n_joints


def turning_joints(recording: Recording, robot: Robot | None) -> BoolArray:
    """Joints that turn; all of them where the robot is not known."""
    if robot is None or not fits(recording, robot):
        return np.ones(recording.n_joints, dtype=np.bool_)
    return np.array([joint.kind != "prismatic" for joint in robot.driven_joints])
