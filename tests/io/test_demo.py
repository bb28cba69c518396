"""The arm that comes with dynid, and its motion."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.io.demo import SHARE_OF_LIMITS, demo_description, demo_recording, demo_robot, demo_samples
from dynid.io.robots.read import read_robot


def test_the_text_of_the_arm_is_the_arm(tmp_path):
    path = tmp_path / "arm.toml"
    path.write_text(demo_description(), "utf-8")
    np.testing.assert_array_equal(read_robot(path).parameters.values, demo_robot().parameters.values)
    assert demo_robot("none").effects == ()


def test_samples_stay_in_the_limits_and_have_the_torque_of_the_arm():
    robot, samples = demo_robot(), demo_samples(seconds=4.0)
    low, high = (np.array([getattr(joint, name) for joint in robot.joints]) for name in ("q_min", "q_max"))
    assert (abs(samples.position - 0.5 * (low + high)) <= 0.5 * SHARE_OF_LIMITS * (high - low) * (1.0 + 1e-12)).all()
    assert (abs(samples.velocity) <= [joint.dq_max for joint in robot.joints]).all()
    tau = inverse_dynamics(robot, samples.position, samples.velocity, samples.acceleration)
    np.testing.assert_allclose(samples.torque, tau, atol=1e-9)


def test_noise_of_a_recording_is_a_share_of_each_torque():
    plain, noisy = demo_recording(seconds=20.0), demo_recording(seconds=20.0, torque_noise=0.1)
    np.testing.assert_array_equal(plain.position, noisy.position)
    share = (noisy.torque - plain.torque).std(axis=0) / np.sqrt((plain.torque**2).mean(axis=0))
    assert share == pytest.approx(0.1, rel=0.1)
