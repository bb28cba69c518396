"""Regressors: what is linear in the parameters of a robot, for all samples at once.

    torque      tau = Y(q, v, a) phi                     columns of ``robot.parameters``: ten per link, then the effects
    energy      T + U = h(q, v) phi                      differences are the work of the torques (Gautier and Khalil 1992), no acceleration
    momentum    Y phi = d/dt (A(q, v) phi) - B(q, v) phi ``A phi = dL/dv``, ``B phi = dL/dq`` of ``L = T - U``, no acceleration
    static      M(q)_jk = Y_M phi,  g(q) = Y_g phi       poses without any motion (Gaz and others 2019, IV-A)
    one body    f = m b + alpha x h + w x (w x h),  n = h x b + I alpha + w x I w     on a force/torque sensor (Traversaro and others 2016)

Rows of a joint see only the links it carries. A closed robot has ``Y = G^T Y_tree``, ``A = G^T A_tree`` and
``B = G^T B_tree + (dG/dt)^T A_tree``; ``b`` is the acceleration of a body's origin less gravity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_finite, check_shape, freeze, frozen_view
from dynid.dynamics.closed_chains import gain_rate, tree_motion
from dynid.dynamics.inverse_dynamics import (
    absent_columns,
    checked_motion,
    effect_signals,
    fill_projected_rows,
    fill_torque_rows,
    passive_columns,
    support_pairs,
    tree_arrays,
)
from dynid.errors import InputError
from dynid.model.frames import ProperAcceleration, SpatialAcceleration
from dynid.model.inertia import skew
from dynid.model.robot import Robot

_SWEEP_NUMBERS = 250_000
"""Numbers per sweep over a whole regressor: two megabytes stay in the cache from the first column to the last."""


def torque_regressor(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    load: ArrayLike | None = None,
    *,
    travel: Array | None = None,
    reuse: Array | None = None,
) -> Array:
    """``Y`` of every sample, ``(samples, torques, parameters)``, columns named by ``robot.parameters.names``.

    For a closed robot ``q``, ``v``, ``a`` and the torques are those of its actuated joints, and ``Y = G^T Y_tree``.

    Args:
        robot: the robot, with its effects.
        q: positions, ``(samples, joints)``.
        v: velocities.
        a: accelerations.
        load: transmitted torque, for effects that depend on it.
        travel: signed distance since the last reversal and ways since those before, ``(samples, joints, reversals)``, for effects that
            remember them; without it joints count as sliding.
        reuse: an array that an earlier call for the same robot and number of samples returned: it is filled again, and its
            structural zeros, most of it for a robot with many branches, are left as they are.

    Returns:
        ``Y`` with ``tau = Y phi``, ``(samples, torques, parameters)``.

    Examples:
        >>> import dynid, numpy as np
        >>> robot, q = dynid.demo_robot(), np.zeros((5, 7))
        >>> dynid.torque_regressor(robot, q, q, q).shape == (5, 7, len(robot.parameters))
        True
    """
    from dynid.compiled import announced
    from dynid.dynamics import kernels as kernel
    from dynid.dynamics.lanes import LANES

    q, v, a = checked_motion(robot, q, v, a)
    shape = (len(q), robot.n_dof, len(robot.parameters))
    Y = np.zeros(shape) if reuse is None else _reusable(reuse, shape)
    targets, step = _dense_targets(robot), shape[1] * shape[2]
    tree = tree_motion(robot, q, v, a) if robot.loops else None
    signals = frozen_view(effect_signals(robot, q, v, a, load, tree, travel=travel)) if robot.effects else None
    acts, effect = (freeze(index, np.int64) for index in np.nonzero(robot.effect_incidence))
    places = freeze(acts * shape[2] + robot.parameters.n_inertial + effect, np.int64)
    coefficients = freeze(robot.effect_incidence[acts, effect])
    sweep = LANES * max(1, _SWEEP_NUMBERS // (LANES * step))
    for start in range(0, len(q), sweep):
        part = slice(start, start + sweep)
        flat = Y[part].reshape(-1)
        if tree is None:
            fill_torque_rows(robot, q[part], v[part], a[part], targets, step, flat)
        else:
            fill_projected_rows(robot, tree, part, targets, step, flat)
        if signals is not None:
            announced(kernel.signal_rows)(signals[part], effect, coefficients, places, step, flat)
    if tree is not None and signals is not None and robot.loops.rubbing:
        Y[:, :, robot.parameters.n_inertial :] += passive_columns(robot, tree, signals)
    return Y


def _dense_targets(robot: Robot) -> IntArray:
    """Places of all coefficients in one sample's ``(torques, parameters)``."""
    torque, body = support_pairs(robot)
    places = (torque * len(robot.parameters) + 10 * body)[:, None] + np.arange(10)
    absent = np.isin(10 * body[:, None] + np.arange(10), absent_columns(robot))
    return freeze(np.where(absent, -1, places), np.int64)


def _reusable(array: Array, shape: tuple[int, ...]) -> Array:
    check_shape("array to reuse", array, shape)
    if array.dtype != np.float64 or not (array.flags.c_contiguous and array.flags.writeable):
        raise InputError(
            f"array to reuse is {array.dtype} with strides {array.strides}, expected a C-ordered float64 array to write to"
        )
    return array


def kinetic_and_potential(robot: Robot, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """Regressors of kinetic and potential energy, ``(samples, inertial parameters)`` each."""
    from dynid.dynamics import kernels as kernel

    q, v, _ = checked_motion(robot, q, v, v)
    if robot.loops:
        tree = tree_motion(robot, q, v, np.zeros_like(v))
        q, v = frozen_view(tree.position), frozen_view(tree.velocity)
    kinetic = np.empty((len(q), robot.parameters.n_inertial))
    potential = np.empty_like(kinetic)
    kernel.energy_rows(q, v, robot.gravity, tree_arrays(robot), kinetic, potential)
    absent = absent_columns(robot)
    kinetic[:, absent] = potential[:, absent] = 0.0
    return kinetic, potential


def energy_regressor(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """``h(q, v)`` of the total energy ``h phi``, ``(samples, inertial parameters)``.

    Args:
        robot: its rigid bodies are used, its effects are not.
        q: positions, ``(samples, joints)``.
        v: velocities, ``(samples, joints)``.

    Returns:
        ``h`` ``(samples, inertial parameters)``, ``h phi`` in J.

    Examples:
        >>> import dynid, numpy as np
        >>> dynid.energy_regressor(dynid.demo_robot(), np.zeros((3, 7)), np.ones((3, 7))).shape
        (3, 70)
    """
    kinetic, potential = kinetic_and_potential(robot, q, v)
    return kinetic + potential


def momentum_regressor(robot: Robot, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """``A`` and ``B`` of ``tau = d(A phi)/dt + B phi``, ``(samples, torques, inertial parameters)`` each.

    Args:
        robot: its rigid bodies are used, its effects are not.
        q: positions, ``(samples, joints)``.
        v: velocities, ``(samples, joints)``.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.dynamics.regressors import momentum_regressor
        >>> A, B = momentum_regressor(dynid.demo_robot(), np.zeros((3, 7)), np.ones((3, 7)))
        >>> A.shape, B.shape
        ((3, 7, 70), (3, 7, 70))
    """
    from dynid.compiled import announced
    from dynid.dynamics import kernels as kernel
    from dynid.dynamics.tree_walk import workspace

    if robot.floating:
        raise InputError(f"robot '{robot.name}' has a floating base, whose velocity is no derivative of its position")
    q, v, _ = checked_motion(robot, q, v, v)
    tree = tree_motion(robot, q, v, np.zeros_like(v)) if robot.loops else None
    whole = (q, v) if tree is None else (frozen_view(tree.position), frozen_view(tree.velocity))
    momentum = np.zeros((len(q), whole[1].shape[1], robot.parameters.n_inertial))
    drift = np.zeros_like(momentum)
    arrays = tree_arrays(robot)
    x = workspace(arrays, robot.gravity, 6 * len(robot.tree.support))
    announced(kernel.momentum_rows)(*whole, arrays, x, momentum, drift)
    for rows in (momentum, drift):
        rows[:, :, absent_columns(robot)] = 0.0
    if tree is None:
        return momentum, drift
    # d/dt (G^T A) - (G^T B + dG/dt^T A) = G^T (dA/dt - B)
    across, rate = tree.G.swapaxes(1, 2), gain_rate(robot, tree.position, v).swapaxes(1, 2)
    return np.matmul(across, momentum), np.matmul(across, drift) + np.matmul(rate, momentum)


def static_regressor(robot: Robot, q: ArrayLike) -> tuple[Array, Array]:
    """``(Y_M, Y_g)`` of the inertia matrix and the gravity torque over the inertial parameters.

    Args:
        robot: its rigid bodies are used, its effects are not.
        q: poses, ``(poses, joints)``.

    Returns:
        ``Y_M`` ``(poses, joints * (joints + 1) / 2, inertial)`` of the lower triangle of the inertia matrix, row by row, and
            ``Y_g`` ``(poses, joints, inertial)`` of the gravity torque.

    Examples:
        >>> import dynid, numpy as np
        >>> Y_M, Y_g = dynid.static_regressor(dynid.demo_robot(), np.zeros((2, 7)))
        >>> Y_M.shape, Y_g.shape
        ((2, 7, 7, 70), (2, 7, 70))
    """
    from dynid.compiled import announced
    from dynid.dynamics import kernels as kernel
    from dynid.dynamics.tree_walk import workspace

    array = np.atleast_2d(np.asarray(q, dtype=np.float64))
    still = np.zeros((len(array), robot.n_dof))
    poses, _, _ = checked_motion(robot, array, still, still)
    if robot.loops:
        return _closed_static(robot.with_effects(()), poses)
    n_inertial = robot.parameters.n_inertial
    inertia = np.zeros((len(poses), robot.n_dof, robot.n_dof, n_inertial))
    weight = np.zeros((len(poses), robot.n_dof, n_inertial))
    tree = tree_arrays(robot)
    announced(kernel.static_rows)(poses, tree, workspace(tree, robot.gravity), inertia, weight)
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


def body_regressor(acceleration: ArrayLike | SpatialAcceleration | ProperAcceleration, velocity: ArrayLike) -> Array:
    """Wrench regressor ``(..., 6, 10)`` of a body.

    Args:
        acceleration: :class:`~dynid.model.frames.SpatialAcceleration` or :class:`~dynid.model.frames.ProperAcceleration` in the
            body's frame. A plain array ``(..., 6)`` (linear, angular) is taken as spatial: the rate of the twist's components, with
            gravity already subtracted, as Pinocchio's ``bodyRegressor`` takes it. It is not what an accelerometer reads.
        velocity: twist ``(..., 6)`` in the body's frame.

    Returns:
        ``(..., 6, 10)``: force above moment, columns ``m mx my mz Ixx Ixy Iyy Ixz Iyz Izz``.

    Examples:
        >>> import dynid
        >>> Y = dynid.body_regressor([0, 0, 9.81, 0, 0, 0], [0] * 6)
        >>> (Y @ [2.0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).round(2).tolist()
        [0.0, 0.0, 19.62, 0.0, 0.0, 0.0]
    """
    if isinstance(acceleration, (SpatialAcceleration, ProperAcceleration)):
        a = np.concatenate([acceleration.linear, acceleration.angular], axis=-1)
    else:
        a = np.asarray(acceleration, dtype=np.float64)
    v = np.asarray(velocity, dtype=np.float64)
    for name, array in (("acceleration", a), ("velocity", v)):
        if array.ndim == 0 or array.shape[-1] != 6:
            raise InputError(f"{name} has shape {array.shape}, expected (..., 6)")
        check_finite(name, array)
    try:
        a, v = np.broadcast_arrays(a, v)
    except ValueError:
        raise InputError(f"acceleration has shape {a.shape}, velocity has shape {v.shape}") from None
    w, alpha = v[..., 3:], a[..., 3:]
    if isinstance(acceleration, ProperAcceleration):
        return proper_body_regressor(a[..., :3], w, alpha)
    return proper_body_regressor(a[..., :3] + np.cross(w, v[..., :3]), w, alpha)


def proper_body_regressor(proper: ArrayLike, angular_velocity: ArrayLike, angular_acceleration: ArrayLike) -> Array:
    """The same from what sensors show, ``(..., 3)`` each in the body's own frame.

    ``proper`` is the proper acceleration of the origin, ``b = a - g``, which an accelerometer there reads; it is not the
    linear part of the spatial acceleration, which lacks ``w x v``.
    """
    b, w, alpha = (np.asarray(x, dtype=np.float64) for x in (proper, angular_velocity, angular_acceleration))
    Y = np.zeros((*b.shape[:-1], 6, 10))
    spin = skew(w)
    Y[..., :3, 0] = b
    Y[..., :3, 1:4] = skew(alpha) + spin @ spin
    Y[..., 3:, 1:4] = -skew(b)
    Y[..., 3:, 4:] = _inertia_times(alpha) + spin @ _inertia_times(w)
    return Y


def _inertia_times(x: Array) -> Array:
    """``(..., 3, 6)`` with ``I x = matrix [Ixx Ixy Iyy Ixz Iyz Izz]``."""
    matrix = np.zeros((*x.shape, 6))
    matrix[..., 0, [0, 1, 3]] = x
    matrix[..., 1, [1, 2, 4]] = x
    matrix[..., 2, [3, 4, 5]] = x
    return matrix
