"""Bodies that no motion shows, and the face of each link's cone that is left when they may be added at no cost.

A point mass on the axis of the first joint, or at the intersection of the first two, changes no base value: ``K n = 0`` with a
body ``n`` inside the cone. Such bodies can be added without end, and with them the first moments about that point can be
anything: the feasible base values are not closed, and the nearest ones are approached only as that mass grows. The closure is
the image of a larger cone,

    U^T P(x) U >= 0,     U the directions in which n has nothing,

over which the nearest point is attained, and multipliers that prove it exist. Null bodies are looked for link by link: if
bodies of several links had no kinetic energy together, each would have none. A quadratic system for each link,

    K_k vec(v v^T) = 0        point masses and lines (v in R^4), or moments about one axis (plain condition),

has a subspace for its solution, found by Gauss-Newton steps from several starts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid.arrays import Array
from dynid.inertia import phi_from_pseudo_inertia
from dynid.regression.independence import triangle_of

TOGETHER = 1e-6
"""The same for two bodies together: where a root is double, a body is known to the square root of what it may show."""
STARTS = 5
"""Random starts without a solution after which there is none."""
PROJECTIONS = 40
STEPS = 40
EXACT = 1e-9
"""Norm of what a unit body shows, relative to what the link's parameters can show, below which it counts as nothing: the base
parameters of robots in general position are themselves known to some 1e-11."""


def null_body(shown: Array, condition: str, size: float, seed: int = 0) -> Array | None:
    """A body of one link without any effect, as spread out as possible; None where there is none.

    ``shown``: ``(rows, 10)``, what the ten scaled parameters do to the base values; ``size``: what counts as much.
    """
    if float(np.linalg.norm(shown)) <= EXACT * size or size == 0.0:
        return _everything()
    K = shown / size
    if np.linalg.matrix_rank(K, tol=EXACT) == K.shape[1]:
        return None
    rng = np.random.default_rng(seed)
    points = _solutions(K, 4, _of_point, rng)
    found = sum((_of_point(v, v) for v in points), start=np.zeros(10))
    if condition == "plain":
        found = found + sum((_of_axis(j, j) for j in _solutions(K, 3, _of_axis, rng)), start=np.zeros(10))
    return found if found.any() else None


def _everything() -> Array:
    return np.array([1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 2.0, 0.0, 0.0, 2.0])


def _of_point(v: Array, w: Array) -> Array:
    """Ten parameters of the pseudo-inertia ``sym(v w^T)``."""
    return phi_from_pseudo_inertia(np.outer(v, w))


def _of_axis(j: Array, k: Array) -> Array:
    """Ten parameters of the rotational inertia ``sym(j k^T)`` without mass."""
    I = 0.5 * (np.outer(j, k) + np.outer(k, j))
    return np.array([0.0, 0.0, 0.0, 0.0, I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]])


def _solutions(K: Array, size: int, body: Callable[[Array, Array], Array], rng: np.random.Generator) -> Array:
    """An orthonormal basis of the ``v`` with ``K body(v, v) = 0``, one a row."""
    basis = np.eye(size)
    table = np.array([[K @ body(a, b) for b in basis] for a in basis])  # (size, size, rows)
    table = 0.5 * (table + np.swapaxes(table, 0, 1))
    rows = table.reshape(size * size, -1).T
    if len(rows) > size * size:  # only its triangle matters
        table = triangle_of(rows).T.reshape(size, size, -1)
    found = np.zeros((0, size))
    allowed = basis
    starts = _likely(table, size)
    failed = 0
    while (starts or failed < STARTS) and len(allowed):
        start = starts.pop() if starts else rng.normal(size=size)
        v = _solution(table, allowed, allowed.T @ (allowed @ start))
        if v is None:
            failed += 1
            continue
        found = np.vstack([found, v])
        # what is found with it must have no effect together with it either, and be normal to it
        together = np.vstack([*(np.einsum("abr,b->ra", table, w) for w in found), found])
        _, singular, right = np.linalg.svd(together)
        allowed = right[int((singular > TOGETHER).sum()) :]
        failed = 0
    return found


def _likely(table: Array, size: int) -> list[Array]:
    """Eigenvectors of a null body, those of its largest eigenvalues last, by projections in turns from the identity."""
    rows = table.reshape(size * size, -1).T
    _, singular, right = np.linalg.svd(rows)
    shown = right[: int((singular > EXACT).sum())]
    P = np.eye(size)
    vectors = np.eye(size)
    for _ in range(PROJECTIONS):
        flat = P.ravel()
        flat = flat - shown.T @ (shown @ flat)
        eigenvalues, vectors = np.linalg.eigh(flat.reshape(size, size))
        eigenvalues = np.maximum(eigenvalues, 0.0)
        if eigenvalues.sum() < 1e-3 * np.trace(P):
            return []
        P = (vectors * (eigenvalues / eigenvalues.sum())) @ vectors.T
    return [vectors[:, i] for i in range(size) if eigenvalues[i] > 1e-3 * eigenvalues[-1]]


def _solution(table: Array, allowed: Array, start: Array) -> Array | None:
    """One ``v`` in the span of ``allowed``; steps of once and twice the length, since such roots are often double."""
    length = float(np.linalg.norm(start))
    if length < 1e-6:
        return None
    v = start / length
    J = np.einsum("abr,b->ra", table, v)
    least = float(np.linalg.norm(J @ v))
    for _ in range(STEPS):
        if least < 1e-18:
            break
        across = allowed - np.outer(allowed @ v, v)  # v = 0 is a solution too, and none
        damped = np.vstack([2.0 * J @ across.T, 1e-9 * np.eye(len(across))])
        step = np.linalg.lstsq(damped, np.concatenate([-(J @ v), np.zeros(len(across))]))[0] @ across
        better = False
        for factor in (2.0, 1.0, 0.25):
            w = v + factor * step
            w /= np.linalg.norm(w)
            G = np.einsum("abr,b->ra", table, w)
            size = float(np.linalg.norm(G @ w))
            if size < 0.9 * least:
                v, J, least, better = w, G, size, True
                break
        if not better:
            break
    return _tidied(table, v, least) if least < EXACT else None


def _tidied(table: Array, v: Array, least: float) -> Array:
    """``v`` without entries that are next to nothing, if it is as good: axes of most robots are aligned with their frames."""
    w = np.where(np.abs(v) > TOGETHER * np.abs(v).max(), v, 0.0)
    w /= np.linalg.norm(w)
    size = float(np.linalg.norm(np.einsum("abr,a,b->r", table, w, w)))
    return w if size <= max(least, 1e-15) else v
