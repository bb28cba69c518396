"""Implicit steps for friction that is much faster than the motion, against explicit ones that resolve it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dynid.adapters.recursions import forward_dynamics, mobility
from dynid.errors import InputError
from dynid.excitation.fourier import random_fourier
from dynid.robot.effects import Coulomb, Stribeck, Viscous
from dynid.simulation import simulate
from dynid.simulation.friction import friction_law, friction_slopes, smoothed
from dynid.simulation.loop import _with_friction
from dynid.simulation.stepping import integration_model, stable_steps
from dynid.simulation.stiff import stiff_integrator
from problems import demo_arm, planar_2r


def stiff_arm():
    """Dry friction of 20 N m on a link of 0.1 kg m^2: it decays in 50 us."""
    return planar_2r([Coulomb(), Viscous()]).with_parameters({"fc1": 5.0, "fc2": 20.0, "fv2": 1.0})


def test_explicit_steps_are_left_to_what_needs_few():
    easy = planar_2r([Coulomb(), Viscous()]).with_parameters({"fc1": 0.5, "fc2": 0.1})
    motion = random_fourier(easy, 2.0, 3, seed=1).samples(200.0)
    assert stable_steps(easy, motion, 1e-3, None)[1] in range(1, 9)
    assert stable_steps(stiff_arm(), motion, 1e-3, None)[1] is None
    assert stable_steps(stiff_arm(), motion, 1e-3, 7)[1] == 7


def test_motion_is_that_of_explicit_steps_which_resolve_friction():
    robot = stiff_arm()
    motion = random_fourier(robot, 2.0, 3, seed=1).samples(200.0)[:41]
    ours, exact = (simulate(robot, motion, torque_noise=0.0, encoder_counts=None, substeps=n) for n in (None, 150))
    assert (np.sign(ours.truth.velocity[:, 1]) != np.sign(ours.truth.velocity[0, 1])).any()  # a reversal is among it
    np.testing.assert_allclose(ours.truth.position, exact.truth.position, atol=1e-6)
    np.testing.assert_allclose(ours.truth.velocity, exact.truth.velocity, atol=1e-3)


def test_slopes_are_the_derivative_of_the_law():
    robot = smoothed(planar_2r([Coulomb(), Viscous(), Stribeck()]), 0.05)
    robot = robot.with_parameters({name: 0.7 for name in robot.parameters.names if name.startswith("f")})
    law, slopes = friction_law(robot), friction_slopes(robot)
    q, v, tau = np.array([0.3, -0.2]), np.array([0.02, -0.4]), np.array([1.0, 2.0])
    step = 1e-6
    wanted = np.array([(law(q, v + e, tau) - law(q, v - e, tau)) / (2 * step) for e in step * np.eye(2)]).T
    np.testing.assert_allclose(slopes(q, v, tau), wanted, rtol=1e-5, atol=1e-6)


def test_mobility_is_what_a_unit_torque_does():
    robot = demo_arm()
    model = integration_model(robot)
    q, still = np.linspace(-0.5, 0.7, robot.n_dof), np.zeros(robot.n_dof)
    acceleration = forward_dynamics(model)
    free = acceleration(q, still, still).copy()
    wanted = np.array([acceleration(q, still, unit) - free for unit in np.eye(robot.n_dof)])
    np.testing.assert_allclose(mobility(model)(q), wanted, rtol=1e-9, atol=1e-12)


def test_a_joint_that_no_step_follows_is_named(monkeypatch):
    robot = smoothed(stiff_arm(), 0.01)
    integrated = stiff_integrator(robot, _with_friction(robot), 1e-3)
    monkeypatch.setattr("dynid.simulation.stiff.SHORTEST", 0.5)
    with pytest.raises(InputError, match=re.escape(f"'{robot.joint_names[1]}'")):
        integrated(np.zeros(2), np.array([0.0, 1e-3]), np.array([0.0, 60.0]))


def test_progress_is_told():
    robot, told = stiff_arm(), []
    simulate(robot, random_fourier(robot, 2.0, 3, seed=1).samples(200.0)[:21], tell=told.append)
    assert told[0] == "simulating: 0.0 of 0.1 s"
    assert len(told) >= 100
