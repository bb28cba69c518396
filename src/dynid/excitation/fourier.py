"""Periodic joint motion as finite Fourier series, and the files that hold sampled motion.

With the fundamental ``w = 2 pi / period`` and harmonics ``l = 1 .. L`` joint ``k`` moves as (Swevers and others 1997)

    q_k(t)   = q0_k + sum_l a_kl / (w l) sin(w l t) - b_kl / (w l) cos(w l t)
    dq_k(t)  =        sum_l a_kl cos(w l t) + b_kl sin(w l t)
    ddq_k(t) =        sum_l -a_kl w l sin(w l t) + b_kl w l cos(w l t)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze, matrix
from dynid.errors import InputError
from dynid.excitation.shape import LinearShape, Trajectory, times
from dynid.recording.recording import Recording, write_recording
from dynid.recording.samples import Samples
from dynid.robot.checks import require_limits
from dynid.robot.model import Robot

GRID_PER_HARMONIC = 64
"""Points per period and harmonic on which extremes are looked for."""


@dataclass(frozen=True, eq=False)
class FourierTrajectory(Trajectory):
    """A motion given by the coefficients of a Fourier series.

    Args:
        period_s: period, s.
        a: coefficients of the sines, ``(joints, harmonics)``, rad/s or m/s.
        b: coefficients of the cosines, the same.
        offset: ``(joints,)``, rad or m.

    Examples:
        >>> import dynid
        >>> motion = dynid.FourierTrajectory(2.0, a=[[1.0]], b=[[0.0]], offset=[0.5])
        >>> motion.samples(rate_hz=100.0).position.shape
        (201, 1)
    """

    period_s: float
    a: Array
    b: Array
    offset: Array

    def __post_init__(self) -> None:
        if not (np.isfinite(self.period_s) and self.period_s > 0.0):
            raise InputError(f"period is {self.period_s:g} s, expected a positive number")
        a = matrix("Fourier coefficients a", self.a, (None, None))
        b = matrix("Fourier coefficients b", self.b, a.shape)
        if a.shape[1] == 0:
            raise InputError("Fourier series has 0 harmonics, expected at least 1")
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "b", b)
        object.__setattr__(self, "offset", matrix("Fourier offsets q0", self.offset, (a.shape[0],)))

    @property
    def n_joints(self) -> int:
        """Number of joints."""
        return int(self.a.shape[0])

    @property
    def n_harmonics(self) -> int:
        """Number of harmonics ``L``."""
        return int(self.a.shape[1])

    @property
    def fundamental_rad_s(self) -> float:
        """``w = 2 pi / period``."""
        return 2.0 * np.pi / self.period_s

    @property
    def duration_s(self) -> float:
        """One period."""
        return self.period_s

    def derivative(self, time: ArrayLike, order: int) -> Array:
        """Position or one of its time derivatives, ``(times, joints)``."""
        basis = _series(times(time), self.fundamental_rad_s, self.n_harmonics, order)
        coefficients = np.hstack([self.a, self.b, self.offset[:, None]])
        return np.asarray(basis @ coefficients.T)

    def as_json(self) -> dict[str, Any]:
        """Coefficients as in Swevers's series."""
        return {
            "kind": "fourier",
            "period_s": self.period_s,
            "a": self.a.tolist(),
            "b": self.b.tolist(),
            "q0": self.offset.tolist(),
        }

    def shifted(self, start_s: float) -> FourierTrajectory:
        """The same periodic motion, begun ``start_s`` later."""
        angle = self.fundamental_rad_s * np.arange(1, self.n_harmonics + 1) * start_s
        c, s = np.cos(angle), np.sin(angle)
        return replace(self, a=freeze(c * self.a + s * self.b), b=freeze(c * self.b - s * self.a))

    def scaled(self, factor: ArrayLike) -> FourierTrajectory:
        """Oscillations about the same offset, times one factor or one per joint."""
        factors = np.broadcast_to(np.asarray(factor, dtype=np.float64), (self.n_joints,))[:, None]
        return replace(self, a=self.a * factors, b=self.b * factors)


@dataclass(frozen=True)
class FourierShape(LinearShape):
    """All Fourier series of one period and number of harmonics.

    Args:
        period_s: period, s.
        harmonics: number of harmonics.
        at_rest: start and end every period with zero velocity and acceleration.

    Examples:
        >>> import dynid
        >>> dynid.FourierShape(period_s=10.0, harmonics=3).n_coefficients
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
        return np.asarray(_series(time, 2.0 * np.pi / self.period_s, self.harmonics, order) @ self._free())

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


def _series(t: Array, fundamental: float, harmonics: int, order: int) -> Array:
    """Derivatives of ``sin(w_l t) / w_l``, ``-cos(w_l t) / w_l`` and ``1``, side by side, ``w_l = l w``."""
    w_l = fundamental * np.arange(1, harmonics + 1, dtype=np.float64)
    angle = np.outer(t, w_l) + 0.5 * np.pi * order  # each derivative turns by a quarter and multiplies by w_l
    scale = w_l ** (order - 1)
    constant = np.full((len(t), 1), 1.0 if order == 0 else 0.0)
    return np.hstack([scale * np.sin(angle), -scale * np.cos(angle), constant])


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
        >>> dynid.excitation.random_fourier(dynid.demo_robot(), period_s=5.0).n_joints
        7
    """
    _check_random(robot, harmonics, fraction, at_rest)
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


def write_trajectory(trajectory: Samples, path: str | os.PathLike[str]) -> Path:
    """Write sampled motion as CSV, parquet or npz with the columns ``t, q1.., dq1.., ddq1..``.

    Args:
        trajectory: the samples.
        path: file to write.

    Examples:
        >>> import dynid
        >>> dynid.excitation.write_trajectory(dynid.demo_samples(seconds=2.0), "motion.csv").name
        'motion.csv'
    """
    numbers = tuple(f"joint{k + 1}" for k in range(trajectory.position.shape[1]))
    motion = Recording(
        time=trajectory.time,
        position=trajectory.position,
        joint_names=numbers,
        velocity=trajectory.velocity,
        acceleration=trajectory.acceleration,
    )
    return write_recording(motion, path)


def read_trajectory(path: str | os.PathLike[str], robot: Robot, joints: Sequence[str] | None = None) -> Samples:
    """Motion from a file with the columns ``t, q1..`` and, optionally, ``dq1..`` and ``ddq1..``.

    Derivatives that the file lacks are those of the spline of degree 5 through the highest one it has; a note says so.

    Args:
        path: the file.
        robot: whose joints the columns are.
        joints: the joints that numbered columns belong to, in their order; the motion is that of these joints alone.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot()
        >>> path = dynid.excitation.write_trajectory(dynid.demo_samples(seconds=2.0), "motion.csv")
        >>> dynid.excitation.read_trajectory(path, robot).velocity.shape
        (200, 7)
    """
    from dynid.recording.readers.read import read_recording

    log = read_recording(path, robot, kind="motion", side="joint", joints=joints)  # a motion is that of the joints
    if not isinstance(log, Recording):
        raise InputError(f"trajectory file '{path}' holds {type(log).__name__}, expected joint motion t, q1, ..")
    velocity, acceleration = log.velocity, log.acceleration
    notes = list(log.source.notes)
    if velocity is None:
        velocity = _spline_derivative(log.time, log.position, str(path))
        notes.append("velocity is the derivative of a spline through the positions")
    if acceleration is None:
        acceleration = _spline_derivative(log.time, velocity, str(path))
        notes.append("acceleration is the derivative of a spline through the velocities")
    return Samples(log.time, log.position, velocity, acceleration, notes=tuple(notes))


def _check_random(robot: Robot, harmonics: int, fraction: float, at_rest: bool) -> None:
    if robot.floating:
        raise InputError(f"robot '{robot.name}' floats; a Fourier motion is defined for driven joints only")
    if harmonics < (2 if at_rest else 1):
        raise InputError(f"{harmonics} harmonics asked for, expected at least {2 if at_rest else 1}")
    if not 0.0 < fraction <= 1.0:
        raise InputError(f"fraction of the limits is {fraction:g}, expected a number in (0, 1]")
    require_limits(robot, ("position", "velocity"))


def _grid(trajectory: FourierTrajectory) -> Array:
    n = GRID_PER_HARMONIC * trajectory.n_harmonics
    return np.linspace(0.0, trajectory.period_s, n, endpoint=False)


def _extremes(trajectory: FourierTrajectory) -> tuple[Array, Array, Array, Array]:
    """Bounds of lowest and highest position and of largest speed and acceleration over all times.

    Ehlich and Zeller: between ``N`` points per period a trigonometric polynomial of degree ``L`` exceeds its largest
    value on them by at most ``1 / cos(pi L / N)``.
    """
    q, dq, ddq = trajectory.evaluate(_grid(trajectory))
    beyond = 1.0 / np.cos(np.pi / GRID_PER_HARMONIC)
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
    from dynid.regression.torque import inverse_dynamics

    limit = robot.limits("tau_max")
    if not np.isfinite(limit).any():
        return trajectory
    for _ in range(60):
        excess = np.abs(inverse_dynamics(robot, *trajectory.evaluate(_grid(trajectory)))).max(axis=0) / limit
        if excess.max() <= 1.0:
            return trajectory
        trajectory = trajectory.scaled(0.9)
    worst = int(np.argmax(excess))
    raise InputError(
        f"joint '{robot.moving_joints[worst].name}' needs {excess[worst] * limit[worst]:.4g} of torque near "
        f"q = {trajectory.offset[worst]:.3g} even when it hardly moves, its limit is "
        f"{limit[worst]:.4g}; try another seed"
    )


def _spline_derivative(time: Array, values: Array, where: str) -> Array:
    from scipy.interpolate import make_interp_spline

    if len(time) < 6:
        raise InputError(f"trajectory file '{where}' has {len(time)} rows, expected at least 6 to differentiate it")
    derivative: Array = make_interp_spline(time, values, k=5).derivative()(time)
    return derivative
