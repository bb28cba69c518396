"""Forces and moments that the joints carry along a motion, by Newton and Euler.

    f_i = Y_i(a_i, v_i) phi_i + sum over children j of X_ij^T f_j

The joint's torque is the part of ``f_i`` along its screw; the rest loads bearings and structure and depends on parameters
that no torque shows. Consistent parameters give sane forces, inconsistent ones the same torque and any forces at all
(Gaz and others 2019, supplement V).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze
from dynid.dynamics.inverse_dynamics import checked_motion
from dynid.dynamics.regressors import body_regressor
from dynid.errors import InputError
from dynid.model.robot import Robot

Motion: TypeAlias = tuple[ArrayLike, ArrayLike, ArrayLike]
"""Position, velocity and acceleration."""


def joint_wrenches(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Wrench ``(samples, joints, 6)`` on every body through its joint, (force, moment) in the body's own frame at its origin."""
    if robot.floating:
        raise InputError(f"robot '{robot.name}' has a floating base, expected a fixed one for the wrenches of its joints")
    if robot.loops:
        raise InputError(
            f"robot '{robot.name}' has closed loops, in which motion and torque do not determine the wrenches of single joints"
        )
    positions, velocities, accelerations = checked_motion(robot, q, v, a)
    tree = robot.tree
    n, count = len(tree.parent), len(positions)
    rotation, shift = np.empty((n, count, 3, 3)), np.empty((n, count, 3))
    twist, acceleration = np.zeros((n, count, 6)), np.zeros((n, count, 6))
    resting = np.zeros((count, 6))
    resting[:, :3] = -robot.gravity
    for i in range(n):
        angle = positions[:, i]
        c, s = np.cos(angle), np.sin(angle)
        one = np.ones_like(angle)
        rotation[i] = np.einsum("ks,kab->sab", np.stack([one, c, s]), tree.rotation[i])
        shift[i] = np.einsum("ks,ka->sa", np.stack([one, c, s, angle]), tree.translation[i])
        parent = int(tree.parent[i])
        before = np.zeros((count, 6)) if parent < 0 else twist[parent]
        above = resting if parent < 0 else acceleration[parent]
        own = velocities[:, i : i + 1] * tree.screw[i]
        twist[i] = _to_body(rotation[i], shift[i], before) + own
        acceleration[i] = (
            _to_body(rotation[i], shift[i], above) + accelerations[:, i : i + 1] * tree.screw[i] + _bracket(twist[i], own)
        )
    phi = robot.parameters.inertials
    wrench = np.einsum("nsrk,nk->nsr", body_regressor(acceleration, twist), phi)
    for i in range(n - 1, -1, -1):
        parent = int(tree.parent[i])
        if parent >= 0:
            force = np.einsum("sab,sb->sa", rotation[i], wrench[i, :, :3])
            moment = np.einsum("sab,sb->sa", rotation[i], wrench[i, :, 3:]) + np.cross(shift[i], force)
            wrench[parent, :, :3] += force
            wrench[parent, :, 3:] += moment
    return freeze(np.swapaxes(wrench, 0, 1))


def _to_body(R: Array, p: Array, motion: Array) -> Array:
    """A twist of the parent's frame seen in the body's: ``(R^T (v + w x p), R^T w)``."""
    linear, angular = motion[:, :3], motion[:, 3:]
    moved = linear + np.cross(angular, p)
    return np.hstack([np.einsum("sba,sb->sa", R, moved), np.einsum("sba,sb->sa", R, angular)])


def _bracket(twist: Array, other: Array) -> Array:
    """``ad_v w = (w_v x w_l + v_v x w_w, w_v x w_w)``."""
    v, w = twist[:, :3], twist[:, 3:]
    return np.hstack([np.cross(w, other[:, :3]) + np.cross(v, other[:, 3:]), np.cross(w, other[:, 3:])])


def largest_joint_wrench(robot: Robot, motions: Iterable[Motion]) -> list[dict[str, Any]]:
    """Largest force, N, and moment, N m, that each joint carries along some motions, or in poses with zeros for the rest."""
    force, moment = np.zeros(robot.n_bodies), np.zeros(robot.n_bodies)
    for motion in motions:
        wrench = joint_wrenches(robot, *motion)
        force = np.maximum(force, np.linalg.norm(wrench[..., :3], axis=-1).max(axis=0))
        moment = np.maximum(moment, np.linalg.norm(wrench[..., 3:], axis=-1).max(axis=0))
    return [
        {"joint": name, "force": float(f), "moment": float(n)}
        for name, f, n in zip(robot.joint_names, force, moment, strict=True)
    ]
