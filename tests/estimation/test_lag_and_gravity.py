"""Delay of torque and direction of gravity are found with intervals, from a motion that shows them."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import InputError
from dynid.estimation.lag_and_gravity import find_lag_and_gravity
from dynid.io.demo import demo_recording, demo_robot, demo_samples
from dynid.model.effects.dry_friction import SmoothCoulomb
from dynid.pipeline.data import delayed
from dynid.pipeline.robot_setup import described_robot
from dynid.regression.row_filter import BandLimit

EFFECTS = ("viscous", SmoothCoulomb(smooth_width=0.05), "offset", "armature")
LEANING = (0.3, -0.15, -9.8)


def test_both_are_found_together() -> None:
    robot = demo_robot(effects=EFFECTS).with_parameters({f"fc{j}": 1.0 for j in range(1, 8)})
    samples = demo_samples(robot.with_gravity(LEANING), seconds=20.0, rate_hz=200.0)
    torque = np.asarray(samples.torque)
    noise = 0.005 * torque.std(axis=0) * np.random.default_rng(0).normal(size=torque.shape)
    late = np.column_stack([np.interp(samples.time - 0.006, samples.time, own) for own in torque.T]) + noise
    found = find_lag_and_gravity(
        robot, [samples.with_torque(late)], BandLimit(10.0), lag=True, gravity=True, with_friction=[lambda one, _: one]
    )
    assert found.delay_s == pytest.approx(0.006, abs=5e-5)
    assert 2.5e-4 < found.delay_sigma < 3e-4  # a twentieth of the period, and the noise
    true = np.array(LEANING) * (9.81 / np.linalg.norm(LEANING))
    np.testing.assert_allclose(found.gravity, true, atol=0.01)
    degrees = np.rad2deg(np.arccos(true[2] / -9.81))
    assert found.degrees == pytest.approx(degrees, abs=max(3.0 * found.degrees_sigma, 0.02))
    assert "6" in found.delay_note()
    assert "degrees" in found.gravity_note()


def test_short_logs_ask_for_numbers() -> None:
    robot = demo_robot(effects=EFFECTS)
    with pytest.raises(InputError, match="too short"):
        find_lag_and_gravity(
            robot, [demo_samples(robot)[:50]], None, lag=True, gravity=False, with_friction=[lambda one, _: one]
        )


def test_options_of_a_run_undo_them() -> None:
    robot, log = demo_robot(), demo_recording(seconds=12.0)
    late = np.column_stack([np.interp(log.time - 0.02, log.time, own) for own in np.asarray(log.torque).T])
    wrong = dynid.Recording(time=log.time, position=log.position, torque=late, joint_names=log.joint_names)
    settings = {"friction": "linear", "cutoff_hz": 8.0, "method": "ols", "split": 0.65}
    before, asked, given = (
        dynid.identify(robot, wrong, dynid.Settings(**settings, torque_delay=delay)) for delay in (0.0, "auto", 0.02)
    )
    assert asked.settings.torque_delay == pytest.approx(0.02, abs=1e-3)
    assert any("later than position" in note and "95 %" in note for note in asked.notes)
    for run in (asked, given):
        assert run.validation.relative_error < 0.7 * before.validation.relative_error
    leaning = dynid.identify(robot.with_gravity(LEANING), log, dynid.Settings(**settings, gravity="auto"))
    np.testing.assert_allclose(leaning.robot.gravity, robot.gravity, atol=0.1)
    np.testing.assert_allclose(leaning.settings.gravity, leaning.robot.gravity)
    with pytest.raises(InputError, match="found by identify"):
        delayed(log, "auto")
    with pytest.raises(InputError, match="found by identify"):
        described_robot(robot, dynid.Settings(gravity="auto"))
