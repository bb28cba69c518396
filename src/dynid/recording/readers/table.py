"""What every file format is reduced to: named columns that are read in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DynidError, InputError
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
        """Names of the elements of list columns, where the file tells."""

    @property
    def units(self) -> Mapping[str, str]:
        """Units of time columns, where the file tells."""

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


@contextmanager
def foreign_errors(where: str, action: str) -> Iterator[None]:
    """Errors of file libraries as one sentence: decoders raise nearly anything on damaged files."""
    try:
        yield
    except (DynidError, MemoryError, ImportError):
        raise
    except Exception as error:
        raise InputError(f"{where}: {action}: {sentence(error)}") from error


def sentence(error: BaseException) -> str:
    """The first line of an error's text, without its class unless it has no text."""
    text = str(error).strip().splitlines()
    return (text[0][:200] if text else type(error).__name__).rstrip(".")


def as_float(values: NDArray[Any]) -> NDArray[np.float64]:
    """Float64 of an integer or float array."""
    return np.asarray(values, dtype=np.float64)
