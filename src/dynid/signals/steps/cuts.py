"""Steps that leave rows out or repair them: cuts in time, standstill, what filters leave unfit at the ends, gaps, repeated rows, and
jumps of an angle that was logged between -pi and pi, or 0 and 2 pi.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np

from dynid.arrays import Array, BoolArray, check_positive
from dynid.errors import InputError
from dynid.signals.steps.step import Extent, LocalStep, Signals, Step, Tally, Upstream

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
        >>> from dynid.signals.steps.cuts import Trim
        >>> samples = dynid.process(dynid.demo_recording(), [Trim(2.0, 5.0), dynid.Differentiate()], edge_s=0.0)
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
class TrimToMotion(Step):
    """Drop the standstill before and after the motion; pauses within it stay.

    Args:
        margin_s: standstill that is kept before and after the motion, s.
        threshold: a joint moves when it is further from its first or last position than this fraction of its range over the log.

    Examples:
        >>> import dynid
        >>> from dynid.signals.steps.cuts import TrimToMotion
        >>> log = dynid.demo_recording(seconds=4.0)
        >>> len(dynid.process(log, [TrimToMotion(), dynid.Differentiate()], edge_s=0.0)) > 390
        True
    """

    margin_s: float = 0.0
    threshold: float = 1e-3

    def __post_init__(self) -> None:
        check_positive("TrimToMotion margin_s", self.margin_s, or_zero=True)
        if not 0.0 < self.threshold < 1.0:
            raise InputError(f"TrimToMotion threshold is {self.threshold}, expected a fraction between 0 and 1")

    def over(self, upstream: Upstream, tally: Tally) -> Iterator[Signals]:
        """Two passes find the motion, a third yields it."""
        from_s, to_s = self.interval(upstream)
        for piece in upstream(tally):
            kept = _inside(piece, from_s, to_s, STANDING, tally)
            if len(kept):
                yield kept

    def interval(self, upstream: Upstream) -> tuple[float, float]:
        """When the motion starts and ends, margins included."""
        first = last = low = high = None
        for piece in upstream(Tally()):
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
        for piece in upstream(Tally()):
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
        >>> from dynid.signals.steps.cuts import DropEdges
        >>> log = dynid.demo_recording(seconds=4.0)
        >>> len(dynid.process(log, [dynid.Differentiate(), DropEdges(seconds=1.0)], edge_s=0.0))
        200
    """

    seconds: float = 0.0
    rows: int = 0

    def __post_init__(self) -> None:
        check_positive("DropEdges seconds", self.seconds, or_zero=True)
        check_positive("DropEdges rows", self.rows, or_zero=True)

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


SHORT = "{n} rows in parts between gaps too short to use left out"


@dataclass(frozen=True)
class SplitAtGaps(Step):
    """Split the log where its clock has a gap; every part is processed separately.

    Args:
        longer_than_s: time between two rows that counts as a gap, s.
        shortest_s: parts shorter than this are dropped, s.

    Examples:
        >>> import dynid
        >>> from dynid.signals.steps.cuts import SplitAtGaps
        >>> log = dynid.demo_recording(seconds=4.0)
        >>> len(dynid.process(log, [SplitAtGaps(longer_than_s=0.05), dynid.Differentiate()], edge_s=0.0))
        400
    """

    longer_than_s: float
    shortest_s: float = 1.0

    def __post_init__(self) -> None:
        check_positive("SplitAtGaps longer_than_s", self.longer_than_s)
        check_positive("SplitAtGaps shortest_s", self.shortest_s, or_zero=True)

    def over(self, upstream: Upstream, tally: Tally) -> Iterator[Signals]:
        """Number the parts and their rows; hold each part back until it is long enough."""
        segment, row, start_s = -1, 0, 0.0
        held: Signals | None = None  # the part so far, while it is too short
        for begins, piece in self._cut(upstream, tally):
            if begins:
                if held is None:
                    segment += 1
                else:
                    tally.count(SHORT, len(held))
                row, start_s, held = 0, float(piece.time[0]), None
            part = replace(piece, segment=segment, first_row=row, start_s=start_s)
            # Rows are joined only while the part is short; later pieces pass as they come.
            if held is not None:
                part = held.joined(part)
            elif row:
                yield part
                row += len(piece)
                continue
            row += len(piece)
            held = part
            if part.time[-1] - start_s >= self.shortest_s:
                yield part
                held = None
        if held is not None:
            tally.count(SHORT, len(held))

    def _cut(self, upstream: Upstream, tally: Tally) -> Iterator[tuple[bool, Signals]]:
        """Pieces without a gap inside, and whether one lies before them."""
        last: Signals | None = None
        for piece in upstream(tally):
            cuts = 1 + np.flatnonzero(np.diff(piece.time) > self.longer_than_s)
            begins = (
                last is None or last.segment != piece.segment or bool(piece.time[0] - last.time[-1] > self.longer_than_s)
            )
            for first, stop in pairwise([0, *cuts.tolist(), len(piece)]):
                yield begins, piece.cut(slice(first, stop))
                begins = True
            last = piece


REPEATED = "{n} rows that repeat the row before left out"


@dataclass(frozen=True)
class DropRepeated(Step):
    """Drop rows in which every quantity of every joint equals that of the row before; the clock is then no longer uniform.

    Examples:
        >>> import dynid
        >>> from dynid.signals.steps.cuts import DropRepeated
        >>> len(dynid.process(dynid.demo_recording(seconds=4.0), [DropRepeated(), dynid.Differentiate()], edge_s=0.0))
        400
    """

    def over(self, upstream: Upstream, tally: Tally) -> Iterator[Signals]:
        """Compare each row with the one before it, across pieces too."""
        for _, segment in groupby(upstream(tally), key=lambda piece: piece.segment):
            before: list[Array] | None = None
            row = 0
            for piece in segment:
                arrays = list(piece.values.values())
                kept = ~repeated_rows(arrays, before)
                before = [array[-1:] for array in arrays]
                tally.count(REPEATED, int(len(kept) - np.count_nonzero(kept)))
                result = replace(piece.chosen(kept), first_row=row, period_s=None)
                row += len(result)
                if len(result):
                    yield result


def repeated_rows(arrays: list[Array], before: list[Array] | None = None) -> BoolArray:
    """Which rows equal the row before in all arrays; ``before`` is the last row of what came earlier."""
    same = np.ones(len(arrays[0]), dtype=np.bool_)
    same[1:] = np.logical_and.reduce([(array[1:] == array[:-1]).all(axis=1) for array in arrays])
    same[0] = before is not None and all(
        bool((array[0] == last[0]).all()) for array, last in zip(arrays, before, strict=True)
    )
    return same


@dataclass(frozen=True)
class Unwrap(Step):
    """Positions without jumps of more than half a turn.

    Args:
        joints: joints to unwrap, counted from 1; None for all.
        turn: length of a turn in the unit of position, rad.

    Examples:
        >>> import dynid
        >>> from dynid.signals.steps.cuts import Unwrap
        >>> samples = dynid.process(dynid.demo_recording(seconds=4.0), [Unwrap(joints=(1, 7)), dynid.Differentiate()])
        >>> samples.position.shape[1]
        7
    """

    joints: tuple[int, ...] | None = None
    turn: float = 2.0 * np.pi

    def __post_init__(self) -> None:
        check_positive("Unwrap turn", self.turn)

    def over(self, upstream: Upstream, tally: Tally) -> Iterator[Signals]:
        """Whole turns are carried from piece to piece."""
        last: Array | None = None
        for piece in upstream(tally):
            q = piece.values["position"].copy()
            columns = self._columns(q.shape[1])
            angle = q[:, columns]
            rows = angle if last is None else np.concatenate([last, angle])
            straight = np.unwrap(rows, axis=0, period=self.turn)
            straight = straight if last is None else straight[1:]
            q[:, columns] = straight
            last = straight[-1:]
            yield piece.updated({"position": q})

    def _columns(self, n_joints: int) -> list[int]:
        numbers = range(1, n_joints + 1) if self.joints is None else self.joints
        for number in numbers:
            if not 1 <= number <= n_joints:
                raise InputError(f"Unwrap names joint {number}, the log has {n_joints} joints counted from 1")
        return [number - 1 for number in numbers]
