"""Batches of a table as recordings: in SI units at the joints, in order of time and without NaN.

Only what has one right answer is repaired: rows out of order are sorted, rows with NaN or a repeated stamp are left out.
Gaps stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array, BoolArray, IntArray, all_finite
from dynid.errors import InputError
from dynid.files import foreign_errors
from dynid.finding import Finding
from dynid.io.logs.columns import HasJoints, Slot, joints_of
from dynid.io.logs.layout import Layout, ReadOptions
from dynid.io.logs.names import alias_notes
from dynid.io.logs.plan import AUXILIARY, ColumnPlan, make_plan
from dynid.io.logs.table import MALFORMED, Batch, Table, as_float, numeric
from dynid.io.logs.units import UNITS, Clock, Scales, make_scales
from dynid.signals.recording import LARGEST, Recording, RecordingSource, beyond

_WHOLE_ROWS, _BATCH_ROWS = 1 << 17, 1 << 14
"""Rows that are decoded at a time where a log is read whole, and at most where it is read in pieces."""
_LATE_ROWS = 1000
"""A stream puts a row in its place if it comes at most this many rows late."""
_LOCK_TOLERANCE = 1e-2
"""A locked joint whose log is further than this from the position it is locked at gives a warning, rad or m."""
_EPISODE = "episode_index"
"""Column that counts the episodes of a data set."""
_HEAD_ROWS = 4096
_COARSER = {"ms": "s", "us": "ms", "ns": "us"}
FASTEST = 10.0
"""rad/s or m/s: where a log without velocity would move faster for one row in a hundred, its unit of time is asked for."""
_LEAST_FACTOR, _MOST_FACTOR = 100.0, 3000.0
"""Positions that change so many times faster than the velocity says are in a clock of the next unit; motion that is sampled
too slowly to follow shows less than the full 1000."""
_LONGEST_STEP_S = 10.0
"""Nobody logs motion more slowly."""
_SHORTEST_S = 0.2
"""No log of a sensor is shorter; a table with one row for each pose would be, were its seconds read as milliseconds."""
_ALIKE = 5.0
"""Change of position and velocity count as one motion up to this factor."""


@dataclass(frozen=True)
class Rows:
    """Decoded rows, and how many were read, left out by reason, and moved."""

    time: Array
    values: dict[str, Array]
    n_read: int = 0
    n_malformed: int = 0
    n_nan: int = 0
    n_repeated: int = 0
    n_sorted: int = 0
    held: Array = field(default_factory=lambda: np.empty((2, 0)))
    """The least and largest position of each locked joint."""

    @property
    def n_dropped(self) -> int:
        """Rows that were left out."""
        return self.n_malformed + self.n_nan + self.n_repeated

    @property
    def dropped(self) -> list[str]:
        """What was left out, for the user: lines that could not be split into columns, rows with NaN or a repeated stamp."""
        notes, n = [], self.n_malformed
        if n:
            were = "was" if n == 1 else "were"
            notes.append(f"{n} {'line' if n == 1 else 'lines'} with a wrong number of fields {were} left out")
        if self.n_nan:
            notes.append(f"{self.n_nan} rows with NaN were left out")
        if self.n_repeated:
            notes.append(f"{self.n_repeated} rows with a repeated stamp were left out, the first of each kept")
        return notes

    @property
    def notes(self) -> list[str]:
        """What was left out and moved, for the user."""
        moved = [f"{self.n_sorted} rows were out of order and sorted by their stamps"] if self.n_sorted else []
        return self.dropped + moved

    @property
    def whole(self) -> BoolArray:
        """Rows in which every value is a finite number."""
        whole = np.isfinite(self.time)
        for array in self.values.values():
            whole &= np.isfinite(array).all(axis=1)
        return np.asarray(whole)

    def part(self, rows: slice) -> Rows:
        """Some of the rows; counts stay."""
        if rows.indices(self.time.size) == (0, self.time.size, 1):
            return self
        return replace(self, time=self.time[rows], values={name: array[rows] for name, array in self.values.items()})


@dataclass(frozen=True)
class Decoder:
    """A table with everything that is needed to turn its batches into recordings; a value, so that another process can read them too.

    ``locked`` are the robot's locked joints with their positions, ``episode`` the one asked for in a data set of several.
    """

    where: str
    table: Table
    plan: ColumnPlan
    clock: Clock
    scales: Scales
    time_unit: str | None = None
    """As the user or the name of the column states it."""
    locked: Mapping[str, float] = field(default_factory=dict)
    episode: int | None = None
    source: RecordingSource = field(default_factory=RecordingSource)

    def recordings(self, rows: int, first: int = 0) -> Iterator[tuple[Recording | None, int]]:
        """The log in pieces, and the rows dropped; from row ``first`` of the file where its format can seek."""
        for part in self.tidy(self.batches(min(rows, _BATCH_ROWS), first), _LATE_ROWS):
            yield (self.recording(part, self.source) if part.time.size else None), part.n_dropped

    def recording(self, rows: Rows, source: RecordingSource) -> Recording:
        """Tidy rows of a motion log as a recording at the joints."""
        made = Recording(time=rows.time, joint_names=self.plan.joint_names, source=source, **rows.values)
        return self.scales.at_joints(made)

    # -- rows in the order of the file ----

    def batches(self, batch_rows: int, first: int = 0) -> Iterator[Rows]:
        """Decoded batches in file order, from row ``first`` of the file where its format can seek."""
        columns = list(self.plan.columns)
        has_episodes = self.table.shapes.get(_EPISODE) == ()
        if has_episodes and _EPISODE not in columns:
            columns.append(_EPISODE)
        counted = first
        seen: set[float] = set()
        batches = iter(self.table.read(columns, batch_rows, first))
        while True:
            # what a format's own code raises becomes one sentence that names the file
            with foreign_errors(self.where, f"cannot be read as {self.table.format}"):
                batch = next(batches, None)
            if batch is None:
                break
            n_malformed = int(batch.pop(MALFORMED, np.zeros(1))[0])
            n = len(batch[columns[0]]) if columns else 0
            wanted = self._of_episode(batch, seen) if has_episodes else slice(None)
            time = self.clock.seconds(self.where, batch, n, counted)[wanted]
            values: dict[str, Array] = {}
            for name, slots in self.plan.slots.items():
                array, factors = np.empty((n, len(slots))), self.factors(name)
                for k, slot in enumerate(slots):
                    array[:, k] = self._column(batch, slot, n)
                with np.errstate(over="ignore"):
                    values[name] = (array if np.all(factors == 1.0) else array * factors)[wanted]
            if self.scales.torque_is_current:
                values["current"] = values.pop("torque")
            self._refuse_impossible(time, values, np.arange(counted, counted + n)[wanted])
            counted += n
            yield Rows(time, values, n, n_malformed, held=self._held(batch, n, wanted))
        if has_episodes and self.episode is not None and self.episode not in seen:
            numbers = f"{min(seen):.0f} to {max(seen):.0f}" if seen else "none"
            raise InputError(f"{self.where}: there is no episode {self.episode}; available: {numbers}")
        if counted == 0:
            raise InputError(f"{self.where}: holds {len(self.table.shapes)} columns and no rows")

    def all_rows(self) -> Rows:
        """The whole file."""
        parts = list(self.batches(_WHOLE_ROWS))
        values: dict[str, Array] = {}
        for name in list(parts[0].values):
            # Moved out part by part, so that a log is never in memory twice as a whole.
            values[name] = np.concatenate([part.values.pop(name) for part in parts])
        malformed = sum(part.n_malformed for part in parts)
        n_read = sum(part.n_read for part in parts) + malformed
        held = np.stack([np.min([part.held[0] for part in parts], axis=0), np.max([part.held[1] for part in parts], axis=0)])
        return Rows(np.concatenate([part.time for part in parts]), values, n_read, malformed, held=held)

    def _of_episode(self, batch: Batch, seen: set[float]) -> slice | BoolArray:
        """Rows of a batch to keep; ``seen`` gathers the episodes met so far, several are refused unless one is wanted."""
        values = as_float(batch[_EPISODE])
        seen |= set(np.unique(values[np.isfinite(values)]).tolist())
        if self.episode is not None:
            return np.asarray(values == self.episode)
        if len(seen) > 1:
            raise InputError(
                f"{self.where}: holds several episodes (column '{_EPISODE}' counts from {min(seen):.0f}), expected one; "
                "choose it with --episode N (in Python episode=N)"
            )
        return slice(None)

    def factors(self, name: str) -> Array:
        """What the columns of a quantity are multiplied by: their unit, the gearbox, the sign of the joint and that of the column."""
        signs = np.array([-1.0 if slot.negated else 1.0 for slot in self.plan.slots[name]])
        return signs * self.scales.factors.get(name, 1.0)

    def _column(self, batch: Batch, slot: Slot, n: int) -> NDArray[np.number]:
        column = numeric(self.where, slot.column, batch[slot.column])
        return column if slot.element is None else column.reshape(n, -1)[:, slot.element]

    def _held(self, batch: Batch, n: int, wanted: slice | BoolArray) -> Array:
        """The least and largest position of locked joints in a batch; NaN is passed over."""
        slots = list(self.plan.held.values())
        held = np.stack([np.full(len(slots), np.inf), np.full(len(slots), -np.inf)])
        if self.scales.held is None:
            return held
        for k, slot in enumerate(slots):
            factor = -self.scales.held if slot.negated else self.scales.held
            q = factor * as_float(self._column(batch, slot, n))[wanted]
            q = q[np.isfinite(q)]
            if q.size:
                held[:, k] = q.min(), q.max()
        return held

    def _refuse_impossible(self, time: Array, values: Mapping[str, Array], rows: NDArray[np.int64]) -> None:
        """Numbers that no machine can have are named with their column and row (from 1)."""
        for name, array in {"time": time, **values}.items():
            place = beyond(name, array)
            if place is None:
                continue
            row, k = place
            value = float(array.reshape(len(array), -1)[row, k])
            column = self.plan.time_column if name == "time" else self.column_of(name, k)
            raise InputError(
                f"{self.where}: column '{column}' ({name.replace('_', ' ')}) holds {value:.4g} in row {int(rows[row]) + 1}, "
                f"which no robot shows; expected at most {LARGEST[name]:.0e} in SI units"
            )

    def column_of(self, quantity: str, index: int) -> Slot:
        """The column that holds entry ``index`` of a quantity."""
        name = "torque" if quantity == "current" and self.scales.torque_is_current else quantity
        return self.plan.slots[name][index]

    # -- what the whole file shows ----

    def without_absent(self, rows: Rows) -> tuple[Rows, list[str]]:
        """Rows without quantities that hold no number at all, and a note on each; a single such column is refused."""
        values, notes = dict(rows.values), []
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
            raise InputError(f"{self.where}: time column '{self.plan.time_column}' holds no number in {rows.n_read} rows")
        return replace(rows, values=values), notes

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
                    "warning",
                    f"joint {joint} is locked at {at:.4g}, in the log its column '{slot}' {runs}",
                    "lock it at the position it had (--lock joint=value), or do not lock a joint that moves",
                    where=(joint,),
                    code="lock_position",
                    values={"locked": at, "least": low, "largest": high},
                )
            )
        return findings

    # -- rows in the order of time ----

    def tidy(self, parts: Iterable[Rows], late_rows: int = 0) -> Iterator[Rows]:
        """Rows with stamps that increase and without NaN, with what was dropped; the last ``late_rows`` wait for the next part.

        A whole log is one part, in which any row may be out of order.
        """
        last, waiting = -math.inf, Rows(np.empty(0), {})
        for part in parts:
            if waiting.time.size:
                values = {name: np.concatenate([waiting.values[name], array]) for name, array in part.values.items()}
                part = replace(part, time=np.concatenate([waiting.time, part.time]), values=values)
            keep = self._rows_without_nan(part)
            n_nan = part.time.size - keep.size
            keep, clock, n_sorted = _sorted_by_time(self.where, keep, part.time[keep] if n_nan else part.time)
            if clock.size and clock[0] < last:
                raise InputError(
                    f"{self.where}: stamps go back from {last:.9g} s to {clock[0]:.9g} s, "
                    "expected a log in order of time; read it whole or sort it first"
                )
            fresh = np.diff(clock, prepend=last) > 0.0
            n_repeated = int(fresh.size - np.count_nonzero(fresh))
            if n_repeated:
                keep, clock = keep[fresh], clock[fresh]
            values = part.values
            if keep.size != part.time.size or n_sorted:
                values = {name: array[keep] for name, array in values.items()}
            for array in values.values():
                array.flags.writeable = False
            part = replace(part, time=clock, values=values, n_nan=n_nan, n_repeated=n_repeated, n_sorted=n_sorted)
            ready = max(0, part.time.size - late_rows)
            if ready:
                last = float(part.time[ready - 1])
            yield part.part(slice(0, ready))
            waiting = part.part(slice(ready, None))
        if late_rows:
            yield Rows(waiting.time, waiting.values)

    def _rows_without_nan(self, rows: Rows) -> IntArray:
        """Places of the rows in which every number is one; infinite ones are refused."""
        time, values = rows.time, rows.values
        if all_finite(time) and all(all_finite(array) for array in values.values()):
            return np.arange(time.size)
        for name, array in values.items():
            infinite = np.isinf(array)
            if infinite.any():
                k = int(np.flatnonzero(infinite.any(axis=0))[0])
                raise InputError(
                    f"{self.where}: column '{self.column_of(name, k)}' ({name}) holds {int(infinite[:, k].sum())} "
                    "infinite values, expected finite numbers"
                )
        if np.isinf(time).any():
            n = int(np.isinf(time).sum())
            raise InputError(f"{self.where}: time column '{self.plan.time_column}' holds {n} infinite values")
        return np.flatnonzero(rows.whole)


def make_decoder(
    where: str, table: Table, robot: HasJoints | Sequence[str], options: ReadOptions, layout: Layout
) -> Decoder:
    """Columns, units and sides of the gearbox of a table; of the clock the columns alone, the rest is found by the rows."""
    joints = joints_of(robot, options.joints, needed=options.kind != "wrench")
    coupling = getattr(robot, "coupling", None)
    plan = make_plan(where, table, joints, layout)
    if layout.zero and plan.kind != "motion":
        raise InputError(
            f"{where}: a zero of positions (--zero) is for motion logs, this one is of another kind ({plan.kind})"
        )
    plan = replace(
        plan, notes=(*plan.notes, *alias_notes(plan.joint_names, [str(slot) for slot in plan.slots.get("position", ())]))
    )
    units = plan.stated_units() | {name: joints.in_order(unit) for name, unit in layout.units.items()}
    scales = make_scales(
        where,
        tuple(plan.slots),
        plan.joint_names,
        units=units,
        side=layout.side,
        gear_ratios=joints.in_order(layout.gear_ratios),
        drive_gains=joints.in_order(layout.drive_gains) if plan.kind == "motion" else None,
        sign=layout.sign,
        zero=layout.zero if plan.kind == "motion" else None,
        coupling=coupling,
        robot_joints=getattr(robot, "joint_names", ()),
    )
    return Decoder(where, table, plan, plan.time, scales, units.get("time"), joints.locked, options.episode)


def _sorted_by_time(where: str, keep: NDArray[np.intp], clock: Array) -> tuple[NDArray[np.intp], Array, int]:
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


def with_clock_by_motion(decoder: Decoder) -> Decoder:
    """The decoder with the unit of its clock compared with the motion in the log, where it was found by its steps alone.

    A step of 1 is a kilohertz in milliseconds, and one row a second in seconds. Positions tell which: they must change as fast as the
    velocity columns say, and without these no faster than joints turn. Refuses where the motion does not tell.
    """
    clock, column = decoder.clock, decoder.plan.time_column
    coarser = _COARSER.get(clock.guessed or "")
    if coarser is None or decoder.plan.kind not in ("motion", "wrench"):
        return decoder
    rows = next(iter(decoder.batches(_HEAD_ROWS)))
    if decoder.plan.kind == "wrench":
        lasts = float(np.ptp(rows.time)) if len(rows.time) else _SHORTEST_S
        if lasts >= _SHORTEST_S:
            return decoder
        note = f"time column '{column}' is read as {coarser}: in {clock.guessed} the log would last {lasts:.3g} s"
        return replace(
            decoder, clock=replace(clock, scale=UNITS["time"][coarser], guessed=None, notes=(note, *clock.notes[1:]))
        )
    if not 1e3 * np.median(np.diff(np.unique(rows.time))) < _LONGEST_STEP_S:
        return decoder
    step, change = np.diff(rows.time)[:, None], np.diff(rows.values["position"], axis=0)
    forward = step[:, 0] > 0.0
    whole = np.isfinite(change).all(axis=1) & forward
    # the speed that joints exceed in one row of a hundred
    speeds = np.quantile(np.abs(change[whole]) / step[whole], 0.99, axis=0) if whole.any() else np.zeros(1)
    speed = float(speeds.max())
    # how many times more the positions change than the velocity says, and whether both show one motion
    velocity, ratio, alike = rows.values.get("velocity"), np.nan, False
    if velocity is not None:
        expected = 0.5 * (velocity[1:] + velocity[:-1]) * step
        whole = np.isfinite(change + expected).all(axis=1) & forward
        change, expected = change[whole], expected[whole]
        size = float(np.abs(expected).sum())
        if size > 0.0:
            norms = float(np.linalg.norm(expected) * np.linalg.norm(change))
            ratio, alike = float(np.abs(change).sum()) / size, float((expected * change).sum()) > 0.5 * norms > 0.0
    if _LEAST_FACTOR < ratio < _MOST_FACTOR and (alike or speed > FASTEST):
        note = (
            f"time column '{column}' is read as {coarser}: in {clock.guessed} its positions would change "
            f"{ratio:.3g} times as fast as its velocity says"
        )
        notes = (note, *clock.notes[1:])
        return replace(decoder, clock=replace(clock, scale=UNITS["time"][coarser], guessed=None, notes=notes))
    if speed > FASTEST and not 1.0 / _ALIKE < ratio < _ALIKE:
        name = decoder.plan.joint_names[int(np.argmax(speeds))]
        raise InputError(
            f"{decoder.where}: time column '{column}' may be in {clock.guessed} or in {coarser}: its steps fit "
            f"{clock.guessed}, but joint {name} would then move at {speed:.3g} rad/s or m/s; state the unit in a mapping file "
            f'(--mapping FILE): units = {{time = "{coarser}"}} or units = {{time = "{clock.guessed}"}}'
        )
    return decoder
