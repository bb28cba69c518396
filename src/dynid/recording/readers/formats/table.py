"""What every file format is turned into: named columns that are read in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InputError
from dynid.recording.finding import Finding

Batch = dict[str, NDArray[Any]]

#: Key of a batch under which a reader counts lines that it could not split; no column can be called so.
MALFORMED = ""


class Table(Protocol):
    """Columns of a log; only names and shapes are read before :meth:`batches` is walked through."""

    @property
    def format(self) -> str:
        """Name of the file format."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Column name to the shape of one row's entry: ``()`` for a number."""

    @property
    def element_names(self) -> Mapping[str, Sequence[str]]:
        """Names of the elements of list columns, where the file has them."""

    @property
    def units(self) -> Mapping[str, str]:
        """Units of time columns, where the file states them."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the file for the user."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the file."""

    @property
    def n_rows(self) -> int | None:
        """Rows in the file, None where that is known only after reading."""

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Batch]:
        """Batches of about ``rows`` rows: integer or float arrays, NaN where a value is absent."""


@dataclass(frozen=True)
class ArrayTable:
    """A table whose columns lie in memory."""

    format: str
    arrays: Mapping[str, NDArray[Any]]
    element_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of one row's entry per column."""
        return {name: array.shape[1:] for name, array in self.arrays.items()}

    @property
    def n_rows(self) -> int:
        """Rows in the file."""
        return max((len(array) for array in self.arrays.values()), default=0)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Batch]:
        """Slices of the arrays."""
        for start in range(0, self.n_rows, rows):
            yield {name: self.arrays[name][start : start + rows] for name in columns}

    @classmethod
    def of(cls, where: str, format: str, columns: Mapping[str, Any]) -> ArrayTable:
        """Columns by name, each with one entry per row; refused where their lengths differ."""
        arrays = {str(name): np.asarray(values) for name, values in columns.items()}
        for name, array in arrays.items():
            if array.ndim == 0:
                raise InputError(
                    f"{where}: column '{name}' is the single value {array.item()!r}, expected one entry per row"
                )
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            low, high = min(lengths, key=lambda name: lengths[name]), max(lengths, key=lambda name: lengths[name])
            raise InputError(
                f"{where}: column '{low}' has {lengths[low]} rows and '{high}' has {lengths[high]}, expected as many"
            )
        return cls(format, arrays)


@dataclass(frozen=True)
class ChunkTable:
    """A table whose rows stay in the file: ``read(columns, rows)`` starts at its head and yields batches in order."""

    format: str
    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[Sequence[str], int], Iterator[Batch]] = field(repr=False)
    n_rows: int | None = None
    element_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Batch]:
        """Batches as ``read`` makes them."""
        return self.read(columns, rows)


def as_float(values: NDArray[Any]) -> NDArray[np.float64]:
    """Float64 of an integer or float array."""
    return np.asarray(values, dtype=np.float64)


def numeric(where: str, name: str, values: NDArray[Any]) -> NDArray[Any]:
    """The values of a column, refused unless they are numbers."""
    if values.dtype.kind not in "iuf":
        raise InputError(f"{where}: column '{name}' holds {values.dtype.name} values, expected numbers")
    return values
