"""Long logs: read piece by piece, with a few windows in memory that choices are made on and pictures are drawn from.

What needs every row (the factor, the errors) is made while the rows go by. What chooses (bands, friction, the data check) sees
*windows*: ordinary recordings of some seconds, spread evenly over all logs. Of logs that are no longer than what the windows
may hold together, the windows are the whole logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.errors import InputError
from dynid.estimation.friction.fit import with_transmitted_load
from dynid.recording.finding import DataCheck
from dynid.recording.process import ProcessedStream, process
from dynid.recording.recording import Recording, RecordingStream
from dynid.recording.samples import Samples, SampleStream
from dynid.recording.source import TimePart
from dynid.recording.steps.step import Step
from dynid.recording.survey import Survey, survey
from dynid.robot.model import Robot
from dynid.run.log_part import MARGIN_S, THRESHOLD, no_torque, standstill_note
from dynid.run.rows import RowPlan
from dynid.run.signals import STILL, Filter, Standing, as_recorded, repairing
from dynid.validation.data_check import check_recording

WINDOWS = 8
"""Windows of all logs together, at most."""
LEAST_WINDOW_S, MOST_WINDOW_S = 10.0, 40.0
WINDOW_VALUES = 420_000
"""Rows of all windows times joints."""
TAIL_S = 30.0
"""Seconds that are read at a time while the end of the motion is looked for from the last row on."""
SHOWN = 2
"""Windows of unseen parts, which are only drawn."""
NEARLY_STILL = 10.0
"""Times ``STILL``: a joint whose raw position moves less may stand still behind the filter."""
WHOLE_LOG = ("short", "standstill", "resting_joint", "gaps", "dropped_rows", "dead_signal")
"""Findings that a window cannot make about its log."""


@dataclass(frozen=True, eq=False)
class LongLog:
    """A log, or a part of one in time, that is read piece by piece, and what one pass over the log has shown."""

    stream: RecordingStream
    survey: Survey
    start_s: float
    end_s: float
    name: str = ""
    """What the part is for; empty for the whole log."""

    @classmethod
    def of(cls, stream: RecordingStream, found: Survey) -> LongLog:
        return cls(replace(stream, index=found.index), found, found.start_s, found.end_s)

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
        return self.stream.source.path

    def split(self, share: float) -> tuple[LongLog, LongLog]:
        """The first ``share`` in time and the rest."""
        end = self.start_s + share * self.duration_s
        first = replace(self, stream=self.stream.within(stop_s=end), end_s=end, name="identification part")
        return first, replace(self, stream=self.stream.within(end), start_s=end, name="validation part")

    def between(self, start_s: float, end_s: float) -> Recording:
        """Some seconds in memory."""
        recording = self.stream.within(start_s, float(np.nextafter(end_s, np.inf))).read()
        if not self.name and recording.n_samples >= self.survey.n_rows:
            return recording
        part = TimePart(0, 0, self.survey.n_rows, self.survey.duration_s, self.name, start_s, end_s)
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

    def repairs(self) -> list[Step]:
        """What must be set right before any filter."""
        return repairing(self.survey.gap_s if self.survey.gaps else None, self.survey.wrapped)

    def samples(self, filtered: Filter, max_rows: int) -> ProcessedStream:
        """Filtered and differentiated, while it is read."""
        has_velocity = "velocity" in self.stream.quantities
        made = process(self.stream, filtered.chain(self.repairs(), has_velocity, self.n_rows, max_rows))
        return LogSamples(made.recording, made.steps, log=self, filtered=filtered)

    def raw_samples(self) -> ProcessedStream:
        """On a uniform clock and otherwise as recorded, for rows that differentiate no signal."""
        return process(self.stream, as_recorded(self.repairs()))


@dataclass(frozen=True, eq=False)
class LogSamples(ProcessedStream):
    """Samples of a long log that know where they come from, so that they can be made in partitions as well."""

    log: LongLog | None = None
    filtered: Filter | None = None


def chosen_windows(logs: Sequence[LongLog], most: int = WINDOWS) -> list[tuple[LongLog, Recording]]:
    """Windows of logs, in memory, each with its log: few enough to hold, spread over all logs."""
    n_joints = logs[0].stream.n_joints
    budget = WINDOW_VALUES / n_joints
    if most >= WINDOWS and sum(log.n_rows for log in logs) <= budget:
        return [(log, log.between(log.start_s, log.end_s)) for log in logs]
    picked = [logs[int((k + 0.5) * len(logs) / most)] for k in range(most)] if len(logs) > most else list(logs)
    rate_hz = max(log.survey.rate_hz for log in picked)
    seconds = float(np.clip(budget / (most * rate_hz), LEAST_WINDOW_S, MOST_WINDOW_S))
    count = max(1, min(most, int(budget / (seconds * rate_hz))))
    if len(picked) > count:
        picked = [picked[int((k + 0.5) * len(picked) / count)] for k in range(count)]
    each = [count // len(picked) + (k < count % len(picked)) for k in range(len(picked))]
    return [
        (log, log.between(a, b))
        for log, n in zip(picked, each, strict=True)
        for a, b in log.windows(n, min(seconds, log.duration_s))
    ]


def window_note(windows: Sequence[tuple[LongLog, Recording]], logs: Sequence[LongLog]) -> list[str]:
    """What the choices were made on; nothing where that is all there is."""
    seen = sum(recording.n_samples for _, recording in windows)
    rows = sum(log.n_rows for log in logs)
    if seen >= rows:
        return []
    names = len({log.path for log, _ in windows})
    sentence = (
        f"read piece by piece: bands, friction and the data check come from {len(windows)} windows of "
        f"{windows[0][1].duration_s:.3g} s in {names} of {len(logs)} logs, the estimate and its errors from all rows"
    )
    return [sentence]


def checked(log: LongLog, windows: Sequence[Recording], robot: Robot) -> DataCheck:
    """The data check of a long log: its windows against the model, and what one pass over it has shown."""
    whole = log.survey
    if len(windows) == 1 and windows[0].n_samples >= whole.n_rows:
        return check_recording(windows[0], robot)
    found = DataCheck((), {})
    for window in windows:
        own = check_recording(window, robot)
        known = {(finding.code, finding.joints) for finding in found}
        fresh = [one for one in own if one.code not in WHOLE_LOG and (one.code, one.joints) not in known]
        found = DataCheck((*found.findings, *fresh), {**own.facts, **found.facts})
    facts = {"rows": whole.n_rows, "duration_s": whole.duration_s, "rate_hz": whole.rate_hz, "windows": len(windows)}
    return DataCheck((*found.findings, *whole.findings()), {**found.facts, **facts})


@dataclass(frozen=True, eq=False)
class Changed:
    """Samples of a stream, each piece changed by a function."""

    stream: SampleStream
    change: Callable[[Samples], Samples]

    def __iter__(self) -> Iterator[Samples]:
        for piece in self.stream:
            yield self.change(piece)


@dataclass(frozen=True, eq=False)
class UnderLoad:
    """Samples with the load that a robot's parameters give."""

    robot: Robot

    def __call__(self, samples: Samples) -> Samples:
        return with_transmitted_load(self.robot, samples)


def standing_joints(logs: Sequence[LongLog], streams: Sequence[SampleStream]) -> Standing:
    """Joints that never move. Only where a raw position hardly does, one pass over the samples decides."""
    lowest = np.min([log.survey.lowest for log in logs], axis=0)
    highest = np.max([log.survey.highest for log in logs], axis=0)
    if (highest - lowest >= NEARLY_STILL * STILL).all():
        return Standing(np.zeros(len(lowest), dtype=bool), lowest)
    low, high, means = [], [], []
    for stream in streams:
        total, n = np.zeros(len(lowest)), 0
        for piece in stream:
            low.append(piece.position.min(axis=0))
            high.append(piece.position.max(axis=0))
            total, n = total + piece.position.sum(axis=0), n + len(piece)
            low, high = [np.min(low, axis=0)], [np.max(high, axis=0)]
        means.append(total / n)
    return Standing.of(low[0], high[0], np.mean(means, axis=0))


def held_stream(stream: SampleStream, standing: Standing) -> SampleStream:
    """Samples with joints that never move held."""
    return Changed(stream, standing.held) if standing.joints.any() else stream


def with_interval(plan: RowPlan, robot: Robot, logs: Sequence[LongLog]) -> RowPlan:
    """The plan with the length of the intervals of energy rows, which follows from that of the logs."""
    durations, periods = [log.duration_s for log in logs], [1.0 / log.survey.rate_hz for log in logs]
    return plan.with_interval(robot, durations, periods)


def window_name(recording: Recording) -> str:
    """The file of a window, and where in it the window lies."""
    part = recording.source.part
    return Path(recording.source.path).name + ("" if part is None else f", {part}")


def without_long_standstill(log: LongLog) -> tuple[LongLog, str]:
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
    low, high = (start if head_s > 0.0 else -np.inf), (float(np.nextafter(end, np.inf)) if tail_s > 0.0 else np.inf)
    kept = log.stream.within(low, high)
    return LongLog.of(kept, survey(kept)), standstill_note(head_s, tail_s)


def _motion_start(log: LongLog, far: Callable[[Recording, Array], IntArray]) -> float:
    """A margin before the first row that is far from where the log starts; its start where none is."""
    first: Array | None = None
    for piece in log.stream.as_read():
        first = piece.position[0] if first is None else first
        away = far(piece, first)
        if away.size:
            return float(piece.time[away[0]]) - MARGIN_S
    return log.start_s


def _motion_end(log: LongLog, far: Callable[[Recording, Array], IntArray]) -> float:
    """A margin after the last row that is far from where the log ends; its end where none is."""
    last: Array | None = None
    stop = float(np.nextafter(log.end_s, np.inf))
    while stop > log.start_s:
        begin = max(log.start_s, stop - TAIL_S)
        pieces = [piece for piece, _ in log.stream.within(begin, stop).pieces() if piece is not None]
        if pieces:
            piece = Recording.concatenate(pieces)
            last = piece.position[-1] if last is None else last
            away = far(piece, last)
            if away.size:
                return float(piece.time[away[-1]]) + MARGIN_S
        stop = begin
    return log.end_s


def refuse_without_torque(stream: RecordingStream) -> None:
    """Logs without joint torque identify nothing here."""
    if "torque" not in stream.quantities:
        raise InputError(no_torque(stream.source.path, stream.quantities))
