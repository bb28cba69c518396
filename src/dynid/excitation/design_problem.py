"""Criterion and limits of a design as functions of the coefficients of a motion."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze
from dynid.dynamics.closed_chains import closures_of
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.excitation.barrier import LinearLimits
from dynid.excitation.criteria import Criterion, condition_number, of_scaled_columns
from dynid.excitation.excitation_result import base_regressor
from dynid.excitation.gradient import by_parameters, effect_gradient, torque_gradient
from dynid.excitation.limits import FINE, Limits, margins_of, per_joint, pose_limits
from dynid.excitation.pose_limits import PoseLimit
from dynid.excitation.shapes import LinearShape
from dynid.excitation.trajectories import Trajectory
from dynid.model.effects.effect import Motion
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction

SMOOTH_SIGN = 0.03
"""Width of the smooth sign that stands for Coulomb's during the search, as a share of each joint's speed limit."""

POSE_FINENESS = 2.0
"""Limits that depend on the pose are looked at so many times as often as the regressor."""


FREE_POSES = 5
"""Free poses that are looked for where no random motion is inside all limits."""

FREE_TRIES = 20
"""Places of every joint that are tried for one of them."""

_POSES = 200
"""Random poses that tell which limit leaves no room."""


@dataclass(frozen=True, eq=False)
class DesignProblem:
    """Criterion and limits as functions of the coefficients ``x`` of a motion, all joints one after another."""

    robot: Robot
    """With a smooth sign in its Coulomb friction."""
    measured: Robot
    """The robot as it is, by which a finished motion is judged."""
    base: BaseReduction
    shape: LinearShape
    limits: Limits
    linear: LinearLimits
    pose: dict[str, PoseLimit]
    bases: tuple[Array, Array, Array]
    """Position, velocity and acceleration of every coefficient at the design's times."""
    pose_bases: tuple[Array, Array, Array]
    """The same at the times at which limits that depend on the pose are looked at."""
    pose_fineness: float
    row_weights: Array
    scaled: bool = False

    @classmethod
    def of(
        cls,
        robot: Robot,
        base: BaseReduction,
        shape: LinearShape,
        limits: Limits,
        scaled: bool = False,
        torque_noise: ArrayLike | None = None,
        fineness: float = 1.0,
    ) -> DesignProblem:
        if base.parameter_names != robot.parameters.names:
            raise InputError(
                f"base parameters were found for {base.n_parameters} columns, robot '{robot.name}' has {len(robot.parameters)}; "
                "they must be of the same robot and effects"
            )
        time = shape.design_times(fineness)
        smooth = with_smooth_sign(robot, limits)
        still = Motion(*(np.zeros((1, robot.n_joints)),) * 3)
        for effect in smooth.effects:  # say now which effect a design cannot take, not in the middle of it
            effect_gradient(effect, still, np.zeros((1, effect.incidence(robot.n_joints).shape[1])))
        weights = np.ones(robot.n_joints)
        if torque_noise is not None:
            weights = 1.0 / per_joint("torque noise", torque_noise, robot)
        return cls(
            robot=smooth,
            measured=robot,
            base=base,
            shape=shape,
            limits=limits,
            linear=linear_limits(shape, limits),
            pose=pose_limits(robot, limits),
            bases=_bases(shape, time),
            pose_bases=_bases(shape, shape.design_times(POSE_FINENESS)),
            pose_fineness=POSE_FINENESS,
            row_weights=freeze(weights / np.sqrt(len(time))),
            scaled=scaled,
        )

    def motion(self, x: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at the design's times."""
        X = x.reshape(self.robot.n_joints, -1).T
        q, v, a = (B @ X for B in self.bases)
        return q, v, a

    def function(self, x: Array, criterion: Criterion, mu: float) -> tuple[float, Array]:
        """Criterion and barriers of limits that depend on the pose; infinite where one of these is violated."""
        wall, gradient = self._pose_barriers(x, mu)
        if not np.isfinite(wall):
            return np.inf, np.zeros_like(x)
        q, v, a = self.motion(x)
        if self.robot.loops and not closures_of(self.robot).reachable(q).all():
            return np.inf, np.zeros_like(x)
        Y = torque_regressor(self.robot, q, v, a)
        value, slope = self._judged(Y, criterion)
        G = by_parameters(self.base, slope).reshape(Y.shape) * self.row_weights[:, None]
        gradient += _by_coefficients(torque_gradient(self.robot, q, v, a, G), self.bases)
        return value + wall, gradient.ravel()

    def value(self, x: Array, criterion: Criterion) -> float:
        """The criterion alone, for a motion that is known to keep the limits."""
        return self._judged(torque_regressor(self.robot, *self.motion(x)), criterion)[0]

    def _judged(self, Y: Array, criterion: Criterion) -> tuple[float, Array]:
        W = self.base_columns(Y)
        return of_scaled_columns(criterion, W) if self.scaled else criterion.of_regressor(W)

    def base_columns(self, Y: Array) -> Array:
        """``W`` of the design's times, rows weighted."""
        return self.base.regressor((Y * self.row_weights[:, None]).reshape(-1, Y.shape[2]))

    def _pose_barriers(self, x: Array, mu: float) -> tuple[float, Array]:
        """``mu`` times the mean over times of ``-log s + s - 1`` for slacks below one, which fades out without a kink."""
        X = x.reshape(self.robot.n_joints, -1)
        total, gradient = 0.0, np.zeros_like(X)
        if not self.pose:
            return total, gradient
        q, v, a = (B @ X.T for B in self.pose_bases)
        for limit in self.pose.values():
            s, pullback = limit.slacks(q, v, a)
            if not (s > 0.0).all():
                return np.inf, gradient
            near = np.minimum(s, 1.0)
            total += mu / len(q) * float((near - 1.0 - np.log(near)).sum())
            if mu > 0.0:
                gradient += _by_coefficients(pullback(mu / len(q) * (1.0 - 1.0 / near)), self.pose_bases)
        return total, gradient

    def inside(self, x: Array) -> bool:
        """Whether every limit is kept at the design's times."""
        return self.linear.inside(x) and bool(np.isfinite(self._pose_barriers(x, 0.0)[0]))

    def looking_closer(self, failing: Mapping[str, float]) -> DesignProblem:
        """The same problem with limits that were violated in between looked at more often, and held a little tighter."""
        pose = dict(self.pose)
        for name, excess in failing.items():
            if name in pose:
                pose[name] = pose[name].tightened(min(excess, 0.05) + 0.002)
        fineness = 2.0 * self.pose_fineness
        bases = _bases(self.shape, self.shape.design_times(fineness))
        return replace(self, pose=pose, pose_bases=bases, pose_fineness=fineness)

    def contracted(self, x: Array, factor: float) -> Array:
        """Oscillations about the mean pose made smaller; all linear limits that were kept stay kept."""
        X = x.reshape(self.robot.n_joints, -1)
        middle = np.outer((self.bases[0] @ X.T).mean(axis=0), self.shape.still())
        return np.asarray((middle + factor * (X - middle)).ravel())

    def random_start(self, rng: np.random.Generator, draws: int = 100) -> Array:
        """A random motion strictly inside every limit."""
        for draw in range(draws + FREE_POSES):
            # of many joints few random poses are free: one is looked for, and kept near
            X = self._drawn(rng, None if draw < draws else self._free_pose(rng))
            for factor in (1.0, 0.6, 0.36, 0.2) if draw < draws else (0.3, 0.1, 0.03):
                x = self.contracted(X.ravel(), factor)  # smaller about the same pose, then another pose
                if self.inside(x):
                    return x
        raise InputError(
            f"no motion within all limits of robot '{self.robot.name}' was found in {draws} random draws: {self._obstacle(rng)}"
        )

    def led_away(self, x: Array, rng: np.random.Generator, shares: tuple[float, float]) -> Array | None:
        """A motion part of the way from this one to a random one; nearer where limits that depend on the pose are broken."""
        way = rng.uniform(*shares) * (self._drawn(rng).ravel() - x)
        return next((moved for moved in (x + 0.5**k * way for k in range(4)) if self.inside(moved)), None)

    def _drawn(self, rng: np.random.Generator, pose: Array | None = None) -> Array:
        """Coefficients of a random motion within position, velocity and acceleration limits, about a given pose or a random one."""
        n = self.robot.n_joints
        X = self.shape.random(rng, n)
        use = np.abs((self.linear.C @ X.T) / self.linear.half).max(axis=0)
        X = X * (rng.uniform(0.5, 0.8, n) / use)[:, None]
        q = self.linear.C[: len(self.shape.limit_times()[0])] @ X.T
        low, high = q.min(axis=0), q.max(axis=0)
        room = np.maximum(0.95 * self.limits.reach - 0.5 * (high - low), 0.0)
        middle = self.limits.centre + rng.uniform(-0.8, 0.8, n) * room if pose is None else pose
        return np.asarray(X + np.outer(middle - 0.5 * (low + high), self.shape.still()))

    def _free_pose(self, rng: np.random.Generator) -> Array:
        """A random pose, then joint after joint another place of it where the robot at rest is farther from its limits."""
        reach = 0.8 * np.where(np.isfinite(self.limits.reach), self.limits.reach, np.pi)
        still = np.zeros((1, self.robot.n_joints))

        def spare(pose: Array) -> float:
            least = np.inf
            for limit in self.pose.values():
                least = min(least, limit.worst(pose[None], still, still)[0])
                if least < 0.0 and self.robot.loops:
                    break  # a loop that does not close has no distances
            return least

        pose = self.limits.centre + rng.uniform(-1.0, 1.0, self.robot.n_joints) * reach
        best = spare(pose)
        for j in np.tile(rng.permutation(self.robot.n_joints), FREE_TRIES):
            trial = pose.copy()
            trial[j] = self.limits.centre[j] + rng.uniform(-1.0, 1.0) * reach[j]
            if (found := spare(trial)) > best:
                pose, best = trial, found
        return pose

    def _obstacle(self, rng: np.random.Generator) -> str:
        """Which limit of which joint or pair is broken by the robot at rest in most poses of its range."""
        n, names = self.robot.n_joints, self.robot.joint_names
        tight = int(np.argmin(self.limits.reach))
        if not self.limits.reach[tight] > 0.0:
            return f"joint '{names[tight]}' has no range of positions"
        q = self.limits.centre + rng.uniform(-1.0, 1.0, (_POSES, n)) * np.where(
            np.isfinite(self.limits.reach), self.limits.reach, np.pi
        )
        worst: list[tuple[float, str]] = []
        for name, limit in self.pose.items():
            if self.robot.loops and name != "passive_joints":
                q = q[closures_of(self.robot).reachable(q)]
            shares = limit.broken(q)
            k = int(np.argmax(shares))
            worst.append((float(shares[k]), f"{name.replace('_', ' ')} of {limit.place(k)}{limit.size_at(q, k)}"))
        broken = [f"{told} in {100.0 * share:.0f} %" for share, told in sorted(worst, reverse=True) if share >= 0.05]
        if not broken:
            looked = "".join(", " + name.replace("_", " ") for name in self.pose)
            return f"limits looked at are position, velocity, acceleration{looked}; try a longer --period or more --starts"
        return (
            f"limits that the robot breaks in random poses at rest: {'; '.join(broken)} of {_POSES} poses{_remedies(broken)}"
        )

    def trajectory(self, x: Array) -> Trajectory:
        """The motion of these coefficients."""
        return self.shape.trajectory(x.reshape(self.robot.n_joints, -1))

    def measured_condition(self, x: Array) -> float:
        """Condition number of the finished motion, with the effects as they are."""
        return condition_number(base_regressor(self.measured, self.base, self.trajectory(x)))

    @property
    def n_proof_times(self) -> int:
        """Times at which a finished motion is held against all limits."""
        return FINE * len(self.shape.limit_times()[0])

    def proof_seconds(self) -> float:
        """What a proof will take, from a small part of one: fewer times of a motion as much smaller, so that steps are alike."""
        share = max(80, self.n_proof_times // 20) / self.n_proof_times
        X = self.shape.random(np.random.default_rng(0), self.robot.n_joints)
        X *= 0.5 * share / np.abs((self.linear.C @ X.T) / self.linear.half).max()
        X += np.outer(self.limits.centre, self.shape.still())
        began = monotonic()
        margins_of(self.measured, self.trajectory(X.ravel()), self.limits, round(share * self.n_proof_times))
        return (monotonic() - began) / share


def _remedies(broken: Sequence[str]) -> str:
    """What to change, by flags, where these limits are in the way."""
    found = []
    if stated := sorted({word for told in broken for word in re.findall(r"'(--[^']+)'", told)}):
        found.append(f"another place or size of {', '.join(stated)}, or a smaller --clearance")
    if any(told.startswith("tool room") for told in broken):
        found.append("another place or size of --keep-in, which the tool must reach")
    if any("'ground'" in told for told in broken):
        found.append("--ground none or --ground HEIGHT where the base does not stand on that plane")
    if any(told.startswith("torque") for told in broken):
        found.append("--position LOW:HIGH,.. for poses that the drives can hold, or --torque for other limits")
    return f"; try {', and '.join(found)}" if found else ""


def _bases(shape: LinearShape, time: Array) -> tuple[Array, Array, Array]:
    return shape.basis(time, 0), shape.basis(time, 1), shape.basis(time, 2)


def _by_coefficients(bars: tuple[Array, Array, Array], bases: tuple[Array, Array, Array]) -> Array:
    """Derivatives by position, velocity and acceleration at all times as one by the coefficients, ``(joints, coefficients)``."""
    return np.asarray(bars[0].T @ bases[0] + bars[1].T @ bases[1] + bars[2].T @ bases[2])


def linear_limits(shape: LinearShape, limits: Limits) -> LinearLimits:
    """Position, velocity, acceleration and jerk as limits on coefficients, tight enough for all times in between."""
    time, beyond = shape.limit_times()
    blocks, centres, halves = [], [], []
    still = np.zeros_like(limits.velocity)
    for order, (centre, half) in enumerate(
        (
            (limits.centre, limits.reach),
            (still, limits.velocity),
            (still, limits.acceleration),
            (still, limits.jerk),
        )
    ):
        if not np.isfinite(half).any():
            continue
        blocks.append(shape.basis(time, order))
        centres.append(np.tile(centre, (len(time), 1)))
        halves.append(np.tile(half / beyond, (len(time), 1)))
    return LinearLimits(freeze(np.vstack(blocks)), freeze(np.vstack(centres)), freeze(np.vstack(halves)), 1.0 / len(time))


def with_smooth_sign(robot: Robot, limits: Limits) -> Robot:
    """The robot with a sign that has a derivative; its column tells motions apart as the sharp one does."""
    speeds = robot.limits("dq_max")
    widths = SMOOTH_SIGN * np.where(np.isfinite(speeds), speeds, limits.velocity)
    return robot.with_effects([effect.smoothed(widths) if effect.is_sharp else effect for effect in robot.effects])
