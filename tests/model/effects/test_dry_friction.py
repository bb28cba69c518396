"""Dry friction: its formulas, smoothing, and friction that turns over a distance, with what a fit finds of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.friction.selection import choose_friction
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.model.effects.dry_friction import (
    AsymmetricCoulomb,
    Coulomb,
    LoadCoulomb,
    Sigmoid,
    SmoothCoulomb,
    Stribeck,
    sliding_sign,
)
from dynid.model.effects.effect import Motion
from dynid.model.effects.linear import LoadViscous, Offset, Viscous, ViscousPolynomial
from dynid.model.effects.mathematics import ARRAYS
from dynid.model.effects.wrapped import Coupled
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import factorise
from dynid.regression.row_filter import BandLimit
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.reversal_history import Travel
from dynid.signals.samples import Samples, SampleStream
from dynid.validation.prediction import predict
from effect_cases import WRIST, motion
from messages import facts
from problems import random_tree

DISTANCE = (2e-3, 5e-3)


def sliding_robot(distance: float | tuple[float, ...] = DISTANCE) -> Robot:
    effects = [Viscous(), SmoothCoulomb(smooth_width=0.02, slide_distance=distance), Offset()]
    robot = demo_robot(effects=effects).only(["shoulder_yaw", "shoulder_pitch"])
    values = {"fv1": 2.0, "fv2": 1.5, "fc1": 3.0, "fc2": 4.0, "fo1": 0.1, "fo2": -0.2}
    return robot.with_parameters(values)


def dahl(position: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """The state of Dahl's model, integrated exactly over every step: an oracle that knows nothing of reversals."""
    z = np.zeros_like(position)
    for k, step in enumerate(np.diff(position, axis=0)):
        s = np.sign(step)
        z[k + 1] = s + (z[k] - s) * np.exp(-np.abs(step) / distance)
    return z


def sliding_motion(seed: int = 0, rate_hz: float = 1000.0) -> Samples:
    return random_fourier(sliding_robot(), 8.0, 4, seed=seed).samples(rate_hz)


def test_it_is_dahls_friction_after_the_first_reversal() -> None:
    one = sliding_motion()
    x = Travel(2).push(one.position)
    z = dahl(one.position, np.array(DISTANCE))
    signal = sliding_sign(ARRAYS, x, np.array(DISTANCE))
    turned = np.cumsum(np.abs(np.diff(np.sign(x[..., 0]), axis=0)), axis=0) > 2.0
    turned = np.concatenate([turned[:1], turned])
    assert turned.mean() > 0.5
    # while a joint turns back its first steps, smaller than a reversal, are not seen yet
    assert np.abs(signal - z)[turned].mean() < 2e-3
    assert np.quantile(np.abs(signal - z)[turned], 0.99) < 0.1


def test_a_joint_at_rest_keeps_its_friction() -> None:
    robot = sliding_robot().with_parameters({"fo1": 0.0, "fo2": 0.0})
    bare = robot.with_parameters({"fc1": 0.0, "fc2": 0.0})
    t = np.linspace(0.0, 2.0, 401)
    q = np.column_stack([np.minimum(t, 1.0), -0.5 * np.minimum(t, 1.0)])
    v = np.where(t[:, None] < 1.0, [1.0, -0.5], 0.0)
    samples = Samples(time=t, position=q, velocity=v, acceleration=np.zeros_like(q))
    friction = predict(robot, samples) - predict(bare, samples)
    np.testing.assert_allclose(friction[300:], np.tile([3.0, -4.0], (101, 1)), rtol=1e-9)


def test_without_a_history_joints_slide() -> None:
    robot = sliding_robot()
    smooth = robot.with_effects([Viscous(), SmoothCoulomb(smooth_width=0.02), Offset()])
    state = np.array([[0.1, 0.2]]), np.array([[0.3, -0.4]]), np.zeros((1, 2))
    np.testing.assert_allclose(inverse_dynamics(robot, *state), inverse_dynamics(smooth, *state), rtol=1e-14)


def test_only_the_distance_is_searched_for() -> None:
    assert [one.name for one in SmoothCoulomb(slide_distance=1e-3).searched_parameters()] == ["slide_distance"]
    assert [one.name for one in SmoothCoulomb(smooth_time_s=0.01).searched_parameters()] == ["smooth_width", "smooth_time_s"]


def test_streams_remember_what_came_before() -> None:
    """Rows of a log in pieces are those of the whole log."""
    robot, one = sliding_robot(), sliding_motion()
    one = one.with_torque(predict(robot, one))

    class Pieces:
        def __iter__(self):
            for start in range(0, len(one), 137):
                yield one[start : start + 137]

    assert isinstance(Pieces(), SampleStream)
    whole, pieces = (factorise(TorqueRows(robot, (source,))) for source in (one, Pieces()))
    for j in range(2):
        a, b = whole.channel_matrix(j), pieces.channel_matrix(j)
        np.testing.assert_allclose(a.T @ a, b.T @ b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_choice_finds_it_and_its_distance(seed: int) -> None:
    """Simulated: Dahl's model itself makes the torque, with noise; friction auto takes a presliding model of that distance."""
    robot, one = sliding_robot(), sliding_motion(seed)
    rigid = robot.with_parameters({"fc1": 0.0, "fc2": 0.0})
    torque = predict(rigid, one) + [3.0, 4.0] * dahl(one.position, np.array(DISTANCE))
    noisy = torque + 0.05 * np.random.default_rng(seed).standard_normal(torque.shape)
    plain = robot.with_effects([Viscous(), Coulomb(), Offset()])
    choice = choose_friction(plain, [one.with_torque(noisy)], row_filter=BandLimit(20.0))
    assert choice.model.startswith("presliding")
    found = next(effect for effect in choice.robot.effects if isinstance(effect, SmoothCoulomb))
    np.testing.assert_allclose(found.slide_distance, DISTANCE, rtol=0.15)


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


def test_asymmetric_friction_is_coulomb_with_an_offset_away_from_zero_speed():
    robot = random_tree(5, n_joints=3, effects=[AsymmetricCoulomb(smooth_width=0.0), Coulomb(), Offset()])
    base = reduce_to_base(robot)
    friction = [name for name in base.names if name[0] == "f"]
    assert len(friction) == 6, friction


def test_options_of_dry_friction_are_checked():
    with pytest.raises(InputError, match=facts("SmoothCoulomb", "smooth_width", "-1.0")):
        SmoothCoulomb(smooth_width=-1.0)
    with pytest.raises(InputError, match=r"Sigmoid slope is 0\.0, expected positive numbers"):
        Sigmoid(slope=0.0)
    with pytest.raises(UnknownNameError, match=facts("rational", "exp", "square", "friction")):
        Stribeck(form="square")
