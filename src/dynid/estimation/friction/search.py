"""The two searches of a friction fit, passive values by least squares and the nonlinear parameters around them, and the solve in them.

    minimise || A x - y ||^2      subject to   G x >= 0

The unconstrained solution is looked at first and nearly always stays. Otherwise only the rows that it breaks are added, round by
round, and each of these small problems is solved as one of least distance (Lawson and Hanson 1974, chapter 23): with ``A = Q R`` and
``x = x_0 + R^-1 z`` it is the shortest ``z`` with ``G R^-1 z >= -G x_0``, the dual of a least-squares problem over positive numbers.

The few nonlinear parameters are found by damped Gauss-Newton within bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray, IntArray
from dynid.regression.channels import SPANNED, orthonormal_basis

BROKEN = 1e-9
"""Part of the size of a row's terms by which it may be negative: round-off."""
ROUNDS = 20


def passive_solution(x: Array, R: Array, G: Array, guess: BoolArray | None = None) -> tuple[Array, BoolArray] | None:
    """The point nearest to ``x`` in the metric ``||R d||`` with ``G x >= 0``, and which rows hold it; None where ``x`` has it already.

    Args:
        x: the unconstrained solution.
        R: regular triangle of the columns.
        G: the inequalities, of which ``x = 0`` keeps all.
        guess: rows that held a solution nearby: the search for those that hold this one starts there.
    """
    broken = _broken(G, x)
    if not broken.any():
        return None
    free = np.zeros(len(G), dtype=bool) if guess is None or len(guess) != len(G) else guess
    taken = broken | free
    for _ in range(ROUNDS):
        rows = G[taken]
        E = np.linalg.solve(R.T, rows.T)  # (n, rows): R^-T G^T
        h = -rows @ x
        u = nonnegative_solution(np.vstack([E, h]), np.append(np.zeros(len(E)), 1.0), free[taken])
        left = np.append(E @ u, h @ u - 1.0)
        z = -left[:-1] / left[-1]
        found = x + np.linalg.solve(R, z)
        free = np.zeros(len(G), dtype=bool)
        free[np.flatnonzero(taken)[u > 0.0]] = True
        more = _broken(G, found) & ~taken
        if not more.any():
            return found, free
        taken = taken | more
    return found, taken


def _broken(G: Array, x: Array) -> BoolArray:
    terms = G * x
    return np.asarray(terms.sum(axis=1) < -BROKEN * np.abs(terms).sum(axis=1))


def nonnegative_solution(A: Array, b: Array, guess: BoolArray | None = None) -> Array:
    """``min || A u - b ||`` over ``u >= 0`` (Lawson and Hanson 1974, chapter 23); ``guess`` are those that may be above zero.

    Ours, because SciPy's comes with all its optimisers, whose loading takes longer than the fits that need this.
    """
    n = A.shape[1]
    size = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    A = A / size
    u, free = np.zeros(n), np.zeros(n, dtype=bool) if guess is None else np.array(guess)
    while free.any():
        there = np.linalg.lstsq(A[:, free], b, rcond=None)[0]
        if (there > 0.0).all():
            u[free] = there
            break
        free[np.flatnonzero(free)[there <= 0.0]] = False
    enough = 1e-13 * max(float(np.linalg.norm(b)), 1e-300)
    for _ in range(3 * n + 10):
        pull = A.T @ (b - A @ u)
        pull[free] = -np.inf
        best = int(np.argmax(pull))
        if not pull[best] > enough:
            break
        free[best] = True
        while free.any():
            there = np.zeros(n)
            there[free] = np.linalg.lstsq(A[:, free], b, rcond=None)[0]
            if (there[free] > 0.0).all():
                u = there
                break
            # as far as all stay positive; what reaches zero first is held there
            falling = free & (there <= 0.0)
            share = float((u[falling] / np.maximum(u[falling] - there[falling], 1e-300)).min())
            u = u + share * (there - u)
            free &= u > 1e-15 * max(float(u.max()), 1e-300)
            u[~free] = 0.0
    return np.asarray(u / size)


UNSHOWN = 1e-18
"""Part of the largest curvature below which nothing but rounding is left of a number's: that of a friction held at zero, say."""
FELT = 0.1
"""Damping, as a part of the curvature, that shortens a step enough to be worth another evaluation."""
LARGEST_STEP = 1.5
"""Of any number in one step; numbers are mostly logarithms."""


Search: TypeAlias = tuple[Array, int, bool]
"""The place where a search ended, evaluations, and whether it settled there."""


Parts: TypeAlias = Callable[[Array, BoolArray], tuple[Array, Array, Array]]
"""Cost of every part, gradient, and the diagonal blocks of the Gauss-Newton matrix, ``(parts, numbers, numbers)``, at a place.

Of parts that are not asked for, the second argument, it may return anything.
"""


def search(
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
    """Least cost from a start, within bounds, of parts that are problems of their own, ``(numbers, parts)`` one after the other.

    It ends where a step moves no number by more than ``settle`` or gains less than ``tolerance`` of the cost: numbers that the
    rows hardly show would otherwise wander on. Parts are evaluated together, but each has its own damping and ends by itself:
    none waits for steps that another one rejects, and none that has ended is evaluated again.
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
            # a number at its bound stays there while the gradient pushes it out
            free = ~(((here <= low[own]) & (slope > 0.0)) | ((here >= high[own]) & (slope < 0.0)))
            shown = np.diag(hessian[d])
            free &= shown > UNSHOWN * float(shown.max())  # what only rounding moves would wander at random
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
                damping[d] = max(5.0 * damping[d], FELT)
                busy[d] = not (damping[d] > 1e6 or moved < settle)
    return place, evaluations, not busy.any()


def _step(gradient: Array, hessian: Array, free: BoolArray, damping: float) -> Array:
    H = hessian[np.ix_(free, free)]
    size = np.maximum(np.diag(H), 1e-12 * float(np.diag(hessian).max(initial=0.0)) + 1e-300)
    step = np.zeros_like(gradient)
    step[free] = -np.linalg.solve(H + damping * np.diag(size), gradient[free])
    return np.clip(step, -LARGEST_STEP, LARGEST_STEP)


class Solver:
    """Least squares over columns ``A = Q R``; directions that the rows do not show stay at zero."""

    def __init__(self, Q: Array, R: Array, order: IntArray | None = None) -> None:
        """``order`` are the numbers of the columns that ``R`` has, where they stand in another order."""
        size = np.linalg.norm(R, axis=0)
        self._size = np.where(size > 0.0, size, 1.0)
        self._Q, self._R = Q, R / self._size
        self._order = np.arange(R.shape[1]) if order is None else order
        diagonal = np.abs(np.diag(self._R))
        self._regular = len(diagonal) == R.shape[1] > 0 and bool(diagonal.min() > SPANNED * diagonal.max())

    @classmethod
    def over(cls, A: Array) -> Solver:
        """Over the columns of a matrix."""
        return cls(*np.linalg.qr(A))

    @property
    def n_columns(self) -> int:
        return len(self._order)

    def solve(self, right: Array) -> Array:
        """The solution for every right side."""
        found = np.zeros((self.n_columns, *right.shape[1:]))
        if not self.n_columns:
            return found
        inside = self._Q.T @ right
        if self._regular:
            # small: the checks around it would take longer; by rows, as R lies in memory
            own, _ = scipy.linalg.lapack.dtrtrs(self._R.T, inside, lower=1, trans=1)
        else:
            own = np.linalg.lstsq(self._R, inside, rcond=SPANNED)[0]
        found[self._order] = own / (self._size if right.ndim == 1 else self._size[:, None])
        return found

    def predicted(self, x: Array) -> Array:
        """``A x``."""
        return np.asarray(self._Q @ (self._R @ (self._size * x[self._order])))

    def passive(self, x: Array, G: Array, guess: BoolArray | None = None) -> tuple[Array, BoolArray | None, Array]:
        """The best solution with ``G x >= 0``, the rows that hold it, and a basis of the columns that are left to move.

        ``x`` is the unconstrained solution, which stays where it has it already; ``guess`` are rows that may hold the other.
        """
        if not self.n_columns:
            return x, None, self.span
        G = G[:, self._order] / self._size
        # columns before the first that the rows are about follow by themselves
        first = int(np.argmax(G.any(axis=0))) if self._regular else 0
        R = self._R[first:, first:]
        if not self._regular:  # what the rows do not show moves at next to no cost
            R = np.asarray(np.linalg.qr(np.vstack([R, 1e-7 * np.abs(R).max() * np.eye(R.shape[1])]), mode="r"))
        free = self._size * x[self._order]
        found = passive_solution(free[first:], R, G[:, first:], guess)
        if found is None:
            return x, None, self.span
        held, moved = np.array(free), found[0] - free[first:]
        held[first:] = found[0]
        if first:
            held[:first] -= np.linalg.solve(self._R[:first, :first], self._R[:first, first:] @ moved)
        rows = G[found[1], first:]
        if self._regular:
            U, s, _ = np.linalg.svd(np.linalg.solve(R.T, rows.T))
            left = U[:, int(np.count_nonzero(s > SPANNED * s.max(initial=0.0))) :]  # no row where only round-off held it
        else:
            left = orthonormal_basis(self._R @ scipy.linalg.null_space(rows))
        x = np.empty_like(x)
        x[self._order] = held / self._size
        return x, found[1], np.hstack([self._Q[:, :first], self._Q[:, first:] @ left])

    @property
    def span(self) -> Array:
        """An orthonormal basis of all columns."""
        return self._Q if self._regular else np.asarray(self._Q @ orthonormal_basis(self._R))


def outside(basis: Array, columns: Array) -> Array:
    """What is left of columns beside what an orthonormal basis can make up for."""
    return columns - basis @ (basis.T @ columns)
