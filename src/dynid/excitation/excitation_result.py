"""A designed motion and its properties: singular values of its base regressor, margins of all that will be played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze
from dynid.dynamics.closed_chains import closures_of
from dynid.dynamics.regressors import torque_regressor
from dynid.engine import one_blas_thread
from dynid.errors import InputError
from dynid.excitation.collision import SCALE_M
from dynid.excitation.controller_programs import NEAR_DEG, nearness, units
from dynid.excitation.criteria import condition_number, scaling_of
from dynid.excitation.limits import Limits, Margins, margins_of, played_once
from dynid.excitation.pose_limits import tool_path
from dynid.excitation.ramps import SLOW, from_home, rest_to_rest
from dynid.excitation.trajectories import SequenceTrajectory, Trajectory
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction

MEASURE_HZ = 100.0
"""Rate at which a finished motion is judged."""

POOR = 100.0
"""Condition number of columns of equal length from which a motion is called poor; arms with strong drives get 4 to 15."""

NEAR_POSES = 128
"""Poses about the start, as far from it as a program lets the robot stand, that are looked at for contact."""

BROKEN = 1e-6
"""Share of a limit by which a finished motion may exceed it: rounding."""


@dataclass(frozen=True)
class LimitUse:
    """One line of the table of limits: what the robot allows, the largest value of the motion, its share, and where it is.

    Args:
        name: position, velocity, acceleration, jerk, torque, tool speed, passive joints or clearance.
        limit: of the joint, pair or tool that comes nearest to it, in its unit; for clearance the least distance.
        largest: value of the motion there; for clearance the smallest distance.
        share: ``largest / limit``; for a range the share of its half that is used.
        where: joint, tool or pair of bodies.
        time_s: when.
    """

    name: str
    limit: float
    largest: float
    share: float
    unit: str
    where: str
    time_s: float


@dataclass(frozen=True, eq=False)
class Excitation:
    """A designed motion and its properties.

    Args:
        robot: for which it was designed.
        base: the base parameters.
        limits: the limits that it keeps.
        criterion: what was made small.
        margins: smallest fraction of each limit that is left.
        seconds: time spent on the design, s.
        seed: of the random starts.
        notes: sentences for the user.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects="none").only(["shoulder_pitch"])
        >>> found = dynid.design_excitation(robot, period=5.0, harmonics=2, seconds=1.0, starts=1, engine="serial")
        >>> isinstance(found, dynid.Excitation), found.condition_number > 1.0
        (True, True)
    """

    robot: Robot
    base: BaseReduction
    trajectory: Trajectory
    """The motion that is judged: one period where it repeats."""
    playable: Trajectory
    """What is to be played: the same with ramps from and to rest, if they were asked for."""
    limits: Limits
    criterion: str
    margins: Margins
    seconds: float
    seed: int
    starts: tuple[float, ...] = ()
    """Condition number that each start reached before the best were finished."""
    energy_rows: Array | None = None
    """What was designed, for a motion through optimal points: the matrix ``W`` of the energy model between them, its columns the base
    parameters with every effect."""
    notes: tuple[str, ...] = ()

    @cached_property
    def triangle(self) -> Array:
        """``R`` of the base regressor ``W = Q R`` in the default grouping, unscaled, at 100 Hz."""
        with one_blas_thread():
            return freeze(np.linalg.qr(base_regressor(self.robot, self.base, self.trajectory), mode="r"))

    @cached_property
    def singular_values(self) -> Array:
        """Of the base regressor."""
        return freeze(np.linalg.svd(self.triangle, compute_uv=False))

    @property
    def condition_number(self) -> float:
        """Of the base regressor, in the 2-norm."""
        return condition_number(self.triangle)

    @cached_property
    def played_condition_number(self) -> float:
        """The same of all that is played, ramps and ways included: what identification finds on a log that follows the motion."""
        if self.playable is self.trajectory:
            return self.condition_number
        with one_blas_thread():
            return condition_number(base_regressor(self.robot, self.base, self.playable))

    @property
    def condition_number_scaled(self) -> float:
        """Condition number after scaling every column to length one."""
        return condition_number(self.triangle, scaled=True)

    @property
    def trace_of_inverse(self) -> float:
        """``sqrt(trace((W^T W)^-1))``: standard error of all base parameters together per unit of torque noise."""
        with np.errstate(divide="ignore"):
            return float(np.sqrt((1.0 / self.singular_values**2).sum()))

    def as_json(self) -> dict[str, Any]:
        """What scripts rely on; ``knots`` are the times of the points of a design through points, null for other shapes."""
        W, more = self.energy_rows, {}
        designed = (self.condition_number, self.base.n_base)
        if W is not None:
            designed = condition_number(W), W.shape[1]
            more = {"torque_condition_number": self.condition_number, "scaling": scaling_of(W), "n_rows": len(W)}
        knots = self.playable.point_times_s
        return {
            "condition_number": designed[0],
            "condition_number_scaled": self.condition_number_scaled,
            "played_condition_number": self.played_condition_number,
            "criterion": self.criterion,
            "model": "torque" if W is None else "energy",
            "seconds": self.seconds,
            "margins": self.margins.as_json(),
            "limits": [asdict(use) for use in self.limit_uses],
            "distances": [asdict(use) for use in self.distances],
            "n_base": self.base.n_base,
            "n_columns": designed[1],
            "duration_s": self.playable.duration_s,
            "knots": None if knots is None else knots.tolist(),
            "start": self.playable.derivative([0.0], 0)[0].tolist(),
            "seed": self.seed,
            "notes": list(self.notes),
            **more,
        }

    @cached_property
    def limit_uses(self) -> tuple[LimitUse, ...]:
        """How much of the robot's own limits the motion uses, one line for each limit."""
        found = []
        for name, margin in self.margins.items():
            where, time_s = self.margins.places[name]
            found.append(self._limit_use(name, margin, where, time_s))
        return tuple(found)

    @cached_property
    def distances(self) -> tuple[LimitUse, ...]:
        """Smallest distance along what is played, between links and to everything around the robot, one line for each."""
        clearance = self.limits.clearance
        if clearance is None or self.margins.clearance is None:
            return ()
        motion, time, first = played_once(self.playable, self.margins.n_times)
        found = []
        for name, (distance, row, k) in clearance.smallest(motion.derivative(time, 0)).items():
            least = float(clearance.least[k])
            where = " - ".join(one for one in clearance.pairs[k] if one != name)
            share = least / distance if distance > 0.0 else np.inf
            word = f"to {name}" if name else "between links"
            found.append(LimitUse(word, least, distance, share, "m", where, float(first[row])))
        return tuple(found)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Notes that say what may collide all the same: they come before the others."""
        clearance, slides = self.limits.clearance, [joint.kind == "prismatic" for joint in self.robot.moving_joints]
        if clearance is None:
            return self.limits.unchecked
        away = np.random.default_rng(0).choice([-1.0, 1.0], (NEAR_POSES, len(slides))) * nearness(slides) / units(slides)
        poses = self.playable.derivative([0.0], 0) + away
        if self.robot.loops:
            poses = poses[closures_of(self.robot).reachable(poses)]
        touching = np.flatnonzero((clearance.distances(poses) < 0.0).any(axis=0))
        told = [
            f"{clearance.name_of(int(k))} may touch where the robot starts {NEAR_DEG:g} deg beside the start pose"
            for k in touching
        ]
        return (*self.limits.unchecked, *clearance.notes, *told)

    def _limit_use(self, name: str, margin: float, where: str, time_s: float) -> LimitUse:
        robot, limits, word = self.robot, self.limits, name.replace("_", " ")
        if name == "clearance" and limits.clearance is not None:
            least = limits.clearance.least_of(where)
            distance = least + SCALE_M * margin
            return LimitUse(word, least, distance, least / distance if distance > 0.0 else np.inf, "m", where, time_s)
        if name == "tool_speed":
            return LimitUse(word, limits.tool_speed, (1.0 - margin) * limits.tool_speed, 1.0 - margin, "m/s", where, time_s)
        if name == "tool_room" and limits.tool_room is not None:
            axis = "xyz".index(where[-1])
            pose = self.playable.derivative([time_s], 0)
            place = float(tool_path(robot, pose, limits.tool_body, limits.tool_point)[0, axis])
            low, high = limits.tool_room[axis].tolist()
            nearer = low if place - low < high - place else high
            return LimitUse(word, nearer, place, 1.0 - margin, "m", where, time_s)
        joint = next((one for one in robot.joints if one.name == where), robot.joints[0])
        length = "m" if joint.kind == "prismatic" else "rad"
        if name == "passive_joints":
            return LimitUse(word, joint.q_max, np.nan, 1.0 - margin, length, where, time_s)
        j = robot.joint_names.index(where)
        if name == "position":
            q = float(self.playable.derivative([time_s], 0)[0, j])
            low, high = robot.position_limits[j] if np.isfinite(robot.position_limits[j]).all() else limits.range[j]
            nearer = low if q - low < high - q else high
            return LimitUse(
                word, float(nearer), q, float(abs(q - 0.5 * (low + high)) / (0.5 * (high - low))), length, where, time_s
            )
        whole = 1.0 if name == "jerk" else limits.fraction
        limit = float(getattr(limits, name)[j]) / whole
        units = {"velocity": f"{length}/s", "acceleration": f"{length}/s^2", "jerk": f"{length}/s^3"}
        unit = units.get(name, "N" if length == "m" else "N m")
        share = whole * (1.0 - margin)
        return LimitUse(word, limit, share * limit, share, unit, where, time_s)

    def in_words(self) -> str:
        """The condition number and of which matrix it is."""
        torque = f"condition number {self.condition_number:.4g} of the torque model ({self.base.n_base} base parameters)"
        if abs(self.played_condition_number / self.condition_number - 1.0) > 0.01:
            torque += f", {self.played_condition_number:.4g} with its ramps"
        W = self.energy_rows
        if W is None:
            return torque
        return (
            f"condition number {condition_number(W):.4g} of the energy model ({len(W)} rows, {W.shape[1]} base parameters), "
            f"scaling S {scaling_of(W):.4g}; {torque}"
        )


def finished_excitation(
    robot: Robot,
    base: BaseReduction,
    trajectory: Trajectory,
    limits: Limits,
    *,
    criterion: str,
    rest: bool,
    periods: int,
    n_times: int,
    began: float,
    seed: int,
    starts: tuple[float, ...] = (),
    notes: Sequence[str] = (),
    energy_rows: Array | None = None,
    refuse: bool = True,
) -> Excitation:
    """A motion with its ramps and repeats, singular values of its base regressor and margins of all that will be played."""
    playable: Trajectory = trajectory
    if rest:
        playable = rest_to_rest(robot, trajectory, limits, periods)
        trajectory = playable.pieces[0 if trajectory.at_rest else 1]  # a periodic one may begin elsewhere
    elif periods > 1:
        if not trajectory.closed:
            raise InputError(
                f"a motion that ends in another pose than it starts cannot be repeated {periods} times; design it with --rest"
            )
        playable = SequenceTrajectory((trajectory,) * periods)
    share = playable.duration_s / trajectory.duration_s
    margins = margins_of(robot, playable, limits, int(np.ceil(n_times * share)))
    if refuse and margins.smallest < -BROKEN:
        where, time_s = margins.places[margins.worst]
        raise InputError(
            f"the motion exceeds the limit of {margins.worst.replace('_', ' ')} by {-100.0 * margins.smallest:.2g} % at "
            f"{time_s:.3f} s ({where}); no such motion is written"
        )
    return Excitation(
        robot=robot,
        base=base,
        trajectory=trajectory,
        playable=playable,
        limits=limits,
        criterion=criterion,
        margins=margins,
        seconds=monotonic() - began,
        seed=seed,
        starts=starts,
        notes=tuple(notes),
        energy_rows=energy_rows,
    )


def told_if_poor(found: Excitation) -> Excitation:
    """The motion with a first note that it is poor, which limits it reaches and what to do; as it was where it is not."""
    condition = found.condition_number_scaled
    if condition < POOR:
        return found
    reached = [
        f"{use.name} ({use.where})"
        for use in found.limit_uses
        if use.name in ("velocity", "acceleration", "torque") and use.share > 0.98 * found.limits.fraction
    ]
    note = (
        f"this motion is poor: with columns of equal length its condition number is {condition:.3g}, expected at most {POOR:g}; "
        + (f"it reaches the limits of {', '.join(reached)}: " if reached else "")
        + "try a longer --period, more --seconds, a larger --fraction where the robot allows it, or --lock a joint that is too weak"
    )
    return replace(found, notes=(note, *found.notes))


def led_from(found: Excitation, home: ArrayLike) -> Excitation:
    """The same motion, played from a pose and back to it by slow ways that keep every limit too."""
    motion = found.playable
    whole = from_home(found.robot, motion, np.asarray(home, dtype=np.float64), found.limits, found.seed)
    looked_at_s = motion.once()[0].duration_s if isinstance(motion, SequenceTrajectory) else motion.duration_s
    n_times = int(np.ceil(found.margins.n_times / looked_at_s * whole.duration_s))
    margins = margins_of(found.robot, whole, found.limits, n_times)
    note = (
        f"the way from --home to the motion and back, {whole.duration_s - motion.duration_s:.3g} s together at {100.0 * SLOW:.0f} % of "
        "velocity and acceleration, is part of every file and is held against the same limits"
    )
    return replace(found, playable=whole, margins=margins, notes=(*found.notes, note))


def base_regressor(robot: Robot, base: BaseReduction, trajectory: Trajectory, rate_hz: float = MEASURE_HZ) -> Array:
    """``W``: the base regressor of one run through a motion, its end left out so that a period is counted once."""
    n = max(round(trajectory.duration_s * rate_hz), 200)
    time = np.arange(n) * (trajectory.duration_s / n)
    Y = torque_regressor(robot, *trajectory.evaluate(time))
    return base.regressor(Y.reshape(-1, Y.shape[2]))
