"""Drop what filters leave unfit at the ends of a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.errors import InputError
from dynid.recording.signals import Signals, Tally
from dynid.recording.steps.step import Extent, LocalStep

AT_START = "{n} rows dropped at the start, where filters settle"
AT_END = "{n} rows dropped at the end, where filters settle"


@dataclass(frozen=True)
class DropEdges(LocalStep):
    """Drop rows at both ends of the log; one period of a periodic motion has no ends.

    Args:
        seconds: time dropped at each end, s.
        rows: rows dropped at each end, at least.

    Examples:
        >>> import dynid
        >>> log = dynid.demo_recording(seconds=4.0)
        >>> len(dynid.process(log, [dynid.Differentiate(), dynid.DropEdges(seconds=1.0)], edge_s=0.0))
        200
    """

    seconds: float = 0.0
    rows: int = 0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.seconds) and self.seconds >= 0.0):
            raise InputError(f"DropEdges seconds is {self.seconds}, expected zero or a positive number")
        if self.rows < 0:
            raise InputError(f"DropEdges rows is {self.rows}, expected zero or more")

    def reach(self, head: Signals) -> Extent:
        """Whether a row is near the end is known when the end is seen, or that much log without one."""
        return Extent(rows=self.rows + 1, seconds=self.seconds * (1.0 + 1e-9))

    def apply(self, window: Signals, own: slice, starts: bool, ends: bool, tally: Tally) -> Signals:
        """The own rows that are far enough from both ends."""
        if window.periodic:
            return window.cut(own)
        t, n = window.time, len(window)
        limit = self.seconds * (1.0 - 1e-9)
        first = own.start
        if starts:
            first = max(first, min(self.rows, n), int(np.searchsorted(t, t[0] + limit, side="left")))
        last = own.stop
        if ends:
            last = min(last, n - self.rows, int(np.searchsorted(t, t[-1] - limit, side="right")))
            if starts and last <= first:
                raise InputError(
                    f"{t[-1] - t[0]:.3g} s and {n} rows are too short: nothing is left after dropping "
                    f"{self.seconds:.3g} s and at least {self.rows} {'row' if self.rows == 1 else 'rows'} at both ends"
                )
        first = min(first, own.stop)
        last = max(last, first)
        tally.count(AT_START, first - own.start)
        tally.count(AT_END, own.stop - last)
        return window.cut(slice(first, last))
