"""What a log holds: motion, pose table or force/torque recording, and a stream of motion for logs beyond
memory.

All quantities are SI at the joint side of the gearbox; rows are samples, columns are joints in the robot's
order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array, check_finite, check_shape, freeze, matrix
from dynid.errors import InputError, UnknownNameError
from dynid.files import write_atomically
from dynid.recording.finding import Finding

#: Quantities of a motion log with one column per joint, and the column name each is written under.
COLUMN_OF_QUANTITY: Mapping[str, str] = {
    "position": "q",
    "velocity": "dq",
    "acceleration": "ddq",
    "torque": "tau",
    "current": "i",
    "reference_position": "q_ref",
    "external_torque": "tau_ext",
}

#: Motion of the sensor body in a force/torque log, with the column name each is written under.
COLUMN_OF_BODY_MOTION: Mapping[str, str] = {
    "linear_velocity": "v",
    "angular_velocity": "w",
    "linear_acceleration": "a",
    "angular_acceleration": "alpha",
}


#: The largest magnitude that any machine shows, SI; what lies beyond is no measurement, and its square may overflow.
LARGEST: Mapping[str, float] = {
    "time": 1e12,
    "position": 1e6,
    "velocity": 1e6,
    "acceleration": 1e9,
    "torque": 1e9,
    "current": 1e9,
    "reference_position": 1e6,
    "external_torque": 1e9,
    "linear_velocity": 1e6,
    "angular_velocity": 1e6,
    "linear_acceleration": 1e9,
    "angular_acceleration": 1e9,
    "wrench": 1e9,
    "inertia": 1e9,
    "gravity": 1e9,
}


def beyond(quantity: str, values: Array) -> tuple[int, int] | None:
    """Row and column of the first finite value that no machine can have, None where there is none."""
    if not values.size:
        return None
    bound = LARGEST[quantity]
    columns = values.reshape(len(values), -1)
    # Most logs are in order: two passes without memory of their own tell so. NaN hides what is beside it.
    if -bound <= columns.min() and columns.max() <= bound:
        return None
    places = np.argwhere((np.abs(columns) > bound) & np.isfinite(columns))
    return (int(places[0, 0]), int(places[0, 1])) if len(places) else None


@dataclass(frozen=True)
class Part:
    """Rows ``start`` to ``stop`` (half open) of a log of ``n_rows`` rows and ``duration_s`` seconds."""

    start: int
    stop: int
    n_rows: int
    duration_s: float
    name: str = ""
    """What the part is for, such as validation part."""

    def __str__(self) -> str:
        n = self.stop - self.start
        if self.start == 0:
            rows = f"the first {n} of its {self.n_rows} rows"
        elif self.stop == self.n_rows:
            rows = f"the last {n} of its {self.n_rows} rows"
        else:
            rows = f"rows {self.start + 1} to {self.stop} of its {self.n_rows}"
        return f"{self.name}, {rows}" if self.name else rows

    def of(self, whole: Part | None) -> Part:
        """This part, which was cut from another one, as a part of the log."""
        if whole is None:
            return self
        start = whole.start + self.start
        return Part(start, whole.start + self.stop, whole.n_rows, whole.duration_s, self.name or whole.name)


@dataclass(frozen=True)
class RecordingSource:
    """Where a recording came from and what was done to it while reading.

    ``n_rows_in_file`` counts the rows as they lie in the file, ``n_dropped`` those that were left out;
    ``notes`` are sentences for the user, ``findings`` what reading found wrong; ``part`` tells which rows of the log
    these are, None for all.
    """

    path: str = ""
    sha256: str = ""
    format: str = "memory"
    notes: tuple[str, ...] = ()
    n_rows_in_file: int = 0
    n_dropped: int = 0
    preset: str | None = None
    findings: tuple[Finding, ...] = ()
    part: Part | None = None

    def noting(self, *notes: str) -> Self:
        """The same source with more notes."""
        return replace(self, notes=(*self.notes, *notes))


def _joint_names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InputError(f"joint_names is the text '{names}', expected a sequence of names")
    names = tuple(str(name) for name in names)
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"joint name '{twice[0]}' appears more than once, expected distinct names")
    return names


def _clock(time: Any) -> Array:
    array = freeze(time)
    check_shape("time", array, (None,))
    check_finite("time", array)
    if array.size == 0:
        raise InputError("recording holds no rows, expected at least one")
    backwards = np.flatnonzero(np.diff(array) <= 0.0)
    if backwards.size:
        k = int(backwards[0])
        raise InputError(
            f"time does not increase from row {k} ({array[k]:.9g} s) to row {k + 1} ({array[k + 1]:.9g} s), "
            "expected strictly increasing stamps"
        )
    return array


def per_joint(what: str, values: Sequence[float] | Mapping[str, float] | Array, joint_names: Sequence[str]) -> Array:
    """One number per joint from a sequence in joint order or a table by joint name."""
    if isinstance(values, Mapping):
        for name in values:
            if name not in joint_names:
                raise UnknownNameError("joint", str(name), joint_names, what)
        absent = [name for name in joint_names if name not in values]
        if absent:
            raise InputError(f"{what} lack joint '{absent[0]}'; given: {', '.join(values)}")
        values = [values[name] for name in joint_names]
    try:
        array = freeze(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} are not numbers: {values!r}") from error
    if array.shape != (len(joint_names),):
        raise InputError(f"{array.size} {what} given, robot has {len(joint_names)} joints")
    check_finite(what, array)
    return array


@dataclass(frozen=True, eq=False)
class Recording:
    """A motion log: ``time`` (n,), the rest (n, joints) or None where the log has none.

    ``current`` is in ampere; :meth:`with_drive_gains` makes torque of it. ``reference_position`` is what was
    commanded, ``external_torque`` an estimate by the controller of torque from contact (never the joint
    torque itself).
    """

    time: Array
    position: Array
    joint_names: tuple[str, ...]
    velocity: Array | None = None
    acceleration: Array | None = None
    torque: Array | None = None
    current: Array | None = None
    reference_position: Array | None = None
    external_torque: Array | None = None
    source: RecordingSource = field(default_factory=RecordingSource)

    def __post_init__(self) -> None:
        object.__setattr__(self, "joint_names", _joint_names(self.joint_names))
        object.__setattr__(self, "time", _clock(self.time))
        shape = (self.time.size, len(self.joint_names))
        for name in COLUMN_OF_QUANTITY:
            values = getattr(self, name)
            if values is not None or name == "position":
                object.__setattr__(self, name, matrix(name, values, shape))

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.time.size)

    @property
    def n_joints(self) -> int:
        """Number of joints."""
        return len(self.joint_names)

    @property
    def duration_s(self) -> float:
        """Time from the first to the last stamp."""
        return float(self.time[-1] - self.time[0])

    @property
    def rate_hz(self) -> float:
        """Mean sampling rate ``(n - 1) / (t_n - t_1)``; NaN for a single row."""
        return (self.n_samples - 1) / self.duration_s if self.n_samples > 1 else float("nan")

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the quantities this recording holds."""
        return tuple(name for name in COLUMN_OF_QUANTITY if getattr(self, name) is not None)

    def with_(self, **changes: Any) -> Self:
        """The same recording with some fields replaced."""
        known = {"time", "joint_names", "source", *COLUMN_OF_QUANTITY}
        for name in changes:
            if name not in known:
                raise UnknownNameError("field of a recording", name, sorted(known))
        return replace(self, **changes)

    @property
    def place(self) -> str:
        """The log for a message: its file, and which part of it this is where it is not the whole."""
        file, part = self.source.path or "the recording", self.source.part
        if part is None:
            return file
        return f"{file} ({part.n_rows} rows, {part.duration_s:.4g} s), {part}"

    def rows(self, start: int, stop: int | None = None, *, part: str = "") -> Self:
        """Rows ``start`` to ``stop`` (half open, like a slice); ``part`` says what they are for, in messages."""
        first, end, _ = slice(start, stop).indices(self.n_samples)
        if end <= first:
            last = "its end" if stop is None else f"row {stop}"
            raise InputError(f"{self.place}: no sample from row {start} to {last}; it has {self.n_samples} rows")
        cut = self._cut(first, end)
        if end - first == self.n_samples and not part:
            return cut
        piece = Part(first, end, self.n_samples, self.duration_s, part).of(self.source.part)
        return replace(cut, source=replace(self.source, part=piece))

    def _cut(self, start: int, stop: int | None = None) -> Self:
        """Rows of a piece of a stream, whose place in the log is not known."""
        rows = slice(start, stop)
        return replace(self, time=self.time[rows], **{name: getattr(self, name)[rows] for name in self.quantities})

    def between(self, from_s: float | None = None, to_s: float | None = None) -> Self:
        """The part with ``from_s <= time <= to_s`` on the log's own clock."""
        start = 0 if from_s is None else int(np.searchsorted(self.time, from_s, side="left"))
        stop = self.n_samples if to_s is None else int(np.searchsorted(self.time, to_s, side="right"))
        if stop <= start:
            low = "its start" if from_s is None else f"{from_s:g} s"
            high = "its end" if to_s is None else f"{to_s:g} s"
            raise InputError(
                f"{self.place}: no sample between {low} and {high}; the log runs from {self.time[0]:.6g} s "
                f"to {self.time[-1]:.6g} s"
            )
        return self.rows(start, stop)

    def select(self, joints: Sequence[str]) -> Self:
        """The columns of ``joints`` in that order."""
        for name in joints:
            if name not in self.joint_names:
                raise UnknownNameError("joint", name, self.joint_names, self.source.path or "the recording")
        columns = [self.joint_names.index(name) for name in joints]
        values = {name: getattr(self, name)[:, columns] for name in self.quantities}
        return replace(self, joint_names=tuple(joints), **values)

    def with_drive_gains(self, gains: Sequence[float] | Mapping[str, float] | Array) -> Self:
        """``tau_j = k_j i_j``, gains in newton metre per ampere at the joint side."""
        signal, told = self.current, "torque is drive gain times motor current"
        if signal is None:
            signal, told = self.torque, "the torque columns are taken as motor current, torque is drive gain times these"
        if signal is None:
            raise InputError(
                f"drive gains need motor current, but {self.source.path or 'the recording'} has neither current nor torque "
                "columns (expected i1.., tau1.. or names such as actual_current_0..)"
            )
        k = per_joint("drive gains", gains, self.joint_names)
        return replace(self, torque=signal * k, source=self.source.noting(told))

    @classmethod
    def concatenate(cls, parts: Sequence[Recording]) -> Recording:
        """Parts of one log, in order of time, as one recording."""
        if not parts:
            raise InputError("no parts to join, expected at least one recording")
        first = parts[0]
        for part in parts[1:]:
            if part.joint_names != first.joint_names or part.quantities != first.quantities:
                raise InputError(
                    f"parts differ: one has {', '.join(first.quantities)} of {first.n_joints} joints, "
                    f"another {', '.join(part.quantities)} of {part.n_joints} joints"
                )
        values: dict[str, Any] = {}
        for name in first.quantities:
            values[name] = np.concatenate([getattr(part, name) for part in parts])
            values[name].flags.writeable = False
        source = replace(first.source, part=None)
        return replace(first, time=np.concatenate([part.time for part in parts]), source=source, **values)


@dataclass(frozen=True, eq=False)
class StaticRecording:
    """A table of poses: inertia matrix ``M(q)`` (n, J, J) and gravity torque ``g(q)`` (n, J) at ``position``
    (n, J).
    """

    position: Array
    joint_names: tuple[str, ...]
    inertia: Array | None = None
    gravity: Array | None = None
    source: RecordingSource = field(default_factory=RecordingSource)

    def __post_init__(self) -> None:
        names = _joint_names(self.joint_names)
        object.__setattr__(self, "joint_names", names)
        position = matrix("position", self.position, (None, len(names)))
        object.__setattr__(self, "position", position)
        if len(position) == 0:
            raise InputError("pose table holds no rows, expected at least one")
        if self.inertia is None and self.gravity is None:
            raise InputError("pose table holds neither inertia nor gravity, expected at least one of them")
        if self.inertia is not None:
            inertia = matrix("inertia", self.inertia, (len(position), len(names), len(names)))
            gap = float(np.abs(inertia - inertia.transpose(0, 2, 1)).max())
            scale = float(np.abs(inertia).max())
            if gap > 1e-6 * scale:
                raise InputError(f"inertia is not symmetric: entries differ by up to {gap:.3g} of {scale:.3g}")
            object.__setattr__(self, "inertia", inertia)
        if self.gravity is not None:
            object.__setattr__(self, "gravity", matrix("gravity", self.gravity, position.shape))

    @property
    def n_samples(self) -> int:
        """Number of poses."""
        return len(self.position)

    @property
    def n_joints(self) -> int:
        """Number of joints."""
        return len(self.joint_names)


@dataclass(frozen=True, eq=False)
class WrenchRecording:
    """A force/torque-sensor log: ``wrench`` (n, 6) = (force, moment) in the sensor frame, and how the sensor
    moved.

    The motion is that of the sensor body, (n, 3) each in its own frame, or that of the joints, (n, J). The
    linear acceleration is the proper one, ``a - g``, which an accelerometer at the sensor's origin shows.
    """

    time: Array
    wrench: Array
    linear_velocity: Array | None = None
    angular_velocity: Array | None = None
    linear_acceleration: Array | None = None
    angular_acceleration: Array | None = None
    joint_names: tuple[str, ...] = ()
    position: Array | None = None
    velocity: Array | None = None
    acceleration: Array | None = None
    source: RecordingSource = field(default_factory=RecordingSource)

    def __post_init__(self) -> None:
        names = _joint_names(self.joint_names)
        object.__setattr__(self, "joint_names", names)
        object.__setattr__(self, "time", _clock(self.time))
        n = self.time.size
        object.__setattr__(self, "wrench", matrix("wrench", self.wrench, (n, 6)))
        shapes = dict.fromkeys(COLUMN_OF_BODY_MOTION, (n, 3))
        shapes |= dict.fromkeys(("position", "velocity", "acceleration"), (n, len(names)))
        for name, shape in shapes.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, matrix(name, getattr(self, name), shape))

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.time.size)

    @property
    def n_joints(self) -> int:
        """Number of joints whose motion is known."""
        return len(self.joint_names)

    @property
    def duration_s(self) -> float:
        """Time from the first to the last stamp."""
        return float(self.time[-1] - self.time[0])

    @property
    def rate_hz(self) -> float:
        """Mean sampling rate; NaN for a single row."""
        return (self.n_samples - 1) / self.duration_s if self.n_samples > 1 else float("nan")

    @property
    def force(self) -> Array:
        """Force (n, 3) in newton."""
        return self.wrench[:, :3]

    @property
    def moment(self) -> Array:
        """Moment (n, 3) in newton metre."""
        return self.wrench[:, 3:]


@dataclass(frozen=True, eq=False)
class RecordingChunk:
    """Consecutive rows of a stream, with ``n_before`` and ``n_after`` rows of its neighbours for filters.

    ``first_row`` numbers the first own row among the rows the stream yields; ``n_dropped`` counts rows of the
    file that were left out since the previous chunk.
    """

    recording: Recording
    n_before: int
    n_after: int
    first_row: int
    n_dropped: int = 0

    @property
    def own(self) -> slice:
        """The rows that belong to this chunk, as a slice of its recording."""
        return slice(self.n_before, self.recording.n_samples - self.n_after)

    @property
    def n_own(self) -> int:
        """How many rows belong to this chunk."""
        return self.recording.n_samples - self.n_before - self.n_after


@dataclass(frozen=True, eq=False)
class RecordingStream:
    """A motion log read in chunks, in memory that does not grow with its length; may be walked through
    repeatedly.

    ``read_pieces(rows)`` starts at the head of the file and yields ``(recording or None, rows dropped)`` in
    order.
    """

    joint_names: tuple[str, ...]
    quantities: tuple[str, ...]
    source: RecordingSource
    chunk_rows: int
    read_pieces: Callable[[int], Iterator[tuple[Recording | None, int]]] = field(repr=False)
    n_rows_in_file: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "joint_names", _joint_names(self.joint_names))
        if self.chunk_rows < 1:
            raise InputError(f"chunk_rows is {self.chunk_rows}, expected at least 1")

    @property
    def n_joints(self) -> int:
        """Number of joints."""
        return len(self.joint_names)

    def __iter__(self) -> Iterator[Recording]:
        """Chunks of ``chunk_rows`` rows (the last may be shorter), without overlap."""
        return (chunk.recording for chunk in self.chunks())

    def chunks(self, before: int = 0, after: int = 0) -> Iterator[RecordingChunk]:
        """Chunks of ``chunk_rows`` own rows with up to ``before`` and ``after`` rows of overlap on either
        side.

        The overlap is shorter only at the ends of the log.
        """
        if before < 0 or after < 0:
            raise InputError(f"overlap is {before} rows before and {after} after, expected none below 0")
        held: list[Recording] = []
        n_held = 0
        own = 0  # row of what is held where the next chunk's own rows start
        first_row = 0
        dropped = 0
        for piece, n_dropped in self.read_pieces(self.chunk_rows):
            dropped += n_dropped
            if piece is None:
                continue
            held.append(piece)
            n_held += piece.n_samples
            if n_held - own < self.chunk_rows + max(after, 1):
                continue
            joined = Recording.concatenate(held)
            while n_held - own >= self.chunk_rows + max(after, 1):
                stop = own + self.chunk_rows
                start = max(0, own - before)
                yield RecordingChunk(joined._cut(start, stop + after), own - start, after, first_row, dropped)
                dropped = 0
                first_row += self.chunk_rows
                own = stop
            keep = max(0, own - before)
            held, n_held, own = [joined._cut(keep)], n_held - keep, own - keep
        if not held:
            raise InputError(f"{self.source.path}: no row is left of the log; {dropped} rows have NaN or repeated stamps")
        joined = Recording.concatenate(held)
        while own < n_held:
            stop = min(own + self.chunk_rows, n_held)
            start = max(0, own - before)
            end = min(stop + after, n_held)
            yield RecordingChunk(joined._cut(start, end), own - start, end - stop, first_row, dropped)
            dropped = 0
            first_row += stop - own
            own = stop

    def read(self) -> Recording:
        """The whole log in memory."""
        return Recording.concatenate(list(self))


def write_recording(
    recording: Recording | StaticRecording | WrenchRecording,
    path: str | os.PathLike[str],
    *,
    by_name: bool = False,
) -> Path:
    """Write a recording as CSV, parquet or npz by the suffix of ``path``; complete or not at all.

    Columns are ``t, q1.., dq1.., ddq1.., tau1.., i1..``, with ``by_name`` ``t, q_<joint>..``; a pose table
    gives ``q1.., M11, M21, M22, .., g1..``.
    """
    target = Path(path)
    columns = _columns_of(recording, by_name)
    suffix = target.suffix.lower()
    if suffix not in (".csv", ".parquet", ".npz"):
        raise InputError(f"cannot write a recording to '{target}': expected the suffix .csv, .parquet or .npz")
    return write_atomically(target, lambda temporary: _write_columns(columns, temporary, suffix))


def _write_columns(columns: Mapping[str, NDArray[Any]], path: Path, suffix: str) -> None:
    if suffix == ".npz":
        np.savez_compressed(path, allow_pickle=False, **columns)
        return
    import pyarrow as pa

    table = pa.table({name: np.ascontiguousarray(values) for name, values in columns.items()})
    if suffix == ".csv":
        import pyarrow.csv as arrow_csv

        arrow_csv.write_csv(table, path, arrow_csv.WriteOptions(quoting_style="needed"))
    else:
        import pyarrow.parquet as arrow_parquet

        arrow_parquet.write_table(table, path, compression="zstd")


def _columns_of(recording: Recording | StaticRecording | WrenchRecording, by_name: bool) -> dict[str, NDArray[Any]]:
    labels = [f"_{name}" for name in recording.joint_names] if by_name else _numbers(recording.n_joints)
    columns: dict[str, NDArray[Any]] = {}
    if isinstance(recording, StaticRecording):
        columns |= _spread("q", recording.position, labels)
        if recording.inertia is not None:
            separator = "" if recording.n_joints < 10 else "_"
            rows, cols = np.tril_indices(recording.n_joints)
            for i, j in zip(rows, cols, strict=True):
                columns[f"M{i + 1}{separator}{j + 1}"] = recording.inertia[:, i, j]
        if recording.gravity is not None:
            columns |= _spread("g", recording.gravity, labels)
        return columns
    columns["t"] = recording.time
    if isinstance(recording, WrenchRecording):
        columns |= _spread("f", recording.force, "xyz") | _spread("m", recording.moment, "xyz")
        for name, column in COLUMN_OF_BODY_MOTION.items():
            if (values := getattr(recording, name)) is not None:
                columns |= _spread(column, values, "xyz")
    for name, column in COLUMN_OF_QUANTITY.items():
        if (values := getattr(recording, name, None)) is not None:
            columns |= _spread(column, values, labels)
    return columns


def _numbers(n: int) -> list[str]:
    return [str(k + 1) for k in range(n)]


def _spread(column: str, values: Array, labels: Sequence[str]) -> dict[str, NDArray[Any]]:
    return {f"{column}{label}": values[:, k] for k, label in enumerate(labels)}
