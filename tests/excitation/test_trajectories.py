"""Motions: derivatives, series, sequences, slower ones, and samples of them."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.excitation.fixed_motions import sinusoids
from dynid.excitation.shapes import BSplineShape, FourierShape, random_fourier
from dynid.excitation.trajectories import FourierTrajectory, PolynomialTrajectory, SequenceTrajectory
from messages import facts
from problems import planar_2r


def points_example(seed=0, points=5, joints=3):
    """A motion through random points, and their positions and velocities."""
    rng = np.random.default_rng(seed)
    times = np.concatenate([[0.0], np.cumsum(rng.uniform(0.5, 2.0, points - 1))])
    position, velocity = rng.normal(size=(2, points, joints))
    return PolynomialTrajectory.through(times, position, velocity), position, velocity


def test_the_motion_passes_through_its_points_without_acceleration():
    motion, position, velocity = points_example()
    q, v, a = motion.evaluate(motion.breaks_s)
    np.testing.assert_array_equal(q[:-1], position[:-1])
    np.testing.assert_array_equal(v[:-1], velocity[:-1])
    np.testing.assert_allclose(q[-1], position[-1], atol=1e-14)  # the end of the last polynomial
    np.testing.assert_allclose(v[-1], velocity[-1], atol=1e-14)
    np.testing.assert_allclose(a[:-1], 0.0, atol=1e-14)
    just_before = motion.breaks_s[1:] - 1e-9
    np.testing.assert_allclose(motion.evaluate(just_before)[0], position[1:], atol=1e-7)
    np.testing.assert_allclose(motion.evaluate(just_before)[2], 0.0, atol=1e-6)


def test_derivatives_through_points():
    (motion, _, _), h = points_example(1), 1e-6
    time = np.array([0.3, 1.1, 2.2, 3.0])
    for order in range(3):
        slope = (motion.derivative(time + h, order) - motion.derivative(time - h, order)) / (2.0 * h)
        np.testing.assert_allclose(motion.derivative(time, order + 1), slope, rtol=1e-5, atol=1e-5)


def examples():
    rng = np.random.default_rng(3)
    states = rng.normal(size=(2, 3, 2))
    quintic = PolynomialTrajectory.between(1.5, tuple(states[0]), tuple(states[1]))
    still = np.zeros(2)
    return [
        FourierShape(3.0, 3).trajectory(rng.normal(size=(2, 7))),
        BSplineShape(4.0, 6).trajectory(rng.normal(size=(2, 7))),
        sinusoids(rng.normal(size=2), [1.1, 2.3], [0.2, -0.4], 5.0),
        quintic,
        SequenceTrajectory((quintic, PolynomialTrajectory.between(0.7, tuple(states[1]), (np.ones(2), still, still)))),
        FourierShape(3.0, 3).trajectory(rng.normal(size=(2, 7))).slowed(0.25),
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
    assert q.shape == a.shape == (4, 2)


def test_a_shifted_series_begins_later():
    motion = FourierShape(4.0, 3).trajectory(np.random.default_rng(0).normal(size=(2, 7)))
    time = np.linspace(0.0, 4.0, 9)
    np.testing.assert_allclose(motion.shifted(1.3).evaluate(time), motion.evaluate(time + 1.3), atol=1e-12)


def test_slowed_motion():
    motion = FourierShape(4.0, 3).trajectory(np.random.default_rng(0).normal(size=(2, 7)))
    slow = motion.slowed(0.25)
    assert slow.duration_s == 16.0
    np.testing.assert_allclose(slow.derivative(2.0, 0), motion.derivative(0.5, 0))
    np.testing.assert_allclose(slow.derivative(2.0, 2), motion.derivative(0.5, 2) / 16.0)
    with pytest.raises(InputError, match=r"1\.5 times its speed"):
        motion.slowed(1.5)


def test_absurd_rates_are_refused_before_anything_is_sampled():
    motion = random_fourier(planar_2r(), 4.0, 3)
    with pytest.raises(InputError, match=facts("4", "1e+09", "4e+09", "10", "000", "motion")):
        motion.samples(1e9)


def test_refusals():
    still = np.zeros(1)
    first = PolynomialTrajectory.between(1.0, (still, still, still), (still + 1.0, still, still))
    with pytest.raises(InputError, match="do not meet"):
        SequenceTrajectory((first, first))
    with pytest.raises(InputError, match="sequence of 0 motions"):
        SequenceTrajectory(())
    with pytest.raises(InputError, match="2 intervals, expected at least 3"):
        BSplineShape(5.0, 2)
    with pytest.raises(InputError, match=r"shape \(1, 2, 3\), expected \(1, any, 6\)"):
        PolynomialTrajectory([0.0, 5.0], np.zeros((1, 2, 3)))
    with pytest.raises(InputError, match="do not rise"):
        PolynomialTrajectory.between(0.0, (still, still, still), (still, still, still))
    with pytest.raises(InputError, match="periods of their own, expected the length"):
        FourierTrajectory([1.0, 2.0], np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(2))
    with pytest.raises(InputError, match="3 periods were given for a motion of 2 joints"):
        FourierTrajectory([1.0, 2.0, 3.0], np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(2), 5.0)
    with pytest.raises(InputError, match=facts("1", "2", "harmonic")):
        FourierShape(5.0, 1, at_rest=True)
    with pytest.raises(InputError, match="a period is 0 s"):
        sinusoids([1.0], [0.0], [0.0], 5.0)


def series_example(seed=0, joints=3, harmonics=4):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, joints, harmonics))
    return FourierTrajectory(4.0, a, b, rng.normal(size=joints))


def test_series_as_written():
    motion = FourierTrajectory(2.0, [[0.5, 0.0]], [[0.0, -0.3]], [1.0])
    w, t = np.pi, 0.37
    q, dq, ddq = motion.evaluate(t)
    assert q[0, 0] == pytest.approx(1.0 + 0.5 / w * np.sin(w * t) + 0.3 / (2 * w) * np.cos(2 * w * t), abs=1e-15)
    assert dq[0, 0] == pytest.approx(0.5 * np.cos(w * t) - 0.3 * np.sin(2 * w * t), abs=1e-15)
    assert ddq[0, 0] == pytest.approx(-0.5 * w * np.sin(w * t) - 0.6 * w * np.cos(2 * w * t), abs=1e-14)


def test_derivatives_and_period():
    motion, t, h = series_example(), np.linspace(0.0, 9.0, 50), 1e-4
    q, dq, ddq = motion.evaluate(t)
    (q_after, dq_after, _), (q_before, dq_before, _) = motion.evaluate(t + h), motion.evaluate(t - h)
    np.testing.assert_allclose((q_after - q_before) / (2 * h), dq, atol=1e-6)
    np.testing.assert_allclose((dq_after - dq_before) / (2 * h), ddq, atol=1e-5)
    np.testing.assert_allclose(motion.evaluate(t + 4.0)[0], q, atol=1e-12)


def test_samples_span_whole_periods():
    samples = series_example().samples(50.0, periods=2)
    assert len(samples) == 401
    assert samples.time[-1] == 8.0
    np.testing.assert_allclose(samples.position[0], samples.position[-1], atol=1e-12)
