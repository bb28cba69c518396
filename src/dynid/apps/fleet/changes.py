"""Changes from one day to the next that chance does not explain, at a stated rate of false alarms.

The values of a robot scatter from day to day by their measurement and by an own scatter ``tau`` of friction (temperature,
lubricant), which is estimated from successive days of all robots. For every day on which a change may have happened

    z = (mean after - mean before) / sqrt(1 / I_after + 1 / I_before),      I = sum over days of 1 / (variance + tau^2)

An alarm is raised where the largest ``|z|`` exceeds the quantile of Student's t at ``1 - rate / (2 N)``, with all ``N``
questions that are asked of all robots, values and days counted. By Bonferroni's inequality a fleet in which nothing has
changed then raises an alarm with at most this probability, if days are independent and their scatter is normal. Half of the rate is for
steps, half for slow changes.

A slow change is constant, then moves evenly from one day to another, and may still be moving:

    y(d) = a + h x(d),      x(d) = clip((d - start) / (stop - start), 0, 1)

Every pair of days at least :data:`TREND_DAYS` rows apart is tried; ``z`` is the height ``h`` over its standard deviation. A step is a ramp
from one day to the next, so the two families are apart, and the one is told that explains the days better for its number of values.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.special

from dynid.apps.fleet.information import DriftKind, Followed
from dynid.arrays import Array

ALARM_RATE = 0.01
"""Probability of a false alarm in one look at a fleet, by default."""
LEAST_DAYS = 5
"""Days of a robot from which changes are looked for."""
BEFORE = 2
"""Days that must lie before a change; one day after it is enough."""
MEDIAN_CHI2 = 0.454936423119573
"""Median of the square of a standard normal number."""
EFFICIENCY = 0.37
"""Of a scatter by the median, against one by the mean of squares: so many fewer are its degrees of freedom."""
MOST_CHANGES = 4
_WORDS = {
    "fc": "Coulomb friction",
    "fs": "Stribeck friction",
    "fsig": "dry friction",
    "fv": "viscous friction",
    "fo": "torque offset",
}
_HALVES = ("fsig",)
"""Values that are dry friction of both directions together: half of them is told, which is what a joint resists with."""
NEAR_DAYS = 3
"""Changes of a load's values within so many rows of days are one change."""
TREND_DAYS = 5
"""Rows of days that a slow change takes at least."""
STAIRS = 3
"""Steps in one direction from which they are a slow change."""
MOST_KNOTS = 60
"""Days that a slow change may begin or end on; of longer histories every second, third, .. day."""


@dataclass(frozen=True)
class Change:
    """A value of a robot that changed from a day on."""

    robot: str
    parameter: str
    kind: DriftKind
    joint: str
    unit: str
    day: datetime.date
    """The first day after the change."""
    before: float
    after: float
    """Of a load: against the mean of all days."""
    sigma: float
    """Of the difference."""
    score: float
    """The difference in standard deviations."""
    threshold: float
    share: float
    """Largest share of a joint's torque that the difference makes up."""
    until: datetime.date | None = None
    """Of a slow change, which begins after ``day``: the day with which it ended; None for a step."""
    lasting: bool = False
    """Whether a slow change reaches the last day."""
    first: float = 0.0
    """The value on the robot's first days, before any change."""
    total: float = 0.0
    """What it changed by since then, this change included."""

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def relative(self) -> float:
        """The difference relative to the value before; of an offset or a load, which may be zero before, to the joint's torque."""
        return self._relative(self.difference, self.before)

    @property
    def since_first(self) -> float:
        """The same since the first days: what several changes add up to."""
        return self._relative(self.total, self.first)

    def _relative(self, difference: float, before: float) -> float:
        if self.kind != "friction":
            return self.share * abs(difference / self.difference)
        return abs(difference) / max(abs(before), 1.96 * self.sigma)

    @property
    def when(self) -> str:
        """Since when, and whether it goes on."""
        if self.until is None:
            return f"on {self.day.isoformat()}"
        if self.lasting:
            return f"since {self.day.isoformat()}, still {'rising' if self.difference > 0.0 else 'falling'}"
        return f"from {self.day.isoformat()} to {self.until.isoformat()}"

    def sentence(self) -> str:
        """The change in words."""
        symbol = self.parameter.rstrip("0123456789")
        part, name = (0.5, f"half of {self.parameter}") if symbol in _HALVES else (1.0, self.parameter)
        size = f"{part * abs(self.difference):.3g} ± {part * 1.96 * self.sigma:.2g} {self.unit}"
        certain = f"{abs(self.score):.1f} standard deviations, alarm above {self.threshold:.1f}"
        if self.kind == "load":
            verb = "carries more" if self.difference > 0.0 else "carries less"
            return f"{self.robot} {self.joint}: its link {verb} {self.when}: {self.parameter} by {size} ({certain})"
        what = _WORDS.get(symbol, self.kind)
        together = np.sign(self.total) * 100.0 * self.since_first
        added = (
            f", {together:+.0f} % since the first days"
            if self.kind == "friction" and self.total not in (0.0, self.difference)
            else ""
        )
        by = (
            f"{np.sign(self.difference) * 100.0 * self.relative:+.0f} %"
            if self.kind == "friction"
            else f"{self.difference:+.3g} {self.unit}"
        )
        return (
            f"{self.robot} {self.joint}: {what} {by} {self.when}{added} ({name} from {part * self.before:.4g} to {part * self.after:.4g} "
            f"{self.unit}, by {size} or {100.0 * self.share:.1f} % of the joint's torque; {certain})"
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {
            "type": "change",
            "day": self.day.isoformat(),
            "until": None if self.until is None else self.until.isoformat(),
            "relative": self.relative,
            "since_first": self.since_first,
            "difference": self.difference,
            "text": self.sentence(),
        }


def day_scatter(all_followed: Sequence[Followed]) -> tuple[Array, Array]:
    """Scatter ``tau^2`` of each value between days, from successive days of all robots, and its degrees of freedom.

    By the median, so that a day on which some robots change counts like any other.
    """
    squares = [np.diff(one.values, axis=0) ** 2 for one in all_followed]
    known = [one.variance[1:] + one.variance[:-1] for one in all_followed]
    differences, variances = np.concatenate(squares), np.concatenate(known)
    n_values = differences.shape[1]
    tau = np.array([0.5 * excess_variance(differences[:, p], variances[:, p]) for p in range(n_values)])
    return tau, np.full(n_values, max(EFFICIENCY * len(differences), 1.0))


def excess_variance(squares: Array, variances: Array) -> float:
    """``T`` that makes the median of ``squares / (variances + T)`` that of a squared standard normal number; zero at least."""
    return max(float(np.median(squares / MEDIAN_CHI2 - variances)), 0.0) if len(squares) else 0.0


def changes_of(all_followed: Sequence[Followed], rate: float = 0.5 * ALARM_RATE) -> dict[str, tuple[Change, ...]]:
    """Changes of every robot that has enough days; robots that have not are left out. Half of the alarms of a look are for outliers."""
    enough = [one for one in all_followed if len(one.days) >= LEAST_DAYS]
    if not enough:
        return {}
    tau, freedom = day_scatter(enough)
    watched = np.flatnonzero(enough[0].monitored.watched)
    steps = sum(len(one.days) - BEFORE for one in enough) * len(watched)
    ramps = sum(n_ramps(len(one.days)) for one in enough) * len(watched)
    found = {}
    for one in enough:
        changes: list[Change] = []
        for p in watched:
            step, slow = (float(scipy.special.stdtrit(freedom[p], 1.0 - rate / (4.0 * max(n, 1)))) for n in (steps, ramps))
            changes += _changes_of_value(one, int(p), 1.0 / (one.variance[:, p] + tau[p]), (step, slow))
        found[one.robot] = _joined(changes, one)
    return found


def _changes_of_value(one: Followed, p: int, weight: Array, thresholds: tuple[float, float]) -> list[Change]:
    """Steps of one value, or its slow change with the steps beside it, whichever explains its days better."""
    values, (threshold, slow) = one.values[:, p], thresholds
    places = _places(values, weight, threshold)
    ramp = best_ramp([(day - one.days[0]).days for day in one.days], values, weight)
    found = []
    if ramp is not None and abs(ramp.score) > slow and explains_better(ramp, places, values, weight):
        sizes = (ramp.before, ramp.before + ramp.height, ramp.sigma)
        found.append(_change(one, p, sizes, slow, ramp.start, ramp.stop))
        values = values - ramp.fitted + ramp.before
        places = _places(values, weight, threshold)
    for start, place, stop in zip([0, *places], places, [*places[1:], len(weight)], strict=False):
        # between the days before and after it, up to the next change on either side
        before, after = (float(np.average(values[a:b], weights=weight[a:b])) for a, b in ((start, place), (place, stop)))
        sigma = float(np.sqrt(1.0 / weight[start:place].sum() + 1.0 / weight[place:stop].sum()))
        found.append(_change(one, p, (before, after, sigma), threshold, place))
    found.sort(key=lambda change: change.day)
    totals = np.cumsum([change.difference for change in found])
    return [replace(change, first=found[0].before, total=float(sum_)) for change, sum_ in zip(found, totals, strict=True)]


def _places(values: Array, weight: Array, threshold: float) -> list[int]:
    """First days after a change: the strongest change first, then those within both halves."""
    found: list[int] = []
    waiting = [(0, len(values))]
    while waiting and len(found) < MOST_CHANGES:
        start, stop = waiting.pop(0)
        if stop - start <= BEFORE:
            continue
        w, y = weight[start:stop], values[start:stop]
        I, S = np.cumsum(w), np.cumsum(w * y)
        before, after = I[:-1], I[-1] - I[:-1]
        z = ((S[-1] - S[:-1]) / after - S[:-1] / before) / np.sqrt(1.0 / before + 1.0 / after)
        z[: BEFORE - 1] = 0.0
        k = int(np.argmax(np.abs(z)))
        if abs(z[k]) > threshold:
            found.append(start + k + 1)
            waiting += [(start, start + k + 1), (start + k + 1, stop)]
    return sorted(found)


def _change(
    one: Followed, p: int, sizes: tuple[float, float, float], threshold: float, first: int, last: int | None = None
) -> Change:
    """The change of a value from day ``first`` on: values before and after and the deviation of their difference are given. ``last`` is
    the day with which a slow one ended."""
    m, (before, after, sigma) = one.monitored, sizes
    return Change(
        one.robot,
        m.names[p],
        m.kinds[p],
        m.joints[p],
        m.units[p],
        one.days[first],
        before,
        after,
        sigma,
        (after - before) / sigma,
        threshold,
        float(abs(after - before) * one.share[p]),
        until=None if last is None else one.days[last],
        lasting=last == len(one.days) - 1,
    )


def _joined(changes: Sequence[Change], one: Followed) -> tuple[Change, ...]:
    """Changes in the order of time; those of the values of one load at about one time are one, told by its strongest value,
    and by its mass where that changed."""
    kept: list[Change] = [change for change in changes if change.kind != "load"]
    loads = sorted((change for change in changes if change.kind == "load"), key=lambda change: change.day)
    places = {day: place for place, day in enumerate(one.days)}
    groups: list[list[Change]] = []
    for change in loads:
        if groups and places[change.day] - places[groups[-1][-1].day] <= NEAR_DAYS:
            groups[-1].append(change)
        else:
            groups.append([change])
    for group in groups:
        strongest = max(group, key=lambda change: abs(change.score))
        mass = next((change for change in group if change.parameter == "load m"), strongest)
        kept.append(replace(mass, day=strongest.day))
    return tuple(sorted(kept, key=lambda change: (change.day, -abs(change.score))))


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
