"""Logs into triangles with their held-out parts, filtered as the run of a store was.

Rows are made here in one pass, or in parts where an engine runs them. Only triangles, the colour of the noise and the range of the motion
are left, so that neither the length nor the number of the logs counts in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

import numpy as np

from dynid.apps.fleet.entry import LogFactors
from dynid.engine import Engine, Serial
from dynid.errors import NoRowsError
from dynid.estimation.residuals import one_block_with_cells
from dynid.pipeline.estimate_rows import row_source
from dynid.pipeline.log import Logs, samples_under_load
from dynid.pipeline.partitions import partitioned
from dynid.pipeline.result import IdentificationResult
from dynid.regression.factor import Regression, factorise
from dynid.regression.partitions import OwnRows, PartTriangles, merged_triangles, one_block
from dynid.regression.row_source import RowSource
from dynid.signals.samples import Samples, SampleStream
from dynid.validation.prediction import MotionRange

HELD_OUT = 0.35
"""Share of each log, at its end, that the rest of the day's logs is judged on."""
GAP_S = 0.2
"""Rows so near to where that share begins are in neither part: filters smear what happens there."""


Halves: TypeAlias = tuple[PartTriangles | None, PartTriangles | None]
"""Triangles before the held-out part and of it."""
Span: TypeAlias = tuple[MotionRange, float, float]
"""Range of the motion of some samples, and the times of the first and last of them."""
LogPart: TypeAlias = tuple[RowSource, int, float]
"""Rows of a log, or of a part of one, the number of that log, and the time at which its held-out part begins."""


def held_out_start(start_s: float, end_s: float) -> float:
    """Where the held-out part of a log between these times begins."""
    return start_s + (1.0 - HELD_OUT) * (end_s - start_s)


def factor_logs(rows: RowSource, cuts: Sequence[float]) -> LogFactors:
    """From one pass over all logs, whose held-out parts begin at these times; filtered rows are kept for what follows it."""
    observed, own = _observe_samples(rows)
    regression = factorise(own)
    halves = [_factor_halves(log, cut) for log, cut in zip(own.by_log(), cuts, strict=True)]
    return _merge_parts(regression, halves, [one.span for one in observed], list(range(len(observed))))


def factor_parts(engine: Engine, parts: Sequence[LogPart], whole: RowSource) -> LogFactors:
    """From parts that together are the rows of ``whole``, each made where the engine runs it."""
    triangles, halves, spans = zip(*engine.map(_factor_part, parts), strict=True)
    regression = replace(merged_triangles(triangles, whole), sources=(whole,))
    return _merge_parts(regression, halves, spans, [log for _, log, _ in parts])


def _factor_part(part: LogPart) -> tuple[PartTriangles, Halves, Span]:
    observed, rows = _observe_samples(part[0])
    whole = one_block_with_cells(rows) if rows.timed else one_block(rows)
    return whole, _factor_halves(rows, part[2]), reduce(_join_spans, [one.span for one in observed])


def _factor_halves(rows: RowSource, cut_s: float) -> Halves:
    """Triangles of the rows before a time and after it; None where there are none."""

    def between(start_s: float, stop_s: float) -> PartTriangles | None:
        try:
            return one_block(OwnRows(rows, start_s, stop_s))
        except NoRowsError:
            return None

    return between(-np.inf, cut_s - GAP_S), between(cut_s + GAP_S, np.inf)


def _merge_parts(regression: Regression, halves: Sequence[Halves], spans: Sequence[Span], logs: Sequence[int]) -> LogFactors:
    whole = regression.sources[0]
    fitted, held_out = ([own for own in each if own is not None] for each in zip(*halves, strict=True))
    by_log: dict[int, Span] = {}
    for number, span in zip(logs, spans, strict=True):
        by_log[number] = _join_spans(by_log[number], span) if number in by_log else span
    return LogFactors(
        regression,
        merged_triangles(fitted, whole) if fitted else None,
        merged_triangles(held_out, whole) if held_out else None,
        reduce(or_, [motion for motion, _, _ in spans]),
        sum(last - first for _, first, last in by_log.values()),
    )


def _join_spans(one: Span, other: Span) -> Span:
    return one[0] | other[0], min(one[1], other[1]), max(one[2], other[2])


class ObservedSamples:
    """A stream of samples; the range of those from ``start_s`` to before ``stop_s`` is noted as they go by."""

    def __init__(self, stream: SampleStream, start_s: float, stop_s: float) -> None:
        self._stream, self._between = stream, [start_s, stop_s]
        self._span: Span | None = None

    def __iter__(self) -> Iterator[Samples]:
        for piece in self._stream:
            self.note(piece)
            yield piece

    def note(self, piece: Samples) -> None:
        """Widen the range by these samples."""
        first, last = np.searchsorted(piece.time, self._between)
        if last > first:
            own = piece[int(first) : int(last)]
            here = MotionRange.of(own), float(own.time[0]), float(own.time[-1])
            self._span = here if self._span is None else _join_spans(self._span, here)

    @property
    def span(self) -> Span:
        """What was noted."""
        assert self._span is not None  # rows were made of them
        return self._span


def _observe_samples(rows: RowSource) -> tuple[list[ObservedSamples], RowSource]:
    """The same rows, and what notes the range of the samples of every log while they are made."""
    start_s, stop_s = (rows.start_s, rows.stop_s) if isinstance(rows, OwnRows) else (-np.inf, np.inf)
    observed, streams = [], list[Any]()
    for one in rows.samples:
        observed.append(ObservedSamples(one, start_s, stop_s))
        if isinstance(one, Samples):  # sources ask more of samples in memory than of streams
            observed[-1].note(one)
        streams.append(one if isinstance(one, Samples) else observed[-1])
    return observed, rows.with_samples(streams)


def factor_found(run: IdentificationResult, found: Logs, engine: Engine, max_rows: int) -> LogFactors:
    """Triangles of logs filtered as a run was: one log after the other, or their partitions where an engine runs them."""
    assert run.filter is not None
    logs = found.filtered(run.filter, max_rows, still=True)
    rows = row_source(run.rows, run.robot, logs.under_load(run.model))
    rows = rows.with_samples(samples_under_load(run.model, rows.samples))
    cuts = [held_out_start(log.start_s, log.end_s) for log in logs.parts]
    if isinstance(engine, Serial):
        return factor_logs(rows, cuts)
    parts = [(part, k, cuts[k]) for k, own in enumerate(partitioned(rows)) for part in own]
    return factor_parts(engine, parts, rows)
