"""A log of any known format as a recording, in one piece or as a stream.

Reading repairs only what has one right answer, and notes it: stamps out of order are sorted, repeated stamps
and rows with NaN are left out. Gaps stay. Anything else that is not as expected is refused in one sentence.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.adapters.urls import log_path
from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.checked import per_joint
from dynid.recording.finding import Finding, dropped_rows
from dynid.recording.motion import Recording
from dynid.recording.poses import StaticRecording
from dynid.recording.quantities import COLUMN_OF_BODY_MOTION, COLUMN_OF_QUANTITY
from dynid.recording.readers.clock import make_clock
from dynid.recording.readers.clock_check import clock_by_motion
from dynid.recording.readers.formats.registry import open_table
from dynid.recording.readers.joints import HasJoints, joints_of
from dynid.recording.readers.log_file import LogFile
from dynid.recording.readers.motor_side import MotorSide, motor_side
from dynid.recording.readers.options import PerJoint, ReadOptions
from dynid.recording.readers.plan import make_plan, stated_units
from dynid.recording.readers.presets import Preset
from dynid.recording.readers.rows import Decoder, Episodes, Rows
from dynid.recording.readers.tidy import Counts, tidy, tidy_batches, whole_rows
from dynid.recording.readers.units import make_scales, signs_of
from dynid.recording.source import RecordingSource
from dynid.recording.stream import RecordingStream
from dynid.recording.wrench import WrenchRecording
from dynid.robot.coupling import Coupling

_BATCH_ROWS = 1 << 14


def read_recording(
    path: str | os.PathLike[str],
    robot: HasJoints | Sequence[str],
    *,
    mapping: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    preset: str | Preset | None = None,
    drive_gains: PerJoint | None = None,
    gear_ratios: PerJoint | None = None,
    units: Mapping[str, Any] | None = None,
    topic: str | None = None,
    episode: int | None = None,
    rate_hz: float | None = None,
    kind: str | None = None,
    ignore: Collection[str] = (),
    joints: Sequence[str] | None = None,
    side: str | None = None,
) -> Recording | StaticRecording | WrenchRecording:
    r"""Read a log: motion, pose table (``q1.., M11, M21, .., g1..``) or force/torque sensor, by its columns.

    Numbered columns (``q1..``) are taken for the robot's joints only where there are as many as it has moving joints, or as it had
    before some were locked; otherwise the log is refused, and ``joints`` names those of the columns in order. Raises
    :class:`MissingJointsError` where a log with joint names in its columns lacks some of the robot's.

    Args:
        path: CSV, parquet, npz, MCAP or ROS bag, or a format added by :func:`register_format`.
        robot: a robot or its joint names; the recording has its joints in its order.
        mapping: columns of the log by quantity, as a table or a TOML or JSON file.
        preset: a controller whose column names and units are known, such as ``libfranka``.
        drive_gains: newton metre per ampere at the joint, which make torque of motor current.
        gear_ratios: motor turns per joint turn, for quantities measured at the motor.
        units: units by quantity, such as ``{"position": "deg"}``.
        topic: topic of a ROS bag.
        episode: value of ``episode_index`` in a data set of several episodes.
        rate_hz: sampling rate of a log without a clock, Hz; replaces the clock where there is one.
        kind: ``motion``, ``static`` (poses) or ``wrench`` (force/torque sensor); None to find it by the columns.
        ignore: quantities to leave out, such as ``("velocity",)``.
        joints: the joints that numbered columns stand for, in order.
        side: ``motor`` where the log is measured at the motors: gear ratios and the robot's coupling then carry it to the
            joints; None for what the robot's coupling says.

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
    options = ReadOptions(
        mapping=mapping,
        preset=preset,
        drive_gains=drive_gains,
        gear_ratios=gear_ratios,
        units=units,
        topic=topic,
        episode=episode,
        rate_hz=rate_hz,
        kind=kind,
        ignore=ignore,
        joints=joints,
        side=side,
    )
    return read_with(path, robot, options)


def open_recording(
    path: str | os.PathLike[str],
    robot: HasJoints | Sequence[str],
    *,
    chunk_rows: int = 50_000,
    mapping: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    preset: str | Preset | None = None,
    drive_gains: PerJoint | None = None,
    gear_ratios: PerJoint | None = None,
    units: Mapping[str, Any] | None = None,
    topic: str | None = None,
    episode: int | None = None,
    rate_hz: float | None = None,
    ignore: Collection[str] = (),
    joints: Sequence[str] | None = None,
    side: str | None = None,
) -> RecordingStream:
    r"""A motion log read in chunks: parquet and CSV in constant memory, other formats from memory.

    Rows that come late are sorted in, up to 1000 rows late; beyond that the stream is refused, since a log larger than memory cannot
    be sorted while it is read.

    Args:
        path: file, as for :func:`read_recording`.
        robot: a robot or its joint names.
        chunk_rows: rows read at a time.
        mapping: as for :func:`read_recording`, like all options below.
        preset: column names and units of a controller.
        drive_gains: newton metre per ampere at the joint.
        gear_ratios: motor turns per joint turn.
        units: units by quantity.
        topic: topic of a ROS bag.
        episode: value of ``episode_index``.
        rate_hz: sampling rate of a log without a clock, Hz.
        ignore: quantities to leave out.
        joints: the joints that numbered columns stand for, in order.
        side: ``motor`` where the log is measured at the motors.

    Examples:
        >>> import dynid
        >>> with open("log.csv", "w") as file:
        ...     _ = file.write("t,q1,tau1\n0.00,0.1,1\n0.01,0.2,2\n0.02,0.3,3\n")
        >>> [piece.n_samples for piece in dynid.open_recording("log.csv", ["elbow"], chunk_rows=2)]
        [2, 1]
    """
    options = ReadOptions(
        mapping=mapping,
        preset=preset,
        drive_gains=drive_gains,
        gear_ratios=gear_ratios,
        units=units,
        topic=topic,
        episode=episode,
        rate_hz=rate_hz,
        kind="motion",
        ignore=ignore,
        joints=joints,
        side=side,
    )
    return open_with(path, robot, options, chunk_rows=chunk_rows)


def read_with(
    path: str | os.PathLike[str], robot: HasJoints | Sequence[str], options: ReadOptions
) -> Recording | StaticRecording | WrenchRecording:
    """:func:`read_recording` with its options as one value."""
    with LogFile(log_path(path)) as file:
        return read_log(file, robot, options)


def read_log(
    file: LogFile, robot: HasJoints | Sequence[str], options: ReadOptions
) -> Recording | StaticRecording | WrenchRecording:
    """:func:`read_with` of a log that is open already."""
    opened = _open(file, robot, options)
    decoder = opened.decoder
    rows = decoder.all_rows()
    if decoder.plan.kind == "static":
        return _static(opened, rows)
    rows = decoder.without_absent(rows)
    time, values, counts = tidy(decoder, rows.time, rows.values)
    if time.size < 2:
        raise InputError(
            f"{decoder.where}: {time.size} of {rows.n_rows} rows left without {counts.words()}, expected at least 2"
        )
    source = _source(opened, rows, counts)
    if decoder.plan.kind == "wrench":
        return _wrench(opened, time, values, source)
    return opened.with_torque(Recording(time=time, joint_names=decoder.plan.joint_names, source=source, **values))


class NotMotionError(InputError):
    """A log of another kind than motion, such as a table of poses."""


def open_with(
    path: str | os.PathLike[str], robot: HasJoints | Sequence[str], options: ReadOptions, *, chunk_rows: int = 50_000
) -> RecordingStream:
    """:func:`open_recording` with its options as one value; raises :class:`NotMotionError` for a log of another kind."""
    with LogFile(log_path(path)) as file:
        opened = _open(file, robot, options)
    if opened.decoder.plan.kind != "motion":
        raise NotMotionError(f"{path} is no log of joint motion, expected one to read piece by piece")
    decoder, plan = opened.decoder, opened.decoder.plan
    pieces = _Pieces(opened)
    held = set(plan.slots)
    if decoder.scales.torque_is_current:
        held = held - {"torque"} | {"current"}
    if opened.drive_gains is not None:
        held = held | {"torque"}
    return RecordingStream(
        joint_names=plan.joint_names,
        quantities=tuple(name for name in COLUMN_OF_QUANTITY if name in held),
        source=replace(opened.source, n_rows_in_file=decoder.table.n_rows or 0),
        chunk_rows=chunk_rows,
        read_pieces=pieces,
        n_rows_in_file=decoder.table.n_rows,
        read_from=pieces if decoder.can_seek else None,
    )


@dataclass(frozen=True)
class _Opened:
    """A log whose columns are known and whose rows are still in the file."""

    decoder: Decoder
    drive_gains: Array | None
    source: RecordingSource
    coupled: MotorSide | None

    def with_torque(self, recording: Recording) -> Recording:
        made = recording if self.drive_gains is None else recording.with_drive_gains(self.drive_gains)
        return made if self.coupled is None else self.coupled.at_joints(made)


@dataclass(frozen=True)
class _Pieces:
    """The pieces of a log as it is read; a value, so that another process can read them too."""

    opened: _Opened

    def __call__(self, rows: int, first: int = 0) -> Iterator[tuple[Recording | None, int]]:
        opened, names = self.opened, self.opened.decoder.plan.joint_names
        for time, values, dropped in tidy_batches(opened.decoder, min(rows, _BATCH_ROWS), first):
            if time.size == 0:
                yield None, dropped
                continue
            piece = Recording(time=time, joint_names=names, source=opened.source, **values)
            yield opened.with_torque(piece), dropped


def _open(file: LogFile, robot: HasJoints | Sequence[str], options: ReadOptions) -> _Opened:
    """Everything before the first row: joints, layout, table, plan, units and clock; last the hash, once."""
    joints = joints_of(robot, options.joints, needed=options.kind != "wrench")
    coupling: Coupling | None = getattr(robot, "coupling", None)
    layout = options.layout(coupling)
    where = str(file.path)
    table = open_table(file.path, replace(layout.open_options, file=file))
    plan = make_plan(where, table, joints, layout)
    units = stated_units(plan) | {name: joints.in_order(unit) for name, unit in layout.units.items()}
    ratios, gains = joints.in_order(layout.gear_ratios), joints.in_order(layout.drive_gains)
    scales = make_scales(where, tuple(plan.slots), plan.joint_names, units, layout.side, ratios)
    scales = scales.turned(signs_of(layout.sign, plan.joint_names), tuple(plan.slots))
    clock = make_clock(where, table, plan.time, units.get("time"), options.rate_hz)
    has_episodes = table.shapes.get("episode_index") == ()
    decoder = Decoder(
        where=where,
        table=table,
        plan=plan,
        clock=clock,
        scales=scales,
        locked=joints.locked,
        episodes=Episodes(where, "episode_index", options.episode) if has_episodes else None,
    )
    decoder = replace(decoder, clock=clock_by_motion(decoder))
    notes = [*table.notes, *plan.notes]
    if layout.preset is not None:
        notes.append(f"preset '{layout.preset.name}': {layout.preset.about}")
    notes += decoder.clock.notes
    if plan.by_number and (order := joints.order_note()) is not None:
        notes.append(order)
    return _Opened(
        decoder,
        drive_gains=per_joint("drive gains", gains, plan.joint_names)
        if gains is not None and plan.kind == "motion"
        else None,
        source=RecordingSource(
            path=where,
            sha256=file.sha256,
            format=table.format,
            notes=tuple(notes),
            preset=layout.preset.name if layout.preset else None,
            findings=(*table.findings, *plan.findings),
        ),
        coupled=motor_side(coupling, getattr(robot, "joint_names", ()), plan.joint_names, layout.side),
    )


def _source(opened: _Opened, rows: Rows, counts: Counts) -> RecordingSource:
    """Where the rows came from, with what was left out and found wrong on the way."""
    n_dropped = counts.total + rows.n_malformed
    reasons = (*rows.notes_on_lines, *counts.notes_on_dropped())
    # In the words of the notes, so that a reader of both sees one thing.
    dropped: list[Finding] = [dropped_rows("; ".join(reasons), n_dropped, rows.n_rows)] if n_dropped else []
    n_torn = sum(finding.code == "cut_off" for finding in opened.decoder.table.findings)
    return replace(
        opened.source,
        notes=(*opened.source.notes, *rows.notes, *rows.notes_on_lines, *counts.notes()),
        n_rows_in_file=rows.n_rows + n_torn,
        n_dropped=n_dropped + n_torn,
        findings=(*opened.source.findings, *opened.decoder.off_lock(rows), *dropped),
    )


def _wrench(opened: _Opened, time: Array, values: dict[str, Array], source: RecordingSource) -> WrenchRecording:
    names = opened.decoder.plan.joint_names if "position" in values else ()
    motion = {name: values.get(name) for name in (*COLUMN_OF_BODY_MOTION, "position", "velocity", "acceleration")}
    # Nothing looks for findings in such a log later.
    source = source.noting(*(finding.sentence for finding in source.findings if finding.code != "dropped_rows"))
    return WrenchRecording(time=time, wrench=values["wrench"], joint_names=names, source=source, **motion)


def _static(opened: _Opened, rows: Rows) -> StaticRecording:
    decoder = opened.decoder
    n = len(decoder.plan.joint_names)
    for name, array in rows.values.items():
        for bad, what in ((np.isinf(array).any(axis=0), "infinite values"), (np.isnan(array).all(axis=0), "no number")):
            if bad.any():
                column = decoder.column_of(name, int(np.flatnonzero(bad)[0]))
                raise InputError(f"{decoder.where}: column '{column}' holds {what}")
    whole = whole_rows(rows.time, rows.values)
    if not whole.any():
        raise InputError(f"{decoder.where}: each of the {whole.size} rows has a NaN")
    dropped = int(whole.size - np.count_nonzero(whole))
    notes = (
        *opened.source.notes,
        *rows.notes,
        *rows.notes_on_lines,
        *(finding.sentence for finding in (*decoder.table.findings, *decoder.off_lock(rows))),
        *((f"{dropped} rows with NaN were left out",) if dropped else ()),
    )
    inertia, gravity = rows.values.get("inertia"), rows.values.get("gravity")
    try:
        return StaticRecording(
            position=rows.values["position"][whole],
            joint_names=decoder.plan.joint_names,
            inertia=None if inertia is None else inertia[whole].reshape(-1, n, n),
            gravity=None if gravity is None else gravity[whole],
            source=replace(opened.source, notes=notes, n_rows_in_file=rows.n_rows, n_dropped=dropped + rows.n_malformed),
        )
    except InputError as error:
        raise InputError(f"{decoder.where}: {error}") from error
