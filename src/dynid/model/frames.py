"""Frames of a robot, a link of the description or a pose in one, and their motion from that of the joints.

Links that are fixed to a moving body (``tool0``, ``flange``, a sensor) are merged into it when a description is read; they stay frames
under their own names. From base to tip, all in the body's own frame (linear, angular), with ``X`` the change of frame from the parent:

    v_i = X v_parent + S_i dq_i,    a_i = X a_parent + S_i ddq_i + v_i x S_i dq_i,    a_base = -g

Two kinds of acceleration differ by ``w x v`` and are different types here, so that one cannot be taken for the other:
:class:`SpatialAcceleration` holds the rates of the twist's components, :class:`ProperAcceleration` what an accelerometer at the origin
reads. Both have gravity subtracted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_finite, freeze, frozen_view, matrix
from dynid.errors import InputError, UnknownNameError
from dynid.model.inertia import change_of_frame, proper_rotation
from dynid.model.poses import rotation_from_quaternion
from dynid.model.robot import Robot


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


def sensor_frame(robot: Robot | None) -> str | None:
    """The only link on the last body that is named as a sensor, such as ``ft_sensor``; None where there is none, or several."""
    if robot is None or not robot.merged:
        return None
    last = last_body(robot)
    named = [link.name for link in robot.merged if link.body == last and SENSOR_NAME.search(link.name)]
    return named[0] if len(named) == 1 else None


def frames_beside(robot: Robot, place: Frame) -> dict[str, Array]:
    """4x4 poses, in a frame, of every other frame of the description on the same body."""
    others = {name: frame_named(robot, name) for name in frames_of(robot) if name != place.name}
    into = np.linalg.inv(place.placement)
    return {name: into @ frame.placement for name, frame in others.items() if frame.body == place.body}


SENSOR_NAME = re.compile(r"sensor|wrench|force|(^|_)fts?(_|$)", re.IGNORECASE)
"""In the name of a link that is a force/torque sensor."""


def frame_named(robot: Robot, frame: str | Frame | None = None) -> Frame:
    """The frame of a name, of any link of the description; None for the last link, where there is only one.

    Args:
        robot: the robot.
        frame: name of a link, those fixed to a body included; a :class:`Frame` is returned as it is.

    Examples:
        >>> import dynid
        >>> from dynid.model.frames import frame_named
        >>> robot = dynid.demo_robot()
        >>> frame_named(robot).name == robot.links[-1]
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


def _rows(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != 3:
        raise InputError(f"{name} has shape {array.shape}, expected (..., 3)")
    check_finite(name, array)
    return frozen_view(array)


@dataclass(frozen=True, eq=False)
class _Acceleration:
    """Linear and angular acceleration of a body in its own frame."""

    what: ClassVar[str]
    linear: Array
    angular: Array

    def __post_init__(self) -> None:
        for name in ("linear", "angular"):
            object.__setattr__(self, name, _rows(f"{name} part of the {self.what} acceleration", getattr(self, name)))


class SpatialAcceleration(_Acceleration):
    """Rates of the twist's components in the body's frame, less gravity: what Pinocchio's ``bodyRegressor`` takes.

    Args:
        linear: ``(..., 3)``, m/s^2.
        angular: ``(..., 3)``, rad/s^2.

    Examples:
        >>> import dynid
        >>> from dynid.model.frames import SpatialAcceleration
        >>> SpatialAcceleration([0, 0, 9.81], [0, 0, 0]).proper([0, 0, 0, 0, 0, 0]).linear.tolist()
        [0.0, 0.0, 9.81]
    """

    what = "spatial"

    def proper(self, twist: ArrayLike) -> ProperAcceleration:
        """The proper acceleration: ``w x v`` is added."""
        v = np.asarray(twist, dtype=np.float64)
        return ProperAcceleration(self.linear + np.cross(v[..., 3:], v[..., :3]), self.angular)


class ProperAcceleration(_Acceleration):
    """What an accelerometer at the origin of the body's frame reads, ``a - g``, and the angular acceleration.

    Args:
        linear: ``(..., 3)``, m/s^2.
        angular: ``(..., 3)``, rad/s^2.

    Examples:
        >>> import dynid
        >>> from dynid.model.frames import ProperAcceleration
        >>> ProperAcceleration([0, 0, 9.81], [0, 0, 0]).spatial([1, 0, 0, 0, 0, 2]).linear.tolist()
        [0.0, -2.0, 9.81]
    """

    what = "proper"

    def spatial(self, twist: ArrayLike) -> SpatialAcceleration:
        """The spatial acceleration: ``w x v`` is subtracted."""
        v = np.asarray(twist, dtype=np.float64)
        return SpatialAcceleration(self.linear - np.cross(v[..., 3:], v[..., :3]), self.angular)


@dataclass(frozen=True, eq=False)
class LinkMotion:
    """Pose, twist and accelerations of a frame, one row per sample.

    Args:
        rotation: ``(n, 3, 3)``, of the frame in the base.
        position: ``(n, 3)``, of its origin in the base, m.
        twist: ``(n, 6)``, (linear, angular) in the frame's own axes.
        proper: proper acceleration of its origin, and angular acceleration.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.model.frames import LinkMotion
        >>> motion = dynid.link_motion(dynid.demo_robot(), np.zeros((1, 7)), np.zeros((1, 7)), np.zeros((1, 7)))
        >>> isinstance(motion, LinkMotion), motion.proper.linear.shape, motion.twist.shape
        (True, (1, 3), (1, 6))
    """

    rotation: Array
    position: Array
    twist: Array
    proper: ProperAcceleration

    @property
    def linear_velocity(self) -> Array:
        """``(n, 3)``, of the origin, in the frame's own axes."""
        return self.twist[:, :3]

    @property
    def angular_velocity(self) -> Array:
        """``(n, 3)``, in the frame's own axes."""
        return self.twist[:, 3:]

    @property
    def spatial(self) -> SpatialAcceleration:
        """The same acceleration as rates of the twist's components."""
        return self.proper.spatial(self.twist)


def link_motion(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    frame: str | Frame | None = None,
    *,
    gravity: ArrayLike | None = None,
) -> LinkMotion:
    """Motion of a frame from that of the joints.

    Args:
        robot: the robot.
        q: positions ``(n, joints)``.
        v: velocities.
        a: accelerations.
        frame: name of a link (also one that is fixed to a body), or a :class:`Frame`; None for the last link.
        gravity: in the base frame, m/s^2; None for the robot's.

    Returns:
        rotation ``(n, 3, 3)`` and position ``(n, 3)`` of the frame in the base, its twist and its proper acceleration (with
            gravity, as an accelerometer has it) ``(n, 6)`` in its own axes; m, rad and s.

    Examples:
        >>> import dynid, numpy as np
        >>> robot = dynid.demo_robot()
        >>> still = np.zeros((1, 7))
        >>> float(np.linalg.norm(dynid.link_motion(robot, still, still, still).proper.linear).round(2))
        9.81
    """
    place = frame_named(robot, frame)
    rows = [np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (q, v, a)]
    for name, array, width in zip(("q", "v", "a"), rows, (robot.n_position, robot.n_dof, robot.n_dof), strict=True):
        if array.ndim != 2 or array.shape != (len(rows[0]), width):
            raise InputError(f"{name} has shape {array.shape}, robot '{robot.name}' needs ({len(rows[0])}, {width})")
        check_finite(name, array)
    fall = robot.gravity if gravity is None else np.asarray(gravity, dtype=np.float64)
    chain = [place.body]
    while robot.joints[chain[0]].parent >= 0:
        chain.insert(0, robot.joints[chain[0]].parent)
    n = len(rows[0])
    R, p = np.broadcast_to(np.eye(3), (n, 3, 3)), np.zeros((n, 3))
    twist, rate = np.zeros((n, 6)), np.tile(np.concatenate([-fall, np.zeros(3)]), (n, 1))
    for body in chain:
        turn, shift = _joint_pose(robot, body, rows[0])
        p = p + np.einsum("nij,nj->ni", R, shift)
        R = R @ turn
        twist, rate = _carried(turn, shift, twist), _carried(turn, shift, rate)
        first = int(robot.tree.dof_start[body])
        own = slice(first, first + int(robot.tree.dof_count[body]))
        S = robot.tree.screw[own]
        along = rows[1][:, own] @ S
        twist = twist + along
        rate = rate + rows[2][:, own] @ S + _motion_cross(twist, along)
    turn, shift = place.placement[:3, :3], place.placement[:3, 3]
    every = np.broadcast_to(turn, (n, 3, 3)), np.broadcast_to(shift, (n, 3))
    p, R = p + R @ shift, R @ turn
    twist, rate = _carried(*every, twist), _carried(*every, rate)
    proper = SpatialAcceleration(rate[:, :3], rate[:, 3:]).proper(twist)
    return LinkMotion(freeze(R), freeze(p), freeze(twist), proper)


def frame_poses(robot: Robot, q: Array, body: int, placement: Array) -> tuple[Array, Array]:
    """Rotations ``(n, 3, 3)`` and positions ``(n, 3)`` in the base of a frame fixed to a body, from positions of all joints of the tree.

    From the body to the base: ``R <- R(q_i) R``, ``p <- R(q_i) p + p(q_i)``.
    """
    R, p = np.broadcast_to(placement[:3, :3], (len(q), 3, 3)), np.broadcast_to(placement[:3, 3], (len(q), 3))
    while body >= 0:
        turn, shift = _joint_pose(robot, body, q)
        R, p = turn @ R, np.einsum("nij,nj->ni", turn, p) + shift
        body = robot.joints[body].parent
    return R, p


def leg_joints(robot: Robot, body: int) -> list[int]:
    """Driven joints between the floating base and a body, from 0."""
    tree = robot.tree
    return [int(d) - 6 for d in tree.support[tree.support_start[body] : tree.support_start[body + 1]] if d >= 6]


def _joint_pose(robot: Robot, body: int, q: Array) -> tuple[Array, Array]:
    """Rotation and translation of a body in its parent, sample by sample."""
    tree = robot.tree
    if robot.joints[body].kind == "floating":
        base = robot.joints[body].placement
        return base[:3, :3] @ rotation_from_quaternion(q[:, [6, 3, 4, 5]]), q[:, :3] @ base[:3, :3].T + base[:3, 3]
    angle = q[:, int(tree.dof_start[body]) + robot.floating]
    c, s, one = np.cos(angle), np.sin(angle), np.ones_like(angle)
    turn = np.einsum("nk,kij->nij", np.column_stack([one, c, s]), tree.rotation[body])
    return turn, np.column_stack([one, c, s, angle]) @ tree.translation[body]


def _carried(turn: Array, shift: Array, motion: Array) -> Array:
    """A motion vector of the parent in the body's frame."""
    linear = motion[:, :3] + np.cross(motion[:, 3:], shift)
    return np.hstack([np.einsum("nji,nj->ni", turn, linear), np.einsum("nji,nj->ni", turn, motion[:, 3:])])


def _motion_cross(v: Array, m: Array) -> Array:
    """``v x m`` of motion vectors."""
    linear = np.cross(v[:, 3:], m[:, :3]) + np.cross(v[:, :3], m[:, 3:])
    return np.hstack([linear, np.cross(v[:, 3:], m[:, 3:])])
