"""Channels keep the few columns that a joint's rows really have."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.regressors import torque_regressor
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.regression.channels import Channel, full_channel, torque_channels
from problems import planar_2r, random_motion, random_tree

ALL_EFFECTS = (Viscous(), Coulomb(), Offset(), Armature())


@pytest.mark.parametrize(("seed", "floating"), [(60, False), (61, False), (62, True)])
def test_own_columns_give_all_columns_in_fresh_states(seed, floating):
    robot = random_tree(seed, 6, floating, effects=ALL_EFFECTS)
    Y = torque_regressor(robot, *random_motion(robot, 80, seed))
    channels = torque_channels(robot)
    assert tuple(channel.name for channel in channels) == robot.dof_names
    for d, channel in enumerate(channels):
        rows = Y[:, d]
        np.testing.assert_allclose(
            rows[:, channel.columns] @ channel.expansion, rows, rtol=0, atol=1e-10 * np.abs(rows).max()
        )
        own = rows[:, channel.columns]
        assert np.linalg.matrix_rank(own / np.linalg.norm(own, axis=0)) == channel.width
        assert list(channel.columns) == sorted(channel.columns)
        np.testing.assert_array_equal(channel.expansion[:, channel.columns], np.eye(channel.width))


def test_planar_arm():
    robot = planar_2r(effects=(Viscous(), Armature()))
    names = robot.parameters.names
    columns = [[names[c] for c in channel.columns] for channel in torque_channels(robot)]
    # the second joint moves in the plane: no motion tells its rotor from a part of the link that turns with both joints,
    # but a rotor turns with its own joint alone
    assert columns[1] == ["mx2", "mz2", "Iyy2", "fv2", "Ia2"]
    assert set(columns[0]) == {"mx1", "mz1", "Iyy1", "mx2", "mz2", "Iyy2", "fv1"}


def test_found_once_per_robot():
    robot = random_tree(63, 4)
    assert torque_channels(robot) is torque_channels(robot)
    assert torque_channels(robot.with_effects(ALL_EFFECTS))[0].width > torque_channels(robot)[0].width


def test_matching():
    robot, twin, other = random_tree(64, 4), random_tree(64, 4), random_tree(65, 4)
    assert torque_channels(robot) is torque_channels(twin)  # found once for all robots of one structure
    for mine, foreign in zip(torque_channels(robot), torque_channels(other), strict=True):
        assert mine.matches(Channel(mine.name, mine.columns, mine.expansion * (1.0 + 1e-12)))
        assert not mine.matches(foreign)
    assert not torque_channels(robot)[0].matches(torque_channels(robot)[1])


def test_full_channel_keeps_every_column():
    channel = full_channel("energy", 5)
    assert channel.width == 5
    np.testing.assert_array_equal(channel.expansion, np.eye(5))


def test_values_are_those_of_the_expansion():
    robot = random_tree(66, 5, effects=ALL_EFFECTS)
    values = np.random.default_rng(0).normal(size=len(robot.parameters))
    for channel in torque_channels(robot):
        np.testing.assert_allclose(channel.values(values), channel.expansion @ values, rtol=1e-12, atol=1e-12)
    K = np.random.default_rng(1).normal(size=(2, 5))
    mixed = Channel("no choice of columns", np.array([0, 3]), K)
    np.testing.assert_array_equal(mixed.expansion, K)
    np.testing.assert_allclose(mixed.values(values[:5]), K @ values[:5])
