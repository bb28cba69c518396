"""A fleet judged from its store: every robot with the help of the others, robots that differ, values that change.

How much robots of one model differ, per base parameter, and what that says about each of them is empirical Bayes. A robot's value is
``x_r ~ N(mu, T^2 + v_r)``: spread ``T`` between robots, variance ``v_r`` of its own measurement. ``mu`` and
``T`` are found from all robots by medians, so that a few robots that differ do not hide themselves. Then

    shrunk value = mu + T^2 / (T^2 + v_r) (x_r - mu),     score = (x_r - mu) / sqrt(T^2 + v_r)
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dynid.apps.fleet.changes import (
    ALARM_RATE,
    LEAST_DAYS,
    MEDIAN_CHI2,
    Change,
    changes_of,
    day_scatter,
    excess_variance,
)
from dynid.apps.fleet.entry import Entry
from dynid.apps.fleet.information import Followed, Monitored, Reducer, follow_rows
from dynid.apps.fleet.row_query import RowQuery, map_robots
from dynid.apps.fleet.store import Store, open_store
from dynid.arrays import Array, freeze
from dynid.engine import Engine, Serial, Tell, engine_from, one_blas_thread, silent
from dynid.errors import InputError
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.channels import Channel

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


@dataclass(frozen=True, eq=False)
class Fleet:
    """What a store says about its robots.

    Args:
        name: of the robot's model.
        base: the base parameters.
        sigma: standard deviation of ``values``.
        spread: how much robots differ.
        changes: values that changed from a day on.
        outliers: robots that differ from the others.
        notes: sentences for the user.
        rows: rows of the store that were used.
        seconds: time spent, s.

    Examples:
        >>> import dynid
        >>> from dynid.apps.fleet.judge import Fleet
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> _ = dynid.add_to_store(
        ...     "arm.urdf", "log.csv", "store", robot_id="R1", day="2026-03-01", effects="viscous", cutoff_hz=20.0
        ... )
        >>> fleet = dynid.judge_fleet("store")
        >>> isinstance(fleet, Fleet), fleet.exceeds(0.0)
        (True, False)
    """

    least_days: ClassVar[int] = LEAST_DAYS
    """Days of a robot from which changes are looked for."""
    name: str
    base: BaseReduction
    followed: tuple[Followed, ...]
    """Values of every day, robot by robot."""
    values: Array
    """``(robots, base)``: base values over all days of a robot."""
    sigma: Array
    spread: Spread
    day_scatter: Array
    """Standard deviation between days of each monitored value beyond its measurement; NaN where there are too few days."""
    changes: tuple[Change, ...]
    outliers: tuple[Outlier, ...]
    rate: float
    """Probability of a false alarm if nothing differs or changes, at most."""
    notes: tuple[str, ...]
    rows: int
    seconds: float = 0.0

    @property
    def robots(self) -> tuple[str, ...]:
        return tuple(one.robot for one in self.followed)

    @property
    def short(self) -> tuple[str, ...]:
        """Robots with too few days to look for a change."""
        return tuple(one.robot for one in self.followed if len(one.days) < self.least_days)

    @property
    def alarms(self) -> tuple[Change | Outlier, ...]:
        """Changes and outliers, the largest share of torque first."""
        return tuple(sorted((*self.changes, *self.outliers), key=lambda one: -one.share))

    @property
    def largest_share(self) -> float:
        """Largest share of a joint's torque of any alarm; zero without one."""
        return max((one.share for one in self.alarms), default=0.0)

    def exceeds(self, share: float) -> bool:
        """Whether some alarm makes up more of a joint's torque than allowed."""
        return bool(self.alarms) and self.largest_share > share

    @property
    def largest_change(self) -> float:
        """Largest relative change of a value, by itself or since the robot's first days; zero without one."""
        return max((max(one.relative, one.since_first) for one in self.changes), default=0.0)

    def summary(self) -> dict[str, Any]:
        """What scripts rely on, under fixed names."""
        return {
            "fleet": self.name,
            "rows": self.rows,
            "false_alarm_rate": self.rate,
            "robots": [self._robot(place) for place in range(len(self.followed))],
            "alarms": [one.as_dict() for one in self.alarms],
            "largest_share": self.largest_share,
            "largest_change": self.largest_change,
            "spread": [
                {"name": name, "expression": text, "mean": mean, "spread": spread, "robots": int(count)}
                for name, text, mean, spread, count in zip(
                    self.base.names,
                    self.base.expressions(digits=4),
                    self.spread.mean.tolist(),
                    self.spread.spread.tolist(),
                    self.spread.counted.tolist(),
                    strict=True,
                )
            ],
            "day_scatter": dict(zip(self.followed[0].monitored.names, self.day_scatter.tolist(), strict=True)),
            "notes": list(self.notes),
            "seconds": self.seconds,
        }

    def _robot(self, place: int) -> dict[str, Any]:
        one, spread = self.followed[place], self.spread
        changes = [change for change in self.changes if change.robot == one.robot]
        outliers = [outlier for outlier in self.outliers if outlier.robot == one.robot]
        m = one.monitored
        return {
            "id": one.robot,
            "days": len(one.days),
            "first_day": one.days[0].isoformat(),
            "last_day": one.days[-1].isoformat(),
            "alarm": bool(changes or outliers),
            "changes": [change.as_dict() for change in changes],
            "outliers": [outlier.as_dict() for outlier in outliers],
            "estimate": [
                {"name": name, "value": value, "sigma": sigma, "shrunk": own, "shrunk_sigma": own_sigma, "score": score}
                for name, value, sigma, own, own_sigma, score in zip(
                    self.base.names,
                    self.values[place].tolist(),
                    self.sigma[place].tolist(),
                    spread.shrunk[place].tolist(),
                    spread.shrunk_sigma[place].tolist(),
                    spread.score[place].tolist(),
                    strict=True,
                )
            ],
            "daily": {
                "days": [day.isoformat() for day in one.days],
                "values": {m.names[p]: one.values[:, p].tolist() for p in np.flatnonzero(m.watched)},
                "sigma": {m.names[p]: np.sqrt(one.variance[:, p]).tolist() for p in np.flatnonzero(m.watched)},
            },
        }


def judge_fleet(
    store: Store | str | Path,
    *,
    where: str | None = None,
    robots: Sequence[str] = (),
    from_day: str | datetime.date | None = None,
    to_day: str | datetime.date | None = None,
    false_alarms: float = ALARM_RATE,
    engine: str | Engine = "serial",
    tell: Tell = silent,
) -> Fleet:
    """Judge the robots of a store: how much they differ, which of them are outliers, and what has changed from day to day.

    Args:
        store: a store, or its folder.
        where: comparisons joined by ``and``: of ``robot``, ``day`` or conditions by name.
        robots: only these.
        from_day: the first day.
        to_day: the last day.
        false_alarms: probability of any alarm in a fleet in which nothing differs or changes.
        engine: where robots are worked on, one after another: ``serial``, ``threads:N``, ``processes:N``, ``dask[:ADDRESS]``.
        tell: called with a short text before each step.

    Returns:
        values and standard deviations of each robot, outliers, changes from day to day, and alarms.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> _ = dynid.add_to_store(
        ...     "arm.urdf", "log.csv", "store", robot_id="R1", day="2026-03-01", cutoff_hz=20.0, effects="viscous"
        ... )
        >>> fleet = dynid.judge_fleet("store")
        >>> fleet.robots, fleet.alarms
        (('R1',), ())
    """
    started = time.perf_counter()
    opened = store if isinstance(store, Store) else open_store(store)
    if not 0.0 < false_alarms < 1.0:
        raise InputError(f"--false-alarms is {false_alarms:g}, expected a probability between 0 and 1, such as 0.01")
    query, runner = RowQuery.of(where, robots, from_day, to_day), engine_from(engine)
    with one_blas_thread():
        tell("reading the store")
        found = map_robots(_follow, opened, query, runner, silent if isinstance(runner, Serial) else tell)
        fleet = _judged(found, opened.run.robot.name, opened.base, false_alarms)
    return replace(fleet, seconds=time.perf_counter() - started)


def assess(
    robots: Iterable[tuple[str, Sequence[Entry]]],
    channels: Sequence[Channel],
    base: BaseReduction,
    robot: Robot,
    rate: float = ALARM_RATE,
) -> Fleet:
    """The same from the rows of one robot after another, of which one is held at a time."""
    monitored, reducer = Monitored.of(robot, base), Reducer(channels, base)
    found = [(follow_rows(name, own, monitored, reducer), len(own)) for name, own in robots]
    return _judged(found, robot.name, base, rate)


def _follow(store: Store, name: str, own: Sequence[Entry]) -> tuple[Followed, int]:
    """One robot over its days, and the rows of the store that are its own."""
    monitored, reducer = Monitored.of(store.run.robot, store.base), Reducer(store.channels, store.base)
    return follow_rows(name, own, monitored, reducer), len(own)


def _judged(found: Sequence[tuple[Followed, int]], name: str, base: BaseReduction, rate: float) -> Fleet:
    """Robots, each with its rows of the store; half of the rate is for changes, half for outliers."""
    followed, rows = [one for one, _ in found], sum(own for _, own in found)
    monitored = followed[0].monitored
    changes = changes_of(followed, 0.5 * rate)
    tau = np.full(len(monitored.names), np.nan)
    enough = [one for one in followed if len(one.days) >= LEAST_DAYS]
    if enough:
        tau = np.sqrt(day_scatter(enough)[0])
    scatter = (monitored.E**2) @ np.nan_to_num(tau) ** 2
    solved = [(one.total.solved, len(one.days)) for one in followed]
    values = np.array([beta for (beta, _, _), _ in solved])  # over all days, their variance with the scatter between days
    variance = np.array([np.where(shown, np.diag(C) + scatter / n_days, np.inf) for (_, C, shown), n_days in solved])
    spread = spread_of(values, variance)
    few, notes = len(followed) - len(enough), []
    if few:
        notes.append(f"{few} of {len(followed)} robots have fewer than {LEAST_DAYS} days: no change is looked for in them")
    if len(followed) < LEAST_ROBOTS:
        notes.append(f"{len(followed)} robots are too few to find how much robots differ, expected at least {LEAST_ROBOTS}")
    return Fleet(
        name=name,
        base=base,
        followed=tuple(followed),
        values=freeze(values),
        sigma=freeze(np.sqrt(variance)),
        spread=spread,
        day_scatter=freeze(tau),
        changes=tuple(change for own in changes.values() for change in own),
        outliers=_outliers(followed, base, values, spread, 0.5 * rate),
        rate=rate,
        notes=tuple(notes),
        rows=rows,
    )


def _outliers(
    followed: Sequence[Followed], base: BaseReduction, values: Array, spread: Spread, rate: float
) -> tuple[Outlier, ...]:
    judged = np.flatnonzero(spread.counted >= LEAST_ROBOTS)
    if not len(judged):
        return ()
    found = []
    expressions = base.expressions(digits=4)
    for i in judged:
        threshold = outlier_threshold(int(spread.counted[i]), len(judged), rate)
        for place in np.flatnonzero(np.abs(np.nan_to_num(spread.score[:, i])) > threshold).tolist():
            one = followed[place]
            away = float(values[place, i] - spread.mean[i])
            share = np.sqrt(one.total.columns[:, i] / np.maximum(one.total.energy, 1e-300)).max() * abs(away)
            found.append(
                Outlier(
                    one.robot,
                    base.names[i],
                    expressions[i],
                    float(values[place, i]),
                    float(spread.mean[i]),
                    float(spread.spread[i]),
                    float(spread.score[place, i]),
                    threshold,
                    float(share),
                )
            )
    return tuple(sorted(found, key=lambda one: -abs(one.score)))
