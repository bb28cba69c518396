"""Effects on some joints and on coupled motors."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, LoadViscous, Viscous
from dynid.model.effects.wrapped import Coupled, OnJoints
from dynid.regression.base import reduce_to_base
from effect_cases import WRIST, N, joints, motion
from messages import facts
from problems import random_motion, random_tree


def test_coupled_motors_do_the_work_of_the_joints():
    """``tau . v`` equals the motors' own power, and a motor's inertia appears as ``B^T J B`` in the joints."""
    robot = random_tree(4, n_joints=4, kinds=("revolute",))
    coupled = robot.with_effects([Coupled(Armature(), WRIST), Coupled(Viscous(), WRIST)])
    rotor, damping = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, 2.0, 3.0, 4.0])
    coupled = coupled.with_parameters(
        {f"Iam{i + 1}": rotor[i] for i in range(4)} | {f"fvm{i + 1}": damping[i] for i in range(4)}
    )
    q, v, a = random_motion(robot, 20)
    extra = inverse_dynamics(coupled, q, v, a) - inverse_dynamics(robot, q, v, a)
    B = np.array(WRIST)
    motors = (a @ B.T) * rotor + (v @ B.T) * damping
    np.testing.assert_allclose(extra, motors @ B, atol=1e-12)
    np.testing.assert_allclose((extra * v).sum(axis=1), (motors * (v @ B.T)).sum(axis=1), atol=1e-11)


def test_coupling_shows_in_the_regressor_of_both_joints():
    robot = random_tree(4, n_joints=4, kinds=("revolute",), effects=[Viscous(), Coupled(Viscous(), WRIST, motors=(3,))])
    assert robot.parameters.names[-5:] == ("fv1", "fv2", "fv3", "fv4", "fvm3")
    q, v, a = random_motion(robot, 6)
    column = torque_regressor(robot, q, v, a)[:, :, -1]
    np.testing.assert_allclose(column, np.outer(v[:, 2] + v[:, 3], [0.0, 0.0, 1.0, 1.0]).reshape(6, 4))
    # a joint-side and a motor-side viscous friction are told apart by motion
    assert {"fv3", "fv4", "fvm3"} <= set(reduce_to_base(robot).names)


def test_load_of_motors_carries_the_same_power():
    m = motion(3)
    inner = Coupled(LoadViscous(), WRIST)
    B = np.array(WRIST)
    motor_load = np.linalg.solve(B.T, m.load.T).T
    np.testing.assert_allclose(inner.signals(m), np.abs(motor_load) * (m.velocity @ B.T))


def test_couplings_and_motors_are_checked():
    with pytest.raises(InputError, match=facts("(2, 3)", "motor", "joint")):
        Coupled(Viscous(), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    with pytest.raises(InputError, match="has rank 1, expected full rank"):
        Coupled(Viscous(), ((1.0, 1.0), (1.0, 1.0)))
    with pytest.raises(InputError, match=facts("4", "3", "motor")):
        random_tree(1, n_joints=3, effects=[Coupled(Viscous(), WRIST)])
    with pytest.raises(InputError, match=facts("(5,)", "1", "4", "motor")):
        Coupled(Viscous(), WRIST, motors=(5,))


def test_an_effect_on_some_motors_alone():
    some = Coupled(OnJoints(Coulomb(), (1, 3)), WRIST)
    assert [column.name for column in some.columns(range(1, N + 1), joints())] == ["fcm1", "fcm3"]
    assert some.held_in_part == ("fcm",)
    np.testing.assert_array_equal(some.signals(motion()), Coupled(Coulomb(), WRIST, (1, 3)).signals(motion()))
