"""Stamps as they come to a uniform clock: jitter is interpolated as :class:`dynid.Resample` does, a gap or a jump starts a new part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.recording.steps.resample import nominal_period_s
from dynid.watch.decode import Row

ROUNDING = 1e-6
"""Of a period: stamps that were meant to be on the grid."""
LEAST_GAP_S, GAP_PERIODS = 0.1, 10.0
"""A step longer than both interrupts the stream, as it does a log."""


@dataclass
class Counts:
    """What became of the rows; each that did not count is counted here."""

    rows: int = 0
    """Rows read."""
    repeated: int = 0
    """Rows with the stamp of the row before, left out."""
    late: int = 0
    """Rows older than the row before by less than a gap, left out."""
    gaps: int = 0
    """Steps forward that interrupt the stream."""
    jumps_back: int = 0
    """Steps of the clock back that interrupt the stream."""


class Grid:
    """Rows on ``start + k dt``, part by part.

    ``push`` answers with rows ``(time, values)`` and whether a new part begins before them.
    """

    def __init__(self, period_s: float, counts: Counts) -> None:
        self.period_s, self.counts = period_s, counts
        self.gap_s = max(LEAST_GAP_S, GAP_PERIODS * period_s)
        self._start = self._last = np.nan
        self._values = np.empty(0)
        self._next = 0

    @classmethod
    def of(cls, rows: Sequence[Row], counts: Counts) -> Grid:
        """The grid of a stream by its first rows, of which those that go back are passed over."""
        stamps: list[float] = []
        for row in rows:
            if not stamps or row.time > stamps[-1]:
                stamps.append(row.time)
        return cls(nominal_period_s(np.array(stamps)), counts)

    @property
    def last_s(self) -> float:
        """Stamp of the newest row that counted."""
        return float(self._last)

    def push(self, time: float, values: Array) -> tuple[bool, list[tuple[float, Array]]]:
        """The rows of the grid that this row completes, and whether a new part begins with them."""
        self.counts.rows += 1
        step = time - self._last
        if abs(step) <= ROUNDING * self.period_s:
            self.counts.repeated += 1
            return False, []
        if -self.gap_s <= step < 0.0:
            self.counts.late += 1
            return False, []
        if not step <= self.gap_s or step < 0.0:  # also the first row, whose step is no number
            if step > 0.0:
                self.counts.gaps += 1
            elif step < 0.0:
                self.counts.jumps_back += 1
            self._start = self._last = time
            self._values, self._next = values, 1
            return True, [(time, values)]
        made = []
        while (at := self._start + self._next * self.period_s) <= time + ROUNDING * self.period_s:
            u = min((at - self._last) / step, 1.0)
            made.append((at, self._values * (1.0 - u) + values * u))
            self._next += 1
        self._last, self._values = time, values
        return False, made

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        return {
            "period_s": self.period_s,
            "start": self._start,
            "last": self._last,
            "next": self._next,
            "values": self._values.copy(),
        }

    @classmethod
    def restored(cls, state: dict[str, Any], counts: Counts) -> Grid:
        """The grid as it was."""
        grid = cls(float(state["period_s"]), counts)
        grid._start, grid._last = float(state["start"]), float(state["last"])
        grid._next, grid._values = int(state["next"]), np.array(state["values"], dtype=np.float64)
        return grid
