"""Compiled geometry of closed chains: residual, Jacobian and drift of every closure.

Every quantity is a lane row, as in :mod:`dynid.dynamics.lanes`. World poses come first; the screw of joint ``i`` at the world's
origin is ``(l, w)``, so a point ``x`` moves with ``l + w x x``. A closure between frames A and B has the residual

    e = R_A^T (x_B - x_A),     R = R_A^T R_B

and joint ``i`` between them changes it by ``s R_A^T (l + w x x_B)`` and turns ``R`` by ``u = s R_A^T w``, ``s = 1`` on the side of
B and ``-1`` on that of A. Turns that are closed are measured by ``vee(R - R^T) / 2`` where all three are, by the components of
``axis x R axis`` where one axis stays free, and by ``R[j, i]`` where one turn alone is closed. A tie of two joints has the residual
``q_B - p(q_A)`` with a polynomial ``p``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynid.dynamics.lanes import cross, get, get1, helper, put, put1, turn, turn_back

BODY_ROWS = 30
"""Lane rows of a body: rotation, origin, screw ``w`` and ``l`` of its joint, twist, spatial acceleration at rest of the motors."""
_P, _W, _L, _TWIST, _RATE = 9, 12, 15, 18, 24
_FRAME_ROWS = 48
"""Scratch of one closure: frame A, frame B, R, e, then its motion."""

TRANSLATION, ALL_TURNS, TURN_BEFORE_FREE, TURN_AFTER_FREE, JOINTS = 0, 1, 2, 3, 4
"""Kinds of a residual. With one free axis ``k``, the turn about ``k + 1`` comes before it in the cycle, that about ``k + 2`` after
it; a turn that is closed alone is treated like the latter."""


def workspace_rows(n_joints: int, n_passive: int, n_actuated: int, n_residuals: int, n_entries: int) -> Any:
    """First lane rows of positions, scratch, frames, residuals, Jacobian, normal matrix, right side, gains, drift, rest,
    cosines and sines, and the end."""
    rows = [BODY_ROWS * (n_joints + 1)]
    for count in (
        n_joints,
        14,
        _FRAME_ROWS,
        n_residuals,
        n_entries,
        n_passive * n_passive,
        n_passive,
        n_passive * n_actuated,
        n_residuals,
        4 + n_joints,
        2 * n_joints,
    ):
        rows.append(rows[-1] + count)
    return np.array(rows, dtype=np.int64)


@helper
def turn_angles(x, q_row, circle, tree, lanes) -> None:  # type: ignore[no-untyped-def]
    """Cosine and sine of every turning joint."""
    screw = tree[3]
    for i in range(screw.shape[0]):
        if screw[i, 3] != 0.0 or screw[i, 4] != 0.0 or screw[i, 5] != 0.0:
            for s in range(lanes):
                angle = get1(x, q_row + i, s)
                put1(x, circle + 2 * i, s, math.cos(angle))
                put1(x, circle + 2 * i + 1, s, math.sin(angle))


@helper
def turn_further(x, step, circle, lanes) -> None:  # type: ignore[no-untyped-def]
    """Cosine and sine after a small step: series of the step, exact to rounding up to ``SMALL_TURN``."""
    for s in range(lanes):
        d = get1(x, step, s)
        c, r = get1(x, circle, s), get1(x, circle + 1, s)
        z = d * d
        sine = d * (1.0 - z / 6.0 * (1.0 - z / 20.0 * (1.0 - z / 42.0 * (1.0 - z / 72.0))))
        less = z / 2.0 * (1.0 - z / 12.0 * (1.0 - z / 30.0 * (1.0 - z / 56.0)))
        put1(x, circle, s, c - (c * less + r * sine))
        put1(x, circle + 1, s, r - (r * less - c * sine))


@helper
def world_poses(x, q_row, scratch, circle, tree, lanes) -> None:  # type: ignore[no-untyped-def]
    """World pose of every body and world screw of its joint."""
    parent, rotation, translation, screw = tree
    for i in range(parent.shape[0]):
        body, above, turned = BODY_ROWS * (i + 1), BODY_ROWS * (parent[i] + 1), circle + 2 * i
        for k in range(rotation.shape[2]):  # pose in the parent, into scratch
            m0, m1, m2 = rotation[i, 0, k], rotation[i, 1, k], rotation[i, 2, k]
            for s in range(lanes):
                put1(x, scratch + 2 + k, s, m0 + m1 * get1(x, turned, s) + m2 * get1(x, turned + 1, s))
        for k in range(translation.shape[2]):
            p0, p1, p2, p3 = translation[i, 0, k], translation[i, 1, k], translation[i, 2, k], translation[i, 3, k]
            for s in range(lanes):
                arc = p1 * get1(x, turned, s) + p2 * get1(x, turned + 1, s)
                put1(x, scratch + 11 + k, s, p0 + arc + p3 * get1(x, q_row + i, s))
        for k in range(3):
            for s in range(lanes):
                a0, a1, a2 = get(x, above + 3 * k, s)
                r0, r1, r2 = get(x, scratch + 2, s)
                r3, r4, r5 = get(x, scratch + 5, s)
                r6, r7, r8 = get(x, scratch + 8, s)
                b0, b1, b2 = a0 * r0 + a1 * r3 + a2 * r6, a0 * r1 + a1 * r4 + a2 * r7, a0 * r2 + a1 * r5 + a2 * r8
                put(x, body + 3 * k, s, b0, b1, b2)
        l0, l1, l2, w0, w1, w2 = screw[i, 0], screw[i, 1], screw[i, 2], screw[i, 3], screw[i, 4], screw[i, 5]
        for s in range(lanes):
            t0, t1, t2 = get(x, scratch + 11, s)
            t0, t1, t2 = turn(x, above, s, t0, t1, t2)
            p0, p1, p2 = get(x, above + _P, s)
            put(x, body + _P, s, p0 + t0, p1 + t1, p2 + t2)
        for s in range(lanes):
            u0, u1, u2 = turn(x, body, s, w0, w1, w2)
            m0, m1, m2 = turn(x, body, s, l0, l1, l2)
            p0, p1, p2 = get(x, body + _P, s)
            c0, c1, c2 = cross(p0, p1, p2, u0, u1, u2)
            put(x, body + _W, s, u0, u1, u2)
            put(x, body + _L, s, m0 + c0, m1 + c1, m2 + c2)


@helper
def _frame(x, body, placement, out, lanes) -> None:  # type: ignore[no-untyped-def]
    """World pose of a frame fixed to a body: nine rows of rotation, three of its origin."""
    for k in range(3):
        for c in range(3):
            m0, m1, m2 = placement[0, c], placement[1, c], placement[2, c]
            for s in range(lanes):
                a0, a1, a2 = get(x, body + 3 * k, s)
                put1(x, out + 3 * k + c, s, a0 * m0 + a1 * m1 + a2 * m2)
    t0, t1, t2 = placement[0, 3], placement[1, 3], placement[2, 3]
    for s in range(lanes):
        b0, b1, b2 = turn(x, body, s, t0, t1, t2)
        p0, p1, p2 = get(x, body + _P, s)
        put(x, out + _P, s, p0 + b0, p1 + b1, p2 + b2)


@helper
def _closure(x, c, closures, frame, lanes) -> None:  # type: ignore[no-untyped-def]
    """Frames A and B of a closure, then ``R`` and ``e``."""
    bodies, placements = closures[0], closures[1]
    _frame(x, BODY_ROWS * (bodies[c, 0] + 1), placements[c, 0], frame, lanes)
    _frame(x, BODY_ROWS * (bodies[c, 1] + 1), placements[c, 1], frame + 12, lanes)
    for k in range(3):
        for s in range(lanes):
            b0, b1, b2 = (
                get1(x, frame + 12 + k, s),
                get1(x, frame + 15 + k, s),
                get1(x, frame + 18 + k, s),
            )
            r0, r1, r2 = turn_back(x, frame, s, b0, b1, b2)
            put1(x, frame + 24 + k, s, r0)
            put1(x, frame + 27 + k, s, r1)
            put1(x, frame + 30 + k, s, r2)
    for s in range(lanes):
        a0, a1, a2 = get(x, frame + _P, s)
        b0, b1, b2 = get(x, frame + 12 + _P, s)
        e0, e1, e2 = turn_back(x, frame, s, b0 - a0, b1 - a1, b2 - a2)
        put(x, frame + 33, s, e0, e1, e2)


@helper
def _turn_coefficients(x, R, kind, axis, s):  # type: ignore[no-untyped-def]
    """Coefficients of ``u`` in the rate of a closed turn."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    c = (0.0, 0.0, 0.0)
    if kind == 1:  # all three turns: row ``axis`` of (tr(R) - R) / 2
        half = 0.5 * (get1(x, R, s) + get1(x, R + 4, s) + get1(x, R + 8, s))
        r0, r1, r2 = get(x, R + 3 * axis, s)
        c = (
            (half if axis == 0 else 0.0) - 0.5 * r0,
            (half if axis == 1 else 0.0) - 0.5 * r1,
            (half if axis == 2 else 0.0) - 0.5 * r2,
        )
    else:  # b = R k of the axis k that stays free, or is crossed: u_m b_k - u_k b_m
        k = j if kind == 2 else i
        b_k, b_m = get1(x, R + 3 * k + k, s), get1(x, R + 3 * axis + k, s)
        c = (
            (b_k if axis == 0 else 0.0) - (b_m if k == 0 else 0.0),
            (b_k if axis == 1 else 0.0) - (b_m if k == 1 else 0.0),
            (b_k if axis == 2 else 0.0) - (b_m if k == 2 else 0.0),
        )
    return c


@helper
def _residual(x, frame, kind, axis, out, lanes) -> None:  # type: ignore[no-untyped-def]
    """One component of a closure's residual."""
    R, i, j = frame + 24, (axis + 1) % 3, (axis + 2) % 3
    for s in range(lanes):
        if kind == 0:
            value = get1(x, frame + 33 + axis, s)
        elif kind == 1:
            value = 0.5 * (get1(x, R + 3 * j + i, s) - get1(x, R + 3 * i + j, s))
        elif kind == 2:
            value = -get1(x, R + 3 * i + j, s)
        else:
            value = get1(x, R + 3 * j + i, s)
        put1(x, out, s, value)


@helper
def _tied(x, c, closures, q_row, v_row, order, out, lanes) -> None:  # type: ignore[no-untyped-def]
    """Of a tie of joints: its residual (order 0), minus the slope of its polynomial (1), its second derivative in time (2)."""
    follower, leader, p = closures[0][c, 0], closures[0][c, 1], closures[9]
    for s in range(lanes):
        at = get1(x, q_row + leader, s) if leader >= 0 else 0.0
        value = 0.0
        for k in range(p.shape[1] - 1, -1, -1):
            if order == 0:
                value = value * at + p[c, k]
            elif order == 1 and k >= 1:
                value = value * at + k * p[c, k]
            elif order == 2 and k >= 2:
                value = value * at + k * (k - 1) * p[c, k]
        if order == 0:
            value = get1(x, q_row + follower, s) - value
        elif order == 1:
            value = -value
        else:
            rate = get1(x, v_row + leader, s) if leader >= 0 else 0.0
            value = -value * rate * rate
        put1(x, out, s, value)


@helper
def jacobian(x, closures, rows, lanes) -> None:  # type: ignore[no-untyped-def]
    """Residual and Jacobian of every closure, each over the joints between its frames."""
    _, _, row_start, row_kind, row_axis, side_start, side_joint, side_sign, entry_start, _ = closures
    frame, residual, entries = rows[2], rows[3], rows[4]
    for c in range(row_start.shape[0] - 1):
        n_sides = side_start[c + 1] - side_start[c]
        if row_kind[row_start[c]] == 4:
            _tied(x, c, closures, rows[0], 0, 0, residual + row_start[c], lanes)
            for k in range(n_sides):
                if side_sign[side_start[c] + k] < 0.0:
                    _tied(x, c, closures, rows[0], 0, 1, entries + entry_start[c] + k, lanes)
                else:
                    for s in range(lanes):
                        put1(x, entries + entry_start[c] + k, s, 1.0)
            continue
        _closure(x, c, closures, frame, lanes)
        for r in range(row_start[c], row_start[c + 1]):
            _residual(x, frame, row_kind[r], row_axis[r], residual + r, lanes)
        for k in range(n_sides):
            joint, sign = BODY_ROWS * (side_joint[side_start[c] + k] + 1), side_sign[side_start[c] + k]
            for s in range(lanes):
                w0, w1, w2 = get(x, joint + _W, s)
                l0, l1, l2 = get(x, joint + _L, s)
                b0, b1, b2 = get(x, frame + 12 + _P, s)
                c0, c1, c2 = cross(w0, w1, w2, b0, b1, b2)
                t0, t1, t2 = turn_back(x, frame, s, sign * (l0 + c0), sign * (l1 + c1), sign * (l2 + c2))
                put(x, frame + 36, s, t0, t1, t2)
                u0, u1, u2 = turn_back(x, frame, s, sign * w0, sign * w1, sign * w2)
                put(x, frame + 39, s, u0, u1, u2)
            for r in range(row_start[c], row_start[c + 1]):
                at = entries + entry_start[c] + (r - row_start[c]) * n_sides + k
                if row_kind[r] == 0:
                    for s in range(lanes):
                        put1(x, at, s, get1(x, frame + 36 + row_axis[r], s))
                else:
                    for s in range(lanes):
                        c0, c1, c2 = _turn_coefficients(x, frame + 24, row_kind[r], row_axis[r], s)
                        u0, u1, u2 = get(x, frame + 39, s)
                        put1(x, at, s, c0 * u0 + c1 * u1 + c2 * u2)


@helper
def world_twists(x, v_row, tree, lanes) -> None:  # type: ignore[no-untyped-def]
    """Twist of every body at the world's origin and its spatial acceleration with no acceleration of joints."""
    parent = tree[0]
    for i in range(parent.shape[0]):
        body, above = BODY_ROWS * (i + 1), BODY_ROWS * (parent[i] + 1)
        for s in range(lanes):
            v = get1(x, v_row + i, s)
            a0, a1, a2 = get(x, above + _TWIST, s)
            b0, b1, b2 = get(x, above + _TWIST + 3, s)
            l0, l1, l2 = get(x, body + _L, s)
            w0, w1, w2 = get(x, body + _W, s)
            put(x, body + _TWIST, s, a0 + l0 * v, a1 + l1 * v, a2 + l2 * v)
            put(x, body + _TWIST + 3, s, b0 + w0 * v, b1 + w1 * v, b2 + w2 * v)
        for s in range(lanes):  # d/dt of a world screw is V x S
            v = get1(x, v_row + i, s)
            a0, a1, a2 = get(x, body + _TWIST, s)
            b0, b1, b2 = get(x, body + _TWIST + 3, s)
            l0, l1, l2 = get(x, body + _L, s)
            w0, w1, w2 = get(x, body + _W, s)
            c0, c1, c2 = cross(b0, b1, b2, l0, l1, l2)
            d0, d1, d2 = cross(a0, a1, a2, w0, w1, w2)
            e0, e1, e2 = cross(b0, b1, b2, w0, w1, w2)
            r0, r1, r2 = get(x, above + _RATE, s)
            t0, t1, t2 = get(x, above + _RATE + 3, s)
            put(x, body + _RATE, s, r0 + (c0 + d0) * v, r1 + (c1 + d1) * v, r2 + (c2 + d2) * v)
            put(x, body + _RATE + 3, s, t0 + e0 * v, t1 + e1 * v, t2 + e2 * v)


@helper
def _point(x, body, point, s):  # type: ignore[no-untyped-def]
    """Velocity and acceleration of a world point that a body carries."""
    p0, p1, p2 = get(x, point, s)
    v0, v1, v2 = get(x, body + _TWIST, s)
    w0, w1, w2 = get(x, body + _TWIST + 3, s)
    r0, r1, r2 = get(x, body + _RATE, s)
    t0, t1, t2 = get(x, body + _RATE + 3, s)
    c0, c1, c2 = cross(w0, w1, w2, p0, p1, p2)
    v0, v1, v2 = v0 + c0, v1 + c1, v2 + c2
    d0, d1, d2 = cross(t0, t1, t2, p0, p1, p2)
    e0, e1, e2 = cross(w0, w1, w2, v0, v1, v2)
    return v0, v1, v2, r0 + d0 + e0, r1 + d1 + e1, r2 + d2 + e2


@helper
def _drift_row(x, frame, kind, axis, out, lanes) -> None:  # type: ignore[no-untyped-def]
    """One component of a closure's second derivative, from the rates of ``e`` and ``u`` in its scratch."""
    if kind == 0:
        for s in range(lanes):
            put1(x, out, s, get1(x, frame + 36 + axis, s))
        return
    for s in range(lanes):
        c0, c1, c2 = _turn_coefficients(x, frame + 24, kind, axis, s)
        n0, n1, n2 = get(x, frame + 42, s)
        value = c0 * n0 + c1 * n1 + c2 * n2
        if kind >= 2:  # the coefficients turn with b: u_m (u x b)_k - u_k (u x b)_m
            i, j = (axis + 1) % 3, (axis + 2) % 3
            k = j if kind == 2 else i
            u0, u1, u2 = get(x, frame + 39, s)
            b0, b1, b2 = (
                get1(x, frame + 24 + k, s),
                get1(x, frame + 27 + k, s),
                get1(x, frame + 30 + k, s),
            )
            b0, b1, b2 = cross(u0, u1, u2, b0, b1, b2)
            u_m = u0 if axis == 0 else (u1 if axis == 1 else u2)
            u_k = u0 if k == 0 else (u1 if k == 1 else u2)
            b_m = b0 if axis == 0 else (b1 if axis == 1 else b2)
            b_k = b0 if k == 0 else (b1 if k == 1 else b2)
            value += u_m * b_k - u_k * b_m
        put1(x, out, s, value)


@helper
def drift_of_residuals(x, closures, rows, out, lanes) -> None:  # type: ignore[no-untyped-def]
    """``(dJ/dt) v`` of every residual: its second derivative while joints do not accelerate."""
    bodies, _, row_start, row_kind, row_axis = closures[0], closures[1], closures[2], closures[3], closures[4]
    frame = rows[2]
    for c in range(row_start.shape[0] - 1):
        if row_kind[row_start[c]] == 4:
            _tied(x, c, closures, rows[0], rows[9] + 4, 2, out + row_start[c], lanes)
            continue
        _closure(x, c, closures, frame, lanes)
        first, second = BODY_ROWS * (bodies[c, 0] + 1), BODY_ROWS * (bodies[c, 1] + 1)
        for s in range(lanes):
            va0, va1, va2, aa0, aa1, aa2 = _point(x, first, frame + _P, s)
            vb0, vb1, vb2, ab0, ab1, ab2 = _point(x, second, frame + 12 + _P, s)
            w0, w1, w2 = get(x, first + _TWIST + 3, s)
            t0, t1, t2 = get(x, first + _RATE + 3, s)
            a0, a1, a2 = get(x, frame + _P, s)
            b0, b1, b2 = get(x, frame + 12 + _P, s)
            d0, d1, d2 = b0 - a0, b1 - a1, b2 - a2
            f0, f1, f2 = vb0 - va0, vb1 - va1, vb2 - va2
            c0, c1, c2 = cross(w0, w1, w2, d0, d1, d2)
            # w x (w x d) - 2 w x d' = -w x (2 d' - w x d)
            g0, g1, g2 = cross(w0, w1, w2, 2.0 * f0 - c0, 2.0 * f1 - c1, 2.0 * f2 - c2)
            h0, h1, h2 = cross(t0, t1, t2, d0, d1, d2)
            e0, e1, e2 = ab0 - aa0 - h0 - g0, ab1 - aa1 - h1 - g1, ab2 - aa2 - h2 - g2
            e0, e1, e2 = turn_back(x, frame, s, e0, e1, e2)
            put(x, frame + 36, s, e0, e1, e2)
            # u = R_A^T w_rel and its rate R_A^T (alpha_rel - w_A x w_rel)
            m0, m1, m2 = get(x, second + _TWIST + 3, s)
            n0, n1, n2 = get(x, second + _RATE + 3, s)
            m0, m1, m2 = m0 - w0, m1 - w1, m2 - w2
            k0, k1, k2 = cross(w0, w1, w2, m0, m1, m2)
            u0, u1, u2 = turn_back(x, frame, s, m0, m1, m2)
            put(x, frame + 39, s, u0, u1, u2)
            n0, n1, n2 = turn_back(x, frame, s, n0 - t0 - k0, n1 - t1 - k1, n2 - t2 - k2)
            put(x, frame + 42, s, n0, n1, n2)
        for r in range(row_start[c], row_start[c + 1]):
            _drift_row(x, frame, row_kind[r], row_axis[r], out + r, lanes)
