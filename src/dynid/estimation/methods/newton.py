"""Damped Newton on coordinates in which every point is consistent.

    minimise J(x(z)),    H = Z^T (F^T F + pull + R'') Z + sum_k <G_k, d^2 P_k / dz^2>,    (H + lambda D) step = -Z^T J'(x)

``Z = dx/dz`` is exact; ``G`` is the gradient as a matrix, ``J'(x) . dx = <G, dP>``. At an interior optimum ``G``
vanishes and this is Gauss-Newton; on the boundary it does not, and without the second term steps zigzag. Bounds on
coordinates are kept by an active set. Whatever the iterate, its parameters are consistent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray
from dynid.estimation.convex.conic import entropic_hessian
from dynid.estimation.convex.whitened import WhitenedFit
from dynid.inertia import PSEUDO_BASIS, phi_from_pseudo_inertia, pseudo_inertia

State = TypeVar("State")

GRADIENT_MATRIX: Array = phi_from_pseudo_inertia(np.eye(16).reshape(4, 4, 4, 4))
"""``G_ij = sum_k GRADIENT_MATRIX[i, j, k] g_k``: the gradient by ten parameters as one by the pseudo-inertia."""


class Chart(Protocol[State]):
    """Coordinates ``z`` around a state: ten per link, then the effects as they are."""

    def state(self, x: Array, n_links: int) -> State:
        """The state of scaled parameters inside the set."""

    def parameters(self, state: State) -> Array:
        """Scaled parameters ``x`` of a state."""

    def aligned(self, state: State, gradient: Array) -> State:
        """The same parameters with the coordinates turned to suit the gradient ``(links, 4, 4)``."""

    def jacobian(self, state: State) -> Array:
        """``d phi / d z`` of every link, ``(links, 10, 10)``."""

    def curvature(self, state: State, gradient: Array) -> Array:
        """``<G, d^2 P / dz^2>`` of every link, ``(links, 10, 10)``."""

    def lower(self, state: State) -> Array:
        """Lower bounds of the step, minus infinity where there is none."""

    def moved(self, state: State, step: Array) -> State:
        """The state after a step."""


@dataclass(frozen=True, eq=False)
class Descent(Generic[State]):
    """Where the iteration ended."""

    state: State
    x: Array
    value: float
    decrement: float
    """Half the decrease that a Newton step promises: how far from the optimum, to second order."""
    converged: bool
    iterations: int
    history: tuple[float, ...]
    """Value of every iterate."""


def descend(
    fit: WhitenedFit,
    chart: Chart[State],
    start: State,
    *,
    iterations: int,
    tolerance: float,
    watch: Callable[[Array], bool] | None = None,
) -> Descent[State]:
    """Iterate until a step promises less than ``tolerance`` times the whole cost, or ``watch(phi)`` says to stop."""
    quadratic = fit.F.T @ fit.F + np.diag(fit.pull)
    state, x = start, chart.parameters(start)
    value = fit.value(x)
    history = [value]
    damping, decrement, converged, count = 1e-4, np.inf, False, 0
    while count < iterations and not converged:
        gradient, hessian = _derivatives(fit, quadratic, x)
        links = fit.consistent.layout.slots.size
        G = np.einsum("ijk,lk->lij", GRADIENT_MATRIX, gradient[:links].reshape(-1, 10))
        state = chart.aligned(state, G)
        Z = _block_diagonal(chart.jacobian(state), fit.consistent.n)
        H = Z.T @ hessian @ Z
        size = np.maximum(np.diag(H), 1e-12 * np.diag(H).max())
        H += _block_diagonal(chart.curvature(state, G), fit.consistent.n, rest=0.0)
        g, lower = Z.T @ gradient, chart.lower(state)
        accepted = False
        while not accepted and count < iterations:
            count += 1
            step = _bounded_step(H, g, size, damping, lower)
            if step is None:
                damping = max(10.0 * damping, 1e-8)
                continue
            promise = -float(g @ step + 0.5 * step @ H @ step)
            decrement = abs(promise)
            if decrement <= tolerance * (0.5 + value) and damping <= 1e-2:
                converged = True
                break
            trial = chart.moved(state, step)
            new = fit.value(chart.parameters(trial))
            if _is_decrease(value, new, promise):
                gain = (value - new) / promise if promise > 0.0 else 0.0
                damping = _damping_after(gain, damping)
                state, x, value, accepted = trial, chart.parameters(trial), new, True
            else:
                damping = max(8.0 * damping, 1e-8)
                if damping > 1e12:
                    return Descent(state, x, value, decrement, False, count, tuple(history))
        history.append(value)
        if accepted and watch is not None and watch(fit.phi(x)):
            break
    return Descent(state, x, value, decrement, converged, count, tuple(history))


def _is_decrease(value: float, new: float, promise: float) -> bool:
    """Whether a step made the value smaller, by some part of what it promised."""
    return bool(np.isfinite(new)) and new < value and (promise <= 0.0 or value - new > 1e-4 * promise)


def _damping_after(gain: float, damping: float) -> float:
    """Less damping after a step that kept its promise, more after one that gave little of it."""
    factor = 0.1 if gain > 0.75 else (1.0 if gain > 0.25 else 4.0)
    return max(damping * factor, 1e-12)


def _derivatives(fit: WhitenedFit, quadratic: Array, x: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of ``J`` by the scaled parameters."""
    gradient = quadratic @ (x - fit.centre)
    if fit.entropic is None:
        return gradient, quadratic
    slots = fit.consistent.layout.slots
    weight = fit.entropic.weight
    inverse = np.linalg.inv(pseudo_inertia(x[slots]))
    prior = np.linalg.inv(pseudo_inertia(fit.entropic.x0[slots]))
    gradient = gradient.copy()
    gradient[slots] += weight * np.einsum("lij,kij->lk", prior - inverse, PSEUDO_BASIS)
    hessian = quadratic.copy()
    hessian[slots[:, :, None], slots[:, None, :]] += weight * entropic_hessian(fit.consistent.layout, x)
    return gradient, hessian


def _block_diagonal(blocks: Array, n: int, rest: float = 1.0) -> Array:
    matrix = np.zeros((n, n))
    for k, block in enumerate(blocks):
        matrix[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = block
    others = np.arange(10 * len(blocks), n)
    matrix[others, others] = rest
    return matrix


def _bounded_step(H: Array, g: Array, size: Array, damping: float, lower: Array) -> Array | None:
    """Minimiser of the damped quadratic model above ``lower``, by an active set; None where the model is not convex."""
    M = H + np.diag(damping * size)
    fixed: BoolArray = (lower >= 0.0) & (g > 0.0)
    step = np.zeros(len(g))
    for _ in range(50):
        free = ~fixed
        step[fixed] = np.minimum(lower[fixed], 0.0)
        try:
            factor = scipy.linalg.cho_factor(M[np.ix_(free, free)])
        except np.linalg.LinAlgError:
            return None
        step[free] = scipy.linalg.cho_solve(factor, -(g[free] + M[np.ix_(free, fixed)] @ step[fixed]))
        below = free & (step < lower)
        if below.any():
            fixed = fixed | below
            continue
        multiplier = g + M @ step
        wrong = fixed & (multiplier < -1e-14)
        if not wrong.any():
            return step
        # one at a time, so that the set cannot cycle between two guesses
        fixed = fixed.copy()
        fixed[np.flatnonzero(wrong)[np.argmin(multiplier[wrong])]] = False
    return np.maximum(step, lower)
