"""Compiled rows of a chunk of samples: blocks of them side by side, one walk down the tree per block, no allocation inside.

For body ``i`` and every velocity index ``d`` that moves it, ``(l, s)`` is the screw of ``d`` in the frame of ``i``. With the
body's angular velocity ``w``, angular acceleration ``alpha`` and the acceleration ``b`` of its origin (gravity included),
Newton and Euler give the force and the moment about that origin

    f = m b + alpha x h + w x (w x h),    n = h x b + I alpha + w x I w,    h = m c,

and the torque of ``d`` is ``l . f + s . n``: linear in the ten parameters of ``i``. All kernels share the walk of
:mod:`dynid.dynamics.tree_walk`; torque, inverse dynamics and energy, which nearly every run needs, are one compiled kernel, because
most of its compilation is that of the walk. Arrays of samples and of the tree come read-only, so that each kernel is compiled for
one signature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding  # type: ignore[import-untyped]
from numba import types
from numba.extending import get_cython_function_address

from dynid.arrays import Array, IntArray
from dynid.compiled import announced
from dynid.dynamics.lanes import LANES, cross, get, get1, helper, kernel, part, put, put1
from dynid.dynamics.tree_walk import FALL, LIFT, RATE, SCREWS, TRANSLATION, TWIST, carry_into_child, walk, workspace

TORQUE, INVERSE_DYNAMICS, ENERGY = 0, 1, 2
"""What :func:`rigid_body_rows` makes of a chunk."""
_NO_TARGETS = np.zeros((0, 10), dtype=np.int64)
_NOTHING = np.zeros((0, 10))
for _array in (_NO_TARGETS, _NOTHING):
    _array.flags.writeable = False


@helper
def _newton_euler_row(x, screw, body, row, lanes) -> None:  # type: ignore[no-untyped-def]
    """Coefficients of a body's ten parameters in ``l . f + s . n``: mass and first moments, then inertia."""
    for s in range(lanes):
        l0, l1, l2 = get(x, screw, s)
        s0, s1, s2 = get(x, screw + 3, s)
        w0, w1, w2 = get(x, body + TWIST + 3, s)
        a0, a1, a2 = get(x, body + RATE + 3, s)
        b0, b1, b2 = get(x, body + LIFT, s)
        lw = l0 * w0 + l1 * w1 + l2 * w2
        ww = w0 * w0 + w1 * w1 + w2 * w2
        c0, c1, c2 = cross(l0, l1, l2, a0, a1, a2)
        d0, d1, d2 = cross(b0, b1, b2, s0, s1, s2)
        put1(x, row, s, l0 * b0 + l1 * b1 + l2 * b2)
        c0, c1, c2 = c0 + lw * w0 - ww * l0 + d0, c1 + lw * w1 - ww * l1 + d1, c2 + lw * w2 - ww * l2 + d2
        put(x, row + 1, s, c0, c1, c2)
    for s in range(lanes):
        s0, s1, s2 = get(x, screw + 3, s)
        w0, w1, w2 = get(x, body + TWIST + 3, s)
        a0, a1, a2 = get(x, body + RATE + 3, s)
        u0, u1, u2 = cross(s0, s1, s2, w0, w1, w2)
        xx, xy, yy = s0 * a0 + u0 * w0, s0 * a1 + s1 * a0 + u0 * w1 + u1 * w0, s1 * a1 + u1 * w1
        xz, yz, zz = s0 * a2 + s2 * a0 + u0 * w2 + u2 * w0, s1 * a2 + s2 * a1 + u1 * w2 + u2 * w1, s2 * a2 + u2 * w2
        put(x, row + 4, s, xx, xy, yy)
        put(x, row + 7, s, xz, yz, zz)


@helper
def _inertia_row(x, left, right, row, lanes) -> None:  # type: ignore[no-untyped-def]
    """Coefficients of a body's ten parameters in ``X . (I Y)``, ``I`` the spatial inertia, ``X, Y`` motion vectors."""
    for s in range(lanes):
        l0, l1, l2 = get(x, left, s)
        s0, s1, s2 = get(x, left + 3, s)
        v0, v1, v2 = get(x, right, s)
        w0, w1, w2 = get(x, right + 3, s)
        c0, c1, c2 = cross(l0, l1, l2, w0, w1, w2)
        d0, d1, d2 = cross(v0, v1, v2, s0, s1, s2)
        put1(x, row, s, l0 * v0 + l1 * v1 + l2 * v2)
        put(x, row + 1, s, c0 + d0, c1 + d1, c2 + d2)
        put(x, row + 4, s, s0 * w0, s0 * w1 + s1 * w0, s1 * w1)
        put(x, row + 7, s, s0 * w2 + s2 * w0, s1 * w2 + s2 * w1, s2 * w2)


@helper
def _weight_row(x, screw, fall, row, lanes) -> None:  # type: ignore[no-untyped-def]
    """Coefficients of a body's mass and first moments in ``S . (I g)``; its inertia has no weight."""
    for s in range(lanes):
        l0, l1, l2 = get(x, screw, s)
        s0, s1, s2 = get(x, screw + 3, s)
        g0, g1, g2 = get(x, fall, s)
        c0, c1, c2 = cross(g0, g1, g2, s0, s1, s2)
        put1(x, row, s, l0 * g0 + l1 * g1 + l2 * g2)
        put(x, row + 1, s, c0, c1, c2)


@helper
def _add_scaled(x, target, row, scale, lanes) -> None:  # type: ignore[no-untyped-def]
    """A lane row times a number added to another."""
    for s in range(lanes):
        put1(x, target, s, get1(x, target, s) + scale * get1(x, row, s))


@helper
def _motion_cross(x, left, right, target, lanes) -> None:  # type: ignore[no-untyped-def]
    """The spatial cross product of two motion vectors."""
    for s in range(lanes):
        v0, v1, v2 = get(x, left, s)
        w0, w1, w2 = get(x, left + 3, s)
        l0, l1, l2 = get(x, right, s)
        s0, s1, s2 = get(x, right + 3, s)
        c0, c1, c2 = cross(w0, w1, w2, l0, l1, l2)
        d0, d1, d2 = cross(v0, v1, v2, s0, s1, s2)
        put(x, target, s, c0 + d0, c1 + d1, c2 + d2)
        c0, c1, c2 = cross(w0, w1, w2, s0, s1, s2)
        put(x, target + 3, s, c0, c1, c2)


@helper
def _store_ten(x, row, lanes, out, target, k, sample, step) -> None:  # type: ignore[no-untyped-def]
    """Ten lane rows to the places that ``target[k]`` names."""
    if step == 1:  # whole lane rows
        for c in range(10):
            if target[k, c] >= 0:
                for s in range(lanes):
                    out[np.uint64(target[k, c] + sample + s)] = get1(x, row + c, s)
        return
    for s in range(lanes):
        for c in range(10):
            if target[k, c] >= 0:
                out[np.uint64(target[k, c] + (sample + s) * step)] = get1(x, row + c, s)


@helper
def _gathered_screw(x, body, first, count, support, gain, sample, a, scratch, lanes) -> None:  # type: ignore[no-untyped-def]
    """The screw that moves a body per unit velocity of actuated joint ``a``: screws of its joints times their gains."""
    for r in range(6):
        for s in range(lanes):
            put1(x, scratch + r, s, 0.0)
    for k in range(count):
        screw = body + SCREWS + 6 * k
        for s in range(lanes):
            put1(x, scratch + 6, s, gain[sample + s, support[first + k], a])
        for r in range(6):
            for s in range(lanes):
                put1(x, scratch + r, s, get1(x, scratch + r, s) + get1(x, scratch + 6, s) * get1(x, screw + r, s))


@part
def _torque_block(x, sample, lanes, tree, target, step, out) -> None:  # type: ignore[no-untyped-def]
    """Coefficients of every body in every torque that moves it, each to its own place."""
    support_start, body_rows, row = tree[5], tree[8], tree[9][3] + 2
    for i in range(tree[0].shape[0]):
        body = body_rows[i + 1]
        for k in range(support_start[i], support_start[i + 1]):
            _newton_euler_row(x, body + SCREWS + 6 * (k - support_start[i]), body, row, lanes)
            _store_ten(x, row, lanes, out, target, k, sample, step)


@part
def _inverse_dynamics_block(x, sample, lanes, tree, phi, n_dof, out) -> None:  # type: ignore[no-untyped-def]
    """The same times the parameters, summed up over the bodies."""
    support_start, support, body_rows, row = tree[5], tree[6], tree[8], tree[9][3] + 2
    torque = row + 10
    for d in range(n_dof):
        for s in range(lanes):
            put1(x, torque + d, s, 0.0)
    for i in range(tree[0].shape[0]):
        body = body_rows[i + 1]
        for k in range(support_start[i], support_start[i + 1]):
            _newton_euler_row(x, body + SCREWS + 6 * (k - support_start[i]), body, row, lanes)
            for c in range(phi.shape[1]):
                _add_scaled(x, torque + support[k], row + c, phi[i, c], lanes)
    for s in range(lanes):
        for d in range(n_dof):
            out[np.uint64((sample + s) * n_dof + d)] = get1(x, torque + d, s)


@part
def _energy_block(x, sample, lanes, tree, kinetic, potential) -> None:  # type: ignore[no-untyped-def]
    """Coefficients of every body in the kinetic and the potential energy."""
    parent, body_rows, row = tree[0], tree[8], tree[9][3] + 2
    width, drop = 10 * parent.shape[0], row + 10  # gravity times the position of each body's origin
    for i in range(parent.shape[0]):
        up, body, above = parent[i], body_rows[i + 1], body_rows[parent[i] + 1]
        _inertia_row(x, body + TWIST, body + TWIST, row, lanes)
        for s in range(lanes):
            g0, g1, g2 = get(x, above + FALL, s)
            p0, p1, p2 = get(x, body + TRANSLATION, s)
            height = 0.0 if up < 0 else get1(x, drop + up, s)
            put1(x, drop + i, s, height + g0 * p0 + g1 * p1 + g2 * p2)
            at = (sample + s) * width + 10 * i
            for c in range(10):
                kinetic[np.uint64(at + c)] = 0.5 * get1(x, row + c, s)
                potential[np.uint64(at + c)] = 0.0
            potential[np.uint64(at)] = -get1(x, drop + i, s)
            for c in range(3):
                potential[np.uint64(at + 1 + c)] = -get1(x, body + FALL + c, s)


@kernel
def rigid_body_rows(what, q, v, a, tree, x, target, step, phi, out, potential) -> None:  # type: ignore[no-untyped-def]
    """Torque regressor, inverse dynamics or energy regressors of a chunk, into flat arrays."""
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        walk(x, sample, lanes, q, v, a, tree, np.bool_(True), what == ENERGY)
        if what == TORQUE:
            _torque_block(x, sample, lanes, tree, target, step, out)
        elif what == INVERSE_DYNAMICS:
            _inverse_dynamics_block(x, sample, lanes, tree, phi, v.shape[1], out)
        else:
            _energy_block(x, sample, lanes, tree, out, potential)


def torque_rows(
    q: Array, v: Array, a: Array, gravity: Array, tree: tuple[Any, ...], target: IntArray, step: int, out: Array
) -> None:
    """Torque regressor of a chunk into a flat array, each coefficient wherever the caller wants it.

    Parameter ``c`` of body ``i`` in the torque of ``d`` goes to ``out[target[k, c] + sample * step]``, ``k`` the place of
    this body and ``d`` in the support list; ``target`` is -1 for coefficients that are not needed.
    """
    x = workspace(tree, gravity)
    announced(rigid_body_rows)(TORQUE, q, v, a, tree, x, target, step, _NOTHING, out, np.empty(0))


def inverse_dynamics_rows(
    q: Array, v: Array, a: Array, gravity: Array, tree: tuple[Any, ...], phi: Array, out: Array
) -> None:
    """Rigid-body torque ``out[sample, d]`` of a chunk for one parameter set ``phi`` of shape (bodies, 10)."""
    x = workspace(tree, gravity)
    announced(rigid_body_rows)(INVERSE_DYNAMICS, q, v, a, tree, x, _NO_TARGETS, 0, phi, out.reshape(-1), np.empty(0))


def energy_rows(q: Array, v: Array, gravity: Array, tree: tuple[Any, ...], kinetic: Array, potential: Array) -> None:
    """Regressors of kinetic and potential energy, ``[sample, parameter]``; height zero is the world's origin."""
    x = workspace(tree, gravity)
    flat = kinetic.reshape(-1), potential.reshape(-1)
    announced(rigid_body_rows)(ENERGY, q, v, v, tree, x, _NO_TARGETS, 0, _NOTHING, *flat)


@kernel
def projected_torque_rows(q, v, a, gain, tree, x, target, step, out) -> None:  # type: ignore[no-untyped-def]
    """The rows of :func:`torque_rows` projected on actuated joints, ``G^T Y``, with ``gain[sample, d, k]`` of ``G``.

    A body's force is multiplied with the screw that each actuated joint gives it through the loops. Parameter ``c`` of body
    ``i`` in the torque of ``k`` goes to ``out[target[i * actuated + k, c] + sample * step]``. The workspace has seven rows more.
    """
    support_start, support, body_rows = tree[5], tree[6], tree[8]
    row, n_actuated = tree[9][3] + 2, gain.shape[2]
    gathered = tree[10].shape[0] // LANES
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        walk(x, sample, lanes, q, v, a, tree, np.bool_(True), np.bool_(False))
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


@kernel
def momentum_rows(q, v, tree, x, momentum, drift) -> None:  # type: ignore[no-untyped-def]
    """``A`` and ``B`` of ``Y phi = d/dt (A phi) - B phi``: generalised momentum and ``dL/dq``, ``[sample, d, parameter]``.

    The change of body ``i``'s twist with joint ``d`` at fixed velocities is ``V_d x S_d`` carried into frame ``i``, so
    ``B = (V_d x S_d) . I_i V_i + S_d . I_i g``. The workspace has six rows more for every entry of the support list.
    """
    parent, support_start, support, body_rows = tree[0], tree[5], tree[6], tree[8]
    row = tree[9][3] + 2
    change = tree[10].shape[0] // LANES  # the carried changes of each body lie like its screws
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        walk(x, sample, lanes, q, v, v, tree, np.bool_(True), np.bool_(True))
        for i in range(parent.shape[0]):
            body, up, first = body_rows[i + 1], parent[i], support_start[i]
            own = support_start[i + 1] - 1
            for k in range(first, own):
                carry_into_child(x, change + 6 * (support_start[up] + k - first), change + 6 * k, body, lanes)
            _motion_cross(x, body + TWIST, body + SCREWS + 6 * (own - first), change + 6 * own, lanes)
            for k in range(first, support_start[i + 1]):
                d, screw = support[k], body + SCREWS + 6 * (k - first)
                _inertia_row(x, screw, body + TWIST, row, lanes)
                for s in range(lanes):
                    for c in range(10):
                        momentum[sample + s, d, 10 * i + c] = get1(x, row + c, s)
                _inertia_row(x, change + 6 * k, body + TWIST, row, lanes)
                _weight_row(x, screw, body + FALL, row + 10, lanes)
                for s in range(lanes):
                    for c in range(10):
                        weight = get1(x, row + 10 + c, s) if c < 4 else 0.0
                        drift[sample + s, d, 10 * i + c] = get1(x, row + c, s) + weight


@kernel
def static_rows(q, tree, x, inertia, weight) -> None:  # type: ignore[no-untyped-def]
    """Regressors of inertia and gravity, ``inertia[sample, d, e, parameter]`` and ``weight[sample, d, parameter]``."""
    support_start, support, body_rows = tree[5], tree[6], tree[8]
    row = tree[9][3] + 2
    for sample in range(0, q.shape[0], LANES):
        lanes = min(LANES, q.shape[0] - sample)
        walk(x, sample, lanes, q, q, q, tree, np.bool_(False), np.bool_(True))
        for i in range(tree[0].shape[0]):
            body, first = body_rows[i + 1], support_start[i]
            for k in range(first, support_start[i + 1]):
                d, screw = support[k], body + SCREWS + 6 * (k - first)
                _weight_row(x, screw, body + FALL, row, lanes)
                for s in range(lanes):
                    for c in range(4):
                        weight[sample + s, d, 10 * i + c] = -get1(x, row + c, s)
                for other in range(first, k + 1):
                    e = support[other]
                    _inertia_row(x, screw, body + SCREWS + 6 * (other - first), row, lanes)
                    for s in range(lanes):
                        for c in range(10):
                            inertia[sample + s, d, e, 10 * i + c] = get1(x, row + c, s)
                            inertia[sample + s, e, d, 10 * i + c] = get1(x, row + c, s)


@kernel
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


@kernel
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
