"""Motion of the base of a floating robot from what is logged of it: an IMU, pose and twist, pose alone, orientation alone.

All that the rows of a robot need of its base is the angular velocity ``w``, the proper acceleration ``b`` of its origin, which an
accelerometer there reads, and the angular acceleration ``alpha``, each in the axes of the base:

    b = R_i b_i - alpha x p - w x (w x p)        of an IMU at the pose R_i, p in the base
    b = dv/dt + w x v - R^T g                     of twist and orientation
    b = R^T (d2x/dt2 - g)                         of position and orientation
    b = -R^T g                                    of orientation alone, where the base hardly accelerates

Derivatives are those of the filter of the run: what is logged of the base is a recording of its own, whose columns pass the same steps as
the positions of joints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.model.poses import rotation_from_quaternion
from dynid.signals.samples import Samples

UNIT_LENGTH = 0.02
"""Largest difference from one of the length of a logged quaternion."""


@dataclass(frozen=True, eq=False)
class BaseMotion:
    """Motion of the base in its own axes, ``(samples, 3)`` each."""

    angular_velocity: Array
    proper: Array
    angular_acceleration: Array
    velocity: Array | None = None
    """Of its origin; None where it is not known."""
    quaternion: Array | None = None
    """Orientation of the base in the world, x, y, z, w; None where it is not known."""
    source: str = ""
    """What it was found from, in words."""

    @property
    def rotation(self) -> Array | None:
        """Of the base in the world, ``(samples, 3, 3)``."""
        return None if self.quaternion is None else rotation_from_quaternion(self.quaternion[:, [3, 0, 1, 2]])


def continuous_quaternions(where: str, values: Array) -> Array:
    """Quaternions x, y, z, w of unit length without jumps of their sign; refused where they are none."""
    length = np.linalg.norm(values, axis=1)
    worst = int(np.argmax(np.abs(length - 1.0)))
    if abs(length[worst] - 1.0) > UNIT_LENGTH:
        raise InputError(
            f"{where}: the quaternion of the base has length {length[worst]:.4g} in row {worst + 1}, expected 1; its columns are "
            "base_qx, base_qy, base_qz, base_qw"
        )
    unit = values / length[:, None]
    signs = np.sign(np.einsum("ni,ni->n", unit[1:], unit[:-1]))
    turned = np.cumprod(np.concatenate([[1.0], np.where(signs < 0.0, -1.0, 1.0)]))
    return np.asarray(unit * turned[:, None])


def base_motion(
    made: Samples, columns: Mapping[str, slice], gravity: Array, imu_pose: Array | None = None, *, logged: bool = True
) -> BaseMotion:
    """The motion of the base.

    Args:
        made: what is logged of it behind the filter: values as positions, their rates as velocities and accelerations.
        columns: which columns are what, by the names of :mod:`dynid.io.logs.base_columns`.
        gravity: in the world, m/s^2.
        imu_pose: 4x4 pose of the IMU in the base; None where it sits in the base's frame.
        logged: whether logged accelerations of the base are taken as they are, instead of rates of its velocity.
    """

    def value(name: str) -> Array | None:
        return made.position[:, columns[name]] if name in columns else None

    def rate(name: str) -> Array:
        return made.velocity[:, columns[name]]

    pose = np.eye(4) if imu_pose is None else imu_pose
    R_imu, p_imu = pose[:3, :3], pose[:3, 3]
    quaternion, rotation = value("orientation"), None
    if quaternion is not None:
        quaternion = quaternion / np.linalg.norm(quaternion, axis=1)[:, None]
        rotation = rotation_from_quaternion(quaternion[:, [3, 0, 1, 2]])
    if "angular_velocity" in columns:
        w, alpha, turning = made.position[:, columns["angular_velocity"]], rate("angular_velocity"), "its angular velocity"
    elif "imu_angular_velocity" in columns:
        name = "imu_angular_velocity"
        w, alpha, turning = made.position[:, columns[name]] @ R_imu.T, rate(name) @ R_imu.T, "the gyroscope"
    elif quaternion is not None:
        w = body_rate(quaternion, rate("orientation"))
        alpha = body_rate(quaternion, made.acceleration[:, columns["orientation"]])
        turning = "its orientation"
    else:
        raise InputError("the log does not say how the base turns, expected base_wx.., imu_wx.. or base_qx.. base_qw")
    if logged and "angular_acceleration" in columns:
        alpha = made.position[:, columns["angular_acceleration"]]
    v = value("velocity")
    if v is None and rotation is not None and "position" in columns:
        v = np.einsum("nji,nj->ni", rotation, rate("position"))
    up = None if rotation is None else -np.einsum("nji,j->ni", rotation, gravity)
    acceleration = value("acceleration") if logged else None
    if acceleration is not None and v is not None and up is not None:
        return BaseMotion(w, acceleration + np.cross(w, v) + up, alpha, v, quaternion, "the logged acceleration of the base")
    if "imu_acceleration" in columns:
        b = made.position[:, columns["imu_acceleration"]] @ R_imu.T
        b = b - np.cross(alpha, p_imu) - np.cross(w, np.cross(w, p_imu))
        return BaseMotion(w, b, alpha, v, quaternion, f"the accelerometer and {turning}")
    if up is None:
        raise InputError(
            "the log has neither an accelerometer (imu_ax..) nor the orientation of the base (base_qx.. base_qw), expected one of them"
        )
    if "velocity" in columns:
        assert v is not None
        return BaseMotion(w, rate("velocity") + np.cross(w, v) + up, alpha, v, quaternion, "the twist of the base")
    if "position" in columns:
        assert rotation is not None
        second = np.einsum("nji,nj->ni", rotation, made.acceleration[:, columns["position"]])
        return BaseMotion(w, second + up, alpha, v, quaternion, "the pose of the base")
    return BaseMotion(w, up, alpha, v, quaternion, "the orientation of the base, as if it did not accelerate")


def body_rate(quaternion: Array, rate: Array) -> Array:
    """``2 vec(conj(q) dq)``: of the first derivative the angular velocity in the axes of the body, of the second its rate."""
    v, w = quaternion[:, :3], quaternion[:, 3:]
    return np.asarray(2.0 * (w * rate[:, :3] - rate[:, 3:] * v - np.cross(v, rate[:, :3])))
