"""The two compiled fits: least squares over consistent links, without a prior and with the entropic one.

    minimise  1/2 x^T P x [ + weight sum_b (<Y_b, S_b(x)> - log det S_b(x)) ]
    subject to  S_b(x) >= 0,   x_i + o_i >= 0  for some i

``x`` are steps from the unconstrained minimum, so that the value is the very excess, free of cancellation. The first is the
interior-point method of :mod:`dynid.estimation.convex.interior_point` for this one form, in one compiled loop. The second needs no
cone for the links: ``-log det`` is its own barrier, and a damped Newton method converges quadratically; only the bounds of effects
are held by a primal-dual barrier. Both return only points strictly inside.
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
    width = slots.shape[1]
    degree = count * side + len(bounded)
    x = start.copy()
    S = np.empty((count, side, side))
    inverse, Z, T = np.empty_like(S), np.empty_like(S), np.empty_like(S)
    dS, dZ, aS, aZ = np.empty_like(S), np.empty_like(S), np.empty_like(S), np.empty_like(S)
    nothing = np.zeros_like(constant)
    hessians = np.empty((count, width, width))
    block_values(x, slots, basis, constant, S)
    s = x[bounded] + offset
    gradient = P @ x
    scale = max(np.abs(gradient).max(), 1e-300)
    mu = max(1e-6, abs(gradient @ x) / degree)
    if not inverses(S, inverse):
        return x, BROKEN, 0, np.inf
    Z[:] = mu * inverse
    z = mu / s
    gap = np.inf
    for iteration in range(most):
        gap = (S * Z).sum() + s @ z
        residual = P @ x
        value = 0.5 * x @ residual
        add_adjoint(Z, slots, basis, -1.0, residual)
        for i in range(len(bounded)):
            residual[bounded[i]] -= z[i]
        if gap <= tolerance * (0.5 + value) and np.abs(residual).max() <= 10.0 * tolerance * scale:
            return x, SOLVED, iteration, gap
        mu = gap / degree
        if not inverses(S, inverse):
            return x, BROKEN, iteration, gap
        scaled_hessians(inverse, Z, slots, basis, hessians)
        H = P.copy()
        add_blocks(hessians, slots, H)
        for i in range(len(bounded)):
            H[bounded[i], bounded[i]] += z[i] / s[i]
        L = _factor(H)
        target = 0.0
        bound_product = np.zeros_like(s)
        for corrector in range(2):
            right = -residual
            T[:] = target * inverse - Z
            if corrector:
                symmetric_products(inverse, aS, aZ, dZ)
                T -= dZ
            add_adjoint(T, slots, basis, 1.0, right)
            dz = target / s - z
            if corrector:
                dz -= bound_product / s
            for i in range(len(bounded)):
                right[bounded[i]] += dz[i]
            dx = _solve(L, right)
            block_values(dx, slots, basis, nothing, dS)
            symmetric_products(inverse, dS, Z, dZ)
            dZ[:] = T - dZ
            ds = dx[bounded]
            dz -= z / s * ds
            if not corrector:
                step = longest_step(S, dS, longest_step(Z, dZ, 1.0))
                step = _longest(s, ds, _longest(z, dz, step))
                after = ((S + step * dS) * (Z + step * dZ)).sum() + (s + step * ds) @ (z + step * dz)
                ratio = max(after, 0.0) / gap
                target = mu * max(ratio**3, 1e-6)
                aS[:] = dS
                aZ[:] = dZ
                bound_product = ds * dz
        step = longest_step(S, dS, longest_step(Z, dZ, 1.0 / TO_THE_BOUNDARY))
        step = min(1.0, TO_THE_BOUNDARY * _longest(s, ds, _longest(z, dz, step)))
        if not step > 1e-8:
            return x, BROKEN, iteration, gap
        x += step * dx
        block_values(x, slots, basis, constant, S)
        Z += step * dZ
        s = s + step * ds  # not x + offset: near an active bound their difference is rounding, or zero
        z += step * dz
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
    width = slots.shape[1]
    n_bounds = len(bounded)
    x = start.copy()
    S = np.empty((count, side, side))
    inverse, dS = np.empty_like(S), np.empty_like(S)
    nothing = np.zeros_like(S)
    hessians = np.empty((count, width, width))
    s = x[bounded] + offset
    mu = 1e-2 * abs(float((P @ x) @ x)) / max(1, n_bounds)
    z = mu / s
    total = np.inf
    for iteration in range(most):
        block_values(x, slots, basis, constant, S)
        if not inverses(S, inverse):
            return x, BROKEN, iteration, np.inf
        gradient = P @ x
        value = 0.5 * x @ gradient + weight * (linear @ x - log_determinants(S))
        gradient += weight * linear
        add_adjoint(inverse, slots, basis, -weight, gradient)
        gap = float(s @ z)
        target = 0.1 * gap / max(1, n_bounds)
        if iteration == 0:
            target = mu
        scaled_hessians(inverse, inverse, slots, basis, hessians)
        H = P.copy()
        add_blocks(weight * hessians, slots, H)
        for i in range(n_bounds):
            H[bounded[i], bounded[i]] += z[i] / s[i]
        right = -gradient
        for i in range(n_bounds):
            right[bounded[i]] += target / s[i]
        dx = _solve(_factor(H), right)
        dz = target / s - z - z / s * dx[bounded]
        total = gap + abs(float(right @ dx))
        block_values(dx, slots, basis, nothing, dS)
        ds = dx[bounded]
        step = min(1.0, 0.95 * _longest(s, ds, longest_step(S, dS, 1.0 / 0.95)))
        # far from the end a full step may raise the barrier more than it gains: halve until it does not; near it, by
        # self-concordance, it never does, and values could not tell for round-off
        far = total > NEAR * weight
        for _ in range(30 if far else 0):
            trial = x + step * dx
            block_values(trial, slots, basis, constant, dS)
            new = 0.5 * trial @ (P @ trial) + weight * (linear @ trial - log_determinants(dS))
            for i in range(n_bounds):
                new -= target * np.log((trial[bounded[i]] + offset[i]) / s[i])
            if new <= value + 1e-4 * step * -(right @ dx) + 1e-13 * (1.0 + abs(value)):
                break
            step *= 0.5
        x = x + step * dx
        s = s + step * ds  # not x + offset: near an active bound their difference is rounding, or zero
        z = z + min(1.0, 0.95 * _longest(z, dz, 1.0 / 0.95)) * dz
        if total <= tolerance:
            return x, SOLVED, iteration + 1, total
    return x, OUT_OF_STEPS, most, total
