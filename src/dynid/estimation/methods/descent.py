"""Damped Newton on coordinates in which every point is consistent.

    minimise J(x(z)),    H = Z^T (F^T F + pull + R'') Z + sum_k <G_k, d^2 P_k / dz^2>,    (H + lambda D) step = -Z^T J'(x)

``Z = dx/dz`` is exact; ``G`` is the gradient as a matrix, ``J'(x) . dx = <G, dP>``. At an interior optimum ``G``
vanishes and this is Gauss-Newton; on the boundary it does not, and without the second term steps zigzag. Bounds on
coordinates are kept by an active set. Whatever the iterate, its parameters are consistent.

Methods that descend on coordinates in which every point is consistent: their options, their start and their answer.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray
from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.estimation.consistency.consistent_set import MARGIN, unit_body
from dynid.estimation.consistency.fit_problem import PULL, ConsistentFit, PriorKind, check_prior
from dynid.estimation.linear import DATA_TOLERANCE, LinearProblem
from dynid.estimation.methods.registry import options_given
from dynid.estimation.result import Estimate, Outcome
from dynid.estimation.uncertainty import CovarianceKind, check_kind
from dynid.model.inertia import phi_from_pseudo_inertia, pseudo_inertia
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression

GRADIENT_MATRIX: Array = phi_from_pseudo_inertia(np.eye(16).reshape(4, 4, 4, 4))
"""``G_ij = sum_k GRADIENT_MATRIX[i, j, k] g_k``: the gradient by ten parameters as one by the pseudo-inertia."""


def block_diagonal(blocks: Array, n: int, rest: float = 1.0) -> Array:
    """Blocks of ten on the diagonal of an ``n`` by ``n`` matrix, ``rest`` on what is left of it."""
    matrix = np.zeros((n, n))
    for k, block in enumerate(blocks):
        matrix[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = block
    others = np.arange(10 * len(blocks), n)
    matrix[others, others] = rest
    return matrix


def bounded_step(H: Array, g: Array, size: Array, damping: float, lower: Array) -> Array | None:
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
MOST_DAMPING = 1e12
"""Damping beyond which no step makes the value smaller."""


def consistent_start(fit: ConsistentFit, depth: float = START_DEPTH) -> Array:
    """A point well inside the margin: the unconstrained solution with its eigenvalues lifted, or the prior if better."""
    candidates = [fit.centre, _at_prior(fit)]
    inside = [lifted(fit, x, depth) for x in candidates]
    return min(inside, key=fit.value)


def _at_prior(fit: ConsistentFit) -> Array:
    return np.asarray(fit.problem.prior.values / fit.consistent.scale)


def lifted(fit: ConsistentFit, x: Array, depth: float) -> Array:
    """``x`` with every eigenvalue of every link at least ``depth`` above the margin, signs of effects as they must be."""
    layout = fit.consistent.layout
    eigenvalues, vectors = np.linalg.eigh(pseudo_inertia(x[layout.slots]))
    raised = np.maximum(eigenvalues, fit.consistent.margin + depth)
    new = np.array(x)
    new[layout.slots] = phi_from_pseudo_inertia((vectors * raised[:, None, :]) @ np.swapaxes(vectors, -1, -2))
    column = fit.consistent.linear.lower_bounded
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
    regularization: float = PULL
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
        check_prior(self.prior, self.strength, self.regularization)
        if self.iterations < 1:
            raise InputError(f"iterations is {self.iterations}, expected at least one")

    @classmethod
    def from_options(cls, options: Mapping[str, Any], robot: Robot, tell: Tell = silent) -> Self:
        """The method of a run; without a prior where none is named."""
        chosen = options_given(options, ("margin", "weighted", "regularization"))
        if options["prior"] != "auto":
            chosen |= {"prior": options["prior"], "strength": options["prior_strength"]}
        return cls(**chosen)

    # Coordinates of the bodies above the margin: ten per link; their state is what the subclass needs -------------------------

    @abstractmethod
    def state(self, bodies: Array) -> Any:
        """The state of bodies ``(links, 10)`` inside the set."""

    @abstractmethod
    def bodies(self, state: Any) -> Array:
        """The ten parameters of every link."""

    def aligned(self, state: Any, gradient: Array) -> Any:
        """The same bodies with the coordinates turned to suit the gradient ``(links, 4, 4)``, where they have a singular point."""
        return state

    @abstractmethod
    def jacobian(self, state: Any) -> Array:
        """``d phi / d z`` of every link, ``(links, 10, 10)``."""

    @abstractmethod
    def curvature(self, state: Any, gradient: Array) -> Array:
        """``<G, d^2 P / dz^2>`` of every link, ``(links, 10, 10)``."""

    @abstractmethod
    def lower(self, state: Any) -> Array:
        """Lower bounds of the step ``(links, 10)``, minus infinity where there is none."""

    @abstractmethod
    def moved(self, state: Any, step: Array) -> Any:
        """The state after a step ``(links, 10)``."""

    # The method ---------------------------------------------------------------------------------

    def whiten(self, problem: LinearProblem) -> ConsistentFit:
        """The objective in scaled coordinates."""
        return ConsistentFit.of(
            problem,
            condition="full",
            margin=self.margin,
            effects_positive=self.effects_positive,
            weighted=self.weighted,
            prior=self.prior,
            strength=self.strength,
            pull=self.regularization,
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

        x, converged, details = self.solve(fit, stop)
        free = fit.with_free_base(x)
        details |= {"chi_square_excess": fit.chi_square_excess(x), "seconds": time.perf_counter() - began}
        if free is not None:
            return fit.finish(self.name, free, self.covariance, None, (), details, free=True)
        outcome = None if converged else Outcome.NOT_CONVERGED
        return fit.finish(self.name, x, self.covariance, outcome, (), details)

    def solve(self, fit: ConsistentFit, watch: Callable[[Array], bool] | None = None) -> tuple[Array, bool, dict[str, Any]]:
        """Descend from a start well inside until a step promises less than ``settle`` of the whole cost, or ``watch(phi)`` says to stop.

        Returned are where it ended, whether it settled there, iterations, the objective there and of every iterate, and half the
        decrease that a Newton step promises: how far from the optimum, to second order.
        """
        n, slots, margin_body = fit.consistent.n, fit.consistent.layout.slots, fit.consistent.margin * unit_body("full")
        effect_lower = np.full(n - slots.size, -np.inf)
        effect_lower[fit.consistent.linear.lower_bounded - slots.size] = 0.0

        def parameters(state: Any, effects: Array) -> Array:
            return np.concatenate([(self.bodies(state) + margin_body).ravel(), effects])

        first = lifted(fit, _at_prior(fit), START_DEPTH) if self.from_prior else consistent_start(fit)
        state = self.state(first[: slots.size].reshape(-1, 10) - margin_body)
        effects = np.maximum(first[slots.size :], effect_lower)
        x = parameters(state, effects)
        value = fit.value(x)
        history = [value]
        damping, decrement, converged, count = 1e-4, np.inf, False, 0
        while count < self.iterations and not converged and damping <= MOST_DAMPING:
            gradient, hessian = fit.derivatives(x)
            G = np.einsum("ijk,lk->lij", GRADIENT_MATRIX, gradient[: slots.size].reshape(-1, 10))
            state = self.aligned(state, G)
            Z = block_diagonal(self.jacobian(state), n)
            H = Z.T @ hessian @ Z
            size = np.maximum(np.diag(H), 1e-12 * np.diag(H).max())
            H += block_diagonal(self.curvature(state, G), n, rest=0.0)
            g, lower = Z.T @ gradient, np.concatenate([self.lower(state).ravel(), effect_lower - effects])
            accepted = False
            while not accepted and count < self.iterations and damping <= MOST_DAMPING:
                count += 1
                step = bounded_step(H, g, size, damping, lower)
                if step is None:
                    damping = max(10.0 * damping, 1e-8)
                    continue
                promise = -float(g @ step + 0.5 * step @ H @ step)
                decrement = abs(promise)
                if decrement <= self.settle * (0.5 + value) and damping <= 1e-2:
                    converged = True
                    break
                trial = self.moved(state, step[: slots.size].reshape(-1, 10))
                free = np.maximum(effects + step[slots.size :], effect_lower)
                moved = parameters(trial, free)
                new = fit.value(moved)
                accepted = bool(np.isfinite(new)) and new < value and (promise <= 0.0 or value - new > 1e-4 * promise)
                if accepted:
                    gain = (value - new) / promise if promise > 0.0 else 0.0
                    damping = max(damping * (0.1 if gain > 0.75 else 1.0 if gain > 0.25 else 4.0), 1e-12)
                    state, effects, x, value = trial, free, moved, new
                else:
                    damping = max(8.0 * damping, 1e-8)
            if accepted or damping <= MOST_DAMPING:
                history.append(value)
            if accepted and watch is not None and watch(fit.phi(x)):
                break
        details = {"iterations": count, "objective": value, "decrement": decrement, "history": history}
        return x, converged, details
