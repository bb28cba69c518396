"""Compiled loops of closed chains: Newton steps of the passive joints, and the motion that the actuated ones force on them.

Blocks of samples lie side by side in lanes, as in :mod:`dynid.regression.kernel`: every quantity is a lane row of one flat
workspace, and the loops over lanes become vector instructions. World poses come first; the screw of joint ``i`` at the world's
origin is ``(l, w)``, so a point ``x`` moves with ``l + w x x``. A closure between frames A and B has the residual

    e = R_A^T (x_B - x_A),     R = R_A^T R_B

and joint ``i`` between them changes it by ``s R_A^T (l + w x x_B)`` and turns ``R`` by ``u = s R_A^T w``, ``s = 1`` on the side of
B and ``-1`` on that of A. Turns that are closed are measured by ``vee(R - R^T) / 2`` where all three are, by the components of
``axis x R axis`` where one axis stays free, and by ``R[j, i]`` where one turn alone is closed. A tie of two joints has the residual
``q_B - p(q_A)`` with a polynomial ``p``.

Passive columns ``J_p`` are solved in the normal equations ``J_p^T J_p``, whose pattern of zeros is known before: redundant
closures (a planar loop in space) add rows and change nothing else. A pivot that nearly vanishes is a singular pose.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynid.adapters.numba import njit

LANES = 32
BODY_ROWS = 30
"""Lane rows of a body: rotation, origin, screw ``w`` and ``l`` of its joint, twist, spatial acceleration at rest of the motors."""
_P, _W, _L, _TWIST, _RATE = 9, 12, 15, 18, 24
_FRAME_ROWS = 48
"""Scratch of one closure: frame A, frame B, R, e, then its motion."""

CLOSED, OPEN, SINGULAR = 0, 1, 2

TRANSLATION, ALL_TURNS, TURN_BEFORE_FREE, TURN_AFTER_FREE, JOINTS = 0, 1, 2, 3, 4
"""Kinds of a residual. With one free axis ``k``, the turn about ``k + 1`` comes before it in the cycle, that about ``k + 2`` after
it; a turn that is closed alone is treated like the latter."""

NEARLY_SINGULAR = 1e-11
"""Share of a passive column that the others must leave, squared."""

SMALL_TURN = 0.05
"""rad of a Newton step up to which cosine and sine are carried on instead of computed anew."""
SETTLED = 1e-7
"""rad or m: a Newton step so small leaves an error of about its square."""

_compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})


@_compiled
def _get(x, row, s):  # type: ignore[no-untyped-def]
    at = row * LANES + s
    return x[np.uint64(at)], x[np.uint64(at + LANES)], x[np.uint64(at + 2 * LANES)]


@_compiled
def _put(x, row, s, first, second, third) -> None:  # type: ignore[no-untyped-def]
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
    """``R a``."""
    r0, r1, r2 = _get(x, rotation, s)
    r3, r4, r5 = _get(x, rotation + 3, s)
    r6, r7, r8 = _get(x, rotation + 6, s)
    return r0 * a0 + r1 * a1 + r2 * a2, r3 * a0 + r4 * a1 + r5 * a2, r6 * a0 + r7 * a1 + r8 * a2


@_compiled
def _turned_back(x, rotation, s, a0, a1, a2):  # type: ignore[no-untyped-def]
    """``R^T a``."""
    r0, r1, r2 = _get(x, rotation, s)
    r3, r4, r5 = _get(x, rotation + 3, s)
    r6, r7, r8 = _get(x, rotation + 6, s)
    return r0 * a0 + r3 * a1 + r6 * a2, r1 * a0 + r4 * a1 + r7 * a2, r2 * a0 + r5 * a1 + r8 * a2


@_compiled
def _start(tree, size):  # type: ignore[no-untyped-def]
    """A workspace whose ground stands at the origin."""
    x = np.zeros(size * LANES)
    for s in range(LANES):
        _put1(x, 0, s, 1.0)
        _put1(x, 4, s, 1.0)
        _put1(x, 8, s, 1.0)
    return x


@_compiled
def _turn_angles(x, q_row, circle, tree, lanes) -> None:  # type: ignore[no-untyped-def]
    """Cosine and sine of every turning joint."""
    screw = tree[3]
    for i in range(screw.shape[0]):
        if screw[i, 3] != 0.0 or screw[i, 4] != 0.0 or screw[i, 5] != 0.0:
            for s in range(lanes):
                angle = _get1(x, q_row + i, s)
                _put1(x, circle + 2 * i, s, math.cos(angle))
                _put1(x, circle + 2 * i + 1, s, math.sin(angle))


@_compiled
def _turn_further(x, step, circle, lanes) -> None:  # type: ignore[no-untyped-def]
    """Cosine and sine after a small step: series of the step, exact to rounding up to ``SMALL_TURN``."""
    for s in range(lanes):
        d = _get1(x, step, s)
        c, r = _get1(x, circle, s), _get1(x, circle + 1, s)
        z = d * d
        sine = d * (1.0 - z / 6.0 * (1.0 - z / 20.0 * (1.0 - z / 42.0 * (1.0 - z / 72.0))))
        less = z / 2.0 * (1.0 - z / 12.0 * (1.0 - z / 30.0 * (1.0 - z / 56.0)))
        _put1(x, circle, s, c - (c * less + r * sine))
        _put1(x, circle + 1, s, r - (r * less - c * sine))


@_compiled
def _poses(x, q_row, scratch, circle, tree, lanes) -> None:  # type: ignore[no-untyped-def]
    """World pose of every body and world screw of its joint."""
    parent, rotation, translation, screw = tree
    for i in range(parent.shape[0]):
        body, above, turned = BODY_ROWS * (i + 1), BODY_ROWS * (parent[i] + 1), circle + 2 * i
        for k in range(rotation.shape[2]):  # pose in the parent, into scratch
            m0, m1, m2 = rotation[i, 0, k], rotation[i, 1, k], rotation[i, 2, k]
            for s in range(lanes):
                _put1(x, scratch + 2 + k, s, m0 + m1 * _get1(x, turned, s) + m2 * _get1(x, turned + 1, s))
        for k in range(translation.shape[2]):
            p0, p1, p2, p3 = translation[i, 0, k], translation[i, 1, k], translation[i, 2, k], translation[i, 3, k]
            for s in range(lanes):
                arc = p1 * _get1(x, turned, s) + p2 * _get1(x, turned + 1, s)
                _put1(x, scratch + 11 + k, s, p0 + arc + p3 * _get1(x, q_row + i, s))
        for k in range(3):
            for s in range(lanes):
                a0, a1, a2 = _get(x, above + 3 * k, s)
                r0, r1, r2 = _get(x, scratch + 2, s)
                r3, r4, r5 = _get(x, scratch + 5, s)
                r6, r7, r8 = _get(x, scratch + 8, s)
                b0, b1, b2 = a0 * r0 + a1 * r3 + a2 * r6, a0 * r1 + a1 * r4 + a2 * r7, a0 * r2 + a1 * r5 + a2 * r8
                _put(x, body + 3 * k, s, b0, b1, b2)
        l0, l1, l2, w0, w1, w2 = screw[i, 0], screw[i, 1], screw[i, 2], screw[i, 3], screw[i, 4], screw[i, 5]
        for s in range(lanes):
            t0, t1, t2 = _get(x, scratch + 11, s)
            t0, t1, t2 = _turned(x, above, s, t0, t1, t2)
            p0, p1, p2 = _get(x, above + _P, s)
            _put(x, body + _P, s, p0 + t0, p1 + t1, p2 + t2)
        for s in range(lanes):
            u0, u1, u2 = _turned(x, body, s, w0, w1, w2)
            m0, m1, m2 = _turned(x, body, s, l0, l1, l2)
            p0, p1, p2 = _get(x, body + _P, s)
            c0, c1, c2 = _cross(p0, p1, p2, u0, u1, u2)
            _put(x, body + _W, s, u0, u1, u2)
            _put(x, body + _L, s, m0 + c0, m1 + c1, m2 + c2)


@_compiled
def _frame(x, body, placement, out, lanes) -> None:  # type: ignore[no-untyped-def]
    """World pose of a frame fixed to a body: nine rows of rotation, three of its origin."""
    for k in range(3):
        for c in range(3):
            m0, m1, m2 = placement[0, c], placement[1, c], placement[2, c]
            for s in range(lanes):
                a0, a1, a2 = _get(x, body + 3 * k, s)
                _put1(x, out + 3 * k + c, s, a0 * m0 + a1 * m1 + a2 * m2)
    t0, t1, t2 = placement[0, 3], placement[1, 3], placement[2, 3]
    for s in range(lanes):
        b0, b1, b2 = _turned(x, body, s, t0, t1, t2)
        p0, p1, p2 = _get(x, body + _P, s)
        _put(x, out + _P, s, p0 + b0, p1 + b1, p2 + b2)


@_compiled
def _closure(x, c, closures, frame, lanes) -> None:  # type: ignore[no-untyped-def]
    """Frames A and B of a closure, then ``R`` and ``e``."""
    bodies, placements = closures[0], closures[1]
    _frame(x, BODY_ROWS * (bodies[c, 0] + 1), placements[c, 0], frame, lanes)
    _frame(x, BODY_ROWS * (bodies[c, 1] + 1), placements[c, 1], frame + 12, lanes)
    for k in range(3):
        for s in range(lanes):
            b0, b1, b2 = (
                _get1(x, frame + 12 + k, s),
                _get1(x, frame + 15 + k, s),
                _get1(x, frame + 18 + k, s),
            )
            r0, r1, r2 = _turned_back(x, frame, s, b0, b1, b2)
            _put1(x, frame + 24 + k, s, r0)
            _put1(x, frame + 27 + k, s, r1)
            _put1(x, frame + 30 + k, s, r2)
    for s in range(lanes):
        a0, a1, a2 = _get(x, frame + _P, s)
        b0, b1, b2 = _get(x, frame + 12 + _P, s)
        e0, e1, e2 = _turned_back(x, frame, s, b0 - a0, b1 - a1, b2 - a2)
        _put(x, frame + 33, s, e0, e1, e2)


@_compiled
def _turn_coefficients(x, R, kind, axis, s):  # type: ignore[no-untyped-def]
    """Coefficients of ``u`` in the rate of a closed turn."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    c = (0.0, 0.0, 0.0)
    if kind == 1:  # all three turns: row ``axis`` of (tr(R) - R) / 2
        half = 0.5 * (_get1(x, R, s) + _get1(x, R + 4, s) + _get1(x, R + 8, s))
        r0, r1, r2 = _get(x, R + 3 * axis, s)
        c = (
            (half if axis == 0 else 0.0) - 0.5 * r0,
            (half if axis == 1 else 0.0) - 0.5 * r1,
            (half if axis == 2 else 0.0) - 0.5 * r2,
        )
    else:  # b = R k of the axis k that stays free, or is crossed: u_m b_k - u_k b_m
        k = j if kind == 2 else i
        b_k, b_m = _get1(x, R + 3 * k + k, s), _get1(x, R + 3 * axis + k, s)
        c = (
            (b_k if axis == 0 else 0.0) - (b_m if k == 0 else 0.0),
            (b_k if axis == 1 else 0.0) - (b_m if k == 1 else 0.0),
            (b_k if axis == 2 else 0.0) - (b_m if k == 2 else 0.0),
        )
    return c


@_compiled
def _residual(x, frame, kind, axis, out, lanes) -> None:  # type: ignore[no-untyped-def]
    """One component of a closure's residual."""
    R, i, j = frame + 24, (axis + 1) % 3, (axis + 2) % 3
    for s in range(lanes):
        if kind == 0:
            value = _get1(x, frame + 33 + axis, s)
        elif kind == 1:
            value = 0.5 * (_get1(x, R + 3 * j + i, s) - _get1(x, R + 3 * i + j, s))
        elif kind == 2:
            value = -_get1(x, R + 3 * i + j, s)
        else:
            value = _get1(x, R + 3 * j + i, s)
        _put1(x, out, s, value)


@_compiled
def _tied(x, c, closures, q_row, v_row, order, out, lanes) -> None:  # type: ignore[no-untyped-def]
    """Of a tie of joints: its residual (order 0), minus the slope of its polynomial (1), its second derivative in time (2)."""
    follower, leader, p = closures[0][c, 0], closures[0][c, 1], closures[9]
    for s in range(lanes):
        at = _get1(x, q_row + leader, s) if leader >= 0 else 0.0
        value = 0.0
        for k in range(p.shape[1] - 1, -1, -1):
            if order == 0:
                value = value * at + p[c, k]
            elif order == 1 and k >= 1:
                value = value * at + k * p[c, k]
            elif order == 2 and k >= 2:
                value = value * at + k * (k - 1) * p[c, k]
        if order == 0:
            value = _get1(x, q_row + follower, s) - value
        elif order == 1:
            value = -value
        else:
            rate = _get1(x, v_row + leader, s) if leader >= 0 else 0.0
            value = -value * rate * rate
        _put1(x, out, s, value)


@_compiled
def _jacobian(x, closures, rows, lanes) -> None:  # type: ignore[no-untyped-def]
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
                        _put1(x, entries + entry_start[c] + k, s, 1.0)
            continue
        _closure(x, c, closures, frame, lanes)
        for r in range(row_start[c], row_start[c + 1]):
            _residual(x, frame, row_kind[r], row_axis[r], residual + r, lanes)
        for k in range(n_sides):
            joint, sign = BODY_ROWS * (side_joint[side_start[c] + k] + 1), side_sign[side_start[c] + k]
            for s in range(lanes):
                w0, w1, w2 = _get(x, joint + _W, s)
                l0, l1, l2 = _get(x, joint + _L, s)
                b0, b1, b2 = _get(x, frame + 12 + _P, s)
                c0, c1, c2 = _cross(w0, w1, w2, b0, b1, b2)
                t0, t1, t2 = _turned_back(x, frame, s, sign * (l0 + c0), sign * (l1 + c1), sign * (l2 + c2))
                _put(x, frame + 36, s, t0, t1, t2)
                u0, u1, u2 = _turned_back(x, frame, s, sign * w0, sign * w1, sign * w2)
                _put(x, frame + 39, s, u0, u1, u2)
            for r in range(row_start[c], row_start[c + 1]):
                at = entries + entry_start[c] + (r - row_start[c]) * n_sides + k
                if row_kind[r] == 0:
                    for s in range(lanes):
                        _put1(x, at, s, _get1(x, frame + 36 + row_axis[r], s))
                else:
                    for s in range(lanes):
                        c0, c1, c2 = _turn_coefficients(x, frame + 24, row_kind[r], row_axis[r], s)
                        u0, u1, u2 = _get(x, frame + 39, s)
                        _put1(x, at, s, c0 * u0 + c1 * u1 + c2 * u2)


@_compiled
def _add_product(x, target, left, right, factor, lanes) -> None:  # type: ignore[no-untyped-def]
    for s in range(lanes):
        _put1(x, target, s, _get1(x, target, s) + factor * _get1(x, left, s) * _get1(x, right, s))


@_compiled
def _clear(x, first, count, lanes) -> None:  # type: ignore[no-untyped-def]
    for row in range(first, first + count):
        for s in range(lanes):
            _put1(x, row, s, 0.0)


@_compiled
def _factor(x, closures, passive, fill, rows, lanes) -> None:  # type: ignore[no-untyped-def]
    """Cholesky factor of ``J_p^T J_p``, reciprocals on the diagonal; the smallest pivot's share and place per lane."""
    _, _, row_start, _, _, side_start, side_joint, _, entry_start, _ = closures
    entries, normal, worst = rows[4], rows[5], rows[9]
    n = fill.shape[0]
    for i in range(n):
        for j in range(i + 1):
            if fill[i, j]:
                _clear(x, normal + i * n + j, 1, lanes)
    for c in range(row_start.shape[0] - 1):
        n_sides = side_start[c + 1] - side_start[c]
        for k in range(n_sides):
            i = passive[side_joint[side_start[c] + k]]
            if i < 0:
                continue
            for m in range(n_sides):
                j = passive[side_joint[side_start[c] + m]]
                if j < 0 or j > i:
                    continue
                for r in range(row_start[c + 1] - row_start[c]):
                    at = entries + entry_start[c] + r * n_sides
                    _add_product(x, normal + i * n + j, at + k, at + m, 1.0, lanes)
    for s in range(lanes):
        _put1(x, worst, s, 1.0)
        _put1(x, worst + 1, s, -1.0)
    for j in range(n):
        diagonal = normal + j * n + j
        for s in range(lanes):
            _put1(x, worst + 2, s, _get1(x, diagonal, s))
        for k in range(j):
            if fill[j, k]:
                _add_product(x, diagonal, normal + j * n + k, normal + j * n + k, -1.0, lanes)
        for s in range(lanes):
            whole, left = _get1(x, worst + 2, s), _get1(x, diagonal, s)
            share = left / whole if whole > 0.0 else 0.0
            if share < _get1(x, worst, s):
                _put1(x, worst, s, share)
                _put1(x, worst + 1, s, float(j))
            _put1(x, diagonal, s, 1.0 / math.sqrt(max(left, 1e-14 * whole + 1e-300)))
        for i in range(j + 1, n):
            if not fill[i, j]:
                continue
            at = normal + i * n + j
            for k in range(j):
                if fill[i, k] and fill[j, k]:
                    _add_product(x, at, normal + i * n + k, normal + j * n + k, -1.0, lanes)
            for s in range(lanes):
                _put1(x, at, s, _get1(x, at, s) * _get1(x, diagonal, s))


@_compiled
def _solve(x, normal, fill, right, lanes) -> None:  # type: ignore[no-untyped-def]
    """The right-hand side in its place becomes the solution of the normal equations."""
    n = fill.shape[0]
    for i in range(n):
        for k in range(i):
            if fill[i, k]:
                _add_product(x, right + i, normal + i * n + k, right + k, -1.0, lanes)
        for s in range(lanes):
            _put1(x, right + i, s, _get1(x, right + i, s) * _get1(x, normal + i * n + i, s))
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            if fill[k, i]:
                _add_product(x, right + i, normal + k * n + i, right + k, -1.0, lanes)
        for s in range(lanes):
            _put1(x, right + i, s, _get1(x, right + i, s) * _get1(x, normal + i * n + i, s))


@_compiled
def _passive_part(x, closures, passive, n, rows, values, right, lanes) -> None:  # type: ignore[no-untyped-def]
    """``-J_p^T y`` of one lane row ``y`` per residual."""
    _, _, row_start, _, _, side_start, side_joint, _, entry_start, _ = closures
    _clear(x, right, n, lanes)
    for c in range(row_start.shape[0] - 1):
        n_sides = side_start[c + 1] - side_start[c]
        for k in range(n_sides):
            i = passive[side_joint[side_start[c] + k]]
            if i >= 0:
                for r in range(row_start[c], row_start[c + 1]):
                    at = rows[4] + entry_start[c] + (r - row_start[c]) * n_sides + k
                    _add_product(x, right + i, at, values + r, -1.0, lanes)


@_compiled
def close(q, tree, closures, order, most, farthest, status, where, size) -> None:  # type: ignore[no-untyped-def]
    """Newton steps on the passive entries of tree positions ``q`` until all closures hold.

    ``status`` says of each sample whether it closed, stayed open or is singular; ``where`` the residual that is largest or the
    passive joint whose column is not independent; ``size`` the largest residual or the share of that column.
    """
    passive, passive_joint, _, fill, rows = order
    n, n_rows = fill.shape[0], closures[3].shape[0]
    x = _start(tree, rows[11])
    right, circle = rows[6], rows[10]
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        for s in range(lanes):
            for j in range(q.shape[1]):
                _put1(x, rows[0] + j, s, q[sample + s, j])
        fresh = True
        for _ in range(most):
            if fresh:
                _turn_angles(x, rows[0], circle, tree, lanes)
            _poses(x, rows[0], rows[1], circle, tree, lanes)
            _jacobian(x, closures, rows, lanes)
            _factor(x, closures, passive, fill, rows, lanes)
            _passive_part(x, closures, passive, n, rows, rows[3], right, lanes)
            _solve(x, rows[5], fill, right, lanes)
            largest = 0.0
            for s in range(lanes):
                step = 0.0
                for i in range(n):
                    step = max(step, abs(_get1(x, right + i, s)))
                _put1(x, rows[9] + 3, s, min(1.0, farthest / step) if step > 0.0 else 1.0)
                largest = max(largest, step)
            fresh = largest > SMALL_TURN
            for i in range(n):
                joint = passive_joint[i]
                if fresh:
                    _add_product(x, rows[0] + joint, right + i, rows[9] + 3, 1.0, lanes)
                else:
                    for s in range(lanes):
                        _put1(x, rows[0] + joint, s, _get1(x, rows[0] + joint, s) + _get1(x, right + i, s))
                    _turn_further(x, right + i, circle + 2 * joint, lanes)
            if largest < SETTLED:
                break
        for s in range(lanes):
            worst, at, step = 0.0, 0, 0.0
            for r in range(n_rows):
                if abs(_get1(x, rows[3] + r, s)) > worst:
                    worst, at = abs(_get1(x, rows[3] + r, s)), r
            for i in range(n):
                step = max(step, abs(_get1(x, right + i, s)))
                q[sample + s, passive_joint[i]] = _get1(x, rows[0] + passive_joint[i], s)
            share = _get1(x, rows[9], s)
            status[sample + s], where[sample + s], size[sample + s] = CLOSED, at, worst
            if not worst < 1e-6:
                status[sample + s] = OPEN
            elif share < NEARLY_SINGULAR or not step < 1e-6:  # Newton steps only halve the error where two branches meet
                status[sample + s], where[sample + s] = SINGULAR, passive_joint[int(_get1(x, rows[9] + 1, s))]
                size[sample + s] = share


@_compiled
def _twists(x, v_row, tree, lanes) -> None:  # type: ignore[no-untyped-def]
    """Twist of every body at the world's origin and its spatial acceleration with no acceleration of joints."""
    parent = tree[0]
    for i in range(parent.shape[0]):
        body, above = BODY_ROWS * (i + 1), BODY_ROWS * (parent[i] + 1)
        for s in range(lanes):
            v = _get1(x, v_row + i, s)
            a0, a1, a2 = _get(x, above + _TWIST, s)
            b0, b1, b2 = _get(x, above + _TWIST + 3, s)
            l0, l1, l2 = _get(x, body + _L, s)
            w0, w1, w2 = _get(x, body + _W, s)
            _put(x, body + _TWIST, s, a0 + l0 * v, a1 + l1 * v, a2 + l2 * v)
            _put(x, body + _TWIST + 3, s, b0 + w0 * v, b1 + w1 * v, b2 + w2 * v)
        for s in range(lanes):  # d/dt of a world screw is V x S
            v = _get1(x, v_row + i, s)
            a0, a1, a2 = _get(x, body + _TWIST, s)
            b0, b1, b2 = _get(x, body + _TWIST + 3, s)
            l0, l1, l2 = _get(x, body + _L, s)
            w0, w1, w2 = _get(x, body + _W, s)
            c0, c1, c2 = _cross(b0, b1, b2, l0, l1, l2)
            d0, d1, d2 = _cross(a0, a1, a2, w0, w1, w2)
            e0, e1, e2 = _cross(b0, b1, b2, w0, w1, w2)
            r0, r1, r2 = _get(x, above + _RATE, s)
            t0, t1, t2 = _get(x, above + _RATE + 3, s)
            _put(x, body + _RATE, s, r0 + (c0 + d0) * v, r1 + (c1 + d1) * v, r2 + (c2 + d2) * v)
            _put(x, body + _RATE + 3, s, t0 + e0 * v, t1 + e1 * v, t2 + e2 * v)


@_compiled
def _point(x, body, point, s):  # type: ignore[no-untyped-def]
    """Velocity and acceleration of a world point that a body carries."""
    p0, p1, p2 = _get(x, point, s)
    v0, v1, v2 = _get(x, body + _TWIST, s)
    w0, w1, w2 = _get(x, body + _TWIST + 3, s)
    r0, r1, r2 = _get(x, body + _RATE, s)
    t0, t1, t2 = _get(x, body + _RATE + 3, s)
    c0, c1, c2 = _cross(w0, w1, w2, p0, p1, p2)
    v0, v1, v2 = v0 + c0, v1 + c1, v2 + c2
    d0, d1, d2 = _cross(t0, t1, t2, p0, p1, p2)
    e0, e1, e2 = _cross(w0, w1, w2, v0, v1, v2)
    return v0, v1, v2, r0 + d0 + e0, r1 + d1 + e1, r2 + d2 + e2


@_compiled
def _drift(x, closures, rows, out, lanes) -> None:  # type: ignore[no-untyped-def]
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
            w0, w1, w2 = _get(x, first + _TWIST + 3, s)
            t0, t1, t2 = _get(x, first + _RATE + 3, s)
            a0, a1, a2 = _get(x, frame + _P, s)
            b0, b1, b2 = _get(x, frame + 12 + _P, s)
            d0, d1, d2 = b0 - a0, b1 - a1, b2 - a2
            f0, f1, f2 = vb0 - va0, vb1 - va1, vb2 - va2
            c0, c1, c2 = _cross(w0, w1, w2, d0, d1, d2)
            # w x (w x d) - 2 w x d' = -w x (2 d' - w x d)
            g0, g1, g2 = _cross(w0, w1, w2, 2.0 * f0 - c0, 2.0 * f1 - c1, 2.0 * f2 - c2)
            h0, h1, h2 = _cross(t0, t1, t2, d0, d1, d2)
            e0, e1, e2 = ab0 - aa0 - h0 - g0, ab1 - aa1 - h1 - g1, ab2 - aa2 - h2 - g2
            e0, e1, e2 = _turned_back(x, frame, s, e0, e1, e2)
            _put(x, frame + 36, s, e0, e1, e2)
            # u = R_A^T w_rel and its rate R_A^T (alpha_rel - w_A x w_rel)
            m0, m1, m2 = _get(x, second + _TWIST + 3, s)
            n0, n1, n2 = _get(x, second + _RATE + 3, s)
            m0, m1, m2 = m0 - w0, m1 - w1, m2 - w2
            k0, k1, k2 = _cross(w0, w1, w2, m0, m1, m2)
            u0, u1, u2 = _turned_back(x, frame, s, m0, m1, m2)
            _put(x, frame + 39, s, u0, u1, u2)
            n0, n1, n2 = _turned_back(x, frame, s, n0 - t0 - k0, n1 - t1 - k1, n2 - t2 - k2)
            _put(x, frame + 42, s, n0, n1, n2)
        for r in range(row_start[c], row_start[c + 1]):
            kind, axis = row_kind[r], row_axis[r]
            if kind == 0:
                for s in range(lanes):
                    _put1(x, out + r, s, _get1(x, frame + 36 + axis, s))
                continue
            for s in range(lanes):
                c0, c1, c2 = _turn_coefficients(x, frame + 24, kind, axis, s)
                n0, n1, n2 = _get(x, frame + 42, s)
                value = c0 * n0 + c1 * n1 + c2 * n2
                if kind >= 2:  # the coefficients turn with b: u_m (u x b)_k - u_k (u x b)_m
                    i, j = (axis + 1) % 3, (axis + 2) % 3
                    k = j if kind == 2 else i
                    u0, u1, u2 = _get(x, frame + 39, s)
                    b0, b1, b2 = (
                        _get1(x, frame + 24 + k, s),
                        _get1(x, frame + 27 + k, s),
                        _get1(x, frame + 30 + k, s),
                    )
                    b0, b1, b2 = _cross(u0, u1, u2, b0, b1, b2)
                    u_m = u0 if axis == 0 else (u1 if axis == 1 else u2)
                    u_k = u0 if k == 0 else (u1 if k == 1 else u2)
                    b_m = b0 if axis == 0 else (b1 if axis == 1 else b2)
                    b_k = b0 if k == 0 else (b1 if k == 1 else b2)
                    value += u_m * b_k - u_k * b_m
                _put1(x, out + r, s, value)


@_compiled
def follow(q, v, a, tree, closures, order, moving, G, v_tree, a_tree, share, least) -> None:  # type: ignore[no-untyped-def]
    """``G`` at closed positions, and where ``moving`` the tree's velocities and accelerations under the actuated ones."""
    passive, passive_joint, actuated_joint, fill, rows = order
    _, _, row_start, _, _, side_start, side_joint, _, entry_start, _ = closures
    n, n_actuated = fill.shape[0], actuated_joint.shape[0]
    x = _start(tree, rows[11])
    right, gains, drift = rows[6], rows[7], rows[8]
    velocity = rows[9] + 4
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        for s in range(lanes):
            for j in range(q.shape[1]):
                _put1(x, rows[0] + j, s, q[sample + s, j])
        _turn_angles(x, rows[0], rows[10], tree, lanes)
        _poses(x, rows[0], rows[1], rows[10], tree, lanes)
        _jacobian(x, closures, rows, lanes)
        _factor(x, closures, passive, fill, rows, lanes)
        for s in range(lanes):
            share[sample + s], least[sample + s] = _get1(x, rows[9], s), passive_joint[int(_get1(x, rows[9] + 1, s))]
        for k in range(n_actuated):
            _clear(x, drift, row_start[row_start.shape[0] - 1], lanes)
            for c in range(row_start.shape[0] - 1):
                n_sides = side_start[c + 1] - side_start[c]
                for m in range(n_sides):
                    if side_joint[side_start[c] + m] == actuated_joint[k]:
                        for r in range(row_start[c], row_start[c + 1]):
                            at = rows[4] + entry_start[c] + (r - row_start[c]) * n_sides + m
                            for s in range(lanes):
                                _put1(x, drift + r, s, _get1(x, at, s))
            _passive_part(x, closures, passive, n, rows, drift, gains + k * n, lanes)
            _solve(x, rows[5], fill, gains + k * n, lanes)
            for s in range(lanes):
                G[sample + s, actuated_joint[k], k] = 1.0
                for i in range(n):
                    G[sample + s, passive_joint[i], k] = _get1(x, gains + k * n + i, s)
        if not moving:
            continue
        for s in range(lanes):
            for k in range(n_actuated):
                _put1(x, velocity + actuated_joint[k], s, v[sample + s, k])
            for i in range(n):
                total = 0.0
                for k in range(n_actuated):
                    total += _get1(x, gains + k * n + i, s) * v[sample + s, k]
                _put1(x, velocity + passive_joint[i], s, total)
        _twists(x, velocity, tree, lanes)
        _drift(x, closures, rows, drift, lanes)
        _passive_part(x, closures, passive, n, rows, drift, right, lanes)
        _solve(x, rows[5], fill, right, lanes)
        for s in range(lanes):
            for j in range(q.shape[1]):
                v_tree[sample + s, j] = _get1(x, velocity + j, s)
            for k in range(n_actuated):
                a_tree[sample + s, actuated_joint[k]] = a[sample + s, k]
            for i in range(n):
                total = _get1(x, right + i, s)
                for k in range(n_actuated):
                    total += _get1(x, gains + k * n + i, s) * a[sample + s, k]
                a_tree[sample + s, passive_joint[i]] = total


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
