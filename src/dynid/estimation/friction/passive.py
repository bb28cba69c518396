"""Least squares over base parameters and friction values of which the friction stays passive.

    minimise || A x - y ||^2      subject to   G x >= 0

The unconstrained solution is looked at first and nearly always stays. Otherwise only the rows that it breaks are added, round by
round, and each of these small problems is solved as one of least distance (Lawson and Hanson 1974, chapter 23): with ``A = Q R`` and
``x = x_0 + R^-1 z`` it is the shortest ``z`` with ``G R^-1 z >= -G x_0``, the dual of a least-squares problem over positive numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, BoolArray

BROKEN = 1e-9
"""Part of the size of a row's terms by which it may be negative: round-off."""
ROUNDS = 20


@dataclass(frozen=True, eq=False)
class Passive:
    """A solution, and which rows hold it."""

    x: Array
    active: BoolArray


def passive_solution(x: Array, R: Array, G: Array) -> Passive | None:
    """The point nearest to ``x`` in the metric ``||R d||`` with ``G x >= 0``; None where ``x`` has it already.

    Args:
        x: the unconstrained solution.
        R: regular triangle of the columns.
        G: the inequalities, of which ``x = 0`` keeps all.
    """
    broken = _broken(G, x)
    if not broken.any():
        return None
    taken = broken
    for _ in range(ROUNDS):
        rows = G[taken]
        E = np.linalg.solve(R.T, rows.T)  # (n, rows): R^-T G^T
        h = -rows @ x
        u = nonnegative_solution(np.vstack([E, h]), np.append(np.zeros(len(E)), 1.0))
        left = np.append(E @ u, h @ u - 1.0)
        z = -left[:-1] / left[-1]
        found = x + np.linalg.solve(R, z)
        more = _broken(G, found) & ~taken
        if not more.any():
            active = np.zeros(len(G), dtype=bool)
            active[np.flatnonzero(taken)[u > 0.0]] = True
            return Passive(found, active)
        taken = taken | more
    active = taken
    return Passive(found, active)


def _broken(G: Array, x: Array) -> BoolArray:
    terms = G * x
    return np.asarray(terms.sum(axis=1) < -BROKEN * np.abs(terms).sum(axis=1))


def nonnegative_solution(A: Array, b: Array) -> Array:
    """``min || A u - b ||`` over ``u >= 0`` (Lawson and Hanson 1974, chapter 23).

    Ours, because SciPy's comes with all its optimisers, whose loading takes longer than the fits that need this.
    """
    n = A.shape[1]
    size = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    A = A / size
    u, free = np.zeros(n), np.zeros(n, dtype=bool)
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
