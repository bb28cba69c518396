"""Shortest times between points: one joint at its limit, on ticks of a clock, and none where points are too fast."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.excitation.limits import limits_of
from dynid.excitation.shortest_pieces import shortest_times
from dynid.excitation.trajectories import PolynomialTrajectory
from problems import demo_arm, planar_2r


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("jerk", [None, 60.0])
def test_shortest_times_saturate_one_joint(seed, jerk):
    robot = demo_arm()
    limits = limits_of(robot, jerk=jerk)
    rng = np.random.default_rng(seed)
    q = rng.uniform(*limits.range.T, (12, robot.n_joints))
    v = 0.7 * rng.uniform(-1.0, 1.0, q.shape) * limits.velocity
    times = shortest_times(q, v, limits)
    assert np.isfinite(times).all()
    motion = PolynomialTrajectory.through(np.concatenate([[0.0], np.cumsum(times)]), q, v)
    for i, length in enumerate(times):
        t = motion.breaks_s[i] + np.linspace(1e-9, length - 1e-9, 4001)
        use = np.max(
            [
                (np.abs(motion.derivative(t, 1)) / limits.velocity).max(),
                (np.abs(motion.derivative(t, 2)) / limits.acceleration).max(),
                (np.abs(motion.derivative(t, 3)) / limits.jerk).max(),
            ]
        )
        assert use <= 1.0 + 1e-6
        assert use == pytest.approx(1.0, abs=1e-4)


def test_times_on_ticks():
    robot = demo_arm()
    limits = limits_of(robot)
    rng = np.random.default_rng(5)
    q = 0.5 * rng.uniform(*limits.range.T, (8, robot.n_joints))
    v = 0.5 * rng.uniform(-1.0, 1.0, q.shape) * limits.velocity
    exact, ticked = shortest_times(q, v, limits), shortest_times(q, v, limits, tick_s=0.01)
    np.testing.assert_allclose(ticked / 0.01, np.round(ticked / 0.01), atol=1e-9)
    assert (ticked >= exact - 1e-12).all()
    assert (ticked <= exact + 0.05).all()


def test_points_too_fast_have_no_time():
    robot = planar_2r()
    limits = limits_of(robot)
    v = np.array([[9.0, 0.0], [0.0, 0.0]])
    assert np.isnan(shortest_times(np.zeros((2, 2)), v, limits)).all()
