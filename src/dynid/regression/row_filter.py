"""Filters along time on regressor and torque together.

``F(tau) = F(Y) phi`` holds for any linear filter ``F``, whatever its phase and however sharp; ``Y(F q, F v, F a)`` does not,
least of all for the sign of a velocity. So rows are filtered after they are made, and then thinned out to what is left in the
band: fewer rows, nearly independent errors, and the same parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from dynid.arrays import Array, frozen_view
from dynid.errors import InputError
from dynid.recording.parts import uninterrupted_parts
from dynid.recording.steps.lowpass import EDGE_S
from dynid.recording.steps.sections import run_sections
from dynid.recording.steps.zero_phase import butterworth, memory_rows
from dynid.regression.decimation import DecimatedPart, Decimation
from dynid.regression.kept_rows import KeptRows, Room
from dynid.regression.source import BLOCK_LIMIT, Chunk, RowsOf, RowSource

_IN_BAND = 0.8  # of half the rate that is left
_MOST_JOINED = 8  # products of a long log that become one chunk
_FORGOTTEN = 1e-10  # of the largest tap, where the response of a zero-phase filter is cut off


class RowFilter(Protocol):
    """A linear filter along time."""

    def over(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Filtered rows of one log, from its rows chunk by chunk; the result does not depend on how they were cut."""
        ...


@dataclass(frozen=True)
class FilteredRows(RowsOf):
    """The rows of another source after a row filter, log by log.

    Args:
        source: any row source.
        row_filter: ``FilterAndDecimate``, ``BandLimit`` or your own.

    Examples:
        >>> import dynid
        >>> rows = dynid.rows.TorqueRows(dynid.demo_robot(), (dynid.demo_samples(),))
        >>> filtered = dynid.FilteredRows(rows, dynid.FilterAndDecimate(every=4))
        >>> dynid.rows.factorise(filtered).n_samples < 250
        True
    """

    row_filter: RowFilter

    @property
    def timed(self) -> bool:
        return self.source.timed

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        """Filtered rows are few: those of the first pass are kept, so that a further one need not make them again."""
        logs = self._logs
        for log in logs:
            if len(logs) > 1:
                yield from log.passes(chunk_rows)
            elif self._kept.complete:
                yield from self._kept.chunks()
            else:
                yield from self._kept.record(self.row_filter.over(self.source.passes(chunk_rows)))

    @cached_property
    def _room(self) -> Room:
        return Room()

    @cached_property
    def _kept(self) -> KeptRows:
        return KeptRows(self._room)

    @cached_property
    def _logs(self) -> tuple[FilteredRows, ...]:
        logs = self.source.by_log()
        if len(logs) == 1:
            return (self,)
        parts = tuple(replace(self, source=log) for log in logs)
        for part in parts:
            part.__dict__["_room"] = self._room  # what is kept of all logs together is limited
        return parts

    def __reduce__(self) -> tuple[type[FilteredRows], tuple[RowSource, RowFilter]]:
        """Another process makes its own rows."""
        return FilteredRows, (self.source, self.row_filter)

    def by_log(self) -> tuple[RowSource, ...]:
        return self._logs

    def split(self, most: int) -> tuple[RowSource, ...]:
        """Logs stay whole: a filter runs along each."""
        return self.by_log()

    def with_samples(self, samples: Sequence[Any]) -> FilteredRows:
        return replace(self, source=self.source.with_samples(samples))

    def with_options(self, **options: Any) -> FilteredRows:
        return replace(self, source=self.source.with_options(**options))

    def unweighted(self) -> FilteredRows:
        return replace(self, source=self.source.unweighted())

    def typical_rows(self) -> tuple[Array, ...] | None:
        return self.source.typical_rows()


@dataclass(frozen=True)
class FilterAndDecimate:
    """Zero-phase Butterworth low-pass on the columns of ``[W tau]``; of the filtered rows some are kept.

    Beyond its ends a part is continued by reflection.

    Args:
        every: one row of so many is kept.
        cutoff_hz: cut-off, Hz; None for 0.8 of half the rate that is left.
        order: order of the filter.
        edge_s: time left out at both ends of every uninterrupted part, s; None for 0.3 s or three filter time constants,
            whichever is longer.

    Examples:
        >>> import dynid
        >>> data = dynid.build_regression(
        ...     dynid.demo_robot(), dynid.demo_samples(), row_filter=dynid.FilterAndDecimate(every=5)
        ... )
        >>> data.n_samples < 200
        True
    """

    every: int
    cutoff_hz: float | None = None
    order: int = 4
    edge_s: float | None = None

    def __post_init__(self) -> None:
        if self.every != int(self.every) or self.every < 1:
            raise InputError(f"FilterAndDecimate every is {self.every}, expected a whole number of rows, 1 or more")
        if self.every == 1 and self.cutoff_hz is None:
            raise InputError("FilterAndDecimate keeps every row and has no cut-off: give cutoff_hz or every > 1")
        if self.cutoff_hz is not None and not (np.isfinite(self.cutoff_hz) and self.cutoff_hz > 0.0):
            raise InputError(f"FilterAndDecimate cutoff_hz is {self.cutoff_hz}, expected a positive number of hertz")
        if self.order not in range(1, 13):
            raise InputError(f"FilterAndDecimate order is {self.order}, expected a whole number from 1 to 12")
        if self.edge_s is not None and not (np.isfinite(self.edge_s) and self.edge_s >= 0.0):
            raise InputError(f"FilterAndDecimate edge_s is {self.edge_s}, expected zero or a positive number")

    def over(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Filtered and thinned rows; every part without a gap is filtered on its own."""
        found = False
        for period_s, part in uniform_parts(chunks):
            found = True
            yield from self._over_part(period_s, part)
        if not found:
            raise InputError("samples hold no row to filter")

    def decimation(self, time: Array) -> Decimation:
        """The filter over all samples of a log, whose times these are."""
        return planned_decimation(time, self._taps, lambda period_s: self.every, self.edge_rows)

    def fraction(self, period_s: float) -> float:
        """The cut-off as a fraction of half the sampling rate."""
        left_hz = 0.5 / period_s / self.every
        if self.cutoff_hz is None:
            return _IN_BAND / self.every
        if self.cutoff_hz >= left_hz:
            raise InputError(
                f"FilterAndDecimate cut-off {self.cutoff_hz:g} Hz is not below half the rate that is left, "
                f"{left_hz:.6g} Hz after keeping every {self.every}. row"
            )
        return self.cutoff_hz * 2.0 * period_s

    def edge_rows(self, period_s: float) -> int:
        """Rows left out at either end of a part."""
        fraction = self.fraction(period_s)
        seconds = max(EDGE_S, 3.0 * 2.0 * period_s / (2.0 * np.pi * fraction)) if self.edge_s is None else self.edge_s
        return int(np.ceil(seconds / period_s - 1e-6))

    def _over_part(self, period_s: float, chunks: Iterator[TimedChunk]) -> Iterator[Chunk]:
        yield from decimated(chunks, self._taps(period_s), self.every, self.edge_rows(period_s))

    def _taps(self, period_s: float) -> Array:
        return zero_phase_taps(self.order, float(f"{self.fraction(period_s):.9g}"))


@dataclass(frozen=True)
class BandLimit:
    """Linear-phase low-pass that keeps the band below ``band_hz`` and 2.5 rows per period of it.

    Args:
        band_hz: upper end of the band, Hz.
        attenuation_db: attenuation of everything that would alias into the band.
        edge_s: time left out at both ends of every uninterrupted part, s; None for half a period of the band.

    Examples:
        >>> import dynid
        >>> rows = dynid.rows.TorqueRows(dynid.demo_robot(), (dynid.demo_samples(),))
        >>> dynid.rows.factorise(dynid.FilteredRows(rows, dynid.rows.BandLimit(band_hz=5.0))).n_samples < 130
        True
    """

    band_hz: float
    attenuation_db: float = 60.0
    edge_s: float | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.band_hz) and self.band_hz > 0.0):
            raise InputError(f"BandLimit band_hz is {self.band_hz}, expected a positive number of hertz")
        if not 20.0 <= self.attenuation_db <= 120.0:
            raise InputError(f"BandLimit attenuation_db is {self.attenuation_db}, expected 20 to 120")
        if self.edge_s is not None and not (np.isfinite(self.edge_s) and self.edge_s >= 0.0):
            raise InputError(f"BandLimit edge_s is {self.edge_s}, expected zero or a positive number")

    def every(self, period_s: float) -> int:
        """Of how many rows one is kept."""
        return max(1, int(1.0 / (ROWS_PER_BAND * self.band_hz * period_s) + 1e-9))

    def taps(self, period_s: float) -> Array:
        """The filter, an odd number of symmetric taps."""
        rate_hz = 1.0 / period_s
        if self.band_hz >= 0.45 * rate_hz:
            raise InputError(
                f"BandLimit keeps {self.band_hz:g} Hz of rows that come at {rate_hz:.6g} Hz, expected less than 0.45 of that rate"
            )
        stop_hz = rate_hz / self.every(period_s) - self.band_hz
        return band_taps(round(self.band_hz * period_s, 12), round(stop_hz * period_s, 12), self.attenuation_db)

    def edge_rows(self, period_s: float) -> int:
        """Rows left out at either end of a part."""
        seconds = 0.5 / self.band_hz if self.edge_s is None else self.edge_s
        return int(np.ceil(seconds / period_s - 1e-6))

    def over(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Filtered and thinned rows; every part without a gap is filtered on its own."""
        found = False
        for period_s, part in uniform_parts(chunks):
            found = True
            yield from decimated(part, self.taps(period_s), self.every(period_s), self.edge_rows(period_s))
        if not found:
            raise InputError("samples hold no row to filter")

    def decimation(self, time: Array) -> Decimation:
        """The filter over all samples of a log, whose times these are."""
        return planned_decimation(time, self.taps, self.every, self.edge_rows)


ROWS_PER_BAND = 2.5
"""Rows kept per second and hertz of the band: a quarter more than the least that could hold it."""


@lru_cache(maxsize=32)
def band_taps(band: float, stop: float, attenuation_db: float) -> Array:
    """Kaiser-windowed low-pass from ``band`` to ``stop``, fractions of the sampling rate; a constant stays what it is."""
    edge = min(stop, 0.5)
    beta = 0.1102 * (attenuation_db - 8.7) if attenuation_db > 50.0 else 0.5842 * max(attenuation_db - 21.0, 0.0) ** 0.4
    beta += 0.07886 * max(attenuation_db - 21.0, 0.0) if attenuation_db <= 50.0 else 0.0
    half = max(1, int(np.ceil(0.5 * (attenuation_db - 7.95) / (14.36 * (edge - band)))))
    n = np.arange(-half, half + 1)
    middle = 0.5 * (band + edge)
    taps = 2.0 * middle * np.sinc(2.0 * middle * n) * np.kaiser(2 * half + 1, beta)
    return frozen_view(taps / taps.sum())


@lru_cache(maxsize=32)
def zero_phase_taps(order: int, cutoff_nyquist: float) -> Array:
    """Impulse response of the zero-phase Butterworth filter, an odd number of taps about its centre."""
    reach = memory_rows(order, cutoff_nyquist)
    impulse = np.zeros(2 * reach + 1)
    impulse[reach] = 1.0
    sections = butterworth(order, cutoff_nyquist)
    response = run_sections(sections, run_sections(sections, impulse[:, None])[::-1])[::-1, 0]
    kept = np.flatnonzero(np.abs(response) > _FORGOTTEN * np.abs(response).max())
    half = int(max(reach - kept[0], kept[-1] - reach))
    taps = response[reach - half : reach + half + 1]
    taps = 0.5 * (taps + taps[::-1])
    return frozen_view(taps / taps.sum())  # a constant stays what it is


def decimated(chunks: Iterator[TimedChunk], taps: Array, every: int, edge: int) -> Iterator[Chunk]:
    """Rows of one uninterrupted part convolved with an odd number of symmetric taps, every ``every``-th of them.

    ``edge`` rows are left out at either end, and the part is continued beyond its ends by reflection, so that rows nearer to
    them than half the taps still have all they need. One matrix product per block of rows does filter and decimation.
    """
    window = _Window(len(taps) // 2)
    per_block = max(1, len(taps) // every)
    spread = _spread_taps(taps, every, per_block)
    delay = max(window.reach, edge)
    target = edge + -edge % every  # number in the part of the next row to answer for
    ready, made = list[Chunk](), 0
    for chunk in chunks:
        window.append(chunk)
        while target + (per_block - 1) * every + delay < window.n_rows:
            ready.append(window.product(target, every, spread))
            target += per_block * every
            window.forget(target)
            made += 1
            # never more than one block of a factor holds by then, so that short logs keep their blocks
            if len(ready) >= min(1 + made // BLOCK_LIMIT, _MOST_JOINED):
                yield _joined(ready)
                ready = []
    if ready:
        yield _joined(ready)
    _refuse_short(window.n_rows, edge)
    window.end()
    while target < window.n_rows - edge:
        count = min(per_block, -(-(window.n_rows - edge - target) // every))
        yield window.product(target, every, spread[: (count - 1) * every + len(taps), :count])
        target += count * every


def _joined(chunks: Sequence[Chunk]) -> Chunk:
    """Consecutive chunks as one: a long log has many short ones, each with a price of its own."""
    if len(chunks) == 1:
        return chunks[0]
    blocks = [
        np.concatenate([block.T for block in column], axis=1).T
        for column in zip(*(one.blocks for one in chunks), strict=True)
    ]
    return Chunk(blocks, np.concatenate([one.time for one in chunks if one.time is not None]))


def planned_decimation(
    time: Array, taps: Callable[[float], Array], every: Callable[[float], int], edge: Callable[[float], int]
) -> Decimation:
    """What :func:`decimated` does to all parts of one log; taps, decimation and edge follow from the sample period."""
    parts, start = [], 0
    for period_s, part in uniform_parts(iter([Chunk([np.zeros((len(time), 0))], time)])):
        n, skipped = sum(len(piece) for piece in part), edge(period_s)
        _refuse_short(n, skipped)
        step = every(period_s)
        targets = np.arange(skipped + -skipped % step, n - skipped, step)
        parts.append(DecimatedPart(start, start + n, taps(period_s), targets, step))
        start += n
    if not parts:
        raise InputError("samples hold no row to filter")
    return Decimation(tuple(parts))


def _refuse_short(n_rows: int, edge: int) -> None:
    if n_rows <= 2 * edge:
        raise InputError(
            f"a part of the samples has {n_rows} rows, too short to filter and decimate: "
            f"{edge} rows are left out at either end"
        )


def _spread_taps(taps: Array, every: int, count: int) -> Array:
    """``(rows, count)``: the taps once per column, each ``every`` rows further down."""
    spread = np.zeros(((count - 1) * every + len(taps), count))
    for k in range(count):
        spread[k * every : k * every + len(taps), k] = taps
    return spread


class _Window:
    """The rows of all channels that a filter still needs, side by side, and their times below; time runs along the last axis."""

    def __init__(self, reach: int) -> None:
        self.reach = reach
        self.n_rows = 0
        """Rows of the part seen so far."""
        self._widths: list[int] = []
        self._early: list[Array] = []  # the first rows, until there are enough of them to reflect
        self._values = np.empty((0, 0))
        self._held = 0
        self._first = (
            self._needed
        ) = -reach  # numbers in the part of the first row held and needed; reflected ones are negative

    def append(self, chunk: TimedChunk) -> None:
        self._widths = self._widths or [block.shape[1] for block in chunk.blocks]
        rows = [*(block.T for block in chunk.blocks), chunk.time[None]]
        self.n_rows += len(chunk)
        if self._held:
            self._push(rows)
            return
        self._early.append(np.concatenate(rows))
        if self.n_rows > self.reach:
            self._begin()

    def end(self) -> None:
        """The last rows reflected, so that all rows of the part can be answered for."""
        if not self._held:
            self._begin()
        known = self._values[:, max(0, self._held - self.reach - 1) : self._held]
        self._push([_reflection(known[:, ::-1], self.reach)])

    def product(self, target: int, every: int, spread: Array) -> Chunk:
        """Filtered rows ``target``, ``target + every``, ..."""
        begin = target - self.reach - self._first
        found = self._values[:-1, begin : begin + len(spread)] @ spread
        ends = np.cumsum([0, *self._widths])
        times = self._values[-1, begin + self.reach :: every][: spread.shape[1]]
        return Chunk([found[a:b].T for a, b in pairwise(ends)], times.copy())

    def forget(self, target: int) -> None:
        """Rows that no row from ``target`` on needs; their room is used again when there is no other."""
        self._needed = target - self.reach

    def _begin(self) -> None:
        rows = np.concatenate(self._early, axis=1)
        self._early = []
        self._push([np.concatenate([_reflection(rows[:, : self.reach + 1], self.reach)[:, ::-1], rows], axis=1)])

    def _push(self, rows: Sequence[Array]) -> None:
        """Rows given as blocks that lie below one another."""
        n = rows[0].shape[1]
        if self._held + n > self._values.shape[1]:
            kept = self._values[:, self._needed - self._first : self._held]
            room = np.empty((sum(map(len, rows)), 2 * (kept.shape[1] + n)))
            room[:, : kept.shape[1]] = kept if kept.size else 0.0
            self._values, self._first, self._held = room, self._needed, kept.shape[1]
        np.concatenate(rows, out=self._values[:, self._held : self._held + n])
        self._held += n


def _reflection(rows: Array, reach: int) -> Array:
    """``2 x_0 - x_k`` for ``k`` from 1 to ``reach``, the last of them repeated where there are fewer rows."""
    mirrored = 2.0 * rows[:, :1] - rows[:, 1 : reach + 1]
    missing = reach - mirrored.shape[1]
    if not missing:
        return mirrored
    last = mirrored[:, -1:] if mirrored.shape[1] else rows[:, :1]
    return np.concatenate([mirrored, np.repeat(last, missing, axis=1)], axis=1)


def uniform_parts(chunks: Iterator[Chunk]) -> Iterator[tuple[float, Iterator[TimedChunk]]]:
    """Sample period and chunks of every part without a gap; a part must be used up before the next is asked for."""

    def clocked() -> Iterator[TimedChunk]:
        for chunk in chunks:
            if chunk.time is None:
                raise InputError("these rows have no time, so no filter can run along them")
            yield TimedChunk(chunk.blocks, chunk.time)

    return uninterrupted_parts(clocked(), TimedChunk.rows, TimedChunk.joined)


@dataclass(frozen=True, eq=False)
class TimedChunk(Chunk):
    """A chunk whose rows have a clock."""

    time: Array

    def __len__(self) -> int:
        return len(self.time)

    def rows(self, part: slice) -> TimedChunk:
        return TimedChunk([block[part] for block in self.blocks], self.time[part])

    def joined(self, other: TimedChunk) -> TimedChunk:
        blocks = [np.concatenate(pair) for pair in zip(self.blocks, other.blocks, strict=True)]
        return TimedChunk(blocks, np.concatenate([self.time, other.time]))
