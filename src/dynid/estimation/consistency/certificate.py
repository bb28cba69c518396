"""Proofs that survive exact arithmetic: how low a combination of base values can get over the consistent set.

For multipliers ``w`` of the constraints beside consistency and any direction ``d`` of base values the functional

    f . x = d . E x - w . (M x)

splits by links, ``f_k . x_k = <Z_k, A(x_k)>``, and ``Z_k + delta 1 >= 0`` gives ``<Z_k, A> >= -delta tr A``. Hence

    d . E x >= bound - defect T(x),      T(x) = sum_k tr A(x_k) + sum |effects|

for every consistent ``x``: ``T`` is the size of all bodies together, in sizes of a link. The numbers given (``K``, the scales, ``d``,
``w``) are taken as the fractions they are; ``f`` is summed in whole numbers, and ``Z + delta 1`` is decomposed in fractions. So the
statement holds whatever the machine and its libraries rounded on the way to ``d``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dynid.arrays import Array, freeze
from dynid.estimation.consistency.conic_solver import matrix_from_rows, triangle_entries
from dynid.estimation.consistency.consistent_set import BASES, ConsistentSet

REACH = 1e8
"""Size of all bodies together, in sizes of a link, for which a proof must hold: far beyond any robot and any certificate."""
ROUND_OFF = 1e-15
"""Relative error of base values that were themselves computed from bodies."""
Exact: TypeAlias = npt.NDArray[np.object_]
"""Fractions."""


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Of the rows of a consistent set, those of consistency left out where they follow from the direction."""

    direction: Array
    """``d``, over base values."""
    rows: Array
    """``w``, over all rows before the matrix inequalities; bounds of effects may be zero here, they follow."""
    blocks: Array
    """``(links, side, side)``: used where the direction leaves them a choice (plain condition)."""
    residual: Array
    """``y`` with ``d = R^T y``, in the metric ``||R d||`` of base values."""
    faces: tuple[Array, ...]
    """``(side, r)`` of every link: directions in which its block may be anything but zero."""

    def mixed(self, other: Multipliers, share: float) -> Multipliers:
        """``(1 - share)`` of these and ``share`` of others."""
        pairs = (
            (self.direction, other.direction),
            (self.rows, other.rows),
            (self.blocks, other.blocks),
            (self.residual, other.residual),
        )
        direction, rows, blocks, residual = ((1.0 - share) * own + share * new for own, new in pairs)
        return Multipliers(direction, rows, blocks, residual, self.faces)


@dataclass(frozen=True, eq=False)
class Certificate:
    """``d . E x >= bound - defect T(x)`` for every ``x`` of the set."""

    direction: Array
    bound: float
    defect: float
    multipliers: Array
    """Of all rows of the cones, to say which of them matter."""
    size: float
    """What one unit of body can contribute to ``d . E x``, to judge round-off by."""

    def least(self, reach: float = REACH) -> float:
        """The bound for bodies up to this size."""
        return self.bound - self.defect * reach

    def error(self, values: Array, reach: float = REACH) -> float:
        """What round-off of base values computed from bodies up to this size, and the defect, may add up to."""
        rounding = float(np.abs(self.direction) @ np.abs(values) + abs(self.bound) + self.size * reach)
        return self.defect * reach + ROUND_OFF * rounding

    def separates(self, values: Array, reach: float = REACH) -> bool:
        """Whether no body up to this size has these base values, by twice what errors may add up to."""
        return self.bound - float(self.direction @ values) > 2.0 * self.error(values, reach)


def certify(consistent: ConsistentSet, K: Array, given: Multipliers, exact: bool = True) -> Certificate:
    """What the multipliers prove of ``d . K phi``; in floating point only, to compare candidates, unless ``exact``."""
    d = np.where(np.abs(given.direction) > 1e-30 * np.abs(given.direction).max(initial=0.0), given.direction, 0.0)
    w = _in_dual_cone(consistent, given.rows)
    named = K.shape[1]
    scale = consistent.scale
    rough = np.zeros(consistent.n)
    rough[:named] = (K.T @ d) * scale[:named]
    first = consistent.first_matrix_row
    rows = consistent.M[:first]
    rough = rough - (rows.T @ w if first else 0.0)
    slots = consistent.layout.slots[consistent.link_rows]
    near = _on_faces(rough[slots], given) if consistent.condition == "plain" else given.blocks
    blocks = _blocks(rough[slots], near, consistent.condition)
    functional = _functional(consistent, K, d, w) if exact else []
    if exact:
        made = [
            _exact_block([functional[i] for i in at], Z, consistent.condition) for at, Z in zip(slots, near, strict=True)
        ]
        blocks, deltas = np.array([Z for Z, _ in made]), np.array([delta for _, delta in made])
    else:
        deltas = np.maximum(-np.linalg.eigvalsh(blocks)[:, 0], 0.0)
    side = blocks.shape[1]
    constants = matrix_from_rows(consistent.k[first:].reshape(len(slots), -1), side)
    least = -float(np.vdot(blocks + deltas[:, None, None] * np.eye(side), constants))
    defects = [0.0, *deltas.tolist()]
    in_links = np.zeros(consistent.n, dtype=bool)
    in_links[slots] = True
    bounds: dict[int, tuple[float, float, int]] = {}  # the first lower bound of every variable that has one
    single = consistent.linear
    for i, slope, offset, row in zip(single.bounded, single.slope, single.offset, single.bound_at, strict=True):
        if slope > 0.0:
            bounds.setdefault(int(i), (float(slope), float(offset), int(row)))
    total = np.array(w)
    for i in np.flatnonzero(~in_links):
        value = float(functional[i]) if exact else float(rough[i])
        if int(i) in bounds and value > 0.0:
            slope, offset, row = bounds[int(i)]
            total[row] += value / slope
            least -= offset * value / slope
        else:
            defects.append(abs(value))
    least -= float(w @ consistent.k[:first])
    at, across, weight = triangle_entries(side)
    side_rows = (blocks[:, at, across] * weight).ravel()
    error = 1e-14 * (abs(least) + float(np.abs(w) @ np.abs(consistent.k[:first])))
    size = float(np.abs(rough).max(initial=0.0))
    return Certificate(freeze(d), least - error, max(defects), np.concatenate([total, side_rows]), size)


def exactly_consistent(bodies: Array, condition: str) -> bool:
    """Whether the matrices of these bodies, ten numbers each, are positive semidefinite in exact arithmetic."""
    basis = _exactly(BASES[condition])
    return all(_is_semidefinite(np.tensordot(body, basis, 1), Fraction(0)) for body in _exactly(np.atleast_2d(bodies)))


def _exactly(values: Array) -> Exact:
    """Floating-point numbers as the fractions they are."""
    return np.array([Fraction(float(value)) for value in values.ravel()], dtype=object).reshape(values.shape)


def _in_dual_cone(consistent: ConsistentSet, rows: Array) -> Array:
    """Multipliers of linear and second-order rows, what lies outside the dual cones cut off."""
    w = np.array(rows)
    for (kind, size), first in zip(consistent.cones, consistent.starts, strict=False):
        if kind == "nonnegative":
            w[first : first + size] = np.maximum(w[first : first + size], 0.0)
        elif kind == "second_order":
            tail = float(np.linalg.norm(w[first + 1 : first + size]))
            w[first] = max(w[first], tail * (1.0 + 1e-14))
    return w


def _on_faces(f: Array, given: Multipliers) -> Array:
    """The plain condition's blocks with what they miss of the functional made up for.

    First within their faces, then between face and rest, where a small entry costs its square; nothing goes to the rest alone.
    """
    basis = BASES["plain"]
    made = np.array(given.blocks)
    for Z, U, wanted in zip(made, given.faces, f, strict=True):
        if not U.shape[1]:
            continue
        whole = np.linalg.svd(U)[0]  # the face's directions first, then the others
        r, side = U.shape[1], len(U)
        whole[:, :r] = U
        for columns in (r, side):
            missing = wanted - np.einsum("aij,ij->a", basis, Z)
            smaller = 2.0 * (U.T @ basis @ whole[:, :columns]).reshape(10, -1)
            part = U @ np.linalg.lstsq(smaller, missing, rcond=1e-12)[0].reshape(r, -1) @ whole[:, :columns].T
            Z += part + part.T
    return made


def _blocks(f: Any, Z: Any, condition: str) -> Any:
    """``Z`` with ``<Z, A(x)> = f . x``: the only one (full), or the one nearest to a given one in what is left open.

    Of floating-point numbers, or in exact arithmetic of fractions.
    """
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = f.T
    inertia = np.array([[2 * xx, xy, xz], [xy, 2 * yy, yz], [xz, yz, 2 * zz]]).transpose(2, 0, 1) / 2
    if condition == "full":
        made = np.empty((len(f), 4, 4), dtype=f.dtype)
        made[:, :3, :3] = (xx + yy + zz)[:, None, None] * np.eye(3, dtype=f.dtype) - inertia
        made[:, :3, 3] = made[:, 3, :3] = f[:, 1:4] / 2
        made[:, 3, 3] = m
        return made
    made = (Z + np.swapaxes(Z, 1, 2)) / 2
    made[:, :3, :3] = inertia
    for (i, j), h in zip(_SKEW, (hx, hy, hz), strict=True):
        even = (made[:, i, 3 + j] + made[:, j, 3 + i]) / 2
        # <Z, A> has 2 (Z[i, 3 + j] - Z[j, 3 + i]) of this moment
        made[:, i, 3 + j], made[:, j, 3 + i] = even + h / 4, even - h / 4
    made[:, 3:, :3] = np.swapaxes(made[:, :3, 3:], 1, 2)
    made[:, 5, 5] = m - made[:, 3, 3] - made[:, 4, 4]
    return made


_SKEW = ((2, 1), (0, 2), (1, 0))
"""Where the plain matrix has each first moment with a plus sign, in its upper right block."""


def _exact_block(f: Sequence[Fraction], Z: Array, condition: str) -> tuple[Array, float]:
    """The block in floating point, and a shift that makes its exact form positive semidefinite."""
    rough = _blocks(np.array([[float(value) for value in f]]), Z[None], condition)[0]
    matrix = _blocks(np.array([f], dtype=object), _exactly(rough)[None], condition)[0]
    delta = max(-float(np.linalg.eigvalsh(rough)[0]), 0.0)
    tiny = 1e-17 * max(float(np.abs(rough).max()), 1e-300)
    while not _is_semidefinite(matrix, Fraction(delta)):
        delta = max(2.0 * delta, tiny)
    return rough, delta


def _is_semidefinite(matrix: Exact, shift: Fraction) -> bool:
    """Whether ``matrix + shift 1`` is positive semidefinite, by elimination with the largest pivot first."""
    A = [[value + shift if i == j else value for j, value in enumerate(row)] for i, row in enumerate(matrix)]
    left = list(range(len(A)))
    while left:
        p = max(left, key=lambda i: A[i][i])
        pivot = A[p][p]
        if pivot < 0:
            return False
        left.remove(p)
        if pivot == 0:
            return all(A[i][j] == 0 for i in [p, *left] for j in [p, *left])
        for i in left:
            factor = A[i][p] / pivot
            for j in left:
                A[i][j] -= factor * A[p][j]
    return True


def _functional(consistent: ConsistentSet, K: Array, d: Array, w: Array) -> list[Fraction]:
    """``E^T d - M^T w``, exactly."""
    weights, shift_d = _whole(d)
    found = []
    for a in range(consistent.n):
        total = Fraction(0)
        if a < K.shape[1]:
            column = K[:, a]
            used = np.flatnonzero((column != 0.0) & (d != 0.0))
            if len(used):
                entries, shift = _whole(column[used])
                whole = sum(weights[i] * entry for i, entry in zip(used.tolist(), entries, strict=True))
                total = whole * Fraction(2) ** (shift_d + shift) * Fraction(float(consistent.scale[a]))
        found.append(total)
    first = consistent.first_matrix_row
    if first and w.any():
        by_row = consistent.M[:first].tocsr()
        for row in np.flatnonzero(w):
            weight = Fraction(float(w[row]))
            for place in range(by_row.indptr[row], by_row.indptr[row + 1]):
                found[int(by_row.indices[place])] -= weight * Fraction(float(by_row.data[place]))
    return found


def _whole(values: Array) -> tuple[list[int], int]:
    """Whole numbers ``n`` and ``s`` with ``values = n 2^s``."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64).tolist()
    powers = (exponent - 53).tolist()
    least = min((p for n, p in zip(whole, powers, strict=True) if n), default=0)
    return [n << (p - least) if n else 0 for n, p in zip(whole, powers, strict=True)], least
