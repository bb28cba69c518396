"""Frames of a robot: a link of the description, or a pose in one.

Links that are fixed to a moving body (``tool0``, ``flange``, a sensor) are merged into it when a description is read; they stay frames
under their own names.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, matrix
from dynid.errors import InputError, UnknownNameError
from dynid.inertia import change_of_frame, proper_rotation
from dynid.robot.model import Robot


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame fixed to a body of a robot.

    Args:
        name: what to call it.
        body: index of the body, that is of the joint that moves it.
        placement: 4x4 pose of the frame in the body.

    Examples:
        >>> import dynid, numpy as np
        >>> flange = dynid.Frame("flange", 6, np.eye(4))
        >>> dynid.link_motion(dynid.demo_robot(), *np.zeros((3, 1, 7)), flange).twist.shape
        (1, 6)
    """

    name: str
    body: int
    placement: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "placement", matrix(f"placement of frame '{self.name}'", self.placement, (4, 4)))
        proper_rotation(f"rotation of frame '{self.name}'", self.placement[:3, :3])

    def moved(self, pose: ArrayLike, name: str = "") -> Frame:
        """The frame at a 4x4 pose in this one."""
        return Frame(name or self.name, self.body, self.placement @ np.asarray(pose, dtype=np.float64))

    @property
    def into_body(self) -> Array:
        """10x10: parameters in the body's frame from parameters in this one."""
        return change_of_frame(self.placement[:3, :3], self.placement[:3, 3])


def frames_of(robot: Robot) -> tuple[str, ...]:
    """Names of all frames that move with the robot."""
    return (*robot.links, *(link.name for link in robot.merged if link.body >= 0))


def frame_named(robot: Robot, frame: str | Frame | None = None) -> Frame:
    """The frame of a name, of any link of the description; None for the last link, where there is only one.

    Args:
        robot: the robot.
        frame: name of a link, those fixed to a body included; a :class:`Frame` is returned as it is.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot()
        >>> dynid.frame_named(robot).name == robot.links[-1]
        True
    """
    if isinstance(frame, Frame):
        if not 0 <= frame.body < robot.n_joints:
            raise InputError(f"frame '{frame.name}' is on body {frame.body}, robot '{robot.name}' has {robot.n_joints}")
        return frame
    if frame is None:
        return Frame(robot.links[(body := last_body(robot))], body, np.eye(4))
    if frame in robot.links:
        return Frame(frame, robot.links.index(frame), np.eye(4))
    for link in robot.merged:
        if link.name == frame:
            if link.body < 0:
                raise InputError(f"frame '{frame}' is fixed to the ground, expected one that moves with the robot")
            return Frame(frame, link.body, link.placement)
    raise UnknownNameError("frame", frame, frames_of(robot), f"robot '{robot.name}'")


def last_body(robot: Robot) -> int:
    """The only body at the end of the robot; several, such as fingers, are refused: a load on one of them is not meant."""
    carried = {joint.parent for joint in robot.joints}
    ends = [i for i in range(robot.n_joints) if i not in carried]
    if len(ends) == 1:
        return ends[0]
    names = ", ".join(robot.links[i] for i in ends)
    raise InputError(
        f"robot '{robot.name}' ends in {len(ends)} links ({names}): say which frame carries the load with --frame, "
        f"one of {', '.join(frames_of(robot))}"
    )


def pose_from(numbers: ArrayLike) -> Array:
    """4x4 pose from ``x, y, z, roll, pitch, yaw`` as in a URDF: m and rad, ``R = Rz(yaw) Ry(pitch) Rx(roll)``."""
    values = np.asarray(numbers, dtype=np.float64)
    if values.shape not in ((3,), (6,)) or not np.isfinite(values).all():
        raise InputError(
            f"a pose has {values.size} numbers, expected 3 (x, y, z) or 6 (x, y, z, roll, pitch, yaw), m and rad"
        )
    pose = np.eye(4)
    pose[:3, 3] = values[:3]
    if len(values) == 6:
        (cr, cp, cy), (sr, sp, sy) = np.cos(values[3:]), np.sin(values[3:])
        pose[:3, :3] = [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    return pose
