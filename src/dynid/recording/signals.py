"""Signals on their way from a recording to samples: consecutive rows of named quantities on one clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

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

    def need(self, names: Sequence[str], step: object) -> None:
        """Refuse in one sentence unless all the named quantities are there."""
        for name in names:
            if name not in self.values:
                held = ", ".join(key for key in self.values if key != "raw_torque")
                raise InputError(f"step {step} acts on '{name}', but at that point the log holds only {held}")


def joined(first: Signals, second: Signals) -> Signals:
    """Two consecutive pieces of a segment as one."""
    values = {name: np.concatenate([array, second.values[name]]) for name, array in first.values.items()}
    return replace(first, time=np.concatenate([first.time, second.time]), values=values)


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


class Upstream(Protocol):
    """Signals that can be walked through any number of times, in pieces, in order."""

    def pieces(self, tally: Tally) -> Iterator[Signals]:
        """One pass; what it drops is entered in ``tally``."""
        ...
