"""Work for other processes: they import it by name, so it cannot live in a test module."""

from __future__ import annotations

import os


def process_of(_: object) -> int:
    return os.getpid()


def sixth_of(number: int) -> int:
    return 6 // number


def end_of_worker(_: object) -> None:
    """Ends the process that it runs in, as want of memory does."""
    os._exit(1)
