"""A log of any known format as a recording, in one piece or as a stream; and recordings written to CSV, parquet and npz.

Reading repairs only what has one right answer, and notes it: stamps out of order are sorted, repeated stamps
and rows with NaN are left out. Gaps stay. Anything else that is not as expected is refused in one sentence.

MCAP files of JSON messages with their schemas, which Foxglove, rerun and PlotJuggler open.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array
from dynid.errors import InputError, MissingPackageError, listed
from dynid.files import write_atomically
from dynid.finding import dropped_rows
from dynid.io.logs.columns import HasJoints, MissingJointsError, joints_of
from dynid.io.logs.decode import Decoder, Rows, make_decoder, with_clock_by_motion
from dynid.io.logs.formats import open_table
from dynid.io.logs.layout import ReadOptions
from dynid.io.logs.log_file import LogFile, MemoryLog, log_path
from dynid.io.logs.table import OpenOptions
from dynid.io.logs.units import make_clock, make_scales
from dynid.signals.recording import (
    COLUMN_OF_BODY_MOTION,
    COLUMN_OF_QUANTITY,
    Recording,
    RecordingSource,
    StaticRecording,
    WrenchRecording,
)
from dynid.signals.stream import RecordingStream


class NotMotionError(InputError):
    """A log of another kind than motion, such as a table of poses."""


def read_recording(
    path: str | os.PathLike[str] | LogFile,
    robot: HasJoints | Sequence[str],
    options: ReadOptions | None = None,
    **keywords: Any,
) -> Recording | StaticRecording | WrenchRecording:
    r"""Read a log: motion, pose table (``q1.., M11, M21, .., g1..``) or force/torque sensor, by its columns.

    Numbered columns (``q1..``) are taken for the robot's joints only where there are as many as it has moving joints, or as it had
    before some were locked; otherwise the log is refused, and ``joints`` names those of the columns in order. Raises
    :class:`MissingJointsError` where a log with joint names in its columns lacks some of the robot's.

    Args:
        path: CSV, parquet, npz, MCAP or ROS bag, or a format added by :func:`register_format`.
        robot: a robot or its joint names; the recording has its joints in its order.
        options: how to read it; by default everything is found by the names of the columns.
        keywords: fields of :class:`ReadOptions` by name, in place of those of ``options``: ``mapping``, ``preset``, ``drive_gains``,
            ``units``, ``joints`` and so on.

    Returns:
        the log in SI units, its columns in the order of the joints; which of the three kinds is seen from the columns.

    Examples:
        >>> import dynid
        >>> with open("log.csv", "w") as file:
        ...     _ = file.write("t,q1,q2,tau1,tau2\n0.00,0.1,0.5,1,4\n0.01,0.2,0.5,2,5\n0.02,0.3,0.6,3,6\n")
        >>> recording = dynid.read_recording("log.csv", ["shoulder", "elbow"])
        >>> recording.n_samples, recording.quantities, recording.torque[-1].tolist()
        (3, ('position', 'torque'), [3.0, 6.0])
        >>> swapped = dynid.read_recording("log.csv", ["base", "shoulder", "elbow"], joints=["elbow", "shoulder"])
        >>> swapped.torque[-1].tolist()
        [6.0, 3.0]
    """
    if not isinstance(path, LogFile):
        with LogFile(log_path(path)) as file:
            return read_recording(file, robot, options, **keywords)
    options = replace(options or ReadOptions(), **keywords)
    if isinstance(path.path, MemoryLog) and isinstance(path.path.held, Recording | StaticRecording):
        return _held(path.path.held, path, robot, options)
    decoder = _open_decoder(path, robot, options)
    rows = decoder.all_rows()
    if decoder.plan.kind == "static":
        return _static(decoder, rows)
    rows, absent = decoder.without_absent(rows)
    (tidy,) = decoder.tidy([rows])
    if tidy.n_nan == rows.time.size > 0:
        names = ", ".join(["time", *rows.values])
        raise InputError(f"{decoder.where}: each of the {tidy.n_nan} rows has a NaN in {names}")
    if tidy.time.size < 2:
        raise InputError(
            f"{decoder.where}: {tidy.time.size} of {rows.n_read} rows left without {tidy.n_nan} rows with NaN and "
            f"{tidy.n_repeated} with a repeated stamp, expected at least 2"
        )
    # In the words of the notes, so that a reader of both sees one thing.
    dropped = [dropped_rows("; ".join(tidy.dropped), tidy.n_dropped, tidy.n_read)] if tidy.n_dropped else []
    n_torn = sum(finding.code == "cut_off" for finding in decoder.table.findings)
    source = replace(
        decoder.source,
        notes=(*decoder.source.notes, *absent, *tidy.notes),
        n_rows_in_file=tidy.n_read + n_torn,
        n_dropped=tidy.n_dropped + n_torn,
        findings=(*decoder.source.findings, *decoder.off_lock(tidy), *dropped),
    )
    if decoder.plan.kind == "motion":
        return decoder.recording(tidy, source)
    joint_names = decoder.plan.joint_names if "position" in tidy.values else ()
    motion = {name: tidy.values.get(name) for name in (*COLUMN_OF_BODY_MOTION, "position", "velocity", "acceleration")}
    # Nothing looks for findings in such a log later.
    source = source.noting(*(finding.what for finding in source.findings if finding.code != "dropped_rows"))
    return WrenchRecording(time=tidy.time, wrench=tidy.values["wrench"], joint_names=joint_names, source=source, **motion)


def open_recording(
    path: str | os.PathLike[str],
    robot: HasJoints | Sequence[str],
    options: ReadOptions | None = None,
    *,
    chunk_rows: int = 50_000,
    **keywords: Any,
) -> RecordingStream:
    r"""A motion log read in chunks: parquet and CSV in constant memory, other formats from memory.

    Rows that come late are sorted in, up to 1000 rows late; beyond that the stream is refused, since a log larger than memory cannot
    be sorted while it is read. Raises :class:`NotMotionError` for ``options`` that let a log be of another kind, and one that is.

    Args:
        path: file, as for :func:`read_recording`.
        robot: a robot or its joint names.
        options: how to read it; by default as a motion log whose columns are found by their names.
        chunk_rows: rows read at a time.
        keywords: fields of :class:`ReadOptions` by name, as for :func:`read_recording`.

    Examples:
        >>> import dynid
        >>> from dynid.io.logs.read import open_recording
        >>> with open("log.csv", "w") as file:
        ...     _ = file.write("t,q1,tau1\n0.00,0.1,1\n0.01,0.2,2\n0.02,0.3,3\n")
        >>> [piece.n_samples for piece in open_recording("log.csv", ["elbow"], chunk_rows=2)]
        [2, 1]
    """
    with LogFile(log_path(path)) as file:
        decoder = _open_decoder(file, robot, replace(options or ReadOptions(kind="motion"), **keywords))
    if decoder.plan.kind != "motion":
        raise NotMotionError(f"{path} is no log of joint motion, expected one to read piece by piece")
    held = set(decoder.plan.slots)
    if decoder.scales.torque_is_current:
        held = held - {"torque"} | {"current"}
    if decoder.scales.drive_gains is not None:
        held = held | {"torque"}
    return RecordingStream(
        joint_names=decoder.plan.joint_names,
        quantities=tuple(name for name in COLUMN_OF_QUANTITY if name in held),
        source=replace(decoder.source, n_rows_in_file=decoder.table.n_rows or 0),
        chunk_rows=chunk_rows,
        read_pieces=decoder.recordings,
        n_rows_in_file=decoder.table.n_rows,
        read_from=decoder.recordings if decoder.table.seeks else None,
    )


def _held(
    recording: Recording | StaticRecording, file: LogFile, robot: HasJoints | Sequence[str], options: ReadOptions
) -> Recording | StaticRecording:
    """A recording in memory, which is at the joints in SI units, with the joints of the robot."""
    joints = joints_of(robot, options.joints)
    where, names = str(file.path), joints.names
    present = [name for name in names if name in recording.joint_names]
    if not present:
        raise InputError(f"{where} has joints {listed(recording.joint_names)}, expected those of the robot: {listed(names)}")
    if len(present) < len(names):
        raise MissingJointsError(where, present, [name for name in names if name not in present], locked=joints.locked)
    source = replace(recording.source, path=where, sha256=file.sha256)
    if isinstance(recording, StaticRecording):
        if recording.joint_names != names:
            raise InputError(f"{where} has joints {listed(recording.joint_names)}, expected {listed(names)} in this order")
        return replace(recording, source=source)
    made = replace(recording.select(names), source=source)
    gains, zero = joints.in_order(options.drive_gains), options.zero or None
    return make_scales(where, (), names, units={}, side={}, gear_ratios=None, drive_gains=gains, zero=zero).at_joints(made)


def _open_decoder(file: LogFile, robot: HasJoints | Sequence[str], options: ReadOptions) -> Decoder:
    """Everything before the first row: layout, table, columns, units and clock; last the hash, once."""
    layout = options.layout(getattr(robot, "coupling", None))
    where = str(file.path)
    table = open_table(file.path, OpenOptions(layout.topic, layout.header, file))
    found = make_decoder(where, table, robot, options, layout)
    plan, clock = found.plan, make_clock(where, table, found.plan.time, found.time_unit, options.rate_hz)
    decoder = with_clock_by_motion(replace(found, clock=clock))
    notes = [*table.notes, *plan.notes]
    if layout.preset is not None:
        notes.append(f"preset '{layout.preset}': {layout.about}")
    notes += decoder.clock.notes
    if plan.by_number and (order := joints_of(robot, options.joints).order_note()) is not None:
        notes.append(order)
    source = RecordingSource(
        path=where,
        sha256=file.sha256,
        format=table.format,
        notes=tuple(notes),
        preset=layout.preset,
        findings=(*table.findings, *plan.findings),
    )
    return replace(decoder, source=source)


def _static(decoder: Decoder, rows: Rows) -> StaticRecording:
    n = len(decoder.plan.joint_names)
    for name, array in rows.values.items():
        for bad, what in ((np.isinf(array).any(axis=0), "infinite values"), (np.isnan(array).all(axis=0), "no number")):
            if bad.any():
                column = decoder.column_of(name, int(np.flatnonzero(bad)[0]))
                raise InputError(f"{decoder.where}: column '{column}' holds {what}")
    whole = rows.whole
    if not whole.any():
        raise InputError(f"{decoder.where}: each of the {whole.size} rows has a NaN")
    lines = rows.dropped
    rows = replace(rows, n_nan=int(whole.size - np.count_nonzero(whole)))
    findings = (finding.what for finding in (*decoder.table.findings, *decoder.off_lock(rows)))
    notes = (*decoder.source.notes, *lines, *findings, *rows.dropped[len(lines) :])
    inertia, gravity = rows.values.get("inertia"), rows.values.get("gravity")
    try:
        return StaticRecording(
            position=rows.values["position"][whole],
            joint_names=decoder.plan.joint_names,
            inertia=None if inertia is None else inertia[whole].reshape(-1, n, n),
            gravity=None if gravity is None else gravity[whole],
            source=replace(decoder.source, notes=notes, n_rows_in_file=rows.n_read, n_dropped=rows.n_dropped),
        )
    except InputError as error:
        raise InputError(f"{decoder.where}: {error}") from error


def write_recording(
    recording: Recording | StaticRecording | WrenchRecording,
    path: str | os.PathLike[str],
    *,
    by_name: bool = False,
) -> Path:
    """Write a recording as CSV, parquet or npz by the suffix of the path, completely or not at all.

    Columns are ``t, q1.., dq1.., ddq1.., tau1.., i1..``; those of a pose table ``q1.., M11, M21, M22, .., g1..``.

    Args:
        recording: a motion log, a table of poses or a sensor log.
        path: file to write.
        by_name: name columns by joint, ``q_<joint>``, instead of by number.

    Returns:
        the file that was written.

    Examples:
        >>> import dynid
        >>> path = dynid.write_recording(dynid.demo_recording(seconds=2.0), "log.csv")
        >>> dynid.read_recording(path, dynid.demo_robot()).n_samples
        200
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in (".csv", ".parquet", ".npz"):
        raise InputError(f"cannot write a recording to '{target}': expected the suffix .csv, .parquet or .npz")
    labels = [f"_{name}" for name in recording.joint_names] if by_name else [str(k + 1) for k in range(recording.n_joints)]
    columns: dict[str, NDArray[Any]] = {}

    def spread(column: str, values: Array | None, labels: Sequence[str]) -> None:
        for k, label in enumerate(labels if values is not None else ()):
            columns[f"{column}{label}"] = np.asarray(values)[:, k]

    if isinstance(recording, StaticRecording):
        spread("q", recording.position, labels)
        if recording.inertia is not None:
            separator = "" if recording.n_joints < 10 else "_"
            for i, j in zip(*np.tril_indices(recording.n_joints), strict=True):
                columns[f"M{i + 1}{separator}{j + 1}"] = recording.inertia[:, i, j]
        spread("g", recording.gravity, labels)
    else:
        columns["t"] = recording.time
        if isinstance(recording, WrenchRecording):
            spread("f", recording.force, "xyz")
            spread("m", recording.moment, "xyz")
        for name, column in COLUMN_OF_BODY_MOTION.items():
            spread(column, getattr(recording, name, None), "xyz")
        for name, column in COLUMN_OF_QUANTITY.items():
            spread(column, getattr(recording, name, None), labels)

    return write_columns(target, columns)


def write_columns(path: Path, columns: Mapping[str, NDArray[Any]]) -> Path:
    """Write columns of one length; the suffix, .csv, .parquet or .npz, is the format."""
    suffix = path.suffix.lower()

    def write(temporary: Path) -> None:
        if suffix == ".npz":
            np.savez_compressed(temporary, allow_pickle=False, **columns)
            return
        import pyarrow as pa

        table = pa.table({name: np.ascontiguousarray(values) for name, values in columns.items()})
        if suffix == ".csv":
            import pyarrow.csv as arrow_csv

            arrow_csv.write_csv(table, temporary, arrow_csv.WriteOptions(quoting_style="needed"))
        else:
            import pyarrow.parquet as arrow_parquet

            arrow_parquet.write_table(table, temporary, compression="zstd")

    return write_atomically(path, write)


class JsonWriter:
    """An MCAP file of JSON messages of one schema.

    Args:
        path: file to write.
        topic: of the messages, where :meth:`write` names no other.
        schema: JSON schema of a message.
    """

    def __init__(self, path: Path, topic: str, schema: Mapping[str, Any]) -> None:
        try:
            from mcap.writer import Writer
        except ImportError as error:
            raise MissingPackageError("mcap", "writing MCAP files", "ros") from error
        try:
            self._file = path.open("wb")
        except OSError as error:
            raise InputError(f"cannot write '{path}': {error.strerror or error}") from None
        self._writer = Writer(self._file, chunk_size=64 * 1024)
        self._writer.start(profile="", library="dynid")
        self._schema = self._writer.register_schema(
            name=str(schema.get("title", topic)), encoding="jsonschema", data=json.dumps(schema).encode()
        )
        self._topic, self._channels, self._n = topic, dict[str, int](), 0

    def write(self, time_s: float, record: Mapping[str, Any], topic: str = "") -> None:
        """One message."""
        name = topic or self._topic
        if name not in self._channels:
            self._channels[name] = self._writer.register_channel(topic=name, message_encoding="json", schema_id=self._schema)
        stamp = max(round(time_s * 1e9), 0)
        data = json.dumps(record, allow_nan=False).encode()
        self._writer.add_message(
            self._channels[name], log_time=stamp, publish_time=stamp, sequence=self._n & 0xFFFFFFFF, data=data
        )
        self._n += 1

    def close(self) -> None:
        """Finish the file."""
        self._writer.finish()  # type: ignore[no-untyped-call]
        self._file.close()
