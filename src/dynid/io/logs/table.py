"""What every file format is turned into: named columns that are read in batches; what a format has to offer, and how much it may unpack to.

A few bytes can declare, or really hold, gigabytes of zeros: formats know what a packed part unpacks to before a library unpacks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InputError
from dynid.files import check_memory
from dynid.finding import Finding
from dynid.io.logs.log_file import LogFile

Batch = dict[str, NDArray[Any]]

#: Key of a batch under which a reader counts lines that it could not split; no column can be called so.
MALFORMED = ""
HARMLESS_BYTES = 256 * 2**20
"""A log that unpacks to no more may be packed as tightly as it likes (constant columns are)."""
MOST_PACKING = 200.0


@dataclass(frozen=True)
class Table:
    """Columns of a log; only names and shapes are read before the rows are asked for.

    Attributes:
        format: name of the file format.
        shapes: column name to the shape of one row's entry, ``()`` for a number.
        read: ``read(columns, rows, first)`` yields batches of about ``rows`` rows in order, from row ``first`` of the file:
            integer or float arrays by column, NaN where a value is absent. A stream may be read by another process, for which it
            has to be a function of a module, a method or a ``functools.partial`` of one.
        n_rows: rows in the file, None where that is known only after reading.
        seeks: whether ``read`` can begin at any row; ``first`` is 0 otherwise.
        element_names: names of the elements of list columns, where the file has them.
        units: units of time columns, where the file states them.
        notes: sentences about the file for the user.
        findings: what is wrong with the file.
    """

    format: str
    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[Sequence[str], int, int], Iterator[Batch]] = field(repr=False)
    n_rows: int | None = None
    seeks: bool = False
    element_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def array_table(format: str, arrays: Mapping[str, NDArray[Any]], **facts: Any) -> Table:
    """A table whose columns lie in memory; ``facts`` are more of its fields."""
    n_rows = max((len(array) for array in arrays.values()), default=0)
    shapes = {name: array.shape[1:] for name, array in arrays.items()}
    return Table(format, shapes, partial(_slices, arrays, n_rows), n_rows, **facts)


def _slices(
    arrays: Mapping[str, NDArray[Any]], n_rows: int, columns: Sequence[str], rows: int, first: int = 0
) -> Iterator[Batch]:
    for start in range(first, n_rows, rows):
        yield {name: arrays[name][start : start + rows] for name in columns}


def checked_arrays(where: str, columns: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Columns by name as arrays, each with one entry per row; refused where their lengths differ."""
    arrays = {str(name): np.asarray(values) for name, values in columns.items()}
    for name, array in arrays.items():
        if array.ndim == 0:
            raise InputError(f"{where}: column '{name}' is the single value {array.item()!r}, expected one entry per row")
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        low, high = min(lengths, key=lambda name: lengths[name]), max(lengths, key=lambda name: lengths[name])
        raise InputError(
            f"{where}: column '{low}' has {lengths[low]} rows and '{high}' has {lengths[high]}, expected as many"
        )
    return arrays


def named_elements(arrays: Mapping[str, NDArray[Any]], names: Sequence[str] | None) -> dict[str, Sequence[str]]:
    """Joint names for the elements of every list column that has as many."""
    return {name: names for name, array in arrays.items() if names and array.shape[1:] == (len(names),)}


def as_float(values: NDArray[Any]) -> NDArray[np.float64]:
    """Float64 of an integer or float array."""
    return np.asarray(values, dtype=np.float64)


def numeric(where: str, name: str, values: NDArray[Any]) -> NDArray[Any]:
    """The values of a column, refused unless they are numbers."""
    if values.dtype.kind == "b" and "contact" in name.lower():  # flags of feet
        return values.astype(np.uint8)
    if values.dtype.kind not in "iuf":
        raise InputError(f"{where}: column '{name}' holds {values.dtype.name} values, expected numbers")
    return values


def check_log_memory(where: str, values: int, packed: int) -> None:
    """Refuse a log that is held in memory and has more numbers than fit into the budget, or far more than its file holds.

    Args:
        where: the file.
        values: numbers of all its columns; each becomes a float of eight bytes.
        packed: bytes of the file that hold them.
    """
    check_memory(where, 8 * values, "write longer logs as parquet")
    refuse_tight_packing(where, max(packed, 1), 8 * values)


def refuse_tight_packing(where: str, packed: int, unpacked: int, amount: str = "") -> None:
    """Refuse what would unpack to far more bytes than it has; ``amount`` is written before the number where more may follow."""
    if unpacked > HARMLESS_BYTES and unpacked > MOST_PACKING * packed:
        raise InputError(
            f"{where}: unpacks from {packed} to {amount}{unpacked} bytes ({unpacked / packed:.0f} times), "
            f"expected at most {MOST_PACKING:.0f} times"
        )


@dataclass(frozen=True)
class OpenOptions:
    """What a user can say about the inside of a file: ``topic`` of a bag, ``header`` of a text table without names.

    ``file`` is the log itself, open already: a format that reads from it does not open the file a second time.
    """

    topic: str | None = None
    header: tuple[str, ...] | None = None
    file: LogFile | None = None

    def log_at(self, path: Path) -> LogFile:
        """The log, open or not."""
        return self.file or LogFile(path)


class Format(Protocol):
    """A file format of logs."""

    @property
    def name(self) -> str:
        """Name of the format, as recordings state it in ``source.format``."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """File name endings in lower case with their dot, such as ``(".csv", ".tsv")``."""

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first 16 bytes of a file show this format whatever its suffix; ``head`` is empty for a folder."""

    def open(self, path: Path, options: OpenOptions) -> Table | Mapping[str, Any]:
        """The columns: a :class:`Table` that reads in batches, or simply arrays by name, one entry per row each."""
