"""Slow changes: a value that is constant, then moves evenly from one day to another, and may still be moving.

    y(d) = a + h x(d),      x(d) = clip((d - start) / (stop - start), 0, 1)

Every pair of days at least :data:`TREND_DAYS` rows apart is tried; ``z`` is the height ``h`` over its standard deviation. A step is a ramp
from one day to the next, so the two families are apart, and the one is told that explains the days better for its number of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array

TREND_DAYS = 5
"""Rows of days that a slow change takes at least."""
STAIRS = 3
"""Steps in one direction from which they are a slow change."""
MOST_KNOTS = 60
"""Days that a slow change may begin or end on; of longer histories every second, third, .. day."""


@dataclass(frozen=True, eq=False)
class Ramp:
    """The slow change that explains a series best."""

    start: int
    """The last row before the value moves."""
    stop: int
    """The row with which it ends; the last one where it still moves."""
    before: float
    height: float
    sigma: float
    """Of the height."""
    fitted: Array

    @property
    def score(self) -> float:
        return self.height / self.sigma


def n_ramps(n: int) -> int:
    """How many ramps are tried on so many days."""
    return len(_knots(n))


def _knots(n: int) -> list[tuple[int, int]]:
    every = -(-n // MOST_KNOTS)
    places = sorted({*range(0, n, every), n - 1})
    return [(i, j) for i in places for j in places if j - i >= TREND_DAYS]


def best_ramp(days: Sequence[float], values: Array, weight: Array) -> Ramp | None:
    """The ramp with the largest score; one that reaches the last day is preferred where the days cannot tell when it ended.

    Args:
        days: since the first one, ``(n,)``.
        values: of each day.
        weight: one over the variance of each.
    """
    d, knots = np.asarray(days, dtype=np.float64), np.array(_knots(len(values)))
    if not len(knots):
        return None
    first, last = d[knots[:, 0]], d[knots[:, 1]]
    X = np.clip((d - first[:, None]) / (last - first)[:, None], 0.0, 1.0)
    w = weight / weight.sum()
    centred = X - (X @ w)[:, None]
    size = (centred**2) @ weight
    height = (centred @ (weight * values)) / size
    gain = height**2 * size
    best = int(np.argmax(gain))
    open_end = np.flatnonzero(knots[:, 1] == len(values) - 1)
    latest = int(open_end[np.argmax(gain[open_end])])
    if gain[latest] > gain[best] - 3.0 * np.log(len(values)):
        best = latest
    before = float(values @ w - height[best] * (X[best] @ w))
    return Ramp(
        int(knots[best, 0]),
        int(knots[best, 1]),
        before,
        float(height[best]),
        float(1.0 / np.sqrt(size[best])),
        before + height[best] * X[best],
    )


def explains_better(ramp: Ramp, places: Sequence[int], values: Array, weight: Array) -> bool:
    """Whether a ramp explains a series better than steps at these places, each for its number of values (Schwarz' criterion).

    Three steps or more in one direction are a slow change, whatever the criterion says: it takes the scatter of days for known.
    """
    price = np.log(len(values))
    left = float(weight @ (values - ramp.fitted) ** 2) + 3.0 * price
    stepped, means = 2.0 * price * len(places), []
    for start, stop in zip([0, *places], [*places, len(values)], strict=True):
        y, w = values[start:stop], weight[start:stop]
        means.append(float(np.average(y, weights=w)))
        stepped += float(w @ (y - means[-1]) ** 2)
    stairs = len(places) >= STAIRS and len(set(np.sign(np.diff(means)))) == 1
    return stairs or left < stepped
