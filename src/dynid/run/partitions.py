"""A long log as partitions in time that can be worked on apart: each reads what its filters need beyond its own rows.

The rows of all partitions together are those of the log: samples lie on the same grid, filters have settled before the first own
row, and every so many rows one is kept, counted from the start of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.recording.process import process
from dynid.recording.samples import OwnSamples, Samples, SampleStream
from dynid.recording.signals import Signals, Tally
from dynid.recording.steps.gaps import SplitAtGaps
from dynid.recording.steps.lowpass import EDGE_S, LowPass
from dynid.recording.steps.resample import Resample
from dynid.recording.steps.step import Extent, LocalStep, Step
from dynid.recording.steps.zero_phase import memory_rows
from dynid.regression.memory import remembers
from dynid.regression.merged import OwnRows
from dynid.regression.row_filter import BandLimit
from dynid.regression.source import RowSource
from dynid.robot.model import Robot
from dynid.run.long_logs import Changed, LogSamples, LongLog
from dynid.run.rows import RowPlan
from dynid.run.signals import Filter
from dynid.validation.stream import beyond_rows

PARTITION_ROWS = 131_072
"""Rows of a partition; not of the number of workers, so that this does not change the result."""
SPARE_ROWS = 16

Change = Callable[[Samples], Samples]


def partitioned(
    plan: RowPlan, robot: Robot, logs: Sequence[LongLog], streams: Sequence[SampleStream], filtered: Filter, change: Change
) -> list[RowSource]:
    """Row sources that together are the rows of all logs: partitions of long ones where rows are filtered, else whole logs."""
    parts: list[RowSource] = []
    for log, stream in zip(logs, streams, strict=True):
        if plan.kind != "torque" or plan.band_hz is None or remembers(robot) or log.stream.read_from is None:
            parts.append(plan.source(robot, [Changed(stream, change)]))
            continue
        parts.extend(_of_log(plan, robot, log, filtered, change))
    return parts


def _of_log(plan: RowPlan, robot: Robot, log: LongLog, filtered: Filter, change: Change) -> list[RowSource]:
    assert plan.band_hz is not None
    period_s, limit = log.survey.period_s, BandLimit(plan.band_hz)
    beyond = len(limit.taps(period_s)) // 2 + limit.edge_rows(period_s)
    return [
        OwnRows(plan.source(robot, [Changed(part.stream, change)]), part.start_s, part.stop_s)
        for part in _sample_parts(log, filtered, beyond, limit.every(period_s))
    ]


def partitioned_samples(stream: SampleStream, robot: Robot, band_hz: float | None) -> list[SampleStream]:
    """Samples in partitions whose errors in a band add up to those of all; as they are where they cannot be cut."""
    if isinstance(stream, Changed):
        parts = partitioned_samples(stream.stream, robot, band_hz)
        if len(parts) == 1 and parts[0] is stream.stream:
            return [stream]
        owns = [part for part in parts if isinstance(part, OwnSamples)]
        return [OwnSamples(Changed(part.stream, stream.change), part.start_s, part.stop_s) for part in owns]
    if not isinstance(stream, LogSamples) or stream.log is None or stream.filtered is None:
        return [stream]
    log, filtered = stream.log, stream.filtered
    if filtered.row_band_hz is None or remembers(robot) or log.stream.read_from is None:
        return [stream]
    return list(_sample_parts(log, filtered, beyond_rows(band_hz, log.survey.period_s)))


def _sample_parts(log: LongLog, filtered: Filter, beyond: int, every: int = 1) -> list[OwnSamples]:
    """Partitions of a log; ``beyond`` counts the rows on either side that are needed after the filters of signals."""
    period_s = log.survey.period_s
    steps = _steps(log, filtered, period_s)
    spare = _overlap_rows(steps, period_s) + beyond
    place = 1 + next(k for k, step in enumerate(steps) if isinstance(step, Resample))
    own = every * max(1, PARTITION_ROWS // every)
    parts: list[OwnSamples] = []
    for start_s, end_s in log.stretches():
        if log.survey.gaps and end_s - start_s < SplitAtGaps(log.survey.gap_s).shortest_s:
            continue
        count = max(1, int((end_s - start_s) / period_s) // own)
        for k in range(count):
            first = max(0, k * own - every * -(-spare // every))  # a multiple of every, so that the same rows are kept
            begin = start_s + (k * own - 0.5) * period_s if k else -np.inf
            stop = start_s + ((k + 1) * own - 0.5) * period_s if k < count - 1 else np.inf
            read_from = start_s + (first - SPARE_ROWS) * period_s if first else start_s
            read_to = min(end_s, stop + spare * period_s)
            piece = log.stream.within(read_from, float(np.nextafter(read_to, np.inf)))
            chain = [*steps[:place], _Begin(start_s + (first - 0.5) * period_s), *steps[place:]] if first else steps
            stream = replace(process(piece, chain), anchor_s=start_s)
            parts.append(OwnSamples(stream, begin, stop))
    return parts


@dataclass(frozen=True)
class _Begin(LocalStep):
    """Rows from a time on: stamps that jitter leave open on which row of the grid a partition would begin."""

    time_s: float

    def reach(self, head: Signals) -> Extent:
        return Extent()

    def apply(self, window: Signals, own: slice, starts: bool, ends: bool, tally: Tally) -> Signals:
        first = max(own.start, int(np.searchsorted(window.time, self.time_s)))
        return window.cut(slice(min(first, own.stop), own.stop))


def _steps(log: LongLog, filtered: Filter, period_s: float) -> list[Step]:
    """The steps of the log on its grid; a partition has no gap."""
    repaired = [step for step in log.repairs() if not isinstance(step, SplitAtGaps)]
    chain = filtered.chain(repaired, "velocity" in log.stream.quantities, log.n_rows, log.n_rows)
    return [Resample(period_s=period_s) if isinstance(step, Resample) else step for step in chain]


def _overlap_rows(steps: Sequence[Step], period_s: float) -> int:
    """Rows that filters of signals look beyond a row, and those that they drop at an end."""
    passes = [step for step in steps if isinstance(step, LowPass)]
    settled = sum(memory_rows(one.order, one.fraction(period_s)) for one in passes)
    dropped = max([EDGE_S, *(one.transient().seconds for one in passes)]) / period_s
    return int(np.ceil(settled + dropped)) + SPARE_ROWS
