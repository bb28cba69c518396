"""Bias and delay of an IMU on a walking robot, against those that were simulated."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from dynid.io.logs.paths import log_paths
from dynid.pipeline.data import read_options
from dynid.pipeline.floating_log import FloatingLog, FloatingSetup, read_floating_log
from dynid.pipeline.imu import find_imu_errors, with_imu_moves
from dynid.pipeline.options import Settings
from dynid.pipeline.signal_filter import Filter
from legged_robots import QUADRUPED_FEET
from legged_simulation import Logging, quadruped, walk

SETTINGS = Settings(feet=QUADRUPED_FEET, foot_radius=0.0135)
FILTER = Filter(20.0, 8.0, 4, "logged", row_band_hz=8.0)
BIAS, DELAY_S = (0.2, -0.15, 0.1, 0.0, 0.0, 0.0), 0.004


@cache
def columns(faulty: bool) -> dict[str, Any]:
    logging = Logging(imu_bias=BIAS, imu_delay_s=DELAY_S) if faulty else Logging()
    return walk(quadruped(), 10.0, seed=3, logging=logging, torque_noise=0.03, motion_noise=1.0).columns


def logs(faulty: bool, without: str = "nothing") -> tuple[FloatingSetup, list[FloatingLog]]:
    setup = FloatingSetup.of(quadruped("viscous,armature"), SETTINGS).filtered(FILTER, False)
    own = {name: x for name, x in columns(faulty).items() if not name.startswith(without)}
    return setup, [read_floating_log(path, setup, SETTINGS, read_options(SETTINGS)) for path in log_paths(own)]


def test_errors_are_found_within_their_intervals_and_undone() -> None:
    setup, own = logs(True)
    found, told = find_imu_errors(setup, own, FILTER, SETTINGS)
    assert [one.quantity for one in told] == [*(f"accelerometer bias {axis}" for axis in "xyz"), "delay"]
    assert all(one.undone for one in told)
    for one, truth in zip(told, (*BIAS[:3], DELAY_S), strict=True):
        assert one.lower is not None
        assert one.upper is not None
        half = 0.5 * (one.upper - one.lower)
        assert abs(0.5 * (one.upper + one.lower) - truth) < 1.5 * half
    assert found.plan.imu[:2] == pytest.approx(BIAS[:2], abs=0.04)
    assert found.plan.imu[-1] == pytest.approx(DELAY_S, abs=0.0005)
    assert found.plan.imu[3:6] == (0.0, 0.0, 0.0)


def test_what_is_not_known_of_them_goes_into_base_values() -> None:
    setup, own = logs(True)
    found = find_imu_errors(setup, own, FILTER, SETTINGS)[0]
    moves = with_imu_moves(found, own, FILTER).moves
    assert moves is not None
    assert moves.shape[1] == 4
    assert moves.any(axis=0).all()


@pytest.mark.parametrize(("without", "count"), [("nothing", 4), ("base_", 7)])
def test_nothing_is_undone_where_there_are_none(without: str, count: int) -> None:
    setup, own = logs(False, without)
    found, told = find_imu_errors(setup, own, FILTER, SETTINGS)
    assert len(told) == count
    assert found.plan.imu == ()
    assert with_imu_moves(found, own, FILTER).moves is None


def test_a_log_without_an_imu_is_left_alone() -> None:
    setup, own = logs(False, "imu_")
    assert find_imu_errors(setup, own, FILTER, SETTINGS) == (setup, ())


def test_a_plan_with_errors_is_stored_and_corrects_what_is_logged() -> None:
    setup, own = logs(True)
    corrected = replace(setup, plan=replace(setup.plan, imu=(*BIAS, DELAY_S)))
    assert type(corrected.plan).from_dict(corrected.plan.as_dict()) == corrected.plan
    clean, raw, undone = (one.filtered_base(FILTER) for one in (logs(False)[1][0], own[0], replace(own[0], setup=corrected)))
    place = own[0].columns["imu_acceleration"]
    left, before = (float(abs(one.position[50:-50, place] - clean.position[50:-50, place]).mean()) for one in (undone, raw))
    assert left < 0.2 * before
