"""Regressors of the inertia matrix and of gravity: ``M(q)_jk = Y_M phi`` and ``g(q) = Y_g phi``.

Stacked over poses they identify a robot from an oracle of ``M`` and ``g`` without any motion (Gaz and others 2019, IV-A).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_finite
from dynid.errors import InputError
from dynid.regression.torque import absent_columns, checked_motion, compiled, torque_regressor, tree_arrays
from dynid.robot.model import Robot


def static_regressor(robot: Robot, q: ArrayLike) -> tuple[Array, Array]:
    """``(Y_M, Y_g)`` of the inertia matrix and the gravity torque over the inertial parameters.

    Args:
        robot: its rigid bodies are used, its effects are not.
        q: poses, ``(poses, joints)``.

    Examples:
        >>> import dynid, numpy as np
        >>> Y_M, Y_g = dynid.static_regressor(dynid.demo_robot(), np.zeros((2, 7)))
        >>> Y_M.shape, Y_g.shape
        ((2, 7, 7, 70), (2, 7, 70))
    """
    from dynid.regression import kernel

    array = np.atleast_2d(np.asarray(q, dtype=np.float64))
    still = np.zeros((len(array), robot.n_dof))
    poses, _, _ = checked_motion(robot, array, still, still)
    if robot.loops:
        return _closed_static(robot.with_effects(()), poses)
    n_inertial = robot.parameters.n_inertial
    inertia = np.zeros((len(poses), robot.n_dof, robot.n_dof, n_inertial))
    weight = np.zeros((len(poses), robot.n_dof, n_inertial))
    compiled(kernel.static_rows)(poses, robot.gravity, tree_arrays(robot), inertia, weight)
    inertia[..., absent_columns(robot)] = 0.0
    weight[..., absent_columns(robot)] = 0.0
    return inertia, weight


def _closed_static(rigid: Robot, poses: Array) -> tuple[Array, Array]:
    """``G^T M G`` and ``G^T g`` of a closed robot: torques at rest, with and without a unit acceleration."""
    still = np.zeros_like(poses)
    weight = torque_regressor(rigid, poses, still, still)
    inertia = np.empty((len(poses), rigid.n_dof, *weight.shape[1:]))
    for k in range(rigid.n_dof):
        unit = still.copy()
        unit[:, k] = 1.0
        inertia[:, :, k] = torque_regressor(rigid, poses, still, unit) - weight
    return inertia, weight


def lower_triangle(n: int) -> tuple[IntArray, IntArray]:
    """Row and column of the entries ``M11 M21 M22 M31 ..`` in their order."""
    rows, columns = np.tril_indices(n)
    return rows, columns


def static_matrix(robot: Robot, q: ArrayLike, inertia: ArrayLike | None, gravity: ArrayLike | None) -> Array:
    """``[W y]`` of poses: lower triangles of ``M`` and gravity torques, for whichever of the two is given.

    Rows whose regressor is zero in every pose (gravity about a vertical axis) carry no information and are left out. Rows go pose by
    pose: the entries of ``M`` first, then those of ``g``.
    """
    if inertia is None and gravity is None:
        raise InputError("a static regression needs inertia matrices, gravity vectors or both, found neither")
    Y_inertia, Y_gravity = static_regressor(robot, q)
    n_poses, n = Y_gravity.shape[:2]
    if n_poses == 0:
        raise InputError("a static regression needs at least one pose, found 0")
    rows, columns = lower_triangle(n)
    blocks, values = [], []
    if inertia is not None:
        M = np.asarray(inertia, dtype=np.float64)
        if M.shape != (n_poses, n, n):
            raise InputError(f"inertia matrices have shape {M.shape}, expected {(n_poses, n, n)}")
        check_finite("inertia matrices", M)
        blocks.append(Y_inertia[:, rows, columns])
        values.append(M[:, rows, columns])
    if gravity is not None:
        g = np.asarray(gravity, dtype=np.float64)
        if g.shape != (n_poses, n):
            raise InputError(f"gravity vectors have shape {g.shape}, expected {(n_poses, n)}")
        check_finite("gravity vectors", g)
        blocks.append(Y_gravity)
        values.append(g)
    W, y = np.concatenate(blocks, axis=1), np.concatenate(values, axis=1)
    size = np.abs(W).max(axis=(0, 2))
    told = size > 1e-12 * size.max()
    return np.concatenate([W[:, told], y[:, told, None]], axis=2).reshape(-1, W.shape[2] + 1)
