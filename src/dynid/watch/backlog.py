"""Lines between the thread that reads them and the one that uses them: a bounded queue that never drops a line.

Where lines come faster than they are used, the reader waits, and with it the sender (a pipe and a TCP connection both hold the sender
back). That is counted and said.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

MOST_LINES = 20_000
"""Lines that may wait."""


@dataclass(frozen=True)
class Batch:
    """Lines that arrived together, when they did, and where the source was behind each of them (0 where it cannot seek)."""

    arrived_s: float
    lines: Sequence[bytes]
    positions: Sequence[int]


class Backlog:
    """Batches of lines that wait."""

    def __init__(self, most: int = MOST_LINES) -> None:
        self._most = most
        self._ready = threading.Condition()
        self._batches: deque[Batch] = deque()
        self._waiting = 0
        self._closed = False
        self.error: Exception | None = None
        self.stalls = 0
        """How often the reader had to wait for room."""
        self.longest = 0
        """Most lines that ever waited."""

    @property
    def waiting(self) -> int:
        """Lines that wait now."""
        return self._waiting

    def put(self, batch: Batch) -> bool:
        """Add lines, after waiting for room; False once the backlog is closed."""
        with self._ready:
            if self._waiting >= self._most and not self._closed:
                self.stalls += 1
                self._ready.wait_for(lambda: self._waiting < self._most or self._closed)
            if self._closed:
                return False
            self._batches.append(batch)
            self._waiting += len(batch.lines)
            self.longest = max(self.longest, self._waiting)
            self._ready.notify_all()
        return True

    def get(self, timeout_s: float) -> Batch | None:
        """The next lines, None where none came in time or none will come."""
        with self._ready:
            self._ready.wait_for(lambda: self._batches or self._closed, timeout_s)
            if not self._batches:
                return None
            batch = self._batches.popleft()
            self._waiting -= len(batch.lines)
            self._ready.notify_all()
            return batch

    def close(self, error: Exception | None = None) -> None:
        """No more lines will come; those that wait can still be taken."""
        with self._ready:
            self._closed = True
            self.error = self.error or error
            self._ready.notify_all()

    @property
    def ended(self) -> bool:
        """Whether no line waits and none will come."""
        with self._ready:
            return self._closed and not self._batches
