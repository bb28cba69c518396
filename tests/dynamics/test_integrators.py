"""Implicit steps for friction that is much faster than the motion, against explicit ones that resolve it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dynid.dynamics.forward_dynamics import forward_dynamics
from dynid.dynamics.friction import friction_torque, smooth_friction
from dynid.dynamics.integrators import stable_steps, stiff_integrator
from dynid.dynamics.simulate import simulate
from dynid.errors import InputError
from dynid.excitation.shapes import random_fourier
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Viscous
from problems import planar_2r


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


def test_a_joint_that_no_step_follows_is_named(monkeypatch):
    robot = smooth_friction(stiff_arm(), 0.01)
    dynamics, friction = forward_dynamics(robot), friction_torque(robot)
    integrated = stiff_integrator(robot, lambda q, v, tau: dynamics.acceleration(q, v, tau - friction(q, v, tau)), 1e-3)
    monkeypatch.setattr("dynid.dynamics.integrators.SHORTEST", 0.5)
    with pytest.raises(InputError, match=re.escape(f"'{robot.joint_names[1]}'")):
        integrated(np.zeros(2), np.array([0.0, 1e-3]), np.array([0.0, 60.0]))


def test_progress_is_told():
    robot, told = stiff_arm(), []
    simulate(robot, random_fourier(robot, 2.0, 3, seed=1).samples(200.0)[:21], tell=told.append)
    assert told[0] == "simulating: 0.0 of 0.1 s"
    assert len(told) >= 100
