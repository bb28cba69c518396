"""The shortest polynomials of degree 5 between points, with no acceleration at them: Gautier and Khalil 1992, section 5.

Each saturates the velocity, acceleration or jerk of one joint; peaks are exact, because derivatives of the polynomials have roots in
closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, BoolArray
from dynid.excitation.limits import Limits
from dynid.excitation.trajectories import quintic_terms

POINTS_PER_PIECE = 80
"""Times per piece on which positions are looked at."""


def shortest_times(
    position: Array, velocity: Array, limits: Limits, tick_s: float | None = None, least_s: ArrayLike = 0.0
) -> Array:
    """Shortest time between successive points within velocity and acceleration limits; NaN where there is none.

    With ``tick_s`` times are rounded up to multiples of it that fit; ``least_s`` is the least for every pair.
    """
    pieces = Pieces(position[:-1], position[1:], velocity[:-1], velocity[1:])
    u_f = pieces.shortest(limits)
    longer = np.maximum(u_f, least_s)
    if tick_s is None:
        return np.where(pieces.fit(longer[None], limits)[0], longer, np.where(longer > u_f, np.nan, u_f))
    ticks = np.ceil(np.nan_to_num(longer, nan=1.0) / tick_s - 1e-9) + np.arange(400)[:, None]
    good = pieces.fit(np.asarray(ticks * tick_s, dtype=np.float64), limits)
    rounded = np.take_along_axis(ticks, good.argmax(axis=0)[None], axis=0)[0] * tick_s
    return np.where(np.isnan(u_f) | ~good.any(axis=0), np.nan, rounded)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Polynomials between pairs of points, ``(pieces, joints)`` each, in the time ``s = u / u_f`` from 0 to 1."""

    start: Array
    end: Array
    v_start: Array
    v_end: Array

    def coefficients(self, u_f: Array) -> tuple[Array, Array, Array]:
        """Of ``s^3, s^4, s^5``; ``u_f`` is ``(.., pieces)``."""
        return quintic_terms(self.start, self.end, self.v_start, self.v_end, u_f[..., None])

    def fit(self, u_f: Array, limits: Limits) -> BoolArray:
        """Whether pieces of these lengths, ``(trials, pieces)``, keep velocity, acceleration and jerk limits; peaks are exact."""
        c3, c4, c5 = self.coefficients(u_f)
        u = u_f[..., None]

        def speed(s: Array) -> Array:
            return np.abs(self.v_start + s**2 * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)) / u)

        def rate(s: Array) -> Array:
            return np.abs(s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5)) / u**2)

        peak_speed = np.maximum.reduce([speed(s) for s in _roots_inside(20.0 * c5, 12.0 * c4, 6.0 * c3)])
        peak_rate = np.maximum.reduce([rate(s) for s in _roots_inside(60.0 * c5, 24.0 * c4, 6.0 * c3)])
        slack = 1.0 + 1e-12  # points may lie on the limit itself
        ends = np.maximum(np.abs(self.v_start), np.abs(self.v_end))
        good = (np.maximum(peak_speed, ends) <= slack * limits.velocity) & (peak_rate <= slack * limits.acceleration)
        if np.isfinite(limits.jerk).any():  # a parabola in s: largest at an end or at its vertex
            vertex = np.clip(np.divide(-24.0 * c4, 120.0 * c5, out=np.zeros_like(c4), where=c5 != 0.0), 0.0, 1.0)
            sharp = [np.abs(6.0 * c3 + s * (24.0 * c4 + s * 60.0 * c5)) / u**3 for s in (0.0, 1.0, vertex)]
            good &= np.maximum.reduce(sharp) <= slack * limits.jerk
        return np.asarray(good.all(axis=-1))

    def shortest(self, limits: Limits, n_candidates: int = 120, n_halvings: int = 42) -> Array:
        """Shortest time of every piece, NaN where none was found: the first of rising candidates that fits, then bisection."""
        candidates = np.geomspace(0.02, 120.0, n_candidates)
        fits = self.fit(np.outer(candidates, np.ones(len(self.start))), limits)
        first = fits.argmax(axis=0)
        high, low = candidates[first], candidates[np.maximum(first - 1, 0)]
        for _ in range(n_halvings):
            middle = 0.5 * (low + high)
            good = self.fit(middle[None], limits)[0]
            high, low = np.where(good, middle, high), np.where(good, low, middle)
        return np.where(fits.any(axis=0), high, np.nan)

    def overshoot(self, limits: Limits) -> Array:
        """By how much of its half range some joint leaves its range; infinite for a piece without a time."""
        u = self.shortest(limits, 40, 6)
        length = np.nan_to_num(u, nan=1.0)
        c3, c4, c5 = self.coefficients(length)
        s = np.linspace(0.0, 1.0, POINTS_PER_PIECE)[:, None, None]
        q = self.start + self.v_start * length[:, None] * s + s**3 * (c3 + s * (c4 + s * c5))
        beyond = (np.abs(q - limits.centre) / limits.reach).max(axis=(0, 2)) - 1.0
        return np.where(np.isnan(u), np.inf, beyond)


def _roots_inside(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Roots of ``a s^2 + b s + c`` cut to [0, 1]; where there is none, any place in it, which changes no maximum."""
    root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
    t = -0.5 * (b + np.where(b >= 0.0, 1.0, -1.0) * root)
    first = np.divide(t, a, out=np.zeros_like(t), where=a != 0.0)
    second = np.divide(c, t, out=np.zeros_like(t), where=t != 0.0)
    return np.clip(first, 0.0, 1.0), np.clip(second, 0.0, 1.0)
