"""Filter and decimate regressor and torque together.

``F(tau) = F(Y) phi`` holds for any linear filter ``F`` along time, whatever its phase and however sharp. So rows are
filtered after they are made, above the motion and below the noise, and then thinned out to what is left in the band:
fewer rows, nearly independent errors, and the same parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.samples import Samples
from dynid.recording.steps.lowpass import EDGE_S
from dynid.recording.steps.zero_phase import filter_window, memory_rows

_WINDOW_ROWS = 2048
_IN_BAND = 0.8  # of half the rate that is left


@dataclass(frozen=True)
class FilterAndDecimate:
    """Zero-phase Butterworth low-pass on the columns of ``[W tau]``, of which every ``every``-th row is kept.

    The cut-off is ``cutoff_hz``, by default 0.8 of half the rate that is left. At both ends of every uninterrupted part
    ``edge_s`` seconds are left out, by default 0.3 s or three filter time constants, whichever is longer.
    """

    every: int
    cutoff_hz: float | None = None
    order: int = 4
    edge_s: float | None = None

    def __post_init__(self) -> None:
        if self.every != int(self.every) or self.every < 1:
            raise InputError(f"FilterAndDecimate every is {self.every}, expected a whole number of rows, 1 or more")
        if self.every == 1 and self.cutoff_hz is None:
            raise InputError("FilterAndDecimate keeps every row and has no cut-off: give cutoff_hz or every > 1")
        if self.cutoff_hz is not None and not (np.isfinite(self.cutoff_hz) and self.cutoff_hz > 0.0):
            raise InputError(f"FilterAndDecimate cutoff_hz is {self.cutoff_hz}, expected a positive number of hertz")
        if self.order not in range(1, 13):
            raise InputError(f"FilterAndDecimate order is {self.order}, expected a whole number from 1 to 12")
        if self.edge_s is not None and not (np.isfinite(self.edge_s) and self.edge_s >= 0.0):
            raise InputError(f"FilterAndDecimate edge_s is {self.edge_s}, expected zero or a positive number")

    def segments(self, samples: Iterable[Samples]) -> Iterator[tuple[Samples, slice]]:
        """Windows that overlap by the memory of the filter, each with the rows it answers for.

        ``samples`` are consecutive pieces; samples held whole are one piece.
        """
        found = False
        for part in _uniform_parts(samples):
            for window in self._windows(part):
                found = True
                yield window
        if not found:
            raise InputError("samples hold no row to filter")

    def apply(self, rows: Array, piece: Samples, part: slice) -> Array:
        """Filtered rows of a window, thinned out."""
        # Ends of a window that are not ends of the log are further away than the filter remembers.
        fraction = self.fraction(_period_s(piece))
        return filter_window(np.asarray(rows), self.order, fraction, True, True, "part of the samples")[part]

    def fraction(self, period_s: float) -> float:
        """The cut-off as a fraction of half the sampling rate."""
        left_hz = 0.5 / period_s / self.every
        if self.cutoff_hz is None:
            return _IN_BAND / self.every
        if self.cutoff_hz >= left_hz:
            raise InputError(
                f"FilterAndDecimate cut-off {self.cutoff_hz:g} Hz is not below half the rate that is left, "
                f"{left_hz:.6g} Hz after keeping every {self.every}. row"
            )
        return self.cutoff_hz * 2.0 * period_s

    def edge_rows(self, period_s: float) -> int:
        """Rows left out at either end of a part."""
        fraction = self.fraction(period_s)
        seconds = max(EDGE_S, 3.0 * 2.0 * period_s / (2.0 * np.pi * fraction)) if self.edge_s is None else self.edge_s
        return int(np.ceil(seconds / period_s - 1e-6))

    def _windows(self, pieces: Iterator[Samples]) -> Iterator[tuple[Samples, slice]]:
        held = next(pieces)
        while len(held) < 2 and (following := next(pieces, None)) is not None:
            held = _joined(held, following)
        if len(held) < 2:
            raise InputError("a part of the samples has 1 row, too short to filter and decimate")
        period_s = _period_s(held)
        context = memory_rows(self.order, self.fraction(period_s))
        edge = self.edge_rows(period_s)
        row = 0  # number in the part of the first row held
        own = edge  # number in the part of the next row to answer for
        ended = False
        while True:
            while not ended and row + len(held) < own + max(_WINDOW_ROWS, context) + max(context, edge):
                following = next(pieces, None)
                ended = following is None
                held = held if following is None else _joined(held, following)
            behind = row + len(held)
            stop = behind - edge if ended else min(own + max(_WINDOW_ROWS, context), behind - max(context, edge))
            if ended and row == 0 and stop <= own and own == edge:
                raise InputError(
                    f"a part of the samples has {behind} rows, too short to filter and decimate: "
                    f"{edge} rows are left out at either end"
                )
            first = own + -own % self.every
            if first < stop:
                end = min(behind, stop + context)
                yield held[: end - row], slice(first - row, stop - row, self.every)
            if ended and stop >= behind - edge:
                return
            own = max(own, stop)
            keep = max(row, own - context)
            held, row = held[keep - row :], keep


def _uniform_parts(samples: Iterable[Samples]) -> Iterator[Iterator[Samples]]:
    """Parts without a gap, each as an iterator of pieces that must be used up before the next is asked for."""
    flow = _cut_at_gaps(samples)
    first = next(flow, None)

    def part(begin: Samples) -> Iterator[Samples]:
        nonlocal first
        first = None
        yield begin
        for starts, piece in flow:
            if starts:
                first = (True, piece)
                return
            yield piece

    while first is not None:
        yield part(first[1])


def _cut_at_gaps(samples: Iterable[Samples]) -> Iterator[tuple[bool, Samples]]:
    """Pieces of equally spaced rows, and whether a part starts with them."""
    last_s = period_s = np.nan
    for piece in samples:
        if len(piece) == 0:
            continue
        steps = np.diff(piece.time, prepend=last_s)
        if np.isnan(period_s) and len(piece) > 1:
            period_s = float(np.median(steps[1:]))
        late = steps > 1.5 * period_s
        uneven = ~late & (np.abs(steps - period_s) > 0.01 * period_s)
        if uneven.any():
            row = int(np.argmax(uneven))
            raise InputError(
                f"samples are not equally spaced: a step of {1e3 * steps[row]:.6g} ms at {piece.time[row]:.6g} s among "
                f"steps of {1e3 * period_s:.6g} ms; resample the recording before filtering rows"
            )
        bounds = [0, *(int(row) for row in np.flatnonzero(late) if row > 0), len(piece)]
        for k, (start, stop) in enumerate(pairwise(bounds)):
            yield k > 0 or bool(np.isnan(last_s)) or bool(late[0]), piece[start:stop]
        last_s = float(piece.time[-1])


def _period_s(samples: Samples) -> float:
    return float(samples.time[-1] - samples.time[0]) / (len(samples) - 1)


def _joined(one: Samples, other: Samples) -> Samples:
    arrays: dict[str, Any] = {}
    for field in fields(Samples):
        mine = getattr(one, field.name)
        if field.name != "notes" and mine is not None:
            arrays[field.name] = np.concatenate([mine, getattr(other, field.name)])
    return Samples(notes=one.notes, **arrays)
