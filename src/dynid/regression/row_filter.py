"""Filters along time on regressor and torque together.

``F(tau) = F(Y) phi`` holds for any linear filter ``F``, whatever its phase and however sharp; ``Y(F q, F v, F a)`` does not,
least of all for the sign of a velocity. So rows are filtered after they are made, and then thinned out to what is left in the
band: fewer rows, nearly independent errors, and the same parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

from dynid.arrays import Array, frozen_view
from dynid.errors import InputError
from dynid.recording.parts import uninterrupted_parts
from dynid.recording.steps.lowpass import EDGE_S
from dynid.recording.steps.sections import run_sections
from dynid.recording.steps.zero_phase import butterworth, memory_rows
from dynid.regression.decimation import DecimatedPart, Decimation
from dynid.regression.filtered_part import FilteredPart
from dynid.regression.kept_rows import KeptRows, Room
from dynid.regression.source import BLOCK_LIMIT, CHUNK_ROWS, Chunk, RowsOf, RowSource

_IN_BAND = 0.8  # of half the rate that is left
_MOST_JOINED = 8  # groups of a long log that become one chunk
_MOST_CHUNK_ROWS, _CHUNK_NUMBERS = 2 * CHUNK_ROWS, 1_000_000  # samples, and numbers, of a chunk that is to be filtered
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
                yield from self._kept.record(self.row_filter.over(self.source.passes(chunk_rows or self._chunk_rows)))

    def channel_passes(self, channels: slice, chunk_rows: int | None = None) -> Iterator[list[Array]]:
        """Of rows that were kept, only those of the channels are read."""
        for log in self._logs:
            if log._kept.complete:
                for chunk in log._kept.chunks(channels):
                    yield chunk.blocks
            else:
                yield from RowsOf.channel_passes(log, channels, chunk_rows)

    @property
    def _chunk_rows(self) -> int:
        """Samples per chunk: a filter takes longer ones than a factor, as long as they are small in memory."""
        width = sum(channel.width + 1 for channel in self.channels)
        return max(CHUNK_ROWS, min(_MOST_CHUNK_ROWS, CHUNK_ROWS * (_CHUNK_NUMBERS // (CHUNK_ROWS * width))))

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
    them than half the taps still have all they need. Rows come in groups whose size does not depend on how the chunks were cut.
    """
    target = edge + -edge % every  # number in the part of the next row to answer for
    part = FilteredPart(taps, every, target)
    per_group = max(1, len(taps) // every)
    delay = max(part.reach, edge)
    ready, made = list[Chunk](), 0
    for chunk in chunks:
        part.append(chunk.blocks, chunk.time)
        while target + (per_group - 1) * every + delay < part.n_rows:
            ready.append(part.take(per_group))
            target += per_group * every
            made += 1
            # never more than one block of a factor holds by then, so that short logs keep their blocks
            if len(ready) >= min(1 + made // BLOCK_LIMIT, _MOST_JOINED):
                yield _joined(ready)
                ready = []
    if ready:
        yield _joined(ready)
    _refuse_short(part.n_rows, edge)
    part.end()
    while target < part.n_rows - edge:
        count = min(per_group, -(-(part.n_rows - edge - target) // every))
        yield part.take(count)
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
