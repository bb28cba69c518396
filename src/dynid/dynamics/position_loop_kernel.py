"""Compiled loops of position-controlled joints: the motion under held commands, and how it changes with parameters.

    M(q) a + rotor a + c(q, v) + g(q) + viscous v + dry tanh(v / width) + offset = tau
    dry = (coulomb + load |tau| + outer |c(q, v) + g(q)|) (1 + rise exp(-|v| / fading))
    given = kp volts clip(dead(u - q), +- reach) + kd (u' - v)
    asked = clip(given / (1 + saturation |given|), +- limit, and what the motor has left at its speed)
    lag tau' + tau = asked

One sample at a time, because each step needs the state that the one before it left. Screws, poses and the ten parameters of a
body are those of :mod:`dynid.dynamics.kernels`.
"""

from __future__ import annotations

import math

import numpy as np

from dynid.compiled import njit, njit_helper

_compiled = njit(cache=True, nogil=True, error_model="numpy")

GAMMA = 1.0 - math.sqrt(0.5)
"""Verwer's ROS2: of second order whatever slopes it is given, and damping what is stiff."""


@_compiled
def _cross(a, b, out) -> None:  # type: ignore[no-untyped-def]
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@_compiled
def _poses(q, rotation, translation, R, p) -> None:  # type: ignore[no-untyped-def]
    """Rotation and translation of every body in its parent."""
    for i in range(q.shape[0]):
        c, s = math.cos(q[i]), math.sin(q[i])
        for k in range(3):
            for m in range(3):
                R[i, k, m] = rotation[i, 0, k, m] + c * rotation[i, 1, k, m] + s * rotation[i, 2, k, m]
            p[i, k] = (
                translation[i, 0, k] + c * translation[i, 1, k] + s * translation[i, 2, k] + q[i] * translation[i, 3, k]
            )


@_compiled
def _bias(v, parent, screw, phi, gravity, R, p, work, force, out) -> None:  # type: ignore[no-untyped-def]
    """``c(q, v) + g(q)``: Newton and Euler without acceleration of the joints.

    ``work[i]`` holds linear and angular velocity, linear and angular acceleration of body ``i`` in its own frame.
    """
    n = v.shape[0]
    for i in range(n):
        up = parent[i]
        V, A = work[i, 0:6], work[i, 6:12]
        for k in range(6):
            V[k] = 0.0
            A[k] = 0.0
        if up < 0:
            for k in range(3):
                A[k] = -(R[i, 0, k] * gravity[0] + R[i, 1, k] * gravity[1] + R[i, 2, k] * gravity[2])
        else:
            for part in range(2):
                B = work[up, 6 * part : 6 * part + 6]
                T = work[i, 6 * part : 6 * part + 6]
                l0 = B[0] + B[4] * p[i, 2] - B[5] * p[i, 1]
                l1 = B[1] + B[5] * p[i, 0] - B[3] * p[i, 2]
                l2 = B[2] + B[3] * p[i, 1] - B[4] * p[i, 0]
                for k in range(3):
                    T[k] = R[i, 0, k] * l0 + R[i, 1, k] * l1 + R[i, 2, k] * l2
                    T[3 + k] = R[i, 0, k] * B[3] + R[i, 1, k] * B[4] + R[i, 2, k] * B[5]
        S = screw[i]
        for k in range(6):
            V[k] += S[k] * v[i]
        # V x (S v), linear: w x l + u x s, angular: w x s
        A[0] += (V[4] * S[2] - V[5] * S[1] + V[1] * S[5] - V[2] * S[4]) * v[i]
        A[1] += (V[5] * S[0] - V[3] * S[2] + V[2] * S[3] - V[0] * S[5]) * v[i]
        A[2] += (V[3] * S[1] - V[4] * S[0] + V[0] * S[4] - V[1] * S[3]) * v[i]
        A[3] += (V[4] * S[5] - V[5] * S[4]) * v[i]
        A[4] += (V[5] * S[3] - V[3] * S[5]) * v[i]
        A[5] += (V[3] * S[4] - V[4] * S[3]) * v[i]
        b0 = A[0] + V[4] * V[2] - V[5] * V[1]
        b1 = A[1] + V[5] * V[0] - V[3] * V[2]
        b2 = A[2] + V[3] * V[1] - V[4] * V[0]
        m, hx, hy, hz = phi[i, 0], phi[i, 1], phi[i, 2], phi[i, 3]
        xx, xy, yy, xz, yz, zz = phi[i, 4], phi[i, 5], phi[i, 6], phi[i, 7], phi[i, 8], phi[i, 9]
        w0, w1, w2 = V[3], V[4], V[5]
        a0, a1, a2 = A[3], A[4], A[5]
        wh = w0 * hx + w1 * hy + w2 * hz
        ww = w0 * w0 + w1 * w1 + w2 * w2
        force[i, 0] = m * b0 + a1 * hz - a2 * hy + wh * w0 - ww * hx
        force[i, 1] = m * b1 + a2 * hx - a0 * hz + wh * w1 - ww * hy
        force[i, 2] = m * b2 + a0 * hy - a1 * hx + wh * w2 - ww * hz
        i0, i1, i2 = xx * w0 + xy * w1 + xz * w2, xy * w0 + yy * w1 + yz * w2, xz * w0 + yz * w1 + zz * w2
        force[i, 3] = hy * b2 - hz * b1 + xx * a0 + xy * a1 + xz * a2 + w1 * i2 - w2 * i1
        force[i, 4] = hz * b0 - hx * b2 + xy * a0 + yy * a1 + yz * a2 + w2 * i0 - w0 * i2
        force[i, 5] = hx * b1 - hy * b0 + xz * a0 + yz * a1 + zz * a2 + w0 * i1 - w1 * i0
    for i in range(n - 1, -1, -1):
        out[i] = 0.0
        for k in range(6):
            out[i] += screw[i, k] * force[i, k]
        if parent[i] >= 0:
            _carry(force[i], R[i], p[i], force[parent[i]])


@_compiled
def _carry(f, R, p, onto) -> None:  # type: ignore[no-untyped-def]
    """A wrench of a body added to that of its parent."""
    f0 = R[0, 0] * f[0] + R[0, 1] * f[1] + R[0, 2] * f[2]
    f1 = R[1, 0] * f[0] + R[1, 1] * f[1] + R[1, 2] * f[2]
    f2 = R[2, 0] * f[0] + R[2, 1] * f[1] + R[2, 2] * f[2]
    onto[0] += f0
    onto[1] += f1
    onto[2] += f2
    onto[3] += R[0, 0] * f[3] + R[0, 1] * f[4] + R[0, 2] * f[5] + p[1] * f2 - p[2] * f1
    onto[4] += R[1, 0] * f[3] + R[1, 1] * f[4] + R[1, 2] * f[5] + p[2] * f0 - p[0] * f2
    onto[5] += R[2, 0] * f[3] + R[2, 1] * f[4] + R[2, 2] * f[5] + p[0] * f1 - p[1] * f0


@_compiled
def _inertia(parent, screw, phi, rotor, R, p, composite, wrench, M) -> None:  # type: ignore[no-untyped-def]
    """Inertia matrix by composite bodies, rotors on its diagonal."""
    n = parent.shape[0]
    for i in range(n):
        for k in range(10):
            composite[i, k] = phi[i, k]
        for j in range(n):
            M[i, j] = 0.0
    I, T, P = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for i in range(n - 1, -1, -1):
        c = composite[i]
        m, hx, hy, hz = c[0], c[1], c[2], c[3]
        S = screw[i]
        # wrench of a unit acceleration: f = m l + s x h, n = h x l + I s
        wrench[0] = m * S[0] + S[4] * hz - S[5] * hy
        wrench[1] = m * S[1] + S[5] * hx - S[3] * hz
        wrench[2] = m * S[2] + S[3] * hy - S[4] * hx
        wrench[3] = hy * S[2] - hz * S[1] + c[4] * S[3] + c[5] * S[4] + c[7] * S[5]
        wrench[4] = hz * S[0] - hx * S[2] + c[5] * S[3] + c[6] * S[4] + c[8] * S[5]
        wrench[5] = hx * S[1] - hy * S[0] + c[7] * S[3] + c[8] * S[4] + c[9] * S[5]
        M[i, i] = rotor[i]
        for k in range(6):
            M[i, i] += S[k] * wrench[k]
        at = i
        while parent[at] >= 0:
            up = parent[at]
            lifted = np.zeros(6)
            _carry(wrench, R[at], p[at], lifted)
            for k in range(6):
                wrench[k] = lifted[k]
                M[i, up] += screw[up, k] * lifted[k]
            M[up, i] = M[i, up]
            at = up
        if parent[i] < 0:
            continue
        to, r = composite[parent[i]], p[i]
        I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2] = c[4], c[5], c[6], c[7], c[8], c[9]
        I[1, 0], I[2, 0], I[2, 1] = c[5], c[7], c[8]
        for a in range(3):
            for b in range(3):
                T[a, b] = R[i, a, 0] * I[0, b] + R[i, a, 1] * I[1, b] + R[i, a, 2] * I[2, b]
        for a in range(3):
            for b in range(3):
                P[a, b] = T[a, 0] * R[i, b, 0] + T[a, 1] * R[i, b, 1] + T[a, 2] * R[i, b, 2]
        t0 = R[i, 0, 0] * hx + R[i, 0, 1] * hy + R[i, 0, 2] * hz
        t1 = R[i, 1, 0] * hx + R[i, 1, 1] * hy + R[i, 1, 2] * hz
        t2 = R[i, 2, 0] * hx + R[i, 2, 1] * hy + R[i, 2, 2] * hz
        rh, rr = r[0] * t0 + r[1] * t1 + r[2] * t2, r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
        to[0] += m
        to[1] += t0 + m * r[0]
        to[2] += t1 + m * r[1]
        to[3] += t2 + m * r[2]
        to[4] += P[0, 0] + 2.0 * (rh - r[0] * t0) + m * (rr - r[0] * r[0])
        to[6] += P[1, 1] + 2.0 * (rh - r[1] * t1) + m * (rr - r[1] * r[1])
        to[9] += P[2, 2] + 2.0 * (rh - r[2] * t2) + m * (rr - r[2] * r[2])
        to[5] += P[0, 1] - r[0] * t1 - r[1] * t0 - m * r[0] * r[1]
        to[7] += P[0, 2] - r[0] * t2 - r[2] * t0 - m * r[0] * r[2]
        to[8] += P[1, 2] - r[1] * t2 - r[2] * t1 - m * r[1] * r[2]


@_compiled
def _factored(M) -> None:  # type: ignore[no-untyped-def]
    """Lower triangle of a positive definite matrix in place."""
    n = M.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = M[i, j]
            for k in range(j):
                total -= M[i, k] * M[j, k]
            M[i, j] = math.sqrt(total) if i == j else total / M[j, j]


@_compiled
def _solved(L, x) -> None:  # type: ignore[no-untyped-def]
    """``(L L^T)^-1 x`` in place."""
    n = x.shape[0]
    for i in range(n):
        for k in range(i):
            x[i] -= L[i, k] * x[k]
        x[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= L[k, i] * x[k]
        x[i] /= L[i, i]


@_compiled
def drive(q, v, u, du, volts, i, gains):  # type: ignore[no-untyped-def]
    """Torque that a joint's drive asks for, and its slopes with position and velocity.

    ``gains[i]`` is kp, kd, limit, dead band, torque at rest, no-load speed, time constant of the current loop, reach of the error,
    saturation.
    ``volts`` is one for drives that are given torques, zero for one that is switched off.
    """
    kp, kd, limit, dead, stall, fastest = gains[i, 0], gains[i, 1], gains[i, 2], gains[i, 3], gains[i, 4], gains[i, 5]
    if volts <= 0.0:
        return 0.0, 0.0, 0.0
    kp *= volts
    error = u - q
    inside = math.fabs(error) < dead
    error = 0.0 if inside else error - math.copysign(dead, error)
    if math.fabs(error) > gains[i, 7]:
        error, inside = math.copysign(gains[i, 7], error), True
    tau = kp * error + kd * (du - v)
    less = 1.0 / (1.0 + gains[i, 8] * math.fabs(tau))
    tau *= less
    # a motor has less left the faster it turns the way it pushes
    left = stall * max(1.0 - math.copysign(v / fastest, v * tau), 0.0)
    if math.fabs(tau) > min(limit, left):
        if left < limit:
            return math.copysign(left, tau), 0.0, stall / fastest if left > 0.0 else 0.0
        return math.copysign(limit, tau), 0.0, 0.0
    return tau, 0.0 if inside else kp * less * less, kd * less * less


@_compiled
def _joint_forces(q, v, u, du, volts, gains, friction, held, bias, force, K, D) -> None:  # type: ignore[no-untyped-def]
    """What is left to accelerate each joint, and the slopes of drive and friction.

    ``friction[i]`` is viscous, Coulomb, its width, offset, and what dry friction grows by with the drive's torque, with the torque of
    the bodies and towards rest, and the speed at which that fades; ``held`` is the drive's torque where that is kept over the step.
    """
    for i in range(q.shape[0]):
        if held.shape[0]:
            tau, K[i], D[i] = held[i], 0.0, 0.0
        else:
            tau, K[i], D[i] = drive(q[i], v[i], u[i], du[i], volts[i], i, gains)
        turn = math.tanh(v[i] / friction[i, 2])
        dry = friction[i, 1] + friction[i, 4] * math.fabs(tau) + friction[i, 5] * math.fabs(bias[i])
        dry *= 1.0 + friction[i, 6] * math.exp(-math.fabs(v[i]) / friction[i, 7])
        D[i] += friction[i, 0] + dry * (1.0 - turn * turn) / friction[i, 2]
        force[i] = tau - bias[i] - friction[i, 0] * v[i] - dry * turn - friction[i, 3]


@njit_helper(cache=True, nogil=True, error_model="numpy", inline="always")
def _hold_torque(q, v, a, u, du, volts, step, now, tick, gains, asked, flowing, held) -> None:  # type: ignore[no-untyped-def]
    """The torque that a digital controller asks for, ``now`` or not, and a drive that lags lets flow over a step."""
    for i in range(q.shape[0]):
        if tick > 0:
            if now:
                asked[i], _, _ = drive(q[i], v[i], u[i], du[i], volts[i], i, gains)
        else:  # asked for in the middle of the step, so that feedback is not late by half of it
            asked[i], _, _ = drive(q[i] + 0.5 * step * v[i], v[i] + 0.5 * step * a[i], u[i], du[i], volts[i], i, gains)
        held[i] = asked[i]
        if gains[i, 6] > 0.0:  # mean over the step of what relaxes towards it
            ratio = step / gains[i, 6]
            gone = math.exp(-ratio)
            held[i] += (flowing[i] - asked[i]) * (1.0 - gone) / ratio
            flowing[i] = asked[i] + (flowing[i] - asked[i]) * gone


@_compiled
def position_loop(  # type: ignore[no-untyped-def]
    q0, v0, command, rate, supply, step, tick, tree, phi, gravity, rotor, gains, friction, position, velocity, acceleration
) -> None:
    """Motion under commands that are held over each step, from a state; rows 0 to ``len(command)`` are written.

    ``tick`` is the number of steps over which a digital controller holds its torque, 0 where it acts at every instant.
    """
    parent, rotation, translation, screw = tree
    n, g = q0.shape[0], GAMMA * step
    R, p, composite = np.empty((n, 3, 3)), np.empty((n, 3)), np.empty((n, 10))
    work, wrenches, wrench, bias = np.empty((n, 12)), np.empty((n, 6)), np.empty(6), np.empty(n)
    M, M2, stiff = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    K, D, K2, D2 = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    force, force2, k1, k2, left = np.empty(n), np.empty(n), np.zeros(n), np.empty(n), np.empty(n)
    q, v, q2, v2 = q0.copy(), v0.copy(), np.empty(n), np.empty(n)
    lagging = np.any(gains[:, 6] > 0.0)
    held = np.empty(n if tick > 0 or lagging else 0)
    asked, flowing = np.empty(n), np.empty(n)
    if command.shape[0]:
        for i in range(n):
            flowing[i], _, _ = drive(q[i], v[i], command[0, i], rate[0, i], supply[0, i], i, gains)
    position[0], velocity[0] = q, v
    for step_number in range(command.shape[0]):
        u, du, volts = command[step_number], rate[step_number], supply[step_number]
        if tick > 0 or lagging:
            _hold_torque(
                q, v, k1, u, du, volts, step, tick > 0 and step_number % tick == 0, tick, gains, asked, flowing, held
            )
        _poses(q, rotation, translation, R, p)
        _bias(v, parent, screw, phi, gravity, R, p, work, wrenches, bias)
        _inertia(parent, screw, phi, rotor, R, p, composite, wrench, M)
        _joint_forces(q, v, u, du, volts, gains, friction, held, bias, force, K, D)
        for i in range(n):
            for j in range(n):
                stiff[i, j] = M[i, j]
            stiff[i, i] += g * D[i] + g * g * K[i]
            k1[i] = force[i] - g * K[i] * v[i]
        _factored(stiff)
        _solved(stiff, k1)
        for i in range(n):
            acceleration[step_number, i] = k1[i]
            q2[i] = q[i] + step * (v[i] + g * k1[i])
            v2[i] = v[i] + step * k1[i]
        _poses(q2, rotation, translation, R, p)
        _bias(v2, parent, screw, phi, gravity, R, p, work, wrenches, bias)
        _inertia(parent, screw, phi, rotor, R, p, composite, wrench, M2)
        _joint_forces(q2, v2, u, du, volts, gains, friction, held, bias, force2, K2, D2)
        _factored(M2)
        _solved(M2, force2)
        for i in range(n):
            left[i] = force2[i] - 2.0 * k1[i]
        for i in range(n):
            k2[i] = -g * K[i] * (v2[i] - 2.0 * (v[i] + g * k1[i]))
            for j in range(n):
                k2[i] += M[i, j] * left[j]
        _solved(stiff, k2)
        for i in range(n):
            first = v[i] + g * k1[i]
            second = v2[i] - 2.0 * first + g * k2[i]
            q[i] += 0.5 * step * (3.0 * first + second)
            v[i] += 0.5 * step * (3.0 * k1[i] + k2[i])
            position[step_number + 1, i] = q[i]
            velocity[step_number + 1, i] = v[i]
    acceleration[command.shape[0]] = k1  # of the last step


@_compiled
def sensitivities(M, C, G, every, K, D, F, step, kept, out) -> None:  # type: ignore[no-untyped-def]
    """How positions change with parameters and with the first state, by the trapezoidal rule.

        M Sv' = -(K + G) Sq - (D + C) Sv + F,    Sq' = Sv

    ``M C G`` are given every ``every`` steps, ``(.., n, n)``; ``K D`` ``(steps + 1, n)``; ``F`` ``(steps, n, parameters)``, its mean over
    each step. Columns after the parameters are the first positions, then the first velocities. ``kept`` rows go to ``out``.
    """
    n, p = F.shape[1], F.shape[2]
    width = p + 2 * n
    Sq, Sv = np.zeros((n, width)), np.zeros((n, width))
    for i in range(n):
        Sq[i, p + i] = 1.0
        Sv[i, p + n + i] = 1.0
    A, right = np.empty((n, n)), np.empty((n, width))
    Kt, Dt = np.empty((n, n)), np.empty((n, n))
    h = step
    at = 0
    if kept.shape[0] and kept[0] == 0:
        out[0] = Sq
        at = 1
    for k in range(K.shape[0] - 1):
        block = min(k // every, M.shape[0] - 1)
        for i in range(n):
            for j in range(n):
                Kt[i, j] = G[block, i, j]
                Dt[i, j] = C[block, i, j]
            Kt[i, i] += 0.5 * (K[k, i] + K[k + 1, i])
            Dt[i, i] += 0.5 * (D[k, i] + D[k + 1, i])
            for j in range(n):
                A[i, j] = M[block, i, j] + 0.5 * h * Dt[i, j] + 0.25 * h * h * Kt[i, j]
        # (M + h D / 2 + h^2 K / 4) dSv = h (F - D Sv - K (Sq + h Sv / 2))
        for i in range(n):
            for c in range(width):
                right[i, c] = h * F[k, i, c] if c < p else 0.0
            for j in range(n):  # branches of a tree do not see one another: most of these are zero on a robot with legs
                d, s = h * (Dt[i, j] + 0.5 * h * Kt[i, j]), h * Kt[i, j]
                if d == 0.0 and s == 0.0:
                    continue
                for c in range(width):
                    right[i, c] -= d * Sv[j, c] + s * Sq[j, c]
        _eliminate(A, right)
        for i in range(n):
            for c in range(width):
                Sq[i, c] += h * (Sv[i, c] + 0.5 * right[i, c])
                Sv[i, c] += right[i, c]
        while at < kept.shape[0] and kept[at] == k + 1:
            out[at] = Sq
            at += 1


@_compiled
def _eliminate(A, B) -> None:  # type: ignore[no-untyped-def]
    """``A^-1 B`` into ``B`` by elimination without exchange: ``A`` is close to a positive definite matrix."""
    n, width = B.shape
    for k in range(n):
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            if factor == 0.0:
                continue
            for j in range(k + 1, n):
                A[i, j] -= factor * A[k, j]
            for c in range(width):
                B[i, c] -= factor * B[k, c]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            if A[i, k] != 0.0:
                for c in range(width):
                    B[i, c] -= A[i, k] * B[k, c]
        for c in range(width):
            B[i, c] /= A[i, i]
