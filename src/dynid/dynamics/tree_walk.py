"""One pass down the kinematic tree for a block of samples: screws, twists and accelerations of every body, in its own frame.

``(l, s)`` is the screw of velocity index ``d`` in the frame of body ``i``; a ground that accelerates upward stands for gravity.
Everything is a lane row of the workspace that :func:`tree_arrays` lays out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.dynamics.lanes import LANES, cross, get, get1, helper, part, put, put1, turn_back

if TYPE_CHECKING:
    from dynid.model.joint import KinematicTree

# Lane rows of one body, the ground being the first: rotation and translation into its parent, gravity, acceleration of its
# origin, then its motion vectors of six rows each (linear, angular): twist, spatial acceleration, the screws that move it.
TRANSLATION, FALL, LIFT, TWIST, RATE, SCREWS = 9, 12, 15, 18, 24, 30


def tree_arrays(tree: KinematicTree) -> tuple[Any, ...]:
    """A kinematic tree as the kernels take it: its own arrays, where its lane rows are, and a workspace to start from.

    The workspace holds what is the same in all samples: each joint's screw in its own body. ``body_rows`` are the first lane
    rows of the ground and of every body, ``input_rows`` those of positions, velocities, accelerations and of what is left.
    """
    n_bodies, n_dof = len(tree.parent), len(tree.screw)
    body_rows = np.concatenate([[0], SCREWS * np.arange(1, n_bodies + 1) + 6 * tree.support_start[:-1]])
    first = SCREWS * (n_bodies + 1) + 6 * len(tree.support)
    input_rows = first + np.array([0, n_dof + 1, 2 * n_dof + 1, 3 * n_dof + 1])
    workspace = np.zeros((input_rows[-1] + 22 + max(n_bodies, n_dof), LANES))
    for i in range(n_bodies):
        own = tree.screw[tree.dof_start[i] : tree.dof_start[i] + tree.dof_count[i]].ravel()
        last = body_rows[i + 1] + SCREWS + 6 * (tree.support_start[i + 1] - tree.support_start[i])
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


def workspace(tree: tuple[Any, ...], gravity: Array, n_more: int = 0) -> Array:
    """A workspace with ``n_more`` lane rows at its end and gravity in the ground's rows."""
    x: Array = np.concatenate([tree[10], np.zeros(n_more * LANES)])
    rows = x.reshape(-1, LANES)
    rows[FALL : FALL + 3], rows[RATE : RATE + 3] = gravity[:, None], -gravity[:, None]
    return x


@helper
def _load(x, row, values, sample, lanes) -> None:  # type: ignore[no-untyped-def]
    """The columns of a block of samples as lane rows."""
    for s in range(lanes):
        for j in range(values.shape[1]):
            put1(x, row + j, s, values[sample + s, j])


@helper
def _free_pose(x, position, body, rotation, translation, lanes) -> None:  # type: ignore[no-untyped-def]
    """Pose of a floating body: its placement first, then the free motion of a translation and a quaternion."""
    for s in range(lanes):
        t0, t1, t2 = get(x, position, s)
        i, j, k = get(x, position + 3, s)
        w = get1(x, position + 6, s)
        scale = 2.0 / (i * i + j * j + k * k + w * w)
        r00, r01, r02 = 1.0 - scale * (j * j + k * k), scale * (i * j - k * w), scale * (i * k + j * w)
        r10, r11, r12 = scale * (i * j + k * w), 1.0 - scale * (i * i + k * k), scale * (j * k - i * w)
        r20, r21, r22 = scale * (i * k - j * w), scale * (j * k + i * w), 1.0 - scale * (i * i + j * j)
        for n in range(translation.shape[2]):
            p0, p1, p2 = rotation[0, 0, 3 * n], rotation[0, 0, 3 * n + 1], rotation[0, 0, 3 * n + 2]
            turned = p0 * r00 + p1 * r10 + p2 * r20, p0 * r01 + p1 * r11 + p2 * r21, p0 * r02 + p1 * r12 + p2 * r22
            put(x, body + 3 * n, s, turned[0], turned[1], turned[2])
            put1(x, body + TRANSLATION + n, s, translation[0, 0, n] + p0 * t0 + p1 * t1 + p2 * t2)


@helper
def _joint_pose(x, position, body, scratch, rotation, translation, i, lanes) -> None:  # type: ignore[no-untyped-def]
    """Pose of body ``i`` in its parent: ``R = M0 + cos(q) M1 + sin(q) M2``, ``p = P0 + cos(q) P1 + sin(q) P2 + q P3``."""
    for s in range(lanes):
        angle = get1(x, position, s)
        put1(x, scratch, s, math.cos(angle))
        put1(x, scratch + 1, s, math.sin(angle))
    for k in range(rotation.shape[2]):  # nine, but a known number would make nine copies of the loop inside
        m0, m1, m2 = rotation[i, 0, k], rotation[i, 1, k], rotation[i, 2, k]
        for s in range(lanes):
            put1(x, body + k, s, m0 + m1 * get1(x, scratch, s) + m2 * get1(x, scratch + 1, s))
    for k in range(translation.shape[2]):
        p0, p1, p2, p3 = translation[i, 0, k], translation[i, 1, k], translation[i, 2, k], translation[i, 3, k]
        for s in range(lanes):
            turned = p1 * get1(x, scratch, s) + p2 * get1(x, scratch + 1, s)
            put1(x, body + TRANSLATION + k, s, p0 + turned + p3 * get1(x, position, s))


@helper
def carry_into_child(x, source, target, body, lanes) -> None:  # type: ignore[no-untyped-def]
    """A motion vector of the parent in the frame of its child: ``(R^T (l + s x p), R^T s)``."""
    for s in range(lanes):
        p0, p1, p2 = get(x, body + TRANSLATION, s)
        l0, l1, l2 = get(x, source, s)
        s0, s1, s2 = get(x, source + 3, s)
        c0, c1, c2 = cross(s0, s1, s2, p0, p1, p2)
        l0, l1, l2 = turn_back(x, body, s, l0 + c0, l1 + c1, l2 + c2)
        s0, s1, s2 = turn_back(x, body, s, s0, s1, s2)
        put(x, target, s, l0, l1, l2)
        put(x, target + 3, s, s0, s1, s2)


@helper
def _turn_into_child(x, source, target, body, lanes) -> None:  # type: ignore[no-untyped-def]
    """A free vector of the parent in the frame of its child."""
    for s in range(lanes):
        a0, a1, a2 = get(x, source, s)
        a0, a1, a2 = turn_back(x, body, s, a0, a1, a2)
        put(x, target, s, a0, a1, a2)


@helper
def _add_twist(x, body, screw, velocity, lanes) -> None:  # type: ignore[no-untyped-def]
    """``V += S v``."""
    for s in range(lanes):
        v = get1(x, velocity, s)
        v0, v1, v2 = get(x, body + TWIST, s)
        w0, w1, w2 = get(x, body + TWIST + 3, s)
        l0, l1, l2 = get(x, screw, s)
        s0, s1, s2 = get(x, screw + 3, s)
        put(x, body + TWIST, s, v0 + l0 * v, v1 + l1 * v, v2 + l2 * v)
        put(x, body + TWIST + 3, s, w0 + s0 * v, w1 + s1 * v, w2 + s2 * v)


@helper
def _add_rate(x, body, screw, velocity, acceleration, lanes) -> None:  # type: ignore[no-untyped-def]
    """``A += S a + (V x S) v``: the linear part, then the angular part."""
    for s in range(lanes):
        v, a = get1(x, velocity, s), get1(x, acceleration, s)
        v0, v1, v2 = get(x, body + TWIST, s)
        w0, w1, w2 = get(x, body + TWIST + 3, s)
        l0, l1, l2 = get(x, screw, s)
        s0, s1, s2 = get(x, screw + 3, s)
        c0, c1, c2 = cross(w0, w1, w2, l0, l1, l2)
        d0, d1, d2 = cross(v0, v1, v2, s0, s1, s2)
        b0, b1, b2 = get(x, body + RATE, s)
        b0, b1, b2 = b0 + l0 * a + (c0 + d0) * v, b1 + l1 * a + (c1 + d1) * v, b2 + l2 * a + (c2 + d2) * v
        put(x, body + RATE, s, b0, b1, b2)
    for s in range(lanes):
        v, a = get1(x, velocity, s), get1(x, acceleration, s)
        w0, w1, w2 = get(x, body + TWIST + 3, s)
        s0, s1, s2 = get(x, screw + 3, s)
        c0, c1, c2 = cross(w0, w1, w2, s0, s1, s2)
        b0, b1, b2 = get(x, body + RATE + 3, s)
        put(x, body + RATE + 3, s, b0 + s0 * a + c0 * v, b1 + s1 * a + c1 * v, b2 + s2 * a + c2 * v)


@helper
def _lift(x, body, lanes) -> None:  # type: ignore[no-untyped-def]
    """Acceleration of a body's origin, ``a + w x v``."""
    for s in range(lanes):
        v0, v1, v2 = get(x, body + TWIST, s)
        w0, w1, w2 = get(x, body + TWIST + 3, s)
        a0, a1, a2 = get(x, body + RATE, s)
        c0, c1, c2 = cross(w0, w1, w2, v0, v1, v2)
        put(x, body + LIFT, s, a0 + c0, a1 + c1, a2 + c2)


@part
def walk(x, sample, lanes, q, v, a, tree, moving, falling) -> None:  # type: ignore[no-untyped-def]
    """Motion vectors of every body for one block of samples, each in the body's own frame.

    The screws that move a body always; gravity where ``falling``; where ``moving`` its twist, its spatial acceleration and
    the acceleration of its origin. Both come as ``np.bool_``: of a literal the walk would be compiled once for each.
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
            _turn_into_child(x, above + FALL, body + FALL, body, lanes)
        own = SCREWS + 6 * (support_start[i + 1] - support_start[i] - dof_count[i])
        for row in range(TWIST if moving else SCREWS, own, 6):
            carry_into_child(x, above + row, body + row, body, lanes)
        if moving:
            for d in range(dof_count[i]):
                _add_twist(x, body, body + own + 6 * d, velocity + dof_start[i] + d, lanes)
            for d in range(dof_count[i]):
                at = dof_start[i] + d
                _add_rate(x, body, body + own + 6 * d, velocity + at, acceleration + at, lanes)
            _lift(x, body, lanes)
