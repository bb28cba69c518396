"""A long log as partitions in time that can be worked on apart: each reads what its filters need beyond its own rows.

The rows of all partitions together are those of the log: samples lie on the same grid, filters have settled before the first own
row, and every so many rows one is kept, counted from the start of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.engine import Engine, Serial
from dynid.estimation.residuals import one_block_with_cells
from dynid.model.robot import Robot
from dynid.pipeline.log import Log, LogSamples
from dynid.pipeline.signal_filter import Filter
from dynid.regression.factor import Regression, factorise, factorise_parts
from dynid.regression.partitions import OwnRows, merged, one_block
from dynid.regression.row_filter import BandLimit, FilteredRows
from dynid.regression.row_source import RowSource
from dynid.signals.butterworth import memory_rows
from dynid.signals.process import process
from dynid.signals.reversal_history import remembers
from dynid.signals.samples import MappedSamples, OwnSamples, Samples, SampleStream
from dynid.signals.steps.clock import Resample
from dynid.signals.steps.cuts import SplitAtGaps
from dynid.signals.steps.filters import EDGE_S, LowPass
from dynid.signals.steps.step import Extent, LocalStep, Signals, Step, Tally
from dynid.signals.stream import RecordingStream
from dynid.validation.prediction import beyond_rows

PARTITION_ROWS = 131_072
"""Rows of a partition; not of the number of workers, so that this does not change the result."""
SPARE_ROWS = 16


def factorise_on(engine: Engine, rows: RowSource) -> Regression:
    """The triangles of all rows: one log after the other here, or parts of them where the engine runs them."""
    if isinstance(engine, Serial) or not rows.samples:
        return factorise(rows)
    if all(isinstance(one, Samples) for one in rows.samples):
        return factorise_parts(rows, engine.map)
    parts = [part for log in partitioned(rows) for part in log]
    timed = all(part.timed for part in parts)  # rows without a clock have no colour
    return merged(parts, engine.map, rows, one_block_with_cells if timed else one_block)


def partitioned(rows: RowSource) -> list[list[RowSource]]:
    """Row sources of each log that together are its rows: partitions of a long one where its rows are filtered, else itself."""
    parts = []
    for one in rows.samples:
        band, origin = rows.row_filter if isinstance(rows, FilteredRows) else None, _origin(one, rows.robot)
        if origin is None or not isinstance(band, BandLimit) or rows.kind != "torque":
            parts.append([rows.with_samples([one])])
            continue
        period_s = origin[0].survey.period_s
        beyond = len(band.taps(period_s)) // 2 + band.edge_rows(period_s)
        own = _sample_parts(one, *origin, beyond, band.every(period_s))
        parts.append([OwnRows(rows.with_samples([part.stream]), part.start_s, part.stop_s) for part in own])
    return parts


def partitioned_samples(
    samples: Samples | SampleStream, robot: Robot, band_hz: float | None
) -> Sequence[Samples | SampleStream]:
    """Samples in partitions whose errors in a band add up to those of all; as they are where they cannot be cut."""
    origin = _origin(samples, robot)
    if origin is None:
        return [samples]
    return _sample_parts(samples, *origin, beyond_rows(band_hz, origin[0].survey.period_s))


def _origin(samples: Samples | SampleStream, robot: Robot | None) -> tuple[Log, Filter] | None:
    """The log and the filter that samples are made of, where a part of them can be made alone: rows are filtered, friction remembers
    nothing, and the file can be read from any row."""
    while isinstance(samples, MappedSamples):
        samples = samples.stream
    if not isinstance(samples, LogSamples) or samples.log is None or samples.filtered is None:
        return None
    rows = samples.log.rows
    if samples.filtered.row_band_hz is None or (robot is not None and remembers(robot)):
        return None
    return (samples.log, samples.filtered) if isinstance(rows, RecordingStream) and rows.read_from is not None else None


def _changed_alike(part: SampleStream, samples: SampleStream) -> SampleStream:
    """A partition under the changes that the samples it is a part of go through."""
    return replace(samples, stream=_changed_alike(part, samples.stream)) if isinstance(samples, MappedSamples) else part


def _sample_parts(samples: SampleStream, log: Log, filtered: Filter, beyond: int, every: int = 1) -> list[OwnSamples]:
    """Partitions of the samples of a log; ``beyond`` counts the rows on either side that are needed after the filters of signals."""
    assert isinstance(log.rows, RecordingStream)
    period_s = log.survey.period_s
    repaired = [step for step in log.survey.repairs() if not isinstance(step, SplitAtGaps)]  # a partition has no gap
    chain = filtered.chain(repaired, "velocity" in log.rows.quantities, log.n_rows, log.n_rows)
    steps = [Resample(period_s=period_s) if isinstance(step, Resample) else step for step in chain]
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
            piece = log.rows.within(read_from, float(np.nextafter(read_to, np.inf)))
            own_steps = [*steps[:place], _Begin(start_s + (first - 0.5) * period_s), *steps[place:]] if first else steps
            stream = replace(process(piece, own_steps), anchor_s=start_s)
            parts.append(OwnSamples(_changed_alike(stream, samples), begin, stop))
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


def _overlap_rows(steps: Sequence[Step], period_s: float) -> int:
    """Rows that filters of signals look beyond a row, and those that they drop at an end."""
    passes = [step for step in steps if isinstance(step, LowPass)]
    settled = sum(memory_rows(one.order, one.fraction(period_s)) for one in passes)
    dropped = max([EDGE_S, *(one.transient().seconds for one in passes)]) / period_s
    return int(np.ceil(settled + dropped)) + SPARE_ROWS
