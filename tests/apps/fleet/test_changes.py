"""Changes of values beyond chance: found where they are, at the stated rate where they are not; slow ones as such, dated and sized."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
import scipy.stats

from dynid.apps.fleet.changes import TREND_DAYS, Change, best_ramp, changes_of, excess_variance, explains_better, n_ramps
from dynid.apps.fleet.information import Followed, Information, Monitored


def series(values: np.ndarray, variance: float = 1.0) -> Followed:
    """One robot with one watched value."""
    days = tuple(datetime.date(2026, 1, 1) + datetime.timedelta(days=k) for k in range(len(values)))
    monitored = Monitored(("fv1",), ("friction",), ("N m s/rad",), ("j",), np.ones((1, 1)), np.ones(1, dtype=bool))
    empty = np.zeros((1, 1))
    total = Information(days[0], empty, np.zeros(1), empty, empty, np.ones(1), 1.0)
    return Followed("R", days, monitored, values[:, None], np.full((len(values), 1), variance), np.ones(1), total)


def null_fleet(rng: np.random.Generator, n_robots: int, n_days: int) -> list[Followed]:
    found = []
    for r in range(n_robots):
        one = series(rng.normal(size=n_days) * 1.5, variance=1.0)  # scatter between days beyond what measurement explains
        found.append(Followed(f"R{r}", one.days, one.monitored, one.values, one.variance, one.share, one.total))
    return found


def test_false_alarms_keep_the_stated_rate() -> None:
    rng = np.random.default_rng(0)
    rate, n = 0.1, 200
    alarms = sum(any(changes_of(null_fleet(rng, 10, 20), rate).values()) for _ in range(n))
    assert scipy.stats.binomtest(alarms, n, rate, alternative="greater").pvalue > 1e-3, alarms
    assert alarms > 0  # and the threshold is not out of reach


def test_a_step_is_found_at_its_day_and_a_second_one_too() -> None:
    rng = np.random.default_rng(1)
    others = null_fleet(rng, 10, 30)
    values = 1.5 * rng.normal(size=30)
    values[10:20] += 12.0
    ((first, second),) = [changes_of([*others, series(values)], 0.01)["R"]]
    assert [(change.day - datetime.date(2026, 1, 1)).days for change in (first, second)] == [10, 20]
    assert first.difference == pytest.approx(12.0, abs=2.0)
    assert second.difference == pytest.approx(-12.0, abs=2.0)


def test_small_steps_are_added_up() -> None:
    """Two steps of which none is large are as much as one: what was on the first days is the measure."""
    rng = np.random.default_rng(3)
    others = null_fleet(rng, 10, 24)
    values = 100.0 + 1.5 * rng.normal(size=24)
    values[8:] += 15.0
    values[16:] += 15.0
    first, second = changes_of([*others, series(values)], 0.01)["R"]
    assert (first.since_first, first.total) == (first.relative, first.difference)
    assert second.relative == pytest.approx(15.0 / 115.0, abs=0.02)
    assert second.since_first == pytest.approx(0.30, abs=0.02)
    assert "since the first days" not in first.sentence()
    assert "+12 % on 2026-01-17, +3" in second.sentence()
    assert "% since the first days (fv1 from" in second.sentence()


def test_excess_variance_is_that_of_normal_numbers() -> None:
    rng = np.random.default_rng(2)
    v = rng.uniform(0.5, 2.0, size=20_000)
    x = rng.normal(size=20_000) * np.sqrt(v + 3.0)
    assert excess_variance(x**2, v) == pytest.approx(3.0, rel=0.1)
    assert excess_variance(0.5 * v * rng.normal(size=20_000) ** 2, v) == 0.0


DAYS = list(range(30))


def ramp(start: int, stop: int, height: float) -> np.ndarray:
    return 5.0 + height * np.clip((np.arange(30) - start) / (stop - start), 0.0, 1.0)


@pytest.mark.parametrize(("start", "stop"), [(11, 29), (5, 20), (0, 29)])
def test_start_end_and_height_of_a_ramp(start: int, stop: int) -> None:
    rng = np.random.default_rng(start)
    found = best_ramp(DAYS, ramp(start, stop, 2.0) + 0.05 * rng.normal(size=30), np.full(30, 400.0))
    assert found is not None
    assert abs(found.start - start) <= 2
    assert abs(found.stop - stop) <= 2
    assert found.height == pytest.approx(2.0, rel=0.1)


def test_the_height_is_that_of_weighted_least_squares() -> None:
    rng = np.random.default_rng(0)
    y, weight = ramp(10, 29, 1.0) + 0.2 * rng.normal(size=30), rng.uniform(10.0, 40.0, 30)
    found = best_ramp(DAYS, y, weight)
    assert found is not None
    x = np.clip((np.arange(30) - found.start) / (found.stop - found.start), 0.0, 1.0)
    A = np.column_stack([np.ones(30), x]) * np.sqrt(weight)[:, None]
    solved, *_ = np.linalg.lstsq(A, y * np.sqrt(weight), rcond=None)
    assert found.before == pytest.approx(solved[0])
    assert found.height == pytest.approx(solved[1])
    assert found.sigma == pytest.approx(np.sqrt(np.linalg.inv(A.T @ A)[1, 1]))


def test_a_step_is_not_told_as_a_slow_change() -> None:
    rng = np.random.default_rng(1)
    y = 5.0 + (np.arange(30) >= 17) + 0.1 * rng.normal(size=30)
    weight = np.full(30, 100.0)
    found = best_ramp(DAYS, y, weight)
    assert found is not None
    assert not explains_better(found, [17], y, weight)


def test_a_staircase_is_a_slow_change() -> None:
    rng = np.random.default_rng(2)
    y = ramp(8, 29, 2.0) + 0.1 * rng.normal(size=30)
    weight = np.full(30, 100.0)
    found = best_ramp(DAYS, y, weight)
    assert found is not None
    assert explains_better(found, [12, 18, 24], y, weight)


def test_few_days_have_no_slow_change() -> None:
    assert best_ramp(DAYS[:TREND_DAYS], np.zeros(TREND_DAYS), np.ones(TREND_DAYS)) is None
    assert n_ramps(365) < 2000


def test_dry_friction_of_a_sigmoid_is_told_by_its_half() -> None:
    """It runs from minus half of its size to plus half: that is what the joint resists with."""
    change = Change("R3", "fsig3", "friction", "elbow", "N m", datetime.date(2026, 3, 6), 10.0, 14.0, 0.2, 20.0, 4.0, 0.1)
    assert "R3 elbow: dry friction +40 % on 2026-03-06 (half of fsig3 from 5 to 7 N m, by 2 ± 0.2 N m" in change.sentence()
