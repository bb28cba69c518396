"""Regressors of the inertia matrix and of gravity."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dynid.dynamics.regressors import lower_triangle, static_matrix, static_regressor, torque_regressor
from dynid.errors import InputError
from dynid.regression.base import reduce_to_base
from messages import facts
from problems import planar_2r, random_motion, random_tree


def test_inertia_matrix_and_gravity_are_pinocchios(peer):
    q = np.array([state[0] for state in peer.states(12, seed=3)])
    Y_inertia, Y_gravity = static_regressor(peer.robot, q)
    phi = peer.robot.parameters.values
    data = peer.model.createData()
    for i, position in enumerate(q):
        upper = np.triu(pin.crba(peer.model, data, peer.position(position)))
        M = (upper + np.triu(upper, 1).T)[np.ix_(peer.dofs, peer.dofs)]
        g = pin.computeGeneralizedGravity(peer.model, data, peer.position(position))[peer.dofs]
        assert np.abs(Y_inertia[i] @ phi - M).max() <= 1e-10 * np.abs(M).max()
        assert np.abs(Y_gravity[i] @ phi - g).max() <= 1e-10 * np.abs(g).max()


def test_every_column_is_the_torque_regressors(peer):
    """``M`` column by column is torque without speed and gravity, ``g`` is torque at rest."""
    q = np.array([state[0] for state in peer.states(5, seed=4)])
    robot = peer.robot
    Y_inertia, Y_gravity = static_regressor(robot, q)
    still = np.zeros((len(q), robot.n_dof))
    at_rest = torque_regressor(robot, q, still, still)
    np.testing.assert_allclose(Y_gravity, at_rest, rtol=0, atol=1e-12 * np.abs(at_rest).max())
    weightless = robot.with_gravity((0.0, 0.0, 0.0))
    for d in range(robot.n_dof):
        push = still.copy()
        push[:, d] = 1.0
        Y = torque_regressor(weightless, q, still, push)
        np.testing.assert_allclose(Y_inertia[:, :, d], Y, rtol=0, atol=1e-12 * np.abs(Y).max())
    np.testing.assert_array_equal(Y_inertia, Y_inertia.transpose(0, 2, 1, 3))


def test_order_of_the_lower_triangle():
    rows, columns = lower_triangle(3)
    assert [f"M{i + 1}{j + 1}" for i, j in zip(rows, columns, strict=True)] == [
        "M11",
        "M21",
        "M22",
        "M31",
        "M32",
        "M33",
    ]


def test_stack_goes_pose_by_pose_and_leaves_silent_rows_out():
    robot = planar_2r().with_gravity((0.0, -9.81, 0.0))  # gravity along the axes: both gravity rows are silent
    q, _, _ = random_motion(robot, 7)
    Y_inertia, Y_gravity = static_regressor(robot, q)
    M, g = Y_inertia @ robot.parameters.values, Y_gravity @ robot.parameters.values
    stack = static_matrix(robot, q, M, g)
    assert stack.shape == (7 * 3, 21)
    np.testing.assert_array_equal(stack[3:6, -1], M[1][[0, 1, 1], [0, 0, 1]])

    upright = planar_2r()
    Y_inertia, Y_gravity = static_regressor(upright, q)
    M, g = Y_inertia @ upright.parameters.values, Y_gravity @ upright.parameters.values
    stack = static_matrix(upright, q, M, g)
    assert stack.shape == (7 * 5, 21)
    np.testing.assert_array_equal(stack[5:10, -1], [M[1, 0, 0], M[1, 1, 0], M[1, 1, 1], g[1, 0], g[1, 1]])
    np.testing.assert_allclose(stack[:, :-1] @ upright.parameters.values, stack[:, -1], atol=1e-13)
    assert static_matrix(upright, q, M, None).shape == (7 * 3, 21)
    assert static_matrix(upright, q, None, g).shape == (7 * 2, 21)


def test_poses_show_the_same_base_parameters_as_motion():
    robot = random_tree(16, 5)
    base = reduce_to_base(robot)
    q, _, _ = random_motion(robot, 60)
    Y_inertia, Y_gravity = static_regressor(robot, q)
    phi = robot.parameters.values
    stack = static_matrix(robot, q, Y_inertia @ phi, Y_gravity @ phi)
    W = stack[:, :-1]
    np.testing.assert_allclose(W, W @ base.lift @ base.K, rtol=0, atol=1e-9 * np.abs(W).max())
    beta, _, rank, _ = np.linalg.lstsq(W @ base.lift, stack[:, -1])
    assert rank == base.n_base
    np.testing.assert_allclose(beta, base.base_values(phi), rtol=0, atol=1e-9)


def test_bad_oracles_are_refused():
    robot = planar_2r()
    q = np.zeros((4, 2))
    M, g = np.tile(np.eye(2), (4, 1, 1)), np.zeros((4, 2))
    with pytest.raises(InputError, match="found neither"):
        static_matrix(robot, q, None, None)
    with pytest.raises(InputError, match=facts("(3, 2, 2)", "(4, 2, 2)", "inertia")):
        static_matrix(robot, q, M[:3], g)
    with pytest.raises(InputError, match=facts("(4, 3)", "(4, 2)", "gravity")):
        static_matrix(robot, q, M, np.zeros((4, 3)))
    with pytest.raises(InputError, match=facts("8", "NaN", "gravity")):
        static_matrix(robot, q, M, np.full((4, 2), np.nan))
    with pytest.raises(InputError, match="at least one pose, found 0"):
        static_matrix(robot, q[:0], M[:0], g[:0])
