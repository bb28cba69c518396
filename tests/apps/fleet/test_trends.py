"""Slow changes are found as such, dated and sized; steps stay steps; nothing is found in scatter."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.apps.fleet.trends import TREND_DAYS, best_ramp, explains_better, n_ramps

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
