"""The compiled loops: one pass over the samples, one pass down the tree per sample, no allocation inside.

For body ``i`` and every velocity index ``d`` that moves it, ``motion[i, d] = (l, s)`` is the screw of ``d`` in the frame of
``i``. With the body's angular velocity ``w``, angular acceleration ``alpha`` and the acceleration ``b`` of its origin (gravity
included), Newton and Euler give the force and the moment about that origin

    f = m b + alpha x h + w x (w x h),    n = h x b + I alpha + w x I w,    h = m c,

and the torque of ``d`` is ``l . f + s . n``: linear in the ten parameters of ``i``. All kernels share this walk.

All are serial and release the GIL; parallelism over chunks of samples is the caller's. Everything compiled lives in this one
file because Numba's cache notices changes in the file of the outermost function only. Inner functions take arrays with
indices instead of slices: a slice costs a reference count.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

_compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})


@_compiled
def _joint_pose(i, q, sample, floating, rotation, translation, R, p) -> None:  # type: ignore[no-untyped-def]
    """Pose of body ``i`` in its parent into ``R`` (9) and ``p`` (3)."""
    if floating and i == 0:
        x, y, z, w = q[sample, 3], q[sample, 4], q[sample, 5], q[sample, 6]
        scale = 2.0 / (x * x + y * y + z * z + w * w)
        r00, r01, r02 = 1.0 - scale * (y * y + z * z), scale * (x * y - z * w), scale * (x * z + y * w)
        r10, r11, r12 = scale * (x * y + z * w), 1.0 - scale * (x * x + z * z), scale * (y * z - x * w)
        r20, r21, r22 = scale * (x * z - y * w), scale * (y * z + x * w), 1.0 - scale * (x * x + y * y)
        for k in range(3):  # the placement first, then the free motion
            p0, p1, p2 = rotation[0, 0, 3 * k], rotation[0, 0, 3 * k + 1], rotation[0, 0, 3 * k + 2]
            R[3 * k] = p0 * r00 + p1 * r10 + p2 * r20
            R[3 * k + 1] = p0 * r01 + p1 * r11 + p2 * r21
            R[3 * k + 2] = p0 * r02 + p1 * r12 + p2 * r22
            p[k] = translation[0, 0, k] + p0 * q[sample, 0] + p1 * q[sample, 1] + p2 * q[sample, 2]
        return
    angle = q[sample, i + 6] if floating else q[sample, i]
    c, s = math.cos(angle), math.sin(angle)
    for k in range(9):
        R[k] = rotation[i, 0, k] + c * rotation[i, 1, k] + s * rotation[i, 2, k]
    for k in range(3):
        p[k] = translation[i, 0, k] + c * translation[i, 1, k] + s * translation[i, 2, k] + angle * translation[i, 3, k]


@_compiled
def _into_child(motion, up, i, slot, R, p) -> None:  # type: ignore[no-untyped-def]
    """Motion vector ``slot`` of body ``up`` in the frame of its child ``i``: ``(R^T (l + s x p), R^T s)``."""
    s0, s1, s2 = motion[up, slot, 3], motion[up, slot, 4], motion[up, slot, 5]
    l0 = motion[up, slot, 0] + s1 * p[2] - s2 * p[1]
    l1 = motion[up, slot, 1] + s2 * p[0] - s0 * p[2]
    l2 = motion[up, slot, 2] + s0 * p[1] - s1 * p[0]
    motion[i, slot, 0] = R[0] * l0 + R[3] * l1 + R[6] * l2
    motion[i, slot, 1] = R[1] * l0 + R[4] * l1 + R[7] * l2
    motion[i, slot, 2] = R[2] * l0 + R[5] * l1 + R[8] * l2
    motion[i, slot, 3] = R[0] * s0 + R[3] * s1 + R[6] * s2
    motion[i, slot, 4] = R[1] * s0 + R[4] * s1 + R[7] * s2
    motion[i, slot, 5] = R[2] * s0 + R[5] * s1 + R[8] * s2


@_compiled
def _cross(motion, i, left, right, scale, into) -> None:  # type: ignore[no-untyped-def]
    """Add ``scale`` times the spatial cross product of two motion vectors of body ``i`` to a third."""
    v0, v1, v2 = motion[i, left, 0], motion[i, left, 1], motion[i, left, 2]
    w0, w1, w2 = motion[i, left, 3], motion[i, left, 4], motion[i, left, 5]
    l0, l1, l2 = scale * motion[i, right, 0], scale * motion[i, right, 1], scale * motion[i, right, 2]
    s0, s1, s2 = scale * motion[i, right, 3], scale * motion[i, right, 4], scale * motion[i, right, 5]
    motion[i, into, 0] += w1 * l2 - w2 * l1 + v1 * s2 - v2 * s1
    motion[i, into, 1] += w2 * l0 - w0 * l2 + v2 * s0 - v0 * s2
    motion[i, into, 2] += w0 * l1 - w1 * l0 + v0 * s1 - v1 * s0
    motion[i, into, 3] += w1 * s2 - w2 * s1
    motion[i, into, 4] += w2 * s0 - w0 * s2
    motion[i, into, 5] += w0 * s1 - w1 * s0


@_compiled
def _walk(sample, q, v, a, moving, gravity, tree, motion, R, p) -> None:  # type: ignore[no-untyped-def]
    """Motion vectors of every body for one sample, each in the body's own frame.

    Slots ``0 .. n_dof-1`` of ``motion[i]`` hold the screws that move body ``i``, then come gravity (as a linear vector),
    the twist and the spatial acceleration, which starts against gravity at the root.
    """
    parent, dof_start, dof_count, rotation, translation, screw, support_start, support, floating = tree
    n_dof = screw.shape[0]
    fall, twist, rate = n_dof, n_dof + 1, n_dof + 2
    for i in range(parent.shape[0]):
        _joint_pose(i, q, sample, floating, rotation, translation, R, p)
        up = parent[i]
        first, last = dof_start[i], dof_start[i] + dof_count[i]
        if up >= 0:
            for k in range(support_start[up], support_start[up + 1]):
                _into_child(motion, up, i, support[k], R, p)
            _into_child(motion, up, i, fall, R, p)
        else:
            motion[i, fall, 0] = R[0] * gravity[0] + R[3] * gravity[1] + R[6] * gravity[2]
            motion[i, fall, 1] = R[1] * gravity[0] + R[4] * gravity[1] + R[7] * gravity[2]
            motion[i, fall, 2] = R[2] * gravity[0] + R[5] * gravity[1] + R[8] * gravity[2]
        for d in range(first, last):
            for k in range(6):
                motion[i, d, k] = screw[d, k]
        if not moving:
            continue
        if up >= 0:
            _into_child(motion, up, i, twist, R, p)
            _into_child(motion, up, i, rate, R, p)
        else:
            for k in range(6):
                motion[i, twist, k] = 0.0
                motion[i, rate, k] = -motion[i, fall, k]
        for d in range(first, last):
            for k in range(6):
                motion[i, twist, k] += screw[d, k] * v[sample, d]
                motion[i, rate, k] += screw[d, k] * a[sample, d]
        if last == first + 1:  # a floating root would add the cross product of its twist with itself, zero
            _cross(motion, i, twist, first, v[sample, first], rate)


@_compiled
def _body_motion(motion, i, twist, rate):  # type: ignore[no-untyped-def]
    """Angular velocity, angular acceleration and acceleration of the origin, ``a + w x v``, of body ``i``."""
    v0, v1, v2 = motion[i, twist, 0], motion[i, twist, 1], motion[i, twist, 2]
    w0, w1, w2 = motion[i, twist, 3], motion[i, twist, 4], motion[i, twist, 5]
    b0 = motion[i, rate, 0] + w1 * v2 - w2 * v1
    b1 = motion[i, rate, 1] + w2 * v0 - w0 * v2
    b2 = motion[i, rate, 2] + w0 * v1 - w1 * v0
    return w0, w1, w2, motion[i, rate, 3], motion[i, rate, 4], motion[i, rate, 5], b0, b1, b2


@_compiled
def _newton_euler_row(motion, i, d, body):  # type: ignore[no-untyped-def]
    """Coefficients of the ten parameters of body ``i`` in ``l . f + s . n`` for the screw of ``d``."""
    w0, w1, w2, a0, a1, a2, b0, b1, b2 = body
    l0, l1, l2 = motion[i, d, 0], motion[i, d, 1], motion[i, d, 2]
    s0, s1, s2 = motion[i, d, 3], motion[i, d, 4], motion[i, d, 5]
    lw = l0 * w0 + l1 * w1 + l2 * w2
    ww = w0 * w0 + w1 * w1 + w2 * w2
    u0, u1, u2 = s1 * w2 - s2 * w1, s2 * w0 - s0 * w2, s0 * w1 - s1 * w0
    return (
        l0 * b0 + l1 * b1 + l2 * b2,
        l1 * a2 - l2 * a1 + lw * w0 - ww * l0 + b1 * s2 - b2 * s1,
        l2 * a0 - l0 * a2 + lw * w1 - ww * l1 + b2 * s0 - b0 * s2,
        l0 * a1 - l1 * a0 + lw * w2 - ww * l2 + b0 * s1 - b1 * s0,
        s0 * a0 + u0 * w0,
        s0 * a1 + s1 * a0 + u0 * w1 + u1 * w0,
        s1 * a1 + u1 * w1,
        s0 * a2 + s2 * a0 + u0 * w2 + u2 * w0,
        s1 * a2 + s2 * a1 + u1 * w2 + u2 * w1,
        s2 * a2 + u2 * w2,
    )


@_compiled
def _inertia_row(motion, i, left, right, row) -> None:  # type: ignore[no-untyped-def]
    """Coefficients of the ten parameters of body ``i`` in ``x . (I y)``, ``I`` the spatial inertia, ``x, y`` motion vectors."""
    l0, l1, l2 = motion[i, left, 0], motion[i, left, 1], motion[i, left, 2]
    s0, s1, s2 = motion[i, left, 3], motion[i, left, 4], motion[i, left, 5]
    v0, v1, v2 = motion[i, right, 0], motion[i, right, 1], motion[i, right, 2]
    w0, w1, w2 = motion[i, right, 3], motion[i, right, 4], motion[i, right, 5]
    row[0] = l0 * v0 + l1 * v1 + l2 * v2
    row[1] = l1 * w2 - l2 * w1 + v1 * s2 - v2 * s1
    row[2] = l2 * w0 - l0 * w2 + v2 * s0 - v0 * s2
    row[3] = l0 * w1 - l1 * w0 + v0 * s1 - v1 * s0
    row[4] = s0 * w0
    row[5] = s0 * w1 + s1 * w0
    row[6] = s1 * w1
    row[7] = s0 * w2 + s2 * w0
    row[8] = s1 * w2 + s2 * w1
    row[9] = s2 * w2


@_compiled
def torque_rows(q, v, a, gravity, tree, target, out) -> None:  # type: ignore[no-untyped-def]
    """Torque regressor of a chunk: coefficient of parameter ``c`` in torque ``d`` into ``out[d, target[d, c], sample]``.

    ``target`` is -1 for coefficients nobody asked for.
    """
    n_bodies, n_dof = tree[0].shape[0], tree[5].shape[0]
    support_start, support = tree[6], tree[7]
    motion, R, p = np.zeros((n_bodies, n_dof + 3, 6)), np.zeros(9), np.zeros(3)
    for sample in range(q.shape[0]):
        _walk(sample, q, v, a, True, gravity, tree, motion, R, p)
        for i in range(n_bodies):
            body = _body_motion(motion, i, n_dof + 1, n_dof + 2)
            for k in range(support_start[i], support_start[i + 1]):
                d = support[k]
                row = _newton_euler_row(motion, i, d, body)
                for c in range(10):
                    column = target[d, 10 * i + c]
                    if column >= 0:
                        out[d, column, sample] = row[c]


@_compiled
def inverse_dynamics_rows(q, v, a, gravity, tree, phi, out) -> None:  # type: ignore[no-untyped-def]
    """Rigid-body torque ``out[sample, d]`` of a chunk for one parameter set ``phi`` of shape (bodies, 10)."""
    n_bodies, n_dof = tree[0].shape[0], tree[5].shape[0]
    support_start, support = tree[6], tree[7]
    motion, R, p = np.zeros((n_bodies, n_dof + 3, 6)), np.zeros(9), np.zeros(3)
    for sample in range(q.shape[0]):
        _walk(sample, q, v, a, True, gravity, tree, motion, R, p)
        for d in range(n_dof):
            out[sample, d] = 0.0
        for i in range(n_bodies):
            body = _body_motion(motion, i, n_dof + 1, n_dof + 2)
            for k in range(support_start[i], support_start[i + 1]):
                d = support[k]
                row = _newton_euler_row(motion, i, d, body)
                total = 0.0
                for c in range(10):
                    total += row[c] * phi[i, c]
                out[sample, d] += total


@_compiled
def momentum_rows(q, v, gravity, tree, momentum, drift) -> None:  # type: ignore[no-untyped-def]
    """``A`` and ``B`` of ``Y phi = d/dt (A phi) - B phi``: generalised momentum and ``dL/dq``, ``[sample, d, parameter]``.

    The change of body ``i``'s twist with joint ``d`` at fixed velocities is ``V_d x S_d`` carried into frame ``i``, so
    ``B = (V_d x S_d) . I_i V_i + S_d . I_i g``.
    """
    n_bodies, n_dof = tree[0].shape[0], tree[5].shape[0]
    parent, dof_start, dof_count, support_start, support = tree[0], tree[1], tree[2], tree[6], tree[7]
    fall, twist, change = n_dof, n_dof + 1, n_dof + 3
    motion, R, p = np.zeros((n_bodies, 2 * n_dof + 3, 6)), np.zeros(9), np.zeros(3)
    row, weight = np.zeros(10), np.zeros(10)
    for sample in range(q.shape[0]):
        _walk(sample, q, v, v, True, gravity, tree, motion, R, p)
        for i in range(n_bodies):
            _joint_pose(i, q, sample, tree[8], tree[3], tree[4], R, p)
            up = parent[i]
            if up >= 0:
                for k in range(support_start[up], support_start[up + 1]):
                    _into_child(motion, up, i, change + support[k], R, p)
            for d in range(dof_start[i], dof_start[i] + dof_count[i]):
                for k in range(6):
                    motion[i, change + d, k] = 0.0
                _cross(motion, i, twist, d, 1.0, change + d)
            for k in range(support_start[i], support_start[i + 1]):
                d = support[k]
                _inertia_row(motion, i, d, twist, row)
                for c in range(10):
                    momentum[sample, d, 10 * i + c] = row[c]
                _inertia_row(motion, i, change + d, twist, row)
                _inertia_row(motion, i, d, fall, weight)
                for c in range(10):
                    drift[sample, d, 10 * i + c] = row[c] + weight[c]


@_compiled
def static_rows(q, gravity, tree, inertia, weight) -> None:  # type: ignore[no-untyped-def]
    """Regressors of the inertia matrix, ``inertia[sample, d, e, parameter]``, and of gravity, ``weight[sample, d, parameter]``."""
    n_bodies, n_dof = tree[0].shape[0], tree[5].shape[0]
    support_start, support = tree[6], tree[7]
    motion, R, p, row = np.zeros((n_bodies, n_dof + 3, 6)), np.zeros(9), np.zeros(3), np.zeros(10)
    for sample in range(q.shape[0]):
        _walk(sample, q, q, q, False, gravity, tree, motion, R, p)
        for i in range(n_bodies):
            for k in range(support_start[i], support_start[i + 1]):
                d = support[k]
                _inertia_row(motion, i, d, n_dof, row)
                for c in range(10):
                    weight[sample, d, 10 * i + c] = -row[c]
                for other in range(support_start[i], k + 1):
                    e = support[other]
                    _inertia_row(motion, i, d, e, row)
                    for c in range(10):
                        inertia[sample, d, e, 10 * i + c] = row[c]
                        inertia[sample, e, d, 10 * i + c] = row[c]


@_compiled
def energy_rows(q, v, gravity, tree, kinetic, potential) -> None:  # type: ignore[no-untyped-def]
    """Regressors of kinetic and potential energy, ``[sample, parameter]``; height zero is the world's origin."""
    n_bodies, n_dof = tree[0].shape[0], tree[5].shape[0]
    parent = tree[0]
    fall, twist = n_dof, n_dof + 1
    motion, R, p, row = np.zeros((n_bodies, n_dof + 3, 6)), np.zeros(9), np.zeros(3), np.zeros(10)
    drop = np.zeros(n_bodies)  # gravity times the position of each body's origin
    for sample in range(q.shape[0]):
        _walk(sample, q, v, v, True, gravity, tree, motion, R, p)
        for i in range(n_bodies):
            _joint_pose(i, q, sample, tree[8], tree[3], tree[4], R, p)
            up = parent[i]
            drop[i] = 0.0 if up < 0 else drop[up]
            for k in range(3):
                drop[i] += (gravity[k] if up < 0 else motion[up, fall, k]) * p[k]
            _inertia_row(motion, i, twist, twist, row)
            for c in range(10):
                kinetic[sample, 10 * i + c] = 0.5 * row[c]
                potential[sample, 10 * i + c] = 0.0
            potential[sample, 10 * i] = -drop[i]
            for k in range(3):
                potential[sample, 10 * i + 1 + k] = -motion[i, fall, k]


def is_cached(kernel: Any) -> bool:
    """Whether a kernel was compiled before, in this process or on this machine."""
    if kernel.signatures:
        return True
    return any(Path(kernel.stats.cache_path).glob(f"kernel.{kernel.py_func.__name__}-*.nbi"))
