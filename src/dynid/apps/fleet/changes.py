"""Changes from one day to the next, and differences between robots, that chance does not explain, at a stated rate of false alarms.

The values of a robot scatter from day to day by their measurement and by an own scatter ``tau`` of friction (temperature,
lubricant), which is estimated from successive days of all robots. For every day on which a change may have happened

    z = (mean after - mean before) / sqrt(1 / I_after + 1 / I_before),      I = sum over days of 1 / (variance + tau^2)

An alarm is raised where the largest ``|z|`` exceeds the quantile of Student's t at ``1 - rate / (2 N)``, with all ``N``
questions that are asked of all robots, values and days counted. By Bonferroni's inequality a fleet in which nothing has
changed then raises an alarm with at most this probability, if days are independent and their scatter is normal. Half of the rate is for
steps, half for slow changes (:mod:`~dynid.apps.fleet.trends`).

How much robots of one model differ, per base parameter, and what that says about each of them is empirical Bayes. A robot's value is
``x_r ~ N(mu, T^2 + v_r)``: spread ``T`` between robots, variance ``v_r`` of its own measurement. ``mu`` and
``T`` are found from all robots by medians, so that a few robots that differ do not hide themselves. Then

    shrunk value = mu + T^2 / (T^2 + v_r) (x_r - mu),     score = (x_r - mu) / sqrt(T^2 + v_r)
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.special

from dynid.apps.fleet.information import DriftKind, Followed
from dynid.apps.fleet.trends import Ramp, best_ramp, explains_better, n_ramps
from dynid.arrays import Array, freeze

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
_WORDS = {"fc": "Coulomb friction", "fv": "viscous friction", "fo": "torque offset"}
NEAR_DAYS = 3
"""Changes of a load's values within so many rows of days are one change."""


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

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def relative(self) -> float:
        """The difference relative to the value before; of an offset or a load, which may be zero before, to the joint's torque."""
        if self.kind != "friction":
            return self.share
        return abs(self.difference) / max(abs(self.before), 1.96 * self.sigma)

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
        size = f"{abs(self.difference):.3g} ± {1.96 * self.sigma:.2g} {self.unit}"
        certain = f"{abs(self.score):.1f} standard deviations, alarm above {self.threshold:.1f}"
        if self.kind == "load":
            verb = "carries more" if self.difference > 0.0 else "carries less"
            return f"{self.robot} {self.joint}: its link {verb} {self.when}: {self.parameter} by {size} ({certain})"
        symbol = self.parameter.rstrip("0123456789")
        what = _WORDS.get(symbol, self.kind)
        by = (
            f"{np.sign(self.difference) * 100.0 * self.relative:+.0f} %"
            if self.kind == "friction"
            else f"{self.difference:+.3g} {self.unit}"
        )
        return (
            f"{self.robot} {self.joint}: {what} {by} {self.when} ({self.parameter} from {self.before:.4g} to {self.after:.4g} "
            f"{self.unit}, by {size} or {100.0 * self.share:.1f} % of the joint's torque; {certain})"
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {
            "type": "change",
            "day": self.day.isoformat(),
            "until": None if self.until is None else self.until.isoformat(),
            "relative": self.relative,
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


def changes_of(all_followed: Sequence[Followed], rate: float = ALARM_RATE) -> dict[str, tuple[Change, ...]]:
    """Changes of every robot that has enough days; robots that have not are left out."""
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
        found.append(_slow_change(one, p, ramp, slow))
        values = values - ramp.fitted + ramp.before
        places = _places(values, weight, threshold)
    bounds = zip([0, *places], places, [*places[1:], len(weight)], strict=False)
    return [*found, *(_change(one, p, values, segment, weight, threshold) for segment in bounds)]


def _slow_change(one: Followed, p: int, ramp: Ramp, threshold: float) -> Change:
    m, height = one.monitored, ramp.height
    place = (one.robot, m.names[p], m.kinds[p], m.joints[p], m.units[p], one.days[ramp.start])
    lasting = ramp.stop == len(one.days) - 1
    share = float(abs(height) * one.share[p])
    sizes = (ramp.before, ramp.before + height, ramp.sigma, ramp.score, threshold, share)
    return Change(*place, *sizes, until=one.days[ramp.stop], lasting=lasting)


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


def _change(one: Followed, p: int, values: Array, segment: tuple[int, int, int], weight: Array, threshold: float) -> Change:
    """The change between the days before and after it, up to the next change on either side."""
    start, place, stop = segment
    before, after = (float(np.average(values[a:b], weights=weight[a:b])) for a, b in ((start, place), (place, stop)))
    sigma = float(np.sqrt(1.0 / weight[start:place].sum() + 1.0 / weight[place:stop].sum()))
    m, score = one.monitored, (after - before) / sigma
    share = float(abs(after - before) * one.share[p])
    day = one.days[place]
    return Change(
        one.robot, m.names[p], m.kinds[p], m.joints[p], m.units[p], day, before, after, sigma, score, threshold, share
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


LEAST_ROBOTS = 5
"""Robots from which a spread is found."""
DRAWS = 100_000
"""Fleets of one parameter that the threshold of outliers is drawn from."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Mean and spread of every base parameter over the robots, and where each robot stands."""

    mean: Array
    spread: Array
    """``T``: standard deviation between robots; NaN where too few robots show the parameter."""
    score: Array
    """``(robots, base)``; NaN where a robot does not show the parameter."""
    shrunk: Array
    shrunk_sigma: Array
    counted: Array
    """How many robots show each parameter."""


def spread_of(values: Array, variance: Array) -> Spread:
    """The spread over robots, ``(robots, base)`` each; a variance that is not finite stands for a value that is not known."""
    n, p = values.shape
    mean, spread = np.full(p, np.nan), np.full(p, np.nan)
    score, shrunk, sigma = (np.full((n, p), np.nan) for _ in range(3))
    counted = np.isfinite(variance).sum(axis=0)
    for i in range(p):
        known = np.isfinite(variance[:, i])
        if not known.any():
            continue
        x, v = values[known, i], np.maximum(variance[known, i], 1e-300)
        mu, order = float(np.median(x)), np.argsort(x)
        T2 = 0.0
        if len(x) >= LEAST_ROBOTS:
            for _ in range(20):
                T2 = excess_variance((x - mu) ** 2, v)
                total = np.cumsum((1.0 / (v + T2))[order])
                new = float(x[order][np.searchsorted(total, 0.5 * total[-1])])  # the weighted median
                if new == mu:
                    break
                mu = new
            spread[i] = np.sqrt(T2)
            score[known, i] = (x - mu) / np.sqrt(v + T2)
            shrunk[known, i] = mu + T2 / (T2 + v) * (x - mu)
            sigma[known, i] = np.sqrt(T2 * v / (T2 + v))
        else:
            shrunk[known, i], sigma[known, i] = x, np.sqrt(v)
        mean[i] = mu
    return Spread(*(freeze(one) for one in (mean, spread, score, shrunk, sigma, counted.astype(float))))


@lru_cache(maxsize=32)
def outlier_threshold(n_robots: int, n_parameters: int, rate: float) -> float:
    """Score that the largest of all robots and parameters exceeds with this probability where all robots are alike.

    Drawn, with the same medians that :func:`spread_of` takes: of few robots the spread itself is uncertain.
    """
    rng = np.random.default_rng(0)
    largest = []
    per_turn = max(1, 2_000_000 // n_robots)
    for start in range(0, DRAWS, per_turn):
        x = rng.normal(size=(min(per_turn, DRAWS - start), n_robots))
        away = np.abs(x - np.median(x, axis=1, keepdims=True))
        T = np.median(away, axis=1) / np.sqrt(MEDIAN_CHI2)
        largest.append(away.max(axis=1) / T)
    each = (1.0 - rate) ** (1.0 / n_parameters)  # so that all parameters together keep the rate
    return float(np.quantile(np.concatenate(largest), each, method="higher"))


@dataclass(frozen=True)
class Outlier:
    """A robot whose value differs from the fleet's beyond what the spread of the others explains."""

    robot: str
    parameter: str
    expression: str
    value: float
    fleet: float
    spread: float
    score: float
    threshold: float
    share: float
    """Largest share of a joint's torque that the difference makes up."""

    def sentence(self) -> str:
        """The outlier in words."""
        return (
            f"{self.robot}: {self.parameter} is {self.value:.4g}, the fleet's is {self.fleet:.4g} with a spread of {self.spread:.2g} "
            f"({abs(self.score):.1f} standard deviations, outlier above {self.threshold:.1f})"
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"type": "outlier", "text": self.sentence()}
