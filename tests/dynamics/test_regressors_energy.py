"""Energy regressors and the identification model of energy differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from dynid.dynamics.regressors import energy_regressor, kinetic_and_potential
from dynid.errors import InputError
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.regression.base import reduce_to_base
from dynid.regression.energy_rows import energy_matrix, energy_regression
from dynid.signals.samples import Samples
from messages import facts
from problems import random_motion, random_tree

ALL_EFFECTS = (Viscous(), Coulomb(), Offset(), Armature())


def test_kinetic_and_potential_energy_are_pinocchios(peer):
    states = peer.states(15, seed=5)
    q, v = (np.array([state[k] for state in states]) for k in (0, 1))
    kinetic, potential = kinetic_and_potential(peer.robot, q, v)
    data = peer.model.createData()
    for i in range(len(q)):
        position, velocity = peer.position(q[i]), peer.velocity(v[i])
        expected = pin.computeKineticEnergyRegressor(peer.model, data, position, velocity) @ peer.columns
        assert np.abs(kinetic[i] - expected).max() <= 1e-10 * np.abs(expected).max()
        expected = pin.computePotentialEnergyRegressor(peer.model, data, position) @ peer.columns
        assert np.abs(potential[i] - expected).max() <= 1e-10 * np.abs(expected).max()


def test_total_energy_is_the_sum():
    robot = random_tree(20, 5)
    q, v, _ = random_motion(robot, 10)
    kinetic, potential = kinetic_and_potential(robot, q, v)
    np.testing.assert_array_equal(energy_regressor(robot, q, v), kinetic + potential)
    assert (kinetic @ robot.parameters.values > 0.0).all()


def residual(robot, samples, intervals):
    stack = energy_matrix(robot, samples, intervals)
    return np.abs(stack[:, :-1] @ robot.parameters.values - stack[:, -1]).max() / np.abs(stack[:, -1]).max()


def test_true_parameters_fit_to_quadrature_accuracy(sampled):
    """The trapezoidal rule errs with the square of the step; nothing else errs."""
    robot = random_tree(21, 4, effects=ALL_EFFECTS)
    errors = []
    for factor in (1, 2, 4):
        samples = sampled(robot, n=2000 * factor + 1, rate_hz=250.0 * factor)
        ends = np.arange(0, len(samples), 100 * factor)
        errors.append(residual(robot, samples, np.column_stack([ends[:-1], ends[1:]])))
    assert errors[0] < 1e-3
    assert errors[2] < 5e-5
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.2)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.2)


def test_each_effect_does_its_work(sampled):
    """``fv int v^2``, ``fc int |v|``, ``fo (q_b - q_a)`` and ``Ia (v_b^2 - v_a^2) / 2``."""
    robot = random_tree(22, 3, effects=ALL_EFFECTS)
    samples = sampled(robot, n=20001, rate_hz=2000.0)
    pairs = np.array([[0, 4000], [1000, 20000]])
    W = energy_matrix(robot, samples, pairs)
    first, last = pairs.T
    q, v = samples.position, samples.velocity
    for j in range(3):
        integral = [
            [np.trapezoid(signal[a : b + 1, j], samples.time[a : b + 1]) for a, b in pairs] for signal in (v**2, np.abs(v))
        ]
        expected = {
            "fv": integral[0],
            "fc": integral[1],
            "fo": q[last, j] - q[first, j],
            "Ia": 0.5 * (v[last, j] ** 2 - v[first, j] ** 2),
        }
        for symbol, values in expected.items():
            np.testing.assert_allclose(W[:, robot.parameters.index(f"{symbol}{j + 1}")], values, rtol=1e-5, atol=1e-6)
        exact = W[:, robot.parameters.index(f"Ia{j + 1}")]
        np.testing.assert_allclose(exact, expected["Ia"], rtol=0, atol=1e-14)


def test_acceleration_is_not_used(sampled):
    robot = random_tree(23, 4, effects=ALL_EFFECTS)
    samples = sampled(robot)
    corrupted = replace(samples, acceleration=1e6 * np.random.default_rng(0).normal(size=samples.acceleration.shape))
    pairs = [[0, 50], [50, 120], [10, 399]]
    np.testing.assert_array_equal(energy_matrix(robot, corrupted, pairs), energy_matrix(robot, samples, pairs))


def test_base_parameters_and_friction_come_back(sampled):
    robot = random_tree(24, 3, effects=ALL_EFFECTS)
    base = reduce_to_base(robot)
    regression = energy_regression(robot, [sampled(robot, n=20001, rate_hz=2000.0, seed=s) for s in range(4)])
    assert regression.channel_names == ("energy",)
    stack = regression.triangle(base)
    beta, _, rank, _ = np.linalg.lstsq(stack[:, :-1], stack[:, -1])
    assert rank == base.n_base
    truth = base.base_values(robot.parameters)
    np.testing.assert_allclose(beta, truth, rtol=0, atol=1e-3 * np.abs(truth).max())


def test_intervals_choose_the_rows(sampled):
    robot = random_tree(25, 3)
    samples = sampled(robot)
    pairs = [[0, 10], [5, 300], [300, 399]]
    rows = energy_matrix(robot, samples, pairs)
    assert rows.shape == (3, 31)
    regression = energy_regression(robot, samples, pairs)
    assert regression.n_rows == 3
    R = regression.factors[0].R
    np.testing.assert_allclose(R.T @ R, rows.T @ rows, rtol=0, atol=1e-10 * np.abs(rows.T @ rows).max())


def test_bad_requests_are_refused(sampled):
    robot = random_tree(27, 3)
    samples = sampled(robot, n=50)
    motion = replace(samples, torque=None)
    with pytest.raises(InputError, match="no torque"):
        energy_regression(robot, motion)
    with pytest.raises(InputError, match=r"rising pairs of samples 0 to 49"):
        energy_regression(robot, samples, [[10, 10]])
    with pytest.raises(InputError, match=r"rising pairs of samples 0 to 49"):
        energy_regression(robot, samples, [[0, 50]])
    with pytest.raises(InputError, match=r"rising pairs of samples 0 to 49"):
        energy_regression(robot, samples, [[-1, 5]])
    with pytest.raises(InputError, match=r"shape \(2,\), expected \(intervals, 2\)"):
        energy_regression(robot, samples, [0, 5])
    with pytest.raises(InputError, match="2 sets were given"):
        energy_regression(robot, [samples, samples], [[0, 5]])
    with pytest.raises(InputError, match=facts("7", "10", "sample")):
        energy_regression(robot, samples[:7])
    with pytest.raises(InputError, match="no row to identify from"):
        energy_regression(robot, samples, np.zeros((0, 2), dtype=int))
    narrow = Samples(samples.time, *(getattr(samples, n)[:, :2] for n in ("position", "velocity", "acceleration", "torque")))
    with pytest.raises(InputError, match=r"expected \(any, 3\)"):
        energy_regression(robot, narrow)
