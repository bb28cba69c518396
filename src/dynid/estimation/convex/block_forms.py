"""A consistent set as blocks for the interior-point method, as it is or reduced to its faces.

Second-order cones become arrow matrices ``[[h 1, t], [t^T, h]]``; rows of one variable alone become bounds. In the reduced form
links with null bodies (:mod:`dynid.estimation.convex.faces`) keep only what their face asks for, in coordinates ``x = T xi``:
those the face sees, and those only the rows see, which are then free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.adapters.clarabel import matrix_from_rows
from dynid.arrays import Array, IntArray
from dynid.estimation.convex.consistent_set import BASES, ConsistentSet
from dynid.estimation.convex.faces import null_body
from dynid.estimation.convex.interior_point import BlockProgram

SEEN = 1e-11
"""Relative size below which a combination of parameters counts as without effect."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The linear rows of a set, dense, with where they stand among its cones' rows."""

    bounded: IntArray
    slope: Array
    offset: Array
    bound_at: IntArray
    G: Array
    g: Array
    inequality_at: IntArray
    A: Array
    a: Array
    equality_at: IntArray


def linear_rows(consistent: ConsistentSet) -> Rows:
    """Bounds of single variables, inequalities, equalities."""
    first = consistent.first_matrix_row
    dense = consistent.M[:first].toarray() if first else np.zeros((0, consistent.n))
    bounded, slope, offset, bound_at = [], [], [], []
    at: dict[str, list[int]] = {"nonnegative": [], "zero": []}
    for (kind, size), start in zip(consistent.cones, consistent.starts, strict=False):
        if kind not in at:
            continue
        for row in range(start, start + size):
            entries = np.flatnonzero(dense[row])
            if kind == "nonnegative" and len(entries) == 1:
                bounded.append(int(entries[0]))
                slope.append(float(dense[row, entries[0]]))
                offset.append(float(consistent.k[row]))
                bound_at.append(row)
            else:
                at[kind].append(row)
    more, equal = (np.array(at[kind], dtype=np.int64) for kind in ("nonnegative", "zero"))
    return Rows(
        np.array(bounded, dtype=np.int64),
        np.array(slope),
        np.array(offset),
        np.array(bound_at, dtype=np.int64),
        dense[more],
        consistent.k[more],
        more,
        dense[equal],
        -consistent.k[equal],
        equal,
    )


def block_program(consistent: ConsistentSet) -> BlockProgram:
    """The set as it is, around zero."""
    slots, basis, constant = link_blocks(consistent)
    arrows = arrow_blocks(consistent, basis.shape[2])
    if len(arrows[0]):
        slots, basis, constant = (np.concatenate(pair) for pair in zip((slots, basis, constant), arrows, strict=True))
    rows = linear_rows(consistent)
    return BlockProgram(
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


@dataclass(frozen=True, eq=False)
class ReducedForm:
    """The set seen by some rows: ``x = T xi + sum_k t_k null_k`` with ``t_k`` as large as needed."""

    program: BlockProgram
    T: Array
    """``(n, n_reduced)``"""
    nulls: tuple[tuple[int, Array], ...]
    """Row of the layout and null body (scaled, over the variables of that link) of every reduced link."""
    rows: Rows
    """Those of the whole set."""
    kept: IntArray
    """Inequalities that are left."""
    links: int
    """Blocks that stand for links; those after them for second-order cones."""


def reduced_form(consistent: ConsistentSet, E: Array) -> ReducedForm:
    """The closure of the base values ``E x`` of the set, as the image of a cone with attained optima."""
    slots, basis, constant = link_blocks(consistent)
    arrows = arrow_blocks(consistent, basis.shape[2])
    rows = linear_rows(consistent)
    dense = np.vstack([rows.G, rows.A])
    seen = np.vstack([E, dense])
    identity = np.eye(consistent.n)
    columns: list[Array] = []
    new_slots = np.full_like(slots, -1)
    nulls: list[tuple[int, Array]] = []
    dropped = np.zeros(len(rows.g), dtype=bool)
    in_arrows = set(arrows[0][arrows[0] >= 0].tolist())
    basis, constant = np.array(basis), np.array(constant)
    taken = np.zeros(consistent.n, dtype=bool)
    for k, at in enumerate(slots):
        taken[at] = True
        body = None if in_arrows & set(at.tolist()) else _recession(E[:, at], rows, at, consistent.condition)
        if body is None:
            new_slots[k] = np.arange(len(columns), len(columns) + 10)
            columns.extend(identity[:, i] for i in at)
            continue
        face, fixed, range_, rest = _face(basis[k], constant[k], body)
        dropped |= rows.G[:, at] @ body > SEEN
        basis[k], constant[k] = 0.0, fixed
        basis[k, : range_.shape[1]] = np.einsum("ac,aij->cij", range_, face)
        new_slots[k, : range_.shape[1]] = np.arange(len(columns), len(columns) + range_.shape[1])
        free = rest @ _seen_directions(seen[:, at] @ rest)
        columns.extend(identity[:, at] @ np.hstack([range_, free]).T[:, :, None].squeeze(-1).T)
        nulls.append((k, body))
    others = np.flatnonzero(~taken)
    place = np.full(consistent.n, -1, dtype=np.int64)
    for i in others:
        place[i] = len(columns)
        columns.append(identity[:, i])
    T = np.array(columns).T
    kept = np.flatnonzero(~dropped)
    program = _reduced_program(T, new_slots, basis, constant, arrows, rows, kept, consistent.n)
    return ReducedForm(program, T, tuple(nulls), rows, kept, len(slots))
