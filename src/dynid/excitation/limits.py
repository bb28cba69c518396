"""What a motion must respect, and how much of each limit it leaves.

Position, velocity, acceleration and jerk are linear in the coefficients of a motion and are held as such. Torque, speed of the tool
and clearance depend on the pose (``pose_limits.py``). A margin is the smallest fraction of a limit that is left over all joints and
times; negative means violated. Joints that follow others, fingers and wheels are left alone unless they are asked to move.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, BoolArray, check_finite, freeze, matrix
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.collision import Clearance
from dynid.excitation.pose_limits import (
    UNREACHABLE,
    PassiveJointLimit,
    PoseLimit,
    ToolRoomLimit,
    ToolSpeedLimit,
    TorqueLimit,
    tool_place,
)
from dynid.excitation.trajectories import SequenceTrajectory, Trajectory
from dynid.io.robots.description import Limit, require_limits
from dynid.model.robot import Robot

POSE_LIMITS = ("passive_joints", "torque", "tool_speed", "tool_room", "clearance")
"""Limits that depend on the pose."""

FINE = 10
"""Margins are computed on a grid so many times finer than that of the design."""
_BY_NAME = re.compile(
    r"finger|gripper|knuckle|thumb|wheel|caster|roller|(?<=hand_)(?:index|middle|ring|little|pinky|mrl)(?=_|$)",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(r"joint '(?P<name>.+?)' is treated as a joint of its own; it mimics")
ALL = "all"


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of every joint, infinite where there is none; made by :func:`limits_of`.

    Args:
        position: lowest and highest position, ``(joints, 2)``, rad or m.
        velocity: ``(joints,)``, rad/s or m/s.
        acceleration: ``(joints,)``.
        jerk: ``(joints,)``.
        torque: ``(joints,)``, N m or N.
        tool_body: index of the body whose point is the tool; -1 for none.
        clearance: pairs of bodies to be kept apart; None for none.
        notes: sentences for the user.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.limits import Limits
        >>> limits = dynid.limits_of(dynid.demo_robot(), fraction=0.5)
        >>> isinstance(limits, Limits), limits.velocity.shape
        (True, (7,))
    """

    position: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    torque: Array
    torque_uncertainty: float = 0.1
    """Relative; the nominal model's torque is taken this much larger."""
    tool_speed: float = np.inf
    """m/s."""
    tool_body: int = -1
    tool_point: Array = field(default_factory=lambda: freeze(np.zeros(3)))
    """Where the tool is: a point of a body, in the body's frame."""
    tool_room: Array | None = None
    """Lowest and highest place of the tool along each axis of the base frame, ``(3, 2)``, m; None for no limit."""
    clearance: Clearance | None = None
    fraction: float = 1.0
    """Share of the robot's own velocity, acceleration and torque limits that these are."""
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    """What these limits do not vouch for: bodies that are not kept apart, limits that nobody filled in; among the notes too."""

    @cached_property
    def range(self) -> Array:
        """Range that a design uses: a joint without position limits moves within one turn."""
        low, high = self.position.T
        return freeze(np.column_stack([np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)]))

    @cached_property
    def centre(self) -> Array:
        """Middle of each joint's range; zero for a joint without position limits."""
        return freeze(self.range.mean(axis=1))

    @cached_property
    def reach(self) -> Array:
        """Half of each joint's range; half a turn for a joint without position limits."""
        return freeze(0.5 * (self.range[:, 1] - self.range[:, 0]))


def _check_numbers(fraction: float, torque_uncertainty: float, tool_speed: float | None, room: Array | None) -> None:
    if not 0.0 < fraction <= 1.0:
        raise InputError(f"fraction of the limits is {fraction:g}, expected a number in (0, 1]")
    if not (np.isfinite(torque_uncertainty) and torque_uncertainty >= 0.0):
        raise InputError(f"uncertainty of the torque is {torque_uncertainty:g}, expected zero or a positive number")
    if tool_speed is not None and not tool_speed > 0.0:
        raise InputError(f"limit of the tool's speed is {tool_speed:g} m/s, expected a positive number")
    if room is not None and not (room[:, 0] < room[:, 1]).all():
        edges = ", ".join(f"{edge:g}" for edge in np.diff(room).ravel())
        raise InputError(f"room of the tool (--keep-in) has edges {edges} m, expected positive numbers")


def limits_of(
    robot: Robot,
    *,
    fraction: float = 1.0,
    range_fraction: float | None = None,
    position: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    jerk: ArrayLike | None = None,
    torque: ArrayLike | None = None,
    torque_uncertainty: float = 0.1,
    tool_speed: float | None = None,
    tool: str | None = None,
    tool_point: ArrayLike | None = None,
    tool_room: ArrayLike | None = None,
    clearance: Clearance | None = None,
) -> Limits:
    """Limits of a robot's description and those given beside it, of which a design may use ``fraction``.

    Where the description and the caller both give a limit of a joint, the tighter one holds; a note names the joints whose
    description is tighter.

    Args:
        robot: position and velocity limits must be there or be given.
        fraction: share of velocity, acceleration and torque that may be used.
        range_fraction: share of each joint's range, about its middle; None for the same.
        position: lowest and highest position of every joint, or one pair per joint; None for the description's.
        velocity: limit of every joint, or one per joint; None for the description's.
        acceleration: limit of every joint, or one per joint; None for the description's.
        jerk: limit of every joint, or one per joint; None for no limit.
        torque: limit of every joint, or one per joint; None for the description's.
        torque_uncertainty: relative uncertainty of the nominal model; its torque is taken this much larger.
        tool_speed: m/s, None for no limit.
        tool: link whose origin is the tool; None for the last joint's body, or the link fixed to it that is farthest out.
        tool_point: where the tool is in the frame of ``tool``.
        tool_room: lowest and highest place of the tool along each axis of the base frame, ``(3, 2)``, m; None for no limit.
        clearance: pairs of bodies and obstacles to be kept apart.

    Returns:
        lower and upper limits ``(joints, 2)`` of position, largest velocity, acceleration and torque ``(joints,)``; rad, m, s
            and N m.

    Examples:
        >>> import dynid
        >>> dynid.limits_of(dynid.demo_robot(), fraction=0.5, jerk=100.0).jerk.tolist()[0]
        100.0
    """
    if position is None or not np.isfinite(np.asarray(position, dtype=np.float64)).all():
        _require(robot, "position")
    if velocity is None or not np.isfinite(np.asarray(velocity, dtype=np.float64)).all():
        _require(robot, "velocity")
    room = None if tool_room is None else matrix("room of the tool", tool_room, (3, 2))
    _check_numbers(fraction, torque_uncertainty, tool_speed, room)
    notes = [] if clearance is None else list(clearance.notes)
    low, high = _range(position, robot, notes)
    bounded = np.isfinite(low) & np.isfinite(high)
    # a range that is open on one side has no width of which a fraction could be taken
    lowest, highest = np.where(bounded, low, 0.0), np.where(bounded, high, 0.0)
    middle = 0.5 * (lowest + highest)
    half = 0.5 * (fraction if range_fraction is None else range_fraction) * (highest - lowest)
    allowed = np.column_stack([np.where(bounded, middle - half, low), np.where(bounded, middle + half, high)])
    speed = _tighter("velocity limit", velocity, robot.limits("dq_max"), robot, notes)
    rate = _tighter("acceleration limit", acceleration, robot.limits("ddq_max"), robot, notes)
    effort = fraction * _tighter("torque limit", torque, robot.limits("tau_max"), robot, notes)
    if not np.isfinite(rate).all():
        notes.append(
            "some joints have no acceleration limit, so only velocity and harmonics bound it; give one with --acceleration"
        )
    if np.isfinite(effort).any() and not robot.parameters.values.any():
        notes.append("the description has no inertial parameters, so torque limits are not checked")
        effort = np.full(robot.n_joints, np.inf)
    body, point = tool_place(robot, tool, tool_point)
    return Limits(
        position=freeze(allowed),
        velocity=freeze(fraction * speed),
        acceleration=freeze(fraction * rate),
        jerk=freeze(np.full(robot.n_joints, np.inf) if jerk is None else per_joint("jerk limit", jerk, robot)),
        torque=freeze(effort),
        torque_uncertainty=float(torque_uncertainty),
        tool_speed=np.inf if tool_speed is None else float(tool_speed),
        tool_body=body,
        tool_point=freeze(point),
        tool_room=room,
        clearance=clearance,
        fraction=float(fraction),
        notes=tuple(notes),
    )


def pose_limits(robot: Robot, limits: Limits, reserve: float = 0.005) -> dict[str, PoseLimit]:
    """The limits of a robot that depend on its pose, by name; ``reserve`` is for what happens between the points of a grid."""
    found: dict[str, PoseLimit] = {}
    if robot.loops:  # first: nothing else is known of a pose that does not close
        found["passive_joints"] = PassiveJointLimit(robot)
    if np.isfinite(limits.torque).any():
        found["torque"] = TorqueLimit(robot, limits.torque, (1.0 + limits.torque_uncertainty) * (1.0 + reserve))
    if np.isfinite(limits.tool_speed):
        found["tool_speed"] = ToolSpeedLimit(robot, limits.tool_speed / (1.0 + reserve), limits.tool_body, limits.tool_point)
    if limits.tool_room is not None:
        middle, half = limits.tool_room.mean(axis=1), 0.5 * np.diff(limits.tool_room).ravel() / (1.0 + reserve)
        found["tool_room"] = ToolRoomLimit(robot, middle, half, limits.tool_body, limits.tool_point)
    if limits.clearance is not None:
        found["clearance"] = limits.clearance
    return found


# Margins ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Margins:
    """Smallest fraction of each limit that a motion leaves; None where there is no limit, negative where it is violated.

    Args:
        position: margin to the position limits.
        velocity: margin to the velocity limits.
        acceleration: margin to the acceleration limits.
        jerk: margin to the jerk limits.
        torque: margin to the torque limits.
        tool_speed: margin to the speed limit of the tool.
        tool_room: margin to the box that the tool does not leave.
        passive_joints: of a closed robot, margin to the ranges of its passive joints; -1 where it cannot reach a pose.
        places: by the name of each margin the joint, tool or pair of bodies that has it, and when, s.
        n_times: number of times at which the motion was checked.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.limits import Margins, margins_of
        >>> from dynid.excitation.shapes import random_fourier
        >>> robot = dynid.demo_robot()
        >>> margins = margins_of(robot, random_fourier(robot), dynid.limits_of(robot))
        >>> isinstance(margins, Margins), margins.velocity >= 0.0
        (True, True)
    """

    position: float | None
    velocity: float | None
    acceleration: float | None
    jerk: float | None = None
    torque: float | None = None
    tool_speed: float | None = None
    tool_room: float | None = None
    passive_joints: float | None = None
    clearance: float | None = None
    """Distance left beyond the least one, as a fraction of 0.1 m."""
    places: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    n_times: int = 0

    def items(self) -> list[tuple[str, float]]:
        """Name and value of those that there are."""
        names = (
            "position",
            "velocity",
            "acceleration",
            "jerk",
            "torque",
            "tool_speed",
            "tool_room",
            "passive_joints",
            "clearance",
        )
        return [(name, value) for name in names if (value := getattr(self, name)) is not None]

    @property
    def worst(self) -> str:
        """Name of the smallest of all margins."""
        return min(self.items(), key=lambda item: item[1])[0]

    @property
    def smallest(self) -> float:
        """The smallest of all margins."""
        return min((value for _, value in self.items()), default=np.inf)

    def as_json(self) -> dict[str, Any]:
        """Value by name; null where there is no limit."""
        return dict.fromkeys(("position", "velocity", "acceleration", "torque")) | dict(self.items())


def margins_of(robot: Robot, trajectory: Trajectory, limits: Limits, n_times: int = 4000) -> Margins:
    """Margins of a motion to the limits.

    Args:
        robot: its model gives the torque.
        trajectory: the motion; pieces that repeat are evaluated once.
        limits: as made by :func:`limits_of`.
        n_times: number of equal steps at which the motion is checked.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.limits import margins_of
        >>> from dynid.excitation.shapes import random_fourier
        >>> robot = dynid.demo_robot()
        >>> motion = random_fourier(robot)
        >>> margins_of(robot, motion, dynid.limits_of(robot)).smallest > 0.0
        True
    """
    if isinstance(trajectory, SequenceTrajectory):
        n_times = int(np.ceil(n_times * trajectory.once()[0].duration_s / trajectory.duration_s))
    trajectory, time, first = played_once(trajectory, n_times)
    q, v, a = trajectory.evaluate(time)
    worst = {}
    for name, left in (
        ("position", _room(q, limits)),
        ("velocity", 1.0 - np.abs(v) / limits.velocity),
        ("acceleration", 1.0 - np.abs(a) / limits.acceleration),
        ("jerk", 1.0 - np.abs(trajectory.derivative(time, 3)) / limits.jerk),
    ):
        if name in ("position", "velocity") or np.isfinite(getattr(limits, name)).any():
            row, joint = np.unravel_index(int(np.argmin(left)), left.shape)
            worst[name] = float(left[row, joint]), int(row), robot.joint_names[int(joint)]
    for name, limit in pose_limits(robot, limits, reserve=0.0).items():
        worst[name] = limit.worst(q, v, a)
        if name == "passive_joints" and worst[name][0] <= UNREACHABLE:
            break
    found = {name: margin for name, (margin, _, _) in worst.items() if np.isfinite(margin)}
    places = {name: (where, float(first[row])) for name, (_, row, where) in worst.items() if name in found}
    return Margins(**{"position": None, "velocity": None, "acceleration": None} | found, places=places, n_times=n_times)


def played_once(trajectory: Trajectory, n_times: int) -> tuple[Trajectory, Array, Array]:
    """A motion with pieces that repeat played once, equal steps on its clock, and when the whole is first there."""
    if not isinstance(trajectory, SequenceTrajectory):
        return trajectory, trajectory.grid(n_times), trajectory.grid(n_times)
    once, starts = trajectory.once()
    time = once.grid(n_times)
    here = np.clip(np.searchsorted(once.starts_s, time, side="right") - 1, 0, len(starts) - 1)
    return once, time, time + (starts - once.starts_s[:-1])[here]


def _room(q: Array, limits: Limits) -> Array:
    """What every pose leaves of half of each joint's range; infinite for a joint without position limits."""
    low, high = limits.position.T
    half = 0.5 * (high - low)
    left = np.minimum(q - low, high - q)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(left), left / np.where(np.isfinite(half), half, np.pi), np.inf)


def _require(robot: Robot, limit: Limit) -> None:
    """Refuse a robot without this limit, and say how to give one."""
    try:
        require_limits(robot, (limit,))
    except InputError as error:
        raise InputError(f"{error}; give one with --{limit} (in Python: limits_of(robot, {limit}=...))") from error


def _range(given: ArrayLike | None, robot: Robot, notes: list[str]) -> tuple[Array, Array]:
    """Lowest and highest position of every joint: the description's, or the part of it that is given."""
    low, high = robot.position_limits.T
    if given is None:
        return low, high
    pairs = pair_per_joint(given, robot)
    _note_tighter("position limit", (low > pairs[:, 0]) | (high < pairs[:, 1]), robot, notes)
    lowest, highest = np.maximum(low, pairs[:, 0]), np.minimum(high, pairs[:, 1])
    if not (lowest < highest).all():
        j = int(np.argmin(highest - lowest))
        raise InputError(
            f"position limit of joint '{robot.joint_names[j]}' is {pairs[j, 0]:g} to {pairs[j, 1]:g}, which leaves nothing of its "
            f"range {low[j]:g} to {high[j]:g}"
        )
    return lowest, highest


def pair_per_joint(given: ArrayLike, robot: Robot) -> Array:
    """Lowest and highest position of every joint, given as one pair or one for each."""
    pairs = np.asarray(given, dtype=np.float64)
    if pairs.shape not in ((2,), (1, 2), (robot.n_joints, 2)):
        raise InputError(
            f"position limit has {pairs.size} numbers, expected a lowest and a highest one, or {robot.n_joints} pairs"
        )
    check_finite("position limit", np.where(np.isinf(pairs), 0.0, pairs))
    return np.broadcast_to(pairs, (robot.n_joints, 2))


def _tighter(name: str, given: ArrayLike | None, described: Array, robot: Robot, notes: list[str]) -> Array:
    """The smaller of the limit that is given and the description's."""
    if given is None:
        return described
    values = per_joint(name, given, robot)
    _note_tighter(name, described < values, robot, notes)
    return np.minimum(described, values)


def _note_tighter(name: str, tighter: BoolArray, robot: Robot, notes: list[str]) -> None:
    if tighter.any():
        joints = ", ".join(robot.joint_names[j] for j in np.flatnonzero(tighter))
        notes.append(f"the {name} of the description is tighter than the given one and is used for {joints}")


def per_joint(name: str, values: ArrayLike, robot: Robot) -> Array:
    """A limit of every joint, given as one number or one for each."""
    array = np.asarray(values, dtype=np.float64)
    check_finite(name, np.where(np.isposinf(array), 0.0, array))  # infinite: none is given for this joint
    if array.shape not in ((), (1,), (robot.n_joints,)):
        raise InputError(f"{name} has {array.size} values, robot has {robot.n_joints} joints")
    if not (array > 0.0).all():
        raise InputError(f"{name} is {array.min():g}, expected a positive number")
    return np.broadcast_to(array, (robot.n_joints,)).copy()


# Joints that are held ------------------------------------------------------------------------------


def excluded_joints(robot: Robot, moved: Collection[str] = ()) -> dict[str, str]:
    """Joints to hold, and why; ``moved`` are those to move all the same, or ``all``."""
    for name in moved:
        if name != ALL and name not in robot.joint_names:
            raise UnknownNameError("joint", name, robot.joint_names, "--move")
    if ALL in moved:
        return {}
    follows = {match["name"] for note in robot.source.notes if (match := _FOLLOWS.match(note)) is not None}
    found: dict[str, str] = {}
    for joint in robot.moving_joints:
        name = joint.name
        if name in moved:
            continue
        if name in follows:
            found[name] = "follows another joint"
        elif word := _BY_NAME.search(name):
            found[name] = f"by name: {word[0].lower()}"
    return found if len(found) < robot.n_joints else {}


def without_excluded_joints(robot: Robot, moved: Collection[str] = ()) -> tuple[Robot, str]:
    """The robot with such joints locked at neutral, or in the middle of a range that has no neutral, and a sentence on them."""
    excluded = excluded_joints(robot, moved)
    if not excluded:
        return robot, ""
    low, high = robot.position_limits.T
    places = {}
    for name in excluded:
        k = robot.joint_names.index(name)
        inside = (not np.isfinite(low[k]) or low[k] <= 0.0) and (not np.isfinite(high[k]) or high[k] >= 0.0)
        places[name] = 0.0 if inside else float(0.5 * (low[k] + high[k]))
    because = {why: [name for name in excluded if excluded[name] == why] for why in dict.fromkeys(excluded.values())}
    told = "; ".join(f"{', '.join(names)} ({why})" for why, names in because.items())
    return robot.lock(places), f"these joints are held and not moved: {told}; --move JOINT,.. or --move all moves them"
