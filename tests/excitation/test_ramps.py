"""From rest into a motion and back: ends, limits, repeats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.excitation.fixed_motions import largest_sinusoids
from dynid.excitation.limits import limits_of, margins_of
from dynid.excitation.ramps import SLOW, approach, from_home, rest_to_rest
from dynid.excitation.shapes import BSplineShape, random_fourier
from dynid.excitation.trajectories import FourierTrajectory, SequenceTrajectory
from problems import demo_arm, planar_2r


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

    def worst(self, q, v, a):
        distance = np.linalg.norm(q, axis=1) - 0.5
        row = int(np.argmin(distance))
        return float(distance[row]), row, "upper - lower"


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
    assert margins_of(robot, motion, limits).clearance > 0.0
    assert margins_of(robot, half_circle(0.0), limits).clearance < 0.0
    whole = rest_to_rest(robot, motion, limits)
    assert whole.pieces == (motion,)
    assert not whole.closed
    with pytest.raises(InputError, match="cannot be played 2 times: no way back"):
        rest_to_rest(robot, motion, limits, periods=2)


def test_sinusoids_end_where_they_start():
    robot = demo_arm()
    limits = limits_of(robot)
    whole = rest_to_rest(robot, largest_sinusoids(robot, limits, 6.0), limits, periods=2)
    assert whole.closed
    assert whole.at_rest
    assert margins_of(robot, whole, limits, 8000).smallest >= 0.0


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


@pytest.mark.parametrize("height", [0.0, 1.5])
def test_a_slow_way_leads_from_home_to_the_motion_and_back_around_what_stands_there(height):
    robot = planar_2r()
    across, up = np.linspace(1.0, 1.0, 7), np.concatenate([[0.0], 0.3 * np.ones(5), [height]])
    motion = BSplineShape(8.0, 6).trajectory(np.vstack([across, up]))
    limits = replace(limits_of(robot), clearance=Disc())
    home = np.array([-1.0, 0.0])  # the straight way goes through the disc
    whole = from_home(robot, motion, home, limits)
    q = whole.derivative(whole.grid(5000), 0)
    np.testing.assert_allclose(q[[0, -1]], [home, home], atol=1e-9)
    assert np.linalg.norm(q, axis=1).min() > 0.5
    outside = np.linspace(0.0, whole.pieces[0].duration_s, 500)
    assert np.abs(whole.derivative(outside, 1) / limits.velocity).max() <= SLOW * 1.001
    assert margins_of(robot, whole, limits, 5000).smallest >= 0.0
    assert motion in whole.pieces
    assert whole.at_rest


def test_a_home_that_cannot_be_is_refused_in_one_sentence():
    robot = planar_2r()
    motion, limits = half_circle(1.5), replace(limits_of(robot), clearance=Disc())
    far = float(limits.position[0, 1]) + 0.1
    for home, told in (
        ([0.1, 0.0], "--home itself breaks the limit of clearance"),
        ([0.1], "--home has 1 numbers, the motion moves 2 joints"),
        ([far, 0.0], "expected .* what the motion may use of its range"),
    ):
        with pytest.raises(InputError, match=told):
            from_home(robot, motion, np.array(home), limits)
    ring = replace(limits, clearance=Ring())
    with pytest.raises(InputError, match=r"no way was found between --home and the motion: .* clearance"):
        from_home(robot, motion, np.zeros(2), ring)
    with pytest.raises(InputError, match="does not start and end at rest"):
        from_home(robot, random_fourier(robot, 5.0), np.zeros(2), limits_of(robot))


class Ring(Disc):
    """Free inside and outside of a ring, so that no way leads out."""

    def worst(self, q, v, a):
        distance = np.abs(np.linalg.norm(q, axis=1) - 0.6) - 0.1
        row = int(np.argmin(distance))
        return float(distance[row]), row, "upper - lower"
