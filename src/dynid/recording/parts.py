"""Parts of a log without a gap: what runs along time (filters, integrals, windows) must not run over one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.errors import InputError

GAP = 1.5
"""Sample periods from which a step interrupts a log."""
UNEVEN = 0.01
"""Part of the sample period by which a step of an evenly sampled log may differ."""


class Piece(Protocol):
    """Consecutive rows of a log with their times."""

    @property
    def time(self) -> Array: ...

    def __len__(self) -> int: ...


P = TypeVar("P", bound=Piece)


def uninterrupted_parts(
    pieces: Iterable[P],
    cut: Callable[[P, slice], P],
    joined: Callable[[P, P], P],
    *,
    even: bool = True,
    remedy: str = "resample the recording first",
) -> Iterator[tuple[float, Iterator[P]]]:
    """Sample period and pieces of every part without a gap; a part must be used up before the next is asked for.

    ``cut`` takes some rows of a piece and ``joined`` puts two pieces together; ``even`` refuses steps that differ.
    """
    flow = _cut_at_gaps(pieces, cut, joined, even, remedy)
    first = next(flow, None)

    def part(begin: P) -> Iterator[P]:
        nonlocal first
        first = None
        yield begin
        for starts, period_s, piece in flow:
            if starts:
                first = (True, period_s, piece)
                return
            yield piece

    while first is not None:
        yield first[1], part(first[2])


def _cut_at_gaps(
    pieces: Iterable[P], cut: Callable[[P, slice], P], joined: Callable[[P, P], P], even: bool, remedy: str
) -> Iterator[tuple[bool, float, P]]:
    """Pieces without a gap inside, each with the sample period and whether an uninterrupted part starts with it."""
    last_s = period_s = np.nan
    held: P | None = None  # a single first row, from which no period can be told
    for piece in pieces:
        if held is not None:
            piece = joined(held, piece)
        held = piece if np.isnan(period_s) and len(piece) == 1 else None
        if held is not None or not len(piece):
            continue
        steps = np.diff(piece.time, prepend=last_s)
        if np.isnan(period_s):
            period_s = _period_of(steps[1:])
        late = steps > GAP * period_s
        if even:
            _refuse_uneven(piece.time, steps, period_s, late, remedy)
        bounds = [0, *(int(row) for row in np.flatnonzero(late) if row > 0), len(piece)]
        for k, (start, stop) in enumerate(pairwise(bounds)):
            starts = k > 0 or bool(np.isnan(last_s)) or bool(late[0])
            yield starts, period_s, cut(piece, slice(start, stop))
        last_s = float(piece.time[-1])
    if held is not None:
        raise InputError("a part of the samples has 1 row, too short for anything that runs along time")


def _period_of(steps: Array) -> float:
    """The sample period of a log: the mean feels the rounding of the stamps least, the median no gap."""
    usual = float(np.median(steps))
    return float(np.mean(steps[steps <= GAP * usual]))


def _refuse_uneven(time: Array, steps: Array, period_s: float, late: BoolArray, remedy: str) -> None:
    """Refuse steps other than the sample period; those that are late interrupt the log."""
    uneven = ~late & (np.abs(steps - period_s) > UNEVEN * period_s)
    if uneven.any():
        row = int(np.argmax(uneven))
        raise InputError(
            f"samples are not equally spaced: a step of {1e3 * steps[row]:.6g} ms at {time[row]:.6g} s among "
            f"steps of {1e3 * period_s:.6g} ms; {remedy}"
        )
