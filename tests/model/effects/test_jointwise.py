"""Effects on each joint alone: derivatives against differences, values of their options."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.model.effects.dry_friction import AsymmetricCoulomb, Coulomb, LoadCoulomb, Sigmoid, SmoothCoulomb, Stribeck
from dynid.model.effects.effect import Motion
from dynid.model.effects.linear import Armature, LoadViscous, Offset, Viscous, ViscousPolynomial
from dynid.model.effects.wrapped import Coupled
from dynid.model.friction import searched_values
from effect_cases import OTHERS, SEARCHED, WRIST, N, check_derivatives, motion
from messages import facts
from problems import random_tree


@pytest.mark.parametrize("effect", SEARCHED, ids=lambda e: repr(e)[:40])
def test_derivatives_are_those_of_the_signals(effect):
    check_derivatives(effect)


@pytest.mark.parametrize("effect", SEARCHED + OTHERS, ids=lambda e: repr(e)[:40])
def test_slopes_with_the_motion_are_those_of_the_signals(effect):
    m = motion(4)
    weights = np.random.default_rng(5).normal(size=effect.signals(m).shape)
    found = effect.motion_gradient(m, weights)
    for name, gradient in zip(("position", "velocity", "acceleration"), found, strict=True):
        for joint in range(N):
            step = np.zeros(N)
            step[joint] = 1e-6
            up, down = (effect.signals(replace(m, **{name: getattr(m, name) + s * step})) for s in (1.0, -1.0))
            numeric = ((up - down) * weights).sum(axis=1) / 2e-6
            expected = np.zeros(len(numeric)) if gradient is None else gradient[:, joint]
            np.testing.assert_allclose(expected, numeric, atol=1e-5)


def test_dependence_on_acceleration_is_found_in_the_formula():
    assert Armature().depends_on_acceleration
    assert Coupled(Armature(), WRIST).depends_on_acceleration
    assert SmoothCoulomb(smooth_time_s=(0.0, 0.1, 0.0, 0.0)).depends_on_acceleration
    assert not SmoothCoulomb(smooth_width=(0.1, 0.0, 0.1, 0.1)).depends_on_acceleration
    for effect in (Viscous(), Coulomb(), Offset(), Sigmoid(), LoadViscous(), ViscousPolynomial(), Stribeck()):
        assert not effect.depends_on_acceleration


def test_values_inside_the_friction_are_listed_with_their_units():
    effects = [Sigmoid(slope=(1.0, 2.0, 3.0), shift=0.1), Coulomb(dead_zone=0.02), Armature()]
    robot = random_tree(3, n_joints=3, kinds=("revolute", "prismatic"), effects=effects)
    second = [one for effect in effects for one in effect.nonlinear_values(robot.joints)[1]]
    assert {one.joint for one in second} == {robot.joints[1].name}
    assert [(one.effect, one.name, one.value, one.found) for one in second] == [
        ("sigmoid", "slope", 2.0, True),
        ("sigmoid", "shift", 0.1, True),
        ("coulomb", "dead_zone", 0.02, False),
        ("coulomb", "smooth_width", 0.0, False),
    ]
    units = {"revolute": ["s/rad", "rad/s"], "prismatic": ["s/m", "m/s"]}[robot.joints[1].kind]
    assert [one.unit for one in second[:2]] == units
    assert [(one.joint, one.name) for one in searched_values(robot)] == [
        (joint.name, name) for joint in robot.joints for name in ("slope", "shift")
    ]


def test_friction_that_needs_a_load_says_so():
    m = motion()
    bare = Motion(m.position, m.velocity, m.acceleration)
    for effect in (LoadCoulomb(), LoadViscous(), Coupled(LoadViscous(), WRIST)):
        assert effect.loaded
        with pytest.raises(InputError, match=facts("torque", "joint")):
            effect.signals(bare)
    assert not Coulomb().loaded


def test_numbers_of_values_are_checked():
    with pytest.raises(InputError, match=facts("2", "4", "joint")):
        Sigmoid(slope=(1.0, 2.0)).option_values("slope", 4)
    with pytest.raises(InputError, match=facts("3", "dead_zone", "4", "joint")):
        Coulomb(dead_zone=(0.1, 0.1, 0.1)).signals(motion())
    with pytest.raises(InputError, match="has no option 'slope' that could be searched for"):
        Viscous().signals_and_derivatives(motion(), ["slope"])


def test_simulators_hold_the_nearest():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    for effect, place, share in (
        (Viscous(), "damping", 1.0),
        (SmoothCoulomb(), "friction", 1.0),
        (Sigmoid(), "friction", 0.5),
        (Armature(), "armature", 1.0),
    ):
        held = effect.simulator_joint(values, N)
        assert list(held) == [place]
        np.testing.assert_array_equal(held[place], share * values)
    both = AsymmetricCoulomb().simulator_joint(np.concatenate([values, values + 2.0]), N)
    np.testing.assert_array_equal(both["friction"], values + 1.0)
    B = np.array(WRIST)
    np.testing.assert_allclose(
        Coupled(Armature(), WRIST).simulator_joint(values, N)["armature"], np.diag(B.T @ np.diag(values) @ B)
    )
    assert Coupled(Armature(), WRIST).held_in_part == ("Iam",)
    assert Coupled(Armature(), WRIST, motors=(1,)).held_in_part == ()
    assert (Sigmoid().held_in_part, Offset().not_held, Stribeck().not_held) == (("fsig",), ("fo",), ("fs",))
