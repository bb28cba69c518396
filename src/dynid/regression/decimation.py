"""A row filter over one whole log: the same taps for any columns, planned once and applied many times.

The filters of :mod:`dynid.regression.row_filter` run along rows as they come. Searches instead filter many columns over the
same samples, which are all at hand: what depends on the clock alone is found once here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.adapters.numba import njit
from dynid.arrays import Array, IntArray


@dataclass(frozen=True, eq=False)
class DecimatedPart:
    """An uninterrupted part of a log: where it lies among the samples, and how it is filtered.

    A part may be there with one sample of ``step`` only; targets and taps count all of them.
    """

    start: int
    stop: int
    taps: Array
    """An odd number, symmetric."""
    targets: IntArray
    """Samples of the part whose filtered values are kept."""
    every: int
    step: int = 1

    @cached_property
    def phases(self) -> Array:
        """``(step, taps)``: the taps that meet samples which are there, by where the first of them lies."""
        count = -(-len(self.taps) // self.step)
        padded = np.concatenate([self.taps, np.zeros(count * self.step - len(self.taps))])
        phases = padded.reshape(count, self.step).T
        return np.ascontiguousarray(phases / phases.sum(axis=1, keepdims=True))

    def thinned(self, start: int, step: int, per_row: int) -> DecimatedPart:
        """The same rows from one sample of ``step``, or of fewer so that ``per_row`` are left for each row."""
        step = max(1, min(step, self.every // per_row))
        return replace(self, start=start, stop=start - (self.start - self.stop) // step, step=step)


@dataclass(frozen=True, eq=False)
class Decimation:
    """Filter and decimation of all parts of a log."""

    parts: tuple[DecimatedPart, ...]

    def rows(self, columns: Sequence[Array]) -> Array:
        """Columns over samples, several arrays of them, as columns over rows side by side."""
        ends = np.cumsum([0, *(one.shape[1] for one in columns)])
        found = np.empty((sum(len(part.targets) for part in self.parts), int(ends[-1])))
        first = 0
        for part in self.parts:
            reach = len(part.taps) // 2
            for begin, one in zip(ends, columns, strict=False):
                values = np.ascontiguousarray(one[part.start : part.stop].T)
                _filter_columns(values, part.phases, reach, part.targets, found, first, int(begin))
            first += len(part.targets)
        return found

    def thinned(self, step: int, per_row: int) -> tuple[IntArray, Decimation]:
        """The same rows from one sample of ``step``, but at least ``per_row`` for each row, and which samples those are.

        The sums that a filter takes become coarser, as an integral over larger steps.
        """
        kept, parts, first = [], [], 0
        for part in self.parts:
            parts.append(part.thinned(first, step, per_row))
            kept.append(np.arange(part.start, part.stop, parts[-1].step))
            first = parts[-1].stop
        return np.concatenate(kept), Decimation(tuple(parts))


@njit(cache=True, nogil=True, error_model="numpy", fastmath=True)
def _filter_columns(values, phases, reach, targets, found, first_row, first_column):  # type: ignore[no-untyped-def]
    """Columns, given as rows of ``values``, at the targets behind the taps; beyond its ends a column is reflected.

    They go to ``found`` from a row and a column on: a part of it would have another layout, and be compiled for anew.
    """
    n_columns, n = values.shape
    step, n_taps = phases.shape
    outside = reach // step + 1
    padded = np.empty((4, n + 2 * outside + n_taps))
    padded[:, n + 2 * outside :] = 0.0  # taps beyond the last one are zero
    for begin in range(0, n_columns, 4):
        # four columns at a time, so that a tap is loaded once for all of them; the last column may be there more than once
        for k in range(4):
            column = values[min(begin + k, n_columns - 1)]
            padded[k, outside : outside + n] = column
            for i in range(1, outside + 1):
                inside = min(i, n - 1)
                padded[k, outside - i] = 2.0 * column[0] - column[inside]
                padded[k, outside + n - 1 + i] = 2.0 * column[n - 1] - column[n - 1 - inside]
        for row in range(len(targets)):
            begins = targets[row] - reach
            first = -((-begins) // step)  # the first sample that is there at or after that place
            taps = phases[first * step - begins]
            # as arrays of their own: an index that could count from the end would keep the loop from vector instructions
            x0, x1 = padded[0, outside + first :], padded[1, outside + first :]
            x2, x3 = padded[2, outside + first :], padded[3, outside + first :]
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for i in range(n_taps):
                a += taps[i] * x0[i]
                b += taps[i] * x1[i]
                c += taps[i] * x2[i]
                d += taps[i] * x3[i]
            sums = (a, b, c, d)
            for k in range(min(4, n_columns - begin)):
                found[first_row + row, first_column + begin + k] = sums[k]
