"""The clock of a log: which columns hold it, in which unit, and where it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import UnknownNameError
from dynid.recording.readers.columns import LogColumns
from dynid.recording.readers.formats.table import Batch, Table, as_float, numeric
from dynid.recording.readers.units import UNITS

_TIME = (
    "t", "time", "timestamp", "stamp", "time_stamp", "timestamps", "header_stamp", "clock", "seconds", "sec",
    "secs", "duration", "elapsed", "elapsed_time", "time_since_start",
)  # fmt: skip
_TIME_UNITS: Mapping[str, str] = {
    "s": "s", "sec": "s", "secs": "s", "seconds": "s",
    "ms": "ms", "msec": "ms", "millis": "ms", "milliseconds": "ms",
    "us": "us", "usec": "us", "micros": "us", "microseconds": "us",
    "ns": "ns", "nsec": "ns", "nsecs": "ns", "nanos": "ns", "nanosec": "ns", "nanoseconds": "ns",
}  # fmt: skip
_NANOSECONDS = ("nanoseconds", "nanosecs", "nanosec", "nano_sec", "nsecs", "nsec")
_SECONDS = ("sec", "secs", "seconds")
#: Stamps above this are dates, in each unit.
_DATES = (("ns", 1e17), ("us", 1e14), ("ms", 1e11), ("s", 1e8))
#: Largest median step of a clock in each unit.
_STEPS = (("s", 0.4), ("ms", 150.0), ("us", 1.5e5))

_HEAD_ROWS = 4096
_EPOCH_S = 1e8


@dataclass(frozen=True)
class TimeColumns:
    """No column, one, or one of seconds and one of nanoseconds; and the unit in its name, if any."""

    names: tuple[str, ...] = ()
    unit: str | None = None


@dataclass(frozen=True)
class Clock:
    """Turns the time columns of a batch into seconds; ``rate_hz`` replaces them by counting rows."""

    columns: tuple[str, ...]
    scale: float = 1.0
    origin: tuple[Any, ...] = (0, 0)
    rate_hz: float | None = None
    notes: tuple[str, ...] = ()
    guessed: str | None = None
    """The unit where it was found by the size of the steps alone; the first note says so."""

    def seconds(self, where: str, batch: Batch, n: int, first_row: int) -> Array:
        """Time of the ``n`` rows of a batch, the first of which is row ``first_row`` of the file."""
        if self.rate_hz is not None:
            return (first_row + np.arange(n)) / self.rate_hz
        if not self.columns:
            return np.zeros(n)
        raws = [numeric(where, name, batch[name]) for name in self.columns]
        with np.errstate(over="ignore"):  # what overflows is refused as infinite
            time = as_float(raws[0] - self.origin[0]) * self.scale
            if len(raws) == 2:
                time = time + as_float(raws[1] - self.origin[1]) * 1e-9
        return time


def find_time(columns: LogColumns) -> TimeColumns:
    """The time columns of a log, by the usual names."""
    for folded in columns.folded:
        for ending in _NANOSECONDS:
            if not folded.endswith(ending):
                continue
            base = folded[: -len(ending)]
            for seconds in _SECONDS:
                whole, part = columns.one(base + seconds), columns.one(folded)
                if whole is not None and part is not None:
                    return TimeColumns((whole, part), "s")
    for alias in _TIME:
        if (column := columns.one(alias)) is not None:
            return TimeColumns((column,), "s" if alias in _SECONDS else None)
        for ending, unit in _TIME_UNITS.items():
            if (column := columns.one(f"{alias}_{ending}")) is not None:
                return TimeColumns((column,), unit)
    return TimeColumns()


def make_clock(where: str, table: Table, time: TimeColumns, unit: Any, rate_hz: float | None) -> Clock:
    """The clock of a table; ``unit`` is what the user or the preset says."""
    if unit is not None and unit not in UNITS["time"]:
        raise UnknownNameError("unit of time", str(unit), UNITS["time"])
    if rate_hz is not None or not time.names:
        return Clock(time.names, rate_hz=rate_hz)
    by_steps = False
    if unit is None:
        unit, note, by_steps = _unit(where, table, time)
    else:
        # Of a pair of columns the first holds seconds, whatever unit of time was given.
        unit, note = ("s" if len(time.names) == 2 else str(unit)), None
    scale = UNITS["time"][unit]
    origin, origin_note = _origin(where, table, time.names, scale)
    notes = tuple(text for text in (note, origin_note) if text is not None)
    return Clock(time.names, scale, origin, notes=notes, guessed=unit if by_steps else None)


def _unit(where: str, table: Table, time: TimeColumns) -> tuple[str, str | None, bool]:
    """The unit of the clock with a note, from the file or the column's name, else by its stamps or, which is the third, its steps."""
    column = time.names[0]
    if len(time.names) == 2:
        return "s", None, False
    if column in table.units:
        return table.units[column], None, False
    if time.unit is not None:
        note = None if time.unit == "s" else f"time column '{column}' is read as {time.unit} by its name"
        return time.unit, note, False
    head = _head(where, table, column)
    if head.size < 2:
        return "s", None, False
    for unit, least in _DATES:
        if abs(float(head[0])) > least:
            return unit, None if unit == "s" else f"time column '{column}' is read as {unit}: its stamps are dates", False
    with np.errstate(over="ignore"):
        steps = np.diff(np.unique(head))
    if steps.size == 0:
        return "s", None, False
    step = float(np.median(steps))
    unit = next((name for name, most in _STEPS if step < most), "ns")
    note = None if unit == "s" else f"time column '{column}' is read as {unit}: its median step is {step:.6g}"
    return unit, note, unit != "s"


def _head(where: str, table: Table, column: str) -> Array:
    for batch in table.batches([column], _HEAD_ROWS):
        values = as_float(numeric(where, column, batch[column])[:_HEAD_ROWS])
        if values.size:
            return values[np.isfinite(values)]
    return np.empty(0)


def _origin(where: str, table: Table, names: tuple[str, ...], scale: float) -> tuple[tuple[Any, ...], str | None]:
    """Stamps that are dates count from the first one, so that microseconds survive in floats."""
    for batch in table.batches(list(names), _HEAD_ROWS):
        first = numeric(where, names[0], batch[names[0]])
        known = np.flatnonzero(np.isfinite(as_float(first)))
        if known.size == 0:
            continue
        k = int(known[0])
        if abs(float(first[k])) * scale < _EPOCH_S:
            return (0, 0), None
        seconds = float(first[k]) * scale
        # A Python integer keeps int64 stamps exact, and subtracts rightly from a column that turns to floats later.
        exact = [int(batch[name][k]) if batch[name].dtype.kind == "i" else float(batch[name][k]) for name in names]
        return (*exact, 0)[:2], f"time counts from the first stamp, {seconds:.3f} s"
    return (0, 0), None
