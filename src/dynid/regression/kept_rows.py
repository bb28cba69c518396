"""Rows of a pass that are kept for the next one: in memory while they are few, in a temporary file beyond that.

Filtered rows are few against the samples they are made of, and making them again costs a pass over the log.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterator
from typing import IO

import numpy as np

from dynid.arrays import Array
from dynid.regression.source import ALL, Chunk

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
