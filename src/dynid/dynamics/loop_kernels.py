"""Compiled loops of closed chains: Newton steps of the passive joints, and the motion that the actuated ones force on them.

Passive columns ``J_p`` of the Jacobian in :mod:`dynid.dynamics.closure_kernels` are solved in the normal equations ``J_p^T J_p``,
whose pattern of zeros is known before: redundant closures (a planar loop in space) add rows and change nothing else. A pivot that
nearly vanishes is a singular pose.
"""

from __future__ import annotations

import math

import numpy as np

from dynid.dynamics.closure_kernels import (
    drift_of_residuals,
    jacobian,
    turn_angles,
    turn_further,
    world_poses,
    world_twists,
)
from dynid.dynamics.lanes import LANES, get1, helper, kernel, put1

CLOSED, OPEN, SINGULAR = 0, 1, 2

NEARLY_SINGULAR = 1e-11
"""Share of a passive column that the others must leave, squared."""

SMALL_TURN = 0.05
"""rad of a Newton step up to which cosine and sine are carried on instead of computed anew."""
SETTLED = 1e-7
"""rad or m: a Newton step so small leaves an error of about its square."""


@helper
def _start(size):  # type: ignore[no-untyped-def]
    """A workspace whose ground stands at the origin."""
    x = np.zeros(size * LANES)
    for s in range(LANES):
        put1(x, 0, s, 1.0)
        put1(x, 4, s, 1.0)
        put1(x, 8, s, 1.0)
    return x


@helper
def _add_product(x, target, left, right, factor, lanes) -> None:  # type: ignore[no-untyped-def]
    for s in range(lanes):
        put1(x, target, s, get1(x, target, s) + factor * get1(x, left, s) * get1(x, right, s))


@helper
def _clear(x, first, count, lanes) -> None:  # type: ignore[no-untyped-def]
    for row in range(first, first + count):
        for s in range(lanes):
            put1(x, row, s, 0.0)


@helper
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
        put1(x, worst, s, 1.0)
        put1(x, worst + 1, s, -1.0)
    for j in range(n):
        diagonal = normal + j * n + j
        for s in range(lanes):
            put1(x, worst + 2, s, get1(x, diagonal, s))
        for k in range(j):
            if fill[j, k]:
                _add_product(x, diagonal, normal + j * n + k, normal + j * n + k, -1.0, lanes)
        for s in range(lanes):
            whole, left = get1(x, worst + 2, s), get1(x, diagonal, s)
            share = left / whole if whole > 0.0 else 0.0
            if share < get1(x, worst, s):
                put1(x, worst, s, share)
                put1(x, worst + 1, s, float(j))
            put1(x, diagonal, s, 1.0 / math.sqrt(max(left, 1e-14 * whole + 1e-300)))
        for i in range(j + 1, n):
            if not fill[i, j]:
                continue
            at = normal + i * n + j
            for k in range(j):
                if fill[i, k] and fill[j, k]:
                    _add_product(x, at, normal + i * n + k, normal + j * n + k, -1.0, lanes)
            for s in range(lanes):
                put1(x, at, s, get1(x, at, s) * get1(x, diagonal, s))


@helper
def _solve(x, normal, fill, right, lanes) -> None:  # type: ignore[no-untyped-def]
    """The right-hand side in its place becomes the solution of the normal equations."""
    n = fill.shape[0]
    for i in range(n):
        for k in range(i):
            if fill[i, k]:
                _add_product(x, right + i, normal + i * n + k, right + k, -1.0, lanes)
        for s in range(lanes):
            put1(x, right + i, s, get1(x, right + i, s) * get1(x, normal + i * n + i, s))
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            if fill[k, i]:
                _add_product(x, right + i, normal + k * n + i, right + k, -1.0, lanes)
        for s in range(lanes):
            put1(x, right + i, s, get1(x, right + i, s) * get1(x, normal + i * n + i, s))


@helper
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


@kernel
def close(q, tree, closures, order, most, farthest, status, where, size) -> None:  # type: ignore[no-untyped-def]
    """Newton steps on the passive entries of tree positions ``q`` until all closures hold.

    ``status`` says of each sample whether it closed, stayed open or is singular; ``where`` the residual that is largest or the
    passive joint whose column is not independent; ``size`` the largest residual or the share of that column.
    """
    passive, passive_joint, _, fill, rows = order
    n, n_rows = fill.shape[0], closures[3].shape[0]
    x = _start(rows[11])
    right, circle = rows[6], rows[10]
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        for s in range(lanes):
            for j in range(q.shape[1]):
                put1(x, rows[0] + j, s, q[sample + s, j])
        fresh = True
        for _ in range(most):
            if fresh:
                turn_angles(x, rows[0], circle, tree, lanes)
            world_poses(x, rows[0], rows[1], circle, tree, lanes)
            jacobian(x, closures, rows, lanes)
            _factor(x, closures, passive, fill, rows, lanes)
            _passive_part(x, closures, passive, n, rows, rows[3], right, lanes)
            _solve(x, rows[5], fill, right, lanes)
            largest = 0.0
            for s in range(lanes):
                step = 0.0
                for i in range(n):
                    step = max(step, abs(get1(x, right + i, s)))
                put1(x, rows[9] + 3, s, min(1.0, farthest / step) if step > 0.0 else 1.0)
                largest = max(largest, step)
            fresh = largest > SMALL_TURN
            for i in range(n):
                joint = passive_joint[i]
                if fresh:
                    _add_product(x, rows[0] + joint, right + i, rows[9] + 3, 1.0, lanes)
                else:
                    for s in range(lanes):
                        put1(x, rows[0] + joint, s, get1(x, rows[0] + joint, s) + get1(x, right + i, s))
                    turn_further(x, right + i, circle + 2 * joint, lanes)
            if largest < SETTLED:
                break
        for s in range(lanes):
            worst, at, step = 0.0, 0, 0.0
            for r in range(n_rows):
                if abs(get1(x, rows[3] + r, s)) > worst:
                    worst, at = abs(get1(x, rows[3] + r, s)), r
            for i in range(n):
                step = max(step, abs(get1(x, right + i, s)))
                q[sample + s, passive_joint[i]] = get1(x, rows[0] + passive_joint[i], s)
            share = get1(x, rows[9], s)
            status[sample + s], where[sample + s], size[sample + s] = CLOSED, at, worst
            if not worst < 1e-6:
                status[sample + s] = OPEN
            elif share < NEARLY_SINGULAR or not step < 1e-6:  # Newton steps only halve the error where two branches meet
                status[sample + s], where[sample + s] = SINGULAR, passive_joint[int(get1(x, rows[9] + 1, s))]
                size[sample + s] = share


@kernel
def follow(q, v, a, tree, closures, order, moving, G, v_tree, a_tree, share, least) -> None:  # type: ignore[no-untyped-def]
    """``G`` at closed positions, and where ``moving`` the tree's velocities and accelerations under the actuated ones."""
    passive, passive_joint, actuated_joint, fill, rows = order
    _, _, row_start, _, _, side_start, side_joint, _, entry_start, _ = closures
    n, n_actuated = fill.shape[0], actuated_joint.shape[0]
    x = _start(rows[11])
    right, gains, drift = rows[6], rows[7], rows[8]
    velocity = rows[9] + 4
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        for s in range(lanes):
            for j in range(q.shape[1]):
                put1(x, rows[0] + j, s, q[sample + s, j])
        turn_angles(x, rows[0], rows[10], tree, lanes)
        world_poses(x, rows[0], rows[1], rows[10], tree, lanes)
        jacobian(x, closures, rows, lanes)
        _factor(x, closures, passive, fill, rows, lanes)
        for s in range(lanes):
            share[sample + s], least[sample + s] = get1(x, rows[9], s), passive_joint[int(get1(x, rows[9] + 1, s))]
        for k in range(n_actuated):
            _clear(x, drift, row_start[row_start.shape[0] - 1], lanes)
            for c in range(row_start.shape[0] - 1):
                n_sides = side_start[c + 1] - side_start[c]
                for m in range(n_sides):
                    if side_joint[side_start[c] + m] == actuated_joint[k]:
                        for r in range(row_start[c], row_start[c + 1]):
                            at = rows[4] + entry_start[c] + (r - row_start[c]) * n_sides + m
                            for s in range(lanes):
                                put1(x, drift + r, s, get1(x, at, s))
            _passive_part(x, closures, passive, n, rows, drift, gains + k * n, lanes)
            _solve(x, rows[5], fill, gains + k * n, lanes)
            for s in range(lanes):
                G[sample + s, actuated_joint[k], k] = 1.0
                for i in range(n):
                    G[sample + s, passive_joint[i], k] = get1(x, gains + k * n + i, s)
        if not moving:
            continue
        for s in range(lanes):
            for k in range(n_actuated):
                put1(x, velocity + actuated_joint[k], s, v[sample + s, k])
            for i in range(n):
                total = 0.0
                for k in range(n_actuated):
                    total += get1(x, gains + k * n + i, s) * v[sample + s, k]
                put1(x, velocity + passive_joint[i], s, total)
        world_twists(x, velocity, tree, lanes)
        drift_of_residuals(x, closures, rows, drift, lanes)
        _passive_part(x, closures, passive, n, rows, drift, right, lanes)
        _solve(x, rows[5], fill, right, lanes)
        for s in range(lanes):
            for j in range(q.shape[1]):
                v_tree[sample + s, j] = get1(x, velocity + j, s)
            for k in range(n_actuated):
                a_tree[sample + s, actuated_joint[k]] = a[sample + s, k]
            for i in range(n):
                total = get1(x, right + i, s)
                for k in range(n_actuated):
                    total += get1(x, gains + k * n + i, s) * a[sample + s, k]
                a_tree[sample + s, passive_joint[i]] = total
