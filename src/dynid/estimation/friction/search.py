"""Damped Gauss-Newton within bounds, for the few numbers that stand inside friction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array, BoolArray

Model: TypeAlias = Callable[[Array], tuple[float, Array, Array]]
"""Cost, gradient and Gauss-Newton matrix at a place."""
LARGEST_STEP = 1.5
"""Of any number in one step; numbers are mostly logarithms."""


@dataclass(frozen=True, eq=False)
class Search:
    """Where a search ended."""

    place: Array
    cost: float
    evaluations: int
    converged: bool


def search(
    model: Model, start: Array, low: Array, high: Array, *, most: int = 40, tolerance: float = 1e-6, settle: float = 1e-3
) -> Search:
    """Least cost from a start, within bounds.

    It ends where a step moves no number by more than ``settle`` or gains less than ``tolerance`` of the cost: numbers that the
    rows hardly show would otherwise wander on.
    """
    place = np.clip(start, low, high)
    cost, gradient, hessian = model(place)
    damping, evaluations = 1e-3, 1
    while evaluations < most:
        # a number at its bound stays there while the gradient pushes it out
        free = ~(((place <= low) & (gradient > 0.0)) | ((place >= high) & (gradient < 0.0)))
        if not free.any():
            return Search(place, cost, evaluations, True)
        new = np.clip(place + _step(gradient, hessian, free, damping), low, high)
        moved = float(np.abs(new - place).max())
        new_cost, new_gradient, new_hessian = model(new)
        evaluations += 1
        if new_cost < cost:
            gained = cost - new_cost
            place, cost, gradient, hessian = new, new_cost, new_gradient, new_hessian
            damping = max(0.2 * damping, 1e-9)
            if gained < tolerance * cost or moved < settle:
                return Search(place, cost, evaluations, True)
        else:
            damping *= 5.0
            if damping > 1e6 or moved < settle:
                return Search(place, cost, evaluations, True)
    return Search(place, cost, evaluations, False)


Parts: TypeAlias = Callable[[Array, BoolArray], tuple[Array, Array, Array]]
"""Cost of every part, gradient, and the diagonal blocks of the Gauss-Newton matrix, ``(parts, numbers, numbers)``, at a place.

Of parts that are not asked for, the second argument, it may return anything.
"""


def search_parts(
    model: Parts,
    n_parts: int,
    start: Array,
    low: Array,
    high: Array,
    *,
    most: int = 40,
    tolerance: float = 1e-6,
    settle: float = 1e-3,
) -> Search:
    """:func:`search` for parts that are problems of their own, ``(numbers, parts)`` one after the other, evaluated together.

    Each part has its own damping and ends by itself: none waits for steps that another one rejects, and none that has ended
    is evaluated again.
    """
    place = np.clip(start, low, high)
    busy = np.ones(n_parts, dtype=bool)
    cost, gradient, hessian = model(place, busy)
    where = np.arange(len(place)).reshape(-1, n_parts)
    damping, evaluations = np.full(n_parts, 1e-3), 1
    while busy.any() and evaluations < most:
        new = place.copy()
        for d in np.flatnonzero(busy):
            own = where[:, d]
            here, slope = place[own], gradient[own]
            free = ~(((here <= low[own]) & (slope > 0.0)) | ((here >= high[own]) & (slope < 0.0)))
            busy[d] = free.any()
            if busy[d]:
                new[own] = np.clip(here + _step(slope, hessian[d], free, float(damping[d])), low[own], high[own])
        if not busy.any():
            break
        new_cost, new_gradient, new_hessian = model(new, busy)
        evaluations += 1
        for d in np.flatnonzero(busy):
            own = where[:, d]
            moved = float(np.abs(new[own] - place[own]).max())
            gained = float(cost[d] - new_cost[d])
            if gained > 0.0:
                place[own], gradient[own] = new[own], new_gradient[own]
                cost[d], hessian[d] = new_cost[d], new_hessian[d]
                damping[d] = max(0.2 * damping[d], 1e-9)
                busy[d] = not (gained < tolerance * cost[d] or moved < settle)
            else:
                damping[d] *= 5.0
                busy[d] = not (damping[d] > 1e6 or moved < settle)
    return Search(place, float(cost.sum()), evaluations, not busy.any())


def _step(gradient: Array, hessian: Array, free: BoolArray, damping: float) -> Array:
    H = hessian[np.ix_(free, free)]
    size = np.maximum(np.diag(H), 1e-12 * float(np.diag(hessian).max(initial=0.0)) + 1e-300)
    step = np.zeros_like(gradient)
    step[free] = -np.linalg.solve(H + damping * np.diag(size), gradient[free])
    return np.clip(step, -LARGEST_STEP, LARGEST_STEP)
