"""Families of motions and random motions: linearity, ends at rest, limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.excitation.shapes import BSplineShape, FourierShape, random_fourier
from dynid.excitation.trajectories import FourierTrajectory
from dynid.model.effects.linear import Armature, Viscous
from messages import facts
from problems import demo_arm, planar_2r, random_tree

SHAPES = [FourierShape(6.0, 4), FourierShape(6.0, 4, at_rest=True), BSplineShape(6.0, 8)]


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_motions_are_linear_in_their_coefficients(shape):
    rng = np.random.default_rng(0)
    X = shape.random(rng, 3)
    assert X.shape == (3, shape.n_coefficients)
    time = np.linspace(0.0, shape.duration_s, 13)
    for order in range(4):
        np.testing.assert_allclose(
            shape.basis(time, order) @ X.T, shape.trajectory(X).derivative(time, order), rtol=1e-9, atol=1e-9
        )
    np.testing.assert_allclose(shape.basis(time, 0) @ shape.still(), 1.0, atol=1e-12)
    np.testing.assert_allclose(shape.basis(time, 1) @ shape.still(), 0.0, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES[1:], ids=repr)
def test_shapes_at_rest_at_their_ends(shape):
    motion = shape.trajectory(shape.random(np.random.default_rng(1), 2))
    _, v, a = motion.evaluate([0.0, shape.duration_s])
    np.testing.assert_allclose(v, 0.0, atol=1e-9)
    np.testing.assert_allclose(a, 0.0, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_nothing_between_limit_times_exceeds_what_is_allowed_for(shape, seed):
    motion = shape.trajectory(shape.random(np.random.default_rng(seed), 4))
    time, beyond = shape.limit_times()
    fine = motion.grid(20 * len(time))
    for order in (0, 1, 2):
        on_grid = np.abs(motion.derivative(time, order)).max(axis=0)
        between = np.abs(motion.derivative(fine, order)).max(axis=0)
        assert (between <= beyond * on_grid * (1.0 + 1e-12)).all()


def example(seed=0, joints=3, harmonics=4):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, joints, harmonics))
    return FourierTrajectory(4.0, a, b, rng.normal(size=joints))


@pytest.mark.parametrize("seed", range(5))
def test_random_motion_uses_the_limits_and_keeps_them(seed):
    robot = demo_arm()
    motion = random_fourier(robot, 10.0, 5, seed, fraction=1.0)
    q, dq, ddq = motion.evaluate(np.linspace(0.0, 10.0, 20001))
    low, high = robot.position_limits.T
    share = [
        np.ptp(q, axis=0) / (high - low),
        np.abs(dq).max(axis=0) / robot.limits("dq_max"),
        np.abs(ddq).max(axis=0) / robot.limits("ddq_max"),
    ]
    assert (q >= low).all()
    assert (q <= high).all()
    assert np.max(share) <= 1.0
    # the bound over all times costs no more than half a percent
    assert (np.max(share, axis=0) > 0.995).all()


def test_random_motion_shrinks_to_torque_limits():
    robot = demo_arm()
    free = random_fourier(robot, 10.0, 5, seed=2)
    peak = np.abs(inverse_dynamics(robot, *free.evaluate(np.linspace(0.0, 10.0, 2000)))).max(axis=0)
    weak = replace(robot, joints=(replace(robot.joints[0], tau_max=0.6 * peak[0]), *robot.joints[1:]))
    kept = random_fourier(weak, 10.0, 5, seed=2)
    tau = np.abs(inverse_dynamics(weak, *kept.evaluate(np.linspace(0.0, 10.0, 2000))))
    assert tau[:, 0].max() <= 0.6 * peak[0]
    np.testing.assert_array_equal(kept.offset, free.offset)
    hopeless = replace(robot, joints=(robot.joints[0], replace(robot.joints[1], tau_max=0.01), *robot.joints[2:]))
    with pytest.raises(InputError, match=facts("shoulder_pitch", "0.01", "joint")):
        random_fourier(hopeless, 10.0, 5, seed=2)


def test_random_motion_at_rest_and_by_seed():
    robot = demo_arm()
    motion = random_fourier(robot, 8.0, 4, seed=1, at_rest=True)
    _, dq, ddq = motion.evaluate([0.0, 8.0])
    np.testing.assert_allclose(dq, 0.0, atol=1e-12)
    np.testing.assert_allclose(ddq, 0.0, atol=1e-12)
    assert np.abs(motion.evaluate(np.linspace(0, 8, 100))[1]).max() > 0.3
    np.testing.assert_array_equal(motion.a, random_fourier(robot, 8.0, 4, seed=1, at_rest=True).a)
    assert not np.array_equal(motion.a, random_fourier(robot, 8.0, 4, seed=2, at_rest=True).a)


def test_continuous_joints_swing_within_one_turn():
    robot = random_tree(1, 6, effects=[Viscous(), Armature()])
    q, dq, _ = random_fourier(robot, 6.0, 3, seed=0).evaluate(np.linspace(0.0, 6.0, 1000))
    assert np.abs(q).max() <= np.pi
    assert (np.abs(dq).max(axis=0) <= robot.limits("dq_max")).all()


def test_random_motions_that_cannot_be_are_refused():
    robot = planar_2r()
    with pytest.raises(InputError, match="expected at least 2"):
        random_fourier(robot, 5.0, 1, at_rest=True)
    with pytest.raises(InputError, match="floats"):
        random_fourier(random_tree(0, floating=True), 5.0, 3)
    unlimited = replace(robot, joints=(replace(robot.joints[0], dq_max=np.inf), robot.joints[1]))
    with pytest.raises(InputError, match=r"no velocity limit.*shoulder"):
        random_fourier(unlimited, 5.0, 3)
    with pytest.raises(InputError, match="a period is -1 s"):
        FourierTrajectory(-1.0, [[1.0]], [[1.0]], [0.0])
    with pytest.raises(InputError, match="0 harmonics"):
        FourierTrajectory(1.0, np.zeros((2, 0)), np.zeros((2, 0)), [0.0, 0.0])
    with pytest.raises(InputError, match=r"shape \(1,\), expected \(2\)"):
        FourierTrajectory(1.0, np.zeros((2, 1)), np.zeros((2, 1)), [0.0])
    with pytest.raises(InputError, match="hold no sample"):
        example().samples(0.01)


SIX = ["shoulder_yaw", "shoulder_pitch", "upper_arm_roll", "elbow", "forearm_roll", "wrist_pitch"]


@pytest.fixture(scope="module")
def six():
    return demo_arm().only(SIX)


def test_piecewise_polynomials_are_exact(six):
    shape = BSplineShape(4.0, 6)
    control = np.random.default_rng(0).normal(size=(six.n_joints, 7))
    motion = shape.trajectory(control)
    assert len(motion.coefficients) == 6
    time = motion.grid(100)
    for order in range(4):
        np.testing.assert_allclose(motion.derivative(time, order), shape.basis(time, order) @ control.T, atol=1e-10)
