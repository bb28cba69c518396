"""Joint effects: their signals against formulas written out, their derivatives against differences, and their storage."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.regression.base import reduce_to_base
from dynid.regression.torque import inverse_dynamics, torque_regressor
from dynid.robot.effects import (
    Armature,
    AsymmetricCoulomb,
    Coulomb,
    Coupled,
    LoadCoulomb,
    LoadViscous,
    Motion,
    Offset,
    Sigmoid,
    SmoothCoulomb,
    Stribeck,
    Viscous,
    ViscousPolynomial,
    effect_from_dict,
    effect_to_dict,
    effects_from_names,
)
from problems import random_motion, random_tree

N = 4
WRIST = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 1.0, -1.0))
SEARCHED = [
    SmoothCoulomb(smooth_width=(0.02, 0.3, 0.1, 0.5), smooth_time_s=0.05),
    SmoothCoulomb(smooth_width=0.2, smooth_time_s=0.1, dead_zone=0.1),
    AsymmetricCoulomb(smooth_width=0.2),
    Stribeck(smooth_width=0.1, smooth_time_s=0.02, stribeck_speed=(0.4, 0.5, 0.6, 0.7)),
    Stribeck(smooth_width=0.1, stribeck_speed=0.8, stribeck_exponent=1.5, form="exponential"),
    Sigmoid(slope=(2.0, 4.0, 1.0, 8.0), shift=(0.1, -0.2, 0.0, 0.05)),
    LoadCoulomb(smooth_width=0.2, smooth_time_s=0.01),
    Coupled(SmoothCoulomb(smooth_width=0.2, smooth_time_s=0.05), WRIST),
    Coupled(Sigmoid(slope=3.0, shift=0.1), WRIST, motors=(3, 4)),
]
OTHERS = [
    Viscous(),
    Coulomb(dead_zone=(0.1, 0.2, 0.3, 0.4)),
    Offset(),
    Armature(),
    ViscousPolynomial(powers=(2, 3, 5)),
    LoadViscous(),
    Coupled(Viscous(), WRIST, motors=(4,)),
    Coupled(LoadCoulomb(), WRIST),
]


def motion(seed: int = 0, samples: int = 50) -> Motion:
    rng = np.random.default_rng(seed)
    q, v, a, load = rng.normal(size=(4, samples, N))
    return Motion(q, v, a, 5.0 * load)


def test_signals_are_the_formulas():
    m = motion()
    v, a, load = m.velocity, m.acceleration, m.load
    sign = np.tanh(v / np.sqrt(0.1**2 + (0.05 * a) ** 2))
    smooth = {"smooth_width": 0.1, "smooth_time_s": 0.05}
    np.testing.assert_allclose(SmoothCoulomb(**smooth).signals(m), sign)
    np.testing.assert_allclose(SmoothCoulomb(smooth_width=0.0).signals(m), np.sign(v))
    np.testing.assert_allclose(SmoothCoulomb(dead_zone=0.5, **smooth).signals(m), np.where(np.abs(v) < 0.5, 0.0, sign))
    np.testing.assert_allclose(LoadCoulomb(**smooth).signals(m), np.abs(load) * sign)
    np.testing.assert_allclose(LoadViscous().signals(m), np.abs(load) * v)
    np.testing.assert_allclose(
        AsymmetricCoulomb(**smooth).signals(m), np.hstack([np.clip(sign, 0.0, None), np.clip(sign, None, 0.0)])
    )
    np.testing.assert_allclose(ViscousPolynomial((2, 3)).signals(m), np.hstack([v * np.abs(v), v**3]))
    np.testing.assert_allclose(
        Stribeck(stribeck_speed=0.3, form="exponential", **smooth).signals(m), np.exp(-((v / 0.3) ** 2)) * sign
    )
    np.testing.assert_allclose(Stribeck(stribeck_speed=0.3, **smooth).signals(m), sign / (1.0 + (v / 0.3) ** 2))


def test_sigmoid_is_that_of_the_panda_paper():
    """Equation 25 with the published values of joint 4 (supplement, Table I)."""
    phi1, phi2, phi3 = 1.2794, 5.5903, 0.036194
    v = np.linspace(-2.0, 2.0, 9)[:, None]
    expected = phi1 / (1.0 + np.exp(-phi2 * (v + phi3))) - phi1 / (1.0 + np.exp(-phi2 * phi3))
    found = phi1 * Sigmoid(slope=phi2, shift=phi3).signals(Motion(v, v, v))
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert found[4, 0] == 0.0
    far = Sigmoid(slope=400.0).signals(Motion(100.0 * v, 100.0 * v, v))
    np.testing.assert_allclose(np.abs(far[[0, -1]]), 0.5)


@pytest.mark.parametrize("effect", SEARCHED, ids=lambda e: repr(e)[:40])
def test_derivatives_are_those_of_the_signals(effect):
    m = motion(1)
    options = effect.nonlinear_options()
    assert options
    for option in options:
        values = effect.option_values(option.name, N)
        h = 1e-6 * np.maximum(np.abs(values), 0.1)
        up, down = (effect.with_option(option.name, values + s * h) for s in (1.0, -1.0))
        columns = effect.columns(range(1, N + 1), _joints())
        owner = np.array([column.number - 1 for column in columns])
        numeric = (up.signals(m) - down.signals(m)) / (2.0 * h[owner])
        np.testing.assert_allclose(effect.derivative(m, option.name), numeric, atol=2e-7)


@pytest.mark.parametrize("effect", SEARCHED + OTHERS, ids=lambda e: repr(e)[:40])
def test_layout_and_storage(effect):
    m = motion(2)
    columns = effect.columns(range(1, N + 1), _joints())
    assert effect.signals(m).shape == (50, len(columns))
    assert effect.incidence(N).shape == (N, len(columns))
    assert len({column.name for column in columns}) == len(columns)
    assert effect.is_friction == (columns[0].kind == "friction")
    again = effect_from_dict(json.loads(json.dumps(effect_to_dict(effect))))
    assert again == effect
    np.testing.assert_array_equal(again.signals(m), effect.signals(m))


def test_friction_that_needs_a_load_says_so():
    m = motion()
    bare = Motion(m.position, m.velocity, m.acceleration)
    for effect in (LoadCoulomb(), LoadViscous(), Coupled(LoadViscous(), WRIST)):
        assert effect.loaded
        with pytest.raises(
            InputError, match=r"depends on the torque that each joint transmits, but the samples carry no load"
        ):
            effect.signals(bare)
    assert not Coulomb().loaded


def test_inverse_dynamics_makes_the_load_it_was_not_given():
    robot = random_tree(1, n_joints=4, effects=[LoadCoulomb(), Armature()])
    robot = robot.with_parameters(robot.parameters.with_values(np.linspace(0.5, 1.5, len(robot.parameters))))
    q, v, a = random_motion(robot, 3)
    load = inverse_dynamics(robot.with_effects([Armature()]), q, v, a)
    np.testing.assert_array_equal(inverse_dynamics(robot, q, v, a), inverse_dynamics(robot, q, v, a, load))


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


def test_asymmetric_friction_is_coulomb_with_an_offset_away_from_zero_speed():
    robot = random_tree(5, n_joints=3, effects=[AsymmetricCoulomb(smooth_width=0.0), Coulomb(), Offset()])
    base = reduce_to_base(robot)
    friction = [name for name in base.names if name[0] == "f"]
    assert len(friction) == 6, friction


def test_every_model_column_stays_visible_in_the_base_parameters():
    effects = (Viscous(), ViscousPolynomial((2,)), SmoothCoulomb(smooth_width=1e-3), Stribeck(stribeck_speed=0.01), Offset())
    robot = random_tree(5, n_joints=3, effects=effects)
    assert sum(name[0] == "f" for name in reduce_to_base(robot).names) == 15


def test_names_and_options_are_checked():
    assert effects_from_names("sigmoid,load_coulomb,armature") == (Sigmoid(), LoadCoulomb(), Armature())
    with pytest.raises(UnknownNameError, match="unknown effect 'coupled'"):
        effects_from_names("coupled")
    with pytest.raises(InputError, match=r"SmoothCoulomb smooth_width is -1\.0, expected zero or positive numbers"):
        SmoothCoulomb(smooth_width=-1.0)
    with pytest.raises(InputError, match=r"Sigmoid slope is 0\.0, expected positive numbers"):
        Sigmoid(slope=0.0)
    with pytest.raises(InputError, match="viscous polynomial has powers"):
        ViscousPolynomial(powers=(1, 2))
    with pytest.raises(UnknownNameError, match="unknown form of Stribeck friction 'square'; available: rational, exp"):
        Stribeck(form="square")
    with pytest.raises(InputError, match=r"coupling of motors to joints has shape \(2, 3\), expected a square matrix"):
        Coupled(Viscous(), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    with pytest.raises(InputError, match="has rank 1, expected full rank"):
        Coupled(Viscous(), ((1.0, 1.0), (1.0, 1.0)))
    with pytest.raises(InputError, match="coupling is of 4 motors, the robot has 3 joints"):
        random_tree(1, n_joints=3, effects=[Coupled(Viscous(), WRIST)])
    with pytest.raises(InputError, match=r"motors of a coupling are \(5,\), expected different numbers from 1 to 4"):
        Coupled(Viscous(), WRIST, motors=(5,))
    with pytest.raises(InputError, match="has 2 values of slope, the robot has 4 joints"):
        Sigmoid(slope=(1.0, 2.0)).option_values("slope", 4)
    with pytest.raises(UnknownNameError, match="unknown option 'colour' in effect 'viscous'"):
        effect_from_dict({"name": "viscous", "colour": 1})
    with pytest.raises(UnknownNameError, match="unknown effect 'magic'"):
        effect_from_dict({"name": "magic"})
    with pytest.raises(InputError, match="has no option 'slope' that could be searched for"):
        Viscous().derivative(motion(), "slope")


def _joints():
    return random_tree(0, n_joints=N).joints
