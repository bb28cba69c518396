from __future__ import annotations

import datetime

import numpy as np
import pytest
import scipy.stats

from dynid.apps.fleet.judge import Fleet, assess, outlier_threshold, spread_of
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import torque_channels
from fleet_simulation import Event, simulated_robots
from small_fleet import LOAD, small_plan, small_robot

ROBOT = small_robot()
BASE = reduce_to_base(ROBOT)
CHANNELS = torque_channels(ROBOT)


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return assess(simulated_robots(ROBOT, BASE, small_plan(torque_noise=1e-3), seed=1), CHANNELS, BASE, ROBOT)


def test_changes_are_found_with_their_day_and_kind(fleet: Fleet) -> None:
    named = {(change.robot, change.kind) for change in fleet.changes}
    assert named == {("R003", "friction"), ("R006", "load")}
    for change in fleet.changes:
        assert change.day == datetime.date(2026, 1, 6)
        assert abs(change.score) > change.threshold
    friction = [change for change in fleet.changes if change.kind == "friction"]
    assert {change.joint for change in friction} == {"elbow"}
    for change in friction:
        assert change.after / change.before == pytest.approx(1.4, abs=0.06)
        assert f"on 2026-01-06 ({change.parameter} from {change.before:.4g} to {change.after:.4g}" in change.sentence()
        assert change.relative == pytest.approx(0.4, abs=0.06)
    assert fleet.largest_change == max(change.relative for change in fleet.changes)
    assert fleet.exceeds(0.0)
    assert not fleet.exceeds(1.0)


def test_scatter_between_days_is_measured(fleet: Fleet) -> None:
    monitored = fleet.followed[0].monitored
    for name, tau in zip(monitored.names, fleet.day_scatter, strict=True):
        if name.startswith("f") and abs(ROBOT.parameters[name]) > 1.0:
            assert 0.5 < tau / (0.02 * abs(ROBOT.parameters[name])) < 1.7, name


def test_a_robot_that_carries_a_load_on_all_days_is_an_outlier() -> None:
    plan = small_plan(robots=20, days=2, events={3: (Event(0, load=tuple(3.0 * x for x in LOAD)),)})
    found = assess(simulated_robots(ROBOT, BASE, plan, seed=2), CHANNELS, BASE, ROBOT)
    assert {outlier.robot for outlier in found.outliers} == {"R004"}
    assert found.changes == ()
    assert any("fewer than 5 days" in note for note in found.notes)
    one = found.outliers[0]
    assert one.sentence().startswith(f"R004: {one.parameter} is {one.value:.4g}, the fleet's is {one.fleet:.4g}")


def test_summary_names_robots_and_alarms(fleet: Fleet) -> None:
    found = fleet.summary()
    assert [robot["id"] for robot in found["robots"]] == [f"R{k:03d}" for k in range(1, 9)]
    assert {robot["id"] for robot in found["robots"] if robot["alarm"]} == {alarm["robot"] for alarm in found["alarms"]}
    assert found["false_alarm_rate"] == 0.01
    assert {"name", "value", "sigma", "shrunk", "shrunk_sigma", "score"} <= set(found["robots"][0]["estimate"][0])


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
