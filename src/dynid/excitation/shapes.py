"""Families of motions that a design can choose from, linear in their coefficients; and random motions within limits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.excitation.trajectories import DEGREE, FourierTrajectory, PolynomialTrajectory, Trajectory, fourier_series
from dynid.io.robots.description import require_limits
from dynid.model.robot import Robot

GRID_PER_HARMONIC = 64
"""Points per period and harmonic on which extremes are looked for."""


class LinearShape(ABC):
    """Base class of families of motions that are linear in their coefficients, the same functions of time for every joint.

    ``q_j(t) = sum_k x_jk B_k(t)``, so limits on position, velocity, acceleration and jerk are linear in ``x`` at every time.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.shapes import FourierShape, LinearShape
        >>> isinstance(FourierShape(), LinearShape)
        True
    """

    @property
    @abstractmethod
    def duration_s(self) -> float:
        """How long the motion lasts."""

    @property
    @abstractmethod
    def n_coefficients(self) -> int:
        """Coefficients per joint."""

    @abstractmethod
    def basis(self, time: Array, order: int) -> Array:
        """``d^order B_k / dt^order``, ``(times, coefficients)``."""

    @abstractmethod
    def trajectory(self, coefficients: Array) -> Trajectory:
        """The motion with these coefficients, ``(joints, coefficients)``."""

    @abstractmethod
    def still(self) -> Array:
        """Coefficients of a joint that stays at one."""

    @abstractmethod
    def design_times(self, fineness: float) -> Array:
        """Times on which the regressor is sampled; at fineness one just enough to tell good motions from bad."""

    @abstractmethod
    def limit_times(self) -> tuple[Array, float]:
        """Times on which limits are held, and by which factor a motion may exceed its largest value there in between."""

    @abstractmethod
    def random(self, rng: np.random.Generator, n_joints: int) -> Array:
        """Coefficients of a random motion about zero of any size, ``(joints, coefficients)``."""


@dataclass(frozen=True)
class FourierShape(LinearShape):
    """All Fourier series of one period and number of harmonics.

    Args:
        period_s: period, s.
        harmonics: number of harmonics.
        at_rest: start and end every period with zero velocity and acceleration.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.shapes import FourierShape
        >>> FourierShape(period_s=10.0, harmonics=3).n_coefficients
        7
    """

    period_s: float = 20.0
    harmonics: int = 5
    at_rest: bool = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.period_s) and self.period_s > 0.0):
            raise InputError(f"period is {self.period_s:g} s, expected a positive number")
        if self.harmonics < (2 if self.at_rest else 1):
            raise InputError(f"{self.harmonics} harmonics asked for, expected at least {2 if self.at_rest else 1}")

    @property
    def duration_s(self) -> float:
        return self.period_s

    @property
    def n_coefficients(self) -> int:
        return int(self._free().shape[1])

    def basis(self, time: Array, order: int) -> Array:
        return np.asarray(fourier_series(time, 2.0 * np.pi / self.period_s, self.harmonics, order) @ self._free())

    def trajectory(self, coefficients: Array) -> FourierTrajectory:
        full = coefficients @ self._free().T
        L = self.harmonics
        return FourierTrajectory(self.period_s, full[:, :L], full[:, L : 2 * L], full[:, -1])

    def still(self) -> Array:
        return np.asarray(np.eye(self.n_coefficients)[-1], dtype=np.float64)

    def design_times(self, fineness: float) -> Array:
        n = round(20 * fineness * self.harmonics)
        return np.linspace(0.0, self.period_s, n, endpoint=False)

    def limit_times(self) -> tuple[Array, float]:
        """Ehlich and Zeller: between ``N`` points a trigonometric polynomial of degree ``L`` grows by ``1 / cos(pi L / N)``."""
        n = GRID_PER_HARMONIC * self.harmonics
        return np.linspace(0.0, self.period_s, n, endpoint=False), float(1.0 / np.cos(np.pi / GRID_PER_HARMONIC))

    def random(self, rng: np.random.Generator, n_joints: int) -> Array:
        coefficients = rng.normal(size=(n_joints, self.n_coefficients))
        coefficients[:, -1] = 0.0
        return coefficients

    def _free(self) -> Array:
        """Coefficients ``(a, b, q0)`` in terms of the free ones."""
        L = self.harmonics
        if not self.at_rest:
            return np.eye(2 * L + 1)
        rest = np.zeros((2, 2 * L + 1))  # dq(0) = sum_l a_l and ddq(0) = w sum_l l b_l vanish
        rest[0, :L] = 1.0
        rest[1, L : 2 * L] = np.arange(1, L + 1)
        _, _, rows = np.linalg.svd(rest[:, : 2 * L])
        free = np.zeros((2 * L + 1, 2 * L - 1))
        free[: 2 * L, : 2 * L - 2] = rows[2:].T
        free[-1, -1] = 1.0
        return free


@dataclass(frozen=True)
class BSplineShape(LinearShape):
    """All rest-to-rest splines of degree 5 with one length and number of knot intervals.

    ``q_j(t) = sum_k c_jk B_k(t)`` with B-splines of degree 5 on equal knot intervals, clamped at both ends. The first three control
    points are equal, and so are the last three: velocity and acceleration vanish at the ends. Coefficients have a place in time, so a
    limit touched at one moment does not hold back the rest of the motion.

    Args:
        length_s: length of the motion, s.
        intervals: number of knot intervals.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.shapes import BSplineShape
        >>> BSplineShape(length_s=10.0, intervals=8).duration_s
        10.0
    """

    length_s: float = 20.0
    intervals: int = 12

    def __post_init__(self) -> None:
        if not (np.isfinite(self.length_s) and self.length_s > 0.0):
            raise InputError(f"a spline lasts {self.length_s:g} s, expected a positive time")
        if self.intervals < 3:
            raise InputError(f"a spline has {self.intervals} intervals, expected at least 3")

    @property
    def duration_s(self) -> float:
        return self.length_s

    @property
    def n_control(self) -> int:
        """Control points per joint, of which three at each end are one."""
        return self.intervals + DEGREE

    @property
    def n_coefficients(self) -> int:
        return self.n_control - 4

    def basis(self, time: Array, order: int) -> Array:
        inside = np.clip(time, 0.0, self.length_s)
        spline = self._spline(np.eye(self.n_control))
        return np.asarray((spline.derivative(order) if order else spline)(inside) @ self._free(), dtype=np.float64)

    def trajectory(self, coefficients: Array) -> PolynomialTrajectory:
        return PolynomialTrajectory.of_spline(self._spline(self._free() @ np.asarray(coefficients).T))

    def still(self) -> Array:
        return np.ones(self.n_coefficients)

    def design_times(self, fineness: float) -> Array:
        return np.linspace(0.0, self.length_s, round(10 * fineness * self.intervals))

    def limit_times(self) -> tuple[Array, float]:
        """Twenty times per interval: between them a polynomial of degree 5 hardly rises; a design is proven afterwards."""
        return np.linspace(0.0, self.length_s, 20 * self.intervals + 1), 1.004

    def random(self, rng: np.random.Generator, n_joints: int) -> Array:
        return rng.normal(size=(n_joints, self.n_coefficients))

    def _free(self) -> Array:
        """All control points in terms of the free ones."""
        place = np.clip(np.arange(self.n_control) - 2, 0, self.n_coefficients - 1)
        return np.asarray(np.eye(self.n_coefficients)[place], dtype=np.float64)

    def _spline(self, control: Array) -> Any:
        """The clamped spline of these control points, ``(points, joints)``."""
        from scipy.interpolate import BSpline

        inner = np.linspace(0.0, self.length_s, self.intervals + 1)
        return BSpline(np.concatenate([np.zeros(DEGREE), inner, np.full(DEGREE, self.length_s)]), control, DEGREE)


def random_fourier(
    robot: Robot,
    period_s: float = 10.0,
    harmonics: int = 5,
    seed: int = 0,
    *,
    fraction: float = 0.95,
    at_rest: bool = False,
) -> FourierTrajectory:
    """A random Fourier series that uses up to a fraction of the robot's position, velocity and acceleration limits.

    Coefficients are normal; each joint is then scaled until its range, velocity or acceleration limit is met, and placed at
    random in what is left of its range. Where the robot states torque limits, all oscillations shrink together until inverse
    dynamics with the robot's own parameters stays inside them. Self-collision is not checked.

    Args:
        robot: with its limits.
        period_s: period, s.
        harmonics: number of harmonics.
        seed: of the random coefficients.
        fraction: fraction of the limits that may be used.
        at_rest: start and end every period with zero velocity and acceleration.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.shapes import random_fourier
        >>> random_fourier(dynid.demo_robot(), period_s=5.0).n_joints
        7
    """
    if robot.floating:
        raise InputError(f"robot '{robot.name}' floats; a Fourier motion is defined for driven joints only")
    if harmonics < (2 if at_rest else 1):
        raise InputError(f"{harmonics} harmonics asked for, expected at least {2 if at_rest else 1}")
    if not 0.0 < fraction <= 1.0:
        raise InputError(f"fraction of the limits is {fraction:g}, expected a number in (0, 1]")
    require_limits(robot, ("position", "velocity"))
    rng = np.random.default_rng(seed)
    n = robot.n_joints
    a, b = rng.normal(size=(2, n, harmonics))
    if at_rest:  # dq(0) = sum_l a_l and ddq(0) = w sum_l l b_l vanish
        order = np.arange(1, harmonics + 1, dtype=np.float64)
        a -= a.mean(axis=1, keepdims=True)
        b -= np.outer(b @ order, order) / (order @ order)
    shape = FourierTrajectory(period_s, a, b, np.zeros(n))
    low, high = robot.position_limits.T
    # a joint without position limits moves within one turn
    low, high = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
    middle, reach = 0.5 * (low + high), 0.5 * fraction * (high - low)
    lowest, highest, speed, rate = _extremes(shape)
    with np.errstate(divide="ignore"):
        factor = np.min(
            [
                2.0 * reach / (highest - lowest),
                fraction * robot.limits("dq_max") / speed,
                fraction * robot.limits("ddq_max") / rate,
            ],
            axis=0,
        )
    room = reach - 0.5 * factor * (highest - lowest)
    offset = middle - 0.5 * factor * (highest + lowest) + rng.uniform(-1.0, 1.0, n) * room
    trajectory = replace(shape.scaled(factor), offset=freeze(offset))
    return _within_torque(robot, trajectory)


def _extremes(trajectory: FourierTrajectory) -> tuple[Array, Array, Array, Array]:
    """Bounds of lowest and highest position and of largest speed and acceleration over all times."""
    times, beyond = FourierShape(trajectory.duration_s, trajectory.n_harmonics).limit_times()
    q, dq, ddq = trajectory.evaluate(times)
    swing = np.abs(q - trajectory.offset).max(axis=0)
    slack = (beyond - 1.0) * swing
    return (
        q.min(axis=0) - slack,
        q.max(axis=0) + slack,
        beyond * np.abs(dq).max(axis=0),
        beyond * np.abs(ddq).max(axis=0),
    )


def _within_torque(robot: Robot, trajectory: FourierTrajectory) -> FourierTrajectory:
    """Shrink all oscillations about their offset until torque limits hold on the grid."""
    limit = robot.limits("tau_max")
    if not np.isfinite(limit).any():
        return trajectory
    times, _ = FourierShape(trajectory.duration_s, trajectory.n_harmonics).limit_times()
    for _ in range(60):
        excess = np.abs(inverse_dynamics(robot, *trajectory.evaluate(times))).max(axis=0) / limit
        if excess.max() <= 1.0:
            return trajectory
        trajectory = trajectory.scaled(0.9)
    worst = int(np.argmax(excess))
    raise InputError(
        f"joint '{robot.moving_joints[worst].name}' needs {excess[worst] * limit[worst]:.4g} of torque near "
        f"q = {trajectory.offset[worst]:.3g} even when it hardly moves, its limit is "
        f"{limit[worst]:.4g}; try another seed"
    )
