"""Zero-phase Butterworth filters as second-order sections, on whole signals and on windows of them.

Each section is ``(b0 + b1 z^-1 + b2 z^-2) / (1 + a1 z^-1 + a2 z^-2)``, in transposed direct form II. SciPy has the same, in a
package that takes longer to import than most logs take to filter. Forwards and backwards it is
``|H(f)|^2 = 1 / (1 + (f / f_c)^(2 n))`` and no phase. A window of a longer signal gives the same numbers where its ends are further
away than the filter remembers; only true ends are continued by reflection.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dynid.arrays import Array, frozen_view
from dynid.compiled import njit
from dynid.errors import InputError


def butterworth_poles(order: int, cutoff_nyquist: float) -> Array:
    """Poles of the low-pass in the z plane, one of every pair and a real one, the most damped first.

    The analogue poles lie on a half circle about zero; the bilinear transform, warped so that the cut-off stays in place,
    carries them into the unit circle.
    """
    angle = np.pi * (2.0 * np.arange((order + 1) // 2) + (order + 1) % 2) / (2.0 * order)
    analogue = -np.tan(0.5 * np.pi * cutoff_nyquist) * np.exp(1j * angle)
    return np.asarray((1.0 + analogue) / (1.0 - analogue))


def butterworth_sections(order: int, cutoff_nyquist: float) -> Array:
    """``(sections, 6)`` of ``b0 b1 b2 1 a1 a2``, the most damped first; the gain is in the first, and one at rest."""
    poles = butterworth_poles(order, cutoff_nyquist)
    sections = np.empty((len(poles), 6))
    gain = 1.0
    for k, pole in enumerate(poles):
        if order % 2 and k == 0:
            sections[k] = [1.0, 1.0, 0.0, 1.0, -pole.real, 0.0]
            gain *= 0.5 * (1.0 - pole.real)
        else:
            sections[k] = [1.0, 2.0, 1.0, 1.0, -2.0 * pole.real, abs(pole) ** 2]
            gain *= 0.25 * abs(1.0 - pole) ** 2
    sections[0, :3] *= gain
    return sections


def resting_state(sections: Array) -> Array:
    """``(sections, 2)``: the memory of the filter after a constant one."""
    state = np.empty((len(sections), 2))
    level = 1.0
    for k, (b0, b1, b2, _, a1, a2) in enumerate(sections):
        gain = (b0 + b1 + b2) / (1.0 + a1 + a2)
        state[k] = level * (b1 + b2 - (a1 + a2) * gain), level * (b2 - a2 * gain)
        level *= gain
    return state


def run_sections(sections: Array, values: Array, start: Array | None = None) -> Array:
    """Columns of ``values`` through all sections; ``start`` is what each column was constant at before, by default zero."""
    state = np.zeros((len(sections), 2, values.shape[1]))
    if start is not None:
        state += resting_state(sections)[:, :, None] * start
    found = np.array(values, dtype=np.float64, order="C")
    _recursion(sections, found, state)
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _recursion(sections, values, state):  # type: ignore[no-untyped-def]
    """In place; columns innermost, so that one row of all of them is one vector operation."""
    rows, columns = values.shape
    for row in range(rows):
        for k in range(len(sections)):
            b0, b1, b2, a1, a2 = sections[k, 0], sections[k, 1], sections[k, 2], sections[k, 4], sections[k, 5]
            for c in range(columns):
                x = values[row, c]
                y = b0 * x + state[k, 0, c]
                state[k, 0, c] = b1 * x - a1 * y + state[k, 1, c]
                state[k, 1, c] = b2 * x - a2 * y
                values[row, c] = y


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
