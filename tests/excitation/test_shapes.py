"""Families of motions and motions: derivatives, linearity, ends at rest, sequences, ramps, sinusoids."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.excitation.bspline import BSplineShape, BSplineTrajectory
from dynid.excitation.fourier import FourierShape, FourierTrajectory, random_fourier
from dynid.excitation.limits import limits_of, margins_of
from dynid.excitation.ramps import approach, rest_to_rest
from dynid.excitation.shape import QuinticTrajectory, SequenceTrajectory, SlowedTrajectory
from dynid.excitation.sinusoids import SinusoidTrajectory, all_joint_sinusoids, single_joint_sinusoid
from messages import facts
from problems import demo_arm, planar_2r

SHAPES = [FourierShape(6.0, 4), FourierShape(6.0, 4, at_rest=True), BSplineShape(6.0, 8)]


def examples():
    rng = np.random.default_rng(3)
    states = rng.normal(size=(2, 3, 2))
    quintic = QuinticTrajectory.between(1.5, tuple(states[0]), tuple(states[1]))
    still = np.zeros(2)
    return [
        FourierShape(3.0, 3).trajectory(rng.normal(size=(2, 7))),
        BSplineShape(4.0, 6).trajectory(rng.normal(size=(2, 7))),
        SinusoidTrajectory(rng.normal(size=2), [1.1, 2.3], [0.2, -0.4], 5.0),
        quintic,
        SequenceTrajectory((quintic, QuinticTrajectory.between(0.7, tuple(states[1]), (np.ones(2), still, still)))),
        SlowedTrajectory(FourierShape(3.0, 3).trajectory(rng.normal(size=(2, 7))), 0.25),
    ]


@pytest.mark.parametrize("motion", examples(), ids=lambda motion: type(motion).__name__)
def test_every_motion_is_the_integral_of_its_derivatives(motion):
    h = 1e-5
    time = motion.duration_s * np.array([0.11, 0.37, 0.52, 0.83])
    for order in range(3):
        slope = (motion.derivative(time + h, order) - motion.derivative(time - h, order)) / (2.0 * h)
        np.testing.assert_allclose(motion.derivative(time, order + 1), slope, rtol=1e-5, atol=1e-5)
    q, v, a = motion.evaluate(time)
    np.testing.assert_array_equal(v, motion.derivative(time, 1))
    np.testing.assert_array_equal(motion.jerk(time), motion.derivative(time, 3))
    assert q.shape == a.shape == (4, 2)


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


def test_a_shifted_series_begins_later():
    motion = FourierShape(4.0, 3).trajectory(np.random.default_rng(0).normal(size=(2, 7)))
    time = np.linspace(0.0, 4.0, 9)
    np.testing.assert_allclose(motion.shifted(1.3).evaluate(time), motion.evaluate(time + 1.3), atol=1e-12)


def test_slowed_motion():
    motion = FourierShape(4.0, 3).trajectory(np.random.default_rng(0).normal(size=(2, 7)))
    slow = SlowedTrajectory(motion, 0.25)
    assert slow.duration_s == 16.0
    np.testing.assert_allclose(slow.derivative(2.0, 0), motion.derivative(0.5, 0))
    np.testing.assert_allclose(slow.derivative(2.0, 2), motion.derivative(0.5, 2) / 16.0)
    with pytest.raises(InputError, match=r"1\.5 times its speed"):
        SlowedTrajectory(motion, 1.5)


@pytest.mark.parametrize("seed", range(4))
def test_ramps_lead_from_rest_to_rest_within_all_limits(seed):
    robot = demo_arm()
    motion = random_fourier(robot, 10.0, 5, seed=seed, fraction=0.97)
    limits = limits_of(robot, jerk=300.0)
    whole = rest_to_rest(robot, motion, limits, periods=2)
    assert isinstance(whole, SequenceTrajectory)
    assert len(whole.pieces) == 4
    _, v, a = whole.evaluate([0.0, whole.duration_s])
    np.testing.assert_allclose(v, 0.0, atol=1e-9)
    np.testing.assert_allclose(a, 0.0, atol=1e-8)
    for joint in whole.starts_s[1:-1]:  # position, velocity and acceleration go on where pieces meet
        for order in (0, 1, 2):
            before, after = whole.derivative([joint - 1e-9, joint + 1e-9], order)
            np.testing.assert_allclose(before, after, atol=1e-6)
    assert margins_of(robot, whole, limits, 5000).smallest >= 0.0
    assert margins_of(robot, SequenceTrajectory(whole.pieces[:2] + whole.pieces[-1:]), limits, 40_000).smallest >= 0.0
    assert whole.closed  # repeating the file is no step
    table = whole.samples(1000.0).position
    np.testing.assert_allclose(table[-1], table[0], atol=1e-6)
    core = whole.pieces[1]
    np.testing.assert_allclose(  # the same periodic motion, begun elsewhere
        np.hypot(core.a, core.b), np.hypot(motion.a, motion.b), atol=1e-12
    )


class Disc:
    """Bodies that touch where both joints are near zero."""

    least_m = 0.0
    notes = ()

    def smallest(self, q):
        distance = np.linalg.norm(q, axis=1) - 0.5
        worst = int(np.argmin(distance))
        return float(distance[worst]), worst, "upper - lower"


def half_circle(height):
    """A spline at rest at its ends, from joint positions (-1, 0) to (1, 0) over (0, height)."""
    across, up = np.linspace(-1.0, 1.0, 7), height * np.sin(np.linspace(0.0, np.pi, 7))
    return BSplineShape(8.0, 6).trajectory(np.vstack([across, up]))


def test_a_motion_at_rest_gets_a_way_back_and_no_ramps():
    robot = planar_2r()
    motion, limits = half_circle(1.5), limits_of(robot)
    assert motion.at_rest
    assert not motion.closed
    whole = rest_to_rest(robot, motion, limits, periods=3)
    assert len(whole.pieces) == 6
    assert whole.pieces[0] is motion
    assert whole.closed
    assert whole.at_rest
    assert margins_of(robot, whole, limits, 5000).smallest >= 0.0


def test_a_motion_without_a_way_back_stays_open_and_is_not_repeated():
    robot = planar_2r()
    motion = half_circle(1.5)
    limits = replace(limits_of(robot), clearance=Disc())
    assert margins_of(robot, motion, limits).clearance.value > 0.0
    assert margins_of(robot, half_circle(0.0), limits).clearance.value < 0.0
    whole = rest_to_rest(robot, motion, limits)
    assert whole.pieces == (motion,)
    assert not whole.closed
    with pytest.raises(InputError, match="cannot be played 2 times: no way back"):
        rest_to_rest(robot, motion, limits, periods=2)


def test_sinusoids_end_where_they_start():
    robot = demo_arm()
    limits = limits_of(robot)
    whole = rest_to_rest(robot, all_joint_sinusoids(robot, limits, 6.0), limits, periods=2)
    assert whole.closed
    assert whole.at_rest
    assert margins_of(robot, whole, limits, 8000).smallest >= 0.0


def test_margins_look_once_at_what_repeats_and_say_when():
    robot = planar_2r()
    motion = random_fourier(robot, 4.0, 3, fraction=0.8)
    limits = limits_of(robot)
    whole = rest_to_rest(robot, motion, limits, periods=5)
    found = margins_of(robot, whole, limits, 8000)
    assert found.n_times < 2500
    every = np.linspace(0.0, whole.duration_s, 40_001)
    v = whole.derivative(every, 1)
    assert found.velocity.value == pytest.approx((1.0 - np.abs(v) / limits.velocity).min(), abs=1e-4)
    joint = robot.joint_index(found.velocity.where)
    there = np.abs(whole.derivative(found.velocity.time_s, 1))[0, joint]
    assert found.velocity.value == pytest.approx(1.0 - there / limits.velocity[joint], abs=1e-9)
    last = SequenceTrajectory((whole.pieces[1], whole.pieces[1], half_ramp(whole)))
    found = margins_of(robot, last, replace(limits, acceleration=np.full(2, 1e-3)), 4000)
    there = np.abs(last.derivative(found.acceleration.time_s, 2)).max()
    assert found.acceleration.value == pytest.approx(1.0 - there / 1e-3, rel=1e-6)
    assert found.acceleration.time_s > 2.0 * motion.duration_s


def half_ramp(whole):
    """The way out of a motion, in so short a time that its acceleration is the largest of all."""
    q, v, a = (part[0] for part in whole.pieces[1].evaluate([0.0]))
    return QuinticTrajectory.between(0.05, (q, v, a), (q, 0.0 * q, 0.0 * q))


def test_absurd_rates_are_refused_before_anything_is_sampled():
    motion = random_fourier(planar_2r(), 4.0, 3)
    with pytest.raises(InputError, match=facts("4", "1e+09", "4e+09", "10", "000", "motion")):
        motion.samples(1e9)


def test_ramps_that_cannot_be_are_refused():
    robot = planar_2r()
    motion = FourierTrajectory(2.0, np.full((2, 1), 9.0), np.zeros((2, 1)), np.zeros(2))
    tight = replace(limits_of(robot), velocity=np.full(2, 0.5))
    with pytest.raises(InputError, match="no ramp of up to 20 s"):
        rest_to_rest(robot, motion, tight)
    with pytest.raises(InputError, match="0 periods"):
        rest_to_rest(robot, motion, tight, periods=0)


def test_approach_saturates_one_limit():
    robot = planar_2r()
    limits = limits_of(robot)
    way = approach(np.zeros(2), np.array([2.0, -0.5]), limits)
    time = way.grid(2000)
    use = max(
        (np.abs(way.derivative(time, 1)) / limits.velocity).max(),
        (np.abs(way.derivative(time, 2)) / limits.acceleration).max(),
    )
    assert use == pytest.approx(1.0, abs=5e-3)
    np.testing.assert_allclose(way.evaluate([way.duration_s])[0][0], [2.0, -0.5], atol=1e-12)


def test_sinusoids_of_gaz():
    """The motion of Table I: velocities as printed, positions around the centre."""
    A = np.array([2.21, -2.21, 1.2, -2.1, -2.3, 2.1, -2.5])
    T = np.array([3.68, 2.04, 2.98, 1.75, 4.43, 2.749, 1.06])
    motion = SinusoidTrajectory(A, T, np.zeros(7), 10.0)
    t = np.array([0.4, 3.3])
    np.testing.assert_allclose(motion.evaluate(t)[1], A * np.sin(2.0 * np.pi / T * t[:, None]), atol=1e-14)


@pytest.mark.parametrize("jerk", [None, 40.0])
def test_friction_sinusoids_use_the_limits_and_keep_them(jerk):
    robot = demo_arm()
    limits = limits_of(robot, jerk=jerk)
    together = all_joint_sinusoids(robot, limits, 20.0)
    margins = margins_of(robot, together, limits)
    assert margins.smallest >= 0.0
    if jerk is None:
        np.testing.assert_allclose(np.abs(together.amplitude), 0.98 * limits.velocity, rtol=1e-9)
    assert len(np.unique(together.period.round(6))) == robot.n_joints
    alone = single_joint_sinusoid(robot, "elbow", limits, pose=np.full(robot.n_joints, 0.1))
    elbow = robot.joint_index("elbow")
    assert np.flatnonzero(alone.amplitude).tolist() == [elbow]
    others = np.arange(robot.n_joints) != elbow
    assert (alone.evaluate([1.0, 2.0])[0][:, others] == 0.1).all()


def test_refusals():
    still = np.zeros(1)
    first = QuinticTrajectory.between(1.0, (still, still, still), (still + 1.0, still, still))
    with pytest.raises(InputError, match="do not meet"):
        SequenceTrajectory((first, first))
    with pytest.raises(InputError, match="sequence of 0 motions"):
        SequenceTrajectory(())
    with pytest.raises(InputError, match="2 intervals, expected at least 3"):
        BSplineShape(5.0, 2)
    with pytest.raises(InputError, match="3 control points, expected at least 6"):
        BSplineTrajectory(5.0, np.zeros((2, 3)))
    with pytest.raises(InputError, match=facts("1", "2", "harmonic")):
        FourierShape(5.0, 1, at_rest=True)
    with pytest.raises(InputError, match="a period is 0 s"):
        SinusoidTrajectory([1.0], [0.0], [0.0], 5.0)
