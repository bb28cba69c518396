"""Derivatives of regressors by the motion against differences and Pinocchio."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dynid.dynamics.pinocchio_model import pinocchio_model, to_pinocchio_position
from dynid.dynamics.regressors import energy_regressor, torque_regressor
from dynid.errors import InputError
from dynid.excitation.gradient import (
    energy_gradient,
    inverse_dynamics_gradient,
    point_speed_gradient,
    point_speeds,
    torque_gradient,
)
from dynid.excitation.pose_limits import tool_path
from dynid.model.effects.dry_friction import AsymmetricCoulomb, Coulomb, LoadCoulomb, Sigmoid, SmoothCoulomb, Stribeck
from dynid.model.effects.linear import Armature, Offset, Viscous, ViscousPolynomial
from dynid.model.effects.wrapped import Coupled
from messages import facts
from problems import demo_arm, planar_2r, random_motion, random_tree


def differences(function, arguments, which, h=1e-6):
    """Central differences of a scalar by every entry of one argument."""
    out = np.empty(arguments[which].shape)
    for place in np.ndindex(out.shape):
        step = np.zeros(out.shape)
        step[place] = h
        ahead, behind = list(arguments), list(arguments)
        ahead[which], behind[which] = arguments[which] + step, arguments[which] - step
        out[place] = (function(*ahead) - function(*behind)) / (2.0 * h)
    return out


def assert_gradient(function, arguments, bars):
    for which, bar in enumerate(bars):
        expected = differences(function, arguments, which)
        np.testing.assert_allclose(bar, expected, rtol=1e-6, atol=2e-7 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("seed", range(4))
def test_torque_gradient_on_random_trees(seed):
    robot = random_tree(seed, 6, effects=[Viscous(), Coulomb(smooth_width=0.3), Offset(), Armature()])
    motion = random_motion(robot, 3, seed)
    G = np.random.default_rng(seed).normal(size=(3, 6, len(robot.parameters)))
    assert_gradient(
        lambda q, v, a: float((G * torque_regressor(robot, q, v, a)).sum()), motion, torque_gradient(robot, *motion, G)
    )


@pytest.mark.parametrize(
    "effect",
    [
        SmoothCoulomb(smooth_width=0.2, smooth_time_s=0.1),
        AsymmetricCoulomb(smooth_width=0.3, smooth_time_s=0.05),
        ViscousPolynomial(),
        Stribeck(smooth_width=0.2, stribeck_speed=0.5),
        Stribeck(smooth_width=0.2, stribeck_speed=0.7, form="exponential"),
        Sigmoid(slope=3.0, shift=0.1),
        Coupled(Viscous(), ((1.0, 0.4), (0.2, 1.0))),
        Coupled(SmoothCoulomb(smooth_width=0.3), ((1.0, 0.4), (0.2, 1.0)), motors=(2,)),
    ],
    ids=lambda effect: f"{effect.name}",
)
def test_gradient_of_every_effect(effect):
    robot = planar_2r([effect])
    motion = random_motion(robot, 4, 1)
    G = np.random.default_rng(0).normal(size=(4, 2, len(robot.parameters)))
    assert_gradient(
        lambda q, v, a: float((G * torque_regressor(robot, q, v, a)).sum()), motion, torque_gradient(robot, *motion, G)
    )


def test_inverse_dynamics_gradient_is_that_of_pinocchio():
    robot = demo_arm("none")
    q, v, a = random_motion(robot, 5, 3)
    weights = np.random.default_rng(1).normal(size=(5, robot.n_joints))
    q_bar, v_bar, a_bar = inverse_dynamics_gradient(robot, q, v, a, weights)
    model = pinocchio_model(robot)
    working = model.createData()
    for s, position in enumerate(to_pinocchio_position(robot, q)):
        by_q, by_v, M = pin.computeRNEADerivatives(model, working, position, v[s], a[s])
        M = np.triu(M) + np.triu(M, 1).T
        for bar, matrix in ((q_bar, by_q), (v_bar, by_v), (a_bar, M)):
            np.testing.assert_allclose(bar[s], weights[s] @ matrix, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_energy_gradient_on_random_trees(seed):
    robot = random_tree(seed, 5)
    q, v, _ = random_motion(robot, 3, seed)
    G = np.random.default_rng(seed).normal(size=(3, robot.parameters.n_inertial))
    assert_gradient(lambda q, v: float((G * energy_regressor(robot, q, v)).sum()), (q, v), energy_gradient(robot, q, v, G))


def test_speed_of_a_point():
    robot = random_tree(2, 5, kinds=("revolute", "prismatic"))
    q, v, _ = random_motion(robot, 4, 0)
    point, h = np.array([0.1, -0.2, 0.3]), 1e-6
    squared, weights = point_speeds(robot, q, v, 4, point)
    way = (tool_path(robot, q + h * v, 4, point) - tool_path(robot, q - h * v, 4, point)) / (2.0 * h)
    np.testing.assert_allclose(squared, (way**2).sum(axis=1), rtol=1e-7)
    bars = point_speed_gradient(robot, q, v, np.tile(weights, (4, 1)))
    assert_gradient(lambda q, v: float(point_speeds(robot, q, v, 4, point)[0].sum()), (q, v), bars)


def test_refusals():
    robot = random_tree(0, floating=True)
    q, v, a = random_motion(robot, 2)
    with pytest.raises(InputError, match="floats"):
        torque_gradient(robot, q, v, a, np.zeros((2, robot.n_dof, len(robot.parameters))))
    loaded = planar_2r([LoadCoulomb()])
    motion = random_motion(loaded, 2)
    with pytest.raises(InputError, match=r"load_coulomb.*not known before"):
        torque_gradient(loaded, *motion, np.zeros((2, 2, len(loaded.parameters))))
    with pytest.raises(InputError, match=facts("(2, 2, 3)", "(2, 2, 20)", "weight")):
        torque_gradient(planar_2r(), *motion, np.zeros((2, 2, 3)))
