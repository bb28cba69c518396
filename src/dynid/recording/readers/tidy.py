"""Rows in order of time and without NaN.

Only what has one right answer is repaired: rows out of order are sorted, rows with NaN or a repeated stamp are left out.
Gaps stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array, BoolArray, IntArray, all_finite
from dynid.errors import InputError
from dynid.recording.readers.rows import Decoder

#: A stream puts a row in its place if it comes at most this many rows late.
_LATE_ROWS = 1000


@dataclass(frozen=True)
class Counts:
    """How many rows were left out, by reason, and how many were moved."""

    nan: int
    repeated: int
    sorted_rows: int

    @property
    def total(self) -> int:
        """Rows that were left out."""
        return self.nan + self.repeated

    def words(self) -> str:
        """Both reasons with their numbers."""
        return f"{self.nan} rows with NaN and {self.repeated} with a repeated stamp"

    def notes(self) -> list[str]:
        """What was done, for the user."""
        notes = self.notes_on_dropped()
        if self.sorted_rows:
            notes.append(f"{self.sorted_rows} rows were out of order and sorted by their stamps")
        return notes

    def notes_on_dropped(self) -> list[str]:
        """What was left out, for the user."""
        notes = []
        if self.nan:
            notes.append(f"{self.nan} rows with NaN were left out")
        if self.repeated:
            notes.append(f"{self.repeated} rows with a repeated stamp were left out, the first of each kept")
        return notes


def tidy(
    decoder: Decoder, time: Array, values: dict[str, Array], after: float | None = None
) -> tuple[Array, dict[str, Array], Counts]:
    """Rows without NaN, with stamps that increase and, in a stream, come after ``after``."""
    streaming = after is not None
    after = -math.inf if after is None else after
    keep = _rows_without_nan(decoder, time, values)
    n_nan = time.size - keep.size
    if n_nan == time.size and n_nan and not streaming:
        raise InputError(f"{decoder.where}: each of the {n_nan} rows has a NaN in {', '.join(['time', *values])}")
    keep, clock, n_sorted = _in_order(decoder.where, keep, time[keep] if n_nan else time)
    if clock.size and clock[0] < after:
        raise InputError(
            f"{decoder.where}: stamps go back from {after:.9g} s to {clock[0]:.9g} s, "
            "expected a log in order of time; read it whole or sort it first"
        )
    fresh = np.diff(clock, prepend=after) > 0.0
    n_repeated = int(fresh.size - np.count_nonzero(fresh))
    if n_repeated:
        keep, clock = keep[fresh], clock[fresh]
    if keep.size != time.size or n_sorted:
        values = {name: array[keep] for name, array in values.items()}
    for array in values.values():
        array.flags.writeable = False
    return clock, values, Counts(n_nan, n_repeated, n_sorted)


def _rows_without_nan(decoder: Decoder, time: Array, values: dict[str, Array]) -> IntArray:
    """Places of the rows in which every number is one; infinite ones are refused."""
    if all_finite(time) and all(all_finite(array) for array in values.values()):
        return np.arange(time.size)
    _refuse_infinite(decoder, time, values)
    return np.flatnonzero(whole_rows(time, values))


def tidy_batches(decoder: Decoder, batch_rows: int, first: int = 0) -> Iterator[tuple[Array, dict[str, Array], int]]:
    """Tidied rows batch by batch, and the rows dropped; the last rows wait for late ones of the next batch."""
    last = -math.inf
    time, values, dropped = np.empty(0), dict[str, Array](), 0
    for part in decoder.rows(batch_rows, first):
        if time.size:
            time = np.concatenate([time, part.time])
            values = {name: np.concatenate([values[name], array]) for name, array in part.values.items()}
        else:
            time, values = part.time, part.values
        time, values, counts = tidy(decoder, time, values, after=last)
        dropped = counts.total + part.n_malformed
        ready = max(0, time.size - _LATE_ROWS)
        if ready:
            last = float(time[ready - 1])
        yield time[:ready], {name: array[:ready] for name, array in values.items()}, dropped
        time, values = time[ready:], {name: array[ready:] for name, array in values.items()}
    yield time, values, 0


def whole_rows(time: Array, values: Mapping[str, Array]) -> BoolArray:
    """Rows in which every value is a finite number."""
    whole = np.isfinite(time)
    for array in values.values():
        whole &= np.isfinite(array).all(axis=1)
    return np.asarray(whole)


def _refuse_infinite(decoder: Decoder, time: Array, values: Mapping[str, Array]) -> None:
    for name, array in values.items():
        infinite = np.isinf(array)
        if infinite.any():
            k = int(np.flatnonzero(infinite.any(axis=0))[0])
            raise InputError(
                f"{decoder.where}: column '{decoder.column_of(name, k)}' ({name}) holds {int(infinite[:, k].sum())} "
                "infinite values, expected finite numbers"
            )
    if np.isinf(time).any():
        n = int(np.isinf(time).sum())
        raise InputError(f"{decoder.where}: time column '{decoder.time_column}' holds {n} infinite values")


def _in_order(where: str, keep: NDArray[np.intp], clock: Array) -> tuple[NDArray[np.intp], Array, int]:
    """Rows sorted by their stamps, and how many moved; a clock that starts over is refused."""
    back = np.flatnonzero(np.diff(clock) < 0.0)
    if not back.size:
        return keep, clock, 0
    order = np.argsort(clock, kind="stable")
    # Rows or blocks out of place leave few seams; a clock that starts over would interleave whole runs.
    seams = int(np.count_nonzero(np.diff(order) != 1))
    if seams > 10 * (back.size + 1):
        row = int(keep[back[0] + 1])
        raise InputError(
            f"{where}: the clock starts over at row {row} ({clock[back[0]]:.9g} s to {clock[back[0] + 1]:.9g} s), "
            "expected one run per log; split the file there"
        )
    return keep[order], clock[order], int(np.count_nonzero(order != np.arange(order.size)))
