"""A log of any known format as a recording, in one piece or as a stream.

Reading repairs only what has one right answer, and says so in the notes: stamps out of order are sorted,
repeated stamps and rows with NaN are left out. Gaps stay. Anything else that is not as expected is refused in
one sentence.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array, BoolArray
from dynid.errors import InputError, UnknownNameError
from dynid.recording.finding import Finding, dropped_rows
from dynid.recording.readers.columns import (
    AUXILIARY,
    ColumnMatcher,
    ColumnPlan,
    HasJoints,
    HasLockedJoints,
    Match,
    Slot,
    listed,
    quantities_of_motion,
)
from dynid.recording.readers.mapping import Columns, LogMapping, read_mapping
from dynid.recording.readers.presets import Preset, find_preset
from dynid.recording.readers.table import MALFORMED, Batch, Table, as_float, foreign_errors
from dynid.recording.recording import (
    COLUMN_OF_BODY_MOTION,
    COLUMN_OF_QUANTITY,
    LARGEST,
    Recording,
    RecordingSource,
    RecordingStream,
    StaticRecording,
    WrenchRecording,
    beyond,
    per_joint,
)

KINDS = ("motion", "static", "wrench")
_SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".log": "csv", ".dat": "csv",
    ".parquet": "parquet", ".pq": "parquet", ".npz": "npz", ".mcap": "bag", ".db3": "bag", ".bag": "bag",
}  # fmt: skip
_MAGIC = (
    (b"PAR1", "parquet"), (b"PK\x03\x04", "npz"), (b"PK\x05\x06", "npz"), (b"\x89MCAP", "bag"),
    (b"SQLite format 3", "bag"), (b"#ROSBAG", "bag"),
)  # fmt: skip

_ANGLE = {"rad": 1.0, "deg": math.pi / 180.0, "rev": 2.0 * math.pi, "m": 1.0, "mm": 1e-3, "cm": 1e-2}
UNITS: Mapping[str, Mapping[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "position": _ANGLE,
    "reference_position": _ANGLE,
    "velocity": {f"{unit}/s": scale for unit, scale in _ANGLE.items()} | {"rpm": math.pi / 30.0},
    "acceleration": {f"{unit}/s^2": scale for unit, scale in _ANGLE.items()},
    "torque": {"Nm": 1.0, "mNm": 1e-3, "kNm": 1e3, "N": 1.0, "A": 1.0, "mA": 1e-3},
    "external_torque": {"Nm": 1.0, "mNm": 1e-3, "N": 1.0},
    "current": {"A": 1.0, "mA": 1e-3},
}
#: Power of the gear ratio (motor turns per joint turn) that brings a motor-side quantity to the joint.
_GEAR_POWER = {"position": -1, "reference_position": -1, "velocity": -1, "acceleration": -1, "torque": 1}

_HEAD_ROWS = 4096
_BATCH_ROWS = 1 << 14
#: A stream puts a row in its place if it comes at most this many rows late.
_LATE_ROWS = 1000
_EPOCH_S = 1e8
#: A locked joint whose log is further from the position it is locked at is worth a word, rad or m.
_LOCK_TOLERANCE = 1e-2


def read_recording(
    path: str | os.PathLike[str],
    robot: HasJoints | Sequence[str],
    *,
    mapping: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    preset: str | Preset | None = None,
    drive_gains: Sequence[float] | Mapping[str, float] | Array | None = None,
    gear_ratios: Sequence[float] | Mapping[str, float] | Array | None = None,
    units: Mapping[str, Any] | None = None,
    topic: str | None = None,
    episode: int | None = None,
    rate_hz: float | None = None,
    kind: str | None = None,
    ignore: Collection[str] = (),
) -> Recording | StaticRecording | WrenchRecording:
    """Read a log: motion, pose table (``q1.., M11, M21, .., g1..``) or force/torque sensor, by its columns.

    ``robot`` is a robot or its joint names. ``units`` gives units of quantities, such as ``{"position":
    "deg"}``, also one per joint; ``rate_hz`` replaces the clock of logs without one; ``kind`` forces
    ``motion``, ``static`` or ``wrench``; ``ignore`` leaves quantities out. Raises :class:`MissingJointsError`
    where the log lacks joints.
    """
    reading = _prepare(path, robot, mapping, preset, drive_gains, gear_ratios, units, topic, episode, rate_hz, kind, ignore)
    rows = reading.all_rows()
    if reading.kind == "static":
        return _static(reading, rows)
    rows = reading.without_absent(rows)
    time, values, counts = _tidy(reading, rows.time, rows.values)
    if time.size < 2:
        raise InputError(
            f"{reading.where}: {time.size} of {rows.n_rows} rows left without {counts.words()}, expected at least 2"
        )
    dropped = _dropped((*rows.notes_on_lines, *counts.notes_on_dropped()), counts.total + rows.n_malformed, rows.n_rows)
    n_torn = sum(finding.code == "cut_off" for finding in reading.table.findings)
    source = replace(
        reading.source,
        notes=(*reading.source.notes, *rows.notes, *rows.notes_on_lines, *counts.notes()),
        n_rows_in_file=rows.n_rows + n_torn,
        n_dropped=counts.total + rows.n_malformed + n_torn,
        findings=(*reading.source.findings, *reading.off_lock(rows), *dropped),
    )
    if reading.kind == "wrench":
        names = reading.plan.joint_names if "position" in values else ()
        motion = {name: values.get(name) for name in (*COLUMN_OF_BODY_MOTION, "position", "velocity", "acceleration")}
        # Nothing looks for findings in such a log later.
        source = source.noting(*(finding.sentence for finding in source.findings if finding.code != "dropped_rows"))
        return WrenchRecording(time=time, wrench=values["wrench"], joint_names=names, source=source, **motion)
    recording = Recording(time=time, joint_names=reading.plan.joint_names, source=source, **values)
    return recording if reading.drive_gains is None else recording.with_drive_gains(reading.drive_gains)


def open_recording(
    path: str | os.PathLike[str],
    robot: HasJoints | Sequence[str],
    *,
    chunk_rows: int = 50_000,
    mapping: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    preset: str | Preset | None = None,
    drive_gains: Sequence[float] | Mapping[str, float] | Array | None = None,
    gear_ratios: Sequence[float] | Mapping[str, float] | Array | None = None,
    units: Mapping[str, Any] | None = None,
    topic: str | None = None,
    episode: int | None = None,
    rate_hz: float | None = None,
    ignore: Collection[str] = (),
) -> RecordingStream:
    """A motion log read in chunks: parquet and CSV in constant memory, other formats from memory.

    Rows that come late are sorted in as :func:`read_recording` does, up to 1000 rows late; beyond that the
    stream is refused, since the order of a log larger than memory cannot be mended on the way.
    """
    reading = _prepare(
        path,
        robot,
        mapping,
        preset,
        drive_gains,
        gear_ratios,
        units,
        topic,
        episode,
        rate_hz,
        "motion",
        ignore,
    )

    def pieces(rows: int) -> Iterator[tuple[Recording | None, int]]:
        for time, values, dropped in _tidy_batches(reading, min(rows, _BATCH_ROWS)):
            if time.size == 0:
                yield None, dropped
                continue
            piece = Recording(time=time, joint_names=reading.plan.joint_names, source=reading.source, **values)
            yield piece if reading.drive_gains is None else piece.with_drive_gains(reading.drive_gains), dropped

    quantities = [name for name in COLUMN_OF_QUANTITY if name in reading.plan.slots]
    if reading.torque_is_current:
        quantities = ["current" if name == "torque" else name for name in quantities]
    if reading.drive_gains is not None:
        quantities.append("torque")
    return RecordingStream(
        joint_names=reading.plan.joint_names,
        quantities=tuple(name for name in COLUMN_OF_QUANTITY if name in quantities),
        source=replace(reading.source, n_rows_in_file=reading.table.n_rows or 0),
        chunk_rows=chunk_rows,
        read_pieces=pieces,
        n_rows_in_file=reading.table.n_rows,
    )


# -- preparation: which columns, in which units ----


@dataclass(frozen=True)
class _Rows:
    """Decoded rows, before rows are dropped or sorted."""

    time: Array
    values: dict[str, Array]
    n_rows: int
    n_malformed: int = 0
    notes: tuple[str, ...] = ()
    held: Array = field(default_factory=lambda: np.empty((2, 0)))
    """The least and largest position of each locked joint."""

    @property
    def notes_on_lines(self) -> tuple[str, ...]:
        n = self.n_malformed
        return (f"{n} {'line' if n == 1 else 'lines'} with a wrong number of fields were left out",) if n else ()


@dataclass(frozen=True)
class _Reading:
    """A table with everything that is needed to turn its batches into rows."""

    where: str
    table: Table
    plan: ColumnPlan
    kind: str
    time_scale: float
    origin: tuple[Any, ...]
    scales: Mapping[str, Array]
    torque_is_current: bool
    episode_column: str | None
    episode: int | None
    rate_hz: float | None
    drive_gains: Array | None
    locked: Mapping[str, float] = field(default_factory=dict)
    held_scale: float | None = None
    source: RecordingSource = field(default_factory=RecordingSource)

    def rows(self, batch_rows: int) -> Iterator[_Rows]:
        """Decoded batches in file order."""
        columns = list(self.plan.columns)
        if self.episode_column is not None and self.episode_column not in columns:
            columns.append(self.episode_column)
        counted = 0
        seen: set[float] = set()
        for batch in self.table.batches(columns, batch_rows):
            n_malformed = int(batch.pop(MALFORMED, np.zeros(1))[0])
            n = len(batch[columns[0]]) if columns else 0
            wanted: slice | BoolArray = slice(None)
            if self.episode_column is not None:
                episodes = as_float(batch[self.episode_column])
                if self.episode is not None:
                    wanted = episodes == self.episode
                seen |= set(np.unique(episodes[np.isfinite(episodes)]).tolist())
                if self.episode is None and len(seen) > 1:
                    raise InputError(
                        f"{self.where}: holds several episodes (column '{self.episode_column}' counts from "
                        f"{min(seen):.0f}), expected one; choose it with episode"
                    )
            time = self._seconds(batch, n, counted)
            values = {name: self._quantity(batch, name, n)[wanted] for name in self.plan.slots}
            if self.torque_is_current:
                values["current"] = values.pop("torque")
            self._refuse_impossible(time[wanted], values, np.arange(counted, counted + n)[wanted])
            counted += n
            yield _Rows(time[wanted], values, n, n_malformed, held=self._held(batch, n, wanted))
        if self.episode is not None and self.episode_column is not None and self.episode not in seen:
            numbers = f"{min(seen):.0f} to {max(seen):.0f}" if seen else "none"
            raise InputError(f"{self.where}: there is no episode {self.episode}; available: {numbers}")
        if counted == 0:
            raise InputError(f"{self.where}: holds {len(self.table.shapes)} columns and no rows")

    def all_rows(self) -> _Rows:
        """The whole file."""
        parts = list(self.rows(1 << 17))
        values: dict[str, Array] = {}
        for name in list(parts[0].values):
            # Moved out part by part, so that a log is never in memory twice as a whole.
            values[name] = np.concatenate([part.values.pop(name) for part in parts])
        malformed = sum(part.n_malformed for part in parts)
        n_rows = sum(part.n_rows for part in parts) + malformed
        held = np.stack([np.min([part.held[0] for part in parts], axis=0), np.max([part.held[1] for part in parts], axis=0)])
        return _Rows(np.concatenate([part.time for part in parts]), values, n_rows, malformed, held=held)

    def without_absent(self, rows: _Rows) -> _Rows:
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
                slot = self._slots(name)[int(np.flatnonzero(absent)[0])]
                raise InputError(f"{self.where}: column '{slot}' ({name}) holds no number in {len(array)} rows")
        if np.isnan(rows.time).all():
            raise InputError(f"{self.where}: time column '{self.plan.time[0]}' holds no number in {rows.n_rows} rows")
        return replace(rows, values=values, notes=tuple(notes))

    def off_lock(self, rows: _Rows) -> list[Finding]:
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

    def column_of(self, quantity: str, index: int) -> Slot:
        """The column that holds entry ``index`` of a quantity."""
        return self._slots(quantity)[index]

    def _slots(self, quantity: str) -> tuple[Slot, ...]:
        name = "torque" if quantity == "current" and self.torque_is_current else quantity
        return self.plan.slots[name]

    def _refuse_impossible(self, time: Array, values: Mapping[str, Array], rows: NDArray[np.int64]) -> None:
        """Numbers that no machine can have are named with their column and row (from 1)."""
        for name, array in {"time": time, **values}.items():
            place = beyond(name, array)
            if place is None:
                continue
            row, k = place
            value = float(array.reshape(len(array), -1)[row, k])
            column = self.plan.time[0] if name == "time" else self.column_of(name, k)
            raise InputError(
                f"{self.where}: column '{column}' ({name.replace('_', ' ')}) holds {value:.4g} in row {int(rows[row]) + 1}, "
                f"which no robot shows; expected at most {LARGEST[name]:.0e} in SI units"
            )

    def _held(self, batch: Batch, n: int, wanted: slice | BoolArray) -> Array:
        """The least and largest position of locked joints in a batch; NaN is passed over."""
        held = np.stack([np.full(len(self.plan.held), np.inf), np.full(len(self.plan.held), -np.inf)])
        if self.held_scale is None:
            return held
        for k, slot in enumerate(self.plan.held.values()):
            column = _numeric(self.where, slot.column, batch[slot.column])
            q = (
                self.held_scale
                * as_float(column if slot.element is None else column.reshape(n, -1)[:, slot.element])[wanted]
            )
            q = q[np.isfinite(q)]
            if q.size:
                held[:, k] = q.min(), q.max()
        return held

    def _seconds(self, batch: Batch, n: int, counted: int) -> Array:
        if self.rate_hz is not None:
            return (counted + np.arange(n)) / self.rate_hz
        if not self.plan.time:
            return np.zeros(n)
        raws = [_numeric(self.where, name, batch[name]) for name in self.plan.time]
        with np.errstate(over="ignore"):  # what overflows is refused as infinite
            time = as_float(raws[0] - self.origin[0]) * self.time_scale
            if len(raws) == 2:
                time = time + as_float(raws[1] - self.origin[1]) * 1e-9
        return time

    def _quantity(self, batch: Batch, name: str, n: int) -> Array:
        slots = self.plan.slots[name]
        scale = self.scales.get(name)
        values = np.empty((n, len(slots)))
        for k, slot in enumerate(slots):
            column = _numeric(self.where, slot.column, batch[slot.column])
            values[:, k] = column if slot.element is None else column.reshape(n, -1)[:, slot.element]
        with np.errstate(over="ignore"):
            return values if scale is None else values * scale


def _numeric(where: str, name: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "iuf":
        raise InputError(f"{where}: column '{name}' holds {values.dtype.name} values, expected numbers")
    return values


def _prepare(
    path: str | os.PathLike[str],
    robot: HasJoints | Sequence[str],
    mapping: Mapping[str, Any] | str | os.PathLike[str] | None,
    preset: str | Preset | None,
    drive_gains: Any,
    gear_ratios: Any,
    units: Mapping[str, Any] | None,
    topic: str | None,
    episode: int | None,
    rate_hz: float | None,
    kind: str | None,
    ignore: Collection[str],
) -> _Reading:
    joint_names = robot.joint_names if isinstance(robot, HasJoints) else tuple(robot)
    if isinstance(robot, str) or not joint_names:
        raise InputError(f"robot is {robot!r}, expected a robot with joints or a sequence of joint names")
    if kind is not None and kind not in KINDS:
        raise UnknownNameError("kind of recording", kind, KINDS)
    for name in ignore:
        if name not in COLUMN_OF_QUANTITY or name == "position":
            raise UnknownNameError("quantity to ignore", name, [q for q in COLUMN_OF_QUANTITY if q != "position"])
    if rate_hz is not None and not (rate_hz > 0.0 and math.isfinite(rate_hz)):
        raise InputError(f"rate_hz is {rate_hz}, expected a positive number")
    said = read_mapping(mapping)
    chosen = preset if preset is not None else said.preset
    known = find_preset(chosen) if isinstance(chosen, str) else chosen
    file = Path(path)
    where = str(file)
    table = open_table(file, topic if topic is not None else said.topic, said.header)
    matcher, renamed = _matcher(where, table, robot, tuple(joint_names), said)
    plan, kind = _plan(matcher, said, known, kind, frozenset(ignore), rate_hz)
    plan = _original(plan, renamed)
    all_units = {**(known.units if known else {}), **said.units, **(units or {})}
    side = {**(known.side if known else {}), **said.side}
    ratios = gear_ratios if gear_ratios is not None else said.gear_ratios
    gains = drive_gains if drive_gains is not None else said.drive_gains
    ratios, gains = _of_moving(ratios, matcher), _of_moving(gains, matcher)
    scales, torque_is_current = _scales(where, plan, all_units, side, ratios)
    if torque_is_current and "current" in plan.slots:
        raise InputError(f"{where}: has current columns, yet the unit of torque is {all_units['torque']!r}; ignore one")
    time_unit, time_note = _time_unit(where, table, plan, all_units.get("time"), rate_hz)
    origin, origin_note = _origin(table, plan, UNITS["time"][time_unit], rate_hz)
    episodes = [name for name, shape in table.shapes.items() if name == "episode_index" and shape == ()]
    notes = [*table.notes, *plan.notes]
    if known is not None:
        notes.append(f"preset '{known.name}': {known.about}")
    notes += [note for note in (time_note, origin_note, _order_note(plan, robot)) if note]
    return _Reading(
        where=where,
        table=table,
        plan=plan,
        kind=kind,
        time_scale=UNITS["time"][time_unit],
        origin=origin,
        scales=scales,
        torque_is_current=torque_is_current,
        episode_column=episodes[0] if episodes else None,
        episode=episode,
        rate_hz=rate_hz,
        drive_gains=None if gains is None or kind != "motion" else per_joint("drive gains", gains, plan.joint_names),
        locked=matcher.locked,
        held_scale=_held_scale(all_units.get("position"), side.get("position")),
        source=RecordingSource(
            path=where,
            sha256=hash_of(file),
            format=table.format,
            notes=tuple(notes),
            preset=known.name if known else None,
            findings=(*table.findings, *plan.findings),
        ),
    )


def _order_note(plan: ColumnPlan, robot: object) -> str:
    """Which joint each numbered column is taken for, where that is not plain: trees, and names with other numbers."""
    if not plan.by_number:
        return ""
    parents = [joint.parent for joint in getattr(robot, "joints", ())]
    branched = parents != list(range(-1, len(parents) - 1))
    ends = [re.search(r"(\d+)\D*$", name) for name in plan.joint_names]
    digits = [int(found[1]) for found in ends if found is not None]
    mixed = len(digits) == len(plan.joint_names) and digits != sorted(digits)
    if not branched and not mixed:
        return ""
    return f"numbered columns are taken for the joints in this order: {', '.join(plan.joint_names)}"


def _of_moving(values: Any, matcher: ColumnMatcher) -> Any:
    """Numbers given for all joints before locking, without those of locked joints."""
    if values is None or isinstance(values, Mapping) or len(values) != len(matcher.described):
        return values
    return [values[k] for k in matcher.kept]


def _held_scale(unit: Any, side: str | None) -> float | None:
    """What brings a position to rad or m; None where that differs from joint to joint."""
    if side == "motor" or not (unit is None or isinstance(unit, str)):
        return None
    return 1.0 if unit is None else UNITS["position"].get(unit)


def open_table(path: Path, topic: str | None = None, header: Sequence[str] | None = None) -> Table:
    """The columns of a file; its first bytes decide over its suffix."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    if path.is_dir():
        if not (path / "metadata.yaml").is_file():
            raise InputError(f"{path}: is a folder without metadata.yaml, expected a log file or a ROS 2 bag folder")
        form: str | None = "bag"
    else:
        with foreign_errors(str(path), "cannot be read"), path.open("rb") as file:
            head = file.read(16)
        if not head:
            raise InputError(f"{path}: the file is empty")
        form = next((name for magic, name in _MAGIC if head.startswith(magic)), _SUFFIXES.get(path.suffix.lower()))
    if form == "csv":
        from dynid.recording.readers.csv import open_csv

        return open_csv(path, header)
    if form == "parquet":
        from dynid.recording.readers.parquet import open_parquet

        return open_parquet(path)
    if form == "npz":
        from dynid.recording.readers.npz import open_npz

        return open_npz(path)
    if form == "bag":
        from dynid.recording.readers.ros import open_bag

        return open_bag(path, topic)
    raise InputError(
        f"{path}: the suffix '{path.suffix}' is not that of a log; expected one of {', '.join(sorted(_SUFFIXES))}"
    )


def hash_of(path: Path) -> str:
    """SHA-256 of a file, or of the files of a folder in order of their names."""
    with foreign_errors(str(path), "cannot be read"):
        if path.is_dir():
            digest = hashlib.sha256()
            for file in sorted(entry for entry in path.iterdir() if entry.is_file()):
                digest.update(file.name.encode() + bytes.fromhex(hash_of(file)))
            return digest.hexdigest()
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


def _matcher(
    where: str, table: Table, robot: HasJoints | Sequence[str], joint_names: tuple[str, ...], said: LogMapping
) -> tuple[ColumnMatcher, dict[str, str]]:
    """A matcher over the renamed columns, and the way back to the names in the file."""
    for name in said.rename:
        if name not in table.shapes:
            raise UnknownNameError("column", name, table.shapes, where)
    # A name that cannot be printed on one line is no quantity of anything.
    usable = [name for name in table.shapes if name.isprintable()]
    back = {str(said.rename.get(name, name)): name for name in usable}
    if len(back) != len(usable):
        raise InputError(f"{where}: the mapping renames two columns to the same name")
    shapes = {new: table.shapes[old] for new, old in back.items()}
    names = {new: table.element_names[old] for new, old in back.items() if old in table.element_names}
    if isinstance(robot, HasLockedJoints):
        return ColumnMatcher(where, shapes, joint_names, names, robot.described_joints, robot.locked), back
    return ColumnMatcher(where, shapes, joint_names, names), back


def _original(plan: ColumnPlan, back: Mapping[str, str]) -> ColumnPlan:
    slots = {name: tuple(replace(slot, column=back[slot.column]) for slot in group) for name, group in plan.slots.items()}
    held = {joint: replace(slot, column=back[slot.column]) for joint, slot in plan.held.items()}
    return replace(plan, slots=slots, time=tuple(back[name] for name in plan.time), held=held)


def _plan(
    matcher: ColumnMatcher,
    said: LogMapping,
    preset: Preset | None,
    kind: str | None,
    ignore: frozenset[str],
    rate_hz: float | None,
) -> tuple[ColumnPlan, str]:
    time, unit = _time_columns(matcher, said, preset)
    notes: list[str] = []
    if rate_hz is not None:
        if time:
            notes.append(f"column '{time[0]}' is ignored: the rate of {rate_hz:g} Hz was given")
        time, unit = (), None
    has_clock = bool(time) or rate_hz is not None
    wrench = _wrench(matcher, said)
    if kind is None:
        kind = _kind(matcher, said, preset, wrench is not None, has_clock)
    if kind == "static":
        return _static_plan(matcher, said, notes), kind
    if not has_clock:
        raise InputError(
            f"{matcher.where}: no time column, expected t, time or timestamp (or give rate_hz); "
            f"found {listed(matcher.shapes)}"
        )
    slots: dict[str, tuple[Slot, ...]] = {}
    if kind == "wrench":
        if wrench is None:
            raise InputError(
                f"{matcher.where}: no force and moment columns, expected fx, fy, fz, mx, my, mz; "
                f"found {listed(matcher.shapes)}"
            )
        slots["wrench"] = wrench
        slots |= matcher.body_motion() | {
            name: _axis_columns(matcher, name, said.columns[name]) for name in COLUMN_OF_BODY_MOTION if name in said.columns
        }
        taken = {slot.column for group in slots.values() for slot in group}
        for name in ("position", "velocity", "acceleration"):
            match = _slots_of(matcher, name, said, preset)
            if name not in ignore and match is not None and match.complete(len(matcher.joint_names)):
                group = tuple(match.slots[k] for k in range(len(matcher.joint_names)))
                if not taken & {slot.column for slot in group} and ("position" in slots or name == "position"):
                    slots[name] = group
        return ColumnPlan(matcher.joint_names, time, unit, slots, tuple(notes)), kind
    positions: Match | None = None
    held: dict[str, Slot] = {}
    findings: list[Finding] = []
    for name in quantities_of_motion(ignore):
        match = _slots_of(matcher, name, said, preset)
        if name == "position":
            expected = (
                f"those of preset '{preset.name}' ({preset.columns['position'][0]} ..)"
                if preset is not None
                else "q1.., or names such as q_<joint> and <joint>.position"
            )
            slots[name] = matcher.positions(match, expected)
            if match is not None:
                positions = match
                held, said_of_others, findings = matcher.strangers(match)
                notes += said_of_others
            continue
        found, note = matcher.others(name, match, positions)
        if found is not None:
            slots[name] = found
        if note is not None:
            notes.append(note)
    numbered = positions is not None and positions.by_number
    return ColumnPlan(matcher.joint_names, time, unit, slots, tuple(notes), tuple(findings), held, numbered), kind


def _kind(matcher: ColumnMatcher, said: LogMapping, preset: Preset | None, wrench: bool, has_clock: bool) -> str:
    driven = any(_slots_of(matcher, name, said, preset) is not None for name in ("torque", "current"))
    if preset is not None or (has_clock and driven):
        return "motion"
    if matcher.has_inertia() or (not has_clock and _slots_of(matcher, "gravity", said, None) is not None):
        return "static"
    return "wrench" if wrench else "motion"


def _static_plan(matcher: ColumnMatcher, said: LogMapping, notes: list[str]) -> ColumnPlan:
    # Positions first: a table that lacks joints is refused with their names, so that they can be locked.
    match = _slots_of(matcher, "position", said, None)
    slots = {"position": matcher.positions(match, "q1.. beside M11.. and g1..")}
    held, said_of_others, findings = matcher.strangers(match) if match is not None else ({}, [], [])
    notes = [*notes, *said_of_others, *(finding.sentence for finding in findings)]
    inertia = matcher.inertia()
    if inertia is not None:
        slots["inertia"] = inertia
    gravity, _ = matcher.others("gravity", _slots_of(matcher, "gravity", said, None), match)
    if gravity is not None:
        slots["gravity"] = gravity
    if len(slots) == 1:
        raise InputError(
            f"{matcher.where}: no inertia (M11, M21, ..) or gravity (g1, ..) columns; found {listed(matcher.shapes)}"
        )
    numbered = match is not None and match.by_number
    return ColumnPlan(matcher.joint_names, (), None, slots, tuple(notes), held=held, by_number=numbered)


def _time_columns(matcher: ColumnMatcher, said: LogMapping, preset: Preset | None) -> tuple[tuple[str, ...], str | None]:
    if said.time:
        for name in said.time:
            if name not in matcher.shapes:
                raise UnknownNameError("time column", name, matcher.shapes, matcher.where)
        return said.time, None
    if preset is not None:
        for candidate in preset.time:
            names = (candidate,) if isinstance(candidate, str) else candidate
            columns = [matcher.only(name) for name in names]
            if all(column is not None for column in columns):
                return tuple(column for column in columns if column is not None), None
    return matcher.time()


def _slots_of(matcher: ColumnMatcher, quantity: str, said: LogMapping, preset: Preset | None) -> Match | None:
    """Columns of a quantity: as the mapping says, else as the preset says, else by the usual names."""
    if quantity in said.columns:
        return matcher.by_mapping(quantity, said.columns[quantity])
    if preset is not None:
        return matcher.by_pattern(preset.columns[quantity]) if quantity in preset.columns else None
    return matcher.by_alias(quantity)


def _wrench(matcher: ColumnMatcher, said: LogMapping) -> tuple[Slot, ...] | None:
    if "wrench" in said.columns:
        return _axis_columns(matcher, "wrench", said.columns["wrench"])
    return matcher.wrench()


def _axis_columns(matcher: ColumnMatcher, name: str, columns: Columns) -> tuple[Slot, ...]:
    n = 6 if name == "wrench" else 3
    if isinstance(columns, str):
        if matcher.shapes.get(columns) == (n,):
            return tuple(Slot(columns, k) for k in range(n))
        raise InputError(f"{matcher.where}: mapping of '{name}' is '{columns}', expected {n} columns")
    named = tuple(columns)
    if isinstance(columns, Mapping) or len(named) != n:
        raise InputError(f"{matcher.where}: mapping of '{name}' has {len(named)} columns, expected a list of {n}")
    for column in named:
        if column not in matcher.shapes:
            raise UnknownNameError("column", column, matcher.shapes, matcher.where)
    return tuple(Slot(column) for column in named)


def _scales(
    where: str, plan: ColumnPlan, units: Mapping[str, Any], side: Mapping[str, str], ratios: Any
) -> tuple[dict[str, Array], bool]:
    """Factors per joint that bring each quantity to SI at the joint side, and whether torque columns hold
    current.
    """
    n = len(plan.joint_names)
    for name in units:
        if name not in UNITS:
            raise UnknownNameError("quantity in units", str(name), UNITS)
    for name, place in side.items():
        if name not in COLUMN_OF_QUANTITY:
            raise UnknownNameError("quantity in side", str(name), COLUMN_OF_QUANTITY)
        if place not in ("joint", "motor"):
            raise UnknownNameError("side of the gearbox", str(place), ("joint", "motor"))
    gear = None if ratios is None else per_joint("gear ratios", ratios, plan.joint_names)
    if gear is not None and np.any(gear == 0.0):
        raise InputError(f"gear ratios are {gear.tolist()}, expected none to be zero")
    scales: dict[str, Array] = {}
    torque_is_current = False
    for name in plan.slots:
        if name not in UNITS:
            continue
        scale = np.ones(n)
        if name in units:
            given = units[name]
            names = [given] * n if isinstance(given, str) else list(given)
            if len(names) != n:
                raise InputError(f"{len(names)} units of {name} given, robot has {n} joints")
            for unit in names:
                if unit not in UNITS[name]:
                    raise UnknownNameError(f"unit of {name}", str(unit), UNITS[name])
            scale *= [UNITS[name][unit] for unit in names]
            if name == "torque" and any(unit in ("A", "mA") for unit in names):
                if not all(unit in ("A", "mA") for unit in names):
                    raise InputError(f"units of torque mix amperes and newton metres: {', '.join(names)}")
                torque_is_current = True
        if side.get(name) == "motor" and name in _GEAR_POWER and not (name == "torque" and torque_is_current):
            if gear is None:
                raise InputError(f"{where}: {name} is measured at the motor, expected gear ratios")
            scale = scale * gear ** float(_GEAR_POWER[name])
        if np.any(scale != 1.0):
            scales[name] = scale
    return scales, torque_is_current


def _time_unit(where: str, table: Table, plan: ColumnPlan, given: Any, rate_hz: float | None) -> tuple[str, str | None]:
    """The unit of the clock: as given, as the file or the column's name tells, else by its steps."""
    if given is not None and given not in UNITS["time"]:
        raise UnknownNameError("unit of time", str(given), UNITS["time"])
    if rate_hz is not None or not plan.time or len(plan.time) == 2:
        return "s", None
    if given is not None:
        return str(given), None
    column = plan.time[0]
    if column in table.units:
        return table.units[column], None
    if plan.time_unit is not None:
        unit = plan.time_unit
        return unit, None if unit == "s" else f"time column '{column}' is read as {unit} by its name"
    head = _head(where, table, column)
    if head.size < 2:
        return "s", None
    for unit, least in (("ns", 1e17), ("us", 1e14), ("ms", 1e11), ("s", 1e8)):
        if abs(float(head[0])) > least:
            return (
                unit,
                None if unit == "s" else f"time column '{column}' is read as {unit}: its stamps are dates",
            )
    with np.errstate(over="ignore"):
        steps = np.diff(np.unique(head))
    if steps.size == 0:
        return "s", None
    step = float(np.median(steps))
    unit = next((name for name, most in (("s", 0.4), ("ms", 150.0), ("us", 1.5e5)) if step < most), "ns")
    if unit == "s":
        return unit, None
    return unit, f"time column '{column}' is read as {unit}: its median step is {step:.6g}"


def _head(where: str, table: Table, column: str) -> Array:
    for batch in table.batches([column], _HEAD_ROWS):
        values = as_float(_numeric(where, column, batch[column])[:_HEAD_ROWS])
        if values.size:
            return values[np.isfinite(values)]
    return np.empty(0)


def _origin(table: Table, plan: ColumnPlan, scale: float, rate_hz: float | None) -> tuple[tuple[Any, ...], str | None]:
    """Stamps that are dates count from the first one, so that microseconds survive in floats."""
    if rate_hz is not None or not plan.time:
        return (0, 0), None
    for batch in table.batches(list(plan.time), _HEAD_ROWS):
        first = batch[plan.time[0]]
        known = np.flatnonzero(np.isfinite(as_float(first)))
        if known.size == 0:
            continue
        k = int(known[0])
        if abs(float(first[k])) * scale < _EPOCH_S:
            return (0, 0), None
        seconds = float(first[k]) * scale
        # A Python integer keeps int64 stamps exact; a column that turns to floats later still subtracts it
        # rightly.
        exact = [int(batch[name][k]) if batch[name].dtype.kind == "i" else float(batch[name][k]) for name in plan.time]
        return (*exact, 0)[:2], f"time counts from the first stamp, {seconds:.3f} s"
    return (0, 0), None


# -- rows: what is dropped and in which order ----


@dataclass(frozen=True)
class _Counts:
    nan: int
    repeated: int
    sorted_rows: int

    @property
    def total(self) -> int:
        return self.nan + self.repeated

    def words(self) -> str:
        return f"{self.nan} rows with NaN and {self.repeated} with a repeated stamp"

    def notes(self) -> list[str]:
        notes = self.notes_on_dropped()
        if self.sorted_rows:
            notes.append(f"{self.sorted_rows} rows were out of order and sorted by their stamps")
        return notes

    def notes_on_dropped(self) -> list[str]:
        notes = []
        if self.nan:
            notes.append(f"{self.nan} rows with NaN were left out")
        if self.repeated:
            notes.append(f"{self.repeated} rows with a repeated stamp were left out, the first of each kept")
        return notes


def _dropped(reasons: Sequence[str], n_dropped: int, n_rows: int) -> list[Finding]:
    """Rows that were left out, in the words of the notes, so that both can be told as one."""
    return [dropped_rows("; ".join(reasons), n_dropped, n_rows)] if n_dropped else []


def _tidy(
    reading: _Reading, time: Array, values: dict[str, Array], after: float | None = None
) -> tuple[Array, dict[str, Array], _Counts]:
    """Rows without NaN, with stamps that increase and, in a stream, come after ``after``."""
    streaming = after is not None
    after = -math.inf if after is None else after
    for name, array in values.items():
        infinite = np.isinf(array)
        if infinite.any():
            k = int(np.flatnonzero(infinite.any(axis=0))[0])
            raise InputError(
                f"{reading.where}: column '{reading.column_of(name, k)}' ({name}) holds "
                f"{int(infinite[:, k].sum())} "
                "infinite values, expected finite numbers"
            )
    if np.isinf(time).any():
        raise InputError(
            f"{reading.where}: time column '{reading.plan.time[0]}' holds {int(np.isinf(time).sum())} infinite values"
        )
    whole = np.isfinite(time)
    for array in values.values():
        whole &= np.isfinite(array).all(axis=1)
    n_nan = int(whole.size - np.count_nonzero(whole))
    if n_nan == whole.size and n_nan and not streaming:
        raise InputError(f"{reading.where}: each of the {n_nan} rows has a NaN in {', '.join(['time', *values])}")
    keep = np.flatnonzero(whole)
    clock = time[keep]
    back = np.flatnonzero(np.diff(clock) < 0.0)
    n_sorted = 0
    if back.size:
        order = np.argsort(clock, kind="stable")
        # Rows or blocks out of place leave few seams; a clock that starts over would interleave whole runs.
        seams = int(np.count_nonzero(np.diff(order) != 1))
        if seams > 10 * (back.size + 1):
            row = int(keep[back[0] + 1])
            raise InputError(
                f"{reading.where}: the clock starts over at row {row} ({clock[back[0]]:.9g} s to "
                f"{clock[back[0] + 1]:.9g} s), expected one run per log; split the file there"
            )
        n_sorted = int(np.count_nonzero(order != np.arange(order.size)))
        keep, clock = keep[order], clock[order]
    if clock.size and clock[0] < after:
        raise InputError(
            f"{reading.where}: stamps go back from {after:.9g} s to {clock[0]:.9g} s, "
            "expected a log in order of time; read it whole or sort it first"
        )
    fresh = np.diff(clock, prepend=after) > 0.0
    n_repeated = int(fresh.size - np.count_nonzero(fresh))
    keep, clock = keep[fresh], clock[fresh]
    if keep.size != time.size or n_sorted:
        values = {name: array[keep] for name, array in values.items()}
    for array in values.values():
        array.flags.writeable = False
    return clock, values, _Counts(n_nan, n_repeated, n_sorted)


def _tidy_batches(reading: _Reading, batch_rows: int) -> Iterator[tuple[Array, dict[str, Array], int]]:
    """Tidied rows batch by batch, and the rows dropped; the last rows wait for late ones of the next batch."""
    last = -math.inf
    time, values, dropped = np.empty(0), dict[str, Array](), 0
    for part in reading.rows(batch_rows):
        if time.size:
            time = np.concatenate([time, part.time])
            values = {name: np.concatenate([values[name], array]) for name, array in part.values.items()}
        else:
            time, values = part.time, part.values
        time, values, counts = _tidy(reading, time, values, after=last)
        dropped = counts.total + part.n_malformed
        ready = max(0, time.size - _LATE_ROWS)
        if ready:
            last = float(time[ready - 1])
        yield time[:ready], {name: array[:ready] for name, array in values.items()}, dropped
        time, values = time[ready:], {name: array[ready:] for name, array in values.items()}
    yield time, values, 0


def _static(reading: _Reading, rows: _Rows) -> StaticRecording:
    n = len(reading.plan.joint_names)
    whole = np.ones(len(rows.time), dtype=bool)
    for name, array in rows.values.items():
        if np.isinf(array).any():
            k = int(np.flatnonzero(np.isinf(array).any(axis=0))[0])
            raise InputError(f"{reading.where}: column '{reading.column_of(name, k)}' holds infinite values")
        if np.isnan(array).all(axis=0).any():
            k = int(np.flatnonzero(np.isnan(array).all(axis=0))[0])
            raise InputError(f"{reading.where}: column '{reading.column_of(name, k)}' holds no number")
        whole &= np.isfinite(array).all(axis=1)
    if not whole.any():
        raise InputError(f"{reading.where}: each of the {whole.size} rows has a NaN")
    dropped = int(whole.size - np.count_nonzero(whole))
    notes = (
        *reading.source.notes,
        *rows.notes,
        *rows.notes_on_lines,
        *(finding.sentence for finding in (*reading.table.findings, *reading.off_lock(rows))),
        *((f"{dropped} rows with NaN were left out",) if dropped else ()),
    )
    inertia = rows.values.get("inertia")
    gravity = rows.values.get("gravity")
    try:
        return StaticRecording(
            position=rows.values["position"][whole],
            joint_names=reading.plan.joint_names,
            inertia=None if inertia is None else inertia[whole].reshape(-1, n, n),
            gravity=None if gravity is None else gravity[whole],
            source=replace(reading.source, notes=notes, n_rows_in_file=rows.n_rows, n_dropped=dropped + rows.n_malformed),
        )
    except InputError as error:
        raise InputError(f"{reading.where}: {error}") from error
