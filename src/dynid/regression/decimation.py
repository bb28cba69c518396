"""Rows behind symmetric taps of which some are kept,

    y_m = sum_k h_k x(t_m - reach + k)

* over a whole log at once (:class:`Decimation`): searches filter many columns over the same samples, so what depends on the clock
  alone is found once;
* while rows come in (:class:`FilteredPart`): a kept row is the sum of what the chunks that its taps reach add to it. So no row is
  copied beside others first, none that is left out is computed, and only the last rows are held, to continue the part by
  reflection where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.compiled import njit
from dynid.regression.row_source import Chunk


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
    padded = np.zeros((4, n + 2 * outside + n_taps))  # taps beyond the last one are zero
    for begin in range(0, n_columns, 4):
        # four columns at a time, so that a tap is loaded once for all of them; the last column may be there more than once
        for k in range(4):
            column = values[min(begin + k, n_columns - 1)]
            for i in range(n):  # a slice assignment would take two seconds to compile
                padded[k, outside + i] = column[i]
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


class FilteredPart:
    """Filtered rows ``first``, ``first + every``, ... of a part, each ready once its last row has come.

    Args:
        taps: an odd number, symmetric.
        every: one row of so many is kept.
        first: number in the part of the first row that is kept.
    """

    def __init__(self, taps: Array, every: int, first: int) -> None:
        self.reach = len(taps) // 2
        self.n_rows = 0
        """Rows of the part seen so far."""
        self._taps, self._every, self._first = taps, every, first
        self._widths: list[int] = []
        self._early: list[list[Array]] = []  # the first rows, until there are enough of them to reflect
        self._tail: list[Array] = []  # the last rows, as many as are reflected and the one they are reflected at
        self._sums = np.zeros((0, 0))
        self._times = np.zeros(0)
        self._given = 0  # kept rows that were asked for already
        self._free = 0  # places at the front whose rows were given

    def append(self, blocks: Sequence[Array], time: Array) -> None:
        """The next rows, by columns, and their times."""
        self._widths = self._widths or [block.shape[1] for block in blocks]
        columns = [block.T for block in blocks]
        begin, self.n_rows = self.n_rows, self.n_rows + len(time)
        self._make_room()
        # Times of kept rows among these.
        next_kept = max(0, -(-(begin - self._first) // self._every))
        inside = time[self._first + next_kept * self._every - begin :: self._every]
        self._times[self._free + next_kept - self._given :][: len(inside)] = inside
        if self._tail:
            self._add(columns, begin)
            return
        self._early.append([one.copy() for one in columns])
        if self.n_rows > self.reach:
            self._begin()

    def end(self) -> None:
        """The last rows reflected, so that all rows of the part can be answered for."""
        if not self._tail:
            self._begin()
        self._make_room()
        self._add([_reflection(one[:, ::-1], self.reach) for one in self._tail], self.n_rows)

    def take(self, count: int) -> Chunk:
        """The next kept rows."""
        own = slice(self._free, self._free + count)
        found, times = self._sums[:, own].copy(), self._times[own].copy()
        ends = np.cumsum([0, *self._widths])
        self._given += count
        self._free += count
        return Chunk([found[a:b].T for a, b in pairwise(ends)], times)

    def _make_room(self) -> None:
        """Room for every kept row that the rows seen so far add to."""
        needed = -(-(self.n_rows + 2 * self.reach - self._first) // self._every) - self._given + 1
        if self._free + needed <= self._sums.shape[1]:
            return
        left = max(self._sums.shape[1] - self._free, 0)
        sums, times = self._sums, self._times
        if 2 * needed > sums.shape[1]:
            sums, times = np.empty((sum(self._widths), 4 * needed)), np.empty(4 * needed)
        # new memory for every few rows would cost more than what is written to it
        if left:
            sums[:, :left], times[:left] = self._sums[:, self._free :], self._times[self._free :]
        sums[:, left:], times[left:] = 0.0, 0.0
        self._sums, self._times, self._free = sums, times, 0

    def _begin(self) -> None:
        columns = [np.concatenate(parts, axis=1) for parts in zip(*self._early, strict=True)]
        self._early = []
        before = [_reflection(one[:, : self.reach + 1], self.reach)[:, ::-1] for one in columns]
        self._add([np.concatenate(pair, axis=1) for pair in zip(before, columns, strict=True)], -self.reach)

    def _add(self, columns: Sequence[Array], begin: int) -> None:
        """What these rows, of which the first has the number ``begin``, add to the kept rows; the last of them are held."""
        n = columns[0].shape[1]
        # the first kept row not given yet whose taps reach these rows, and the one after the last
        reached = max(self._given, -(-(begin - self.reach - self._first) // self._every))
        beyond = -(-(begin + n + self.reach - self._first) // self._every)
        start, place = self._first + reached * self._every - self.reach, self._free + reached - self._given
        row = 0
        for one in columns:
            values = np.ascontiguousarray(one)
            add_filtered(values, self._taps, start - begin, self._every, self._sums, row, place, beyond - reached)
            row += len(one)
        held = self.reach + 1
        if n >= held:
            self._tail = [one[:, n - held :].copy() for one in columns]
        else:
            tail = self._tail or [one[:, :0] for one in columns]
            self._tail = [np.concatenate(pair, axis=1)[:, -held:] for pair in zip(tail, columns, strict=True)]


def _reflection(rows: Array, reach: int) -> Array:
    """``2 x_0 - x_k`` for ``k`` from 1 to ``reach``, the last of them repeated where there are fewer rows."""
    mirrored = 2.0 * rows[:, :1] - rows[:, 1 : reach + 1]
    missing = reach - mirrored.shape[1]
    if not missing:
        return mirrored
    last = mirrored[:, -1:] if mirrored.shape[1] else rows[:, :1]
    return np.concatenate([mirrored, np.repeat(last, missing, axis=1)], axis=1)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=True)
def add_filtered(values, taps, start, every, sums, row, place, count):  # type: ignore[no-untyped-def]
    """What rows add to the kept rows ``place``, ``place + 1``, ... of ``sums``, whose taps begin at ``start``, ``start + every``, ...

    Columns are given as rows of ``values`` and go to the rows of ``sums`` from ``row`` on.
    """
    n_columns, n = values.shape
    for begin in range(0, n_columns, 4):
        # four columns at a time, so that a tap is loaded once for all of them; the last column may be there more than once
        second, third = min(begin + 1, n_columns - 1), min(begin + 2, n_columns - 1)
        fourth = min(begin + 3, n_columns - 1)
        for k in range(count):
            first = start + k * every
            low, high = max(first, 0), min(first + taps.shape[0], n)
            if low >= high:
                continue
            h = taps[low - first : high - first]
            x0, x1 = values[begin, low:high], values[second, low:high]
            x2, x3 = values[third, low:high], values[fourth, low:high]
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for i in range(h.shape[0]):
                a += h[i] * x0[i]
                b += h[i] * x1[i]
                c += h[i] * x2[i]
                d += h[i] * x3[i]
            found = (a, b, c, d)
            for j in range(min(4, n_columns - begin)):
                sums[row + begin + j, place + k] += found[j]
