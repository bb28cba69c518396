"""Friction that turns over a distance: its formula, its memory, and what a fit finds of it."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimation.friction.choice import choose_friction
from dynid.excitation.fourier import random_fourier
from dynid.recording.samples import Samples, SampleStream
from dynid.recording.travel import Travel
from dynid.regression.factor import factorise
from dynid.regression.row_filter import BandLimit
from dynid.regression.torque import inverse_dynamics
from dynid.regression.torque_rows import TorqueRows
from dynid.robot.builtin import demo_robot
from dynid.robot.effects import Coulomb, Offset, SmoothCoulomb, Viscous
from dynid.robot.effects.mathematics import ARRAYS
from dynid.robot.effects.sign import sliding_sign
from dynid.robot.model import Robot
from dynid.validation.torque import predict

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


def motion(seed: int = 0, rate_hz: float = 1000.0) -> Samples:
    return random_fourier(sliding_robot(), 8.0, 4, seed=seed).samples(rate_hz)


def test_it_is_dahls_friction_after_the_first_reversal() -> None:
    one = motion()
    x = Travel(2).push(one.position)
    z = dahl(one.position, np.array(DISTANCE))
    signal = sliding_sign(ARRAYS, x, np.array(DISTANCE))
    turned = np.cumsum(np.abs(np.diff(np.sign(x), axis=0, prepend=x[:1])), axis=0) > 2.0
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
    friction = predict(robot, robot.parameters, samples) - predict(bare, bare.parameters, samples)
    np.testing.assert_allclose(friction[300:], np.tile([3.0, -4.0], (101, 1)), rtol=1e-9)


def test_without_a_history_joints_slide() -> None:
    robot = sliding_robot()
    smooth = robot.with_effects([Viscous(), SmoothCoulomb(smooth_width=0.02), Offset()])
    state = np.array([[0.1, 0.2]]), np.array([[0.3, -0.4]]), np.zeros((1, 2))
    np.testing.assert_allclose(inverse_dynamics(robot, *state), inverse_dynamics(smooth, *state), rtol=1e-14)


def test_only_the_distance_is_searched_for() -> None:
    assert [one.name for one in SmoothCoulomb(slide_distance=1e-3).nonlinear_options()] == ["slide_distance"]
    assert [one.name for one in SmoothCoulomb(smooth_time_s=0.01).nonlinear_options()] == ["smooth_width", "smooth_time_s"]


def test_streams_remember_what_came_before() -> None:
    """Rows of a log in pieces are those of the whole log."""
    robot, one = sliding_robot(), motion()
    one = one.with_torque(predict(robot, robot.parameters, one))

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
    robot, one = sliding_robot(), motion(seed)
    rigid = robot.with_parameters({"fc1": 0.0, "fc2": 0.0})
    torque = predict(rigid, rigid.parameters, one) + [3.0, 4.0] * dahl(one.position, np.array(DISTANCE))
    noisy = torque + 0.05 * np.random.default_rng(seed).standard_normal(torque.shape)
    plain = robot.with_effects([Viscous(), Coulomb(), Offset()])
    choice = choose_friction(plain, [one.with_torque(noisy)], row_filter=BandLimit(20.0))
    assert choice.model.startswith("presliding")
    found = next(effect for effect in choice.robot.effects if isinstance(effect, SmoothCoulomb))
    np.testing.assert_allclose(found.slide_distance, DISTANCE, rtol=0.15)
