"""Rows of the logs of one addition, made into what a store keeps of them: here in one pass, or in parts where an engine runs them.

Only triangles, the colour of the noise and the range of the motion are left, so that neither the length nor the number of the logs
counts in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from dynid.engine import Engine
from dynid.errors import NoRowsError
from dynid.estimation.spectrum import one_block_with_cells
from dynid.recording.samples import Samples, SampleStream
from dynid.regression.factor import Regression, factorise
from dynid.regression.merged import OwnRows, PartTriangles, merged_triangles, one_block
from dynid.regression.source import RowSource
from dynid.validation.stream import MotionRange

HELD_OUT = 0.35
"""Share of each log, at its end, that the rest of the day's logs is judged on."""
GAP_S = 0.2
"""Rows so near to where that share begins are in neither part: filters smear what happens there."""


@dataclass(frozen=True, eq=False)
class Made:
    """What is left of the rows of some logs."""

    regression: Regression
    known: Regression | None
    """Of the rows before the held-out part of each log; None where no log has any."""
    unseen: Regression | None
    motion: MotionRange
    seconds: float


def cut_of(start_s: float, end_s: float) -> float:
    """Where the held-out part of a log between these times begins."""
    return start_s + (1.0 - HELD_OUT) * (end_s - start_s)


def made_here(rows: RowSource, cuts: Sequence[float]) -> Made:
    """From one pass over all logs, whose held-out parts begin at these times; filtered rows are kept for what follows it."""
    watched, own = _watched(rows)
    regression = factorise(own)
    each = [_halves(log, cut) for log, cut in zip(own.by_log(), cuts, strict=True)]
    return _together(regression, each, [one.seen for one in watched], list(range(len(watched))))


@dataclass(frozen=True, eq=False)
class CutRows:
    """Rows of a log, or of a part of one, the number of that log, and the time at which its held-out part begins."""

    rows: RowSource
    log: int
    cut_s: float


def made_by(engine: Engine, parts: Sequence[CutRows], whole: RowSource) -> Made:
    """From parts that together are the rows of ``whole``, each made where the engine runs it."""
    found = list(engine.map(_made_part, parts))
    regression = replace(merged_triangles([part.whole for part in found], whole), sources=(whole,))
    return _together(regression, [one.halves for one in found], [one.seen for one in found], [part.log for part in parts])


@dataclass(frozen=True, eq=False)
class _Seen:
    """Range of the motion of some samples, and the times of the first and last of them."""

    motion: MotionRange
    first_s: float
    last_s: float

    def __or__(self, other: _Seen) -> _Seen:
        return _Seen(self.motion | other.motion, min(self.first_s, other.first_s), max(self.last_s, other.last_s))


_Halves = tuple[PartTriangles | None, PartTriangles | None]


@dataclass(frozen=True, eq=False)
class _MadePart:
    """What comes back of a part."""

    whole: PartTriangles
    halves: _Halves
    seen: _Seen


def _made_part(part: CutRows) -> _MadePart:
    watched, rows = _watched(part.rows)
    whole = one_block_with_cells(rows) if rows.timed else one_block(rows)
    return _MadePart(whole, _halves(rows, part.cut_s), reduce(or_, [one.seen for one in watched]))


def _halves(rows: RowSource, cut_s: float) -> _Halves:
    """Triangles of the rows before a time and after it; None where there are none."""
    return _between(rows, -np.inf, cut_s - GAP_S), _between(rows, cut_s + GAP_S, np.inf)


def _between(rows: RowSource, start_s: float, stop_s: float) -> PartTriangles | None:
    try:
        return one_block(OwnRows(rows, start_s, stop_s))
    except NoRowsError:
        return None


def _together(regression: Regression, halves: Sequence[_Halves], seen: Sequence[_Seen], logs: Sequence[int]) -> Made:
    whole = regression.sources[0]
    known, unseen = ([own for own in each if own is not None] for each in zip(*halves, strict=True))
    by_log: dict[int, _Seen] = {}
    for number, one in zip(logs, seen, strict=True):
        by_log[number] = by_log[number] | one if number in by_log else one
    return Made(
        regression,
        merged_triangles(known, whole) if known else None,
        merged_triangles(unseen, whole) if unseen else None,
        reduce(or_, [one.motion for one in seen]),
        sum(one.last_s - one.first_s for one in by_log.values()),
    )


@dataclass(eq=False)
class _Watched:
    """A stream of samples; the range of those from ``start_s`` to before ``stop_s`` is noted as they go by."""

    stream: SampleStream
    start_s: float
    stop_s: float
    noted: _Seen | None = None

    def __iter__(self) -> Iterator[Samples]:
        for piece in self.stream:
            self.note(piece)
            yield piece

    def note(self, piece: Samples) -> None:
        first, last = np.searchsorted(piece.time, [self.start_s, self.stop_s])
        if last > first:
            own = piece[int(first) : int(last)]
            here = _Seen(MotionRange.of(own), float(own.time[0]), float(own.time[-1]))
            self.noted = here if self.noted is None else self.noted | here

    @property
    def seen(self) -> _Seen:
        assert self.noted is not None  # rows were made of them
        return self.noted


def _watched(rows: RowSource) -> tuple[list[_Watched], RowSource]:
    """The same rows, and what notes the range of the samples of every log while they are made."""
    start_s, stop_s = (rows.start_s, rows.stop_s) if isinstance(rows, OwnRows) else (-np.inf, np.inf)
    watched, streams = [], list[Any]()
    for one in rows.samples:
        watched.append(_Watched(one, start_s, stop_s))
        if isinstance(one, Samples):  # sources ask more of samples in memory than of streams
            watched[-1].note(one)
        streams.append(one if isinstance(one, Samples) else watched[-1])
    return watched, rows.with_samples(streams)
