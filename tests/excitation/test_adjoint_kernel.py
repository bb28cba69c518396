"""The reverse sweep against central differences of the regressors."""

import numpy as np

from dynid.dynamics.regressors import energy_regressor, torque_regressor
from dynid.excitation.adjoint_kernel import energy_adjoint, torque_adjoint
from dynid.excitation.gradient import tree_tuple
from problems import random_motion, random_tree


def slopes(value, motion, step=1e-6):
    found = []
    for k, part in enumerate(motion):
        slope = np.empty_like(part)
        for at in np.ndindex(part.shape):
            ends = []
            for sign in (step, -step):
                moved = [np.array(one) for one in motion]
                moved[k][at] += sign
                ends.append(value(*moved))
            slope[at] = (ends[0] - ends[1]) / (2.0 * step)
        found.append(slope)
    return found


def test_sweeps_are_derivatives_of_weighted_sums():
    robot = random_tree(4, 4)
    motion = [np.ascontiguousarray(part) for part in random_motion(robot, 3)]
    rng = np.random.default_rng(2)
    G = rng.normal(size=(3, robot.n_dof, 10 * robot.n_bodies))
    h = rng.normal(size=(3, 10 * robot.n_bodies))
    for part in (*motion, G, h):
        part.flags.writeable = False
    by_motion = [np.empty((3, robot.n_dof)) for _ in range(3)]
    torque_adjoint(*motion, robot.gravity, tree_tuple(robot), G, *by_motion)
    expected = slopes(lambda q, v, a: float((G * torque_regressor(robot, q, v, a)).sum()), motion)
    for found, slope in zip(by_motion, expected, strict=True):
        np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())
    by_state = [np.empty((3, robot.n_dof)) for _ in range(2)]
    energy_adjoint(*motion[:2], robot.gravity, tree_tuple(robot), h, *by_state)
    expected = slopes(lambda q, v: float((h * energy_regressor(robot, q, v)).sum()), motion[:2])
    for found, slope in zip(by_state, expected, strict=True):
        np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())
