"""Logs of one robot: read once, hashed once, cut to the joints they have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.adapters.urls import UrlPath
from dynid.errors import InputError
from dynid.recording.readers.foreign import foreign_errors
from dynid.recording.readers.joints import MissingJointsError
from dynid.recording.readers.log_file import LogFile
from dynid.recording.readers.options import ReadOptions
from dynid.recording.readers.read import NotMotionError, open_with, read_log
from dynid.recording.recording import Recording, RecordingStream, StaticRecording, WrenchRecording
from dynid.recording.survey import survey
from dynid.robot.model import Robot
from dynid.run.log_part import LogPart, log_part, no_torque, refuse_same, refuse_zero_torque, without_standstill
from dynid.run.long_logs import LongLog, refuse_without_torque, without_long_standstill
from dynid.run.options import Reading
from dynid.run.signals import repair_notes

READ_NAMES = ("mapping", "preset", "drive_gains", "joints", "gear_ratios", "side", "rate_hz", "episode", "topic")
"""Options of a run that the reader takes as they are."""


class SensorLogError(InputError):
    """A log of a force/torque sensor where joint torque or poses were expected."""


@dataclass(frozen=True, eq=False)
class Logs:
    """Recordings of one robot, cut to the joints they have."""

    robot: Robot
    recordings: tuple[Recording, ...]
    paths: tuple[str, ...]
    hashes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    long: tuple[LongLog, ...] = ()
    """Logs that are read piece by piece; there are no recordings then."""


def open_unseen(robot: Robot, paths: Sequence[Path], settings: Reading, *, seen: Iterable[tuple[str, str]] = ()) -> Logs:
    """:func:`read_unseen`, long logs piece by piece."""
    return _unseen(robot, paths, open_logs(robot, paths, settings), seen)


def read_unseen(robot: Robot, paths: Sequence[Path], settings: Reading, *, seen: Iterable[tuple[str, str]] = ()) -> Logs:
    """Motion logs that have every joint of a robot that was identified; ``seen`` are those that it was identified on."""
    return _unseen(robot, paths, read_logs(robot, paths, settings), seen)


def _unseen(robot: Robot, paths: Sequence[Path], read: Logs | StaticRecording, seen: Iterable[tuple[str, str]] = ()) -> Logs:
    found = _motion_alone(read, paths, "a motion log to validate on")
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
    """:func:`read_logs` where a table of poses is refused; ``expected`` says in its message what a log must be."""
    found = _motion_alone(read_logs(robot, paths, settings, torque=torque), paths, expected)
    refuse_same(paths, found.hashes, seen=seen)
    return found


def _motion_alone(found: Logs | StaticRecording, paths: Sequence[Path], expected: str) -> Logs:
    if isinstance(found, StaticRecording):
        raise InputError(f"{paths[0]} is a table of poses, expected {expected}")
    return found


LONG_BYTES = 32 << 20
"""Numbers of all logs together, 8 bytes each, from which logs are read piece by piece."""

PACKED = 16
"""Parquet files of measured numbers are rarely packed tighter than this."""


def open_logs(robot: Robot, paths: Sequence[Path], settings: Reading) -> Logs | StaticRecording:
    """Every log, in memory where they are short together, else surveyed in one pass each and left in their files."""
    parts = [log_part(path) for path in paths]
    if not _streamed([part.path for part in parts], settings):
        return read_logs(robot, paths, settings)
    notes: list[str] = []
    try:
        first, robot = _open_first(robot, parts[0].path, settings, notes)
    except NotMotionError:
        return read_logs(robot, paths, settings)  # poses are few
    streams = [first, *(open_with(part.path, robot, _options(settings)) for part in parts[1:])]
    hashes = [stream.source.sha256 for stream in streams]
    refuse_same(paths, hashes)
    long = []
    for part, stream in zip(parts, streams, strict=True):
        refuse_without_torque(stream)
        log, left_out = _surveyed(stream, part, settings)
        refuse_zero_torque(part.path, log.survey.torque_seen, log.survey.n_rows)
        long.append(log)
        found = (*stream.source.notes, *([left_out] if left_out else []), *log.survey.notes(stream.joint_names))
        notes.extend(f"{part.path.name}: {note}" for note in found)
    return Logs(robot, (), tuple(str(path) for path in paths), tuple(hashes), tuple(notes), tuple(long))


def _surveyed(stream: RecordingStream, part: LogPart, settings: Reading) -> tuple[LongLog, str]:
    """The part of a log that is used, as for one in memory, and what was left out of it unasked."""
    times = part if part.named else LogPart(part.path, settings.from_s, settings.to_s)
    if times.named:
        low = -np.inf if times.from_s is None else times.from_s
        stream = stream.within(low, np.inf if times.to_s is None else float(np.nextafter(times.to_s, np.inf)))
    log = LongLog.of(stream, survey(stream))
    return (log, "") if times.named or not settings.trim else without_long_standstill(log)


def _streamed(paths: Sequence[Path], settings: Reading) -> bool:
    """Whether logs are read piece by piece: files, where that is asked for or they are long."""
    if settings.stream == "off" or not paths or not all(path.is_file() for path in paths):
        return False
    return settings.stream != "auto" or _long(paths)


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


def _open_first(robot: Robot, path: Path, settings: Reading, notes: list[str]) -> tuple[RecordingStream, Robot]:
    """The first log decides which joints move."""
    try:
        found = open_with(path, robot, _options(settings))
    except MissingJointsError as missing:
        cut = robot.only(missing.present)
        notes.append(missing.note(path.name))
        return open_with(path, cut, _options(settings)), cut
    return found, _cut_to(robot, found.joint_names, notes)


def _cut_to(robot: Robot, joints: tuple[str, ...], notes: list[str]) -> Robot:
    """The robot with the joints that a log was read for."""
    if joints == robot.joint_names:
        return robot
    rest = [name for name in robot.joint_names if name not in joints]
    notes.append(f"joints that are not among --joints are locked at neutral and merged: {', '.join(rest)}")
    return robot.only(joints)


def read_logs(robot: Robot, paths: Sequence[Path], settings: Reading, *, torque: bool = True) -> Logs | StaticRecording:
    """Read every log; joints that none of them has are locked at neutral and merged into the robot.

    ``torque`` refuses logs without any; position-controlled joints are identified without.
    """
    if not paths:
        raise InputError("no log was given, expected at least one")
    notes: list[str] = []
    first, robot = read_first(robot, paths[0], settings, notes)
    if isinstance(first, StaticRecording):
        if len(paths) > 1:
            raise InputError(f"{paths[0]} is a table of poses; {len(paths)} files were given, expected that one alone")
        return first
    recordings = [first]
    for path in paths[1:]:
        with LogFile(log_part(path).path) as file:
            recording = _read(robot, file, settings)
        if not isinstance(recording, Recording):
            raise InputError(f"{path} is a table of poses, {paths[0]} is a motion log; give logs of one kind")
        recordings.append(recording)
    hashes = [recording.source.sha256 for recording in recordings]
    refuse_same(paths, hashes)
    cut = []
    for path, recording in zip(paths, recordings, strict=True):
        part, note = part_of(recording, log_part(path), settings, trim=torque)
        cut.append(part)
        notes.extend([f"{path.name}: {note}"] if note else [])
    for path, recording in zip(paths, cut, strict=True):
        notes.extend(f"{path.name}: {note}" for note in (*recording.source.notes, *repair_notes(recording)))
        if torque:
            _check_torque(path, recording)
    return Logs(robot, tuple(cut), tuple(str(path) for path in paths), tuple(hashes), tuple(notes))


def _check_torque(path: Path, recording: Recording) -> None:
    """Refuse a log without joint torque, or with nothing but zeros for it."""
    if recording.torque is None:
        held = [name for name in ("current", "reference_position") if getattr(recording, name) is not None]
        raise InputError(no_torque(path, held))
    refuse_zero_torque(path, bool(recording.torque.any()), recording.n_samples)


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


def read_first(robot: Robot, path: Path, settings: Reading, notes: list[str]) -> tuple[Recording | StaticRecording, Robot]:
    """The first log decides which joints move."""
    with LogFile(log_part(path).path) as file:
        try:
            found = _read(robot, file, settings)
        except MissingJointsError as missing:
            cut = robot.only(missing.present)
            notes.append(missing.note(path.name))
            return _read(cut, file, settings), cut
    return found, _cut_to(robot, found.joint_names, notes)


def read_any_log(path: Path, robot: Robot, settings: Reading) -> Recording | StaticRecording | WrenchRecording:
    """One log of whatever kind, whole."""
    with LogFile(log_part(path).path) as file:
        return read_log(file, robot, _options(settings))


def _read(robot: Robot, file: LogFile, settings: Reading) -> Recording | StaticRecording:
    recording = read_log(file, robot, _options(settings))
    if isinstance(recording, WrenchRecording):
        raise SensorLogError(
            f"{file.path} is a force/torque-sensor log, expected joint torque or a table of poses: the body on the sensor is identified by "
            f"'dynid identify ROBOT {file.path} --frame SENSOR_FRAME' or dynid.identify_sensor"
        )
    return recording


def part_of(recording: Recording, part: LogPart, settings: Reading, *, trim: bool = True) -> tuple[Recording, str]:
    """The part of a log that is used, and what was left out of it unasked: its own times, those of all logs, or its motion."""
    if part.named:
        return recording.between(part.from_s, part.to_s), ""
    if settings.from_s is not None or settings.to_s is not None or not (trim and settings.trim):
        return windowed(recording, settings), ""
    return without_standstill(recording)


def _options(settings: Reading) -> ReadOptions:
    return ReadOptions(**{name: getattr(settings, name) for name in READ_NAMES})


def windowed(recording: Recording, settings: Reading) -> Recording:
    """The part of a log between the times asked for."""
    if settings.from_s is None and settings.to_s is None:
        return recording
    return recording.between(settings.from_s, settings.to_s)
