"""Regressor of a single body: wrench on it from its motion, for a force/torque sensor (Traversaro and others 2016).

f = m b + alpha x h + w x (w x h),    n = h x b + I alpha + w x I w,    b the acceleration of the origin less gravity
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_finite
from dynid.errors import InputError
from dynid.robot.motion import ProperAcceleration, SpatialAcceleration


def body_regressor(acceleration: ArrayLike | SpatialAcceleration | ProperAcceleration, velocity: ArrayLike) -> Array:
    """Wrench regressor ``(..., 6, 10)`` of a body.

    Args:
        acceleration: :class:`~dynid.robot.motion.SpatialAcceleration` or :class:`~dynid.robot.motion.ProperAcceleration` in the
            body's frame. A plain array ``(..., 6)`` (linear, angular) is taken as spatial: the rate of the twist's components, with
            gravity already subtracted, as Pinocchio's ``bodyRegressor`` takes it. It is not what an accelerometer reads.
        velocity: twist ``(..., 6)`` in the body's frame.

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
    spin = _cross_matrix(w)
    Y[..., :3, 0] = b
    Y[..., :3, 1:4] = _cross_matrix(alpha) + spin @ spin
    Y[..., 3:, 1:4] = -_cross_matrix(b)
    Y[..., 3:, 4:] = _inertia_times(alpha) + spin @ _inertia_times(w)
    return Y


def _cross_matrix(x: Array) -> Array:
    """``(..., 3, 3)`` with ``matrix y = x cross y``."""
    matrix = np.zeros((*x.shape, 3))
    matrix[..., 0, 1], matrix[..., 0, 2] = -x[..., 2], x[..., 1]
    matrix[..., 1, 0], matrix[..., 1, 2] = x[..., 2], -x[..., 0]
    matrix[..., 2, 0], matrix[..., 2, 1] = -x[..., 1], x[..., 0]
    return matrix


def _inertia_times(x: Array) -> Array:
    """``(..., 3, 6)`` with ``I x = matrix [Ixx Ixy Iyy Ixz Iyz Izz]``."""
    matrix = np.zeros((*x.shape, 6))
    matrix[..., 0, [0, 1, 3]] = x
    matrix[..., 1, [1, 2, 4]] = x
    matrix[..., 2, [3, 4, 5]] = x
    return matrix
