"""Closures: where their rows lie, and that the Jacobian belongs to the residual."""

import numpy as np

from closed_robots import closed_robot
from dynid.dynamics.closed_chains import closures_of, feasible_positions
from dynid.dynamics.closure_kernels import BODY_ROWS, workspace_rows
from dynid.io.robots.closures import residual_of


def test_rows_of_the_workspace_do_not_overlap():
    rows = workspace_rows(5, 2, 3, 6, 20)
    assert rows[0] == BODY_ROWS * 6
    np.testing.assert_array_equal(np.diff(rows), [5, 14, 48, 6, 20, 4, 2, 6, 6, 9, 10])


def test_gains_keep_the_residual_at_zero():
    """Along ``G`` the closures stay closed to first order."""
    robot = closed_robot("four_bar")
    closures = closures_of(robot)
    q = closures.positions(feasible_positions(robot, 4, np.random.default_rng(1)))
    G = closures.follow(q).G
    step = 1e-5
    for sample in range(len(q)):
        moved = (q[sample] + sign * step * G[sample, :, 0] for sign in (1.0, -1.0))
        forth, back = (residual_of(robot.joints, robot.loops.closures, one) for one in moved)
        assert np.abs(forth - back).max() < 1e-8
