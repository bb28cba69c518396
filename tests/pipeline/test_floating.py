"""What logs of a walking robot decide: the radius of its feet, its friction and its band, against what was simulated."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from dynid.errors import InputError
from dynid.io.logs.paths import log_paths
from dynid.pipeline.data import read_options
from dynid.pipeline.floating import (
    choose_floating_filter,
    with_friction_chosen,
    with_radius,
    without_poor_base,
)
from dynid.pipeline.floating_log import FloatingLog, FloatingSetup, read_floating_log
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.pipeline.signal_filter import Filter
from legged_robots import QUADRUPED_FEET
from legged_simulation import described_wrong, quadruped, walk

GIVEN = Settings(feet=QUADRUPED_FEET, cutoff_hz=12.0, signal_band_hz=40.0)


@cache
def walked() -> dict[str, Any]:
    return walk(quadruped(), 8.0, seed=0).columns


def read(settings: Settings, effects: str = "viscous,coulomb,armature") -> list[FloatingLog]:
    setup = FloatingSetup.of(quadruped(effects), settings)
    return [read_floating_log(path, setup, settings, read_options(settings)) for path in log_paths(walked())]


def chosen(settings: Settings) -> tuple[FloatingSetup, list[FloatingLog], Filter]:
    logs = read(settings)
    setup, filtered, _ = choose_floating_filter(logs, settings)
    return setup, logs, filtered


def test_bands_that_are_given_are_taken() -> None:
    setup, _, filtered = chosen(GIVEN)
    assert (filtered.cutoff_hz, filtered.row_band_hz, setup.plan.band_hz) == (40.0, 12.0, 12.0)


def test_of_several_bands_each_is_tried_and_signals_stay_wider_than_rows() -> None:
    open_bands = replace(GIVEN, cutoff_hz="auto", signal_band_hz="auto")
    _, filtered, trials = choose_floating_filter(read(GIVEN), open_bands)
    assert len({trial.filter.cutoff_hz for trial in trials}) > 1
    assert filtered.cutoff_hz > 2.0 * filtered.band_hz


def test_a_walk_without_noise_is_taken_as_logged_and_its_intervals_hold() -> None:
    clean = {name: column for name, column in walked().items() if not name.startswith("imu")}
    run = identify(described_wrong(quadruped("viscous,armature")), clean, Settings(feet=QUADRUPED_FEET, friction="linear"))
    assert run.filter is not None
    assert (run.filter.order, run.rows.acceleration) == (0, "logged")
    own = quadruped().parameters.as_dict()
    truth = [own.get(name, 0.01 if name.startswith("fv") else 0.0) for name in run.robot.parameters.names]
    low, high = run.intervals[run.estimate.seen].T
    values = run.estimate.base.base_values(truth)[run.estimate.seen]
    assert ((low <= values) & (values <= high)).mean() > 0.9


def test_the_radius_of_the_simulated_feet_is_found() -> None:
    setup, logs, filtered = chosen(GIVEN)
    found, notes = with_radius(setup, logs, filtered, GIVEN)
    assert found.plan.foot_radius == pytest.approx(0.015, abs=0.004)
    assert "feet are round" in notes[0]
    stated, silent = with_radius(setup, logs, filtered, replace(GIVEN, foot_radius=0.0))
    assert (stated, silent) == (setup, ())


def test_friction_that_was_simulated_or_costs_nothing_is_kept() -> None:
    setup, logs, filtered = chosen(GIVEN)
    found, notes = with_friction_chosen(setup, logs, filtered, GIVEN)
    assert any(effect.name == "viscous" for effect in found.robot.effects)
    assert "held-out error of the rows" in notes[0]


def test_a_base_that_feet_push_keeps_its_rows() -> None:
    setup, logs, filtered = chosen(GIVEN)
    assert without_poor_base(setup, logs, filtered, GIVEN) == (setup, ())


def test_a_band_that_the_rate_cannot_hold_is_refused() -> None:
    with pytest.raises(InputError, match="--cutoff-hz below"):
        choose_floating_filter(read(GIVEN), replace(GIVEN, cutoff_hz=1000.0))
