"""Leave out rows that repeat the row before: the logger was faster than the robot answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.recording.signals import Signals, Tally, Upstream
from dynid.recording.steps.step import Extent

REPEATED = "{n} rows that repeat the row before left out"


@dataclass(frozen=True)
class DropRepeated:
    """Drop rows in which every quantity of every joint equals that of the row before; the clock is then no longer uniform.

    Examples:
        >>> import dynid
        >>> len(dynid.process(dynid.demo_recording(seconds=4.0), [dynid.DropRepeated(), dynid.Differentiate()], edge_s=0.0))
        400
    """

    needs_uniform_clock: ClassVar[bool] = False
    makes_uniform_clock: ClassVar[bool] = False
    gathers: ClassVar[bool] = False

    def transient(self) -> Extent:
        """Nothing is lost."""
        return Extent()

    def over(self, upstream: Upstream, tally: Tally) -> Iterator[Signals]:
        """Compare each row with the one before it, across pieces too."""
        for _, segment in groupby(upstream.pieces(tally), key=lambda piece: piece.segment):
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
