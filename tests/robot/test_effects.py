"""Joint effects: their signals against formulas written out, their derivatives against differences, and their storage."""

from __future__ import annotations

import doctest
import json
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.regression.base import reduce_to_base
from dynid.regression.torque import inverse_dynamics, torque_regressor
from dynid.robot.builtin import demo_robot
from dynid.robot.effects import (
    Armature,
    AsymmetricCoulomb,
    Coefficient,
    Coulomb,
    Coupled,
    InnerNumber,
    JointwiseEffect,
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
    effect_kinds,
    effect_to_dict,
    effects_from_names,
    friction_effects,
    nonnegative_symbols,
    register,
    register_friction_model,
    registry,
    tried_friction_models,
    unregister,
    unregister_friction_model,
)
from dynid.robot.effects.models import friction_models
from dynid.robot.friction import friction_numbers, with_friction
from messages import facts
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


@pytest.mark.parametrize(
    "effect", [Armature(), Offset(), Coupled(Armature(), WRIST, motors=(1, 3)), Coupled(Offset(), WRIST)]
)
def test_energy_changes_by_the_work_of_the_signals(effect):
    """``E(q, v)`` along ``q(t)``: its rate is the signal times the speed that the column acts on."""
    m, h = motion(6), 1e-5
    at = [Motion(m.position + s * h * m.velocity, m.velocity + s * h * m.acceleration, m.acceleration) for s in (1, -1)]
    rate = (effect.energy_signals(at[0]) - effect.energy_signals(at[1])) / (2.0 * h)
    np.testing.assert_allclose(rate, effect.signals(m) * (m.velocity @ effect.incidence(N)), atol=1e-8)


@pytest.mark.parametrize("effect", [Armature(), Coupled(Armature(), WRIST, motors=(1, 3))])
def test_momentum_changes_by_the_signals(effect):
    m, h = motion(7), 1e-5
    at = [Motion(m.position, m.velocity + s * h * m.acceleration, m.acceleration) for s in (1, -1)]
    np.testing.assert_allclose(
        (effect.momentum_signals(at[0]) - effect.momentum_signals(at[1])) / (2.0 * h), effect.signals(m), atol=1e-8
    )


def test_friction_stores_nothing():
    for effect in (Viscous(), Coulomb(), SmoothCoulomb(), Sigmoid(), Stribeck(), LoadCoulomb(), Coupled(Viscous(), WRIST)):
        assert effect.energy_signals(motion()) is None
        assert effect.momentum_signals(motion()) is None


def test_friction_that_never_drives_a_joint_is_not_negative():
    symbols = nonnegative_symbols()
    assert symbols[:3] == ("Ia", "fv", "fc")
    assert {"fs", "fsig", "flc", "Iam", "fcm"} <= set(symbols)
    assert not {"fo", "fcp", "fcn", "flv", "fvv", "fvvv"} & set(symbols)
    assert Coupled(Stribeck(), WRIST).nonnegative == ("fsm",)
    m = motion(8)
    for effect in (Viscous(), Coulomb(), Stribeck(), Sigmoid(shift=0.2), LoadCoulomb()):  # power that is never put in
        assert (effect.signals(m) * m.velocity).min() >= 0.0


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


def test_smoothing():
    widths = np.array([0.1, 0.2, 0.3, 0.4])
    mixed = SmoothCoulomb(smooth_width=(0.0, 0.3, 0.0, 0.3), smooth_time_s=0.1, dead_zone=0.1)
    assert mixed.smoothed(widths) == replace(mixed, smooth_width=(0.1, 0.3, 0.3, 0.3), dead_zone=0.0)
    assert mixed.smoothed(widths, at_least=True).smooth_width == (0.1, 0.3, 0.3, 0.4)
    assert mixed.without_memory().smooth_time_s == 0.0
    assert Coulomb().is_sharp
    assert Coupled(Coulomb(), WRIST).is_sharp
    assert not SmoothCoulomb(smooth_width=0.0, smooth_time_s=0.1).is_sharp
    assert not Viscous().is_sharp
    assert Viscous().smoothed(widths) == Viscous()


def test_numbers_of_the_friction_are_listed_with_their_units():
    effects = [Sigmoid(slope=(1.0, 2.0, 3.0), shift=0.1), Coulomb(dead_zone=0.02), Armature()]
    robot = random_tree(3, n_joints=3, kinds=("revolute", "prismatic"), effects=effects)
    robot = robot.with_parameters({"fsig2": 0.7, "fc2": 0.3})
    second = [number for number in friction_numbers(robot) if number.joint == robot.joints[1].name]
    assert [(one.effect, one.name, one.value, one.found) for one in second] == [
        ("sigmoid", "fsig2", 0.7, True),
        ("sigmoid", "slope2", 2.0, True),
        ("sigmoid", "shift2", 0.1, True),
        ("coulomb", "fc2", 0.3, True),
        ("coulomb", "dead_zone2", 0.02, False),
        ("coulomb", "smooth_width2", 0.0, False),
    ]
    units = {"revolute": ["N m", "s/rad", "rad/s", "N m"], "prismatic": ["N", "s/m", "m/s", "N"]}[robot.joints[1].kind]
    assert [one.unit for one in second[:4]] == units


@dataclass(frozen=True)
class Rounded(JointwiseEffect):
    """An effect as another package would write it."""

    name: ClassVar[str] = "rounded"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("frnd", "N m", nonnegative=True, place="friction"),)
    inner: ClassVar[tuple[InnerNumber, ...]] = (
        InnerNumber("width", "rad/s", "positive", low=1e-3, high=1.0),
        InnerNumber("bend", "1", "positive", low=0.3, high=3.0),
    )
    width: float | tuple[float, ...] = 0.1
    bend: float | tuple[float, ...] = 1.0

    def formula(self, m, motion, inner):
        x = (motion.velocity / inner.width) ** 2
        return (m.sign(motion.velocity) * (x / (1.0 + x)) ** inner.bend,)


@pytest.fixture
def rounded():
    yield register(Rounded)
    unregister("rounded")


def test_an_effect_from_outside_is_known_everywhere(rounded):
    assert effects_from_names("viscous,rounded") == (Viscous(), Rounded())
    stored = json.loads(json.dumps(effect_to_dict(Coupled(Rounded(width=(0.1, 0.2, 0.3, 0.4)), WRIST))))
    assert effect_from_dict(stored) == Coupled(Rounded(width=(0.1, 0.2, 0.3, 0.4)), WRIST)
    assert {"frnd", "frndm"} <= set(nonnegative_symbols())
    test_derivatives_are_those_of_the_signals(Rounded(width=(0.2, 0.4, 0.6, 0.8), bend=(0.5, 1.0, 1.5, 2.5)))
    register_friction_model("round", lambda start: (Viscous(), Rounded(width=start.width)))
    try:
        assert friction_effects("round") == (Viscous(), Rounded(width=0.02))
        assert "round" in tried_friction_models()
    finally:
        unregister_friction_model("round")
    with pytest.raises(UnknownNameError, match=facts("linear", "smooth", "round", "friction")):
        friction_effects("round")


def test_the_example_of_the_registry_runs():
    result = doctest.testmod(registry)
    assert result.attempted > 10
    assert result.failed == 0


def test_what_cannot_be_registered_is_refused():
    @dataclass(frozen=True)
    class Lacking(Rounded):
        name: ClassVar[str] = "lacking"
        inner: ClassVar[tuple[InnerNumber, ...]] = (InnerNumber("height", "1"),)

    @dataclass(frozen=True)
    class Massive(Rounded):
        name: ClassVar[str] = "massive"
        linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("mx", "kg m"),)

    @dataclass(frozen=True)
    class Second(Rounded):
        name: ClassVar[str] = "viscous"

    class Loose(Rounded):
        name: ClassVar[str] = "loose"

    for kind, words in (
        (Lacking, "effect 'lacking' has an inner number 'height' without a dataclass field"),
        (Massive, "effect 'massive' has the symbol 'mx', expected letters that are no inertial"),
        (Second, r"effect 'viscous' is registered twice, by Viscous and .*Second"),
        (Loose, r"effect 'loose' is not a frozen dataclass; put @dataclass\(frozen=True\) above Loose"),
        (Viscous(), r"Viscous\(\) is registered as an effect, expected a class"),
    ):
        with pytest.raises(InputError, match=words):
            register(kind)
    with pytest.raises(InputError, match=facts("auto", "friction")):
        register_friction_model("auto", lambda start: ())
    assert effect_kinds()["viscous"] is Viscous


def test_friction_that_needs_a_load_says_so():
    m = motion()
    bare = Motion(m.position, m.velocity, m.acceleration)
    for effect in (LoadCoulomb(), LoadViscous(), Coupled(LoadViscous(), WRIST)):
        assert effect.loaded
        with pytest.raises(InputError, match=facts("torque", "joint")):
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
    with pytest.raises(InputError, match=facts("SmoothCoulomb", "smooth_width", "-1.0")):
        SmoothCoulomb(smooth_width=-1.0)
    with pytest.raises(InputError, match=r"Sigmoid slope is 0\.0, expected positive numbers"):
        Sigmoid(slope=0.0)
    with pytest.raises(InputError, match="viscous polynomial has powers"):
        ViscousPolynomial(powers=(1, 2))
    with pytest.raises(UnknownNameError, match=facts("rational", "exp", "square", "friction")):
        Stribeck(form="square")
    with pytest.raises(InputError, match=facts("(2, 3)", "motor", "joint")):
        Coupled(Viscous(), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    with pytest.raises(InputError, match="has rank 1, expected full rank"):
        Coupled(Viscous(), ((1.0, 1.0), (1.0, 1.0)))
    with pytest.raises(InputError, match=facts("4", "3", "motor")):
        random_tree(1, n_joints=3, effects=[Coupled(Viscous(), WRIST)])
    with pytest.raises(InputError, match=facts("(5,)", "1", "4", "motor")):
        Coupled(Viscous(), WRIST, motors=(5,))
    with pytest.raises(InputError, match=facts("2", "4", "joint")):
        Sigmoid(slope=(1.0, 2.0)).option_values("slope", 4)
    with pytest.raises(InputError, match=facts("3", "dead_zone", "4", "joint")):
        Coulomb(dead_zone=(0.1, 0.1, 0.1)).signals(motion())
    with pytest.raises(UnknownNameError, match=facts("colour", "viscous")):
        effect_from_dict({"name": "viscous", "colour": 1})
    with pytest.raises(UnknownNameError, match="unknown effect 'magic'"):
        effect_from_dict({"name": "magic"})
    with pytest.raises(InputError, match="has no option 'slope' that could be searched for"):
        Viscous().derivative(motion(), "slope")


def _joints():
    return random_tree(0, n_joints=N).joints


@pytest.mark.parametrize("first", friction_models())
@pytest.mark.parametrize("second", ["linear", "stribeck", "load_polynomial"])
def test_a_friction_model_takes_the_place_of_any_other(first: str, second: str) -> None:
    """A robot that a run identified comes back with the friction it was given; another log may ask for another model."""
    robot = with_friction(demo_robot(), friction_effects(first))
    names = [effect.name for effect in with_friction(robot, friction_effects(second)).effects]
    assert names == [*(effect.name for effect in friction_effects(second)), "armature"]
