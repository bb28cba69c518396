"""A consistent set as blocks for the interior-point method.

Second-order cones become arrow matrices ``[[h 1, t], [t^T, h]]``; rows of one variable alone become bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.adapters.clarabel import matrix_from_rows
from dynid.arrays import Array, IntArray
from dynid.estimation.convex.consistent_set import BASES, ConsistentSet
from dynid.estimation.convex.interior_point import BlockProgram


def block_program(consistent: ConsistentSet) -> BlockProgram:
    """The set as it is, around zero."""
    slots, basis, constant = link_blocks(consistent)
    arrows = arrow_blocks(consistent, basis.shape[2])
    if len(arrows[0]):
        slots, basis, constant = (np.concatenate(pair) for pair in zip((slots, basis, constant), arrows, strict=True))
    rows = consistent.linear
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
