"""What a motion is, and what a family of motions is that a design can choose from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_finite, check_shape, freeze
from dynid.errors import InputError
from dynid.recording.samples import Samples

SAME_POSE = 1e-6
"""Poses nearer than this, rad or m, are one."""

MOST_SAMPLES = 10_000_000
"""Rows that a sampled motion may have: nearly three hours at 1000 Hz."""


class Trajectory(ABC):
    """Base class of motions: joint positions as a function of time, from zero to ``duration_s``.

    Examples:
        >>> import dynid
        >>> motion = dynid.excitation.random_fourier(dynid.demo_robot(), period_s=5.0)
        >>> isinstance(motion, dynid.excitation.Trajectory), motion.jerk([0.0, 1.0]).shape
        (True, (2, 7))
    """

    @property
    @abstractmethod
    def n_joints(self) -> int:
        """Number of joints."""

    @property
    @abstractmethod
    def duration_s(self) -> float:
        """How long the motion lasts; one period where it repeats."""

    @abstractmethod
    def derivative(self, time: ArrayLike, order: int) -> Array:
        """Position (order 0) or its time derivative of order 1, 2 or 3, ``(times, joints)``."""

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """What is needed to make the same motion again."""

    def evaluate(self, time: ArrayLike) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at the given times, ``(times, joints)`` each."""
        t = times(time)
        return self.derivative(t, 0), self.derivative(t, 1), self.derivative(t, 2)

    def jerk(self, time: ArrayLike) -> Array:
        """Third derivative at the given times."""
        return self.derivative(time, 3)

    @property
    def at_rest(self) -> bool:
        """Whether it starts and ends without speed and acceleration."""
        _, v, a = self.evaluate([0.0, self.duration_s])
        return bool(max(np.abs(v).max(), np.abs(a).max()) < 1e-8)

    @property
    def closed(self) -> bool:
        """Whether it ends in the pose in which it starts."""
        start, end = self.derivative([0.0, self.duration_s], 0)
        return bool(np.abs(end - start).max() < SAME_POSE)

    @property
    def point_times_s(self) -> Array | None:
        """When the motion passes the points for which it was designed; None where it was not designed through points."""
        return None

    def grid(self, n: int) -> Array:
        """``n + 1`` times from start to end."""
        return np.linspace(0.0, self.duration_s, n + 1)

    def samples(self, rate_hz: float, periods: float = 1.0) -> Samples:
        """The motion sampled from time zero to its end, ``periods`` times over where it repeats."""
        if not (np.isfinite(rate_hz) and rate_hz > 0.0 and np.isfinite(periods) and periods > 0.0):
            raise InputError(f"cannot sample {periods:g} periods at {rate_hz:g} Hz, expected positive numbers")
        check_n_samples(periods * self.duration_s, rate_hz)
        n = round(periods * self.duration_s * rate_hz)
        if n < 1:
            raise InputError(f"{periods:g} periods of {self.duration_s:g} s hold no sample at {rate_hz:g} Hz")
        time = np.arange(n + 1) / rate_hz
        return Samples(time, *self.evaluate(time))


class LinearShape(ABC):
    """Base class of families of motions that are linear in their coefficients, the same functions of time for every joint.

    ``q_j(t) = sum_k x_jk B_k(t)``, so limits on position, velocity, acceleration and jerk are linear in ``x`` at every time.

    Examples:
        >>> import dynid
        >>> isinstance(dynid.FourierShape(), dynid.excitation.LinearShape)
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
class SequenceTrajectory(Trajectory):
    """Motions one after another; each begins where the one before it ends."""

    pieces: tuple[Trajectory, ...]

    def __post_init__(self) -> None:
        if not self.pieces:
            raise InputError("a sequence of 0 motions was asked for, expected at least 1")
        for before, after in zip(self.pieces[:-1], self.pieces[1:], strict=True):
            gap = np.abs(before.derivative(before.duration_s, 0) - after.derivative(0.0, 0)).max()
            if gap > SAME_POSE:
                raise InputError(f"motions of a sequence do not meet: they are {gap:.3g} rad or m apart")

    @property
    def n_joints(self) -> int:
        return self.pieces[0].n_joints

    @property
    def starts_s(self) -> Array:
        """When each piece begins, and when the last one ends."""
        return freeze(np.concatenate([[0.0], np.cumsum([piece.duration_s for piece in self.pieces])]))

    @property
    def duration_s(self) -> float:
        return float(self.starts_s[-1])

    def derivative(self, time: ArrayLike, order: int) -> Array:
        t, starts = times(time), self.starts_s
        place = np.clip(np.searchsorted(starts, t, side="right") - 1, 0, len(self.pieces) - 1)
        out = np.empty((len(t), self.n_joints))
        for i, piece in enumerate(self.pieces):
            mine = place == i
            if mine.any():
                out[mine] = piece.derivative(t[mine] - starts[i], order)
        return out

    @property
    def point_times_s(self) -> Array | None:
        found = [
            start + piece.point_times_s
            for start, piece in zip(self.starts_s, self.pieces, strict=False)
            if piece.point_times_s is not None
        ]
        return freeze(np.concatenate(found)) if found else None

    def once(self) -> tuple[SequenceTrajectory, Array]:
        """Every piece that repeats played once, and when each of its pieces first begins in the whole."""
        first: dict[int, int] = {}
        for i, piece in enumerate(self.pieces):
            first.setdefault(id(piece), i)
        places = list(first.values())
        return SequenceTrajectory(tuple(self.pieces[i] for i in places)), freeze(self.starts_s[places])

    def as_json(self) -> dict[str, Any]:
        return {"kind": "sequence", "pieces": [piece.as_json() for piece in self.pieces]}


@dataclass(frozen=True, eq=False)
class QuinticTrajectory(Trajectory):
    """Polynomials of degree 5 per joint, ``q = sum_k coefficients[j, k] t^k``."""

    length_s: float
    coefficients: Array

    def __post_init__(self) -> None:
        if not (np.isfinite(self.length_s) and self.length_s > 0.0):
            raise InputError(f"a polynomial motion lasts {self.length_s:g} s, expected a positive time")
        coefficients = freeze(self.coefficients)
        check_shape("polynomial coefficients", coefficients, (None, 6))
        check_finite("polynomial coefficients", coefficients)
        object.__setattr__(self, "coefficients", coefficients)

    @classmethod
    def between(
        cls, length_s: float, start: tuple[Array, Array, Array], end: tuple[Array, Array, Array]
    ) -> QuinticTrajectory:
        """Through position, velocity and acceleration at both ends."""
        T = length_s
        (q0, v0, a0), (q1, v1, a1) = start, end
        dq = q1 - q0 - T * v0 - 0.5 * T**2 * a0
        dv = T * (v1 - v0) - T**2 * a0
        da = T**2 * (a1 - a0)
        c3, c4, c5 = 10.0 * dq - 4.0 * dv + 0.5 * da, -15.0 * dq + 7.0 * dv - da, 6.0 * dq - 3.0 * dv + 0.5 * da
        return cls(T, np.column_stack([q0, v0, 0.5 * a0, c3 / T**3, c4 / T**4, c5 / T**5]))

    @property
    def n_joints(self) -> int:
        return int(self.coefficients.shape[0])

    @property
    def duration_s(self) -> float:
        return self.length_s

    def derivative(self, time: ArrayLike, order: int) -> Array:
        t = times(time)
        return np.asarray(_powers(t, order) @ self.coefficients.T)

    def as_json(self) -> dict[str, Any]:
        return {"kind": "quintic", "duration_s": self.length_s, "coefficients": self.coefficients.tolist()}


@dataclass(frozen=True)
class SlowedTrajectory(Trajectory):
    """The same path at a share of its speed: velocities go with it, accelerations with its square."""

    motion: Trajectory
    speed: float

    def __post_init__(self) -> None:
        if not 0.0 < self.speed <= 1.0:
            raise InputError(f"a motion is to be played at {self.speed:g} times its speed, expected a number in (0, 1]")

    @property
    def n_joints(self) -> int:
        return self.motion.n_joints

    @property
    def duration_s(self) -> float:
        return self.motion.duration_s / self.speed

    @property
    def point_times_s(self) -> Array | None:
        times_s = self.motion.point_times_s
        return None if times_s is None else freeze(times_s / self.speed)

    def derivative(self, time: ArrayLike, order: int) -> Array:
        return self.speed**order * self.motion.derivative(times(time) * self.speed, order)

    def as_json(self) -> dict[str, Any]:
        return {"kind": "slowed", "speed": self.speed, "motion": self.motion.as_json()}


def check_n_samples(duration_s: float, rate_hz: float) -> None:
    """Refuse a rate that is no rate, or at which a motion has more rows than anything can take."""
    if not (np.isfinite(rate_hz) and rate_hz > 0.0):
        raise InputError(f"rate is {rate_hz:g} Hz, expected a positive number")
    if duration_s * rate_hz > MOST_SAMPLES:
        raise InputError(
            f"{duration_s:.4g} s of motion at {rate_hz:g} Hz are {duration_s * rate_hz:.4g} samples, at most {MOST_SAMPLES:,} are "
            "written; choose a lower rate or a shorter motion"
        )


def times(time: ArrayLike) -> Array:
    """Times as a vector of finite numbers."""
    t = np.atleast_1d(np.asarray(time, dtype=np.float64))
    check_shape("time", t, (None,))
    check_finite("time", t)
    return t


def _powers(t: Array, order: int) -> Array:
    """``d^order t^k / dt^order`` for ``k = 0 .. 5``."""
    out = np.zeros((len(t), 6))
    for k in range(order, 6):
        factor = np.prod(np.arange(k - order + 1, k + 1)) if order else 1.0
        out[:, k] = factor * t ** (k - order)
    return out
