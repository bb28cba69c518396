"""Steps that change the clock: resample, shift, keep every n-th row, average periods.

Jitter is not noise: the stamps say when the robot was where it was. Interpolating on them, instead of pretending that
rows are equally spaced, is what makes a derivative of a jittery log right. Over ``P`` periods of a periodic motion,
``x(phi) = 1/P sum_p x(phi + p T)``, whatever does not repeat falls with the square root of ``P``, and the spread between periods
measures it; one period stands for the endless motion, so steps that follow see no ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from dynid.arrays import Array, check_positive
from dynid.errors import InputError
from dynid.signals.steps.step import HEAD_ROWS, Extent, LocalStep, Signals, Step, Tally, Upstream, checked_signals

_ROUNDING = 1e-6  # of a step: stamps that were meant to be on the grid
_ON_GRID = 1e-7  # of a step: stamps that are on the grid, so that nothing is to be interpolated


@dataclass(frozen=True)
class Resample(LocalStep):
    """Resample to a uniform clock.

    Args:
        period_s: sampling period, s; by default the median step at the head of the log.
        rate_hz: sampling rate, Hz, instead of a period.
        method: ``linear`` never overshoots; ``cubic`` (Hermite, slopes from three neighbours) is more exact between samples that
            are far apart for the motion.

    Examples:
        >>> import dynid
        >>> log = dynid.demo_recording(seconds=4.0, rate_hz=100.0)
        >>> len(dynid.process(log, [dynid.Resample(rate_hz=50.0), dynid.Differentiate()], edge_s=0.0))
        200
    """

    period_s: float | None = None
    rate_hz: float | None = None
    method: Literal["linear", "cubic"] = "linear"

    makes_uniform_clock: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.period_s is not None and self.rate_hz is not None:
            raise InputError("Resample takes a period or a rate, not both")
        for name in ("period_s", "rate_hz"):
            check_positive(f"Resample {name}", getattr(self, name))
        if self.method not in ("linear", "cubic"):
            raise InputError(f"unknown interpolation '{self.method}' in Resample; available: linear, cubic")

    @property
    def head_rows(self) -> int:
        """Enough to know the step of the clock, unless it is given."""
        return HEAD_ROWS if self.period_s is None and self.rate_hz is None else 2

    def planned(self, head: Signals, tally: Tally) -> Resample:
        """With the period settled."""
        if head.periodic:
            raise InputError("Resample cannot follow PeriodAverage; put it before")
        period_s = self.period_s or (1.0 / self.rate_hz if self.rate_hz else None) or nominal_period_s(head.time)
        tally.say(f"resampled on the logged clock to a step of {1e3 * period_s:.6g} ms ({self.method})")
        return Resample(period_s=period_s, method=self.method)

    def reach(self, head: Signals) -> Extent:
        """One neighbour on either side, and one more for its slope; a stamp may lie off the grid by rounding."""
        return Extent(rows=4)

    def apply(self, window: Signals, own: slice, starts: bool, ends: bool, tally: Tally) -> Signals:
        """The grid points from the first own stamp up to the first stamp that is not."""
        assert self.period_s is not None
        dt, t = self.period_s, window.time
        first = _grid_row(t[own.start], window.start_s, dt)
        behind = _grid_row(t[own.stop], window.start_s, dt) if own.stop < len(t) else 0
        if ends:
            behind = int(np.floor((t[-1] - window.start_s) / dt + _ROUNDING)) + 1
        if behind - first > 1_000_000 + 100 * len(t):
            raise InputError(
                f"resampling {len(t)} rows over {t[-1] - t[0]:.4g} s to a step of {dt:.4g} s would give "
                f"{behind - first} rows, most of them inside gaps; split the log with SplitAtGaps or choose a longer step"
            )
        grid = window.start_s + np.arange(first, behind, dtype=np.float64) * dt
        values = _interpolated(t, window.values, np.clip(grid, t[0], t[-1]), self.method)
        return replace(window, time=grid, values=values, first_row=first, period_s=dt)


def nominal_period_s(time: Array) -> float:
    """The median step of the first rows, or their mean where the clock is uniform but for rounding."""
    if len(time) < 2:
        raise InputError(f"signal has {len(time)} row, expected at least 2 to know its sampling step")
    steps = np.diff(time[:HEAD_ROWS])
    mean = float(steps.mean())
    uniform = bool(np.abs(steps - mean).max() < 1e-3 * mean)
    return float(f"{mean if uniform else float(np.median(steps)):.9g}")


def interpolate(time: Array, values: Array, at: Array, method: str = "linear") -> Array:
    """Columns of ``values`` at the times ``at``, which lie within ``time``."""
    return _interpolated(time, {"": values}, at, method)[""]


def uniform_grid(time: Array, dt: float) -> Array:
    """Every ``dt`` from the first stamp to the last; of a log with pauses of hours, as much as its rows warrant."""
    count = min(int(np.floor((time[-1] - time[0]) / dt + _ROUNDING)) + 1, 20 * len(time))
    return np.asarray(np.minimum(time[0] + dt * np.arange(count), time[-1]), dtype=np.float64)


def _grid_row(stamp: float, start_s: float, dt: float) -> int:
    """First grid row at or after a stamp."""
    return int(np.ceil((stamp - start_s) / dt - _ROUNDING))


def _rows_at(t: Array, at: Array) -> slice | None:
    """The rows whose stamps are the times asked for, but for rounding; None where there are none."""
    if not len(at):
        return slice(0, 0)
    first = int(np.searchsorted(t, at[0] - 0.5 * (t[1] - t[0])))
    rows = slice(first, first + len(at))
    found = t[rows]
    if len(found) != len(at) or np.abs(found - at).max() > _ON_GRID * (t[1] - t[0]):
        return None
    return rows


def _interpolated(t: Array, values: Mapping[str, Array], at: Array, method: str) -> dict[str, Array]:
    if len(t) < 2:
        return {name: np.repeat(y, len(at), axis=0) for name, y in values.items()}
    same = _rows_at(t, at)
    if same is not None:
        return {name: y[same] for name, y in values.items()}
    left = np.clip(np.searchsorted(t, at, side="right") - 1, 0, len(t) - 2)
    h = t[left + 1] - t[left]
    u = ((at - t[left]) / h)[:, None]
    if method == "linear":
        once = {id(y): y for y in values.values()}  # torque and what is kept of it as recorded are one array at first
        made = {key: y[left] * (1.0 - u) + y[left + 1] * u for key, y in once.items()}
        return {name: made[id(y)] for name, y in values.items()}
    h = h[:, None]
    result = {}
    for name, y in values.items():
        slope = np.gradient(y, t, axis=0, edge_order=1)
        result[name] = (
            (1.0 + 2.0 * u) * (1.0 - u) ** 2 * y[left]
            + u * (1.0 - u) ** 2 * h * slope[left]
            + u**2 * (3.0 - 2.0 * u) * y[left + 1]
            - u**2 * (1.0 - u) * h * slope[left + 1]
        )
    return result


BEYOND = "{n} rows dropped at an end, where a shifted signal has no value"


@dataclass(frozen=True)
class Shift(LocalStep):
    """Correct a known delay of some quantities; raw torque moves with torque.

    Args:
        lag_s: delay, s, by which they lag behind the others; negative for a lead.
        signals: the quantities that lag.
        method: ``linear`` or ``cubic`` interpolation.

    Examples:
        >>> import dynid
        >>> from dynid.signals.steps.clock import Shift
        >>> steps = [Shift(lag_s=0.004, signals=("torque",)), dynid.Differentiate()]
        >>> len(dynid.process(dynid.demo_recording(seconds=4.0), steps)) < 400
        True
    """

    lag_s: float
    signals: tuple[str, ...] = ("velocity",)
    method: Literal["linear", "cubic"] = "cubic"

    def __post_init__(self) -> None:
        if not np.isfinite(self.lag_s):
            raise InputError(f"Shift lag_s is {self.lag_s}, expected a finite number of seconds")
        checked_signals(self.signals, "Shift")
        if self.method not in ("linear", "cubic"):
            raise InputError(f"unknown interpolation '{self.method}' in Shift; available: linear, cubic")

    def reach(self, head: Signals) -> Extent:
        """As far as the lag, and the neighbours of an interpolation."""
        rows = 4 if head.period_s is None else 4 + int(np.ceil(abs(self.lag_s) / head.period_s))
        return Extent(rows=rows, seconds=abs(self.lag_s))

    def apply(self, window: Signals, own: slice, starts: bool, ends: bool, tally: Tally) -> Signals:
        """The own rows for which the shifted time lies within the log."""
        window.need(self.signals, self)
        t = window.time
        names = [*self.signals, *(["raw_torque"] if "torque" in self.signals else [])]
        piece = window.cut(own)
        there = piece.time + self.lag_s
        # A window reaches beyond its own rows, so only true ends can be passed.
        first = int(np.searchsorted(there, t[0])) if starts else 0
        stop = int(np.searchsorted(there, t[-1], side="right")) if ends else len(piece)
        if starts and ends and stop <= first:
            raise InputError(f"Shift by {self.lag_s:g} s leaves nothing of a log of {t[-1] - t[0]:.3g} s")
        tally.count(BEYOND, len(piece) - max(0, stop - first))
        kept = piece.cut(slice(first, max(first, stop)))
        at = kept.time + self.lag_s
        return kept.updated({name: interpolate(t, window.values[name], at, self.method) for name in names})


@dataclass(frozen=True)
class Decimate(LocalStep):
    """Keep rows 0, n, 2n, .. counted from the start of the log; it does not filter, so put a filter before it.

    Args:
        every: ``n``, one row of so many is kept.

    Examples:
        >>> import dynid
        >>> from dynid.signals.steps.clock import Decimate
        >>> log = dynid.demo_recording(seconds=4.0, rate_hz=200.0)
        >>> len(dynid.process(log, [Decimate(every=4), dynid.Differentiate()], edge_s=0.0))
        200
    """

    every: int

    def __post_init__(self) -> None:
        if self.every != int(self.every) or self.every < 1:
            raise InputError(f"Decimate every is {self.every}, expected a whole number of rows, 1 or more")

    def reach(self, head: Signals) -> Extent:
        """No neighbour."""
        return Extent()

    def apply(self, window: Signals, own: slice, starts: bool, ends: bool, tally: Tally) -> Signals:
        """The own rows whose number is a multiple."""
        piece = window.cut(own)
        offset = -piece.first_row % self.every
        rows = np.arange(offset, len(piece), self.every)
        period_s = None if piece.period_s is None else piece.period_s * self.every
        if piece.periodic and len(piece) % self.every:
            raise InputError(f"a period of {len(piece)} rows cannot be decimated by {self.every}, expected a divisor")
        tally.say(f"every {self.every}. row is kept")
        return replace(piece.chosen(rows), first_row=(piece.first_row + offset) // self.every, period_s=period_s)


@dataclass(frozen=True)
class PeriodAverage(Step):
    """Average a periodic motion over its periods; rows after the last whole period are dropped.

    Args:
        period_s: length of a period, s.
        skip: number of periods at the start that are left out.
        rows: rows of the averaged period; None for as many as the log has on average.
        method: ``linear`` or ``cubic`` interpolation onto those rows.

    Examples:
        >>> import dynid
        >>> from dynid.signals.steps.clock import PeriodAverage
        >>> log = dynid.demo_recording(seconds=4.0)
        >>> len(dynid.process(log, [PeriodAverage(period_s=2.0), dynid.Differentiate()], edge_s=0.0))
        200
    """

    period_s: float
    skip: int = 0
    rows: int | None = None
    method: Literal["linear", "cubic"] = "linear"

    makes_uniform_clock: ClassVar[bool] = True
    gathers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("PeriodAverage period_s", self.period_s)
        if self.skip < 0:
            raise InputError(f"PeriodAverage skip is {self.skip} periods, expected zero or more")
        if self.rows is not None and self.rows < 8:
            raise InputError(f"PeriodAverage rows is {self.rows}, expected at least 8")

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
            rest = piece if rest is None else rest.joined(piece)
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
    for piece in upstream(Tally()):
        head = piece if head is None else head.joined(piece)
        if len(head) >= HEAD_ROWS:
            break
    if head is None:
        raise InputError("PeriodAverage was given a log without rows")
    rows = round(period_s / (head.period_s or nominal_period_s(head.time)))
    if rows < 8:
        raise InputError(f"a period of {period_s:g} s holds {rows} rows of the log, expected at least 8")
    return rows
