"""Equations of motion in symbols: how short they get, and that they are those of the kernels."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.io.code.equations import SymbolicRobot
from dynid.io.code.expressions import reachable
from problems import demo_arm, planar_2r, random_motion, random_tree


def operations(values) -> int:
    return sum(bool(node.arguments) and node.kind != "negative" for node in reachable(values))


def test_grouping_and_folding_make_it_short():
    """A planar arm needs few operations: out-of-plane terms vanish while the code is built."""
    symbols = SymbolicRobot.of(planar_2r())
    q, v, a = symbols.motion()
    assert operations(symbols.rigid_torque(q, v, a)) < 40
    symbols = SymbolicRobot.of(demo_arm([]))
    q, v, a = symbols.motion()
    torque = symbols.rigid_torque(q, v, a)
    assert operations(torque) < 900
    # all masses but those that slide are counted to the ground
    assert (symbols.inertials[:, 0] == 0.0).all()


@pytest.mark.parametrize("seed", range(3))
def test_known_motions_fold_to_the_torque_of_the_kernels(seed):
    robot = random_tree(seed, floating=bool(seed % 2))
    q, v, a = random_motion(robot, 1)
    symbols = SymbolicRobot.of(robot)
    torque = symbols.rigid_torque(*(symbols.constants(part[0]) for part in (q, v, a)))
    expected = inverse_dynamics(robot, q, v, a, effects=False)[0]
    np.testing.assert_allclose([one.value for one in torque], expected, atol=1e-12 * np.abs(expected).max())
