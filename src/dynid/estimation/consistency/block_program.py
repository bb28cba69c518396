"""A consistent set as blocks for the interior-point method, and the linear system of one of its iterations.

    minimise  1/2 ||F x - f||^2 + q . x - sum_b w_b log det S_b(x)
    subject to  S_b(x) >= 0,   lower bounds  c_i x_i + b_i >= 0,   G x + g >= 0,   A x = a

Most weights ``w_b`` are zero; those of an entropic prior are not. Second-order cones become arrow matrices
``[[h 1, t], [t^T, h]]``; rows of one variable alone become bounds. The system is solved by the rows of ``F``, which may see less
than there is. With ``D`` block diagonal, ``dx = D^-1 (r + Fh^T u)`` and

    (Fh D^-1 Fh^T + Lambda) u = rho - Fh D^-1 r,     Fh = [F; G; A],   Lambda = (1, s / z, 0)

``F^T F`` is never formed, which would square the condition number, and what no row sees is held by ``D`` alone. Variables in no
cone stay beside ``u``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sparse
from scipy.linalg.lapack import dpotrf, dpotrs

from dynid.arrays import Array, IntArray
from dynid.estimation.consistency.block_kernels import add_adjoint, block_values, half_hessians
from dynid.estimation.consistency.conic_solver import matrix_from_rows
from dynid.estimation.consistency.consistent_set import BASES, ConsistentSet


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """The constraints: blocks, lower bounds of single variables, inequalities, equalities."""

    n: int
    slots: IntArray
    """``(blocks, width)``: the variable of each basis matrix; below zero where there is none."""
    basis: Array
    """``(blocks, width, side, side)``"""
    constant: Array
    """``(blocks, side, side)``"""
    bounded: IntArray
    """Variables with a lower bound ``bound_slope x + bound_offset >= 0``."""
    bound_slope: Array
    bound_offset: Array
    G: Array
    g: Array
    A: Array
    a: Array
    log_weight: Array
    """``(blocks,)``: weight of ``-log det S_b`` in the objective."""

    @classmethod
    def of(cls, consistent: ConsistentSet) -> BlockProgram:
        """The set as it is, around zero."""
        slots, basis, constant = link_blocks(consistent)
        arrows = arrow_blocks(consistent, basis.shape[2])
        if len(arrows[0]):
            slots, basis, constant = (np.concatenate(pair) for pair in zip((slots, basis, constant), arrows, strict=True))
        rows = consistent.linear
        return cls(
            consistent.n,
            slots,
            np.ascontiguousarray(basis),
            np.ascontiguousarray(constant),
            rows.bounded,
            rows.slope,
            rows.offset,
            rows.G,
            rows.g,
            rows.A,
            rows.a,
            np.zeros(len(slots)),
        )

    def around(self, centre: Array) -> BlockProgram:
        """The same over steps from a point."""
        return replace(
            self,
            constant=self.blocks(centre),
            bound_offset=self.bound_offset + self.bound_slope * centre[self.bounded],
            g=self.g + self.G @ centre,
            a=self.a - self.A @ centre,
        )

    def with_log_det(self, slots: IntArray, basis: Array, weight: float) -> BlockProgram:
        """With ``-weight log det`` of further blocks, ``sum_a x[slots[b, a]] basis[a]`` each, in the objective."""
        count, side = len(slots), self.basis.shape[2]
        more = np.zeros((count, self.basis.shape[1], side, side))
        more[:, : len(basis), : basis.shape[1], : basis.shape[1]] = basis
        empty = np.diag((np.arange(side) >= basis.shape[1]).astype(float))  # filled up with ones, whose logarithm is zero
        return replace(
            self,
            slots=np.ascontiguousarray(np.concatenate([self.slots, slots])),
            basis=np.ascontiguousarray(np.concatenate([self.basis, more])),
            constant=np.ascontiguousarray(np.concatenate([self.constant, np.tile(empty, (count, 1, 1))])),
            log_weight=np.concatenate([self.log_weight, np.full(count, weight)]),
        )

    @property
    def degree(self) -> int:
        """Of the barrier: what the gap is divided by."""
        plain = int(np.count_nonzero(self.log_weight == 0.0))
        return max(plain * int(self.basis.shape[2]) + len(self.bounded) + len(self.g), 1)

    def gap(self, at: Iterate) -> float:
        """Complementarity of what the objective does not hold inside itself: ``sum_b <S_b, Z_b> + s . z``."""
        plain = self.log_weight == 0.0
        return float(np.vdot(at.S[plain], at.Z[plain]) + at.s @ at.z)

    def blocks(self, x: Array, homogeneous: bool = False) -> Array:
        """``S_b(x)``, without the constant if ``homogeneous``."""
        out = np.empty_like(self.constant)
        block_values(x, self.slots, self.basis, np.zeros_like(self.constant) if homogeneous else self.constant, out)
        return out

    def adjoint(self, matrices: Array, linear: Array) -> Array:
        """``S^*(M) + (bounds, G)^T linear``: the gradient of what multipliers weigh."""
        bounds = len(self.bounded)
        out = self.G.T @ linear[bounds:] if len(self.g) else np.zeros(self.n)
        add_adjoint(matrices, self.slots, self.basis, 1.0, out)
        np.add.at(out, self.bounded, self.bound_slope * linear[:bounds])
        return out

    def linear(self, x: Array, homogeneous: bool = False) -> Array:
        """Bounds and inequalities, one after the other."""
        bounds = self.bound_slope * x[self.bounded]
        at = np.concatenate([bounds, self.G @ x]) if len(self.g) else bounds
        return at if homogeneous else at + np.concatenate([self.bound_offset, self.g])


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point of the iteration."""

    x: Array
    S: Array
    Z: Array
    s: Array
    z: Array
    nu: Array

    def moved(self, move: Iterate, reach: float) -> Iterate:
        """This point after ``reach`` times a step."""
        return Iterate(
            self.x + reach * move.x,
            self.S + reach * move.S,
            self.Z + reach * move.Z,
            self.s + reach * move.s,
            self.z + reach * move.z,
            self.nu + reach * move.nu,
        )


def link_blocks(consistent: ConsistentSet) -> tuple[IntArray, Array, Array]:
    """Slots, basis and constant of every link's matrix inequality."""
    first, count, side = consistent.matrix_rows
    slots = np.ascontiguousarray(consistent.layout.slots[consistent.link_rows])
    basis = np.tile(BASES[consistent.condition], (count, 1, 1, 1))
    constant = matrix_from_rows(consistent.k[first:].reshape(count, -1), side)
    return slots, basis, constant


def arrow_blocks(consistent: ConsistentSet, side: int) -> tuple[IntArray, Array, Array]:
    """Second-order cones as arrow matrices, filled up to ``side`` with ones."""
    slots, basis, constant = [], [], []
    for (kind, size), start in zip(consistent.cones, consistent.starts, strict=False):
        if kind != "second_order":
            continue
        rows: Any = consistent.M[start : start + size].toarray()
        used = np.flatnonzero(np.abs(rows).max(axis=0))
        at = np.full(10, -1, dtype=np.int64)
        at[: len(used)] = used
        B = np.zeros((10, side, side))
        B[: len(used)] = np.array([_arrow(rows[:, i], side) for i in used])
        C = _arrow(consistent.k[start : start + size], side)
        rest = np.arange(size, side)
        C[rest, rest] = 1.0
        slots.append(at)
        basis.append(B)
        constant.append(C)
    if not slots:
        return np.zeros((0, 10), dtype=np.int64), np.zeros((0, 10, side, side)), np.zeros((0, side, side))
    return np.array(slots), np.array(basis), np.array(constant)


def _arrow(row: Array, side: int) -> Array:
    size = len(row)
    matrix = np.zeros((side, side))
    matrix[np.arange(size), np.arange(size)] = row[0]
    matrix[0, 1:size] = matrix[1:size, 0] = row[1:]
    return matrix


class RowSystem:
    """``1/2 ||F x - f||^2 + q . x``, where every variable is in a cone or seen by ``F`` and in none."""

    def __init__(self, program: BlockProgram, F: Array, f: Array, q: Array | None = None) -> None:
        self.program = program
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
        program, side = self.program, self.program.basis.shape[2]
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

    def factor(self, now: Iterate) -> bool:
        """Factor the system at an iterate; False where it is singular."""
        program = self.program
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
        """``dx`` and the change of the equalities' multipliers for ``H dx - A^T dnu = right``, ``A dx = equalities``.

        The weights of inequalities that ``right`` already holds are those of :meth:`factor`.
        """
        program = self.program
        rho = np.concatenate([np.zeros(len(self._F) + len(program.g)), equalities])
        dx, u = self._once(right, rho)
        # once more on what is left, ``D dx`` (zero for variables in no cone) taken away: the digits that large and small
        # blocks took from one another
        packed = self._pack(dx)
        held_back = np.zeros(len(dx))
        curved = np.swapaxes(self._triangle, 1, 2) @ (self._triangle @ packed[:, :, None])
        held_back[self._held] = curved[self._group[self._held], self._place[self._held], 0]
        more, du = self._once(right + self._rows.T @ u - held_back, rho - self._rows @ dx - self._Lambda * u)
        return dx + more, (u + du)[len(self._F) + len(program.g) :]

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
    from scipy.sparse.csgraph import connected_components  # the compiled fits do without

    block, at = np.nonzero(program.slots >= 0)
    used = program.slots[block, at]
    shared = sparse.coo_matrix((np.ones(len(used)), (block, used)), shape=(len(program.slots), program.n))
    labels = connected_components(shared.T @ shared, directed=False)[1]
    held = np.union1d(used, program.bounded)
    group, place = np.full(program.n, -1, dtype=np.int64), np.zeros(program.n, dtype=np.int64)
    _, first, group[held] = np.unique(labels[held], return_index=True, return_inverse=True)
    group[held] = np.argsort(np.argsort(first))[group[held]]  # numbered in the order of their first variables
    sizes = np.bincount(group[held], minlength=1)
    for k in range(len(first)):
        place[group == k] = np.arange(sizes[k])
    return (group, place), int(sizes.max())
