"""Resample to a uniform clock: the signals at ``t_1 + k dt`` on the logged clock.

Jitter is not noise: the stamps say when the robot was where it was. Interpolating on them, instead of pretending that
rows are equally spaced, is what makes a derivative of a jittery log right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.signals import Signals, Tally
from dynid.recording.steps.step import HEAD_ROWS, Extent, LocalStep

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
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0.0):
                raise InputError(f"Resample {name} is {value}, expected a positive number")
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
