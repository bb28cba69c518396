"""Split a log where rows are missing, so that nothing is invented in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from dynid.errors import InputError
from dynid.recording.signals import Signals, Tally, Upstream, joined
from dynid.recording.steps.step import Extent

SHORT = "{n} rows in parts between gaps too short to use left out"


@dataclass(frozen=True)
class SplitAtGaps:
    """Split the log where its clock has a gap; every part is processed separately.

    Args:
        longer_than_s: time between two rows that counts as a gap, s.
        shortest_s: parts shorter than this are dropped, s.

    Examples:
        >>> import dynid
        >>> log = dynid.demo_recording(seconds=4.0)
        >>> len(dynid.process(log, [dynid.SplitAtGaps(longer_than_s=0.05), dynid.Differentiate()], edge_s=0.0))
        400
    """

    longer_than_s: float
    shortest_s: float = 1.0

    needs_uniform_clock: ClassVar[bool] = False
    makes_uniform_clock: ClassVar[bool] = False
    gathers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.longer_than_s) and self.longer_than_s > 0.0):
            raise InputError(f"SplitAtGaps longer_than_s is {self.longer_than_s}, expected a positive number")
        if not (np.isfinite(self.shortest_s) and self.shortest_s >= 0.0):
            raise InputError(f"SplitAtGaps shortest_s is {self.shortest_s}, expected zero or a positive number")

    def transient(self) -> Extent:
        """Nothing is lost."""
        return Extent()

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
                part = joined(held, part)
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
        for piece in upstream.pieces(tally):
            cuts = 1 + np.flatnonzero(np.diff(piece.time) > self.longer_than_s)
            begins = (
                last is None or last.segment != piece.segment or bool(piece.time[0] - last.time[-1] > self.longer_than_s)
            )
            for first, stop in pairwise([0, *cuts.tolist(), len(piece)]):
                yield begins, piece.cut(slice(first, stop))
                begins = True
            last = piece
