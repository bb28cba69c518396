"""The compiled loops: blocks of samples side by side, one pass down the tree per block, no allocation inside.

For body ``i`` and every velocity index ``d`` that moves it, ``(l, s)`` is the screw of ``d`` in the frame of ``i``. With the
body's angular velocity ``w``, angular acceleration ``alpha`` and the acceleration ``b`` of its origin (gravity included),
Newton and Euler give the force and the moment about that origin

    f = m b + alpha x h + w x (w x h),    n = h x b + I alpha + w x I w,    h = m c,

and the torque of ``d`` is ``l . f + s . n``: linear in the ten parameters of ``i``. All kernels share this walk.

Every quantity of the walk is a *lane row* of one flat workspace ``x``: its values in ``LANES`` consecutive samples, side by
side, so that the loops over lanes become vector instructions. What LLVM needs for that shapes the inner functions. They
index with unsigned numbers, because a signed index may count from the end. They read and write one array at known distances,
and few rows per loop, so that a handful of comparisons shows that nothing written is read (this is why some work is split
into two loops). And the number of lanes is a variable: a loop of known length would be unrolled into scalars first.

All kernels are serial and release the GIL; parallelism over chunks of samples is the caller's. Everything compiled lives in
this one file because Numba's cache notices changes in the file of the outermost function only. Arrays of samples and of the
tree come read-only, so that each kernel is compiled for one signature.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import binding  # type: ignore[import-untyped]
from numba import types
from numba.extending import get_cython_function_address

from dynid.adapters.numba import njit
from dynid.arrays import freeze

if TYPE_CHECKING:
    from dynid.robot.model import KinematicTree

LANES = 32
"""Samples per block: enough to pay for the comparisons before each loop, few enough for the second-level cache."""

# Lane rows of one body, the ground being the first: rotation and translation into its parent, gravity, acceleration of its
# origin, then its motion vectors of six rows each (linear, angular): twist, spatial acceleration, the screws that move it.
_TRANSLATION, _FALL, _LIFT, _TWIST, _RATE, _SCREWS = 9, 12, 15, 18, 24, 30

_compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})


def tree_arrays(tree: KinematicTree) -> tuple[Any, ...]:
    """A kinematic tree as the kernels take it: its own arrays, where its lane rows are, and a workspace to start from.

    The workspace holds what is the same in all samples: each joint's screw in its own body. ``body_rows`` are the first lane
    rows of the ground and of every body, ``input_rows`` those of positions, velocities, accelerations and of what is left.
    """
    n_bodies, n_dof = len(tree.parent), len(tree.screw)
    body_rows = np.concatenate([[0], _SCREWS * np.arange(1, n_bodies + 1) + 6 * tree.support_start[:-1]])
    first = _SCREWS * (n_bodies + 1) + 6 * len(tree.support)
    input_rows = first + np.array([0, n_dof + 1, 2 * n_dof + 1, 3 * n_dof + 1])
    workspace = np.zeros((input_rows[-1] + 22 + max(n_bodies, n_dof), LANES))
    for i in range(n_bodies):
        own = tree.screw[tree.dof_start[i] : tree.dof_start[i] + tree.dof_count[i]].ravel()
        last = body_rows[i + 1] + _SCREWS + 6 * (tree.support_start[i + 1] - tree.support_start[i])
        workspace[last - len(own) : last] = own[:, None]
    return (
        tree.parent,
        tree.dof_start,
        tree.dof_count,
        freeze(tree.rotation.reshape(n_bodies, 3, 9)),
        tree.translation,
        tree.support_start,
        tree.support,
        tree.floating,
        freeze(body_rows, np.int64),
        freeze(input_rows, np.int64),
        freeze(workspace.ravel()),
    )


@_compiled
def _get(x, row, s):  # type: ignore[no-untyped-def]
    """Three lane rows, lane ``s``."""
    at = row * LANES + s
    return x[np.uint64(at)], x[np.uint64(at + LANES)], x[np.uint64(at + 2 * LANES)]


@_compiled
def _put(x, row, s, first, second, third) -> None:  # type: ignore[no-untyped-def]
    """Three lane rows, lane ``s``."""
    at = row * LANES + s
    x[np.uint64(at)] = first
    x[np.uint64(at + LANES)] = second
    x[np.uint64(at + 2 * LANES)] = third


@_compiled
def _get1(x, row, s):  # type: ignore[no-untyped-def]
    return x[np.uint64(row * LANES + s)]


@_compiled
def _put1(x, row, s, value) -> None:  # type: ignore[no-untyped-def]
    x[np.uint64(row * LANES + s)] = value


@_compiled
def _cross(a0, a1, a2, b0, b1, b2):  # type: ignore[no-untyped-def]
    return a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0


@_compiled
def _turned(x, rotation, s, a0, a1, a2):  # type: ignore[no-untyped-def]
    """``R^T a``."""
    r0, r1, r2 = _get(x, rotation, s)
    r3, r4, r5 = _get(x, rotation + 3, s)
    r6, r7, r8 = _get(x, rotation + 6, s)
    return r0 * a0 + r3 * a1 + r6 * a2, r1 * a0 + r4 * a1 + r7 * a2, r2 * a0 + r5 * a1 + r8 * a2


@_compiled
def _load(x, row, values, sample, lanes) -> None:  # type: ignore[no-untyped-def]
    """The columns of a block of samples as lane rows."""
    for s in range(lanes):
        for j in range(values.shape[1]):
            _put1(x, row + j, s, values[sample + s, j])


@_compiled
def _free_pose(x, position, body, rotation, translation, lanes) -> None:  # type: ignore[no-untyped-def]
    """Pose of a floating body: its placement first, then the free motion of a translation and a quaternion."""
    for s in range(lanes):
        t0, t1, t2 = _get(x, position, s)
        i, j, k = _get(x, position + 3, s)
        w = _get1(x, position + 6, s)
        scale = 2.0 / (i * i + j * j + k * k + w * w)
        r00, r01, r02 = 1.0 - scale * (j * j + k * k), scale * (i * j - k * w), scale * (i * k + j * w)
        r10, r11, r12 = scale * (i * j + k * w), 1.0 - scale * (i * i + k * k), scale * (j * k - i * w)
        r20, r21, r22 = scale * (i * k - j * w), scale * (j * k + i * w), 1.0 - scale * (i * i + j * j)
        for n in range(translation.shape[2]):
            p0, p1, p2 = rotation[0, 0, 3 * n], rotation[0, 0, 3 * n + 1], rotation[0, 0, 3 * n + 2]
            turned = p0 * r00 + p1 * r10 + p2 * r20, p0 * r01 + p1 * r11 + p2 * r21, p0 * r02 + p1 * r12 + p2 * r22
            _put(x, body + 3 * n, s, turned[0], turned[1], turned[2])
            _put1(x, body + _TRANSLATION + n, s, translation[0, 0, n] + p0 * t0 + p1 * t1 + p2 * t2)


@_compiled
def _joint_pose(x, position, body, scratch, rotation, translation, i, lanes) -> None:  # type: ignore[no-untyped-def]
    """Pose of body ``i`` in its parent: ``R = M0 + cos(q) M1 + sin(q) M2``, ``p = P0 + cos(q) P1 + sin(q) P2 + q P3``."""
    for s in range(lanes):
        angle = _get1(x, position, s)
        _put1(x, scratch, s, math.cos(angle))
        _put1(x, scratch + 1, s, math.sin(angle))
    for k in range(rotation.shape[2]):  # nine, but a known number would make nine copies of the loop inside
        m0, m1, m2 = rotation[i, 0, k], rotation[i, 1, k], rotation[i, 2, k]
        for s in range(lanes):
            _put1(x, body + k, s, m0 + m1 * _get1(x, scratch, s) + m2 * _get1(x, scratch + 1, s))
    for k in range(translation.shape[2]):
        p0, p1, p2, p3 = translation[i, 0, k], translation[i, 1, k], translation[i, 2, k], translation[i, 3, k]
        for s in range(lanes):
            turned = p1 * _get1(x, scratch, s) + p2 * _get1(x, scratch + 1, s)
            _put1(x, body + _TRANSLATION + k, s, p0 + turned + p3 * _get1(x, position, s))


@_compiled
def _into_child(x, source, target, body, lanes) -> None:  # type: ignore[no-untyped-def]
    """A motion vector of the parent in the frame of its child: ``(R^T (l + s x p), R^T s)``."""
    for s in range(lanes):
        p0, p1, p2 = _get(x, body + _TRANSLATION, s)
        l0, l1, l2 = _get(x, source, s)
        s0, s1, s2 = _get(x, source + 3, s)
        c0, c1, c2 = _cross(s0, s1, s2, p0, p1, p2)
        l0, l1, l2 = _turned(x, body, s, l0 + c0, l1 + c1, l2 + c2)
        s0, s1, s2 = _turned(x, body, s, s0, s1, s2)
        _put(x, target, s, l0, l1, l2)
        _put(x, target + 3, s, s0, s1, s2)


@_compiled
def _turn_into_child(x, source, target, body, lanes) -> None:  # type: ignore[no-untyped-def]
    """A free vector of the parent in the frame of its child."""
    for s in range(lanes):
        a0, a1, a2 = _get(x, source, s)
        a0, a1, a2 = _turned(x, body, s, a0, a1, a2)
        _put(x, target, s, a0, a1, a2)


@_compiled
def _add_twist(x, body, screw, velocity, lanes) -> None:  # type: ignore[no-untyped-def]
    """``V += S v``."""
    for s in range(lanes):
        v = _get1(x, velocity, s)
        v0, v1, v2 = _get(x, body + _TWIST, s)
        w0, w1, w2 = _get(x, body + _TWIST + 3, s)
        l0, l1, l2 = _get(x, screw, s)
        s0, s1, s2 = _get(x, screw + 3, s)
        _put(x, body + _TWIST, s, v0 + l0 * v, v1 + l1 * v, v2 + l2 * v)
        _put(x, body + _TWIST + 3, s, w0 + s0 * v, w1 + s1 * v, w2 + s2 * v)


@_compiled
def _add_rate(x, body, screw, velocity, acceleration, lanes) -> None:  # type: ignore[no-untyped-def]
    """``A += S a + (V x S) v``: the linear part, then the angular part."""
    for s in range(lanes):
        v, a = _get1(x, velocity, s), _get1(x, acceleration, s)
        v0, v1, v2 = _get(x, body + _TWIST, s)
        w0, w1, w2 = _get(x, body + _TWIST + 3, s)
        l0, l1, l2 = _get(x, screw, s)
        s0, s1, s2 = _get(x, screw + 3, s)
        c0, c1, c2 = _cross(w0, w1, w2, l0, l1, l2)
        d0, d1, d2 = _cross(v0, v1, v2, s0, s1, s2)
        b0, b1, b2 = _get(x, body + _RATE, s)
        b0, b1, b2 = b0 + l0 * a + (c0 + d0) * v, b1 + l1 * a + (c1 + d1) * v, b2 + l2 * a + (c2 + d2) * v
        _put(x, body + _RATE, s, b0, b1, b2)
    for s in range(lanes):
        v, a = _get1(x, velocity, s), _get1(x, acceleration, s)
        w0, w1, w2 = _get(x, body + _TWIST + 3, s)
        s0, s1, s2 = _get(x, screw + 3, s)
        c0, c1, c2 = _cross(w0, w1, w2, s0, s1, s2)
        b0, b1, b2 = _get(x, body + _RATE + 3, s)
        _put(x, body + _RATE + 3, s, b0 + s0 * a + c0 * v, b1 + s1 * a + c1 * v, b2 + s2 * a + c2 * v)


@_compiled
def _lift(x, body, lanes) -> None:  # type: ignore[no-untyped-def]
    """Acceleration of a body's origin, ``a + w x v``."""
    for s in range(lanes):
        v0, v1, v2 = _get(x, body + _TWIST, s)
        w0, w1, w2 = _get(x, body + _TWIST + 3, s)
        a0, a1, a2 = _get(x, body + _RATE, s)
        c0, c1, c2 = _cross(w0, w1, w2, v0, v1, v2)
        _put(x, body + _LIFT, s, a0 + c0, a1 + c1, a2 + c2)


@_compiled
def _start(tree, gravity, n_more):  # type: ignore[no-untyped-def]
    """A workspace with ``n_more`` lane rows at its end; a ground that accelerates upward stands for gravity."""
    template = tree[10]
    x = np.zeros(template.shape[0] + n_more * LANES)
    for k in range(template.shape[0]):
        x[k] = template[k]
    for s in range(LANES):
        _put(x, _FALL, s, gravity[0], gravity[1], gravity[2])
        _put(x, _RATE, s, -gravity[0], -gravity[1], -gravity[2])
    return x


@_compiled
def _walk(x, sample, lanes, q, v, a, tree, moving, falling) -> None:  # type: ignore[no-untyped-def]
    """Motion vectors of every body for one block of samples, each in the body's own frame.

    The screws that move a body always; gravity where ``falling``; where ``moving`` its twist, its spatial acceleration and
    the acceleration of its origin.
    """
    parent, dof_start, dof_count, rotation, translation, support_start, _, floating, body_rows, input_rows, _ = tree
    position, velocity, acceleration, scratch = input_rows[0], input_rows[1], input_rows[2], input_rows[3]
    _load(x, position, q, sample, lanes)
    if moving:
        _load(x, velocity, v, sample, lanes)
        _load(x, acceleration, a, sample, lanes)
    for i in range(parent.shape[0]):
        body, above = body_rows[i + 1], body_rows[parent[i] + 1]
        if floating and i == 0:
            _free_pose(x, position, body, rotation, translation, lanes)
        else:
            _joint_pose(x, position + i + (6 if floating else 0), body, scratch, rotation, translation, i, lanes)
        if falling:
            _turn_into_child(x, above + _FALL, body + _FALL, body, lanes)
        own = _SCREWS + 6 * (support_start[i + 1] - support_start[i] - dof_count[i])
        for row in range(_TWIST if moving else _SCREWS, own, 6):
            _into_child(x, above + row, body + row, body, lanes)
        if moving:
            for d in range(dof_count[i]):
                _add_twist(x, body, body + own + 6 * d, velocity + dof_start[i] + d, lanes)
            for d in range(dof_count[i]):
                at = dof_start[i] + d
                _add_rate(x, body, body + own + 6 * d, velocity + at, acceleration + at, lanes)
            _lift(x, body, lanes)


@_compiled
def _newton_euler_row(x, screw, body, row, lanes) -> None:  # type: ignore[no-untyped-def]
    """Coefficients of a body's ten parameters in ``l . f + s . n``: mass and first moments, then inertia."""
    for s in range(lanes):
        l0, l1, l2 = _get(x, screw, s)
        s0, s1, s2 = _get(x, screw + 3, s)
        w0, w1, w2 = _get(x, body + _TWIST + 3, s)
        a0, a1, a2 = _get(x, body + _RATE + 3, s)
        b0, b1, b2 = _get(x, body + _LIFT, s)
        lw = l0 * w0 + l1 * w1 + l2 * w2
        ww = w0 * w0 + w1 * w1 + w2 * w2
        c0, c1, c2 = _cross(l0, l1, l2, a0, a1, a2)
        d0, d1, d2 = _cross(b0, b1, b2, s0, s1, s2)
        _put1(x, row, s, l0 * b0 + l1 * b1 + l2 * b2)
        c0, c1, c2 = c0 + lw * w0 - ww * l0 + d0, c1 + lw * w1 - ww * l1 + d1, c2 + lw * w2 - ww * l2 + d2
        _put(x, row + 1, s, c0, c1, c2)
    for s in range(lanes):
        s0, s1, s2 = _get(x, screw + 3, s)
        w0, w1, w2 = _get(x, body + _TWIST + 3, s)
        a0, a1, a2 = _get(x, body + _RATE + 3, s)
        u0, u1, u2 = _cross(s0, s1, s2, w0, w1, w2)
        xx, xy, yy = s0 * a0 + u0 * w0, s0 * a1 + s1 * a0 + u0 * w1 + u1 * w0, s1 * a1 + u1 * w1
        xz, yz, zz = s0 * a2 + s2 * a0 + u0 * w2 + u2 * w0, s1 * a2 + s2 * a1 + u1 * w2 + u2 * w1, s2 * a2 + u2 * w2
        _put(x, row + 4, s, xx, xy, yy)
        _put(x, row + 7, s, xz, yz, zz)


@_compiled
def _inertia_row(x, left, right, row, lanes) -> None:  # type: ignore[no-untyped-def]
    """Coefficients of a body's ten parameters in ``X . (I Y)``, ``I`` the spatial inertia, ``X, Y`` motion vectors."""
    for s in range(lanes):
        l0, l1, l2 = _get(x, left, s)
        s0, s1, s2 = _get(x, left + 3, s)
        v0, v1, v2 = _get(x, right, s)
        w0, w1, w2 = _get(x, right + 3, s)
        c0, c1, c2 = _cross(l0, l1, l2, w0, w1, w2)
        d0, d1, d2 = _cross(v0, v1, v2, s0, s1, s2)
        _put1(x, row, s, l0 * v0 + l1 * v1 + l2 * v2)
        _put(x, row + 1, s, c0 + d0, c1 + d1, c2 + d2)
        _put(x, row + 4, s, s0 * w0, s0 * w1 + s1 * w0, s1 * w1)
        _put(x, row + 7, s, s0 * w2 + s2 * w0, s1 * w2 + s2 * w1, s2 * w2)


@_compiled
def _weight_row(x, screw, fall, row, lanes) -> None:  # type: ignore[no-untyped-def]
    """Coefficients of a body's mass and first moments in ``S . (I g)``; its inertia has no weight."""
    for s in range(lanes):
        l0, l1, l2 = _get(x, screw, s)
        s0, s1, s2 = _get(x, screw + 3, s)
        g0, g1, g2 = _get(x, fall, s)
        c0, c1, c2 = _cross(g0, g1, g2, s0, s1, s2)
        _put1(x, row, s, l0 * g0 + l1 * g1 + l2 * g2)
        _put(x, row + 1, s, c0, c1, c2)


@_compiled
def _store_ten(x, row, lanes, out, target, k, sample, step) -> None:  # type: ignore[no-untyped-def]
    """Ten lane rows to the places that ``target[k]`` names."""
    if step == 1:  # whole lane rows
        for c in range(10):
            if target[k, c] >= 0:
                for s in range(lanes):
                    out[np.uint64(target[k, c] + sample + s)] = _get1(x, row + c, s)
        return
    for s in range(lanes):
        for c in range(10):
            if target[k, c] >= 0:
                out[np.uint64(target[k, c] + (sample + s) * step)] = _get1(x, row + c, s)


@_compiled
def torque_rows(q, v, a, gravity, tree, target, step, out) -> None:  # type: ignore[no-untyped-def]
    """Torque regressor of a chunk into a flat array, each coefficient wherever the caller wants it.

    Parameter ``c`` of body ``i`` in the torque of ``d`` goes to ``out[target[k, c] + sample * step]``, ``k`` the place of
    this body and ``d`` in the support list; ``target`` is -1 for coefficients that are not needed.
    """
    support_start, body_rows = tree[5], tree[8]
    x, row = _start(tree, gravity, 0), tree[9][3] + 2
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        _walk(x, sample, lanes, q, v, a, tree, True, False)
        for i in range(tree[0].shape[0]):
            body = body_rows[i + 1]
            for k in range(support_start[i], support_start[i + 1]):
                _newton_euler_row(x, body + _SCREWS + 6 * (k - support_start[i]), body, row, lanes)
                _store_ten(x, row, lanes, out, target, k, sample, step)


@_compiled
def _gathered_screw(x, body, first, count, support, gain, sample, a, scratch, lanes) -> None:  # type: ignore[no-untyped-def]
    """The screw that moves a body per unit velocity of actuated joint ``a``: screws of its joints times their gains."""
    for r in range(6):
        for s in range(lanes):
            _put1(x, scratch + r, s, 0.0)
    for k in range(count):
        screw = body + _SCREWS + 6 * k
        for s in range(lanes):
            _put1(x, scratch + 6, s, gain[sample + s, support[first + k], a])
        for r in range(6):
            for s in range(lanes):
                _put1(x, scratch + r, s, _get1(x, scratch + r, s) + _get1(x, scratch + 6, s) * _get1(x, screw + r, s))


@_compiled
def projected_torque_rows(q, v, a, gain, gravity, tree, target, step, out) -> None:  # type: ignore[no-untyped-def]
    """The rows of :func:`torque_rows` projected on actuated joints, ``G^T Y``, with ``gain[sample, d, k]`` of ``G``.

    A body's force is multiplied with the screw that each actuated joint gives it through the loops. Parameter ``c`` of body
    ``i`` in the torque of ``k`` goes to ``out[target[i * actuated + k, c] + sample * step]``.
    """
    support_start, support, body_rows = tree[5], tree[6], tree[8]
    row = tree[9][3] + 2
    gathered = tree[10].shape[0] // LANES
    x = _start(tree, gravity, 7)
    n_actuated = gain.shape[2]
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        _walk(x, sample, lanes, q, v, a, tree, True, False)
        for i in range(tree[0].shape[0]):
            body, first = body_rows[i + 1], support_start[i]
            for k in range(n_actuated):
                needed = False
                for c in range(10):
                    needed = needed or target[i * n_actuated + k, c] >= 0
                if needed:
                    _gathered_screw(x, body, first, support_start[i + 1] - first, support, gain, sample, k, gathered, lanes)
                    _newton_euler_row(x, gathered, body, row, lanes)
                    _store_ten(x, row, lanes, out, target, i * n_actuated + k, sample, step)


@_compiled
def inverse_dynamics_rows(q, v, a, gravity, tree, phi, out) -> None:  # type: ignore[no-untyped-def]
    """Rigid-body torque ``out[sample, d]`` of a chunk for one parameter set ``phi`` of shape (bodies, 10)."""
    support_start, support, body_rows = tree[5], tree[6], tree[8]
    x, row = _start(tree, gravity, 0), tree[9][3] + 2
    torque = row + 10
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        _walk(x, sample, lanes, q, v, a, tree, True, False)
        for d in range(out.shape[1]):
            for s in range(lanes):
                _put1(x, torque + d, s, 0.0)
        for i in range(tree[0].shape[0]):
            body = body_rows[i + 1]
            for k in range(support_start[i], support_start[i + 1]):
                _newton_euler_row(x, body + _SCREWS + 6 * (k - support_start[i]), body, row, lanes)
                for c in range(phi.shape[1]):
                    _add_scaled(x, torque + support[k], row + c, phi[i, c], lanes)
        for s in range(lanes):
            for d in range(out.shape[1]):
                out[sample + s, d] = _get1(x, torque + d, s)


@_compiled
def _add_scaled(x, target, row, scale, lanes) -> None:  # type: ignore[no-untyped-def]
    """A lane row times a number added to another."""
    for s in range(lanes):
        _put1(x, target, s, _get1(x, target, s) + scale * _get1(x, row, s))


@_compiled
def momentum_rows(q, v, gravity, tree, momentum, drift) -> None:  # type: ignore[no-untyped-def]
    """``A`` and ``B`` of ``Y phi = d/dt (A phi) - B phi``: generalised momentum and ``dL/dq``, ``[sample, d, parameter]``.

    The change of body ``i``'s twist with joint ``d`` at fixed velocities is ``V_d x S_d`` carried into frame ``i``, so
    ``B = (V_d x S_d) . I_i V_i + S_d . I_i g``.
    """
    parent, support_start, support, body_rows = tree[0], tree[5], tree[6], tree[8]
    x, row = _start(tree, gravity, 6 * support.shape[0]), tree[9][3] + 2
    change = tree[10].shape[0] // LANES  # the carried changes of each body lie like its screws
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        _walk(x, sample, lanes, q, v, v, tree, True, True)
        for i in range(parent.shape[0]):
            body, up, first = body_rows[i + 1], parent[i], support_start[i]
            own = support_start[i + 1] - 1
            for k in range(first, own):
                _into_child(x, change + 6 * (support_start[up] + k - first), change + 6 * k, body, lanes)
            _motion_cross(x, body + _TWIST, body + _SCREWS + 6 * (own - first), change + 6 * own, lanes)
            for k in range(first, support_start[i + 1]):
                d, screw = support[k], body + _SCREWS + 6 * (k - first)
                _inertia_row(x, screw, body + _TWIST, row, lanes)
                for s in range(lanes):
                    for c in range(10):
                        momentum[sample + s, d, 10 * i + c] = _get1(x, row + c, s)
                _inertia_row(x, change + 6 * k, body + _TWIST, row, lanes)
                _weight_row(x, screw, body + _FALL, row + 10, lanes)
                for s in range(lanes):
                    for c in range(10):
                        weight = _get1(x, row + 10 + c, s) if c < 4 else 0.0
                        drift[sample + s, d, 10 * i + c] = _get1(x, row + c, s) + weight


@_compiled
def _motion_cross(x, left, right, target, lanes) -> None:  # type: ignore[no-untyped-def]
    """The spatial cross product of two motion vectors."""
    for s in range(lanes):
        v0, v1, v2 = _get(x, left, s)
        w0, w1, w2 = _get(x, left + 3, s)
        l0, l1, l2 = _get(x, right, s)
        s0, s1, s2 = _get(x, right + 3, s)
        c0, c1, c2 = _cross(w0, w1, w2, l0, l1, l2)
        d0, d1, d2 = _cross(v0, v1, v2, s0, s1, s2)
        _put(x, target, s, c0 + d0, c1 + d1, c2 + d2)
        c0, c1, c2 = _cross(w0, w1, w2, s0, s1, s2)
        _put(x, target + 3, s, c0, c1, c2)


@_compiled
def static_rows(q, gravity, tree, inertia, weight) -> None:  # type: ignore[no-untyped-def]
    """Regressors of inertia and gravity, ``inertia[sample, d, e, parameter]`` and ``weight[sample, d, parameter]``."""
    support_start, support, body_rows = tree[5], tree[6], tree[8]
    x, row = _start(tree, gravity, 0), tree[9][3] + 2
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        _walk(x, sample, lanes, q, q, q, tree, False, True)
        for i in range(tree[0].shape[0]):
            body, first = body_rows[i + 1], support_start[i]
            for k in range(first, support_start[i + 1]):
                d, screw = support[k], body + _SCREWS + 6 * (k - first)
                _weight_row(x, screw, body + _FALL, row, lanes)
                for s in range(lanes):
                    for c in range(4):
                        weight[sample + s, d, 10 * i + c] = -_get1(x, row + c, s)
                for other in range(first, k + 1):
                    e = support[other]
                    _inertia_row(x, screw, body + _SCREWS + 6 * (other - first), row, lanes)
                    for s in range(lanes):
                        for c in range(10):
                            inertia[sample + s, d, e, 10 * i + c] = _get1(x, row + c, s)
                            inertia[sample + s, e, d, 10 * i + c] = _get1(x, row + c, s)


@_compiled
def energy_rows(q, v, gravity, tree, kinetic, potential) -> None:  # type: ignore[no-untyped-def]
    """Regressors of kinetic and potential energy, ``[sample, parameter]``; height zero is the world's origin."""
    parent, body_rows = tree[0], tree[8]
    x, row = _start(tree, gravity, 0), tree[9][3] + 2
    drop = row + 10  # gravity times the position of each body's origin
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        _walk(x, sample, lanes, q, v, v, tree, True, True)
        for i in range(parent.shape[0]):
            up, body, above = parent[i], body_rows[i + 1], body_rows[parent[i] + 1]
            _inertia_row(x, body + _TWIST, body + _TWIST, row, lanes)
            for s in range(lanes):
                g0, g1, g2 = _get(x, above + _FALL, s)
                p0, p1, p2 = _get(x, body + _TRANSLATION, s)
                height = 0.0 if up < 0 else _get1(x, drop + up, s)
                _put1(x, drop + i, s, height + g0 * p0 + g1 * p1 + g2 * p2)
                for c in range(10):
                    kinetic[sample + s, 10 * i + c] = 0.5 * _get1(x, row + c, s)
                    potential[sample + s, 10 * i + c] = 0.0
                potential[sample + s, 10 * i] = -_get1(x, drop + i, s)
                for c in range(3):
                    potential[sample + s, 10 * i + 1 + c] = -_get1(x, body + _FALL + c, s)


@_compiled
def signal_rows(signals, source, coefficient, target, step, out) -> None:  # type: ignore[no-untyped-def]
    """Columns that are signals: ``coefficient[k] signals[sample, source[k]]`` into ``out[target[k] + sample * step]``."""
    for k in range(source.shape[0]):
        for sample in range(signals.shape[0]):
            out[target[k] + sample * step] = coefficient[k] * signals[sample, source[k]]


# LAPACK's tpqrt as SciPy carries it, under a name that compiled code can be linked to (and cached with, unlike an address).
binding.add_symbol("dynid_dtpqrt", get_cython_function_address("scipy.linalg.cython_lapack", "dtpqrt"))
_int, _double = types.CPointer(types.int32), types.CPointer(types.float64)  # type: ignore[no-untyped-call]
_dtpqrt: Any = types.ExternalFunction(
    "dynid_dtpqrt",
    types.void(_int, _int, _int, _int, _double, _int, _double, _int, _double, _int, _double, _int),
)


@_compiled
def fold(R, rows, n_triangular, panel, work):  # type: ignore[no-untyped-def]
    """Triangle of ``R`` stacked on ``rows``, into ``R``; returns LAPACK's code, zero if all went well.

    Both come transposed, because LAPACK's columns are our rows, and ``rows`` is overwritten; its last ``n_triangular`` rows
    are upper trapezoidal. ``panel`` columns are reduced at a time; ``work`` takes ``2 panel`` times the columns.
    """
    n, m = R.shape[0], rows.shape[1]
    number = np.array([m, n, n_triangular, panel, m, 0], dtype=np.int32)
    m_, n_, l_, nb_ = number[0:].ctypes, number[1:].ctypes, number[2:].ctypes, number[3:].ctypes
    lower = work[panel * n :].ctypes
    _dtpqrt(m_, n_, l_, nb_, R.ctypes, n_, rows.ctypes, number[4:].ctypes, work.ctypes, nb_, lower, number[5:].ctypes)
    return number[5]
