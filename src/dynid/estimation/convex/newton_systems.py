"""The linear system of one interior-point iteration, by the parameters or by the rows.

By the parameters (:class:`ByParameters`), for a positive definite ``P``:

    (P + D) dx = r + A^T dnu,   A dx = e

By the rows (:class:`ByRows`), for ``P = F^T F`` that may see less than there is. With ``D`` block diagonal, ``dx = D^-1 (r + Fh^T u)`` and

    (Fh D^-1 Fh^T + Lambda) u = rho - Fh D^-1 r,     Fh = [F; G; A],   Lambda = (1, s / z, 0)

``F^T F`` is never formed, and what no row sees is held by ``D`` alone. Variables in no cone stay beside ``u``.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dpotrf, dpotrs

from dynid.arrays import Array, IntArray
from dynid.estimation.convex.block_kernels import add_blocks, half_hessians, scaled_hessians
from dynid.estimation.convex.interior_point import BlockProgram, Iterate


class ByParameters:
    """``1/2 x^T P x + q . x`` with a dense positive definite ``P``."""

    def __init__(self, program: BlockProgram, P: Array, q: Array) -> None:
        self._program = program
        self._P = np.asfortranarray(P)
        self._q = q
        self._H = np.empty_like(self._P)
        self._factor = self._H
        self._schur: tuple[Array, Array] | None = None

    def gradient(self, x: Array) -> Array:
        return np.asarray(self._P @ x + self._q)

    def value(self, x: Array) -> float:
        return float(0.5 * x @ (self._P @ x) + self._q @ x)

    def factor(self, now: Iterate, inverse: Array) -> bool:
        program = self._program
        weights = now.z / now.s
        hessians = np.empty((*program.slots.shape, program.slots.shape[1]))
        scaled_hessians(inverse, now.Z, program.slots, program.basis, hessians)
        np.copyto(self._H, self._P)
        add_blocks(hessians, program.slots, self._H)
        bounds, rows = weights[: len(program.bounded)], weights[len(program.bounded) :]
        np.add.at(self._H, (program.bounded, program.bounded), program.bound_slope**2 * bounds)
        if len(rows):
            self._H += (program.G.T * rows) @ program.G
        self._factor, info = dpotrf(self._H, lower=1, overwrite_a=1, clean=0)
        if info:
            return False
        if len(program.a):
            back = dpotrs(self._factor, np.asfortranarray(program.A.T), lower=1)[0]
            schur, info = dpotrf(program.A @ back, lower=1)
            self._schur = (schur, back)
        return not info

    def solve(self, right: Array, equalities: Array) -> tuple[Array, Array]:
        dx = dpotrs(self._factor, right, lower=1)[0]
        if self._schur is None:
            return dx, np.zeros(0)
        schur, back = self._schur
        dnu = dpotrs(schur, equalities - self._program.A @ dx, lower=1)[0]
        return dx + back @ dnu, dnu


class ByRows:
    """``1/2 ||F x - f||^2 + q . x``, where every variable is in a cone or seen by ``F`` and in none."""

    def __init__(self, program: BlockProgram, F: Array, f: Array, q: Array | None = None) -> None:
        self._program = program
        self._F, self._f = F, f
        self._q = np.zeros(program.n) if q is None else q
        self._rows = np.vstack([F, program.G, program.A])
        groups, width = _groups(program)
        self._group, self._place = groups
        self._width = width
        self._count = int(self._group.max(initial=-1)) + 1
        self._held = np.flatnonzero(self._group >= 0)
        self._free = np.flatnonzero(self._group < 0)
        self._spread = np.zeros((self._count, len(self._rows), width))
        self._spread[self._group[self._held], :, self._place[self._held]] = self._rows[:, self._held].T
        self._plan()

    def _plan(self) -> None:
        """Where the blocks' half Hessians stand in the stack of their group; bounds and ones for empty places below them."""
        program, side = self._program, self._program.basis.shape[2]
        height = np.zeros(self._count, dtype=np.int64)
        self._stack = []
        for slots in program.slots:
            used = np.flatnonzero(slots >= 0)
            k = int(self._group[slots[used[0]]]) if len(used) else -1
            self._stack.append((k, int(height[k]) if k >= 0 else 0, self._place[slots[used]], used))
            if k >= 0:
                height[k] += side * side
        at, group = program.bounded, self._group[program.bounded]
        first = np.zeros(len(at), dtype=np.int64)
        for i, k in enumerate(group):
            first[i] = height[k]
            height[k] += 1
        self._bound_stack = (group, first, self._place[at])
        self._height = int(height.max(initial=0)) + self._width
        filled = np.zeros((self._count, self._width), dtype=bool)
        filled[self._group[self._held], self._place[self._held]] = True
        self._empty = ~filled[:, :, None] & np.eye(self._width, dtype=bool)

    def gradient(self, x: Array) -> Array:
        return np.asarray(self._F.T @ (self._F @ x - self._f) + self._q)

    def value(self, x: Array) -> float:
        residual = self._F @ x - self._f
        return 0.5 * float(residual @ residual) + float(self._q @ x)

    def factor(self, now: Iterate, inverse: Array) -> bool:
        program = self._program
        weights = now.z / now.s
        side, width = program.basis.shape[2], program.slots.shape[1]
        halves = np.empty((len(program.slots), side * side, width))
        if not half_hessians(now.S, now.Z, program.slots, program.basis, halves):
            return False
        bounds, rows = weights[: len(program.bounded)], weights[len(program.bounded) :]
        stacked = np.zeros((self._count, self._height, self._width))
        for (k, first, place, used), half in zip(self._stack, halves, strict=True):
            if k >= 0:
                stacked[k, first : first + side * side, place] = half[:, used].T
        stacked[self._bound_stack] = program.bound_slope * np.sqrt(bounds)
        stacked[:, -self._width :][self._empty] = 1.0
        triangle = np.linalg.qr(stacked, mode="r")
        diagonal = np.abs(np.diagonal(triangle, axis1=1, axis2=2))
        if not (diagonal.min(initial=1.0) > 0.0 and np.isfinite(triangle).all()):
            return False
        self._triangle = triangle
        self._root = np.swapaxes(np.linalg.inv(triangle), 1, 2)  # D^-1 = root^T root, from small graded triangles
        m = len(self._rows)
        self._B = np.ascontiguousarray((self._spread @ np.swapaxes(self._root, 1, 2)).transpose(1, 0, 2).reshape(m, -1))
        M = scipy.linalg.blas.dsyrk(1.0, self._B, lower=1)
        self._Lambda = np.concatenate([np.ones(len(self._F)), 1.0 / np.maximum(rows, 1e-300), np.zeros(len(program.a))])
        M[np.arange(m), np.arange(m)] += self._Lambda
        if len(self._free):
            # F_f^T u is prescribed: a multiple of it may be added, which holds rows that see nothing else
            M += self._rows[:, self._free] @ self._rows[:, self._free].T
        self._M, info = dpotrf(M, lower=1, overwrite_a=1, clean=0)
        if info:
            return False
        if len(self._free):
            self._back = dpotrs(self._M, np.asfortranarray(self._rows[:, self._free]), lower=1)[0]
            self._small, info = dpotrf(self._rows[:, self._free].T @ self._back, lower=1)
        return not info

    def solve(self, right: Array, equalities: Array) -> tuple[Array, Array]:
        """The weights of inequalities that ``right`` already holds are those of :meth:`factor`."""
        program = self._program
        rho = np.concatenate([np.zeros(len(self._F) + len(program.g)), equalities])
        dx, u = self._once(right, rho)
        # once more on what is left: the digits that large and small blocks took from one another
        held_back = self._curvature(dx)
        more, du = self._once(right + self._rows.T @ u - held_back, rho - self._rows @ dx - self._Lambda * u)
        return dx + more, (u + du)[len(self._F) + len(program.g) :]

    def _curvature(self, dx: Array) -> Array:
        """``D dx``; zero for variables in no cone."""
        packed = self._pack(dx)
        out = np.zeros(len(dx))
        curved = np.swapaxes(self._triangle, 1, 2) @ (self._triangle @ packed[:, :, None])
        out[self._held] = curved[self._group[self._held], self._place[self._held], 0]
        return out

    def _pack(self, vector: Array) -> Array:
        packed = np.zeros((self._count, self._width))
        packed[self._group[self._held], self._place[self._held]] = vector[self._held]
        return packed

    def _once(self, right: Array, rho: Array) -> tuple[Array, Array]:
        r = (self._root @ self._pack(right)[:, :, None])[:, :, 0].ravel()
        given = rho - self._B @ r
        dx = np.zeros(len(right))
        if len(self._free):
            columns, prescribed = self._rows[:, self._free], -right[self._free]
            u = dpotrs(self._M, given + columns @ prescribed, lower=1)[0]
            dx[self._free] = dpotrs(self._small, columns.T @ u - prescribed, lower=1)[0]
            u = u - self._back @ dx[self._free]
        else:
            u = dpotrs(self._M, given, lower=1)[0]
        moved = (r + self._B.T @ u).reshape(self._count, self._width)
        back = (np.swapaxes(self._root, 1, 2) @ moved[:, :, None])[:, :, 0]
        dx[self._held] = back[self._group[self._held], self._place[self._held]]
        return dx, u


def _groups(program: BlockProgram) -> tuple[tuple[IntArray, IntArray], int]:
    """Group and place in it of every variable: those that share a block together, a bounded one alone, others in none."""
    leader = np.arange(program.n)

    def lead(i: int) -> int:
        while leader[i] != i:
            i = int(leader[i])
        return i

    used_by = [slots[slots >= 0] for slots in program.slots]
    for used in used_by:
        for i in used[1:]:
            leader[lead(int(i))] = lead(int(used[0]))
    held = np.zeros(program.n, dtype=bool)
    held[program.bounded] = True
    for used in used_by:
        held[used] = True
    group = np.full(program.n, -1, dtype=np.int64)
    place = np.zeros(program.n, dtype=np.int64)
    members: dict[int, int] = {}
    sizes: list[int] = []
    for i in np.flatnonzero(held):
        first = lead(int(i))
        if first not in members:
            members[first] = len(sizes)
            sizes.append(0)
        k = members[first]
        group[i], place[i] = k, sizes[k]
        sizes[k] += 1
    return (group, place), max(sizes, default=1)
