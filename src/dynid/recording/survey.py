"""What one pass over a long log shows: its length, its gaps, where joints moved, and where reading may begin for a part of it.

Nothing that is kept grows with the log, but for one number in so many thousand rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, BoolArray, freeze
from dynid.errors import InputError
from dynid.recording.finding import Finding, dropped_rows
from dynid.recording.motion import Recording
from dynid.recording.steps.resample import nominal_period_s
from dynid.recording.steps.step import HEAD_ROWS
from dynid.recording.stream import RecordingStream

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
                    "gaps",
                    "warning",
                    f"rows are missing in {len(self.gaps)} places: up to {1e3 * (longest[1] - longest[0]):.3g} ms, "
                    f"at {longest[0]:.4g} s",
                    "identify takes the parts between as logs of their own",
                    values={"count": len(self.gaps), "longest_s": longest[1] - longest[0]},
                )
            )
        return tuple(found)


def survey(stream: RecordingStream) -> Survey:
    """One pass over a log."""
    walk = _Walk()
    row = 0
    for piece, dropped in stream.pieces():
        walk.dropped += dropped
        if piece is not None:
            walk.add(piece, row)
            row += piece.n_samples
        row += dropped
    if walk.n_rows < 2:
        raise InputError(f"{stream.source.path}: {walk.n_rows} rows are left of the log, expected at least 2")
    found = walk.found()
    return replace(found, index=stream.index) if stream.index else found  # rows before a part are not counted


class _Walk:
    """Statistics while the pieces go by."""

    def __init__(self) -> None:
        self.n_rows = self.dropped = 0
        self._torque_seen = False
        self._first: float | None = None
        self._last: Recording | None = None
        self._head = np.empty(0)
        self._steps: list[Array] = []
        self._n_steps, self._every = 0, 1
        self._long: list[tuple[float, float]] = []
        self._wrapped: BoolArray | None = None
        self._lowest: Array | None = None
        self._highest: Array | None = None
        self._index: list[tuple[float, int]] = []

    def add(self, piece: Recording, row: int) -> None:
        """One more piece, whose first row has this number in the file."""
        if self._index == [] or row - self._index[-1][1] >= INDEX_ROWS:
            self._index.append((float(piece.time[0]), row))
        self._first = float(piece.time[0]) if self._first is None else self._first
        self.n_rows += piece.n_samples
        if len(self._head) < HEAD_ROWS:
            self._head = np.concatenate([self._head, piece.time])[:HEAD_ROWS]
        low, high = piece.position.min(axis=0), piece.position.max(axis=0)
        self._lowest = low if self._lowest is None else np.minimum(self._lowest, low)
        self._highest = high if self._highest is None else np.maximum(self._highest, high)
        self._torque_seen = self._torque_seen or (piece.torque is not None and bool(piece.torque.any()))
        before = self._last
        time = piece.time if before is None else np.concatenate([before.time, piece.time])
        position = piece.position if before is None else np.concatenate([before.position, piece.position])
        steps = np.diff(time)
        late = np.flatnonzero(steps > LEAST_GAP_S)
        self._long += zip(time[late].tolist(), time[late + 1].tolist(), strict=True)
        jumps: BoolArray = np.asarray((np.abs(np.abs(np.diff(position, axis=0)) - 2.0 * np.pi) < ABOUT_A_TURN).any(axis=0))
        self._wrapped = jumps if self._wrapped is None else np.logical_or(self._wrapped, jumps)
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

    def found(self) -> Survey:
        assert self._first is not None
        assert self._last is not None
        assert self._lowest is not None
        assert self._highest is not None
        assert self._wrapped is not None
        known = Survey(
            n_rows=self.n_rows,
            start_s=self._first,
            end_s=float(self._last.time[-1]),
            step_s=float(np.median(np.concatenate(self._steps))),
            period_s=0.0,
            gaps=(),
            wrapped=tuple((1 + np.flatnonzero(self._wrapped)).tolist()),
            lowest=freeze(self._lowest),
            highest=freeze(self._highest),
            torque_seen=self._torque_seen,
            n_dropped=self.dropped,
            index=tuple(self._index),
        )
        gaps = tuple(gap for gap in self._long if gap[1] - gap[0] > known.gap_s)
        head = self._head[self._head <= gaps[0][0]] if gaps else self._head
        return replace(known, gaps=gaps, period_s=nominal_period_s(head if len(head) > 1 else self._head))
