"""The criterion of points: its gradient, and which positions it depends on."""

import numpy as np
import pytest

from dynid.excitation.limits import limits_of
from dynid.excitation.points_problem import PointsProblem, energy_rows_of, positions_that_matter
from dynid.regression.base import reduce_to_base
from problems import planar_2r


@pytest.fixture
def problem():
    robot = planar_2r()
    rows = 12
    return PointsProblem(
        robot=robot,
        base=reduce_to_base(robot),
        limits=limits_of(robot),
        free=positions_that_matter(robot),
        rows=rows,
        share=(0.9, 0.8),
        stages=(),
        iterations=5,
        seed=0,
        deadline=np.inf,
    )


def test_points_keep_within_their_share_of_the_limits(problem):
    n = (problem.rows + 1) * (int(problem.free.sum()) + problem.robot.n_joints)
    q, v = problem.points(10.0 * np.random.default_rng(0).normal(size=n))
    assert (np.abs(q - problem.limits.centre) <= 0.9 * problem.limits.reach + 1e-12).all()
    assert (np.abs(v) <= 0.8 * problem.limits.velocity + 1e-12).all()


def test_the_gradient_is_that_of_the_value(problem):
    from dynid.excitation.criteria import SpectralCriterion

    criterion = SpectralCriterion("condition", 2.0)
    n = (problem.rows + 1) * (int(problem.free.sum()) + problem.robot.n_joints)
    x = np.random.default_rng(1).normal(size=n)
    value, gradient = problem.function(x, criterion)
    W = energy_rows_of(problem.robot, problem.base, *problem.points(x))
    assert value == pytest.approx(criterion.value(W))
    direction = np.random.default_rng(2).normal(size=n)
    step = 1e-6
    ends = [problem.function(x + sign * step * direction, criterion)[0] for sign in (1.0, -1.0)]
    assert gradient @ direction == pytest.approx((ends[0] - ends[1]) / (2.0 * step), rel=1e-4)
