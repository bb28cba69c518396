"""Cut a log in time: to an interval that is given, or to where the robot moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.errors import InputError
from dynid.recording.signals import Signals, Tally, Upstream
from dynid.recording.steps.step import Extent, LocalStep

OUTSIDE = "{n} rows outside the chosen time left out"
STANDING = "{n} rows at standstill before and after the motion left out"


@dataclass(frozen=True)
class Trim(LocalStep):
    """Keep rows with ``from_s <= t <= to_s`` on the log's own clock; later steps treat the cuts as ends of the log.

    Args:
        from_s: first time kept, s; None for the start of the log.
        to_s: last time kept, s; None for its end.

    Examples:
        >>> import dynid
        >>> samples = dynid.process(dynid.demo_recording(), [dynid.Trim(2.0, 5.0), dynid.Differentiate()], edge_s=0.0)
        >>> float(samples.time[0]), float(samples.time[-1])
        (2.0, 5.0)
    """

    from_s: float | None = None
    to_s: float | None = None

    def __post_init__(self) -> None:
        if self.from_s is not None and self.to_s is not None and not self.from_s < self.to_s:
            raise InputError(f"Trim from {self.from_s:g} s to {self.to_s:g} s is empty, expected the first to be smaller")

    def reach(self, head: Signals) -> Extent:
        """No neighbour."""
        return Extent()

    def apply(self, window: Signals, own: slice, starts: bool, ends: bool, tally: Tally) -> Signals:
        """The own rows inside the interval."""
        return _inside(window.cut(own), self.from_s, self.to_s, OUTSIDE, tally)


@dataclass(frozen=True)
class TrimToMotion:
    """Drop the standstill before and after the motion; pauses within it stay.

    Args:
        margin_s: standstill that is kept before and after the motion, s.
        threshold: a joint moves when it is further from its first or last position than this fraction of its range over the log.

    Examples:
        >>> import dynid
        >>> log = dynid.demo_recording(seconds=4.0)
        >>> len(dynid.process(log, [dynid.TrimToMotion(), dynid.Differentiate()], edge_s=0.0)) > 390
        True
    """

    margin_s: float = 0.0
    threshold: float = 1e-3

    needs_uniform_clock: ClassVar[bool] = False
    makes_uniform_clock: ClassVar[bool] = False
    gathers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.margin_s) and self.margin_s >= 0.0):
            raise InputError(f"TrimToMotion margin_s is {self.margin_s}, expected zero or a positive number")
        if not 0.0 < self.threshold < 1.0:
            raise InputError(f"TrimToMotion threshold is {self.threshold}, expected a fraction between 0 and 1")

    def transient(self) -> Extent:
        """Nothing is lost."""
        return Extent()

    def over(self, upstream: Upstream, tally: Tally) -> Iterator[Signals]:
        """Two passes find the motion, a third yields it."""
        from_s, to_s = self.interval(upstream)
        for piece in upstream.pieces(tally):
            kept = _inside(piece, from_s, to_s, STANDING, tally)
            if len(kept):
                yield kept

    def interval(self, upstream: Upstream) -> tuple[float, float]:
        """When the motion starts and ends, margins included."""
        first = last = low = high = None
        for piece in upstream.pieces(Tally()):
            q = piece.values["position"]
            first = q[0] if first is None else first
            last = q[-1]
            low = q.min(axis=0) if low is None else np.minimum(low, q.min(axis=0))
            high = q.max(axis=0) if high is None else np.maximum(high, q.max(axis=0))
        if first is None or last is None or low is None or high is None:
            raise InputError("TrimToMotion was given a log without rows")
        if not np.any(high > low):
            raise InputError("TrimToMotion finds no motion: every joint stays where it is through the whole log")
        limit = np.where(high > low, self.threshold * (high - low), np.inf)
        start, end = np.inf, -np.inf
        for piece in upstream.pieces(Tally()):
            q, t = piece.values["position"], piece.time
            left = np.flatnonzero((np.abs(q - first) > limit).any(axis=1))
            away = np.flatnonzero((np.abs(q - last) > limit).any(axis=1))
            start = min(start, float(t[left[0]])) if left.size else start
            end = max(end, float(t[away[-1]])) if away.size else end
        return start - self.margin_s, end + self.margin_s


def _inside(piece: Signals, from_s: float | None, to_s: float | None, reason: str, tally: Tally) -> Signals:
    first = 0 if from_s is None else int(np.searchsorted(piece.time, from_s, side="left"))
    stop = len(piece) if to_s is None else int(np.searchsorted(piece.time, to_s, side="right"))
    kept = piece.cut(slice(first, max(first, stop)))
    tally.count(reason, len(piece) - len(kept))
    return kept
