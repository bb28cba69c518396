"""Velocity sinusoids for friction: Gaz and others 2019, (31).

    dq_i(t) = A_i sin(2 pi t / T_i),     q_i(t) = c_i - A_i T_i / (2 pi) cos(2 pi t / T_i)

One joint alone shows its friction over all speeds while the rest of the arm stands still; all joints together, with periods that have
no common multiple, show whether what was found for each holds in motion. Amplitudes, periods and centres are given, or follow from
the limits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.adapters.blas import one_blas_thread
from dynid.arrays import Array, freeze, matrix
from dynid.errors import InputError
from dynid.excitation.judged import Excitation, finished_excitation
from dynid.excitation.limits import Limits, margins_of
from dynid.excitation.shape import Trajectory, times
from dynid.regression.base import reduce_to_base
from dynid.robot.model import Robot

_GRID = 4000
_SMALLEST, _SPARE = 0.02, 0.005


@dataclass(frozen=True, eq=False)
class SinusoidTrajectory(Trajectory):
    """Sinusoids of velocity, one per joint: ``dq = A sin(2 pi t / T)`` about a centre.

    Args:
        amplitude: ``A``, rad/s or m/s; zero for a joint that stands still.
        period: ``T``, s.
        centre: middle of the motion, rad or m.
        length_s: length of the motion, s.

    Examples:
        >>> import dynid
        >>> dynid.excitation.SinusoidTrajectory([0.5], [4.0], [0.0], length_s=8.0).duration_s
        8.0
    """

    amplitude: Array
    period: Array
    centre: Array
    length_s: float

    def __post_init__(self) -> None:
        amplitude = matrix("amplitudes", self.amplitude, (None,))
        object.__setattr__(self, "amplitude", amplitude)
        object.__setattr__(self, "period", matrix("periods", self.period, amplitude.shape))
        object.__setattr__(self, "centre", matrix("centres", self.centre, amplitude.shape))
        if not (self.period > 0.0).all():
            raise InputError(f"a period is {self.period.min():g} s, expected positive numbers")
        if not (np.isfinite(self.length_s) and self.length_s > 0.0):
            raise InputError(f"the motion lasts {self.length_s:g} s, expected a positive time")

    @property
    def n_joints(self) -> int:
        return len(self.amplitude)

    @property
    def duration_s(self) -> float:
        return self.length_s

    def derivative(self, time: ArrayLike, order: int) -> Array:
        w = 2.0 * np.pi / self.period
        wave = self.amplitude * w ** (order - 1) * np.sin(np.outer(times(time), w) + 0.5 * np.pi * (order - 1))
        return np.asarray(wave + (self.centre if order == 0 else 0.0))

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": "sinusoids",
            "duration_s": self.length_s,
            "A": self.amplitude.tolist(),
            "T": self.period.tolist(),
            "centre": self.centre.tolist(),
        }


def all_joint_sinusoids(robot: Robot, limits: Limits, duration_s: float = 20.0, *, seed: int = 0) -> SinusoidTrajectory:
    """Every joint at once, each up to its largest possible speed, with periods that have no common multiple.

    Args:
        robot: the robot.
        limits: as made by :func:`limits_of`.
        duration_s: length of the motion, s.
        seed: of the periods.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot()
        >>> dynid.excitation.all_joint_sinusoids(robot, dynid.limits_of(robot), duration_s=5.0).n_joints
        7
    """
    return _within(robot, _sinusoids(robot, limits, np.ones(robot.n_joints, dtype=bool), duration_s, seed), limits)


def single_joint_sinusoid(
    robot: Robot, joint: str, limits: Limits, duration_s: float = 20.0, *, pose: ArrayLike | None = None, seed: int = 0
) -> SinusoidTrajectory:
    """One joint alone, up to its largest possible speed.

    Args:
        robot: the robot.
        joint: name of the joint that moves.
        limits: as made by :func:`limits_of`.
        duration_s: length of the motion, s.
        pose: where the other joints stand; None for the middle of their ranges.
        seed: of the period.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot()
        >>> motion = dynid.excitation.single_joint_sinusoid(robot, "elbow", dynid.limits_of(robot), duration_s=5.0)
        >>> int((motion.amplitude != 0.0).sum())
        1
    """
    moving = np.zeros(robot.n_joints, dtype=bool)
    moving[robot.joint_index(joint)] = True
    motion = _sinusoids(robot, limits, moving, duration_s, seed)
    if pose is not None:
        standing = matrix("pose", pose, (robot.n_joints,))
        motion = replace(motion, centre=np.where(moving, motion.centre, standing))
    return _within(robot, motion, limits)


def given_sinusoids(
    robot: Robot,
    limits: Limits,
    amplitude: ArrayLike,
    period: ArrayLike,
    centre: ArrayLike | None = None,
    duration_s: float = 20.0,
) -> SinusoidTrajectory:
    """Exactly these sinusoids; refused where they exceed a limit.

    Args:
        robot: whose joints the numbers belong to, in order.
        limits: as made by :func:`limits_of`.
        amplitude: of the velocity, rad/s or m/s, one per joint; zero for a joint that stands still.
        period: s, one for all joints or one per joint.
        centre: rad or m, one per joint; None for the middle of each joint's range.
        duration_s: length of the motion, s.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot()
        >>> motion = dynid.excitation.given_sinusoids(robot, dynid.limits_of(robot), [0.1] * 7, period=4.0, duration_s=8.0)
        >>> motion.duration_s
        8.0
    """
    numbers = {
        "amplitude": _per_joint("amplitudes (--amplitude)", amplitude, robot),
        "period": _per_joint("periods (--period-s)", period, robot, one=True),
        "centre": limits.centre if centre is None else _per_joint("centres (--centre)", centre, robot),
    }
    motion = SinusoidTrajectory(**numbers, length_s=duration_s)
    name, worst = min(margins_of(robot, motion, limits, _GRID).items(), key=lambda item: item[1].value)
    if worst.value < 0.0:
        raise InputError(
            f"the sinusoids exceed the limit of {name.replace('_', ' ')} by {-100.0 * worst.value:.3g} % at {worst.time_s:.3f} s "
            f"({worst.where}); change --amplitude, --period-s or --centre"
        )
    return motion


def sinusoid_excitation(
    robot: Robot, motion: SinusoidTrajectory, limits: Limits, *, rest: bool = True, periods: int = 1, seed: int = 0
) -> Excitation:
    """Sinusoids as an excitation, judged like every other."""
    began = monotonic()
    with one_blas_thread():
        base = reduce_to_base(robot)
    return finished_excitation(
        robot,
        base,
        motion,
        limits,
        criterion="velocity sinusoids",
        rest=rest,
        periods=periods,
        n_times=_GRID,
        began=began,
        seed=seed,
        notes=limits.notes,
    )


def _per_joint(name: str, values: ArrayLike, robot: Robot, *, one: bool = False) -> Array:
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if one and array.shape == (1,):
        return np.full(robot.n_joints, array[0])
    if array.shape != (robot.n_joints,):
        raise InputError(
            f"{array.size} {name} were given for the {robot.n_joints} joints {', '.join(robot.joint_names)}; expected one per joint"
        )
    return array


def _within(robot: Robot, motion: SinusoidTrajectory, limits: Limits) -> SinusoidTrajectory:
    """The motion made smaller about its centre until torque, tool speed and clearance keep their limits too."""

    def worst(share: float) -> tuple[float, str]:
        found = margins_of(robot, replace(motion, amplitude=share * motion.amplitude), limits, _GRID)
        name, margin = min(found.items(), key=lambda item: item[1].value)
        return margin.value, name

    if worst(1.0)[0] >= 0.0:
        return motion
    low, high = _SMALLEST, 1.0
    margin, name = worst(low)
    if margin < 0.0:
        raise InputError(
            f"sinusoids about the middle of each joint's range exceed the limit of {name.replace('_', ' ')} even when they are "
            f"{100.0 * _SMALLEST:.0f} % as large; give narrower ranges with --position or another limit"
        )
    for _ in range(10):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if worst(middle)[0] >= _SPARE else (low, middle)
    return replace(motion, amplitude=low * motion.amplitude)


def _sinusoids(
    robot: Robot, limits: Limits, moving: Array | np.ndarray[Any, Any], duration_s: float, seed: int
) -> SinusoidTrajectory:
    """Amplitude and period at which range, velocity and acceleration limits meet.

    A period ``T`` allows ``A <= min(v_max, pi R / T, a_max T / 2 pi)`` with the range ``R``; the largest ``A`` has ``T`` anywhere between
    ``2 pi A / a_max`` and ``pi R / A``. Each joint takes its own place in that interval.
    """
    spare = 0.98
    span, speed, rate = 2.0 * spare * limits.reach, spare * limits.velocity, spare * limits.acceleration
    with np.errstate(invalid="ignore"):
        fastest = np.minimum(speed, np.sqrt(0.5 * rate * span))  # where pi R / T = a T / 2 pi
    shortest = np.where(np.isfinite(rate), 2.0 * np.pi * fastest / rate, 0.0)
    longest = np.pi * span / fastest
    place = np.random.default_rng(seed).uniform(0.35, 0.9, robot.n_joints)
    period = np.where(shortest > 0.0, shortest ** (1.0 - place) * longest**place, place * longest)
    if np.isfinite(limits.jerk).any():  # A (2 pi / T)^2 <= jerk
        period = np.maximum(period, np.minimum(2.0 * np.pi * np.sqrt(fastest / (spare * limits.jerk)), longest))
        fastest = np.minimum(fastest, spare * limits.jerk * (period / (2.0 * np.pi)) ** 2)
    sign = np.where(np.arange(robot.n_joints) % 2 == 0, 1.0, -1.0)
    amplitude = np.where(moving, sign * fastest, 0.0)
    return SinusoidTrajectory(freeze(amplitude), freeze(period), freeze(limits.centre), float(duration_s))
