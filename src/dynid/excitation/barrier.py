"""Minimisation inside limits: a logarithmic barrier whose curvature is exact, around a criterion whose curvature is learnt.

    minimise  f(x) - mu sum_i log(1 - r_i(x)^2),      r_i = (C_i x - centre_i) / half_i

Limits are linear, so gradient and Hessian of the barrier are known. The criterion's Hessian is approximated by damped BFGS
updates; a step solves ``(B + mu H) d = -gradient``, is cut where it would meet a limit, and is halved until it pays.
Every iterate is strictly inside all limits, so the search may stop at any time with a motion that can be played.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TypeAlias

import numpy as np
import scipy.linalg

from dynid.arrays import Array, freeze

Function: TypeAlias = Callable[[Array], tuple[float, Array]]
"""Value and gradient; an infinite value where some limit that is not linear is violated."""


@dataclass(frozen=True, eq=False)
class LinearLimits:
    """``|C x_j - centre_j| < half_j`` for every joint ``j``; rows of ``C`` are the same for all, infinite halves are no limit."""

    C: Array
    centre: Array
    half: Array
    weight: float
    """Weight of each row in the barrier: one over the number of times."""

    def ratios(self, x: Array) -> Array:
        """``r``, ``(rows, joints)``."""
        return np.asarray((self.C @ x.reshape(self.half.shape[1], -1).T - self.centre) / self.half)

    def inside(self, x: Array) -> bool:
        return bool((np.abs(self.ratios(x)) < 1.0).all())

    def value(self, x: Array) -> float:
        """The barrier, infinite outside."""
        r = self.ratios(x)
        if not (np.abs(r) < 1.0).all():
            return np.inf
        return float(-self.weight * np.log1p(-(r**2)).sum())

    def gradient(self, x: Array) -> Array:
        r = self.ratios(x)
        return np.asarray((self.weight * (2.0 * r / (1.0 - r**2) / self.half).T @ self.C).ravel())

    def hessian(self, x: Array) -> Array:
        r = self.ratios(x)
        curvature = self.weight * 2.0 * (1.0 + r**2) / (1.0 - r**2) ** 2 / self.half**2
        n, k = self.half.shape[1], self.C.shape[1]
        blocks = self.C.T @ (curvature[:, :, None] * self.C[:, None, :]).reshape(len(self.C), -1)
        H = np.zeros((n, k, n, k))
        H[np.arange(n), :, np.arange(n), :] = blocks.reshape(k, n, k).transpose(1, 0, 2)
        return H.reshape(n * k, n * k)

    def longest_step(self, x: Array, d: Array) -> float:
        """How far ``x + step d`` may go, 5 % before the first limit."""
        r = self.ratios(x)
        rate = (self.C @ d.reshape(self.half.shape[1], -1).T) / self.half
        with np.errstate(divide="ignore"):
            room = np.where(rate > 0.0, (1.0 - r) / rate, np.where(rate < 0.0, (-1.0 - r) / rate, np.inf))
        return float(0.95 * room.min())


@dataclass(frozen=True, eq=False)
class Point:
    """Where a search stands: the iterate, the criterion there, and what is known of its curvature."""

    x: Array
    value: float
    curvature: Array | None = None
    n_iterations: int = 0
    out_of_time: bool = False


def minimise(
    function: Function,
    limits: LinearLimits,
    start: Point,
    mu: float,
    iterations: int,
    deadline: float = np.inf,
    enough: float = 1e-6,
) -> Point:
    """From a point inside all limits to a better one; the curvature of ``start`` is used again.

    It stops when a step promises less than ``enough``, or at the deadline.
    """
    x = np.array(start.x)
    value, slope = function(x)
    B = 0.1 * limits.hessian(x) if start.curvature is None else np.array(start.curvature)
    wall = limits.value(x)
    for iteration in range(iterations):
        gradient = slope + mu * limits.gradient(x)
        wall_curvature = limits.hessian(x)
        try:
            d = _newton_step(B + mu * wall_curvature, gradient)
        except np.linalg.LinAlgError:
            # Curvature learnt beside a steep limit may have lost its positive part to rounding: it is learnt anew.
            B = 0.1 * wall_curvature
            d = _newton_step(B + mu * wall_curvature, gradient)
        promise = float(gradient @ d)
        if -promise < enough:
            break
        step = min(1.0, limits.longest_step(x, d))
        height = value + mu * wall
        for _ in range(20):
            if monotonic() > deadline:
                return Point(freeze(x), value, B, start.n_iterations + iteration, True)
            x_new = x + step * d
            value_new, slope_new = function(x_new)
            wall_new = limits.value(x_new)
            if value_new + mu * wall_new <= height + 1e-4 * step * promise:
                break
            step *= 0.4
        else:
            break
        B = _updated(B, x_new - x, slope_new - slope)
        x, value, slope, wall = x_new, value_new, slope_new, wall_new
    else:
        iteration = iterations
    return Point(freeze(x), value, B, start.n_iterations + iteration)


def _newton_step(M: Array, gradient: Array) -> Array:
    M[np.diag_indices(len(M))] += 1e-10 * np.trace(M) / len(M)
    return np.asarray(-scipy.linalg.cho_solve(scipy.linalg.cho_factor(M), gradient))


def _updated(B: Array, s: Array, y: Array) -> Array:
    """Powell's damped BFGS update: ``B`` stays positive definite where the criterion is not convex."""
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ y)
    if sy < 0.2 * sBs:
        theta = 0.8 * sBs / (sBs - sy)
        y = theta * y + (1.0 - theta) * Bs
        sy = float(s @ y)
    if sBs <= 0.0 or sy <= 0.0:
        return B  # a step too short to teach anything
    return np.asarray(B - np.outer(Bs, Bs) / sBs + np.outer(y, y) / sy)
