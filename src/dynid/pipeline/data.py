"""What is identified from: logs of one robot, opened once, hashed once, cut to the joints they have and to the parts that are used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynid.errors import InputError, UnknownNameError
from dynid.files import foreign_errors
from dynid.finding import DataCheck
from dynid.io.logs.base_columns import feet_of, log_columns, moves_base
from dynid.io.logs.columns import MissingJointsError
from dynid.io.logs.layout import ReadOptions
from dynid.io.logs.log_file import LogFile, UrlPath
from dynid.io.logs.paths import LogPart, log_part, log_paths, refuse_same
from dynid.io.logs.read import NotMotionError, open_recording, read_recording
from dynid.model.frames import frames_of
from dynid.model.friction import with_friction
from dynid.model.robot import Robot
from dynid.option_types import flag_of, misplaced_options
from dynid.pipeline.log import SHOWN, Data, Log, Logs, check_log, refuse_without_torque, without_standstill
from dynid.pipeline.option_groups import TORQUE, Reading
from dynid.pipeline.options import Settings
from dynid.pipeline.robot_setup import FloatingLogError, SensorLogError, described_robot, without_search
from dynid.pipeline.row_plan import RowPlan
from dynid.signals.recording import Recording, StaticRecording, WrenchRecording
from dynid.signals.stream import RecordingStream
from dynid.validation.torque_channels import DEAD, UNIT

READ_NAMES = ("mapping", "preset", "drive_gains", "joints", "gear_ratios", "side", "zero", "rate_hz", "episode", "topic")
"""Options of a run that the reader takes as they are."""


def read_options(settings: Reading) -> ReadOptions:
    """How the settings want a log read."""
    return ReadOptions(**{name: getattr(settings, name) for name in READ_NAMES})


def open_unseen(
    robot: Robot,
    paths: Sequence[Path],
    settings: Reading,
    *,
    seen: Iterable[tuple[str, str]] = (),
    in_memory: bool = False,
    plan: RowPlan | None = None,
) -> Logs:
    """Motion logs that have every joint of a robot that was identified; ``seen`` are those that it was identified on."""
    found = open_logs(robot, paths, settings, in_memory=in_memory, plan=plan)
    if isinstance(found, StaticRecording):
        raise InputError(f"{paths[0]} is a table of poses, expected a motion log to validate on")
    missing = [name for name in robot.joint_names if name not in found.robot.joint_names]
    if missing:
        raise InputError(f"{paths[0]} lacks joint {', '.join(missing)}, which was identified; expected all {robot.n_joints}")
    refuse_same(paths, found.hashes, seen=seen)
    return found


def read_motion_logs(
    robot: Robot,
    paths: Sequence[Path],
    settings: Reading,
    expected: str,
    *,
    torque: bool = True,
    seen: Iterable[tuple[str, str]] = (),
) -> Logs:
    """Logs in memory, where a table of poses is refused; ``expected`` says in its message what a log must be."""
    found = open_logs(robot, paths, settings, torque=torque, in_memory=True)
    if isinstance(found, StaticRecording):
        raise InputError(f"{paths[0]} is a table of poses, expected {expected}")
    refuse_same(paths, found.hashes, seen=seen)
    return found


LONG_BYTES = 32 << 20
"""Numbers of all logs together, 8 bytes each, from which logs are read piece by piece."""
PACKED = 16
"""Parquet files of measured numbers are rarely packed tighter than this."""


def _is_streamed(files: Sequence[Path], settings: Reading) -> bool:
    """Whether logs are left in their files: as asked for, else where they are long."""
    possible = settings.stream != "off" and all(path.is_file() for path in files)
    return possible and (settings.stream != "auto" or _long(files))


def open_logs(
    robot: Robot,
    paths: Sequence[Path],
    settings: Reading,
    *,
    torque: bool = True,
    in_memory: bool = False,
    plan: RowPlan | None = None,
) -> Logs | StaticRecording:
    """Every log, in memory where they are short together or ``in_memory`` asks for it, else left in their files.

    Joints that no log has are locked at neutral and merged into the robot. ``torque`` refuses logs without any; position-controlled
    joints are identified without. ``plan`` is that of the run to which logs of a floating base belong.
    """
    if not paths:
        raise InputError("no log was given, expected at least one")
    if robot.floating and getattr(settings, "floating", False):
        return _open_floating(robot, paths, settings, plan)
    parts = [log_part(path) for path in paths]
    files = [part.path for part in parts]
    streamed = not in_memory and _is_streamed(files, settings)
    notes = [f"torque of {name} is not used (--ignore-torque)" for name in settings.ignore_torque]
    try:
        first, robot = open_first(robot, parts[0].path, settings, notes, streamed=streamed)
    except NotMotionError:  # poses are few
        return open_logs(robot, paths, settings, torque=torque, in_memory=True)
    if isinstance(first, StaticRecording):
        if len(paths) > 1:
            raise InputError(f"{paths[0]} is a table of poses; {len(paths)} files were given, expected that one alone")
        return first
    opened = [first]
    for path, part in zip(paths[1:], parts[1:], strict=True):
        with LogFile(part.path) as file:
            rows = _open(robot, file, settings, streamed)
        if isinstance(rows, StaticRecording):
            raise InputError(f"{path} is a table of poses, {paths[0]} is a motion log; give logs of one kind")
        opened.append(rows)
    hashes = [rows.source.sha256 for rows in opened]
    refuse_same(paths, hashes)
    logs = []
    for path, part, whole in zip(paths, parts, opened, strict=True):
        rows = delayed(ignoring(whole, settings.ignore_torque, robot), getattr(settings, "torque_delay", 0.0))
        log, left_out = used_part(rows, part, settings, trim=torque)
        if torque:
            refuse_without_torque(path, log)
        found = (*([left_out] if left_out else []), *rows.source.notes, *log.survey.notes(rows.joint_names))
        notes.extend(f"{path.name}: {note}" for note in found)
        logs.append(log)
    recordings = tuple(log.rows for log in logs if isinstance(log.rows, Recording))
    return Logs(robot, tuple(logs), tuple(str(path) for path in paths), tuple(hashes), tuple(notes), recordings)


def _open_floating(robot: Robot, paths: Sequence[Path], settings: Any, plan: RowPlan | None) -> Logs:
    """Logs of joints, base and feet; they are used whole unless times are given. Joints that they lack are locked."""
    from dynid.pipeline.floating_log import FloatingSetup, read_floating_log

    streamed = _is_streamed([log_part(path).path for path in paths], settings)

    def read(own: Robot) -> tuple[Log, ...]:
        setup = FloatingSetup.of(own, settings)
        setup = setup if plan is None else replace(setup, plan=plan)
        return tuple(read_floating_log(path, setup, settings, read_options(settings), streamed=streamed) for path in paths)

    told = list[str]()
    if settings.joints is not None:
        robot = _cut_to(robot, (robot.joint_names[0], *settings.joints), told)
    try:
        logs = read(robot)
    except MissingJointsError as missing:
        told.append(missing.note(paths[0].name))
        robot = robot.only(missing.present)
        logs = read(robot)
    hashes = tuple(log.rows.source.sha256 for log in logs)
    refuse_same(paths, hashes)
    for path, log in zip(paths, logs, strict=True):
        refuse_without_torque(path, log)
    told += [f"{path.name}: {note}" for path, log in zip(paths, logs, strict=True) for note in log.rows.source.notes]
    recordings = tuple(log.rows for log in logs if isinstance(log.rows, Recording))
    return Logs(robot, logs, tuple(map(str, paths)), hashes, tuple(told), recordings)


def delayed(rows: Recording | RecordingStream, delay_s: float | str) -> Recording | RecordingStream:
    """A log that says by how much its torque is late."""
    if isinstance(delay_s, str):
        raise InputError(f"--torque-delay {delay_s} is found by identify, expected seconds here")
    return rows if delay_s == 0.0 else replace(rows, source=replace(rows.source, torque_delay_s=delay_s))


def ignoring(rows: Recording | RecordingStream, joints: Sequence[str], robot: Robot) -> Recording | RecordingStream:
    """A log that says that the torque of some joints is not used."""
    if not joints:
        return rows
    for name in joints:
        if name not in rows.joint_names:
            raise UnknownNameError("joint of --ignore-torque", name, rows.joint_names)
    if len(set(joints)) == len(rows.joint_names):
        raise InputError(f"--ignore-torque names all {len(rows.joint_names)} joints of the log, expected at least one left")
    if robot.coupling is not None:
        raise InputError(
            f"--ignore-torque: motors of robot '{robot.name}' drive several joints, whose torques are not apart"
        )
    return replace(rows, source=replace(rows.source, ignored=tuple(joints)))


def _long(paths: Sequence[Path]) -> bool:
    """Whether logs are long together; files that are short even if packed tightly are not opened to find out."""
    if PACKED * sum(path.stat().st_size for path in paths) <= LONG_BYTES:
        return False
    return sum(numbers_size(path) for path in paths) > LONG_BYTES


def numbers_size(path: Path) -> int:
    """Bytes that the numbers of a log take in memory, about: from the footer of parquet, else from the size of the file."""
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return path.stat().st_size
    import pyarrow.parquet as arrow_parquet

    with foreign_errors(str(path), "cannot be read as parquet (the file may be truncated)"), path.open("rb") as file:
        found = arrow_parquet.read_metadata(file)
    return 8 * int(found.num_rows) * int(found.num_columns)


def open_first(
    robot: Robot, path: Path, settings: Reading, notes: list[str], *, streamed: bool = False
) -> tuple[Recording | StaticRecording | RecordingStream, Robot]:
    """The first log, which decides the joints that move, and the robot with these."""
    with LogFile(path) as file:
        columns = log_columns(file, read_options(settings)) if getattr(settings, "floating", False) is None else ()
        if moves_base(columns):
            raise FloatingLogError(
                f"{path} holds the motion of the robot's base: 'dynid identify' takes it, or with --no-floating its joints alone",
                tuple(feet_of(columns, frames_of(robot)).values()),
            )
        try:
            found = _open(robot, file, settings, streamed)
        except MissingJointsError as missing:
            cut = robot.only(missing.present)
            notes.append(missing.note(path.name))
            return _open(cut, file, settings, streamed), cut
    return found, _cut_to(robot, found.joint_names, notes)


def _open(robot: Robot, file: LogFile, settings: Reading, streamed: bool) -> Recording | StaticRecording | RecordingStream:
    if streamed:
        return open_recording(file.path, robot, read_options(settings))
    recording = read_recording(file, robot, read_options(settings))
    if isinstance(recording, WrenchRecording):
        raise SensorLogError(
            f"{file.path} is a force/torque-sensor log, expected joint torque or a table of poses: the body on the sensor is identified by "
            f"'dynid identify ROBOT {file.path} --frame SENSOR_FRAME' or dynid.identify_sensor"
        )
    return recording


def _cut_to(robot: Robot, joints: tuple[str, ...], notes: list[str]) -> Robot:
    """The robot with the joints that a log was read for."""
    if joints == robot.joint_names:
        return robot
    rest = [name for name in robot.joint_names if name not in joints]
    notes.append(f"joints that are not among --joints are locked at neutral and merged: {', '.join(rest)}")
    return robot.only(joints)


def unchanged(path: Path, digest: str) -> bool:
    """Whether a file is there and still what it was."""
    place = log_part(path).path
    try:
        return place.is_file() and LogFile(place).sha256 == digest
    except OSError:  # a name that no file can have
        return False
    except InputError:
        if isinstance(place, UrlPath):  # no server answers, or the stored URL lacks the key that it had
            return False
        raise


def used_part(rows: Recording | RecordingStream, part: LogPart, settings: Reading, *, trim: bool = True) -> tuple[Log, str]:
    """The part of a log that is used, and what was left out of it unasked: its own times, those of all logs, or its motion."""
    times = part if part.named else LogPart(part.path, settings.from_s, settings.to_s)
    log = Log.of(rows.between(times.from_s, times.to_s) if times.named else rows)
    return (log, "") if times.named or not (trim and settings.trim) else without_standstill(log)


def read_data(robot: Robot, paths: Sequence[Path], settings: Settings, validate_on: Sequence[Path]) -> Data:
    """Motion logs with what validates, or a table of poses, which says nothing of effects and that no motion log validates.

    Linear friction stands in for a friction model until that is chosen.
    """
    found = open_logs(robot, paths, without_search(settings))
    for one in misplaced_options(replace(settings, floating=None), TORQUE) if not settings.floating else ():
        raise InputError(  # rather than leave it without effect
            f"{flag_of(one)} belongs to logs of a force/torque sensor, {paths[0]} has joint torque or poses: leave it out"
        )
    if isinstance(found, Logs):
        used = found.without_short(settings.split, required=settings.cutoff_hz == "auto")
        data = split_data(used, found.robot, without_search(settings), validate_on)
        model = data.known.robot
        plain = model if settings.friction_model is None else with_friction(model, "linear")
        return replace(data, known=replace(data.known, robot=plain))
    if validate_on or settings.split is not None:
        raise InputError(
            f"{paths[0]} is a table of poses, which no motion log validates while it is identified; "
            "validate the run on a log afterwards: dynid validate RUN LOG --cutoff-hz F"
        )
    logs = Logs(robot.with_effects(()), (), (str(paths[0]),), (found.source.sha256,), found.source.notes, poses=found)
    return Data(logs, logs)


def split_data(logs: Logs, robot: Robot, settings: Settings, validate_on: Sequence[Path]) -> Data:
    """What is identified on and what validates: a split of each log in time, or other logs."""
    known, unseen = logs, None
    if settings.split is not None:
        known, unseen = logs.split(settings.split)
    elif validate_on:
        stream: Any = "off" if logs.in_memory else "on"
        unseen = open_unseen(robot, validate_on, replace(settings, stream=stream), seen=logs.files)
        unseen = unseen.without_short(required=False)
    return Data(logs, known.with_windows(), None if unseen is None else unseen.with_windows(SHOWN))


def check_data(data: Data, settings: Settings) -> tuple[Data, Settings, tuple[DataCheck, ...]]:
    """What was found wrong with every log; the torque of channels that hold none or another unit, in any log, is left out: one
    channel must not spoil the robot."""
    checks = tuple(check_log(log, data.known.recordings, data.logs.robot) for log in data.logs.parts)
    found = [name for check in checks for one in check if one.code in (DEAD, UNIT) for name in one.where]
    more = tuple(name for name in dict.fromkeys(found) if name not in settings.ignore_torque)
    if not more or settings.rows != "torque":
        return data, settings, checks
    joints = (*settings.ignore_torque, *more)
    robot = data.logs.robot
    return with_rows(data, lambda rows: ignoring(rows, joints, robot)), replace(settings, ignore_torque=joints), checks


def with_rows(data: Data, change: Callable[[Recording | RecordingStream], Recording | RecordingStream]) -> Data:
    """The same logs, each changed in the same way."""

    def changed(logs: Logs) -> Logs:
        parts = tuple(replace(log, rows=change(log.rows)) for log in logs.parts)
        return replace(logs, parts=parts, recordings=tuple(log.rows for log in parts if isinstance(log.rows, Recording)))

    unseen = None if data.unseen is None else changed(data.unseen).with_windows(SHOWN)
    return Data(changed(data.logs), changed(data.known).with_windows(), unseen)


def finding_notes(logs: Logs, checks: Sequence[DataCheck]) -> list[str]:
    """What is wrong with the logs, with the file that it is about; what spoils the result is called an error."""
    words = {"error": "error in ", "warning": ""}
    return [
        f"{words[finding.level]}{Path(path).name}: {finding.what}. {finding.remedy}"
        for path, check in zip(logs.paths, checks, strict=False)  # poses are not checked
        for finding in check.findings
        if finding.level != "note"
    ]


READ = ("mapping", "preset", "joints", "rate_hz", "episode", "topic")
"""Options of a run that the reader of a sensor log takes as they are."""


def read_sensor_data(
    robot: Robot | str | Path | None, paths: Sequence[Path], settings: Settings, validate_on: Sequence[Path] = ()
) -> Data:
    """Logs of a force/torque sensor with what validates; ``robot`` is what moves the sensor, None where they hold its own motion."""
    from dynid.pipeline.sensor import refuse_other_options, sensor_robot

    refuse_other_options(settings)

    def read(own: Sequence[Path], settings: Settings, mover: Robot | str | Path | None) -> Logs:
        wrenches, model = read_parts(own, mover, settings)
        hashes = tuple(log.source.sha256 for log in wrenches)
        return Logs(sensor_robot() if model is None else model, (), tuple(map(str, own)), hashes, wrenches=wrenches)

    logs = read(paths, settings, robot)
    refuse_same(paths, logs.hashes)
    if settings.split is not None:
        return Data(logs, *logs.split(settings.split))
    if not validate_on:
        return Data(logs, logs)
    mover = None if robot is None else logs.robot
    whole = replace(settings, from_s=None, to_s=None)
    unseen = read(validate_on, whole, mover)
    refuse_same(validate_on, unseen.hashes, seen=logs.files)
    return Data(logs, logs, unseen)


def read_parts(
    paths: Sequence[Path], robot: Robot | str | Path | None, settings: Settings
) -> tuple[tuple[WrenchRecording, ...], Robot | None]:
    """The parts of sensor logs that are used, and the robot cut to the joints that they have."""
    gravity = None if settings.gravity == "auto" else settings.gravity
    model = None if robot is None else described_robot(robot, replace(settings, effects=(), gravity=gravity))
    parts = [log_part(path) for path in paths]
    recordings = read_sensor_logs([part.path for part in parts], model, **{name: getattr(settings, name) for name in READ})
    if model is not None and recordings[0].position is not None:
        model = model if recordings[0].joint_names == model.joint_names else model.only(recordings[0].joint_names)
    cut = [
        log.between(part.from_s, part.to_s) if part.named else log.between(settings.from_s, settings.to_s)
        for log, part in zip(recordings, parts, strict=True)
    ]
    if settings.flip:
        cut = [replace(log, wrench=-log.wrench) for log in cut]
    return tuple(cut), model


def read_sensor_logs(paths: Sequence[str | Path], robot: Robot | None, **reading: Any) -> tuple[WrenchRecording, ...]:
    """Logs of a force/torque sensor; ``reading`` are options of how they are read."""
    found = []
    for path in log_paths(paths):
        options = {name: value for name, value in reading.items() if value is not None}
        recording = read_recording(path, () if robot is None else robot, kind="wrench", **options)
        assert isinstance(recording, WrenchRecording)
        found.append(recording)
    return tuple(found)
