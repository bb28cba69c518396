"""Friction and rotors of passive joints: simulated, replayed and identified as the motors feel them through the loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from closed_robots import closed_robot, feasible_motion
from dynid.excitation.fourier import random_fourier
from dynid.recording.polynomial import PolynomialApproximation
from dynid.recording.samples import Samples
from dynid.regression.factor import factorise
from dynid.regression.passive import without_passive_effects
from dynid.regression.polynomial_rows import PolynomialRows
from dynid.regression.torque import inverse_dynamics
from dynid.robot.model import Robot
from dynid.robot.read import chosen_effects
from dynid.simulation import simulate
from dynid.simulation.friction import friction_law, friction_slopes, smoothed
from dynid.simulation.stepping import acceleration_law
from dynid.validation.replay import replay

VALUES = {"fv2": 0.7, "fc2": 0.2, "Ia2": 0.03, "fv1": 0.3, "fc1": 0.1}


def rubbing_robot() -> Robot:
    """A five-bar whose left elbow, which no motor drives, rubs and carries a rotor."""
    bare = closed_robot("five_bar", "none")
    rubbing = replace(bare, loops=replace(bare.loops, rubbing=("left_elbow",)))
    return smoothed(rubbing.with_effects(chosen_effects("viscous,coulomb,armature")), 0.05).with_parameters(VALUES)


def test_forward_dynamics_are_the_inverse_of_the_torque() -> None:
    robot = rubbing_robot()
    law, friction = acceleration_law(robot), friction_law(robot)
    for q, v, a in zip(*feasible_motion(robot, 10), strict=True):
        tau = inverse_dynamics(robot, q[None], v[None], a[None])[0]
        np.testing.assert_allclose(law(q, v, tau - friction(q, v, tau)), a, atol=1e-8 * max(1.0, np.abs(a).max()))


def test_slope_of_friction_is_its_derivative() -> None:
    robot = rubbing_robot()
    slopes, friction = friction_slopes(robot), friction_law(robot)
    q, v, _ = (part[0] for part in feasible_motion(robot, 1))
    step, tau = 1e-6, np.zeros(2)
    columns = [(friction(q, v + d, tau) - friction(q, v - d, tau)) / (2.0 * step) for d in step * np.eye(2)]
    np.testing.assert_allclose(slopes(q, v, tau), np.array(columns).T, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_simulated_motion_is_replayed() -> None:
    """The motion that friction of the passive joint slows down is met again by the robot that has it, and by no other."""
    robot = rubbing_robot()
    motion = random_fourier(robot, 0.6, 1, seed=1).samples(250.0)
    simulated = simulate(robot, motion, rate_hz=250.0, encoder_counts=None, torque_noise=0.0)
    exact = simulated.truth
    torque = inverse_dynamics(robot, exact.position, exact.velocity, exact.acceleration)
    np.testing.assert_allclose(torque, exact.torque, atol=1e-6 * np.abs(exact.torque).max())
    met, missed = (replay(one, exact, window_s=0.2) for one in (robot, without_passive_effects(robot)))
    assert met.position_drift.max() < 0.02 * missed.position_drift.max()
    assert met.replayed_energy_error < 1e-3


def test_friction_without_passive_joints_is_the_same_robot() -> None:
    robot = rubbing_robot()
    driven = without_passive_effects(robot)
    assert "fv2" not in driven.parameters.names
    assert driven.parameters["fv1"] == pytest.approx(0.3)
    assert without_passive_effects(driven) is driven


def test_polynomial_rows_hold_passive_friction() -> None:
    """Rows of a smooth motion: the true parameters explain them, without the passive joint's they do not."""
    robot = rubbing_robot()
    t = np.arange(0.0, 2.0, 0.002)
    w, size = 2.0 * np.pi * np.array([0.5, 1.0]), np.array([0.2, 0.15])
    centre = robot.loops.start[[robot.body_index(name) for name in robot.joint_names]]
    q = centre + size * np.sin(w * t[:, None])
    v, a = size * w * np.cos(w * t[:, None]), -size * w**2 * np.sin(w * t[:, None])
    samples = Samples(t, q, v, a, inverse_dynamics(robot, q, v, a))
    rows = PolynomialRows(robot, (samples,), PolynomialApproximation(window_s=0.04))
    regression = factorise(rows)
    values, names = robot.parameters.values, robot.parameters.names
    without = np.where([name in ("fv2", "fc2", "Ia2") for name in names], 0.0, values)
    for d in range(robot.n_dof):
        block = regression.channel_matrix(d)
        left, missed = (np.linalg.norm(block[:, -1] - block[:, :-1] @ phi) for phi in (values, without))
        assert left < 0.02 * missed
