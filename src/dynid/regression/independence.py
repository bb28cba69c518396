"""Which columns of a matrix are independent, decided in a given order of preference.

Walking through the columns of ``W`` in order, a column is kept if it is independent of those kept before it. The others are
combinations of the kept ones, so ``W = W[:, kept] K``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from dynid.arrays import Array, IntArray, freeze

ZERO_COLUMN = 1e-12
"""A column below this fraction of the largest one is round-off of an exact zero."""
SPANNED = 1e-8
"""A direction that unit columns show by less than this fraction of the one that they show most is round-off."""


@dataclass(frozen=True)
class Independence:
    """``W = W[:, kept] K`` and how clear the decision was."""

    kept: IntArray
    K: Array
    smallest_kept: float
    """Smallest relative part of a kept column outside the span of those before it."""
    largest_dropped: float
    """The same for the dropped ones: round-off, when the decision is clear."""


def triangle_of(W: Array) -> Array:
    """Upper triangle ``R`` with ``R^T R = W^T W``."""
    return np.asarray(np.linalg.qr(W, mode="r"))


def orthonormal_basis(W: Array) -> Array:
    """Of the space of the columns, without directions that are round-off: those below ``SPANNED`` times the largest, over unit columns."""
    if not W.size:
        return np.zeros((len(W), 0))
    size = np.linalg.norm(W, axis=0)
    Q, R = np.linalg.qr(W / np.where(size > 0.0, size, 1.0))
    diagonal = np.abs(np.diag(R))
    if len(diagonal) == W.shape[1] and diagonal.min() > SPANNED * diagonal.max():
        return np.asarray(Q)
    U, s, _ = np.linalg.svd(R, full_matrices=False)
    return np.asarray(Q @ U[:, s > SPANNED * s[0]])


def independent_columns(W: Array, order: IntArray, tolerance: float = 1e-8, usual: Array | None = None) -> Independence:
    """Kept columns in ``order`` and the combinations that give the rest.

    Of a column shorter than ``tolerance`` times its ``usual`` length, where that is known, nothing is kept either.
    """
    R = triangle_of(W) if W.shape[0] > W.shape[1] else np.array(W)
    norms = np.linalg.norm(R, axis=0)
    scale = np.where(norms > ZERO_COLUMN * norms.max(initial=0.0), norms, np.inf)
    share = np.ones(len(norms)) if usual is None else np.minimum(norms / np.where(usual > 0.0, usual, norms + 1e-300), 1.0)
    columns = R / scale  # unit columns: the decision does not depend on units; exact zeros stay zero
    basis = np.zeros((R.shape[0], min(R.shape)))
    kept: list[int] = []
    smallest, largest = 1.0, 0.0
    for column in order:
        x = columns[:, column].copy()
        known = basis[:, : len(kept)]
        for _ in range(2):  # once more, so that what is left is orthogonal to working precision
            x -= known @ (known.T @ x)
        rest = float(np.linalg.norm(x))
        if min(rest, share[column]) > tolerance and len(kept) < basis.shape[1]:
            basis[:, len(kept)] = x / rest
            kept.append(int(column))
            smallest = min(smallest, rest)
        else:
            largest = max(largest, rest * share[column])
    Q = basis[:, : len(kept)]
    triangle = np.triu(Q.T @ columns[:, kept])
    K = scipy.linalg.solve_triangular(triangle, Q.T @ columns) if kept else np.zeros((0, W.shape[1]))
    # round-off is told from a small coefficient between unit columns, where it does not depend on units
    K[np.abs(K) < 1e-10 * np.abs(K).max(axis=0, initial=0.0)] = 0.0
    finite = np.where(np.isfinite(scale), scale, 0.0)
    K = K * finite / finite[kept, None] if kept else K
    K[:, kept] = np.eye(len(kept))
    return Independence(freeze(kept, dtype=np.int64), freeze(K), smallest, largest)
