"""Friction that takes energy from a joint at every speed, and how friction that drives it is found."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimation.constraints.base import PassiveFriction
from dynid.estimation.friction.passivity import MORE_LOAD, FrictionReach, driving_joints, passivity_of
from dynid.model.effects.dry_friction import AsymmetricCoulomb, Coulomb, LoadCoulomb, Sigmoid, SmoothCoulomb, Stribeck
from dynid.model.effects.effect import Effect
from dynid.model.effects.linear import LoadViscous, Offset, Viscous, ViscousPolynomial
from dynid.model.effects.wrapped import Coupled, OnJoints
from dynid.signals.samples import Samples
from problems import planar_2r

SPEEDS = np.array([[0.02, 0.02], [0.5, 0.5], [3.0, 3.0]])


def odd_part(effect: Effect, load: float = 0.0) -> np.ndarray:
    return effect.dissipation(SPEEDS, np.full(2, load))


def test_odd_parts_of_effects_by_hand() -> None:
    v = SPEEDS
    np.testing.assert_allclose(odd_part(Viscous()), v)
    np.testing.assert_allclose(odd_part(Coulomb()), np.ones_like(v))
    np.testing.assert_allclose(odd_part(Offset()), 0.0)
    np.testing.assert_allclose(odd_part(AsymmetricCoulomb(smooth_width=1e-6)), np.full((3, 4), 0.5))
    np.testing.assert_allclose(odd_part(LoadCoulomb(smooth_width=1e-6), load=-3.0), 3.0)
    np.testing.assert_allclose(odd_part(OnJoints(Viscous(), (2,))), v[:, 1:])
    shift, slope = 0.2, 7.0
    sigmoid = lambda x: 1.0 / (1.0 + np.exp(-slope * (x + shift)))  # noqa: E731
    np.testing.assert_allclose(odd_part(Sigmoid(slope=slope, shift=shift)), 0.5 * (sigmoid(v) - sigmoid(-v)))


@pytest.mark.parametrize("effect", [Viscous(), Coulomb(), SmoothCoulomb(), Stribeck(), Sigmoid(shift=0.3), LoadCoulomb()])
def test_effects_that_are_never_negative_need_no_rows(effect: Effect) -> None:
    robot = planar_2r([effect, Offset()])
    reach = FrictionReach(np.full(2, 4.0), np.full(2, 10.0))
    assert len(passivity_of(robot, reach))
    assert not len(passivity_of(robot, reach, implied=False))


def told(effects: list[Effect], values: dict[str, float], load: float = 0.0) -> list[tuple[str, float, float]]:
    robot = planar_2r(effects)
    robot = robot.with_parameters({**dict.fromkeys(robot.parameters.names[20:], 1.0), **values})
    found = driving_joints(robot, robot.parameters, FrictionReach(np.full(2, 4.0), np.full(2, load)))
    return [(one.joint, one.speed, one.torque) for one in found]


def test_a_joint_that_its_friction_drives_is_found_with_speed_and_torque() -> None:
    # 1 v - 0.5 v^2 + 0.1 is -3.9 at the velocity limit of 4 rad/s
    effects = [Viscous(), ViscousPolynomial(powers=(2,)), Coulomb()]
    ((joint, speed, torque),) = told(effects, {"fvv2": -0.5, "fc2": 0.1})
    assert (joint, speed) == ("elbow", 4.0)
    assert torque == pytest.approx(-3.9)
    assert not told(effects, {"fvv2": -0.2})
    # less friction at rest than in motion is no engine; more negative than that is one
    assert not told([Coulomb(), Stribeck()], {"fc1": 0.3, "fs1": -0.26})
    ((joint, speed, torque),) = told(
        [SmoothCoulomb(smooth_width=1e-4), Stribeck(smooth_width=1e-4)], {"fc1": 0.23, "fs1": -0.26}
    )
    assert joint == "shoulder"
    assert speed < 0.1
    assert -0.03 < torque < -0.02


def test_offsets_have_any_sign() -> None:
    assert not told([Viscous(), Offset()], {"fo1": -50.0, "fo2": 50.0})
    # forth 3, back 1 in the same direction: an offset of 2 and friction of 1
    assert not told([AsymmetricCoulomb()], {"fcp1": 3.0, "fcn1": -1.0})
    assert [joint for joint, *_ in told([AsymmetricCoulomb()], {"fcp1": 1.0, "fcn1": -3.0})] == ["shoulder"]


def test_friction_under_load_must_hold_at_the_largest_load() -> None:
    effects = [Viscous(), LoadViscous()]
    assert not told(effects, {"flv1": -0.2}, load=4.0)
    assert [joint for joint, *_ in told(effects, {"flv1": -0.2}, load=6.0)] == ["shoulder"]


def test_motors_of_a_coupled_transmission_are_judged_by_themselves() -> None:
    coupled = Coupled(Viscous(), ((1.0, 0.0), (1.0, 1.0)), motors=(2,))
    robot = planar_2r([Viscous(), coupled])
    robot = robot.with_parameters({"fv1": 1.0, "fv2": 1.0, "fvm2": -0.1})
    (found,) = driving_joints(robot, robot.parameters, FrictionReach(np.full(2, 4.0), np.zeros(2)))
    assert found.joint == "motor of elbow"


def test_speeds_are_those_of_limits_and_logs() -> None:
    q = np.zeros((3, 2))
    samples = Samples(time=np.arange(3.0), position=q, velocity=np.array([[1.0, -9.0]] * 3), acceleration=q, torque=q)
    np.testing.assert_allclose(FrictionReach.of(planar_2r(), [samples, object()]).speed, [4.0, 9.0])


def test_estimates_keep_friction_passive_beyond_the_loads_that_they_saw() -> None:
    robot = planar_2r([Viscous(), LoadViscous()])
    samples = Samples(np.arange(2.0), *(np.ones((2, 2)) for _ in range(4)), load=np.full((2, 2), 4.0))
    kept = PassiveFriction.of(robot, [samples]).condition
    assert kept.load.max() == pytest.approx(MORE_LOAD * 4.0)
    values = robot.with_parameters({"fv1": 1.0, "flv1": -0.2, "fv2": 1.0, "flv2": -0.16}).parameters
    held = kept.G @ np.array([values[name] for name in kept.names])
    assert {joint for joint, one in zip(kept.joint, held, strict=True) if one < -1e-9} == {"shoulder"}
    assert not driving_joints(robot, values, FrictionReach(np.full(2, 4.0), np.full(2, 4.0)))
