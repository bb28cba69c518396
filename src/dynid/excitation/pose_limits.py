"""Limits that depend on the pose: each gives slacks that must stay positive, and their exact derivatives by the motion.

torque      1 - ((1 + u) tau_d / tau_max_d)^2     tau of the nominal model, u its relative uncertainty
tool speed  1 - |v_tool|^2 / v_max^2
tool room   1 - ((p_tool - middle) / half)^2      along each axis of the base frame
passive     1 - ((q - middle) / half)^2           of each passive joint of a closed robot with a range
clearance   (distance - least) / (active - least)    of each pair of bodies closer than ``active`` (``collision.py``)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics.closed_chains import closures_of, tree_positions
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.gradient import inverse_dynamics_gradient, point_place_gradient, point_speed_gradient, point_speeds
from dynid.model.frames import frame_poses
from dynid.model.poses import make_pose
from dynid.model.robot import Robot

Pullback: TypeAlias = Callable[[Array], tuple[Array, Array, Array]]
"""From the derivative by each slack to that by position, velocity and acceleration."""


class PoseLimit(ABC):
    """A limit that is not linear in the motion: positive slacks at sampled states."""

    @abstractmethod
    def slacks(self, q: Array, v: Array, a: Array) -> tuple[Array, Pullback]:
        """Slack of every state and constraint, in any shape, and how their derivatives go back to the motion."""

    @abstractmethod
    def tightened(self, share: float) -> PoseLimit:
        """The same limit with ``share`` less of it to be used."""

    def worst(self, q: Array, v: Array, a: Array) -> tuple[float, int, str]:
        """Smallest margin, ``1 - r`` for a slack ``1 - r^2``, at which state, and of which joint, tool or pair."""
        slack = self.slacks(q, v, a)[0].reshape(len(q), -1)
        row, constraint = np.unravel_index(int(np.argmin(slack)), slack.shape)
        return 1.0 - float(np.sqrt(1.0 - slack[row, constraint])), int(row), self.name_of(int(constraint))

    @abstractmethod
    def name_of(self, constraint: int) -> str:
        """The joint, tool or pair of bodies that a constraint is about."""

    def broken(self, q: Array) -> Array:
        """Share of these poses in which each constraint is broken by the robot at rest."""
        still = np.zeros_like(q)
        return np.asarray((self.slacks(q, still, still)[0].reshape(len(q), -1) <= 0.0).mean(axis=0))

    def place(self, constraint: int) -> str:
        """The same as part of a sentence."""
        return f"'{self.name_of(constraint)}'"

    def size_at(self, q: Array, constraint: int) -> str:
        """How far the constraint is broken at rest in these poses, in words; empty where it has no number."""
        return ""


@dataclass(frozen=True, eq=False)
class TorqueLimit(PoseLimit):
    """``1 - (use tau / tau_max)^2``."""

    robot: Robot
    limit: Array
    use: float

    def slacks(self, q: Array, v: Array, a: Array) -> tuple[Array, Pullback]:
        ratio = self.use * inverse_dynamics(self.robot, q, v, a) / self.limit

        def pullback(bar: Array) -> tuple[Array, Array, Array]:
            return inverse_dynamics_gradient(self.robot, q, v, a, -2.0 * bar * ratio * self.use / self.limit)

        return 1.0 - ratio**2, pullback

    def tightened(self, share: float) -> TorqueLimit:
        return replace(self, use=self.use * (1.0 + share))

    def name_of(self, constraint: int) -> str:
        return self.robot.driven_joints[constraint].name

    def place(self, constraint: int) -> str:
        return f"joint '{self.name_of(constraint)}'"

    def size_at(self, q: Array, constraint: int) -> str:
        still = np.zeros_like(q)
        needed = np.abs(self.use * inverse_dynamics(self.robot, q, still, still)[:, constraint]).max()
        return f" ({self.limit[constraint]:.4g}, while gravity with its uncertainty needs up to {needed:.4g})"


@dataclass(frozen=True, eq=False)
class ToolSpeedLimit(PoseLimit):
    """``1 - |v|^2 / v_max^2``."""

    robot: Robot
    speed: float
    body: int
    point: Array

    def slacks(self, q: Array, v: Array, a: Array) -> tuple[Array, Pullback]:
        squared, weights = point_speeds(self.robot, q, v, self.body, self.point)

        def pullback(bar: Array) -> tuple[Array, Array, Array]:
            q_bar, v_bar = point_speed_gradient(self.robot, q, v, np.outer(-bar / self.speed**2, weights))
            return q_bar, v_bar, np.zeros_like(v_bar)

        return 1.0 - squared / self.speed**2, pullback

    def tightened(self, share: float) -> ToolSpeedLimit:
        return replace(self, speed=self.speed / (1.0 + share))

    def name_of(self, constraint: int) -> str:
        return "tool"


@dataclass(frozen=True, eq=False)
class ToolRoomLimit(PoseLimit):
    """``1 - ((p - middle) / half)^2`` of the tool's place along each axis of the base frame."""

    robot: Robot
    middle: Array
    half: Array
    body: int
    point: Array

    def slacks(self, q: Array, v: Array, a: Array) -> tuple[Array, Pullback]:
        ratio = (tool_path(self.robot, q, self.body, self.point) - self.middle) / self.half

        def pullback(bar: Array) -> tuple[Array, Array, Array]:
            q_bar = point_place_gradient(self.robot, q, self.body, self.point, -2.0 * bar * ratio / self.half)
            return q_bar, np.zeros_like(q_bar), np.zeros_like(q_bar)

        return 1.0 - ratio**2, pullback

    def tightened(self, share: float) -> ToolRoomLimit:
        return replace(self, half=self.half / (1.0 + share))

    def name_of(self, constraint: int) -> str:
        return f"tool, {'xyz'[constraint]}"


UNREACHABLE = -1.0
"""Slack, and margin, of a pose at which a closed robot does not close or is singular."""


@dataclass(frozen=True, eq=False)
class PassiveJointLimit(PoseLimit):
    """``1 - ((q - middle) / half)^2`` of every passive joint with a range; a column before them tells poses that do not close."""

    robot: Robot
    use: float = 1.0

    def slacks(self, q: Array, v: Array, a: Array) -> tuple[Array, Pullback]:
        closures, (joints, middle, half) = closures_of(self.robot), self._ranges()
        if not closures.reachable(q).all():
            return np.where(closures.reachable(q), 1.0, UNREACHABLE)[:, None], lambda bar: (np.zeros_like(q),) * 3
        position = closures.positions(np.ascontiguousarray(q))
        ratio = self.use * (position[:, joints] - middle) / half
        slack = np.column_stack([np.ones(len(q)), 1.0 - ratio**2])

        def pullback(bar: Array) -> tuple[Array, Array, Array]:
            G = closures.follow(position).G[:, joints]
            q_bar = np.einsum("sj,sjk->sk", -2.0 * bar[:, 1:] * ratio * self.use / half, G)
            return q_bar, np.zeros_like(q_bar), np.zeros_like(q_bar)

        return slack, pullback

    def worst(self, q: Array, v: Array, a: Array) -> tuple[float, int, str]:
        slack = self.slacks(q, v, a)[0]
        if slack[:, 0].min() < 0.0:
            return UNREACHABLE, int(np.argmin(slack[:, 0])), self.name_of(0)
        if slack.shape[1] == 1:
            return np.inf, 0, self.name_of(0)
        row, constraint = np.unravel_index(int(np.argmin(slack[:, 1:])), slack[:, 1:].shape)
        return 1.0 - float(np.sqrt(1.0 - slack[row, constraint + 1])), int(row), self.name_of(int(constraint) + 1)

    def _ranges(self) -> tuple[list[int], Array, Array]:
        """Passive joints with a range, its middle and its half width."""
        joints = [int(j) for j in closures_of(self.robot).passive]
        ranges = np.array([(self.robot.joints[j].q_min, self.robot.joints[j].q_max) for j in joints]).reshape(-1, 2)
        bounded = np.isfinite(ranges).all(axis=1) & (ranges[:, 1] > ranges[:, 0])
        low, high = ranges[bounded].T
        return [j for j, kept in zip(joints, bounded, strict=True) if kept], 0.5 * (low + high), 0.5 * (high - low)

    def tightened(self, share: float) -> PassiveJointLimit:
        return replace(self, use=self.use * (1.0 + share))

    def name_of(self, constraint: int) -> str:
        if constraint == 0:
            return self.robot.loops.closures[0].name
        return self.robot.joints[self._ranges()[0][constraint - 1]].name


def tool_place(robot: Robot, tool: str | None, point: ArrayLike | None = None) -> tuple[int, Array]:
    """Body and point of the tool."""
    offset = np.zeros(3) if point is None else np.asarray(point, dtype=np.float64)
    if offset.shape != (3,) or not np.isfinite(offset).all():
        raise InputError(f"tool point has {offset.size} numbers, expected 3: x, y, z")
    if tool is None:
        body = robot.n_bodies - 1
        fixed = [link for link in robot.merged if link.body == body]
        if not fixed:
            return body, offset
        placement = max(fixed, key=lambda link: float(np.linalg.norm(link.placement[:3, 3]))).placement
        return body, placement[:3, :3] @ offset + placement[:3, 3]
    if tool in robot.links:
        return robot.links.index(tool), offset
    for link in robot.merged:
        if link.name == tool and link.body >= 0:
            return link.body, link.placement[:3, :3] @ offset + link.placement[:3, 3]
    raise UnknownNameError("tool link", tool, (*robot.links, *(link.name for link in robot.merged if link.body >= 0)))


def tool_path(robot: Robot, q: Array, body: int, point: ArrayLike) -> Array:
    """Positions in the base frame of a point of a body, ``(samples, 3)``."""
    return frame_poses(robot, tree_positions(robot, q), body, make_pose(translation=point))[1]
