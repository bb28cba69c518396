"""Bands chosen by the data: wide ones behind the valley are not tried, and the choice is that of trying all."""

from __future__ import annotations

import math

import pytest

import dynid
from dynid.dynamics.simulate import simulate
from dynid.excitation.shapes import random_fourier
from dynid.model.effects.friction_models import friction_effects
from dynid.model.friction import with_friction
from dynid.model.robot import Robot
from dynid.pipeline import filter_selection as bands
from dynid.pipeline.options import Settings
from dynid.signals.recording import Recording

ERRORS = {3.0: 0.9, 5.0: 1.0, 8.0: 0.8, 12.0: 0.805, 20.0: 1.1, 30.0: 0.5}


def test_a_valley_ends_with_the_first_band_behind_it() -> None:
    assert bands._valley(list(ERRORS), ERRORS.__getitem__) == [3.0, 5.0]
    assert bands._valley([5.0, 8.0, 12.0, 20.0, 30.0], ERRORS.__getitem__) == [5.0, 8.0, 12.0, 20.0]
    assert bands._alike([[3.0], [5.0, 8.0, 12.0]], ERRORS.__getitem__) == [8.0, 12.0]


def test_bands_that_give_no_number_do_not_end_the_search() -> None:
    errors = {3.0: math.inf, 5.0: math.inf, 8.0: 1.0}
    assert bands._valley(list(errors), errors.__getitem__) == [3.0, 5.0, 8.0]


@pytest.mark.parametrize("counts", [2**14, 2**20])
def test_the_choice_is_that_of_trying_all(counts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    robot, log = two_joints(), noisy_log(counts)
    chosen, trials = bands.choose_bands(robot, [log], Settings())
    monkeypatch.setattr(bands, "BEHIND", math.inf)
    other, all_trials = bands.choose_bands(robot, [log], Settings())
    assert chosen == other
    assert {one.filter for one in trials} <= {one.filter for one in all_trials}
    if counts == 2**14:  # coarse encoders: noise of wide bands is far above the rest
        assert len(trials) < len(all_trials)


def two_joints() -> Robot:
    return with_friction(dynid.demo_robot().only(["shoulder_pitch", "elbow"]), friction_effects("linear"))


def noisy_log(counts: int) -> Recording:
    arm = dynid.demo_robot().only(["shoulder_pitch", "elbow"])
    motion = random_fourier(arm, 10.0, 5, seed=1).samples(500.0)
    return simulate(arm, motion, rate_hz=500.0, seed=1, encoder_counts=counts).recording
