"""Keep every n-th row: neighbouring rows of a filtered log say nearly the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.errors import InputError
from dynid.recording.signals import Signals, Tally
from dynid.recording.steps.step import Extent, LocalStep


@dataclass(frozen=True)
class Decimate(LocalStep):
    """Keep rows 0, n, 2n, .. counted from the start of the log; it does not filter, so put a filter before it.

    Args:
        every: ``n``, one row of so many is kept.

    Examples:
        >>> import dynid
        >>> log = dynid.demo_recording(seconds=4.0, rate_hz=200.0)
        >>> len(dynid.process(log, [dynid.Decimate(every=4), dynid.Differentiate()], edge_s=0.0))
        200
    """

    every: int

    def __post_init__(self) -> None:
        if self.every != int(self.every) or self.every < 1:
            raise InputError(f"Decimate every is {self.every}, expected a whole number of rows, 1 or more")

    def reach(self, head: Signals) -> Extent:
        """No neighbour."""
        return Extent()

    def apply(self, window: Signals, own: slice, starts: bool, ends: bool, tally: Tally) -> Signals:
        """The own rows whose number is a multiple."""
        piece = window.cut(own)
        offset = -piece.first_row % self.every
        rows = np.arange(offset, len(piece), self.every)
        period_s = None if piece.period_s is None else piece.period_s * self.every
        if piece.periodic and len(piece) % self.every:
            raise InputError(f"a period of {len(piece)} rows cannot be decimated by {self.every}, expected a divisor")
        tally.say(f"every {self.every}. row is kept")
        return replace(piece.chosen(rows), first_row=(piece.first_row + offset) // self.every, period_s=period_s)
