"""The criterion of points: its gradient, which positions it depends on, and the work of effects between points.

Integrals are SciPy's along the motion, derivatives by differences.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

from dynid.excitation.design_problem import with_smooth_sign
from dynid.excitation.limits import limits_of
from dynid.excitation.points_problem import PointsProblem, PointsWork, energy_rows_of
from dynid.excitation.trajectories import PolynomialTrajectory
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.regression.base import reduce_to_base
from problems import planar_2r


@pytest.fixture
def problem():
    robot = planar_2r()
    rows = 12
    found = PointsProblem.of(
        robot,
        reduce_to_base(robot),
        limits_of(robot),
        rows=rows,
        stages=(),
        iterations=5,
        deadline=np.inf,
        roomy=limits_of(robot).centre,
    )
    return replace(found, share=(0.9, 0.8))


def test_points_keep_within_their_share_of_the_limits(problem):
    n = problem.n_variables
    q, v = problem.points(10.0 * np.random.default_rng(0).normal(size=n))
    assert (np.abs(q - problem.limits.centre) <= 0.9 * problem.limits.reach + 1e-12).all()
    assert (np.abs(v) <= 0.8 * problem.limits.velocity + 1e-12).all()


def test_fewer_positions_lie_nearer_to_the_roomy_pose_and_speeds_leave_room_to_stop(problem):
    limits = replace(problem.limits, velocity=np.full(2, 1e3))
    roomy = limits.centre + 0.5 * limits.reach
    near = replace(problem, limits=limits, roomy=roomy, share=(0.1, 1.0))
    q, v = near.points(10.0 * np.random.default_rng(0).normal(size=near.n_variables))
    assert (np.abs(q - roomy) <= 0.15 * limits.reach + 1e-12).all()
    assert (v**2 <= limits.acceleration * limits.reach * (1.0 + 1e-9)).all()


def test_the_gradient_is_that_of_the_value(problem):
    from dynid.excitation.criteria import SpectralCriterion

    criterion = SpectralCriterion("condition", 2.0)
    n = problem.n_variables
    x = np.random.default_rng(1).normal(size=n)
    value, gradient = problem.function(x, criterion)
    W = energy_rows_of(problem.robot, problem.base, *problem.points(x))
    assert value == pytest.approx(criterion.value(W))
    direction = np.random.default_rng(2).normal(size=n)
    step = 1e-6
    ends = [problem.function(x + sign * step * direction, criterion)[0] for sign in (1.0, -1.0)]
    assert gradient @ direction == pytest.approx((ends[0] - ends[1]) / (2.0 * step), rel=1e-4)


@pytest.fixture
def points():
    rng = np.random.default_rng(4)
    return rng.uniform(-1.0, 1.0, (5, 2)), rng.uniform(-1.0, 1.0, (5, 2)), np.array([0.7, 1.1, 0.5, 0.9])


def test_columns_are_the_integrals_along_the_motion(points):
    q, v, lengths = points
    robot = planar_2r().with_effects([Viscous(), Offset(), Armature()])
    found = PointsWork(robot, lengths).columns(q, v)
    motion = PolynomialTrajectory.through(np.concatenate([[0.0], np.cumsum(lengths)]), q, v)
    for row, (start, end) in enumerate(zip(motion.breaks_s[:-1], motion.breaks_s[1:], strict=True)):
        for joint in range(2):
            work = quad(lambda t, j=joint: motion.derivative(t, 1)[0, j] ** 2, start, end)[0]
            expected = [work, q[row + 1, joint] - q[row, joint], 0.5 * (v[row + 1, joint] ** 2 - v[row, joint] ** 2)]
            np.testing.assert_allclose(found[row, joint::2], expected, atol=1e-9)


def test_gradient_by_differences(points):
    q, v, lengths = points
    robot = planar_2r().with_effects([Viscous(), Coulomb(), Offset(), Armature()])
    work = PointsWork(with_smooth_sign(robot, limits_of(robot)), lengths)
    weights = np.random.default_rng(5).normal(size=(4, 8))
    found = work.gradient(q, v, weights)
    h = 1e-6
    for k, by in enumerate(found):
        for place in np.ndindex(q.shape):
            ends = []
            for sign in (1.0, -1.0):
                moved = [q.copy(), v.copy()]
                moved[k][place] += sign * h
                ends.append((weights * work.columns(*moved)).sum())
            assert by[place] == pytest.approx((ends[0] - ends[1]) / (2.0 * h), rel=1e-5, abs=1e-6)
