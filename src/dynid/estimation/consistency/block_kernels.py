"""Compiled algebra of many small symmetric matrices: what an interior-point method asks of ``n`` blocks of side 4 or 6.

    S_b(x) = sum_a x[slots[b, a]] B[b, a] + C[b]        (blocks, side, side)

Slots below zero are empty. Loops are written out: of matrices this small the call of a library costs more than its work. Per
link and iteration some 4,000 multiplications are left, a few microseconds.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.compiled import njit, njit_helper

SHORTER = 0.25
"""Factor by which a step that leaves the cone is shortened until it does not."""
BISECTIONS = 7
"""Halvings between the two: the longest step is known to two percent of itself."""


@njit(cache=True, nogil=True)
def block_values(x: Array, slots: IntArray, basis: Array, constant: Array, out: Array) -> None:
    """``S_b(x)``."""
    count, width = slots.shape
    side = basis.shape[2]
    for b in range(count):
        for i in range(side):
            for j in range(side):
                out[b, i, j] = constant[b, i, j]
        for a in range(width):
            if slots[b, a] < 0:
                continue
            value = x[slots[b, a]]
            for i in range(side):
                for j in range(side):
                    out[b, i, j] += value * basis[b, a, i, j]


@njit(cache=True, nogil=True)
def add_adjoint(matrices: Array, slots: IntArray, basis: Array, factor: float, out: Array) -> None:
    """``out[slots[b, a]] += factor <B[b, a], M_b>``."""
    count, width = slots.shape
    side = basis.shape[2]
    for b in range(count):
        for a in range(width):
            if slots[b, a] < 0:
                continue
            total = 0.0
            for i in range(side):
                for j in range(side):
                    total += basis[b, a, i, j] * matrices[b, i, j]
            out[slots[b, a]] += factor * total


@njit_helper(cache=True, nogil=True)
def _cholesky(A: Array, L: Array) -> bool:
    side = len(A)
    for i in range(side):
        for j in range(i + 1):
            value = A[i, j]
            for k in range(j):
                value -= L[i, k] * L[j, k]
            if i == j:
                if not value > 0.0:
                    return False
                L[i, i] = np.sqrt(value)
            else:
                L[i, j] = value / L[j, j]
    return True


@njit(cache=True, nogil=True)
def inverses(A: Array, out: Array) -> bool:
    """Inverse of every block; False where one is not positive definite."""
    count, side = A.shape[0], A.shape[1]
    L = np.zeros((side, side))
    K = np.zeros((side, side))
    for b in range(count):
        if not _cholesky(A[b], L):
            return False
        for i in range(side):
            K[i, i] = 1.0 / L[i, i]
            for j in range(i):
                value = 0.0
                for k in range(j, i):
                    value -= L[i, k] * K[k, j]
                K[i, j] = value / L[i, i]
        for i in range(side):
            for j in range(i + 1):
                value = 0.0
                for k in range(i, side):
                    value += K[k, i] * K[k, j]
                out[b, i, j] = value
                out[b, j, i] = value
    return True


@njit(cache=True, nogil=True)
def scaled_hessians(inverse: Array, Z: Array, slots: IntArray, basis: Array, out: Array) -> None:
    """``D_b[a, c] = <B_a, sym(S^-1 B_c Z)>`` of every block, ``(blocks, width, width)``; zero in empty slots."""
    count, width = slots.shape
    side = basis.shape[2]
    half = np.zeros((side, side))
    T = np.zeros((side, side))
    for b in range(count):
        for c in range(width):
            if slots[b, c] < 0:
                for a in range(width):
                    out[b, a, c] = 0.0
                    out[b, c, a] = 0.0
                continue
            for i in range(side):
                for k in range(side):
                    value = 0.0
                    for m in range(side):
                        value += inverse[b, i, m] * basis[b, c, m, k]
                    half[i, k] = value
            for i in range(side):
                for j in range(side):
                    value = 0.0
                    for k in range(side):
                        value += half[i, k] * Z[b, k, j]
                    T[i, j] = value
            for i in range(side):
                for j in range(i):
                    value = 0.5 * (T[i, j] + T[j, i])
                    T[i, j] = value
                    T[j, i] = value
            for a in range(c, width):
                value = 0.0
                if slots[b, a] >= 0:
                    for i in range(side):
                        for j in range(side):
                            value += basis[b, a, i, j] * T[i, j]
                out[b, a, c] = value
                out[b, c, a] = value


@njit(cache=True, nogil=True)
def half_hessians(S: Array, Z: Array, slots: IntArray, basis: Array, out: Array) -> bool:
    """``J_b[:, a] = vec(C^-1 B_a G)`` with ``S = C C^T``, ``Z = G G^T``: ``J^T J`` is the Hessian, at half the digits' cost."""
    count, width = slots.shape
    side = basis.shape[2]
    C = np.zeros((side, side))
    G = np.zeros((side, side))
    T = np.zeros((side, side))
    for b in range(count):
        if not (_cholesky(S[b], C) and _cholesky(Z[b], G)):
            return False
        for a in range(width):
            if slots[b, a] < 0:
                for i in range(side * side):
                    out[b, i, a] = 0.0
                continue
            for j in range(side):
                for i in range(side):  # forward substitution, column by column
                    value = basis[b, a, i, j]
                    for k in range(i):
                        value -= C[i, k] * T[k, j]
                    T[i, j] = value / C[i, i]
            for i in range(side):
                for j in range(side):
                    value = 0.0
                    for k in range(j, side):
                        value += T[i, k] * G[k, j]
                    out[b, i * side + j, a] = value
    return True


@njit(cache=True, nogil=True)
def add_blocks(blocks: Array, slots: IntArray, H: Array) -> None:
    """``H[slots[b, a], slots[b, c]] += blocks[b, a, c]``."""
    count, width = slots.shape
    for b in range(count):
        for a in range(width):
            if slots[b, a] < 0:
                continue
            for c in range(width):
                if slots[b, c] >= 0:
                    H[slots[b, a], slots[b, c]] += blocks[b, a, c]


@njit(cache=True, nogil=True)
def symmetric_products(inverse: Array, left: Array, right: Array, out: Array) -> None:
    """``sym(S^-1 X Y)`` of every block."""
    count, side = inverse.shape[0], inverse.shape[1]
    A = np.zeros((side, side))
    T = np.zeros((side, side))
    for b in range(count):
        for i in range(side):
            for j in range(side):
                value = 0.0
                for k in range(side):
                    value += left[b, i, k] * right[b, k, j]
                A[i, j] = value
        for i in range(side):
            for j in range(side):
                value = 0.0
                for k in range(side):
                    value += inverse[b, i, k] * A[k, j]
                T[i, j] = value
        for i in range(side):
            for j in range(side):
                out[b, i, j] = 0.5 * (T[i, j] + T[j, i])


@njit(cache=True, nogil=True)
def longest_step(A: Array, step: Array, most: float) -> float:
    """The largest ``t <= most`` with every ``A_b + t step_b`` positive definite, from below."""
    count, side = A.shape[0], A.shape[1]
    L = np.zeros((side, side))
    trial = np.zeros((side, side))
    best = most
    for b in range(count):
        for i in range(side):
            for j in range(i + 1):
                trial[i, j] = A[b, i, j] + best * step[b, i, j]
        if _cholesky(trial, L):
            continue
        low, high = SHORTER * best, best
        halvings = 0
        while halvings < BISECTIONS and high > 1e-30:
            middle = 0.5 * (low + high) if halvings > 0 else low
            for i in range(side):
                for j in range(i + 1):
                    trial[i, j] = A[b, i, j] + middle * step[b, i, j]
            inside = _cholesky(trial, L)
            if halvings > 0 or inside:
                halvings += 1
            if inside:
                low = middle
            else:
                high = middle
                if halvings == 0:
                    low = SHORTER * high
        best = low if halvings > 0 else 0.0
    return best


@njit(cache=True, nogil=True)
def log_determinants(A: Array) -> float:
    """``sum_b log det A_b``; minus infinity where one is not positive definite."""
    count, side = A.shape[0], A.shape[1]
    L = np.zeros((side, side))
    total = 0.0
    for b in range(count):
        if not _cholesky(A[b], L):
            return -np.inf
        for i in range(side):
            total += 2.0 * np.log(L[i, i])
    return total
