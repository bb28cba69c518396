"""From log files to samples: read, cut, filter, differentiate; and the choices that the data themselves decide."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.errors import InputError
from dynid.recording.process import process
from dynid.recording.readers.joints import MissingJointsError
from dynid.recording.readers.read import read_recording
from dynid.recording.recording import Recording, StaticRecording, WrenchRecording
from dynid.recording.samples import Samples
from dynid.recording.steps.decimate import Decimate
from dynid.recording.steps.differentiate import Differentiate
from dynid.recording.steps.gaps import SplitAtGaps
from dynid.recording.steps.lowpass import LowPass
from dynid.recording.steps.resample import Resample
from dynid.recording.steps.step import Step
from dynid.recording.steps.unwrap import Unwrap
from dynid.robot.effects import Coulomb
from dynid.robot.model import Robot
from dynid.run.settings import Settings

STILL = 1e-3
"""rad or m: a joint that moves less stands still."""


@dataclass(frozen=True)
class Filter:
    """How the signals of a run were filtered; stored with every error it gave."""

    cutoff_hz: float
    torque_cutoff_hz: float
    order: int
    velocity: Literal["logged", "position"]
    kind: str = "zero-phase Butterworth"

    def steps(self, recording: Recording, max_rows: int) -> list[Step]:
        """The processing steps of one recording."""
        logged = ("position",) if recording.velocity is None else ("position", "velocity")
        motion = LowPass(cutoff_hz=self.cutoff_hz, order=self.order, signals=logged)
        torque = LowPass(cutoff_hz=self.torque_cutoff_hz, order=self.order, signals=("torque",))
        every = max(1, int(np.ceil(recording.n_samples / max_rows)))
        steps: list[Step] = [*repairs(recording), Resample(), motion, torque, Differentiate(velocity=self.velocity)]
        return steps if every == 1 else [*steps, Decimate(every=every)]

    def describe(self) -> str:
        torque = "" if self.torque_cutoff_hz == self.cutoff_hz else f", torque at {self.torque_cutoff_hz:g} Hz"
        source = "logged velocity" if self.velocity == "logged" else "velocity from position"
        return f"{self.kind}, order {self.order}, {self.cutoff_hz:g} Hz{torque}, {source}"


@dataclass(frozen=True, eq=False)
class Logs:
    """Recordings of one robot, cut to the joints they have."""

    robot: Robot
    recordings: tuple[Recording, ...]
    paths: tuple[str, ...]
    hashes: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_unseen(robot: Robot, paths: Sequence[Path], settings: Settings) -> Logs:
    """Motion logs that have every joint of a robot that was identified."""
    found = read_logs(robot, paths, settings)
    if isinstance(found, StaticRecording):
        raise InputError(f"{paths[0]} is a table of poses, expected a motion log to validate on")
    missing = [name for name in robot.joint_names if name not in found.robot.joint_names]
    if missing:
        raise InputError(f"{paths[0]} lacks joint {', '.join(missing)}, which was identified; expected all {robot.n_joints}")
    return found


def read_logs(robot: Robot, paths: Sequence[Path], settings: Settings) -> Logs | StaticRecording:
    """Read every log; joints that none of them has are locked at neutral and merged into the robot."""
    if not paths:
        raise InputError("no log was given, expected at least one")
    hashes = refuse_repeats(paths)
    notes: list[str] = []
    first, robot = read_first(robot, paths[0], settings, notes)
    if isinstance(first, StaticRecording):
        if len(paths) > 1:
            raise InputError(f"{paths[0]} is a table of poses; {len(paths)} files were given, expected that one alone")
        return first
    recordings = [first]
    for path in paths[1:]:
        recording = _read(robot, path, settings)
        if not isinstance(recording, Recording):
            raise InputError(f"{path} is a table of poses, {paths[0]} is a motion log; give logs of one kind")
        recordings.append(recording)
    cut = tuple(_window(recording, settings) for recording in recordings)
    for path, recording in zip(paths, cut, strict=True):
        notes.extend(f"{path.name}: {note}" for note in (*recording.source.notes, *repair_notes(recording)))
        if recording.torque is None:
            hint = " It has motor current: give --drive-gains." if recording.current is not None else ""
            raise InputError(f"{path} has no joint torque, expected columns tau1.. or one per joint name.{hint}")
    return Logs(robot, cut, tuple(str(path) for path in paths), tuple(hashes), tuple(notes))


def refuse_repeats(paths: Iterable[Path], seen: Iterable[str] = ()) -> list[str]:
    """Hash of every file; the same content twice, or once more than in ``seen``, is refused."""
    hashes: list[str] = []
    known = dict.fromkeys(seen, "the identification set")
    for path in paths:
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise InputError(f"log '{path}' cannot be read: {error.strerror or error}") from None
        if digest in known:
            raise InputError(f"log '{path}' has the same content as {known[digest]}; a log may be used once only")
        known[digest] = f"'{path}'"
        hashes.append(digest)
    return hashes


def repairs(recording: Recording) -> list[Step]:
    """What must be set right before any filter: nothing is invented in long gaps, and angles do not jump by a turn."""
    steps: list[Step] = []
    gap_s = _gap_s(recording)
    if (np.diff(recording.time) > gap_s).any():
        steps.append(SplitAtGaps(gap_s))
    wrapped = _wrapped(recording)
    if wrapped:
        steps.append(Unwrap(wrapped))
    return steps


def repair_notes(recording: Recording) -> list[str]:
    """What :func:`repairs` does to a log, in words."""
    notes = []
    gaps = int(np.count_nonzero(np.diff(recording.time) > _gap_s(recording)))
    if gaps:
        notes.append(f"taken as {gaps + 1} parts: rows are missing for more than {_gap_s(recording):.2g} s in {gaps} places")
    wrapped = _wrapped(recording)
    if wrapped:
        names = ", ".join(recording.joint_names[number - 1] for number in wrapped)
        notes.append(f"jumps of whole turns in the angle of {names} are undone")
    return notes


def _gap_s(recording: Recording) -> float:
    return max(0.1, 10.0 * float(np.median(np.diff(recording.time)))) if recording.n_samples > 1 else np.inf


def _wrapped(recording: Recording) -> tuple[int, ...]:
    """Joints, counted from 1, whose position jumps by about a turn between two rows; no slide moves 6 m in one."""
    steps = np.abs(np.diff(recording.position, axis=0))
    return tuple((1 + np.flatnonzero((np.abs(steps - 2.0 * np.pi) < 0.5).any(axis=0))).tolist())


def still_joints(samples: Sequence[Samples]) -> BoolArray:
    """Joints that move less than ``STILL`` in all samples together."""
    highest = np.max([one.position.max(axis=0) for one in samples], axis=0)
    lowest = np.min([one.position.min(axis=0) for one in samples], axis=0)
    return np.asarray(highest - lowest < STILL)


def hold_still(samples: Sequence[Samples]) -> tuple[Samples, ...]:
    """Samples in which joints that never move have no velocity: what sensors show of them is noise, and friction or
    inertia must not be read from it."""
    still = still_joints(samples)
    if not still.any():
        return tuple(samples)
    place = np.mean([one.position.mean(axis=0) for one in samples], axis=0)
    return tuple(
        replace(
            one,
            position=np.where(still, place, one.position),
            velocity=np.where(still, 0.0, one.velocity),
            acceleration=np.where(still, 0.0, one.acceleration),
        )
        for one in samples
    )


def split_recording(
    recording: Recording, share: float, names: tuple[str, str] = ("identification part", "validation part")
) -> tuple[Recording, Recording]:
    """The first ``share`` of a log and the rest, cut in time before any filter; ``names`` call them in messages."""
    end = recording.time[0] + share * recording.duration_s
    cut = int(np.searchsorted(recording.time, end))
    return recording.rows(0, cut, part=names[0]), recording.rows(cut, part=names[1])


def to_samples(recording: Recording, filtered: Filter, max_rows: int) -> Samples:
    """One recording, filtered and differentiated."""
    try:
        return process(recording, filtered.steps(recording, max_rows))
    except InputError as error:
        name = Path(recording.source.path).name
        raise InputError(str(error) if not name or name in str(error) else f"{name}: {error}") from None


def velocity_noise(recording: Recording, filtered: Filter) -> Array:
    """Standard deviation of the noise that is left in the filtered velocity, per joint.

    What the filter removed is taken as white; the share of its band that passes is what stays.
    """
    samples = process(recording, [*repairs(recording), Resample(), Differentiate(velocity=filtered.velocity)])
    smooth = process(recording, filtered.steps(recording, recording.n_samples))
    raw = np.column_stack([np.interp(smooth.time, samples.time, column) for column in samples.velocity.T])
    removed = np.std(raw - smooth.velocity, axis=0)
    passed = min(2.0 * filtered.cutoff_hz / recording.rate_hz, 1.0)
    return np.asarray(removed * np.sqrt(passed))


def with_dead_zone(robot: Robot, recordings: Sequence[Recording], filtered: Filter, settings: Settings) -> Robot:
    """The robot with the dead zone of its Coulomb friction set as the settings say."""
    if not any(isinstance(effect, Coulomb) for effect in robot.effects):
        return robot
    zone: tuple[float, ...]
    if settings.dead_zone == "auto":
        noise = np.max([velocity_noise(recording, filtered) for recording in recordings], axis=0)
        zone = tuple(float(3.0 * sigma) for sigma in noise)
    else:
        zone = (float(settings.dead_zone),) * len(robot.driven)
    effects = [replace(e, dead_zone=zone) if isinstance(e, Coulomb) else e for e in robot.effects]
    return robot.with_effects(effects)


def read_first(robot: Robot, path: Path, settings: Settings, notes: list[str]) -> tuple[Recording | StaticRecording, Robot]:
    """The first log decides which joints move."""
    try:
        return _read(robot, path, settings), robot
    except MissingJointsError as missing:
        cut = robot.only(missing.present)
        notes.append(f"{path.name} lacks the joints {', '.join(missing.missing)}: they are locked at neutral and merged")
        return _read(cut, path, settings), cut


def _read(robot: Robot, path: Path, settings: Settings) -> Recording | StaticRecording:
    recording = read_recording(
        path, robot, mapping=settings.mapping, preset=settings.preset, drive_gains=settings.drive_gains
    )
    if isinstance(recording, WrenchRecording):
        raise InputError(f"{path} is a force/torque-sensor log, expected joint torque or a table of poses")
    return recording


def _window(recording: Recording, settings: Settings) -> Recording:
    if settings.from_s is None and settings.to_s is None:
        return recording
    return recording.between(settings.from_s, settings.to_s)
