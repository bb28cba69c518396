"""Variable projection: a search over the few nonlinear numbers, with the linear solve inside (Golub and Pereyra 1973).

    minimise over theta   f(theta) = 1/2 min_{beta, c} sum_b || tau_b - A_b beta - F_b(theta) c_b ||^2

Blocks ``b`` share ``beta`` (the rigid bodies) and have columns ``F_b`` of their own (the friction of one joint). ``A_b`` and
``tau_b`` never change, so their orthogonal factor is made once; a step then costs a few products with tall, narrow matrices.
The Jacobian of the projected residual is Kaufman's, ``J = -P dF c``, whose gradient ``J^T r`` is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray

COLLINEAR = 1e-9
"""Columns of a block that agree to this part count as one."""
LARGEST_STEP = 1.5


@dataclass(frozen=True, eq=False)
class Block:
    """Rows with columns of their own: ``[A tau] = Q R``, and ``A`` over the shared unknowns by ``expansion``."""

    Q: Array
    R: Array
    expansion: Array

    @classmethod
    def of(cls, A: Array, tau: Array, expansion: Array) -> Block:
        """From the rows themselves; ``tau`` is what the shared unknowns have to explain."""
        Q, R = np.linalg.qr(np.column_stack([A, tau]))
        return cls(np.ascontiguousarray(Q), R, expansion)


@dataclass(frozen=True, eq=False)
class Solution:
    """The linear unknowns at given columns, and half the squared residual that they leave."""

    shared: Array
    own: tuple[Array, ...]
    cost: float


@dataclass(frozen=True, eq=False)
class Search:
    """Where a search ended."""

    place: Array
    cost: float
    evaluations: int
    converged: bool


def solve_blocks(blocks: Sequence[Block], columns: Sequence[Array]) -> Solution:
    """``beta`` and every ``c_b`` for given columns ``F_b``."""
    parts = [_Eliminated(block, F) for block, F in zip(blocks, columns, strict=True)]
    stacked = np.vstack([part.rest for part in parts])
    shared = _lstsq(stacked[:, :-1], stacked[:, -1:])[:, 0]
    residual = stacked[:, -1] - stacked[:, :-1] @ shared
    return Solution(shared, tuple(part.own(shared) for part in parts), 0.5 * float(residual @ residual))


def curvature(blocks: Sequence[Block], columns: Sequence[Array], changes: Sequence[Array]) -> tuple[Array, Array]:
    """``J^T r`` and ``J^T J`` for changes ``dF_b c_b``, one column per nonlinear number, block after block."""
    parts = [_Eliminated(block, F, D) for block, F, D in zip(blocks, columns, changes, strict=True)]
    A = np.vstack([part.rest[:, :-1] for part in parts])
    right = scipy.linalg.block_diag(*(part.rest_changes for part in parts))
    right = np.column_stack([np.concatenate([part.rest[:, -1] for part in parts]), right])
    projected = right - A @ _lstsq(A, right)
    r, J = projected[:, 0], -projected[:, 1:]
    return J.T @ r, J.T @ J


def search(
    model: Callable[[Array], tuple[float, Array, Array]],
    start: Array,
    low: Array,
    high: Array,
    *,
    tolerance: float = 1e-5,
    most: int = 40,
) -> Search:
    """Levenberg-Marquardt within bounds; ``model`` gives cost, gradient and approximate Hessian at a place."""
    place = np.clip(start, low, high)
    cost, gradient, hessian = model(place)
    damping, evaluations = 1e-2, 1
    while evaluations < most:
        free = ~(((place <= low) & (gradient > 0.0)) | ((place >= high) & (gradient < 0.0)))
        if not free.any() or cost == 0.0:
            return Search(place, cost, evaluations, True)
        new = np.clip(place + _step(gradient, hessian, free, damping), low, high)
        moved = float(np.abs(new - place).max())
        new_cost, new_gradient, new_hessian = model(new)
        evaluations += 1
        if new_cost < cost:
            gained = cost - new_cost
            place, cost, gradient, hessian = new, new_cost, new_gradient, new_hessian
            damping = max(0.2 * damping, 1e-9)
            if gained < tolerance * cost:  # flat directions may still move, to no use
                return Search(place, cost, evaluations, True)
        else:
            damping *= 5.0
            if damping > 1e6 or moved < 1e-9:
                return Search(place, cost, evaluations, True)
    return Search(place, cost, evaluations, False)


def _step(gradient: Array, hessian: Array, free: BoolArray, damping: float) -> Array:
    H = hessian[np.ix_(free, free)]
    size = np.maximum(np.diag(H), 1e-12 * float(np.diag(hessian).max(initial=0.0)) + 1e-300)
    step = np.zeros_like(gradient)
    step[free] = -np.linalg.solve(H + damping * np.diag(size), gradient[free])
    return np.clip(step, -LARGEST_STEP, LARGEST_STEP)


class _Eliminated:
    """A block with its own columns eliminated: what is left for the shared unknowns to explain."""

    def __init__(self, block: Block, F: Array, D: Array | None = None) -> None:
        own, X = F.shape[1], F if D is None else np.hstack([F, D])
        C = block.Q.T @ X
        E = X - block.Q @ C
        again = block.Q.T @ E  # once more, so that what is left is orthogonal to working precision
        C, E = C + again, E - block.Q @ again
        small = np.vstack([C, np.linalg.qr(E, mode="r")])
        size = np.linalg.norm(small[:, :own], axis=0)
        self._size = np.where(size > 0.0, size, 1.0)
        U, s, Vt = np.linalg.svd(small[:, :own] / self._size)
        rank = int((s > COLLINEAR * s.max(initial=0.0)).sum())
        self._inverse = Vt[:rank].T / s[:rank]
        fixed = np.zeros((len(small), block.R.shape[1]))
        fixed[: len(block.R)] = block.R
        over_shared = np.column_stack([fixed[:, :-1] @ block.expansion, fixed[:, -1]])
        self._head = U[:, :rank].T @ over_shared
        self.rest = U[:, rank:].T @ over_shared
        self.rest_changes = U[:, rank:].T @ small[:, own:]

    def own(self, shared: Array) -> Array:
        """``c_b`` at given shared unknowns."""
        return np.asarray(self._inverse @ (self._head[:, -1] - self._head[:, :-1] @ shared) / self._size)


def _lstsq(A: Array, right: Array) -> Array:
    """Least squares with unit columns; directions that the rows do not show stay at zero."""
    if not A.shape[1]:
        return np.zeros((0, right.shape[1]))
    size = np.linalg.norm(A, axis=0)
    size = np.where(size > 0.0, size, 1.0)
    return np.asarray(np.linalg.lstsq(A / size, right, rcond=1e-9)[0] / size[:, None])
