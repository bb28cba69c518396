"""A motion log that is read piece by piece, for logs larger than memory, and what one pass over it shows.

The :class:`Survey` of a log has its length, its gaps, where joints moved, and where reading may begin for a part of it. Nothing
that is kept grows with the log, but for one number in so many thousand rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Self

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.finding import Finding, dropped_rows
from dynid.signals.recording import Recording, RecordingSource, checked_joint_names
from dynid.signals.steps.clock import nominal_period_s
from dynid.signals.steps.cuts import SplitAtGaps, Unwrap
from dynid.signals.steps.step import HEAD_ROWS, Step

_LATE_ROWS = 4_000  # a reader sorts late rows in, so the place of a row is known to about so many


@dataclass(frozen=True, eq=False)
class RecordingStream:
    """A motion log read in chunks, in memory that does not grow with its length; may be walked through
    repeatedly.

    ``read_pieces(rows)`` starts at the head of the file and yields ``(recording or None, rows dropped)`` in
    order.
    """

    joint_names: tuple[str, ...]
    quantities: tuple[str, ...]
    source: RecordingSource
    chunk_rows: int
    read_pieces: Callable[[int], Iterator[tuple[Recording | None, int]]] = field(repr=False)
    n_rows_in_file: int | None = None
    start_s: float = -np.inf
    stop_s: float = np.inf
    """Rows with ``start_s <= time < stop_s`` are yielded."""
    read_from: Callable[[int, int], Iterator[tuple[Recording | None, int]]] | None = field(default=None, repr=False)
    """``read_from(rows, row)`` begins at a row of the file, where its format can; None where it cannot."""
    index: tuple[tuple[float, int], ...] = field(default=(), repr=False)
    """Time and row in the file of some places, in order: where reading may begin for a part of the log."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "joint_names", checked_joint_names(self.joint_names))
        if self.chunk_rows < 1:
            raise InputError(f"chunk_rows is {self.chunk_rows}, expected at least 1")

    @property
    def n_joints(self) -> int:
        """Number of joints."""
        return len(self.joint_names)

    def __iter__(self) -> Iterator[Recording]:
        """Chunks of ``chunk_rows`` rows (the last may be shorter)."""
        held: list[Recording] = []
        for piece in self.as_read():
            held.append(piece)
            if sum(one.n_samples for one in held) < self.chunk_rows:
                continue
            joined = Recording.concatenate(held)
            whole = joined.n_samples // self.chunk_rows * self.chunk_rows
            for start in range(0, whole, self.chunk_rows):
                yield joined.cut(start, start + self.chunk_rows)
            held = [joined.cut(whole)] if whole < joined.n_samples else []
        if held:
            yield Recording.concatenate(held)

    def as_read(self) -> Iterator[Recording]:
        """Consecutive rows in pieces of whatever length they are read in, which costs no copy."""
        found, dropped = False, 0
        for piece, n_dropped in self.pieces():
            dropped += n_dropped
            if piece is not None:
                found = True
                yield piece
        if not found:
            self._refuse_empty(dropped)

    def _refuse_empty(self, dropped: int) -> None:
        if np.isfinite(self.start_s) or np.isfinite(self.stop_s):
            raise InputError(f"{self.source.path}: no sample between {self.start_s:g} s and {self.stop_s:g} s")
        raise InputError(f"{self.source.path}: no row is left of the log; {dropped} rows have NaN or repeated stamps")

    def pieces(self, start_s: float = -np.inf, stop_s: float = np.inf) -> Iterator[tuple[Recording | None, int]]:
        """Pieces as they are read, cut to the times asked for, and rows dropped; what lies far before and behind is not read."""
        if start_s > self.start_s or stop_s < self.stop_s:
            yield from self.within(start_s, stop_s).pieces()
            return
        for piece, dropped in self._read():
            if piece is None:
                yield None, dropped
                continue
            first, last = np.searchsorted(piece.time, [self.start_s, self.stop_s])
            if last > first:
                yield (piece if last - first == piece.n_samples else piece.cut(int(first), int(last))), dropped
            if last < piece.n_samples:
                return

    def _read(self) -> Iterator[tuple[Recording | None, int]]:
        before = self._places_before(self.start_s)
        if self.read_from is None or not before:
            return self.read_pieces(self.chunk_rows)
        return self.read_from(self.chunk_rows, max(0, self.index[before - 1][1] - _LATE_ROWS))

    def _places_before(self, time_s: float) -> int:
        return bisect_left(self.index, time_s, key=itemgetter(0))

    def within(self, start_s: float = -np.inf, stop_s: float = np.inf) -> Self:
        """The part with ``start_s <= time < stop_s``, read when it is walked through; it knows the places of its own rows alone."""
        start_s, stop_s = max(self.start_s, start_s), min(self.stop_s, stop_s)
        places = self.index[max(0, self._places_before(start_s) - 1) : self._places_before(stop_s)]
        return replace(self, start_s=start_s, stop_s=stop_s, index=places)

    def between(self, from_s: float | None = None, to_s: float | None = None) -> Self:
        """The part with ``from_s <= time <= to_s`` on the log's own clock."""
        stop_s = np.inf if to_s is None else float(np.nextafter(to_s, np.inf))
        return self.within(-np.inf if from_s is None else from_s, stop_s)

    def read(self) -> Recording:
        """The whole log in memory."""
        return Recording.concatenate(list(self.as_read()))


MOST_STEPS = 1_000_000
"""Steps of the clock that their median is taken from; of longer logs every second, fourth, ... step."""
LEAST_GAP_S, GAP_STEPS = 0.1, 10.0
"""Rows that are missing for longer than both, the second in steps of the clock, interrupt a log."""
ABOUT_A_TURN = 0.5
"""rad by which a jump of the position may differ from a whole turn."""
INDEX_ROWS = 10_000
"""Rows of the file between places where reading may begin, or those of a piece where that is longer."""


@dataclass(frozen=True, eq=False)
class Survey:
    """Statistics of a whole log, from one pass over it."""

    n_rows: int
    start_s: float
    end_s: float
    step_s: float
    """Median step of the clock."""
    period_s: float
    """Sampling period as resampling takes it, from the head of the log."""
    gaps: tuple[tuple[float, float], ...]
    """Last time before and first time after every gap."""
    wrapped: tuple[int, ...]
    """Joints, counted from 1, whose position jumps by about a turn between two rows."""
    lowest: Array
    highest: Array
    """Positions of each joint."""
    torque_seen: bool
    """Whether any joint has a torque other than zero in any row."""
    n_dropped: int
    index: tuple[tuple[float, int], ...]
    """Time and row in the file, for :attr:`RecordingStream.index`."""

    @property
    def duration_s(self) -> float:
        """Time from the first to the last row."""
        return self.end_s - self.start_s

    @property
    def rate_hz(self) -> float:
        """Mean sampling rate."""
        return (self.n_rows - 1) / self.duration_s

    @property
    def gap_s(self) -> float:
        """Time without a row that interrupts the log."""
        return max(LEAST_GAP_S, GAP_STEPS * self.step_s)

    def notes(self, joint_names: Sequence[str]) -> list[str]:
        """What is repaired before any filter, in words."""
        notes = []
        if self.gaps:
            notes.append(
                f"taken as {len(self.gaps) + 1} parts: rows are missing for more than {self.gap_s:.2g} s in {len(self.gaps)} places"
            )
        if self.wrapped:
            names = ", ".join(joint_names[number - 1] for number in self.wrapped)
            notes.append(f"jumps of whole turns in the angle of {names} are undone")
        return notes

    def repairs(self) -> list[Step]:
        """What must be set right before any filter: nothing is invented in long gaps, and angles do not jump by a turn."""
        steps: list[Step] = [SplitAtGaps(self.gap_s)] if self.gaps else []
        return [*steps, Unwrap(self.wrapped)] if self.wrapped else steps

    def findings(self) -> tuple[Finding, ...]:
        """What the whole log shows that a part of it need not."""
        found = []
        if self.n_dropped:
            found.append(
                dropped_rows(
                    f"{self.n_dropped} rows with NaN, a repeated stamp or a wrong number of fields were left out",
                    self.n_dropped,
                    self.n_rows + self.n_dropped,
                )
            )
        if self.gaps:
            longest = max(self.gaps, key=lambda gap: gap[1] - gap[0])
            found.append(
                Finding(
                    "warning",
                    f"rows are missing in {len(self.gaps)} places: up to {1e3 * (longest[1] - longest[0]):.3g} ms, "
                    f"at {longest[0]:.4g} s",
                    "identify takes the parts between as logs of their own",
                    code="gaps",
                    values={"count": len(self.gaps), "longest_s": longest[1] - longest[0]},
                )
            )
        return tuple(found)


def survey(stream: Recording | RecordingStream) -> Survey:
    """One pass over a log, in memory or in its file."""
    walk, row, dropped = _Walk(), 0, 0
    for piece, n_dropped in stream.pieces():
        dropped += n_dropped
        if piece is not None:
            walk.add(piece, row)
            row += piece.n_samples
        row += n_dropped
    if row - dropped < 2:
        raise InputError(f"{stream.source.path}: {row - dropped} rows are left of the log, expected at least 2")
    index = () if isinstance(stream, Recording) else stream.index
    return walk.found(row - dropped, dropped, index)


class _Walk:
    """Statistics while the pieces go by."""

    def __init__(self) -> None:
        self._last: Recording | None = None
        self._head = np.empty(0)
        self._first_s, self._lowest, self._highest = np.inf, np.array(np.inf), np.array(-np.inf)
        self._steps: list[Array] = []
        self._n_steps, self._every = 0, 1
        self._long: list[tuple[float, float]] = []
        self._wrapped, self._torque_seen = np.array(False), False
        self._index: list[tuple[float, int]] = []

    def add(self, piece: Recording, row: int) -> None:
        """One more piece, whose first row has this number in the file."""
        if self._index == [] or row - self._index[-1][1] >= INDEX_ROWS:
            self._index.append((float(piece.time[0]), row))
        self._first_s = min(self._first_s, float(piece.time[0]))
        if len(self._head) < HEAD_ROWS:
            self._head = np.concatenate([self._head, piece.time])[:HEAD_ROWS]
        self._lowest = np.minimum(self._lowest, piece.position.min(axis=0))
        self._highest = np.maximum(self._highest, piece.position.max(axis=0))
        self._torque_seen = self._torque_seen or (piece.torque is not None and bool(piece.torque.any()))
        time, position = piece.time, piece.position
        if self._last is not None:
            time, position = (
                np.concatenate([getattr(self._last, name), getattr(piece, name)]) for name in ("time", "position")
            )
        steps, turned = np.diff(time), np.abs(np.diff(position, axis=0))
        late = np.flatnonzero(steps > LEAST_GAP_S)
        self._long += zip(time[late].tolist(), time[late + 1].tolist(), strict=True)
        self._wrapped = np.logical_or(self._wrapped, (np.abs(turned - 2.0 * np.pi) < ABOUT_A_TURN).any(axis=0))
        self._keep(steps)
        self._last = piece.cut(piece.n_samples - 1)

    def _keep(self, steps: Array) -> None:
        self._steps.append(steps[:: self._every])
        self._n_steps += len(self._steps[-1])
        if self._n_steps > MOST_STEPS:
            kept = np.concatenate(self._steps)[::2]
            self._steps, self._n_steps, self._every = [kept], len(kept), 2 * self._every
        gap_s = GAP_STEPS / 2.0 * float(np.median(self._steps[0])) if len(self._steps[0]) else 0.0
        self._long = [gap for gap in self._long if gap[1] - gap[0] > gap_s]

    def found(self, n_rows: int, n_dropped: int, index: tuple[tuple[float, int], ...]) -> Survey:
        """What the pieces showed; ``index`` is that of a part of a log, the rows before which were not counted."""
        assert self._last is not None
        known = Survey(
            n_rows=n_rows,
            start_s=self._first_s,
            end_s=float(self._last.time[-1]),
            step_s=float(np.median(np.concatenate(self._steps))),
            period_s=0.0,
            gaps=(),
            wrapped=tuple((1 + np.flatnonzero(self._wrapped)).tolist()),
            lowest=freeze(self._lowest),
            highest=freeze(self._highest),
            torque_seen=self._torque_seen,
            n_dropped=n_dropped,
            index=index or tuple(self._index),
        )
        gaps = tuple(gap for gap in self._long if gap[1] - gap[0] > known.gap_s)
        head = self._head[self._head <= gaps[0][0]] if gaps else self._head
        return replace(known, gaps=gaps, period_s=nominal_period_s(head if len(head) > 1 else self._head))
