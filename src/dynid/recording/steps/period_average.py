"""Average over the periods of a periodic motion: ``x(phi) = 1/P sum_p x(phi + p T)``.

Whatever does not repeat with the motion falls with the square root of the number of periods; the spread between periods
measures it. One period stands for the endless motion, so steps that follow see no ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.signals import Signals, Tally, Upstream, joined
from dynid.recording.steps.resample import Resample, nominal_period_s
from dynid.recording.steps.step import HEAD_ROWS, Extent


@dataclass(frozen=True)
class PeriodAverage:
    """Average a periodic motion over its periods; rows after the last whole period are dropped.

    Args:
        period_s: length of a period, s.
        skip: number of periods at the start that are left out.
        rows: rows of the averaged period; None for as many as the log has on average.
        method: ``linear`` or ``cubic`` interpolation onto those rows.

    Examples:
        >>> import dynid
        >>> log = dynid.demo_recording(seconds=4.0)
        >>> len(dynid.process(log, [dynid.PeriodAverage(period_s=2.0), dynid.Differentiate()], edge_s=0.0))
        200
    """

    period_s: float
    skip: int = 0
    rows: int | None = None
    method: Literal["linear", "cubic"] = "linear"

    needs_uniform_clock: ClassVar[bool] = False
    makes_uniform_clock: ClassVar[bool] = True
    gathers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.period_s) and self.period_s > 0.0):
            raise InputError(f"PeriodAverage period_s is {self.period_s}, expected a positive number")
        if self.skip < 0:
            raise InputError(f"PeriodAverage skip is {self.skip} periods, expected zero or more")
        if self.rows is not None and self.rows < 8:
            raise InputError(f"PeriodAverage rows is {self.rows}, expected at least 8")

    def transient(self) -> Extent:
        """Nothing is lost."""
        return Extent()

    def over(self, upstream: Upstream, tally: Tally) -> Iterator[Signals]:
        """Read everything, yield one period."""
        n = self.rows or _rows_of(upstream, self.period_s)
        resampling = Resample(period_s=self.period_s / n, method=self.method)
        sums: _Sums | None = None
        rest: Signals | None = None
        seen = 0
        for piece in resampling.over(upstream, tally):
            if piece.segment != 0:
                raise InputError("PeriodAverage needs a log without interruption; average its parts one by one")
            rest = piece if rest is None else joined(rest, piece)
            whole = len(rest) // n
            drop = min(whole, max(0, self.skip - seen))
            seen += whole
            for p in range(drop, whole):
                period = rest.cut(slice(p * n, (p + 1) * n))
                sums = _Sums(period) if sums is None else sums
                sums.add(period)
            rest = rest.cut(slice(whole * n, None))
        if sums is None:
            length = (0 if rest is None else len(rest)) + seen * n
            raise InputError(
                f"log holds {length / n:.3g} periods of {self.period_s:g} s, expected at least {self.skip + 1} whole ones"
            )
        mean = sums.mean()
        tally.say(f"mean of {sums.periods} periods of {self.period_s:g} s, {n} rows each, raw torque too")
        tally.count("{n} resampled rows beyond the last whole period left out", 0 if rest is None else len(rest))
        if sums.periods > 1 and "torque" in mean:
            spread = ", ".join(f"{value:.3g}" for value in sums.deviation("torque"))
            tally.say(f"torque differs from period to period by a standard deviation of {spread} by joint")
        yield replace(sums.first, values=mean, first_row=0, start_s=float(sums.first.time[0]), periodic=True)


class _Sums:
    """Sums over periods, about the first one, so that squares of small differences keep their digits."""

    def __init__(self, first: Signals) -> None:
        self.first, self.periods = first, 0
        self._total = {name: np.zeros_like(array) for name, array in first.values.items()}
        self._square = {name: np.zeros_like(array) for name, array in first.values.items()}

    def add(self, period: Signals) -> None:
        """One period more."""
        for name, array in period.values.items():
            difference = array - self.first.values[name]
            self._total[name] += difference
            self._square[name] += difference**2
        self.periods += 1

    def mean(self) -> dict[str, Array]:
        """Of every signal, row by row."""
        return {name: array + self._total[name] / self.periods for name, array in self.first.values.items()}

    def deviation(self, name: str) -> Array:
        """How much a signal differs from period to period, by joint."""
        total, square, periods = self._total[name], self._square[name], self.periods
        variance = (square - total**2 / periods).sum(axis=0) / (periods - 1) / len(total)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def _rows_of(upstream: Upstream, period_s: float) -> int:
    head: Signals | None = None
    for piece in upstream.pieces(Tally()):
        head = piece if head is None else joined(head, piece)
        if len(head) >= HEAD_ROWS:
            break
    if head is None:
        raise InputError("PeriodAverage was given a log without rows")
    rows = round(period_s / (head.period_s or nominal_period_s(head.time)))
    if rows < 8:
        raise InputError(f"a period of {period_s:g} s holds {rows} rows of the log, expected at least 8")
    return rows
