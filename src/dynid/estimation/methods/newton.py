"""Damped Newton on coordinates in which every point is consistent.

    minimise J(x(z)),    H = Z^T (F^T F + pull + R'') Z + sum_k <G_k, d^2 P_k / dz^2>,    (H + lambda D) step = -Z^T J'(x)

``Z = dx/dz`` is exact; ``G`` is the gradient as a matrix, ``J'(x) . dx = <G, dP>``. At an interior optimum ``G``
vanishes and this is Gauss-Newton; on the boundary it does not, and without the second term steps zigzag. Bounds on
coordinates are kept by an active set. Whatever the iterate, its parameters are consistent.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray
from dynid.errors import InputError
from dynid.estimation.convex.conic import MARGIN, entropic_hessian, unit_body
from dynid.estimation.convex.whitened import PULL, PriorKind, WhitenedFit, check_prior
from dynid.estimation.linear import LinearProblem
from dynid.estimation.methods.registry import options_given
from dynid.estimation.outcome import Outcome
from dynid.estimation.result import Estimate
from dynid.estimation.seen import DATA_TOLERANCE
from dynid.estimation.uncertainty import CovarianceKind, check_kind
from dynid.inertia import PSEUDO_BASIS, phi_from_pseudo_inertia, pseudo_inertia
from dynid.parameters import Parameters
from dynid.progress import Tell, silent
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression
from dynid.robot.model import Robot

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


START_DEPTH = 1e-2
"""How far inside the margin a search begins, scaled."""


def consistent_start(fit: WhitenedFit, depth: float = START_DEPTH) -> Array:
    """A point well inside the margin: the unconstrained solution with its eigenvalues lifted, or the prior if better."""
    candidates = [fit.centre, _at_prior(fit)]
    inside = [lifted(fit, x, depth) for x in candidates]
    return min(inside, key=fit.value)


def _at_prior(fit: WhitenedFit) -> Array:
    return np.asarray(fit.problem.prior.values / fit.consistent.scale)


def lifted(fit: WhitenedFit, x: Array, depth: float) -> Array:
    """``x`` with every eigenvalue of every link at least ``depth`` above the margin, signs of effects as they must be."""
    layout = fit.consistent.layout
    eigenvalues, vectors = np.linalg.eigh(pseudo_inertia(x[layout.slots]))
    raised = np.maximum(eigenvalues, fit.consistent.margin + depth)
    new = np.array(x)
    new[layout.slots] = phi_from_pseudo_inertia((vectors * raised[:, None, :]) @ np.swapaxes(vectors, -1, -2))
    bounds = fit.consistent.single_bounds
    column = bounds[:, 1].astype(int)
    new[column] = np.maximum(new[column], depth)
    return new


@dataclass(frozen=True)
class ConsistentDescent(ABC):
    """Options that methods on consistent coordinates share; a subclass brings the coordinates.

    The objective, its prior and its weak pull are those of the semidefinite program, and so is the optimum.
    Coordinates hold consistency and the signs of effects alone: bounds of masses, centres of mass in boxes or fixed values need
    the semidefinite program (``sdp``, ``fbpe-wls``, ``bpfc``) or the retrieval.
    ``iterations`` and ``seconds`` limit the work; ``watch`` is called with the parameters of every iterate and stops the
    iteration by returning True: what it has is then the answer.
    """

    name: ClassVar[str]
    margin: float = MARGIN
    effects_positive: bool = True
    weighted: bool = False
    prior: PriorKind = "none"
    strength: float = 1.0
    pull: float = PULL
    iterations: int = 300
    seconds: float = np.inf
    settle: float = 1e-9
    """Promised relative decrease of the cost at which the iteration ends."""
    watch: Callable[[Parameters], bool | None] | None = None
    covariance: CovarianceKind = "corrected"
    tolerance: float = DATA_TOLERANCE
    from_prior: bool = False
    """Begin at the prior, as one does without an unconstrained solution; otherwise at that solution, which may be the answer."""

    def __post_init__(self) -> None:
        check_kind(self.covariance)
        check_prior(self.prior, self.strength, self.pull)
        if self.iterations < 1:
            raise InputError(f"iterations is {self.iterations}, expected at least one")

    @classmethod
    def from_options(cls, options: Mapping[str, Any], robot: Robot, tell: Tell = silent) -> Self:
        """The method of a run; without a prior where none is named."""
        chosen = options_given(options, ("margin", "weighted", "pull"))
        if options["prior"] != "auto":
            chosen |= {"prior": options["prior"], "strength": options["prior_strength"]}
        return cls(**chosen)

    @abstractmethod
    def chart(self, margin_body: Array, effect_lower: Array) -> Chart[Any]:
        """The coordinates of bodies above ``margin_body``, with lower bounds of the effects."""

    def whiten(self, problem: LinearProblem) -> WhitenedFit:
        """The objective in scaled coordinates."""
        return WhitenedFit.of(
            problem,
            condition="full",
            margin=self.margin,
            effects_positive=self.effects_positive,
            weighted=self.weighted,
            prior=self.prior,
            strength=self.strength,
            pull=self.pull,
        )

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        fit = self.whiten(problem)
        if not self.from_prior and fit.entropic is None and fit.consistent.contains(fit.centre):
            nothing = {"constraints_active": False, "iterations": 0, "objective": 0.0}
            return fit.finish(self.name, fit.centre, self.covariance, None, (), nothing, free=fit.data_only)
        began = time.perf_counter()

        def stop(phi: Array) -> bool:
            told = self.watch(prior.with_values(phi)) if self.watch is not None else None
            return bool(told) or time.perf_counter() - began > self.seconds

        end = self.solve(fit, stop)
        free = fit.with_free_base(end.x)
        details: dict[str, Any] = {
            "iterations": end.iterations,
            "objective": end.value,
            "decrement": end.decrement,
            "history": list(end.history),
            "chi_square_excess": fit.chi_square_excess(end.x),
            "seconds": time.perf_counter() - began,
        }
        if free is not None:
            return fit.finish(self.name, free, self.covariance, None, (), details, free=True)
        outcome = None if end.converged else Outcome.NOT_CONVERGED
        return fit.finish(self.name, end.x, self.covariance, outcome, (), details)

    def solve(self, fit: WhitenedFit, watch: Callable[[Array], bool] | None = None) -> Descent[Any]:
        """Descend from a start well inside."""
        slots = fit.consistent.layout.slots
        lower = np.full(fit.consistent.n - slots.size, -np.inf)
        lower[fit.consistent.single_bounds[:, 1].astype(int) - slots.size] = 0.0
        chart = self.chart(fit.consistent.margin * unit_body("full"), lower)
        first = lifted(fit, _at_prior(fit), START_DEPTH) if self.from_prior else consistent_start(fit)
        start = chart.state(first, len(slots))
        return descend(fit, chart, start, iterations=self.iterations, tolerance=self.settle, watch=watch)
