"""The walk down the tree: twists and screws of all bodies, in their own frames."""

import numpy as np

from dynid.dynamics.inverse_dynamics import tree_arrays
from dynid.dynamics.lanes import LANES, kernel
from dynid.dynamics.tree_walk import FALL, RATE, SCREWS, TWIST, walk, workspace
from dynid.model.frames import link_motion
from problems import random_motion, random_tree


@kernel
def walked(x, q, v, a, tree):
    """One block of samples."""
    walk(x, 0, q.shape[0], q, v, a, tree, np.bool_(True), np.bool_(True))


def test_a_workspace_starts_with_gravity_and_the_screw_of_every_joint():
    robot = random_tree(3, 5)
    tree = tree_arrays(robot)
    rows = workspace(tree, robot.gravity, n_more=4).reshape(-1, LANES)
    assert rows.size == tree[10].size + 4 * LANES
    np.testing.assert_array_equal(rows[FALL : FALL + 3, 7], robot.gravity)
    np.testing.assert_array_equal(rows[RATE : RATE + 3, 7], -robot.gravity)
    for i, first in enumerate(tree[8][1:]):
        last = first + SCREWS + 6 * (tree[5][i + 1] - tree[5][i])
        np.testing.assert_array_equal(rows[last - 6 : last, 0], robot.tree.screw[i])


def test_twists_are_those_of_the_frames():
    robot = random_tree(5, 6)
    motion = tuple(np.ascontiguousarray(part) for part in random_motion(robot, 9))
    for part in motion:
        part.flags.writeable = False
    tree = tree_arrays(robot)
    x = workspace(tree, robot.gravity)
    walked(x, *motion, tree)
    rows = x.reshape(-1, LANES)
    for name, first in zip(robot.links, tree[8][1:], strict=True):
        expected = link_motion(robot, *motion, name).twist
        np.testing.assert_allclose(rows[first + TWIST : first + TWIST + 6, :9].T, expected, atol=1e-12)
