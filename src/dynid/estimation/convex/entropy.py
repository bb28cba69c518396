"""The entropic prior: the divergence of bodies from those of a prior, its derivatives, and its form as cones.

weight sum_k [ tr(P0_k^-1 P_k) - log det(P0_k^-1 P_k) - 4 ]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from dynid.adapters.clarabel import Cone, triangle_entries
from dynid.arrays import Array, IntArray
from dynid.estimation.convex.consistent_set import ConsistentSet, Sparse
from dynid.estimation.convex.layout import Layout
from dynid.inertia import PSEUDO_BASIS


@dataclass(frozen=True, eq=False)
class EntropicPrior:
    """``weight sum_k [tr(P0^-1 P) - log det(P0^-1 P) - 4]`` around consistent scaled bodies ``x0``."""

    weight: float
    x0: Array


def with_entropy(
    consistent: ConsistentSet, M: Sparse, k: Array, entropic: EntropicPrior, centre: Array
) -> tuple[Sparse, Array, Array, list[Cone], int]:
    """Rows and variables that represent the log-determinants.

        log det X >= sum_i u_i   if   [[X, Z], [Z^T, diag(Z)]] >= 0,  Z lower triangular,  u_i <= log Z_ii

    with ``X = C^-1 P C^-T`` and ``P0 = C C^T``, which is the identity at the prior.
    """
    layout = consistent.layout
    n, links = consistent.n, len(layout.links)
    C = np.linalg.cholesky(np.einsum("lk,kij->lij", entropic.x0[layout.slots], PSEUDO_BASIS))
    inverse = np.linalg.inv(C)
    X = inverse[:, None] @ PSEUDO_BASIS @ np.swapaxes(inverse, -1, -2)[:, None]  # (links, 10, 4, 4)
    row, column, weight = triangle_entries(8)
    below = {(int(i), int(j)): z for z, (i, j) in enumerate(zip(*np.tril_indices(4), strict=True))}
    n_extra = 14  # ten entries of Z, four u
    height = len(row)
    # what Z contributes to the 8x8 matrix: Z in the upper right block, its diagonal in the lower right one
    z_part = np.zeros((height, n_extra))
    for place, (i, j, w) in enumerate(zip(row, column, weight, strict=True)):
        if i < 4 <= j and (int(i), int(j - 4)) in below:
            z_part[place, below[int(i), int(j - 4)]] = w
        elif i == j and i >= 4:
            z_part[place, below[int(i - 4), int(i - 4)]] = 1.0
    x_part = np.zeros((links, height, 10))
    corner = np.flatnonzero(column < 4)
    x_part[:, corner] = np.swapaxes(X[:, :, row[corner], column[corner]], 1, 2) * weight[corner, None]
    # exponential cones (u_i, 1, Z_ii)
    exponential = np.zeros((12, n_extra))
    constant = np.zeros(12)
    for i in range(4):
        exponential[3 * i, 10 + i] = 1.0
        exponential[3 * i + 2, below[i, i]] = 1.0
        constant[3 * i + 1] = 1.0
    selectors = [
        sparse.csc_matrix((part.ravel(), _entries(slots, height)), shape=(height, n))
        for part, slots in zip(x_part, layout.slots, strict=True)
    ]
    first = sparse.hstack([sparse.vstack(selectors), sparse.kron(sparse.eye(links), sparse.csc_matrix(z_part))])
    cone_part = sparse.kron(sparse.eye(links), sparse.csc_matrix(exponential))
    second = sparse.hstack([sparse.csc_matrix((12 * links, n)), cone_part])
    old = sparse.hstack([M, sparse.csc_matrix((M.shape[0], n_extra * links))])
    rows = sparse.vstack([old, first, second], format="csc")
    shift = sparse.vstack(selectors) @ centre
    offset = np.concatenate([k, shift, np.tile(constant, links)])
    q = np.zeros(n + n_extra * links)
    np.add.at(q, layout.slots, entropic.weight * np.trace(X, axis1=-2, axis2=-1))
    u = n + n_extra * np.arange(links)[:, None] + np.arange(10, 14)
    q[u] = -entropic.weight
    cones: list[Cone] = [*(("semidefinite", 8) for _ in range(links)), *(("exponential", 3) for _ in range(4 * links))]
    return rows, offset, q, cones, n_extra * links


def _entries(columns: IntArray, height: int) -> tuple[IntArray, IntArray]:
    return np.repeat(np.arange(height), len(columns)), np.tile(columns, height)


def entropic_divergence(layout: Layout, x: Array, x0: Array) -> float:
    """``sum_k [tr(P0^-1 P) - log det(P0^-1 P) - 4]``; infinite outside the full condition."""
    P = np.einsum("lk,kij->lij", x[layout.slots], PSEUDO_BASIS)
    P0 = np.einsum("lk,kij->lij", x0[layout.slots], PSEUDO_BASIS)
    C = np.linalg.cholesky(P0)
    inverse = np.linalg.inv(C)
    eigenvalues = np.linalg.eigvalsh(inverse @ P @ np.swapaxes(inverse, -1, -2))
    if (eigenvalues <= 0.0).any():
        return float("inf")
    return float((eigenvalues - np.log(eigenvalues) - 1.0).sum())


def entropic_hessian(layout: Layout, x: Array) -> Array:
    """``tr(P^-1 B_a P^-1 B_b)`` of every link, ``(links, 10, 10)``: the second derivative of the divergence."""
    inverse = np.linalg.inv(np.einsum("lk,kij->lij", x[layout.slots], PSEUDO_BASIS))
    half = inverse[:, None] @ PSEUDO_BASIS  # (links, 10, 4, 4)
    return np.asarray(np.einsum("laij,lbji->lab", half, half))
