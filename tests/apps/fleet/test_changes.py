"""Changes of values and differences between robots beyond chance: found where they are, at the stated rate where they are not."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
import scipy.stats

from dynid.apps.fleet.changes import changes_of, excess_variance, outlier_threshold, spread_of
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


def test_excess_variance_is_that_of_normal_numbers() -> None:
    rng = np.random.default_rng(2)
    v = rng.uniform(0.5, 2.0, size=20_000)
    x = rng.normal(size=20_000) * np.sqrt(v + 3.0)
    assert excess_variance(x**2, v) == pytest.approx(3.0, rel=0.1)
    assert excess_variance(0.5 * v * rng.normal(size=20_000) ** 2, v) == 0.0


def test_shrinkage_follows_from_spread_and_measurement() -> None:
    rng = np.random.default_rng(3)
    truth = 5.0 + 0.5 * rng.normal(size=400)
    sigma = rng.choice([0.05, 1.0], size=400)
    x = truth + sigma * rng.normal(size=400)
    found = spread_of(x[:, None], sigma[:, None] ** 2)
    assert found.mean[0] == pytest.approx(5.0, abs=0.1)
    assert found.spread[0] == pytest.approx(0.5, rel=0.15)
    T2 = found.spread[0] ** 2
    expected = found.mean[0] + T2 / (T2 + sigma**2) * (x - found.mean[0])
    np.testing.assert_allclose(found.shrunk[:, 0], expected, rtol=1e-12)
    noisy = sigma > 0.5
    closer = np.mean((found.shrunk[noisy, 0] - truth[noisy]) ** 2) / np.mean((x[noisy] - truth[noisy]) ** 2)
    assert closer < 0.4  # the theory: 0.2
    assert np.mean(((found.shrunk[:, 0] - truth) / found.shrunk_sigma[:, 0]) ** 2) == pytest.approx(1.0, abs=0.25)


def test_outliers_of_alike_robots_keep_the_rate() -> None:
    rng = np.random.default_rng(4)
    rate, n_robots, n_parameters, n = 0.2, 12, 5, 200
    threshold = outlier_threshold(n_robots, n_parameters, rate)
    wrong = 0
    for _ in range(n):
        score = spread_of(rng.normal(size=(n_robots, n_parameters)), np.full((n_robots, n_parameters), 1e-6)).score
        wrong += bool(np.abs(score).max() > threshold)
    assert scipy.stats.binomtest(wrong, n, rate).pvalue > 1e-3, wrong
