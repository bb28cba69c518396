"""Zero-phase Butterworth filters, on whole signals and on windows of them.

Forwards and backwards: ``|H(f)|^2 = 1 / (1 + (f / f_c)^(2 n))`` and no phase. A window of a longer signal gives the
same numbers where its ends are further away than the filter remembers; only true ends are continued by reflection.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dynid.arrays import Array, frozen_view
from dynid.errors import InputError
from dynid.recording.steps.sections import butterworth_poles, butterworth_sections, run_sections

FORGOTTEN = 1e-13
"""A filter has forgotten a row when its response to it is smaller than this."""


@lru_cache(maxsize=64)
def butterworth(order: int, cutoff_nyquist: float) -> Array:
    """Second-order sections of a low-pass whose cut-off is a fraction of half the sampling rate."""
    return frozen_view(butterworth_sections(order, cutoff_nyquist))


@lru_cache(maxsize=64)
def memory_rows(order: int, cutoff_nyquist: float, level: float = FORGOTTEN) -> int:
    """Rows after which the response of the filter has fallen below ``level``."""
    slowest = float(np.abs(butterworth_poles(order, cutoff_nyquist)).max())
    if slowest < 1e-6:
        return order + 2
    return int(np.ceil(1.1 * np.log(level) / np.log(slowest))) + order + 2


def edge_rows(order: int, cutoff_nyquist: float) -> int:
    """Rows by which a true end is continued: until the start of the filter no longer matters there."""
    return max(memory_rows(order, cutoff_nyquist, 1e-3), 3 * (order + 1))


def filter_window(
    values: Array, order: int, cutoff_nyquist: float, starts: bool, ends: bool, whole: str = "signal"
) -> Array:
    """Filter the columns of a window along its rows; ``starts`` and ``ends`` mark the true ends of the signal."""
    n = len(values)
    least = 3 * (order + 1)
    if starts and ends and n <= least:
        raise InputError(f"{whole} has {n} rows, a zero-phase filter of order {order} needs more than {least}")
    sections = butterworth(order, cutoff_nyquist)
    pad = min(edge_rows(order, cutoff_nyquist), n - 1)
    # Working about one of its rows keeps a constant signal constant to the last digit.
    level = values[:1].copy()
    x = values - level
    before = 2.0 * x[0] - x[pad:0:-1] if starts else x[:0]
    after = 2.0 * x[-1] - x[-2 : -pad - 2 : -1] if ends else x[:0]
    x = np.concatenate([before, x, after])
    y = run_sections(sections, x, x[0])
    y = run_sections(sections, y[::-1], y[-1])
    return np.asarray(y[::-1][len(before) : len(before) + n] + level)
