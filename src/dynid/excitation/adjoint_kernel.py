"""The compiled reverse sweep: how a weighted sum of regressor entries changes with the motion.

The torque regressor has the entries ``Y[d, 10 i + c]``, parameter ``c`` of body ``i`` in the torque of joint ``d``. For weights
``G`` of the same shape, and one sample,

    g(q, v, a) = sum_{d, i, c} G[d, 10 i + c] Y[d, 10 i + c] = sum_{d, i} S_{d,i} . F_i(phi = G[d, i, :])

because ``Y`` times ten parameters is the Newton-Euler force and moment ``F_i`` of body ``i`` seen by the screw ``S_{d,i}`` of
joint ``d``. One walk from base to tip gives twists ``V``, accelerations ``A`` and screws; the same walk backward carries their
derivatives ``dg/dV``, ``dg/dA``, ``dg/dS`` to the base. A motion vector ``X`` that is carried over joint ``i`` changes with its
position by ``-S_i x X``, so the position's derivative is a sum of such products: no rotation is ever differentiated.

Vectors are (linear, angular). The robot stands on the ground and each joint has one degree of freedom. Serial, releases the GIL.
"""

from __future__ import annotations

import math

import numpy as np

from dynid.dynamics.lanes import cross, helper, kernel, part


@helper
def _poses(q, s, rotation, translation, R, p) -> None:  # type: ignore[no-untyped-def]
    """Pose of every body in its parent for sample ``s``."""
    for i in range(R.shape[0]):
        angle = q[s, i]
        c, d = math.cos(angle), math.sin(angle)
        for j in range(3):
            p[i, j] = (
                translation[i, 0, j] + c * translation[i, 1, j] + d * translation[i, 2, j] + angle * translation[i, 3, j]
            )
            for k in range(3):
                R[i, j, k] = rotation[i, 0, j, k] + c * rotation[i, 1, j, k] + d * rotation[i, 2, j, k]


@helper
def _into_child(R, p, i, x, source, y, target) -> None:  # type: ignore[no-untyped-def]
    """Motion vector ``x[source]`` of the parent in the frame of child ``i``: ``(R^T (l + s x p), R^T s)``."""
    s0, s1, s2 = x[source, 3], x[source, 4], x[source, 5]
    c0, c1, c2 = cross(s0, s1, s2, p[i, 0], p[i, 1], p[i, 2])
    l0, l1, l2 = x[source, 0] + c0, x[source, 1] + c1, x[source, 2] + c2
    for j in range(3):
        y[target, j] = R[i, 0, j] * l0 + R[i, 1, j] * l1 + R[i, 2, j] * l2
        y[target, 3 + j] = R[i, 0, j] * s0 + R[i, 1, j] * s1 + R[i, 2, j] * s2


@helper
def _back_to_parent(R, p, i, x, source, target) -> None:  # type: ignore[no-untyped-def]
    """The derivative ``x[source]`` by a vector carried into child ``i``, added to that by the parent's, ``x[target]``."""
    y0, y1, y2, y3, y4, y5 = x[source, 0], x[source, 1], x[source, 2], x[source, 3], x[source, 4], x[source, 5]
    l0 = R[i, 0, 0] * y0 + R[i, 0, 1] * y1 + R[i, 0, 2] * y2
    l1 = R[i, 1, 0] * y0 + R[i, 1, 1] * y1 + R[i, 1, 2] * y2
    l2 = R[i, 2, 0] * y0 + R[i, 2, 1] * y1 + R[i, 2, 2] * y2
    c0, c1, c2 = cross(p[i, 0], p[i, 1], p[i, 2], l0, l1, l2)
    x[target, 0] += l0
    x[target, 1] += l1
    x[target, 2] += l2
    x[target, 3] += R[i, 0, 0] * y3 + R[i, 0, 1] * y4 + R[i, 0, 2] * y5 + c0
    x[target, 4] += R[i, 1, 0] * y3 + R[i, 1, 1] * y4 + R[i, 1, 2] * y5 + c1
    x[target, 5] += R[i, 2, 0] * y3 + R[i, 2, 1] * y4 + R[i, 2, 2] * y5 + c2


@helper
def _turn(S, i, x, k, y, j):  # type: ignore[no-untyped-def]
    """``Y . (S x X)`` for the screw ``S[i]``, a motion vector ``X = x[k]`` and a derivative ``Y = y[j]``."""
    a0, a1, a2 = cross(x[k, 0], x[k, 1], x[k, 2], y[j, 0], y[j, 1], y[j, 2])
    b0, b1, b2 = cross(x[k, 3], x[k, 4], x[k, 5], y[j, 3], y[j, 4], y[j, 5])
    c0, c1, c2 = cross(x[k, 3], x[k, 4], x[k, 5], y[j, 0], y[j, 1], y[j, 2])
    angular = S[i, 3] * (a0 + b0) + S[i, 4] * (a1 + b1) + S[i, 5] * (a2 + b2)
    return angular + S[i, 0] * c0 + S[i, 1] * c1 + S[i, 2] * c2


@helper
def _dot(x, i, y, j):  # type: ignore[no-untyped-def]
    linear = x[i, 0] * y[j, 0] + x[i, 1] * y[j, 1] + x[i, 2] * y[j, 2]
    return linear + x[i, 3] * y[j, 3] + x[i, 4] * y[j, 4] + x[i, 5] * y[j, 5]


@part
def _add_twist_adjoint(screw, A_bar, i, rate, V_bar) -> None:  # type: ignore[no-untyped-def]
    """What ``(V x S) v`` in the acceleration of body ``i`` gives to the derivative by its twist."""
    l0, l1, l2, s0, s1, s2 = screw[i, 0], screw[i, 1], screw[i, 2], screw[i, 3], screw[i, 4], screw[i, 5]
    x0, x1, x2 = A_bar[i, 0], A_bar[i, 1], A_bar[i, 2]
    c0, c1, c2 = cross(s0, s1, s2, x0, x1, x2)
    d0, d1, d2 = cross(l0, l1, l2, x0, x1, x2)
    e0, e1, e2 = cross(s0, s1, s2, A_bar[i, 3], A_bar[i, 4], A_bar[i, 5])
    V_bar[i, 0] += rate * c0
    V_bar[i, 1] += rate * c1
    V_bar[i, 2] += rate * c2
    V_bar[i, 3] += rate * (d0 + e0)
    V_bar[i, 4] += rate * (d1 + e1)
    V_bar[i, 5] += rate * (d2 + e2)


@kernel
def torque_adjoint(q, v, a, gravity, tree, G, q_bar, v_bar, a_bar) -> None:  # type: ignore[no-untyped-def]
    """``dg/dq, dg/dv, dg/da`` of every sample, for weights ``G[sample, joint, parameter]`` (inertial columns first)."""
    parent, rotation, translation, screw, support_start, support = tree
    n = parent.shape[0]
    R, p = np.empty((n, 3, 3)), np.empty((n, 3))
    V, A, lift = np.empty((n, 6)), np.empty((n, 6)), np.empty((n, 3))
    S = np.empty((support.shape[0], 6))
    V_bar, A_bar, S_bar = np.empty((n, 6)), np.empty((n, 6)), np.empty((support.shape[0], 6))
    ground, coriolis = np.zeros((1, 6)), np.empty((n, 6))
    for j in range(3):
        ground[0, j] = -gravity[j]
    for s in range(q.shape[0]):
        _poses(q, s, rotation, translation, R, p)
        for i in range(n):
            above = parent[i]
            first, last = support_start[i], support_start[i + 1] - 1
            if above >= 0:
                _into_child(R, p, i, V, above, V, i)
                _into_child(R, p, i, A, above, A, i)
                for k in range(first, last):
                    _into_child(R, p, i, S, support_start[above] + k - first, S, k)
            else:
                for j in range(6):
                    V[i, j] = 0.0
                _into_child(R, p, i, ground, 0, A, i)
            for j in range(6):
                S[last, j] = screw[i, j]
                V[i, j] += screw[i, j] * v[s, i]
            _motion_cross(V, i, screw, coriolis)
            for j in range(6):
                A[i, j] += screw[i, j] * a[s, i] + coriolis[i, j] * v[s, i]
            c0, c1, c2 = cross(V[i, 3], V[i, 4], V[i, 5], V[i, 0], V[i, 1], V[i, 2])
            lift[i, 0], lift[i, 1], lift[i, 2] = A[i, 0] + c0, A[i, 1] + c1, A[i, 2] + c2
        V_bar[:, :] = 0.0
        A_bar[:, :] = 0.0
        S_bar[:, :] = 0.0
        for i in range(n - 1, -1, -1):
            above = parent[i]
            first, last = support_start[i], support_start[i + 1] - 1
            for k in range(first, last + 1):
                _newton_euler_adjoint(S, k, V, A, lift, i, G, s, support[k], S_bar, V_bar, A_bar)
            # the joint itself: A = X A_above + S a + (V x S) v, V = X V_above + S v
            rate = v[s, i]
            a_bar[s, i] = _dot(A_bar, i, screw, i)
            slope = rate * _turn(screw, i, coriolis, i, A_bar, i) - _turn(screw, i, A, i, A_bar, i)
            speed = _dot(A_bar, i, coriolis, i)
            _add_twist_adjoint(screw, A_bar, i, rate, V_bar)
            v_bar[s, i] = speed + _dot(V_bar, i, screw, i)
            slope -= _turn(screw, i, V, i, V_bar, i)
            for k in range(first, last):
                slope -= _turn(screw, i, S, k, S_bar, k)
            q_bar[s, i] = slope
            if above >= 0:
                _back_to_parent(R, p, i, V_bar, i, above)
                _back_to_parent(R, p, i, A_bar, i, above)
                for k in range(first, last):
                    _back_to_parent(R, p, i, S_bar, k, support_start[above] + k - first)


@helper
def _motion_cross(x, i, y, out) -> None:  # type: ignore[no-untyped-def]
    """``X x Y`` of two motion vectors, ``x[i]`` and ``y[i]``."""
    c0, c1, c2 = cross(x[i, 3], x[i, 4], x[i, 5], y[i, 0], y[i, 1], y[i, 2])
    d0, d1, d2 = cross(x[i, 0], x[i, 1], x[i, 2], y[i, 3], y[i, 4], y[i, 5])
    out[i, 0], out[i, 1], out[i, 2] = c0 + d0, c1 + d1, c2 + d2
    out[i, 3], out[i, 4], out[i, 5] = cross(x[i, 3], x[i, 4], x[i, 5], y[i, 3], y[i, 4], y[i, 5])


@helper
def _newton_euler_adjoint(S, k, V, A, lift, i, G, s, d, S_bar, V_bar, A_bar) -> None:  # type: ignore[no-untyped-def]
    """Derivatives of ``l . f + s . n`` for one screw and body ``i`` whose ten parameters are the weights ``G[s, d, 10 i:]``.

    f = m b + alpha x h + w x (w x h),  n = h x b + I alpha + w x I w,  b = A_linear + w x v.
    """
    at = 10 * i
    m, h0, h1, h2 = G[s, d, at], G[s, d, at + 1], G[s, d, at + 2], G[s, d, at + 3]
    xx, xy, yy = G[s, d, at + 4], G[s, d, at + 5], G[s, d, at + 6]
    xz, yz, zz = G[s, d, at + 7], G[s, d, at + 8], G[s, d, at + 9]
    l0, l1, l2, s0, s1, s2 = S[k, 0], S[k, 1], S[k, 2], S[k, 3], S[k, 4], S[k, 5]
    w0, w1, w2 = V[i, 3], V[i, 4], V[i, 5]
    b0, b1, b2 = lift[i, 0], lift[i, 1], lift[i, 2]
    a0, a1, a2 = A[i, 3], A[i, 4], A[i, 5]
    wh = w0 * h0 + w1 * h1 + w2 * h2
    ww = w0 * w0 + w1 * w1 + w2 * w2
    lw = l0 * w0 + l1 * w1 + l2 * w2
    lh = l0 * h0 + l1 * h1 + l2 * h2
    # force and moment, which are the derivative by the screw
    c0, c1, c2 = cross(a0, a1, a2, h0, h1, h2)
    S_bar[k, 0] += m * b0 + c0 + w0 * wh - h0 * ww
    S_bar[k, 1] += m * b1 + c1 + w1 * wh - h1 * ww
    S_bar[k, 2] += m * b2 + c2 + w2 * wh - h2 * ww
    k0, k1, k2 = xx * w0 + xy * w1 + xz * w2, xy * w0 + yy * w1 + yz * w2, xz * w0 + yz * w1 + zz * w2
    c0, c1, c2 = cross(h0, h1, h2, b0, b1, b2)
    d0, d1, d2 = cross(w0, w1, w2, k0, k1, k2)
    S_bar[k, 3] += c0 + d0 + xx * a0 + xy * a1 + xz * a2
    S_bar[k, 4] += c1 + d1 + xy * a0 + yy * a1 + yz * a2
    S_bar[k, 5] += c2 + d2 + xz * a0 + yz * a1 + zz * a2
    # by b, which hands it to A, w and v
    c0, c1, c2 = cross(s0, s1, s2, h0, h1, h2)
    f0, f1, f2 = m * l0 + c0, m * l1 + c1, m * l2 + c2
    A_bar[i, 0] += f0
    A_bar[i, 1] += f1
    A_bar[i, 2] += f2
    c0, c1, c2 = cross(f0, f1, f2, w0, w1, w2)
    V_bar[i, 0] += c0
    V_bar[i, 1] += c1
    V_bar[i, 2] += c2
    # by alpha
    c0, c1, c2 = cross(h0, h1, h2, l0, l1, l2)
    A_bar[i, 3] += c0 + xx * s0 + xy * s1 + xz * s2
    A_bar[i, 4] += c1 + xy * s0 + yy * s1 + yz * s2
    A_bar[i, 5] += c2 + xz * s0 + yz * s1 + zz * s2
    # by w: through w x (w x h), through w x I w, through b
    u0, u1, u2 = cross(s0, s1, s2, w0, w1, w2)
    c0, c1, c2 = cross(k0, k1, k2, s0, s1, s2)
    d0, d1, d2 = cross(V[i, 0], V[i, 1], V[i, 2], f0, f1, f2)
    V_bar[i, 3] += l0 * wh + h0 * lw - 2.0 * w0 * lh + xx * u0 + xy * u1 + xz * u2 + c0 + d0
    V_bar[i, 4] += l1 * wh + h1 * lw - 2.0 * w1 * lh + xy * u0 + yy * u1 + yz * u2 + c1 + d1
    V_bar[i, 5] += l2 * wh + h2 * lw - 2.0 * w2 * lh + xz * u0 + yz * u1 + zz * u2 + c2 + d2


@kernel
def energy_adjoint(q, v, gravity, tree, G, q_bar, v_bar) -> None:  # type: ignore[no-untyped-def]
    """``d/dq`` and ``d/dv`` of ``sum_{i, c} G[10 i + c] h[10 i + c](q, v)``, ``h`` the energy regressor of one sample.

    With the spatial inertia ``I`` of the weights the kinetic part is ``V . I V / 2``, whose derivative by ``V`` is ``I V``; the
    potential part changes with joint ``j`` by ``-S_j . I (gravity, 0)`` of all it carries.
    """
    parent, rotation, translation, screw, _, _ = tree
    n = parent.shape[0]
    R, p = np.empty((n, 3, 3)), np.empty((n, 3))
    V, fall = np.empty((n, 6)), np.empty((n, 6))
    V_bar, weight = np.empty((n, 6)), np.empty((n, 6))
    ground = np.zeros((1, 6))
    for j in range(3):
        ground[0, j] = gravity[j]
    for s in range(q.shape[0]):
        _poses(q, s, rotation, translation, R, p)
        for i in range(n):
            above = parent[i]
            if above >= 0:
                _into_child(R, p, i, V, above, V, i)
                _into_child(R, p, i, fall, above, fall, i)
            else:
                for j in range(6):
                    V[i, j] = 0.0
                _into_child(R, p, i, ground, 0, fall, i)
            for j in range(6):
                V[i, j] += screw[i, j] * v[s, i]
        V_bar[:, :] = 0.0
        weight[:, :] = 0.0
        for i in range(n - 1, -1, -1):
            _add_momentum(G, s, V, i, V_bar)
            _add_momentum(G, s, fall, i, weight)
            v_bar[s, i] = _dot(V_bar, i, screw, i)
            q_bar[s, i] = -_turn(screw, i, V, i, V_bar, i) - _dot(weight, i, screw, i)
            if parent[i] >= 0:
                _back_to_parent(R, p, i, V_bar, i, parent[i])
                _back_to_parent(R, p, i, weight, i, parent[i])


@helper
def _add_momentum(G, s, x, i, out) -> None:  # type: ignore[no-untyped-def]
    """``I x[i]`` of the spatial inertia with the ten parameters ``G[s, 10 i:]``, added to ``out[i]``."""
    at = 10 * i
    m, h0, h1, h2 = G[s, at], G[s, at + 1], G[s, at + 2], G[s, at + 3]
    xx, xy, yy, xz, yz, zz = G[s, at + 4], G[s, at + 5], G[s, at + 6], G[s, at + 7], G[s, at + 8], G[s, at + 9]
    l0, l1, l2, s0, s1, s2 = x[i, 0], x[i, 1], x[i, 2], x[i, 3], x[i, 4], x[i, 5]
    c0, c1, c2 = cross(s0, s1, s2, h0, h1, h2)
    d0, d1, d2 = cross(h0, h1, h2, l0, l1, l2)
    out[i, 0] += m * l0 + c0
    out[i, 1] += m * l1 + c1
    out[i, 2] += m * l2 + c2
    out[i, 3] += d0 + xx * s0 + xy * s1 + xz * s2
    out[i, 4] += d1 + xy * s0 + yy * s1 + yz * s2
    out[i, 5] += d2 + xz * s0 + yz * s1 + zz * s2
