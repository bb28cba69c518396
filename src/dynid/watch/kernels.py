"""Compiled loops of a watch: filters along time whose digits do not depend on where an array lies in memory."""

from __future__ import annotations

from numba import njit

_compiled = njit(cache=True, nogil=True, error_model="numpy")


@_compiled
def filter_rows(buffer, first, taps, out) -> None:  # type: ignore[no-untyped-def]
    """``out[d, c] = sum_k taps[d, k] buffer[first + k, c]``."""
    for d in range(taps.shape[0]):
        for c in range(buffer.shape[1]):
            out[d, c] = 0.0
        for k in range(taps.shape[1]):
            tap = taps[d, k]
            for c in range(buffer.shape[1]):
                out[d, c] += tap * buffer[first + k, c]


@_compiled
def reflect_rows(known, reach, out) -> None:  # type: ignore[no-untyped-def]
    """``2 x_0 - x_k`` for ``k`` from 1 to ``reach`` into ``out[k - 1]``, the last of them repeated where there are fewer rows."""
    n = known.shape[0]
    for k in range(1, reach + 1):
        at = min(k, n - 1)
        for c in range(known.shape[1]):
            out[k - 1, c] = 2.0 * known[0, c] - known[at, c]
