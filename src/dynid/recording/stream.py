"""A motion log that is read in chunks, for logs larger than memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Self

import numpy as np

from dynid.errors import InputError
from dynid.recording.checked import checked_joint_names
from dynid.recording.motion import Recording
from dynid.recording.source import RecordingSource

_LATE_ROWS = 4_000  # a reader sorts late rows in, so the place of a row is known to about so many


@dataclass(frozen=True, eq=False)
class RecordingChunk:
    """Consecutive rows of a stream, with ``n_before`` and ``n_after`` rows of its neighbours for filters.

    ``first_row`` numbers the first own row among the rows the stream yields; ``n_dropped`` counts rows of the
    file that were left out since the previous chunk.
    """

    recording: Recording
    n_before: int
    n_after: int
    first_row: int
    n_dropped: int = 0

    @property
    def own(self) -> slice:
        """The rows that belong to this chunk, as a slice of its recording."""
        return slice(self.n_before, self.recording.n_samples - self.n_after)

    @property
    def n_own(self) -> int:
        """How many rows belong to this chunk."""
        return self.recording.n_samples - self.n_before - self.n_after


@dataclass(frozen=True, eq=False)
class RecordingStream:
    """A motion log read in chunks, in memory that does not grow with its length; may be walked through
    repeatedly.

    ``read_pieces(rows)`` starts at the head of the file and yields ``(recording or None, rows dropped)`` in
    order.
    """

    joint_names: tuple[str, ...]
    quantities: tuple[str, ...]
    source: RecordingSource
    chunk_rows: int
    read_pieces: Callable[[int], Iterator[tuple[Recording | None, int]]] = field(repr=False)
    n_rows_in_file: int | None = None
    start_s: float = -np.inf
    stop_s: float = np.inf
    """Rows with ``start_s <= time < stop_s`` are yielded."""
    read_from: Callable[[int, int], Iterator[tuple[Recording | None, int]]] | None = field(default=None, repr=False)
    """``read_from(rows, row)`` begins at a row of the file, where its format can; None where it cannot."""
    index: tuple[tuple[float, int], ...] = field(default=(), repr=False)
    """Time and row in the file of some places, in order: where reading may begin for a part of the log."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "joint_names", checked_joint_names(self.joint_names))
        if self.chunk_rows < 1:
            raise InputError(f"chunk_rows is {self.chunk_rows}, expected at least 1")

    @property
    def n_joints(self) -> int:
        """Number of joints."""
        return len(self.joint_names)

    def __iter__(self) -> Iterator[Recording]:
        """Chunks of ``chunk_rows`` rows (the last may be shorter), without overlap."""
        return (chunk.recording for chunk in self.chunks())

    def chunks(self, before: int = 0, after: int = 0) -> Iterator[RecordingChunk]:
        """Chunks of ``chunk_rows`` own rows with up to ``before`` and ``after`` rows of overlap on either
        side.

        The overlap is shorter only at the ends of the log.
        """
        if before < 0 or after < 0:
            raise InputError(f"overlap is {before} rows before and {after} after, expected none below 0")
        held: list[Recording] = []
        n_held = 0
        own = 0  # row of what is held where the next chunk's own rows start
        first_row = 0
        dropped = 0
        for piece, n_dropped in self.pieces():
            dropped += n_dropped
            if piece is None:
                continue
            held.append(piece)
            n_held += piece.n_samples
            if n_held - own < self.chunk_rows + max(after, 1):
                continue
            joined = Recording.concatenate(held)
            while n_held - own >= self.chunk_rows + max(after, 1):
                stop = own + self.chunk_rows
                start = max(0, own - before)
                yield RecordingChunk(joined.cut(start, stop + after), own - start, after, first_row, dropped)
                dropped = 0
                first_row += self.chunk_rows
                own = stop
            keep = max(0, own - before)
            held, n_held, own = [joined.cut(keep)], n_held - keep, own - keep
        if not held:
            self._refuse_empty(dropped)
        joined = Recording.concatenate(held)
        while own < n_held:
            stop = min(own + self.chunk_rows, n_held)
            start = max(0, own - before)
            end = min(stop + after, n_held)
            yield RecordingChunk(joined.cut(start, end), own - start, end - stop, first_row, dropped)
            dropped = 0
            first_row += stop - own
            own = stop

    def as_read(self) -> Iterator[Recording]:
        """Consecutive rows in pieces of whatever length they are read in, which costs no copy."""
        found, dropped = False, 0
        for piece, n_dropped in self.pieces():
            dropped += n_dropped
            if piece is not None:
                found = True
                yield piece
        if not found:
            self._refuse_empty(dropped)

    def _refuse_empty(self, dropped: int) -> None:
        if np.isfinite(self.start_s) or np.isfinite(self.stop_s):
            raise InputError(f"{self.source.path}: no sample between {self.start_s:g} s and {self.stop_s:g} s")
        raise InputError(f"{self.source.path}: no row is left of the log; {dropped} rows have NaN or repeated stamps")

    def pieces(self) -> Iterator[tuple[Recording | None, int]]:
        """Pieces as they are read, cut to the times asked for, and rows dropped; what lies far before and behind is not read."""
        for piece, dropped in self._read():
            if piece is None:
                yield None, dropped
                continue
            first, last = np.searchsorted(piece.time, [self.start_s, self.stop_s])
            if last > first:
                yield (piece if last - first == piece.n_samples else piece.cut(int(first), int(last))), dropped
            if last < piece.n_samples:
                return

    def _read(self) -> Iterator[tuple[Recording | None, int]]:
        before = self._places_before(self.start_s)
        if self.read_from is None or not before:
            return self.read_pieces(self.chunk_rows)
        return self.read_from(self.chunk_rows, max(0, self.index[before - 1][1] - _LATE_ROWS))

    def _places_before(self, time_s: float) -> int:
        return bisect_left(self.index, time_s, key=itemgetter(0))

    def within(self, start_s: float = -np.inf, stop_s: float = np.inf) -> Self:
        """The part with ``start_s <= time < stop_s``, read when it is walked through; it knows the places of its own rows alone."""
        start_s, stop_s = max(self.start_s, start_s), min(self.stop_s, stop_s)
        places = self.index[max(0, self._places_before(start_s) - 1) : self._places_before(stop_s)]
        return replace(self, start_s=start_s, stop_s=stop_s, index=places)

    def read(self) -> Recording:
        """The whole log in memory."""
        return Recording.concatenate(list(self))
