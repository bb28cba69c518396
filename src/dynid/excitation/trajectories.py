"""Motions of joints over time: Fourier series, piecewise polynomials of degree 5, and motions one after another.

With the fundamental ``w = 2 pi / period`` and harmonics ``l = 1 .. L`` joint ``k`` of a Fourier series moves as (Swevers and others 1997)

    q_k(t)   = q0_k + sum_l a_kl / (w l) sin(w l t) - b_kl / (w l) cos(w l t)
    dq_k(t)  =        sum_l a_kl cos(w l t) + b_kl sin(w l t)
    ddq_k(t) =        sum_l -a_kl w l sin(w l t) + b_kl w l cos(w l t)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_finite, check_shape, freeze, matrix
from dynid.errors import InputError
from dynid.signals.samples import Samples

SAME_POSE = 1e-6
"""Poses nearer than this, rad or m, are one."""

MOST_SAMPLES = 10_000_000
"""Rows that a sampled motion may have: nearly three hours at 1000 Hz."""

DEGREE = 5
"""Of the polynomials of a piecewise motion."""


class Trajectory(ABC):
    """Base class of motions: joint positions as a function of time, from zero to ``duration_s``.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.shapes import random_fourier
        >>> from dynid.excitation.trajectories import Trajectory
        >>> motion = random_fourier(dynid.demo_robot(), period_s=5.0)
        >>> isinstance(motion, Trajectory), motion.derivative([0.0, 1.0], order=3).shape
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
    def slowed(self, share: float) -> Trajectory:
        """The same path at a share of its speed: velocities go with it, accelerations with its square."""

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """What is needed to make the same motion again."""

    def evaluate(self, time: ArrayLike) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at the given times, ``(times, joints)`` each."""
        t = as_times(time)
        return self.derivative(t, 0), self.derivative(t, 1), self.derivative(t, 2)

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
    def periodic(self) -> bool:
        """Whether it goes on smoothly from its end to its start, so that it can be begun anywhere."""
        return False

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


@dataclass(frozen=True, eq=False)
class FourierTrajectory(Trajectory):
    """A motion given by the coefficients of a Fourier series.

    Args:
        period_s: period, s, one for all joints or one per joint.
        a: coefficients of the sines, ``(joints, harmonics)``, rad/s or m/s.
        b: coefficients of the cosines, the same.
        offset: ``(joints,)``, rad or m.
        length_s: length of the motion, s; None for one period, which must then be the same for all joints.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.trajectories import FourierTrajectory
        >>> motion = FourierTrajectory(2.0, a=[[1.0]], b=[[0.0]], offset=[0.5])
        >>> motion.samples(rate_hz=100.0).position.shape
        (201, 1)
    """

    period_s: float | Array
    a: Array
    b: Array
    offset: Array
    length_s: float | None = None

    def __post_init__(self) -> None:
        a = matrix("Fourier coefficients a", self.a, (None, None))
        b = matrix("Fourier coefficients b", self.b, a.shape)
        if a.shape[1] == 0:
            raise InputError("Fourier series has 0 harmonics, expected at least 1")
        period = np.asarray(self.period_s, dtype=np.float64)
        if period.shape not in ((), (len(a),)):
            raise InputError(
                f"{period.size} periods were given for a motion of {len(a)} joints, expected one, or one per joint"
            )
        if not (np.isfinite(period).all() and (period > 0.0).all()):
            raise InputError(f"a period is {period.min():g} s, expected positive numbers")
        if self.length_s is None and period.ndim:
            raise InputError("joints have periods of their own, expected the length of the motion as well")
        if self.length_s is not None and not (np.isfinite(self.length_s) and self.length_s > 0.0):
            raise InputError(f"the motion lasts {self.length_s:g} s, expected a positive time")
        object.__setattr__(self, "period_s", freeze(period) if period.ndim else float(period))
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
    def fundamental_rad_s(self) -> Array:
        """``w = 2 pi / period`` of every joint."""
        return np.broadcast_to(2.0 * np.pi / np.asarray(self.period_s), (self.n_joints,))

    @property
    def duration_s(self) -> float:
        """One period, or the length of the motion where it was given."""
        return float(self.period_s) if self.length_s is None else self.length_s

    @property
    def periodic(self) -> bool:
        return self.length_s is None

    def derivative(self, time: ArrayLike, order: int) -> Array:
        """Position or one of its time derivatives, ``(times, joints)``."""
        t, L = as_times(time), self.n_harmonics
        if np.ndim(self.period_s) == 0:
            basis = fourier_series(t, float(self.fundamental_rad_s[0]), L, order)
            return np.asarray(basis @ np.hstack([self.a, self.b, self.offset[:, None]]).T)
        w_l = np.outer(self.fundamental_rad_s, np.arange(1, L + 1))
        angle = t[:, None, None] * w_l + 0.5 * np.pi * order
        # the cosine as a sine a quarter back: its speed is exactly zero where it turns at time zero
        wave = w_l ** (order - 1) * (self.a * np.sin(angle) + self.b * np.sin(angle - 0.5 * np.pi))
        return np.asarray(wave.sum(axis=2) + (self.offset if order == 0 else 0.0))

    def as_json(self) -> dict[str, Any]:
        """Coefficients as in Swevers's series."""
        return {
            "kind": "fourier",
            "period_s": np.asarray(self.period_s).tolist(),
            **({} if self.length_s is None else {"duration_s": self.length_s}),
            "a": self.a.tolist(),
            "b": self.b.tolist(),
            "q0": self.offset.tolist(),
        }

    def shifted(self, start_s: float) -> FourierTrajectory:
        """The same periodic motion, begun ``start_s`` later."""
        angle = np.outer(self.fundamental_rad_s, np.arange(1, self.n_harmonics + 1)) * start_s
        c, s = np.cos(angle), np.sin(angle)
        return replace(self, a=freeze(c * self.a + s * self.b), b=freeze(c * self.b - s * self.a))

    def scaled(self, factor: ArrayLike) -> FourierTrajectory:
        """Oscillations about the same offset, times one factor or one per joint."""
        factors = np.broadcast_to(np.asarray(factor, dtype=np.float64), (self.n_joints,))[:, None]
        return replace(self, a=self.a * factors, b=self.b * factors)

    def slowed(self, share: float) -> FourierTrajectory:
        _check_speed(share)
        length = None if self.length_s is None else self.length_s / share
        return replace(self, period_s=self.period_s / share, a=share * self.a, b=share * self.b, length_s=length)


def fourier_series(t: Array, fundamental: float, harmonics: int, order: int) -> Array:
    """Derivatives of ``sin(w_l t) / w_l``, ``-cos(w_l t) / w_l`` and ``1``, side by side, ``w_l = l w``."""
    w_l = fundamental * np.arange(1, harmonics + 1, dtype=np.float64)
    angle = np.outer(t, w_l) + 0.5 * np.pi * order  # each derivative turns by a quarter and multiplies by w_l
    scale = w_l ** (order - 1)
    constant = np.full((len(t), 1), 1.0 if order == 0 else 0.0)
    return np.hstack([scale * np.sin(angle), -scale * np.cos(angle), constant])


@dataclass(frozen=True, eq=False)
class PolynomialTrajectory(Trajectory):
    """Polynomials of degree 5 one after another: ``q_j = sum_k coefficients[i, j, k] (t - breaks_s[i])^k`` in piece ``i``.

    Args:
        breaks_s: when each piece begins, and when the last one ends, s; the first is zero.
        coefficients: ``(pieces, joints, 6)``.
        points_s: when the motion passes the points for which it was designed, if it was.

    Examples:
        >>> from dynid.excitation.trajectories import PolynomialTrajectory
        >>> motion = PolynomialTrajectory.through([0.0, 1.0], position=[[0.0], [1.0]], velocity=[[0.0], [0.0]])
        >>> motion.derivative(0.5, 0).round(3).tolist()
        [[0.5]]
    """

    breaks_s: Array
    coefficients: Array
    points_s: Array | None = None

    def __post_init__(self) -> None:
        breaks = matrix("times of the pieces", self.breaks_s, (None,))
        if len(breaks) < 2 or breaks[0] != 0.0 or not (np.diff(breaks) > 0.0).all():
            raise InputError(f"times of {len(breaks)} points do not rise from zero, expected at least 2 that do")
        coefficients = freeze(self.coefficients)
        check_shape("polynomial coefficients", coefficients, (len(breaks) - 1, None, DEGREE + 1))
        check_finite("polynomial coefficients", coefficients)
        object.__setattr__(self, "breaks_s", breaks)
        object.__setattr__(self, "coefficients", coefficients)
        if self.points_s is not None:
            object.__setattr__(self, "points_s", matrix("times of the points", self.points_s, (None,)))

    @classmethod
    def between(
        cls, length_s: float, start: tuple[Array, Array, Array], end: tuple[Array, Array, Array]
    ) -> PolynomialTrajectory:
        """One piece through position, velocity and acceleration at both ends."""
        return cls.through([0.0, length_s], *(np.stack(pair) for pair in zip(start, end, strict=True)))

    @classmethod
    def through(
        cls, times_s: ArrayLike, position: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike | None = None
    ) -> PolynomialTrajectory:
        """Through states ``(points, joints)``.

        Without accelerations there is none at the points, which are those of a design; points at rest at both ends are none of it.
        """
        times = matrix("times of the points", times_s, (None,))
        q = matrix("positions of the points", position, (len(times), None))
        v = matrix("velocities of the points", velocity, q.shape)
        a = np.zeros_like(q) if acceleration is None else matrix("accelerations of the points", acceleration, q.shape)
        if len(times) < 2 or not (np.diff(times) > 0.0).all():
            raise InputError(f"times of {len(times)} points do not rise from zero, expected at least 2 that do")
        u = np.diff(times)[:, None]
        c3, c4, c5 = quintic_terms(q[:-1], q[1:], v[:-1], v[1:], u, a[:-1], a[1:])
        terms = (q[:-1], v[:-1], 0.5 * a[:-1], c3 / u**3, c4 / u**4, c5 / u**5)
        moving = np.asarray(v.any(axis=1))
        points = times[0 if moving[0] else 1 : len(times) - (0 if moving[-1] else 1)]
        return cls(times, np.stack(terms, axis=2), points if acceleration is None else None)

    @classmethod
    def of_spline(cls, spline: Any) -> PolynomialTrajectory:
        """The pieces between the knots of a SciPy B-spline of degree 5 that begins at zero and ends at its last knot."""
        breaks = np.unique(spline.t)
        terms = [spline(breaks[:-1], nu=k) / float(np.prod(np.arange(1, k + 1))) for k in range(DEGREE + 1)]
        return cls(breaks, np.stack(terms, axis=2))

    @property
    def n_joints(self) -> int:
        return int(self.coefficients.shape[1])

    @property
    def duration_s(self) -> float:
        return float(self.breaks_s[-1])

    @property
    def point_times_s(self) -> Array | None:
        return self.points_s

    def derivative(self, time: ArrayLike, order: int) -> Array:
        t = as_times(time)
        piece = np.clip(np.searchsorted(self.breaks_s, t, side="right") - 1, 0, len(self.coefficients) - 1)
        u = (t - self.breaks_s[piece])[:, None]
        out = np.zeros((len(t), self.n_joints))
        for k in range(DEGREE, order - 1, -1):
            out = out * u + float(np.prod(np.arange(k - order + 1, k + 1))) * self.coefficients[piece, :, k]
        return out

    def scaled(self, share: float, about: Array) -> PolynomialTrajectory:
        """Excursions from a pose times a share."""
        smaller = share * self.coefficients
        smaller[:, :, 0] += (1.0 - share) * about
        return replace(self, coefficients=freeze(smaller))

    def slowed(self, share: float) -> PolynomialTrajectory:
        _check_speed(share)
        points = None if self.points_s is None else self.points_s / share
        return PolynomialTrajectory(self.breaks_s / share, self.coefficients * share ** np.arange(DEGREE + 1), points)

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": "polynomial",
            "breaks_s": self.breaks_s.tolist(),
            "coefficients": self.coefficients.tolist(),
            "points_s": None if self.points_s is None else self.points_s.tolist(),
        }


def quintic_terms(
    start: Array, end: Array, v_start: Array, v_end: Array, u: Array, a_start: ArrayLike = 0.0, a_end: ArrayLike = 0.0
) -> tuple[Array, Array, Array]:
    """Coefficients of ``s^3, s^4, s^5``, ``s`` from 0 to 1 in the time ``u``; without accelerations at the ends Gautier's (28)."""
    A, b, c = end - start, u**2 * np.asarray(a_start), u**2 * np.asarray(a_end)
    return (
        10.0 * A - (6.0 * v_start + 4.0 * v_end) * u - 1.5 * b + 0.5 * c,
        -15.0 * A + (8.0 * v_start + 7.0 * v_end) * u + 1.5 * b - c,
        6.0 * A - 3.0 * (v_start + v_end) * u - 0.5 * (b - c),
    )


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
        t, starts = as_times(time), self.starts_s
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

    def slowed(self, share: float) -> SequenceTrajectory:
        return SequenceTrajectory(tuple(piece.slowed(share) for piece in self.pieces))

    def as_json(self) -> dict[str, Any]:
        return {"kind": "sequence", "pieces": [piece.as_json() for piece in self.pieces]}


def check_n_samples(duration_s: float, rate_hz: float) -> None:
    """Refuse a rate that is no rate, or at which a motion has more rows than anything can take."""
    if not (np.isfinite(rate_hz) and rate_hz > 0.0):
        raise InputError(f"rate is {rate_hz:g} Hz, expected a positive number")
    if duration_s * rate_hz > MOST_SAMPLES:
        raise InputError(
            f"{duration_s:.4g} s of motion at {rate_hz:g} Hz are {duration_s * rate_hz:.4g} samples, at most {MOST_SAMPLES:,} are "
            "written; choose a lower rate or a shorter motion"
        )


def as_times(time: ArrayLike) -> Array:
    """Times as a vector of finite numbers."""
    t = np.atleast_1d(np.asarray(time, dtype=np.float64))
    check_shape("time", t, (None,))
    check_finite("time", t)
    return t


def _check_speed(share: float) -> None:
    if not 0.0 < share <= 1.0:
        raise InputError(f"a motion is to be played at {share:g} times its speed, expected a number in (0, 1]")
