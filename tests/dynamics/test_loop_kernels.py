"""Newton steps of passive joints: how a sample ends."""

import numpy as np
import pytest

from closed_robots import closed_robot
from dynid.dynamics import loop_kernels as kernel
from dynid.dynamics.closed_chains import closures_of, feasible_positions


@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
def test_samples_near_a_closed_pose_close_and_those_without_steps_stay_open(name):
    robot = closed_robot(name)
    closures = closures_of(robot)
    q = closures.positions(feasible_positions(robot, kernel.LANES + 3, np.random.default_rng(0)))
    moved = q.copy()
    moved[:, closures.passive] += 1e-3
    status, _, size = closures.close(moved.copy(), 20)
    assert (status == kernel.CLOSED).all()
    assert size.max() < 1e-9
    found = moved.copy()
    closures.close(found, 20)
    np.testing.assert_allclose(found, q, atol=1e-9)
    far = q.copy()
    far[:, closures.passive] += 0.3
    status, _, size = closures.close(far, 1)
    assert (status == kernel.OPEN).any()
    assert size.max() > 1e-6
