"""Methods that descend on coordinates in which every point is consistent: their options, their start and their answer."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.convex.conic import MARGIN, unit_body
from dynid.estimation.convex.whitened import PULL, PriorKind, WhitenedFit, check_prior
from dynid.estimation.linear import LinearProblem
from dynid.estimation.methods.newton import Chart, Descent, descend
from dynid.estimation.methods.registry import options_given
from dynid.estimation.outcome import Outcome
from dynid.estimation.result import Estimate
from dynid.estimation.seen import DATA_TOLERANCE
from dynid.estimation.uncertainty import CovarianceKind, check_kind
from dynid.inertia import phi_from_pseudo_inertia, pseudo_inertia
from dynid.parameters import Parameters
from dynid.progress import Tell, silent
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression
from dynid.robot.model import Robot

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
