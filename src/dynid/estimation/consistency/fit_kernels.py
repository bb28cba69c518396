"""The two compiled fits: least squares over consistent links, without a prior and with the entropic one.

    minimise  1/2 x^T P x [ + weight sum_b (<Y_b, S_b(x)> - log det S_b(x)) ]
    subject to  S_b(x) >= 0,   x_i + o_i >= 0  for some i

``x`` are steps from the unconstrained minimum, so that the value is the very excess, free of cancellation. The first is the
interior-point method of :mod:`dynid.estimation.consistency.interior_point` for this one form, in one compiled loop. The second needs no
cone for the links: ``-log det`` is its own barrier, and a damped Newton method converges quadratically; only the bounds of effects
are held by a primal-dual barrier. Both return only points strictly inside.

Sums over blocks and bounds are written as loops: expressions over whole arrays are compiled three times as long and run no faster.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.compiled import njit, njit_helper
from dynid.estimation.consistency.block_kernels import (
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


@njit_helper(cache=True, nogil=True)
def _factor(H: Array) -> Array:
    return np.linalg.cholesky(H)  # type: ignore[return-value]  # of doubles, as H is


@njit_helper(cache=True, nogil=True)
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


@njit_helper(cache=True, nogil=True)
def _longest(value: Array, change: Array, most: float) -> float:
    best = most
    for i in range(len(value)):
        if change[i] < 0.0 and -value[i] / change[i] < best:
            best = -value[i] / change[i]
    return best


@njit_helper(cache=True, nogil=True)
def _largest(values: Array) -> float:
    """``max |v_i|``."""
    best = 0.0
    for i in range(len(values)):
        best = max(best, abs(values[i]))
    return best


@njit_helper(cache=True, nogil=True)
def _blend(a: float, A: Array, b: float, B: Array, out: Array) -> None:
    """``out = a A + b B`` of every block; ``out`` may be one of them."""
    count, side = A.shape[0], A.shape[1]
    for k in range(count):
        for i in range(side):
            for j in range(side):
                out[k, i, j] = a * A[k, i, j] + b * B[k, i, j]


@njit_helper(cache=True, nogil=True)
def _product(A: Array, dA: Array, B: Array, dB: Array, step: float) -> float:
    """``sum_b <A_b + step dA_b, B_b + step dB_b>``."""
    count, side = A.shape[0], A.shape[1]
    total = 0.0
    for k in range(count):
        for i in range(side):
            for j in range(side):
                total += (A[k, i, j] + step * dA[k, i, j]) * (B[k, i, j] + step * dB[k, i, j])
    return total


@njit_helper(cache=True, nogil=True)
def _inner(a: Array, b: Array) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True)
def _add(values: Array, step: float, change: Array) -> None:
    """``values += step change``. Slacks move so too, not as ``x + offset``: near an active bound that is rounding, or zero."""
    for i in range(len(values)):
        values[i] += step * change[i]


@njit(cache=True, nogil=True)
def _newton_factor(P: Array, hessians: Array, slots: IntArray, bounded: IntArray, s: Array, z: Array) -> Array:
    """The factor of ``P`` with the curvature of blocks and bounds."""
    H = P.copy()
    add_blocks(hessians, slots, H)
    for i in range(len(bounded)):
        H[bounded[i], bounded[i]] += z[i] / s[i]
    return _factor(H)


@njit(cache=True, nogil=True)
def _direction(
    L: Array,
    residual: Array,
    inverse: Array,
    Z: Array,
    T: Array,
    s: Array,
    z: Array,
    slots: IntArray,
    basis: Array,
    bounded: IntArray,
    dS: Array,
    dZ: Array,
    ds: Array,
    dz: Array,
) -> Array:
    """``dx``, and with it ``dS``, ``dZ``, ``ds``, ``dz``, to what ``T`` and ``dz`` ask of the multipliers."""
    right = residual.copy()
    for i in range(len(right)):
        right[i] = -residual[i]
    add_adjoint(T, slots, basis, 1.0, right)
    for i in range(len(bounded)):
        right[bounded[i]] += dz[i]
    dx = _solve(L, right)
    block_values(dx, slots, basis, np.zeros(dS.shape), dS)
    symmetric_products(inverse, dS, Z, dZ)
    _blend(1.0, T, -1.0, dZ, dZ)
    for i in range(len(bounded)):
        ds[i] = dx[bounded[i]]
        dz[i] -= z[i] / s[i] * ds[i]
    return dx


@njit(cache=True, nogil=True)
def _set_bounds(x: Array, bounded: IntArray, offset: Array, mu: float, s: Array, z: Array) -> None:
    """Slacks of the bounds at ``x``, and multipliers with the products ``mu``."""
    for i in range(len(bounded)):
        s[i] = x[bounded[i]] + offset[i]
        z[i] = mu / s[i]


@njit(cache=True, nogil=True)
def _centring(S: Array, dS: Array, Z: Array, dZ: Array, s: Array, ds: Array, z: Array, dz: Array, gap: float) -> float:
    """Mehrotra's part of the gap to aim at: the cube of what the longest step along the prediction leaves."""
    step = _longest(s, ds, _longest(z, dz, longest_step(S, dS, longest_step(Z, dZ, 1.0))))
    after = _product(S, dS, Z, dZ, step)
    for i in range(len(s)):
        after += (s[i] + step * ds[i]) * (z[i] + step * dz[i])
    ratio = max(after, 0.0) / gap
    return max(ratio * ratio * ratio, 1e-6)


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
    count, side, width, m = len(slots), basis.shape[2], slots.shape[1], len(bounded)
    x, degree = start.copy(), count * side + m
    shape = (count, side, side)
    S, inverse, Z, T = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    dS, dZ, product, nothing = np.empty(shape), np.empty(shape), np.empty(shape), np.zeros(shape)
    hessians = np.empty((count, width, width))
    s, z, ds, dz = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    block_values(x, slots, basis, constant, S)
    gradient = np.dot(P, x)
    scale = max(_largest(gradient), 1e-300)
    mu = max(1e-6, abs(_inner(gradient, x)) / degree)
    if not inverses(S, inverse):
        return x, BROKEN, 0, np.inf
    _blend(mu, inverse, 0.0, inverse, Z)
    _set_bounds(x, bounded, offset, mu, s, z)
    gap = np.inf
    for iteration in range(most):
        gap = _product(S, nothing, Z, nothing, 0.0) + _inner(s, z)
        residual = np.dot(P, x)
        value = 0.5 * _inner(x, residual)
        add_adjoint(Z, slots, basis, -1.0, residual)
        for i in range(m):
            residual[bounded[i]] -= z[i]
            dz[i] = -z[i]
        if gap <= tolerance * (0.5 + value) and _largest(residual) <= 10.0 * tolerance * scale:
            return x, SOLVED, iteration, gap
        if not inverses(S, inverse):
            return x, BROKEN, iteration, gap
        scaled_hessians(inverse, Z, slots, basis, hessians)
        L = _newton_factor(P, hessians, slots, bounded, s, z)
        _blend(0.0, inverse, -1.0, Z, T)
        dx = _direction(L, residual, inverse, Z, T, s, z, slots, basis, bounded, dS, dZ, ds, dz)
        target = gap / degree * _centring(S, dS, Z, dZ, s, ds, z, dz, gap)
        symmetric_products(inverse, dS, dZ, product)
        _blend(target, inverse, -1.0, Z, T)
        _blend(1.0, T, -1.0, product, T)
        for i in range(m):
            dz[i] = target / s[i] - z[i] - ds[i] * dz[i] / s[i]
        dx = _direction(L, residual, inverse, Z, T, s, z, slots, basis, bounded, dS, dZ, ds, dz)
        step = longest_step(S, dS, longest_step(Z, dZ, 1.0 / TO_THE_BOUNDARY))
        step = min(1.0, TO_THE_BOUNDARY * _longest(s, ds, _longest(z, dz, step)))
        if not step > 1e-8:
            return x, BROKEN, iteration, gap
        _add(x, step, dx)
        block_values(x, slots, basis, constant, S)
        _blend(1.0, Z, step, dZ, Z)
        _add(s, step, ds)
        _add(z, step, dz)
    return x, OUT_OF_STEPS, most, gap


@njit(cache=True, nogil=True)
def _entropic_value(P: Array, x: Array, weight: float, linear: Array, S: Array) -> float:
    """``1/2 x^T P x + weight (linear . x - log det S)``."""
    return 0.5 * _inner(x, np.dot(P, x)) + weight * (_inner(linear, x) - log_determinants(S))


@njit(cache=True, nogil=True)
def _halved(
    P: Array,
    slots: IntArray,
    basis: Array,
    constant: Array,
    linear: Array,
    weight: float,
    bounded: IntArray,
    offset: Array,
    x: Array,
    dx: Array,
    s: Array,
    target: float,
    slope: float,
    step: float,
    S: Array,
) -> float:
    """The step, halved until it does not raise the barrier more than it gains."""
    value = _entropic_value(P, x, weight, linear, S)
    there = np.empty(S.shape)
    for _ in range(30):
        trial = x.copy()
        _add(trial, step, dx)
        block_values(trial, slots, basis, constant, there)
        new = _entropic_value(P, trial, weight, linear, there)
        for i in range(len(bounded)):
            new -= target * np.log((trial[bounded[i]] + offset[i]) / s[i])
        if new <= value + 1e-4 * step * -slope + 1e-13 * (1.0 + abs(value)):
            break
        step *= 0.5
    return step


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
    count, side, width, m = len(slots), basis.shape[2], slots.shape[1], len(bounded)
    x = start.copy()
    shape = (count, side, side)
    S, inverse, dS, nothing = np.empty(shape), np.empty(shape), np.empty(shape), np.zeros(shape)
    hessians = np.empty((count, width, width))
    s, z, ds, dz = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    mu = 1e-2 * abs(_inner(np.dot(P, x), x)) / max(1, m)
    _set_bounds(x, bounded, offset, mu, s, z)
    total = np.inf
    for iteration in range(most):
        block_values(x, slots, basis, constant, S)
        if not inverses(S, inverse):
            return x, BROKEN, iteration, np.inf
        right = np.dot(P, x)
        _add(right, weight, linear)
        add_adjoint(inverse, slots, basis, -weight, right)
        gap = _inner(s, z)
        target = mu if iteration == 0 else 0.1 * gap / max(1, m)
        scaled_hessians(inverse, inverse, slots, basis, hessians)
        _blend(weight, hessians, 0.0, hessians, hessians)
        for i in range(len(right)):
            right[i] = -right[i]
        for i in range(m):
            right[bounded[i]] += target / s[i]
        dx = _solve(_newton_factor(P, hessians, slots, bounded, s, z), right)
        for i in range(m):
            ds[i] = dx[bounded[i]]
            dz[i] = target / s[i] - z[i] - z[i] / s[i] * ds[i]
        slope = _inner(right, dx)
        total = gap + abs(slope)
        block_values(dx, slots, basis, nothing, dS)
        step = min(1.0, 0.95 * _longest(s, ds, longest_step(S, dS, 1.0 / 0.95)))
        # far from the end a full step may raise the barrier more than it gains; near it, by self-concordance, it never does,
        # and values could not tell for round-off
        if total > NEAR * weight:
            step = _halved(P, slots, basis, constant, linear, weight, bounded, offset, x, dx, s, target, slope, step, S)
        along = min(1.0, 0.95 * _longest(z, dz, 1.0 / 0.95))
        _add(x, step, dx)
        _add(s, step, ds)
        _add(z, along, dz)
        if total <= tolerance:
            return x, SOLVED, iteration + 1, total
    return x, OUT_OF_STEPS, most, total
