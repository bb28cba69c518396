"""Rotations, quaternions and poses.

A pose is a 4x4 matrix ``[[R, p], [0, 1]]``: ``x_parent = R x + p``. Angles are rad, lengths m.

    R(roll, pitch, yaw) = Rz(yaw) Ry(pitch) Rx(roll)            the URDF reading of three angles
    R(w, x, y, z)       = 1 + 2 w S(u) + 2 S(u)^2,  u = (x, y, z)    of a quaternion with the scalar first
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError


def make_pose(rotation: ArrayLike | None = None, translation: ArrayLike | None = None) -> Array:
    """``[[R, p], [0, 1]]``; no turn and no shift where a part is left out."""
    pose = np.eye(4)
    if rotation is not None:
        pose[:3, :3] = np.reshape(rotation, (3, 3))
    if translation is not None:
        pose[:3, 3] = translation
    return pose


def inverse_pose(pose: Array) -> Array:
    """``[[R^T, -R^T p], [0, 1]]``."""
    return make_pose(pose[:3, :3].T, -pose[:3, :3].T @ pose[:3, 3])


def pose_from_numbers(numbers: ArrayLike) -> Array:
    """Pose of ``x, y, z`` or ``x, y, z, roll, pitch, yaw``."""
    values = np.asarray(numbers, dtype=np.float64)
    if values.shape not in ((3,), (6,)) or not np.isfinite(values).all():
        raise InputError(
            f"a pose has {values.size} numbers, expected 3 (x, y, z) or 6 (x, y, z, roll, pitch, yaw), m and rad"
        )
    return make_pose(rotation_from_rpy(*values[3:]) if len(values) == 6 else None, values[:3])


def cosine_sine(angle: float) -> tuple[float, float]:
    """Exact at right angles, so that no 6e-17 leaks into expressions of base parameters."""
    cosine, sine = math.cos(angle), math.sin(angle)
    return (0.0 if abs(cosine) < 1e-15 else cosine), (0.0 if abs(sine) < 1e-15 else sine)


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """``Rz(yaw) Ry(pitch) Rx(roll)``: turns about the fixed axes x, y, z in this order; exact at right angles."""
    (cr, sr), (cp, sp), (cy, sy) = (cosine_sine(angle) for angle in (roll, pitch, yaw))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rpy_from_rotation(rotation: Array) -> Array:
    """``roll, pitch, yaw`` of a rotation, accurate for every one.

    Once yaw is chosen, roll and pitch are read off ``Rz(-yaw) R``, which stays well defined where roll and yaw merge.
    """
    R = rotation
    yaw = math.atan2(R[1, 0], R[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    pitch = math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def rotation_from_quaternion(quaternion: ArrayLike) -> Array:
    """Of ``w x y z`` of any length, ``(..., 4)`` to ``(..., 3, 3)``."""
    given = np.asarray(quaternion, dtype=np.float64)
    w, x, y, z = np.moveaxis(given / np.linalg.norm(given, axis=-1, keepdims=True), -1, 0)
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
        [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def quaternion_from_rotation(rotation: Array) -> Array:
    """``w x y z`` with ``w`` not negative, by way of the largest component (Shepperd 1978)."""
    R = rotation
    trace = float(np.trace(R))
    twist = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    largest = int(np.argmax([trace, R[0, 0], R[1, 1], R[2, 2]]))
    if largest == 0:
        found = np.array([1.0 + trace, *twist])
    else:
        i = largest - 1
        j, k = (i + 1) % 3, (i + 2) % 3
        found = np.empty(4)
        found[1 + i] = 1.0 - trace + 2.0 * R[i, i]
        found[1 + j] = R[j, i] + R[i, j]
        found[1 + k] = R[k, i] + R[i, k]
        found[0] = twist[i]
    return np.asarray(found / math.copysign(float(np.linalg.norm(found)), found[0]))


def frame_with_z(axis: Array) -> Array:
    """A rotation whose third column is a unit vector; no turn at all for z itself."""
    if axis[2] == 1.0:
        return np.eye(3)
    x = np.cross(np.eye(3)[np.argmin(np.abs(axis))], axis)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis])
