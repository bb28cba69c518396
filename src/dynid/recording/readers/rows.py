"""Rows of a log in SI units at the joint, decoded batch by batch in the order of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array, BoolArray
from dynid.errors import InputError
from dynid.recording.finding import Finding
from dynid.recording.quantities import LARGEST, beyond
from dynid.recording.readers.clock import Clock
from dynid.recording.readers.columns import Slot
from dynid.recording.readers.complete import AUXILIARY
from dynid.recording.readers.foreign import foreign_errors
from dynid.recording.readers.formats.table import MALFORMED, Batch, Table, as_float, numeric
from dynid.recording.readers.plan import ColumnPlan
from dynid.recording.readers.units import Scales

_WHOLE_ROWS = 1 << 17
#: A locked joint whose log is further than this from the position it is locked at gives a warning, rad or m.
_LOCK_TOLERANCE = 1e-2


@dataclass(frozen=True)
class Rows:
    """Decoded rows, before any are dropped or sorted."""

    time: Array
    values: dict[str, Array]
    n_rows: int
    n_malformed: int = 0
    notes: tuple[str, ...] = ()
    held: Array = field(default_factory=lambda: np.empty((2, 0)))
    """The least and largest position of each locked joint."""

    @property
    def notes_on_lines(self) -> tuple[str, ...]:
        """Lines that were left out because they could not be split into columns."""
        n = self.n_malformed
        return (
            (f"{n} {'line' if n == 1 else 'lines'} with a wrong number of fields {'was' if n == 1 else 'were'} left out",)
            if n
            else ()
        )


@dataclass(frozen=True)
class Episodes:
    """A column that counts the episodes of a data set, and the one that was asked for."""

    where: str
    column: str
    wanted: int | None

    def mask(self, batch: Batch, seen: set[float]) -> slice | BoolArray:
        """Rows of a batch to keep; ``seen`` gathers the episodes met so far, several are refused unless one is wanted."""
        values = as_float(batch[self.column])
        seen |= set(np.unique(values[np.isfinite(values)]).tolist())
        if self.wanted is not None:
            return np.asarray(values == self.wanted)
        if len(seen) > 1:
            raise InputError(
                f"{self.where}: holds several episodes (column '{self.column}' counts from {min(seen):.0f}), expected one; "
                "choose it with --episode N (in Python episode=N)"
            )
        return slice(None)

    def refuse_absent(self, seen: set[float]) -> None:
        """The wanted episode was not met in the whole file."""
        if self.wanted is not None and self.wanted not in seen:
            numbers = f"{min(seen):.0f} to {max(seen):.0f}" if seen else "none"
            raise InputError(f"{self.where}: there is no episode {self.wanted}; available: {numbers}")


@dataclass(frozen=True)
class Decoder:
    """A table with everything that is needed to turn its batches into rows."""

    where: str
    table: Table
    plan: ColumnPlan
    clock: Clock
    scales: Scales
    locked: Mapping[str, float] = field(default_factory=dict)
    episodes: Episodes | None = None

    @property
    def can_seek(self) -> bool:
        """Whether reading may begin at any row of the file."""
        return hasattr(self.table, "batches_from")

    def rows(self, batch_rows: int, first: int = 0) -> Iterator[Rows]:
        """Decoded batches in file order, from row ``first`` of the file where its format can seek."""
        columns = list(self.plan.columns)
        if self.episodes is not None and self.episodes.column not in columns:
            columns.append(self.episodes.column)
        counted = first
        seen: set[float] = set()
        for batch in self._batches(columns, batch_rows, first):
            n_malformed = int(batch.pop(MALFORMED, np.zeros(1))[0])
            n = len(batch[columns[0]]) if columns else 0
            wanted = slice(None) if self.episodes is None else self.episodes.mask(batch, seen)
            time = self.clock.seconds(self.where, batch, n, counted)[wanted]
            values = {name: self._quantity(batch, name, n)[wanted] for name in self.plan.slots}
            if self.scales.torque_is_current:
                values["current"] = values.pop("torque")
            self._refuse_impossible(time, values, np.arange(counted, counted + n)[wanted])
            counted += n
            yield Rows(time, values, n, n_malformed, held=self._held(batch, n, wanted))
        if self.episodes is not None:
            self.episodes.refuse_absent(seen)
        if counted == 0:
            raise InputError(f"{self.where}: holds {len(self.table.shapes)} columns and no rows")

    def all_rows(self) -> Rows:
        """The whole file."""
        parts = list(self.rows(_WHOLE_ROWS))
        values: dict[str, Array] = {}
        for name in list(parts[0].values):
            # Moved out part by part, so that a log is never in memory twice as a whole.
            values[name] = np.concatenate([part.values.pop(name) for part in parts])
        malformed = sum(part.n_malformed for part in parts)
        n_rows = sum(part.n_rows for part in parts) + malformed
        held = np.stack([np.min([part.held[0] for part in parts], axis=0), np.max([part.held[1] for part in parts], axis=0)])
        return Rows(np.concatenate([part.time for part in parts]), values, n_rows, malformed, held=held)

    def without_absent(self, rows: Rows) -> Rows:
        """Quantities that hold no number at all are left out; a single such column is refused."""
        values = dict(rows.values)
        notes = list(rows.notes)
        for name, array in rows.values.items():
            absent = np.isnan(array).all(axis=0)
            optional = name not in ("position", "wrench")
            if name in AUXILIARY and np.isnan(array).any():
                del values[name]
                notes.append(f"{name.replace('_', ' ')} holds NaN and is left out")
            elif absent.all() and optional:
                del values[name]
                notes.append(f"{name} holds no numbers and is left out")
            elif absent.any():
                slot = self.column_of(name, int(np.flatnonzero(absent)[0]))
                raise InputError(f"{self.where}: column '{slot}' ({name}) holds no number in {len(array)} rows")
        if np.isnan(rows.time).all():
            raise InputError(f"{self.where}: time column '{self.time_column}' holds no number in {rows.n_rows} rows")
        return replace(rows, values=values, notes=tuple(notes))

    def off_lock(self, rows: Rows) -> list[Finding]:
        """Locked joints that the log shows elsewhere than where they are locked."""
        findings = []
        for (joint, slot), low, high in zip(self.plan.held.items(), *rows.held, strict=True):
            at = self.locked[joint]
            if not max(at - low, high - at) > _LOCK_TOLERANCE:
                continue
            runs = f"is {low:.4g}" if high - low < 1e-9 else f"runs from {low:.4g} to {high:.4g}"
            findings.append(
                Finding(
                    "lock_position",
                    "warning",
                    f"joint {joint} is locked at {at:.4g}, in the log its column '{slot}' {runs}",
                    "lock it at the position it had (--lock joint=value), or do not lock a joint that moves",
                    (joint,),
                    {"locked": at, "least": low, "largest": high},
                )
            )
        return findings

    @property
    def time_column(self) -> str:
        """The time column, for messages."""
        return self.plan.time.names[0] if self.plan.time.names else "time"

    def column_of(self, quantity: str, index: int) -> Slot:
        """The column that holds entry ``index`` of a quantity."""
        name = "torque" if quantity == "current" and self.scales.torque_is_current else quantity
        return self.plan.slots[name][index]

    def _batches(self, columns: list[str], rows: int, first: int = 0) -> Iterator[Batch]:
        """Batches of the table; what a format's own code raises becomes one sentence that names the file."""
        table: Any = self.table
        batches = iter(table.batches_from(columns, rows, first) if first else table.batches(columns, rows))
        while True:
            with foreign_errors(self.where, f"cannot be read as {self.table.format}"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _refuse_impossible(self, time: Array, values: Mapping[str, Array], rows: NDArray[np.int64]) -> None:
        """Numbers that no machine can have are named with their column and row (from 1)."""
        for name, array in {"time": time, **values}.items():
            place = beyond(name, array)
            if place is None:
                continue
            row, k = place
            value = float(array.reshape(len(array), -1)[row, k])
            column = self.time_column if name == "time" else self.column_of(name, k)
            raise InputError(
                f"{self.where}: column '{column}' ({name.replace('_', ' ')}) holds {value:.4g} in row {int(rows[row]) + 1}, "
                f"which no robot shows; expected at most {LARGEST[name]:.0e} in SI units"
            )

    def _held(self, batch: Batch, n: int, wanted: slice | BoolArray) -> Array:
        """The least and largest position of locked joints in a batch; NaN is passed over."""
        slots = list(self.plan.held.values())
        held = np.stack([np.full(len(slots), np.inf), np.full(len(slots), -np.inf)])
        if self.scales.held is None:
            return held
        for k, slot in enumerate(slots):
            q = self.scales.held * as_float(self._column(batch, slot, n))[wanted]
            q = q[np.isfinite(q)]
            if q.size:
                held[:, k] = q.min(), q.max()
        return held

    def _quantity(self, batch: Batch, name: str, n: int) -> Array:
        slots = self.plan.slots[name]
        scale = self.scales.factors.get(name)
        values = np.empty((n, len(slots)))
        for k, slot in enumerate(slots):
            values[:, k] = self._column(batch, slot, n)
        with np.errstate(over="ignore"):
            return values if scale is None else values * scale

    def _column(self, batch: Batch, slot: Slot, n: int) -> NDArray[np.number]:
        column = numeric(self.where, slot.column, batch[slot.column])
        found = column if slot.element is None else column.reshape(n, -1)[:, slot.element]
        return -as_float(found) if slot.negated else found
