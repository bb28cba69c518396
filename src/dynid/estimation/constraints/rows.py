"""Rows of a constraint, and the checks that all constraints share.

Each constraint writes itself as rows ``M phi + k`` that must lie in a cone: zero (equalities), not negative (inequalities), or
second-order (``||tail|| <= head``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray
from dynid.errors import InputError
from dynid.estimation.convex.layout import Layout

Axis: TypeAlias = Literal["x", "y", "z"]
AXES: tuple[Axis, ...] = ("x", "y", "z")
Vector: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Rows:
    """``M phi + k`` in one cone, as triplets over the variables of a layout."""

    cone: Literal["zero", "nonnegative", "second_order"]
    label: str
    row: IntArray
    column: IntArray
    value: Array
    offset: Array
    strict: bool = False
    """Whether an absolute margin applies to these rows too."""


class Constraint(Protocol):
    """Something known of the parameters."""

    kind: ClassVar[str]

    def rows(self, layout: Layout) -> tuple[Rows, ...]: ...


def rows_of(
    cone: Literal["zero", "nonnegative", "second_order"],
    label: str,
    columns: IntArray,
    matrix: ArrayLike,
    offset: ArrayLike | None = None,
    strict: bool = False,
) -> Rows:
    """Rows from a small dense matrix over the given variables."""
    M = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    row, entry = np.nonzero(M)
    k = np.zeros(len(M)) if offset is None else np.atleast_1d(np.asarray(offset, dtype=np.float64))
    return Rows(cone, label, row, np.asarray(columns)[entry], M[row, entry], k, strict)


def checked_vector(name: str, values: Sequence[float]) -> Vector:
    """Three finite numbers, or a refusal that names what they should be."""
    numbers = tuple(float(value) for value in values)
    if len(numbers) != 3 or not np.isfinite(numbers).all():
        raise InputError(f"{name} is {list(values)}, expected three finite numbers")
    return numbers[0], numbers[1], numbers[2]


def checked_positive(name: str, value: float) -> float:
    """A positive number, or a refusal."""
    if not (np.isfinite(value) and value > 0.0):
        raise InputError(f"{name} is {value:g}, expected a positive number")
    return float(value)


def check_between(what: str, lower: float, upper: float) -> None:
    """Refuse bounds in the wrong order, or none at all."""
    if np.isnan(lower) or np.isnan(upper) or lower > upper:
        raise InputError(f"{what} has lower bound {lower:g} and upper bound {upper:g}, expected lower <= upper")
    if np.isinf(lower) and np.isinf(upper):
        raise InputError(f"{what} has no bound, expected a lower or an upper one")


def bounded_rows(label: str, columns: IntArray, coefficients: Array, lower: float, upper: float) -> tuple[Rows, ...]:
    """``lower <= a . phi <= upper``, as an equality where both are the same."""
    if lower == upper:
        return (rows_of("zero", label, columns, coefficients, -lower),)
    found = []
    if np.isfinite(lower):
        found.append(rows_of("nonnegative", f"{label} >= {lower:g}", columns, coefficients, -lower))
    if np.isfinite(upper):
        found.append(rows_of("nonnegative", f"{label} <= {upper:g}", columns, -coefficients, upper))
    return tuple(found)
