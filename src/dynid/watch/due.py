"""What comes due between the thread that uses rows and the one that answers: in order, bounded, never dropped while both run."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")

MOST_DUE = 8
"""Reports and states that may wait; then rows wait for answers, as a stream does that is replayed faster than it was recorded."""


class Due(Generic[Item]):
    """A queue from one thread to another one that says when all it got is done."""

    def __init__(self, most: int = MOST_DUE) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._items: deque[Item] = deque()
        self._unfinished = 0
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether nobody answers any more."""
        return self._closed

    def put(self, item: Item) -> None:
        """Add one, after waiting for room; nothing once nobody answers."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._items) < self._most or self._closed)
            if not self._closed:
                self._items.append(item)
                self._unfinished += 1
                self._changed.notify_all()

    def get(self, timeout_s: float) -> Item | None:
        """The next one, None where none came in time; :meth:`done` says that it was dealt with."""
        with self._changed:
            self._changed.wait_for(lambda: self._items, timeout_s)
            if not self._items:
                return None
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def done(self) -> None:
        """What :meth:`get` gave is dealt with."""
        with self._changed:
            self._unfinished -= 1
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait until all that was put is dealt with, or nobody answers any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._unfinished == 0 or self._closed)

    def close(self) -> None:
        """Nobody answers any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
