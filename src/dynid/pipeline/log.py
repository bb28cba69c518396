"""Motion logs of a run: in memory, or too long for it and read piece by piece, on one path.

What needs every row (the triangles, the errors) is made while the rows go by; a log in memory is one piece. What chooses (bands,
friction, the data check) sees *windows*: ordinary recordings of some seconds, spread evenly over all logs. Of logs in memory, and
of such as are no longer than what the windows may hold together, the windows are the whole logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from dynid.arrays import Array, BoolArray, IntArray
from dynid.dynamics.inverse_dynamics import needs_load, with_transmitted_load
from dynid.errors import InputError, TooShortError
from dynid.finding import DataCheck
from dynid.model.robot import Robot
from dynid.pipeline.signal_filter import STILL, Filter, as_recorded, to_samples
from dynid.signals.checks import SHORTEST_S
from dynid.signals.measures import FEWEST_ROWS
from dynid.signals.process import ProcessedStream, process
from dynid.signals.recording import Part, Recording, StaticRecording, WrenchRecording
from dynid.signals.samples import Samples, SampleStream, map_samples
from dynid.signals.stream import RecordingStream, Survey, survey
from dynid.validation.data_check import check_recording

WINDOWS = 8
"""Windows of all logs together, at most."""
LEAST_WINDOW_S, MOST_WINDOW_S = 10.0, 40.0
WINDOW_VALUES = 420_000
"""Rows of all windows times joints."""
SHOWN = 2
"""Windows of unseen parts, which are only drawn."""
NEARLY_STILL = 10.0
"""Times ``STILL``: a joint whose raw position moves less may stand still behind the filter."""
WHOLE_LOG = ("short", "standstill", "resting_joint", "gaps", "dropped_rows", "dead_signal")
"""Findings that a window cannot make about its log."""
MARGIN_S = 0.5
"""Standstill that is kept before and after the motion, s."""
THRESHOLD = 1e-3
"""Share of its range by which a joint must leave its first or last position to move."""
TAIL_S = 30.0
"""Seconds that are read at a time while the end of the motion is looked for from the last row on."""


@dataclass(frozen=True, eq=False)
class Log:
    """A motion log, or a part of one in time, in memory or in its file, and what one pass over the log has shown."""

    rows: Recording | RecordingStream
    survey: Survey
    start_s: float
    end_s: float
    name: str = ""
    """What the part of a log in its file is for; empty for the whole log."""

    @classmethod
    def of(cls, rows: Recording | RecordingStream) -> Log:
        """A log after one pass over it."""
        found = survey(rows)
        indexed = replace(rows, index=found.index) if isinstance(rows, RecordingStream) else rows
        return cls(indexed, found, found.start_s, found.end_s)

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s

    @property
    def n_rows(self) -> int:
        """Rows of the part, as far as the mean rate tells."""
        whole = self.survey
        return whole.n_rows if not self.name else round(whole.n_rows * self.duration_s / whole.duration_s)

    @property
    def path(self) -> str:
        return self.rows.source.path

    def split(self, share: float) -> tuple[Log, Log]:
        """The first ``share`` in time and the rest."""
        if isinstance(self.rows, Recording):
            first, rest = self.rows.split(share)
            return Log.of(first), Log.of(rest)
        end = self.start_s + share * self.duration_s
        before = replace(self, rows=self.rows.within(stop_s=end), end_s=end, name="identification part")
        return before, replace(self, rows=self.rows.within(end), start_s=end, name="validation part")

    def read(self, start_s: float, end_s: float) -> Recording:
        """Some seconds in memory."""
        if isinstance(self.rows, Recording):
            return self.rows.between(start_s, end_s)
        recording = self.rows.between(start_s, end_s).read()
        if not self.name and recording.n_samples >= self.survey.n_rows:
            return recording
        part = Part(0, 0, self.survey.n_rows, self.survey.duration_s, self.name, start_s, end_s)
        return replace(recording, source=replace(recording.source, part=part))

    def stretches(self) -> list[tuple[float, float]]:
        """Times without a gap."""
        starts = [self.start_s, *(after for _, after in self.survey.gaps)]
        ends = [*(before for before, _ in self.survey.gaps), self.end_s]
        found = [(max(a, self.start_s), min(b, self.end_s)) for a, b in zip(starts, ends, strict=True)]
        return [(a, b) for a, b in found if b > a]

    def windows(self, count: int, seconds: float) -> list[tuple[float, float]]:
        """Times of ``count`` windows, spread evenly, none of them over a gap where a stretch without one is long enough."""
        if count * seconds >= self.duration_s:
            return [(self.start_s, self.end_s)]
        found: list[tuple[float, float]] = []
        for k in range(count):
            middle = self.start_s + (k + 0.5) / count * self.duration_s
            long = [one for one in self.stretches() if one[1] - one[0] >= seconds] or [(self.start_s, self.end_s)]
            low, high = min(long, key=lambda one: max(one[0] - middle, middle - one[1], 0.0))
            start = float(np.clip(middle - 0.5 * seconds, low, high - seconds))
            if not found or start >= found[-1][1]:
                found.append((start, start + seconds))
        return found

    def samples(self, filtered: Filter, max_rows: int) -> Samples | LogSamples:
        """Filtered and differentiated: at once in memory, else while it is read."""
        has_velocity = "velocity" in self.rows.quantities
        made = process(self.rows, filtered.chain(self.survey.repairs(), has_velocity, self.n_rows, max_rows))
        return made if isinstance(made, Samples) else LogSamples(made.recording, made.steps, log=self, filtered=filtered)

    def window_samples(self, filtered: Filter) -> tuple[Samples, ...]:
        """Samples of windows that a log in its file holds itself."""
        return ()

    def raw_samples(self, like: Samples | SampleStream | None = None) -> Samples | LogSamples:
        """On a uniform clock and otherwise as recorded, for rows that differentiate no signal: velocity and acceleration are plain
        differences, which such rows do not use. In memory they carry the load of ``like``."""
        made = process(self.rows, as_recorded(self.survey.repairs()))
        if not isinstance(made, Samples):
            return LogSamples(made.recording, made.steps, log=self)
        if not isinstance(like, Samples) or like.load is None:
            return made
        return made.with_load(np.column_stack([np.interp(made.time, like.time, column) for column in like.load.T]))


@dataclass(frozen=True, eq=False)
class LogSamples(ProcessedStream):
    """Samples of a log in its file that know where they come from, so that they can be made in partitions as well."""

    log: Log | None = None
    filtered: Filter | None = None
    """None where signals are as recorded."""

    @property
    def duration_s(self) -> float:
        """Time from the first to the last row of the log."""
        assert self.log is not None
        return self.log.duration_s

    @property
    def period_s(self) -> float:
        """Mean period of the log."""
        assert self.log is not None
        return 1.0 / self.log.survey.rate_hz


@dataclass(frozen=True, eq=False)
class Logs:
    """Logs of one robot and one purpose, to identify on or to validate on, cut to the joints they have."""

    robot: Robot
    parts: tuple[Log, ...]
    paths: tuple[str, ...]
    hashes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    recordings: tuple[Recording, ...] = ()
    """Windows in memory, which choices are made on: the logs themselves where they are in memory."""
    samples: tuple[Samples | SampleStream, ...] = ()
    """All samples, one set or stream for each log."""
    windows: tuple[Samples, ...] = ()
    """Samples of the windows: the same as ``samples`` where logs are in memory."""
    poses: StaticRecording | None = None
    """A table of poses in the place of logs."""
    wrenches: tuple[WrenchRecording, ...] = ()
    """Logs of a force/torque sensor in the place of those of joint torque."""

    @property
    def in_memory(self) -> bool:
        return all(isinstance(log.rows, Recording) for log in self.parts)

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """Path and hash of every log."""
        return tuple(zip(self.paths, self.hashes, strict=True))

    @property
    def window_names(self) -> tuple[str, ...]:
        """Which part of which log each window is; empty where they are the logs."""
        return () if self.in_memory else tuple(window_name(recording) for recording in self.recordings)

    def with_windows(self, most: int = WINDOWS) -> Logs:
        """With windows of the logs, at most so many."""
        return replace(self, recordings=tuple(choose_windows(self.parts, most)))

    def without_short(self, split: float | None = None, *, required: bool = True) -> Logs:
        """Without logs that are too short to identify from, each with a note; as it is where all parts of a split would be too short.

        Args:
            split: share of every log that is identified on; the rest must be long enough, too.
            required: refuse logs all of which are too short; with a filter that is given they may still do.
        """
        longest = max(self.parts, key=lambda log: log.duration_s)
        if required and (longest.duration_s < SHORTEST_S or longest.n_rows < FEWEST_ROWS):
            which = (
                f"all {len(self.parts)} logs are too short, the longest is {longest.path}:"
                if self.parts[1:]
                else f"{longest.path}:"
            )
            raise TooShortError(
                f"{which} {longest.n_rows} rows and {longest.duration_s:.3g} s{'' if self.parts[1:] else ' are too short'}, expected at "
                f"least {FEWEST_ROWS} rows and {SHORTEST_S:g} s; record a longer motion, 10 s and more"
            )
        least = SHORTEST_S / (1.0 if split is None else min(split, 1.0 - split))
        kept = [k for k, log in enumerate(self.parts) if log.duration_s >= least and log.n_rows >= FEWEST_ROWS]
        if not kept or len(kept) == len(self.parts):
            return self
        parts = " in both parts of the split" if split is not None else ""
        notes = [
            f"{Path(self.paths[k]).name} was left out: {log.n_rows} rows and {log.duration_s:.3g} s are too short, expected at least "
            f"{FEWEST_ROWS} rows and {least:.3g} s" + (f" ({SHORTEST_S:g} s{parts})" if parts else "")
            for k, log in enumerate(self.parts)
            if k not in kept
        ]
        return replace(
            self,
            parts=tuple(self.parts[k] for k in kept),
            paths=tuple(self.paths[k] for k in kept),
            hashes=tuple(self.hashes[k] for k in kept),
            notes=(*self.notes, *notes),
            recordings=tuple(rows for k in kept if isinstance(rows := self.parts[k].rows, Recording)),
        )

    def split(self, share: float) -> tuple[Logs, Logs]:
        """The first ``share`` in time of every log, and the rest of it."""
        if self.wrenches:
            cuts = [(log, max(1, round(share * log.n_samples))) for log in self.wrenches]
            ends = tuple(log.rows(cut, log.n_samples) for log, cut in cuts)
            return replace(self, wrenches=tuple(log.rows(0, cut) for log, cut in cuts)), replace(self, wrenches=ends)
        pairs = [log.split(share) for log in self.parts]
        for path, parts in zip(self.paths, pairs, strict=True):
            for name, part in zip(("first", "second"), parts, strict=True):
                refuse_zero_torque(f"the {name} part of {path}", part.survey)
        return replace(self, parts=tuple(first for first, _ in pairs)), replace(self, parts=tuple(r for _, r in pairs))

    def filtered(self, filtered: Filter, max_rows: int, *, still: bool = False) -> Logs:
        """With their samples; ``still`` holds joints that never move."""
        samples: Sequence[Samples | SampleStream] = [log.samples(filtered, max_rows) for log in self.parts]
        held = standing_joints(samples).held if still and not self.robot.floating else None
        samples = samples if held is None else [map_samples(held, one) for one in samples]
        whole = tuple(one for one in samples if isinstance(one, Samples))
        if self.in_memory:
            return replace(self, samples=whole, windows=whole)
        windows = [to_samples(recording, filtered, max_rows) for recording in self.recordings]
        if self.robot.floating:
            windows = [one for log in self.parts for one in log.window_samples(filtered)]
        return replace(self, samples=tuple(samples), windows=tuple(windows if held is None else map(held, windows)))

    def recorded(self, robot: Robot) -> list[Samples | SampleStream]:
        """Their signals as recorded, joints that never move held, for rows that filter by themselves."""
        if needs_load(robot) and not self.in_memory:
            raise InputError(
                "friction that depends on load and --rows polynomial together need the logs in memory: add --stream off"
            )
        raw = [log.raw_samples(one) for log, one in zip(self.parts, self.samples, strict=True)]
        held = standing_joints(raw).held
        return [map_samples(held, one) for one in raw]

    def with_window_samples(self, windows: Sequence[Samples]) -> Logs:
        """With other samples of the windows, which in memory are all samples."""
        samples = tuple(windows) if self.in_memory else self.samples
        return replace(self, samples=tuple(samples), windows=tuple(windows))

    def without_rows(self) -> Logs:
        """Nothing of them."""
        return replace(self, parts=(), recordings=(), samples=(), windows=())

    def under_load(self, model: Robot) -> Logs:
        """With the load that a model gives, where its friction depends on it; that of streams is found while they go by."""
        return self.with_window_samples([with_transmitted_load(model, one) for one in self.windows])


@dataclass(frozen=True, eq=False)
class Data:
    """What a run is identified from: all logs as they were read, the part identified on, and what validates."""

    logs: Logs
    known: Logs
    unseen: Logs | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done while the logs were read, and what the choices were made on where that is not all."""
        return (*self.logs.notes, *window_note(self.known))

    def filtered(self, filtered: Filter | None, max_rows: int) -> Data:
        """With the samples of all logs, in which known joints that never move are held; poses are not filtered."""
        if filtered is None:
            return self
        unseen = None if self.unseen is None else self.unseen.filtered(filtered, max_rows)
        return replace(self, known=self.known.filtered(filtered, max_rows, still=True), unseen=unseen)


def samples_under_load(model: Robot, samples: Sequence[Samples | SampleStream]) -> list[Samples | SampleStream]:
    """Samples with the load of a model; those in memory that carry one keep it."""
    if not needs_load(model):
        return list(samples)
    load = partial(with_transmitted_load, model)
    return [one if isinstance(one, Samples) and one.load is not None else map_samples(load, one) for one in samples]


@dataclass(frozen=True, eq=False)
class Standing:
    """Joints that never move, and where they stand."""

    joints: BoolArray
    position: Array

    def held(self, samples: Samples) -> Samples:
        """Samples in which joints that never move have no velocity: what sensors show of them is noise, and friction or
        inertia must not be read from it."""
        if not self.joints.any():
            return samples
        return replace(
            samples,
            position=np.where(self.joints, self.position, samples.position),
            velocity=np.where(self.joints, 0.0, samples.velocity),
            acceleration=np.where(self.joints, 0.0, samples.acceleration),
        )


def standing_joints(samples: Sequence[Samples | SampleStream]) -> Standing:
    """Joints that move less than ``STILL`` in all samples; streams are passed over only where a raw position hardly moves."""
    surveys = [one.log.survey for one in samples if isinstance(one, LogSamples) and one.log is not None]
    if len(surveys) == len(samples):
        lowest, highest = np.min([one.lowest for one in surveys], axis=0), np.max([one.highest for one in surveys], axis=0)
        if (highest - lowest >= NEARLY_STILL * STILL).all():
            return Standing(np.zeros(len(lowest), dtype=bool), lowest)
    low, high, means = list[Array](), list[Array](), list[Array]()
    for log in samples:
        total, n = np.zeros(1), 0
        for piece in log:
            low, high = (
                [np.min([*low, piece.position.min(axis=0)], axis=0)],
                [np.max([*high, piece.position.max(axis=0)], axis=0)],
            )
            total, n = total + piece.position.sum(axis=0), n + len(piece)
        means.append(total / n)
    return Standing(np.asarray(high[0] - low[0] < STILL), np.mean(means, axis=0))


def hold_still(samples: Sequence[Samples]) -> tuple[Samples, ...]:
    """Samples in memory with joints that never move held."""
    return tuple(map(standing_joints(samples).held, samples))


def choose_windows(logs: Sequence[Log], most: int = WINDOWS) -> list[Recording]:
    """Windows of logs, in memory: few enough to hold, spread over all logs; logs in memory are windows themselves."""
    whole = [log.rows for log in logs if isinstance(log.rows, Recording)]
    if len(whole) == len(logs):
        return whole
    budget = WINDOW_VALUES / logs[0].rows.n_joints
    if most >= WINDOWS and sum(log.n_rows for log in logs) <= budget:
        return [log.read(log.start_s, log.end_s) for log in logs]
    picked = [logs[int((k + 0.5) * len(logs) / most)] for k in range(most)] if len(logs) > most else list(logs)
    rate_hz = max(log.survey.rate_hz for log in picked)
    seconds = float(np.clip(budget / (most * rate_hz), LEAST_WINDOW_S, MOST_WINDOW_S))
    count = max(1, min(most, int(budget / (seconds * rate_hz))))
    if len(picked) > count:
        picked = [picked[int((k + 0.5) * len(picked) / count)] for k in range(count)]
    each = [count // len(picked) + (k < count % len(picked)) for k in range(len(picked))]
    return [
        log.read(a, b) for log, n in zip(picked, each, strict=True) for a, b in log.windows(n, min(seconds, log.duration_s))
    ]


def window_note(logs: Logs) -> list[str]:
    """What the choices were made on; nothing where that is all there is."""
    windows = logs.recordings
    if sum(recording.n_samples for recording in windows) >= sum(log.n_rows for log in logs.parts):
        return []
    names = len({recording.source.path for recording in windows})
    sentence = (
        f"read piece by piece: bands, friction and the data check come from {len(windows)} windows of "
        f"{windows[0].duration_s:.3g} s in {names} of {len(logs.parts)} logs, the estimate and its errors from all rows"
    )
    return [sentence]


def window_name(recording: Recording) -> str:
    """The file of a window, and where in it the window lies."""
    part = recording.source.part
    return Path(recording.source.path).name + ("" if part is None else f", {part}")


def check_log(log: Log, windows: Iterable[Recording], robot: Robot) -> DataCheck:
    """The data check of a log: in memory as a whole, else its windows against the model, and what one pass over it has shown."""
    whole = log.survey
    against = None if robot.floating else robot  # which would explain the torque of a moving base wrongly
    own = [log.rows] if isinstance(log.rows, Recording) else [one for one in windows if one.source.path == log.path]
    if len(own) == 1 and own[0].n_samples >= whole.n_rows:
        return check_recording(own[0], against)
    found = DataCheck((), {})
    for window in own:
        check = check_recording(window, against)
        known = {(finding.code, finding.where) for finding in found}
        fresh = [one for one in check if one.code not in WHOLE_LOG and (one.code, one.where) not in known]
        found = DataCheck((*found.findings, *fresh), {**check.facts, **found.facts})
    facts = {"rows": whole.n_rows, "duration_s": whole.duration_s, "rate_hz": whole.rate_hz, "windows": len(own)}
    return DataCheck((*found.findings, *whole.findings()), {**found.facts, **facts})


def without_standstill(log: Log) -> tuple[Log, str]:
    """The log from half a second before its motion to half a second after it, and what was left out, in words.

    Only its two ends are read: forwards up to the first motion, and backwards from the last row in steps.
    """
    limit = THRESHOLD * (log.survey.highest - log.survey.lowest)
    moves = limit > 0.0
    if not moves.any():
        return log, ""

    def far(piece: Recording, place: Array) -> IntArray:
        return np.flatnonzero((np.abs(piece.position - place) > limit)[:, moves].any(axis=1))

    start, end = _motion_start(log, far), _motion_end(log, far)
    head_s, tail_s = start - log.start_s, log.end_s - end
    if max(head_s, tail_s) <= MARGIN_S or not start < end:
        return log, ""
    kept = log.rows.between(start if head_s > 0.0 else None, end if tail_s > 0.0 else None)
    return Log.of(kept), (
        f"standstill was left out: {max(head_s, 0.0):.3g} s before the motion and {max(tail_s, 0.0):.3g} s after it "
        "(--no-trim keeps it)"
    )


def _motion_start(log: Log, far: Callable[[Recording, Array], IntArray]) -> float:
    """A margin before the first row that is far from where the log starts; its start where none is."""
    first: Array | None = None
    for piece, _ in log.rows.pieces():
        if piece is None:
            continue
        first = piece.position[0] if first is None else first
        away = far(piece, first)
        if away.size:
            return float(piece.time[away[0]]) - MARGIN_S
    return log.start_s


def _motion_end(log: Log, far: Callable[[Recording, Array], IntArray]) -> float:
    """A margin after the last row that is far from where the log ends; its end where none is."""
    last: Array | None = None
    stop = float(np.nextafter(log.end_s, np.inf))
    while stop > log.start_s:
        begin = max(log.start_s, stop - TAIL_S)
        pieces = [piece for piece, _ in log.rows.pieces(begin, stop) if piece is not None]
        if pieces:
            piece = Recording.concatenate(pieces)
            last = piece.position[-1] if last is None else last
            away = far(piece, last)
            if away.size:
                return float(piece.time[away[-1]]) + MARGIN_S
        stop = begin
    return log.end_s


def refuse_without_torque(path: str | Path, log: Log) -> None:
    """Refuse a log without joint torque, with what can be done with the quantities that it holds, or with nothing but zeros for it."""
    if "torque" in log.rows.quantities:
        refuse_zero_torque(path, log.survey)
        return
    remedies = {
        "current": " It has motor current: give --drive-gains.",
        "reference_position": " From commands and positions alone 'dynid actuators' finds friction, rotor inertia and delay.",
    }
    hint = next((text for name, text in remedies.items() if name in log.rows.quantities), "")
    raise InputError(f"{path} has no joint torque, expected columns tau1.. or one per joint name.{hint}")


def refuse_zero_torque(what: str | Path, found: Survey) -> None:
    """Refuse a log whose torque is zero throughout: any robot without mass and friction would explain it."""
    if not found.torque_seen:
        raise InputError(
            f"{what}: the torque of every joint is zero in all {found.n_rows} rows, expected measured torque; name its columns in a "
            "mapping file (--mapping FILE), or use a log in which the drives are on"
        )
