"""Filters that run along a part of a stream row by row and can be stored: a sliding buffer, Savitzky-Golay, the band of the rows.

Each gives the numbers of its counterpart for whole logs (:class:`dynid.SavitzkyGolay`, :class:`dynid.rows.BandLimit`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.regression.row_filter import BandLimit


class Sliding:
    """The newest rows in one piece of memory; the oldest are given up where ``keep`` allows."""

    def __init__(self, width: int, keep: int) -> None:
        self.keep = keep
        self.rows = np.zeros((max(2 * keep, 16), width))
        self.begin = self.end = 0

    def __len__(self) -> int:
        return self.end - self.begin

    def push(self, row: Array) -> None:
        """Add a row."""
        if self.end == len(self.rows):
            kept = self.rows[max(self.begin, self.end - self.keep) : self.end].copy()
            if 4 * len(kept) > 3 * len(self.rows):
                self.rows = np.zeros((2 * len(kept), self.rows.shape[1]))
            self.begin, self.end = 0, len(kept)
            self.rows[: self.end] = kept
        self.rows[self.end] = row
        self.end += 1

    def held(self) -> Array:
        """All rows that are there, a copy."""
        return self.rows[self.begin : self.end].copy()

    @classmethod
    def of(cls, rows: Array, width: int, keep: int) -> Sliding:
        """With these rows in it."""
        made = cls(width, keep)
        for row in np.asarray(rows, dtype=np.float64).reshape(-1, width):
            made.push(row)
        return made


class OnlineSavitzkyGolay:
    """Smoothed signal and its derivatives at the middle of a window, half a window late."""

    def __init__(self, window: int, order: int, period_s: float, width: int, derivatives: tuple[int, ...]) -> None:
        from scipy.signal import savgol_coeffs

        coefficients = [savgol_coeffs(window, order, deriv=d, delta=period_s, use="dot") for d in derivatives]
        self._taps = np.ascontiguousarray(coefficients)
        self.window, self._width, self._derivatives = window, width, np.array(derivatives)
        self._held = Sliding(width, window)
        self._level: Array | None = None

    def push(self, row: Array) -> Array | None:
        """``(derivatives, columns)`` at the middle row, None until the window is full."""
        from dynid.watch.kernels import filter_rows

        held = self._held
        if self._level is None:
            self._level = np.array(row)  # derivatives live on differences; the first row, as for whole logs
        held.push(row)
        if len(held) < self.window:
            return None
        first = held.end - self.window
        held.begin = first
        level = self._level
        out = np.empty((len(self._taps), self._width))
        filter_rows(held.rows[first : held.end] - level, 0, self._taps, out)
        out[self._derivatives == 0] += level
        return out

    def middle(self, columns: slice) -> Array:
        """The row at the middle of the window, as it came."""
        return self._held.rows[self._held.end - 1 - self.window // 2, columns].copy()

    def restart(self) -> None:
        """A new part begins."""
        self._held, self._level = Sliding(self._width, self.window), None

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        return {"rows": self._held.held(), "level": self._level}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from these numbers."""
        self._held = Sliding.of(state["rows"], self._width, self.window)
        self._level = None if state["level"] is None else np.array(state["level"])


class OnlineBand:
    """:class:`BandLimit` of one part, row by row: the same rows, each as soon as its window is complete.

    The first row of a part is answered for when as many rows as the filter reaches have come, the last ones by :meth:`end`.
    """

    def __init__(self, band: BandLimit, period_s: float, width: int) -> None:
        self._taps = np.ascontiguousarray(band.taps(period_s)[None])
        self.reach = self._taps.shape[1] // 2
        self.every, self.edge = band.every(period_s), band.edge_rows(period_s)
        self._delay = max(self.reach, self.edge)
        self._width = width
        self.restart()

    def restart(self) -> None:
        """A new part begins."""
        self._held = Sliding(self._width + 1, self.reach + self._delay + 2)
        self._n = 0
        self._begun = False
        self._target = self.edge + -self.edge % self.every

    @property
    def inflation(self) -> float:
        """Rows of white noise that count as one: ``sum_k rho(k every)`` of the taps' own correlation."""
        return correlated_rows(self._taps[0], self.every)

    def due(self, pending: int) -> bool:
        """Whether a filtered row is complete with so many more."""
        n = self._n + pending
        return bool(n > self.reach and self._target + self._delay < n)

    def push(self, time: float, row: Array) -> Iterator[tuple[float, Array]]:
        """Rows that this one completes."""
        self._held.push(np.append(row, time))
        self._n += 1
        if not self._begun:
            if self._n <= self.reach:
                return
            self._begin()
        while self._target + self._delay < self._n:
            yield self._answer()

    def end(self) -> Iterator[tuple[float, Array]]:
        """The rows that the end of a part still gives; a part that is too short gives none."""
        from dynid.watch.kernels import reflect_rows

        if self._n > 2 * self.edge:
            if not self._begun:
                self._begin()
            last = self._held.rows[max(self._held.begin, self._held.end - self.reach - 1) : self._held.end][::-1].copy()
            beyond = np.empty((self.reach, self._width + 1))
            reflect_rows(last, self.reach, beyond)
            n = self._n
            self._held.keep += self.reach
            for row in beyond:
                self._held.push(row)
            self._n += self.reach
            while self._target < n - self.edge:
                yield self._answer()
        self.restart()

    def _begin(self) -> None:
        """The first rows reflected before the start."""
        from dynid.watch.kernels import reflect_rows

        rows = self._held.held()
        before = np.empty((self.reach, self._width + 1))
        reflect_rows(rows[: self.reach + 1], self.reach, before)
        self._held = Sliding.of(np.concatenate([before[::-1], rows]), self._width + 1, self._held.keep)
        self._begun = True

    def _answer(self) -> tuple[float, Array]:
        from dynid.watch.kernels import filter_rows

        held = self._held
        middle = held.end - self._n + self._target  # place of the row to answer for
        out = np.empty((1, self._width + 1))
        filter_rows(held.rows, middle - self.reach, self._taps, out)
        time = float(held.rows[middle, -1])
        self._target += self.every
        return time, out[0, :-1]

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        return {"rows": self._held.held()[-self._held.keep :], "n": self._n, "begun": self._begun, "target": self._target}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from these numbers."""
        self.restart()
        self._held = Sliding.of(state["rows"], self._width + 1, self._held.keep)
        self._n, self._begun, self._target = int(state["n"]), bool(state["begun"]), int(state["target"])


def correlated_rows(taps: Array, every: int) -> float:
    """How many rows of filtered white noise count as one: the sum of their correlation over all lags that are kept."""
    correlation = np.correlate(taps, taps, mode="full")
    middle = len(taps) - 1
    lags = correlation[middle % every :: every] / correlation[middle]
    return max(float(lags.sum()), 1.0)
