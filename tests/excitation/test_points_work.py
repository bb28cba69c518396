"""Work of effects between points: integrals by SciPy along the motion, derivatives by differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from dynid.excitation.design_problem import with_smooth_sign
from dynid.excitation.limits import limits_of
from dynid.excitation.points_work import PointsWork
from dynid.excitation.trajectories import PolynomialTrajectory
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from problems import planar_2r


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
