"""Signals on their way from a recording to samples: consecutive rows of named quantities on one clock.

What runs along time (filters, integrals, windows) must not run over a gap: :func:`uninterrupted_parts` cuts pieces of any kind there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array
from dynid.errors import InputError

SMOOTHED: tuple[str, ...] = ("position", "velocity", "acceleration", "torque")
"""What a filter acts on by default, as far as it is there: all alike, so that they keep the same phase."""


@dataclass(frozen=True, eq=False)
class Signals:
    """Rows ``first_row ..`` of one uninterrupted segment, ``values`` by quantity, each (rows, joints).

    ``period_s`` is the step of a uniform clock, None on the clock as logged. ``start_s`` is the time that rows of the
    segment are counted from, wherever this piece lies in it. ``periodic`` rows are one period of a motion: the last is
    followed by the first.
    """

    time: Array
    values: Mapping[str, Array]
    start_s: float
    first_row: int = 0
    segment: int = 0
    period_s: float | None = None
    periodic: bool = False

    def __len__(self) -> int:
        return len(self.time)

    @property
    def end_s(self) -> float:
        """Time of the last row of this piece."""
        return float(self.time[-1])

    def cut(self, rows: slice) -> Signals:
        """Some consecutive rows."""
        start, stop, _ = rows.indices(len(self))
        return replace(
            self,
            time=self.time[start:stop],
            values={name: array[start:stop] for name, array in self.values.items()},
            first_row=self.first_row + start,
        )

    def chosen(self, rows: NDArray[Any], **changes: Any) -> Signals:
        """The rows at some indices or of a mask; the caller says what becomes of the row numbers."""
        values = {name: array[rows] for name, array in self.values.items()}
        return replace(self, **{"time": self.time[rows], "values": values, **changes})

    def updated(self, values: Mapping[str, Array]) -> Signals:
        """Some quantities replaced or added."""
        return replace(self, values={**self.values, **values})

    def joined(self, other: Signals) -> Signals:
        """These rows and the next piece of the same segment."""
        values = {name: np.concatenate([array, other.values[name]]) for name, array in self.values.items()}
        return replace(self, time=np.concatenate([self.time, other.time]), values=values)

    def need(self, names: Sequence[str], step: object) -> None:
        """Refuse in one sentence unless all the named quantities are there."""
        for name in names:
            if name not in self.values:
                held = ", ".join(key for key in self.values if key != "raw_torque")
                raise InputError(f"step {step} acts on '{name}', but at that point the log holds only {held}")


@dataclass
class Tally:
    """What a pass over the data did, for the notes: sentences, and counts of rows by reason."""

    sentences: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def say(self, sentence: str) -> None:
        """Note a sentence once."""
        if sentence not in self.sentences:
            self.sentences.append(sentence)

    def count(self, reason: str, rows: int) -> None:
        """Add rows to a reason; the reason is a sentence with ``{n}`` in the place of the number."""
        if rows:
            self.counts[reason] = self.counts.get(reason, 0) + rows

    @property
    def notes(self) -> tuple[str, ...]:
        """All of it as sentences."""
        return (*self.sentences, *(reason.format(n=rows) for reason, rows in self.counts.items()))


Upstream: TypeAlias = Callable[[Tally], Iterator[Signals]]
"""A pass over signals, in pieces, in order, as often as it is called; what it drops is entered in the tally."""


GAP = 1.5
"""Sample periods from which a step interrupts a log."""
UNEVEN = 0.01
"""Part of the sample period by which a step of an evenly sampled log may differ."""


class Piece(Protocol):
    """Consecutive rows of a log with their times."""

    @property
    def time(self) -> Array | None: ...

    def __len__(self) -> int: ...

    def cut(self, rows: slice) -> Self:
        """Some consecutive rows."""
        ...

    def joined(self, other: Self) -> Self:
        """These rows and those that follow them."""
        ...


P = TypeVar("P", bound=Piece)


def uninterrupted_parts(
    pieces: Iterable[P], *, even: bool = True, remedy: str = "resample the recording first"
) -> Iterator[tuple[float, Iterator[P]]]:
    """Sample period and pieces of every part without a gap; a part must be used up before the next is asked for.

    ``even`` refuses steps that differ.
    """
    flow = _cut_at_gaps(pieces, even, remedy)
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


def _cut_at_gaps(pieces: Iterable[P], even: bool, remedy: str) -> Iterator[tuple[bool, float, P]]:
    """Pieces without a gap inside, each with the sample period and whether an uninterrupted part starts with it."""
    last_s = period_s = np.nan
    held: P | None = None  # a single first row, from which no period can be told
    for piece in pieces:
        if held is not None:
            piece = held.joined(piece)
        if piece.time is None:
            raise InputError("these rows have no time, so no filter can run along them")
        held = piece if np.isnan(period_s) and len(piece) == 1 else None
        if held is not None or not len(piece):
            continue
        steps = np.diff(piece.time, prepend=last_s)
        if np.isnan(period_s):
            period_s = _period_of(steps[1:])
        late = steps > GAP * period_s
        if even:
            # Refuse steps other than the sample period; those that are late interrupt the log.
            uneven = ~late & (np.abs(steps - period_s) > UNEVEN * period_s)
            if uneven.any():
                row = int(np.argmax(uneven))
                raise InputError(
                    f"samples are not equally spaced: a step of {1e3 * steps[row]:.6g} ms at {piece.time[row]:.6g} s among "
                    f"steps of {1e3 * period_s:.6g} ms; {remedy}"
                )
        bounds = [0, *(int(row) for row in np.flatnonzero(late) if row > 0), len(piece)]
        for k, (start, stop) in enumerate(pairwise(bounds)):
            starts = k > 0 or bool(np.isnan(last_s)) or bool(late[0])
            yield starts, period_s, piece.cut(slice(start, stop))
        last_s = float(piece.time[-1])
    if held is not None:
        raise InputError("a part of the samples has 1 row, too short for anything that runs along time")


def _period_of(steps: Array) -> float:
    """The sample period of a log: the mean feels the rounding of the stamps least, the median no gap."""
    usual = float(np.median(steps))
    return float(np.mean(steps[steps <= GAP * usual]))
