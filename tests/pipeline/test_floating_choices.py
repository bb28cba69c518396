"""What logs of a walking robot decide: the radius of its feet, its friction and its band, against what was simulated."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from dynid.errors import InputError
from dynid.io.logs.paths import log_paths
from dynid.pipeline.data import read_options
from dynid.pipeline.floating_choices import (
    FloatingChoice,
    choose_floating_filter,
    with_friction_chosen,
    with_radius,
    without_poor_base,
)
from dynid.pipeline.floating_data import FloatingLog, FloatingSetup, read_floating_log
from dynid.pipeline.options import Settings
from legged_robots import QUADRUPED_FEET
from legged_simulation import quadruped, walk

GIVEN = Settings(feet=QUADRUPED_FEET, cutoff_hz=12.0, signal_band_hz=40.0)


@cache
def walked() -> dict[str, Any]:
    return walk(quadruped(), 8.0, seed=0).columns


def read(settings: Settings, effects: str = "viscous,coulomb,armature") -> tuple[FloatingSetup, list[FloatingLog]]:
    setup = FloatingSetup.of(quadruped(effects), settings)
    return setup, [read_floating_log(path, setup, settings, read_options(settings)) for path in log_paths(walked())]


def chosen(settings: Settings) -> tuple[FloatingSetup, list[FloatingLog], FloatingChoice]:
    setup, logs = read(settings)
    choice, _ = choose_floating_filter(setup, logs, settings)
    return setup, logs, choice


def test_bands_that_are_given_are_taken() -> None:
    _, _, choice = chosen(GIVEN)
    assert (choice.filter.cutoff_hz, choice.filter.row_band_hz) == (40.0, 12.0)


def test_of_several_bands_each_is_tried_and_signals_stay_wider_than_rows() -> None:
    setup, logs = read(GIVEN)
    choice, trials = choose_floating_filter(setup, logs, replace(GIVEN, cutoff_hz="auto", signal_band_hz="auto"))
    assert len({trial.filter.cutoff_hz for trial in trials}) > 1
    assert choice.filter.cutoff_hz > 2.0 * choice.filter.band_hz


def test_the_radius_of_the_simulated_feet_is_found() -> None:
    setup, logs, choice = chosen(GIVEN)
    found, notes = with_radius(setup, logs, choice, GIVEN, lambda text: None)
    assert found.plan.foot_radius == pytest.approx(0.015, abs=0.004)
    assert "feet are round" in notes[0]
    stated, silent = with_radius(setup, logs, choice, replace(GIVEN, foot_radius=0.0), lambda text: None)
    assert (stated, silent) == (setup, ())


def test_friction_that_was_simulated_or_costs_nothing_is_kept() -> None:
    setup, logs, choice = chosen(GIVEN)
    found, notes = with_friction_chosen(setup, logs, choice, GIVEN, lambda text: None)
    assert any(effect.name == "viscous" for effect in found.robot.effects)
    assert "held-out error of the rows" in notes[0]


def test_a_base_that_feet_push_keeps_its_rows() -> None:
    setup, logs, choice = chosen(GIVEN)
    assert without_poor_base(setup, logs, choice, GIVEN) == (setup, ())


def test_a_band_that_the_rate_cannot_hold_is_refused() -> None:
    setup, logs = read(GIVEN)
    with pytest.raises(InputError, match="--cutoff-hz below"):
        choose_floating_filter(setup, logs, replace(GIVEN, cutoff_hz=1000.0))
