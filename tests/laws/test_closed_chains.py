"""Laws of closed chains: projected torque is constrained inverse dynamics, energy is conserved, and rows of every kind agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from closed_robots import MECHANISMS, closed_robot, constrained_inverse_dynamics, feasible_motion
from dynid.dynamics.closed_chains import closures_of, tree_motion
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.regressors import energy_regressor, momentum_regressor, static_regressor, torque_regressor
from dynid.io.robots.read import chosen_effects
from dynid.regression.base import reduce_to_base
from dynid.regression.energy_rows import EnergyRows
from dynid.regression.factor import factorise
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples


@pytest.mark.parametrize("name", MECHANISMS)
def test_projected_torque_is_constrained_inverse_dynamics(name):
    robot = closed_robot(name)
    q, v, a = feasible_motion(robot, 40)
    expected, unexplained, slip = constrained_inverse_dynamics(robot, q, v, a)
    size = np.abs(expected).max()
    assert unexplained < 1e-8 * size
    assert slip < 1e-10
    tau = inverse_dynamics(robot, q, v, a)
    assert np.abs(tau - expected).max() < 1e-8 * size
    Y = torque_regressor(robot, q, v, a)
    assert np.abs(Y @ robot.parameters.values - expected).max() < 1e-8 * size


@pytest.mark.parametrize("name", MECHANISMS)
def test_power_of_the_motors_is_the_rate_of_energy(name):
    """``v . tau = d/dt E`` without friction, by central differences of the energy along a motion."""
    robot = closed_robot(name)
    q, v, a = feasible_motion(robot, 60)
    h = 1e-5
    phi = robot.parameters.values

    def energy(sign: float):
        return energy_regressor(robot, q + sign * h * v + 0.5 * h**2 * a, v + sign * h * a) @ phi

    rate = (energy(1.0) - energy(-1.0)) / (2.0 * h)
    power = (inverse_dynamics(robot, q, v, a) * v).sum(axis=1)
    assert np.abs(rate - power).max() < 1e-6 * np.abs(power).max()


@pytest.mark.parametrize("name", MECHANISMS)
def test_torque_is_the_rate_of_momentum_less_the_drift(name):
    """``tau = d/dt (G^T A phi) - (G^T B + dG/dt^T A) phi``."""
    robot = closed_robot(name)
    q, v, a = feasible_motion(robot, 40)
    h = 1e-5
    phi = robot.parameters.values

    def momentum(sign: float):
        return momentum_regressor(robot, q + sign * h * v + 0.5 * h**2 * a, v + sign * h * a)[0] @ phi

    drift = momentum_regressor(robot, q, v)[1] @ phi
    tau = inverse_dynamics(robot, q, v, a)
    found = (momentum(1.0) - momentum(-1.0)) / (2.0 * h) - drift
    assert np.abs(found - tau).max() < 1e-6 * np.abs(tau).max()


def test_inertia_matrix_and_gravity_make_up_the_torque_at_rest():
    robot = closed_robot("delta_rl5")
    q, v, a = feasible_motion(robot, 10)
    Y_M, Y_g = static_regressor(robot, q)
    phi = robot.parameters.values
    M = Y_M @ phi
    assert np.abs(M - M.swapaxes(1, 2)).max() < 1e-10 * np.abs(M).max()
    assert np.linalg.eigvalsh(M).min() > 0.0
    expected = inverse_dynamics(robot, q, 0.0 * v, a)
    np.testing.assert_allclose((M @ a[:, :, None])[:, :, 0] + Y_g @ phi, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", MECHANISMS)
def test_rows_of_a_log_recover_the_base_parameters(name):
    robot = closed_robot(name, "viscous,coulomb,armature")
    q, v, a = feasible_motion(robot, 400)
    samples = Samples(np.arange(400) * 0.01, q, v, a, inverse_dynamics(robot, q, v, a))
    base = reduce_to_base(robot)
    regression = factorise(TorqueRows(robot, (samples,)))
    stacked = np.vstack([regression.channel_matrix(d) for d in range(robot.n_dof)])
    W, y = stacked[:, :-1] @ base.lift, stacked[:, -1]
    beta = np.linalg.lstsq(W, y, rcond=None)[0]
    truth = base.base_values(robot.parameters)
    assert np.abs(W @ truth - y).max() < 1e-9 * np.abs(y).max()
    np.testing.assert_allclose(beta, truth, atol=1e-7 * np.abs(truth).max())


def test_friction_of_passive_joints_reaches_the_motors_through_the_loops():
    """Dissipated power: the motors supply what the passive joint loses."""
    bare = closed_robot("five_bar")
    rubbing = replace(bare, loops=replace(bare.loops, rubbing=("left_elbow",)))
    robot = rubbing.with_effects(chosen_effects("viscous,coulomb")).with_parameters({"fv2": 0.7, "fc2": 0.2})
    assert "fv2" in robot.parameters.names
    q, v, a = feasible_motion(robot, 30)
    still = robot.with_parameters({"fv2": 0.0, "fc2": 0.0})
    extra = inverse_dynamics(robot, q, v, a) - inverse_dynamics(still, q, v, a)
    elbow = tree_motion(robot, q, v, a).velocity[:, 1]
    np.testing.assert_allclose((extra * v).sum(axis=1), 0.7 * elbow**2 + 0.2 * np.abs(elbow), rtol=1e-9)
    Y = torque_regressor(robot, q, v, a)
    np.testing.assert_allclose(Y @ robot.parameters.values, inverse_dynamics(robot, q, v, a), atol=1e-11)
    samples = Samples(np.arange(30) * 0.01, q, v, a, inverse_dynamics(robot, q, v, a))
    regression = factorise(TorqueRows(robot, (samples,)))
    for d in range(robot.n_dof):
        block = regression.channel_matrix(d)
        assert np.abs(block[:, :-1] @ robot.parameters.values - block[:, -1]).max() < 1e-9


def test_energy_rows_hold_along_a_closed_motion():
    robot = closed_robot("five_bar", "viscous,offset,armature").with_parameters({"fo1": 0.2})
    t = np.arange(0.0, 2.0, 0.001)
    w = 2.0 * np.pi * np.array([0.5, 1.0])
    centre, size = closures_of(robot).loops.start[[0, 2]], np.array([0.2, 0.15])
    q = centre + size * np.sin(w * t[:, None])
    v, a = size * w * np.cos(w * t[:, None]), -size * w**2 * np.sin(w * t[:, None])
    samples = Samples(t, q, v, a, inverse_dynamics(robot, q, v, a))
    (chunk,) = EnergyRows(robot, (samples,), interval_s=0.1).passes()
    (block,) = chunk.blocks
    assert np.abs(block[:, :-1] @ robot.parameters.values - block[:, -1]).max() < 1e-4 * np.abs(block[:, -1]).max()
