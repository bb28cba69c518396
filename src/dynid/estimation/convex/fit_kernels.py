"""The two compiled fits: least squares over consistent links, without a prior and with the entropic one.

    minimise  1/2 x^T P x [ + weight sum_b (<Y_b, S_b(x)> - log det S_b(x)) ]
    subject to  S_b(x) >= 0,   x_i + o_i >= 0  for some i

``x`` are steps from the unconstrained minimum, so that the value is the very excess, free of cancellation. The first is the
interior-point method of :mod:`dynid.estimation.convex.interior_point` for this one form, in one compiled loop. The second needs no
cone for the links: ``-log det`` is its own barrier, and a damped Newton method converges quadratically; only the bounds of effects
are held by a primal-dual barrier. Both return only points strictly inside.

Sums over blocks and bounds are written as loops: expressions over whole arrays are compiled three times as long and run no faster.
"""

from __future__ import annotations

import numpy as np

from dynid.adapters.numba import njit
from dynid.arrays import Array, IntArray
from dynid.estimation.convex.block_kernels import (
    add_adjoint,
    add_blocks,
    block_values,
    inverses,
    log_determinants,
    longest_step,
    scaled_hessians,
    symmetric_products,
)

TO_THE_BOUNDARY = 0.98
NEAR = 0.0625
"""Newton decrement, in units of the barrier's weight, below which full steps converge quadratically."""
SOLVED, OUT_OF_STEPS, BROKEN = 0, 1, 2


@njit(cache=True, nogil=True)
def _factor(H: Array) -> Array:
    return np.linalg.cholesky(H)  # type: ignore[return-value]  # of doubles, as H is


@njit(cache=True, nogil=True)
def _solve(L: Array, right: Array) -> Array:
    """``L L^T x = right``, row by row and then column by column of the same rows."""
    n = len(right)
    x = right.copy()
    for i in range(n):
        value = x[i]
        for j in range(i):
            value -= L[i, j] * x[j]
        x[i] = value / L[i, i]
    for i in range(n - 1, -1, -1):
        value = x[i] / L[i, i]
        x[i] = value
        for j in range(i):
            x[j] -= L[i, j] * value
    return x


@njit(cache=True, nogil=True)
def _longest(value: Array, change: Array, most: float) -> float:
    best = most
    for i in range(len(value)):
        if change[i] < 0.0 and -value[i] / change[i] < best:
            best = -value[i] / change[i]
    return best


@njit(cache=True, nogil=True)
def _largest(values: Array) -> float:
    """``max |v_i|``."""
    best = 0.0
    for i in range(len(values)):
        best = max(best, abs(values[i]))
    return best


@njit(cache=True, nogil=True)
def _blend(a: float, A: Array, b: float, B: Array, out: Array) -> None:
    """``out = a A + b B`` of every block; ``out`` may be one of them."""
    count, side = A.shape[0], A.shape[1]
    for k in range(count):
        for i in range(side):
            for j in range(side):
                out[k, i, j] = a * A[k, i, j] + b * B[k, i, j]


@njit(cache=True, nogil=True)
def _product(A: Array, dA: Array, B: Array, dB: Array, step: float) -> float:
    """``sum_b <A_b + step dA_b, B_b + step dB_b>``."""
    count, side = A.shape[0], A.shape[1]
    total = 0.0
    for k in range(count):
        for i in range(side):
            for j in range(side):
                total += (A[k, i, j] + step * dA[k, i, j]) * (B[k, i, j] + step * dB[k, i, j])
    return total


@njit(cache=True, nogil=True)
def _inner(a: Array, b: Array) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True)
def interior_fit(
    P: Array,
    slots: IntArray,
    basis: Array,
    constant: Array,
    bounded: IntArray,
    offset: Array,
    start: Array,
    tolerance: float,
    most: int,
) -> tuple[Array, int, int, float]:
    """The minimiser, how it ended, iterations and gap; ``start`` strictly inside. No prior."""
    count, side = len(slots), basis.shape[2]
    width, n, m = slots.shape[1], len(start), len(bounded)
    degree = count * side + m
    x = start.copy()
    shape = (count, side, side)
    S, inverse, Z, T = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    dS, dZ, aS, aZ = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    nothing = np.zeros(shape)
    hessians = np.empty((count, width, width))
    s, z, ds, dz, product = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.zeros(m)
    right = np.empty(n)
    block_values(x, slots, basis, constant, S)
    gradient = np.dot(P, x)
    scale = max(_largest(gradient), 1e-300)
    mu = max(1e-6, abs(_inner(gradient, x)) / degree)
    if not inverses(S, inverse):
        return x, BROKEN, 0, np.inf
    _blend(mu, inverse, 0.0, inverse, Z)
    for i in range(m):
        s[i] = x[bounded[i]] + offset[i]
        z[i] = mu / s[i]
    gap = np.inf
    for iteration in range(most):
        gap = _product(S, nothing, Z, nothing, 0.0) + _inner(s, z)
        residual = np.dot(P, x)
        value = 0.5 * _inner(x, residual)
        add_adjoint(Z, slots, basis, -1.0, residual)
        for i in range(m):
            residual[bounded[i]] -= z[i]
        if gap <= tolerance * (0.5 + value) and _largest(residual) <= 10.0 * tolerance * scale:
            return x, SOLVED, iteration, gap
        mu = gap / degree
        if not inverses(S, inverse):
            return x, BROKEN, iteration, gap
        scaled_hessians(inverse, Z, slots, basis, hessians)
        H = P.copy()
        add_blocks(hessians, slots, H)
        for i in range(m):
            H[bounded[i], bounded[i]] += z[i] / s[i]
        L = _factor(H)
        target = 0.0
        dx = x
        for corrector in range(2):
            _blend(target, inverse, -1.0, Z, T)
            if corrector == 1:
                symmetric_products(inverse, aS, aZ, dZ)
                _blend(1.0, T, -1.0, dZ, T)
            for i in range(n):
                right[i] = -residual[i]
            add_adjoint(T, slots, basis, 1.0, right)
            for i in range(m):
                dz[i] = target / s[i] - z[i]
                if corrector == 1:
                    dz[i] -= product[i] / s[i]
                right[bounded[i]] += dz[i]
            dx = _solve(L, right)
            block_values(dx, slots, basis, nothing, dS)
            symmetric_products(inverse, dS, Z, dZ)
            _blend(1.0, T, -1.0, dZ, dZ)
            for i in range(m):
                ds[i] = dx[bounded[i]]
                dz[i] -= z[i] / s[i] * ds[i]
            if corrector == 0:
                step = longest_step(S, dS, longest_step(Z, dZ, 1.0))
                step = _longest(s, ds, _longest(z, dz, step))
                after = _product(S, dS, Z, dZ, step)
                for i in range(m):
                    after += (s[i] + step * ds[i]) * (z[i] + step * dz[i])
                    product[i] = ds[i] * dz[i]
                ratio = max(after, 0.0) / gap
                target = mu * max(ratio * ratio * ratio, 1e-6)
                _blend(1.0, dS, 0.0, dS, aS)
                _blend(1.0, dZ, 0.0, dZ, aZ)
        step = longest_step(S, dS, longest_step(Z, dZ, 1.0 / TO_THE_BOUNDARY))
        step = min(1.0, TO_THE_BOUNDARY * _longest(s, ds, _longest(z, dz, step)))
        if not step > 1e-8:
            return x, BROKEN, iteration, gap
        for i in range(n):
            x[i] += step * dx[i]
        block_values(x, slots, basis, constant, S)
        _blend(1.0, Z, step, dZ, Z)
        for i in range(m):
            s[i] += step * ds[i]  # not x + offset: near an active bound their difference is rounding, or zero
            z[i] += step * dz[i]
    return x, OUT_OF_STEPS, most, gap


@njit(cache=True, nogil=True)
def entropic_fit(
    P: Array,
    slots: IntArray,
    basis: Array,
    constant: Array,
    linear: Array,
    weight: float,
    bounded: IntArray,
    offset: Array,
    start: Array,
    tolerance: float,
    most: int,
) -> tuple[Array, int, int, float]:
    """The same with the entropic prior; ``linear[slot]`` is ``<Y_b, B_a>``. The gap is that of the bounds plus the decrement."""
    count, side = len(slots), basis.shape[2]
    width, n, m = slots.shape[1], len(start), len(bounded)
    x = start.copy()
    shape = (count, side, side)
    S, inverse, dS = np.empty(shape), np.empty(shape), np.empty(shape)
    nothing = np.zeros(shape)
    hessians = np.empty((count, width, width))
    s, z, ds, dz = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    right, trial = np.empty(n), np.empty(n)
    mu = 1e-2 * abs(_inner(np.dot(P, x), x)) / max(1, m)
    for i in range(m):
        s[i] = x[bounded[i]] + offset[i]
        z[i] = mu / s[i]
    total = np.inf
    for iteration in range(most):
        block_values(x, slots, basis, constant, S)
        if not inverses(S, inverse):
            return x, BROKEN, iteration, np.inf
        gradient = np.dot(P, x)
        value = 0.5 * _inner(x, gradient) + weight * (_inner(linear, x) - log_determinants(S))
        for i in range(n):
            gradient[i] += weight * linear[i]
        add_adjoint(inverse, slots, basis, -weight, gradient)
        gap = _inner(s, z)
        target = 0.1 * gap / max(1, m)
        if iteration == 0:
            target = mu
        scaled_hessians(inverse, inverse, slots, basis, hessians)
        for b in range(count):
            for a in range(width):
                for c in range(width):
                    hessians[b, a, c] *= weight
        H = P.copy()
        add_blocks(hessians, slots, H)
        for i in range(n):
            right[i] = -gradient[i]
        for i in range(m):
            H[bounded[i], bounded[i]] += z[i] / s[i]
            right[bounded[i]] += target / s[i]
        dx = _solve(_factor(H), right)
        for i in range(m):
            ds[i] = dx[bounded[i]]
            dz[i] = target / s[i] - z[i] - z[i] / s[i] * ds[i]
        slope = _inner(right, dx)
        total = gap + abs(slope)
        block_values(dx, slots, basis, nothing, dS)
        step = min(1.0, 0.95 * _longest(s, ds, longest_step(S, dS, 1.0 / 0.95)))
        # far from the end a full step may raise the barrier more than it gains: halve until it does not; near it, by
        # self-concordance, it never does, and values could not tell for round-off
        far = total > NEAR * weight
        for _ in range(30 if far else 0):
            for i in range(n):
                trial[i] = x[i] + step * dx[i]
            block_values(trial, slots, basis, constant, dS)
            new = 0.5 * _inner(trial, np.dot(P, trial)) + weight * (_inner(linear, trial) - log_determinants(dS))
            for i in range(m):
                new -= target * np.log((trial[bounded[i]] + offset[i]) / s[i])
            if new <= value + 1e-4 * step * -slope + 1e-13 * (1.0 + abs(value)):
                break
            step *= 0.5
        along = min(1.0, 0.95 * _longest(z, dz, 1.0 / 0.95))
        for i in range(n):
            x[i] += step * dx[i]
        for i in range(m):
            s[i] += step * ds[i]  # not x + offset: near an active bound their difference is rounding, or zero
            z[i] += along * dz[i]
        if total <= tolerance:
            return x, SOLVED, iteration + 1, total
    return x, OUT_OF_STEPS, most, total
