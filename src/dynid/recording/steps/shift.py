"""Undo a known lag: ``x(t) <- x(t + lag)`` for quantities that were logged late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.errors import InputError
from dynid.recording.signals import Signals, Tally
from dynid.recording.steps.resample import interpolate
from dynid.recording.steps.step import Extent, LocalStep, checked_signals

BEYOND = "{n} rows dropped at an end, where a shifted signal has no value"


@dataclass(frozen=True)
class Shift(LocalStep):
    """Correct a known delay of some quantities; raw torque moves with torque.

    Args:
        lag_s: delay, s, by which they lag behind the others; negative for a lead.
        signals: the quantities that lag.
        method: ``linear`` or ``cubic`` interpolation.

    Examples:
        >>> import dynid
        >>> steps = [dynid.Shift(lag_s=0.004, signals=("torque",)), dynid.Differentiate()]
        >>> len(dynid.process(dynid.demo_recording(seconds=4.0), steps)) < 400
        True
    """

    lag_s: float
    signals: tuple[str, ...] = ("velocity",)
    method: Literal["linear", "cubic"] = "cubic"

    def __post_init__(self) -> None:
        if not np.isfinite(self.lag_s):
            raise InputError(f"Shift lag_s is {self.lag_s}, expected a finite number of seconds")
        checked_signals(self.signals, "Shift")
        if self.method not in ("linear", "cubic"):
            raise InputError(f"unknown interpolation '{self.method}' in Shift; available: linear, cubic")

    def reach(self, head: Signals) -> Extent:
        """As far as the lag, and the neighbours of an interpolation."""
        rows = 4 if head.period_s is None else 4 + int(np.ceil(abs(self.lag_s) / head.period_s))
        return Extent(rows=rows, seconds=abs(self.lag_s))

    def apply(self, window: Signals, own: slice, starts: bool, ends: bool, tally: Tally) -> Signals:
        """The own rows for which the shifted time lies within the log."""
        window.need(self.signals, self)
        t = window.time
        names = [*self.signals, *(["raw_torque"] if "torque" in self.signals else [])]
        piece = window.cut(own)
        there = piece.time + self.lag_s
        # A window reaches beyond its own rows, so only true ends can be passed.
        first = int(np.searchsorted(there, t[0])) if starts else 0
        stop = int(np.searchsorted(there, t[-1], side="right")) if ends else len(piece)
        if starts and ends and stop <= first:
            raise InputError(f"Shift by {self.lag_s:g} s leaves nothing of a log of {t[-1] - t[0]:.3g} s")
        tally.count(BEYOND, len(piece) - max(0, stop - first))
        kept = piece.cut(slice(first, max(first, stop)))
        at = kept.time + self.lag_s
        return kept.updated({name: interpolate(t, window.values[name], at, self.method) for name in names})
