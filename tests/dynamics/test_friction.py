"""Friction and rotors of passive joints: simulated, replayed and identified as the motors feel them through the loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from closed_robots import closed_robot, feasible_motion
from dynid.dynamics.forward_dynamics import forward_dynamics
from dynid.dynamics.friction import friction_torque, friction_with_slope, smooth_friction, without_passive_effects
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.simulate import simulate
from dynid.excitation.shapes import random_fourier
from dynid.io.robots.read import chosen_effects
from dynid.model.effects.dry_friction import Coulomb, SmoothCoulomb, Stribeck
from dynid.model.effects.linear import Viscous
from dynid.model.effects.wrapped import Coupled, OnJoints
from dynid.model.robot import Robot
from dynid.regression.factor import factorise
from dynid.regression.polynomial_rows import PolynomialRows
from dynid.signals.polynomial_kernels import PolynomialApproximation
from dynid.signals.samples import Samples
from dynid.validation.replay import replay
from problems import planar_2r

VALUES = {"fv2": 0.7, "fc2": 0.2, "Ia2": 0.03, "fv1": 0.3, "fc1": 0.1}


def rubbing_robot() -> Robot:
    """A five-bar whose left elbow, which no motor drives, rubs and carries a rotor."""
    bare = closed_robot("five_bar", "none")
    rubbing = replace(bare, loops=replace(bare.loops, rubbing=("left_elbow",)))
    return smooth_friction(rubbing.with_effects(chosen_effects("viscous,coulomb,armature")), 0.05).with_parameters(VALUES)


def test_forward_dynamics_are_the_inverse_of_the_torque() -> None:
    robot = rubbing_robot()
    dynamics, friction = forward_dynamics(robot), friction_torque(robot)
    for q, v, a in zip(*feasible_motion(robot, 10), strict=True):
        tau = inverse_dynamics(robot, q[None], v[None], a[None])[0]
        np.testing.assert_allclose(
            dynamics.acceleration(q, v, tau - friction(q, v, tau)), a, atol=1e-8 * max(1.0, np.abs(a).max())
        )


def test_slope_of_friction_is_its_derivative() -> None:
    robot = rubbing_robot()
    friction = friction_torque(robot)
    q, v, _ = (part[0] for part in feasible_motion(robot, 1))
    step, tau = 1e-6, np.zeros(2)
    columns = [(friction(q, v + d, tau) - friction(q, v - d, tau)) / (2.0 * step) for d in step * np.eye(2)]
    slope = friction_with_slope(friction, q[None], v[None], tau[None])[1][0]
    np.testing.assert_allclose(slope, np.array(columns).T, rtol=1e-4, atol=1e-6)


def test_slopes_are_the_derivative_of_the_law():
    robot = smooth_friction(planar_2r([Coulomb(), Viscous(), Stribeck()]), 0.05)
    robot = robot.with_parameters({name: 0.7 for name in robot.parameters.names if name.startswith("f")})
    law = friction_torque(robot)
    q, v, tau = np.array([0.3, -0.2]), np.array([0.02, -0.4]), np.array([1.0, 2.0])
    step = 1e-6
    wanted = np.array([(law(q, v + e, tau) - law(q, v - e, tau)) / (2 * step) for e in step * np.eye(2)]).T
    slope = friction_with_slope(law, q[None], v[None], tau[None])[1][0]
    np.testing.assert_allclose(slope, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "effect",
    [
        SmoothCoulomb(smooth_width=0.05),
        OnJoints(Coulomb(smooth_width=0.05), (1,)),
        Coulomb(smooth_width=(0.05, 0.0)),
        Coulomb(dead_zone=0.1),
        Coupled(Coulomb(smooth_width=0.1), ((1.0, 0.0), (1.0, 1.0))),
    ],
    ids=["smooth", "one joint", "partly sharp", "dead zone", "motors"],
)
def test_friction_is_that_of_inverse_dynamics(effect) -> None:
    """However its effects are written: each is counted once."""
    robot = planar_2r([Viscous(), effect])
    robot = robot.with_parameters({name: 0.7 for name in robot.parameters.names if name.startswith("f")})
    q, v, still = np.array([[0.3, -0.2]] * 3), np.array([[0.02, -0.4], [-0.05, 0.2], [1.0, -2.0]]), np.zeros((3, 2))
    wanted = inverse_dynamics(robot, q, v, still) - inverse_dynamics(robot, q, v, still, effects=False)
    friction = friction_torque(robot)
    np.testing.assert_allclose(friction(q, v, still), wanted, atol=1e-12)
    np.testing.assert_allclose(friction(q[0], v[0], still[0]), wanted[0], atol=1e-12)


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
