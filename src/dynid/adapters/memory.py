"""Memory that was freed, given back to the system.

Allocators keep what a step has freed for the next one. Steps of a run need it in other sizes, so that what each has freed would add up.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

MUCH = 400 << 20
"""Bytes of this process from which looking for what can be given back is worth the time."""


GROWN = 64 << 20
"""Bytes by which it must have grown since then: looking through all objects takes a tenth of a second."""
_left = 0


def give_back(much: int = MUCH) -> None:
    """Give freed memory back, where the allocators can: Arrow's, if it is loaded, and that of the GNU C library.

    Nothing is done in a process that has less than ``much``, that has hardly grown since the last time, or on systems that do
    not say how much it has.
    """
    global _left
    resident = _resident()
    _left = min(_left, resident)
    if resident < max(much, _left + GROWN):
        return
    gc.collect()
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = _malloc_trim()
    if trim is not None:
        trim(0)
    _left = _resident()


def _resident() -> int:
    """Bytes of this process in memory; zero where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@lru_cache(maxsize=1)
def _malloc_trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
    return found
