"""The momentum form ``Y phi = d/dt (A phi) - B phi``."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.regressors import kinetic_and_potential, momentum_regressor, static_regressor, torque_regressor
from dynid.errors import InputError
from messages import facts
from problems import random_motion, random_tree

# Central differences of order eight: offsets 1..4 forward minus backward.
STENCIL = {1: 4.0 / 5.0, 2: -1.0 / 5.0, 3: 4.0 / 105.0, 4: -1.0 / 280.0}
SEEDS = [30, 31, 32, 33]


def derivative(function, step):
    return sum(weight * (function(k * step) - function(-k * step)) for k, weight in STENCIL.items()) / step


@pytest.mark.parametrize("seed", SEEDS)
def test_torque_is_the_rate_of_momentum_less_the_drift(seed, wave):
    robot = random_tree(seed, 7)
    motion, t = wave(7, seed), np.linspace(0.0, 5.0, 12)
    Y = torque_regressor(robot, *motion(t))
    rate = derivative(lambda dt: momentum_regressor(robot, *motion(t + dt)[:2])[0], 5e-3)
    drift = momentum_regressor(robot, *motion(t)[:2])[1]
    np.testing.assert_allclose(rate - drift, Y, rtol=0, atol=1e-10 * np.abs(Y).max())


@pytest.mark.parametrize("seed", SEEDS)
def test_momentum_is_the_inertia_matrix_times_velocity(seed):
    robot = random_tree(seed, 7)
    q, v, _ = random_motion(robot, 10, seed)
    A, _ = momentum_regressor(robot, q, v)
    expected = np.einsum("sdep,se->sdp", static_regressor(robot, q)[0], v)
    np.testing.assert_allclose(A, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("seed", SEEDS)
def test_momentum_carries_twice_the_kinetic_energy(seed):
    robot = random_tree(seed, 7)
    q, v, _ = random_motion(robot, 10, seed)
    A, _ = momentum_regressor(robot, q, v)
    kinetic, _ = kinetic_and_potential(robot, q, v)
    np.testing.assert_allclose(np.einsum("sd,sdp->sp", v, A), 2.0 * kinetic, rtol=0, atol=1e-12 * np.abs(kinetic).max())


@pytest.mark.parametrize("seed", SEEDS)
def test_drift_is_the_slope_of_the_lagrangian(seed):
    robot = random_tree(seed, 6)
    q, v, _ = random_motion(robot, 6, seed)
    _, B = momentum_regressor(robot, q, v)

    def lagrangian(joint, dq):
        moved = q.copy()
        moved[:, joint] += dq
        kinetic, potential = kinetic_and_potential(robot, moved, v)
        return kinetic - potential

    for d in range(robot.n_dof):
        slope = derivative(lambda dq, d=d: lagrangian(d, dq), 2e-2)
        np.testing.assert_allclose(B[:, d], slope, rtol=0, atol=1e-10 * np.abs(B).max())


@pytest.mark.parametrize("seed", SEEDS)
def test_drift_at_rest_is_gravity_and_acceleration_enters_through_the_inertia_matrix(seed):
    robot = random_tree(seed, 7)
    q, v, a = random_motion(robot, 10, seed)
    still = np.zeros_like(v)
    Y_inertia, Y_gravity = static_regressor(robot, q)
    np.testing.assert_allclose(
        momentum_regressor(robot, q, still)[1], -Y_gravity, rtol=0, atol=1e-13 * np.abs(Y_gravity).max()
    )
    difference = torque_regressor(robot, q, v, a) - torque_regressor(robot, q, v, still)
    expected = np.einsum("sdep,se->sdp", Y_inertia, a)
    np.testing.assert_allclose(difference, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_a_floating_base_is_refused():
    robot = random_tree(34, 3, floating=True)
    q, v, _ = random_motion(robot, 2)
    with pytest.raises(InputError, match=facts("tree34", "floating", "velocity")):
        momentum_regressor(robot, q, v)
