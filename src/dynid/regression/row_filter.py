"""Filters along time on regressor and torque together; filtered rows are kept for the next pass.

``F(tau) = F(Y) phi`` holds for any linear filter ``F``, whatever its phase and however sharp; ``Y(F q, F v, F a)`` does not,
least of all for the sign of a velocity. So rows are filtered after they are made, and then thinned out to what is left in the
band: fewer rows, nearly independent errors, and the same parameters. Filtered rows are few against the samples they are made of,
and making them again costs a pass over the log: they are kept, in memory while they are few, in a temporary file beyond that.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import IO, Protocol

import numpy as np

from dynid.arrays import Array, check_positive, frozen_view
from dynid.errors import InputError
from dynid.regression.decimation import DecimatedPart, Decimation, FilteredPart
from dynid.regression.row_source import ALL, BLOCK_LIMIT, CHUNK_ROWS, Chunk, RowSource, WrappedRows
from dynid.signals.butterworth import butterworth, memory_rows, run_sections
from dynid.signals.steps.filters import EDGE_S
from dynid.signals.steps.step import uninterrupted_parts

MOST_KEPT = 2_000_000
"""Numbers of the rows of all logs together that are kept in memory."""
MOST_SPILLED = 1_000_000_000
"""Numbers of the rows of all logs together that are kept in a temporary file; beyond that rows are made again."""


class Room:
    """What the rows of several logs may take together, and the file that they share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_memory = self._in_file = 0
        self._file: IO[bytes] | None = None

    def takes(self, size: int) -> bool:
        """Whether so many more numbers may be kept in memory."""
        with self._lock:
            self._in_memory += size
            return self._in_memory <= MOST_KEPT

    def write(self, values: Array) -> int | None:
        """Numbers into the file, and where they lie; None where there is no room for them."""
        with self._lock:
            if self._in_file + values.size > MOST_SPILLED:
                return None
            try:
                if self._file is None:
                    self._file = tempfile.TemporaryFile(prefix="dynid_rows_", buffering=0)  # noqa: SIM115
                    weakref.finalize(self, self._file.close)  # and so it is deleted
                place = 8 * self._in_file
                self._file.seek(place)
                self._file.write(values.data)
            except OSError:  # a full disk: the rows are made again, which only takes longer
                self._in_file = MOST_SPILLED
                return None
            self._in_file += values.size
            return place

    def read(self, place: int, count: int) -> Array:
        """``count`` numbers from a place of the file."""
        with self._lock:
            assert self._file is not None
            self._file.seek(place)
            return np.fromfile(self._file, dtype=np.float64, count=count)


class KeptRows:
    """The rows of one log, chunk by chunk as they came."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._widths: list[int] = []
        self._chunks: list[Array | tuple[int, int]] = []
        """Blocks side by side with the times below, or place and rows of that in the file."""
        self.complete = False

    def record(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The chunks as they come, while they are kept."""
        self._chunks, kept = [], True
        for chunk in chunks:
            kept = kept and self._keep(chunk)
            yield chunk
        self.complete = kept
        if not kept:
            self._chunks = []

    def _keep(self, chunk: Chunk) -> bool:
        if chunk.time is None:
            return False
        self._widths = [block.shape[1] for block in chunk.blocks]
        values = np.concatenate([*(block.T for block in chunk.blocks), chunk.time[None]])
        if self._room.takes(values.size):
            self._chunks.append(values)
            return True
        place = self._room.write(np.ascontiguousarray(values))
        if place is None:
            return False
        self._chunks.append((place, values.shape[1]))
        return True

    def chunks(self, channels: slice = ALL) -> Iterator[Chunk]:
        """The same chunks again, or those of some channels, which alone are then read."""
        ends = np.cumsum([0, *self._widths])
        starts, stops = ends[:-1][channels], ends[1:][channels]
        first, last = (int(starts[0]), int(stops[-1])) if len(starts) else (0, 0)
        for kept in self._chunks:
            if isinstance(kept, tuple):
                place, n = kept
                values = self._room.read(place + 8 * n * first, n * (last - first)).reshape(-1, n)
                times = self._room.read(place + 8 * n * int(ends[-1]), n)
            else:
                values, times = kept[first:last].copy(), kept[-1].copy()
            yield Chunk([values[a - first : b - first].T for a, b in zip(starts, stops, strict=True)], times)


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
class FilteredRows(WrappedRows):
    """The rows of another source after a row filter, log by log.

    Args:
        source: any row source.
        row_filter: ``FilterAndDecimate``, ``BandLimit`` or your own.

    Examples:
        >>> import dynid
        >>> from dynid.regression.row_filter import FilterAndDecimate
        >>> rows = dynid.TorqueRows(dynid.demo_robot(), (dynid.demo_samples(),))
        >>> filtered = dynid.FilteredRows(rows, FilterAndDecimate(every=4))
        >>> dynid.factorise(filtered).n_samples < 250
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
                yield from WrappedRows.channel_passes(log, channels, chunk_rows)

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

    def unweighted(self) -> FilteredRows:
        return replace(self, source=self.source.unweighted())

    def typical_rows(self) -> tuple[Array, ...] | None:
        return self.source.typical_rows()


class TapFilter(ABC):
    """A filter with an odd number of symmetric taps, behind which some rows are kept."""

    @abstractmethod
    def plan(self, period_s: float) -> tuple[Array, int, int]:
        """Taps, of how many rows one is kept, and rows left out at either end of a part, at a sample period."""

    def over(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Filtered and thinned rows; every part without a gap is filtered on its own."""
        found = False
        for period_s, part in uninterrupted_parts(chunks):
            found = True
            yield from decimated(part, *self.plan(period_s))
        if not found:
            raise InputError("samples hold no row to filter")

    def decimation(self, time: Array) -> Decimation:
        """What :meth:`over` does to all samples of a log, whose times these are."""
        parts, start = [], 0
        for period_s, part in uninterrupted_parts([Chunk([], time)]):
            n = sum(len(piece) for piece in part)
            taps, every, edge = self.plan(period_s)
            _refuse_short(n, edge)
            targets = np.arange(edge + -edge % every, n - edge, every)
            parts.append(DecimatedPart(start, start + n, taps, targets, every))
            start += n
        if not parts:
            raise InputError("samples hold no row to filter")
        return Decimation(tuple(parts))


@dataclass(frozen=True)
class FilterAndDecimate(TapFilter):
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
        >>> from dynid.regression.row_filter import FilterAndDecimate
        >>> data = dynid.build_regression(dynid.demo_robot(), dynid.demo_samples(), row_filter=FilterAndDecimate(every=5))
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
        check_positive("FilterAndDecimate cutoff_hz", self.cutoff_hz, "hertz")
        if self.order not in range(1, 13):
            raise InputError(f"FilterAndDecimate order is {self.order}, expected a whole number from 1 to 12")
        check_positive("FilterAndDecimate edge_s", self.edge_s, or_zero=True)

    def plan(self, period_s: float) -> tuple[Array, int, int]:
        taps = zero_phase_taps(self.order, float(f"{self.fraction(period_s):.9g}"))
        return taps, self.every, self.edge_rows(period_s)

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


@dataclass(frozen=True)
class BandLimit(TapFilter):
    """Linear-phase low-pass that keeps the band below ``band_hz`` and 2.5 rows per period of it.

    Args:
        band_hz: upper end of the band, Hz.
        attenuation_db: attenuation of everything that would alias into the band.
        edge_s: time left out at both ends of every uninterrupted part, s; None for half a period of the band.

    Examples:
        >>> import dynid
        >>> rows = dynid.TorqueRows(dynid.demo_robot(), (dynid.demo_samples(),))
        >>> dynid.factorise(dynid.FilteredRows(rows, dynid.BandLimit(band_hz=5.0))).n_samples < 130
        True
    """

    band_hz: float
    attenuation_db: float = 60.0
    edge_s: float | None = None

    def __post_init__(self) -> None:
        check_positive("BandLimit band_hz", self.band_hz, "hertz")
        if not 20.0 <= self.attenuation_db <= 120.0:
            raise InputError(f"BandLimit attenuation_db is {self.attenuation_db}, expected 20 to 120")
        check_positive("BandLimit edge_s", self.edge_s, or_zero=True)

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

    def plan(self, period_s: float) -> tuple[Array, int, int]:
        return self.taps(period_s), self.every(period_s), self.edge_rows(period_s)


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


def decimated(chunks: Iterator[Chunk], taps: Array, every: int, edge: int) -> Iterator[Chunk]:
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
        assert chunk.time is not None
        part.append(chunk.blocks, chunk.time)
        while target + (per_group - 1) * every + delay < part.n_rows:
            ready.append(part.take(per_group))
            target += per_group * every
            made += 1
            # never more than one block of a factor holds by then, so that short logs keep their blocks
            if len(ready) >= min(1 + made // BLOCK_LIMIT, _MOST_JOINED):
                yield Chunk.concatenate(ready)
                ready = []
    if ready:
        yield Chunk.concatenate(ready)
    _refuse_short(part.n_rows, edge)
    part.end()
    while target < part.n_rows - edge:
        count = min(per_group, -(-(part.n_rows - edge - target) // every))
        yield part.take(count)
        target += count * every


def _refuse_short(n_rows: int, edge: int) -> None:
    if n_rows <= 2 * edge:
        raise InputError(
            f"a part of the samples has {n_rows} rows, too short to filter and decimate: "
            f"{edge} rows are left out at either end"
        )
