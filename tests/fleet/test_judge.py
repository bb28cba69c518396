from __future__ import annotations

import datetime

import numpy as np
import pytest
import scipy.stats

from dynid.fleet.changes import changes_of, excess_variance
from dynid.fleet.daily import Followed, Monitored, follow
from dynid.fleet.information import Information, Reducer, by_day, noise_of
from dynid.fleet.judge import Fleet, assess
from dynid.fleet.simulated import Event, simulated_fleet, simulated_robots
from dynid.fleet.spread import outlier_threshold, spread_of
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import torque_channels
from small_fleet import LOAD, small_plan, small_robot

ROBOT = small_robot()
BASE = reduce_to_base(ROBOT)
CHANNELS = torque_channels(ROBOT)


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return assess(simulated_robots(ROBOT, BASE, small_plan(torque_noise=1e-3), seed=1), CHANNELS, BASE, ROBOT)


def test_values_of_every_day_are_exact_without_noise() -> None:
    """Friction of each day, and the load that comes, as they were put in."""
    events = {0: (Event(3, joint=1, factor=1.5), Event(4, load=LOAD))}
    plan = small_plan(
        robots=1, days=6, events=events, torque_noise=1e-9, day_scatter=0.0, body_spread=0.0, friction_spread=0.0
    )
    entries = list(simulated_fleet(ROBOT, BASE, plan))
    reducer, sigma = Reducer(CHANNELS, BASE), noise_of(entries)
    monitored = Monitored.of(ROBOT, BASE)
    one = follow("R", by_day([reducer.information(entry, sigma) for entry in entries]), monitored)
    for p, (name, kind) in enumerate(zip(monitored.names, monitored.kinds, strict=True)):
        if kind == "load":
            continue
        factor = np.where((np.arange(6) >= 3) & (kind == "friction") & name.endswith("1"), 1.5, 1.0)
        np.testing.assert_allclose(one.values[:, p], ROBOT.parameters[name] * factor, rtol=1e-5, atol=1e-5)
    # a planar two-joint arm shows of a load its first moments; its mass is not apart from them
    for name, value in (("load mx", LOAD[1]), ("load my", LOAD[2]), ("load mz", LOAD[3]), ("load m", LOAD[0])):
        if name in monitored.names and value != 0.0:
            values = one.values[:, monitored.names.index(name)]
            assert values[4:].mean() - values[:4].mean() == pytest.approx(value, rel=1e-3), name
    assert any(kind == "load" for kind in monitored.kinds)


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
        assert f"changed on 2026-01-06 from {change.before:.4g}" in change.sentence()
    assert fleet.exceeds(0.0)
    assert not fleet.exceeds(1.0)


def test_scatter_between_days_is_measured(fleet: Fleet) -> None:
    monitored = fleet.followed[0].monitored
    for name, tau in zip(monitored.names, fleet.day_scatter, strict=True):
        if name.startswith("f") and abs(ROBOT.parameters[name]) > 1.0:
            assert 0.5 < tau / (0.02 * abs(ROBOT.parameters[name])) < 1.7, name


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
