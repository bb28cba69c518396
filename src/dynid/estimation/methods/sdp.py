"""Optimal consistent parameters by semidefinite programming (Sousa and Cortesao 2014, 4.4: FBPE), on the small triangle.

    minimise  || W beta - tau ||^2   over consistent phi,   beta = K phi

The program is convex: its answer is the best consistent one. It is solved in whitened, scaled coordinates around the
unconstrained solution; the answer is verified by eigenvalues and, where the solver's tolerance left it outside, pushed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.estimation.constraints.constraints import Constraint, constraints_from_table
from dynid.estimation.convex.conic import (
    MARGIN,
    ON_BOUNDARY,
    ConicFit,
    blamed,
    deepest_in,
    fit_in,
    onto_equalities,
)
from dynid.estimation.convex.whitened import NEARLY_FREE, PULL, PriorKind, WhitenedFit, check_prior
from dynid.estimation.linear import LinearProblem
from dynid.estimation.methods.registry import options_given
from dynid.estimation.outcome import Outcome
from dynid.estimation.result import Estimate
from dynid.estimation.seen import DATA_TOLERANCE
from dynid.estimation.uncertainty import CovarianceKind, check_kind
from dynid.inertia import is_consistent
from dynid.parameters import Parameters
from dynid.progress import Tell, silent
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression
from dynid.robot.model import Robot

PRIOR_MARGIN = 1e-4
"""How far inside the consistent set, relative to its size, a link of the description must be to serve as a prior."""


@dataclass(frozen=True)
class FeasibleSDP:
    """The physically consistent parameters that fit best, by semidefinite programming.

    The covariance is that of the unconstrained fit; constraints can only reduce it.

    Args:
        condition: ``full``, or ``plain`` for Sousa's condition without the triangle inequality.
        margin: smallest eigenvalue of every link, relative to its size in the prior.
        absolute: take the margin in SI units instead.
        constraints: further constraints of ``dynid.constraints``.
        effects_positive: keep friction and rotor inertia that cannot be negative at zero or above.
        weighted: weight joints by their own noise.
        prior: regularisation towards the prior parameters: ``none``, ``euclidean``, ``scaled`` or ``entropic``, see
            :mod:`dynid.estimation.convex.whitened`.
        strength: weight of the prior in units of the noise; 1 takes it to be as uncertain as each parameter's size.
        pull: weight of a small pull to the prior along directions that the data do not determine.
        covariance: ``corrected`` for the autocorrelation of each joint's residual, ``classical`` (independent rows) or
            ``bootstrap`` of time blocks.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> result = dynid.estimate(data, base, dynid.FeasibleSDP())
        >>> result.feasible, result.outcome.name
        (True, 'SOLVED')
    """

    name: ClassVar[str] = "sdp"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order"})
    condition: str = "full"
    margin: float = MARGIN
    absolute: bool = False
    constraints: tuple[Constraint, ...] = ()
    effects_positive: bool = True
    weighted: bool = False
    prior: PriorKind = "none"
    strength: float = 1.0
    pull: float = PULL
    covariance: CovarianceKind = "corrected"
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        object.__setattr__(self, "constraints", tuple(self.constraints))
        check_kind(self.covariance)
        check_prior(self.prior, self.strength, self.pull)

    @classmethod
    def from_options(cls, options: Mapping[str, Any], robot: Robot, tell: Tell = silent) -> FeasibleSDP:
        """The method of a run.

        What the data hardly determine of a link, its mass most of all, would move to the boundary of the consistent set. So
        the estimate is held by the description, taken to be as uncertain as its own size, where that is consistent;
        where it is not, or is empty, by the square of the distance to it, so that masses stay as small as the data let them.
        """
        prior = options["prior"]
        if prior == "auto":
            usable = np.all(is_consistent(robot.parameters.inertials, margin=PRIOR_MARGIN))
            prior = "entropic" if usable else "euclidean"
        chosen = options_given(options, ("condition", "margin", "weighted", "pull"))
        return cls(
            prior=prior,
            strength=options["prior_strength"],
            constraints=constraints_from_table(options["constraints"]),
            **chosen,
        )

    def whiten(self, problem: LinearProblem) -> WhitenedFit:
        """The program's data: its set, its factor, its centre."""
        return WhitenedFit.of(
            problem,
            condition=self.condition,
            margin=self.margin,
            absolute=self.absolute,
            constraints=self.constraints,
            effects_positive=self.effects_positive,
            weighted=self.weighted,
            prior=self.prior,
            strength=self.strength,
            pull=self.pull,
        )

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        fit = self.whiten(problem)
        x, details, notes, outcome = solve_whitened(fit)
        free = fit.data_only and not details.get("constraints_active", True)
        return fit.finish(self.name, x, self.covariance, outcome, notes, details, free=free)


@dataclass(frozen=True)
class WeightedFeasibleSDP(FeasibleSDP):
    """:class:`FeasibleSDP` with joints weighted by their own noise (Sousa and Cortesao 2014, 5.2: FBPE-WLS).

    The options ``condition``, ``margin``, ``absolute``, ``constraints``, ``effects_positive``, ``weighted``, ``prior``,
    ``strength``, ``pull``, ``covariance`` and ``tolerance`` are those of :class:`FeasibleSDP`.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> dynid.estimate(data, base, dynid.methods.WeightedFeasibleSDP()).feasible
        True
    """

    name: ClassVar[str] = "fbpe-wls"
    weighted: bool = True

    @classmethod
    def from_options(cls, options: Mapping[str, Any], robot: Robot, tell: Tell = silent) -> WeightedFeasibleSDP:
        """The method of a run: the paper's program, which knows no prior."""
        chosen = options_given(options, ("condition", "margin", "pull"))
        return cls(constraints=constraints_from_table(options["constraints"]), **chosen)


def solve_whitened(fit: WhitenedFit) -> tuple[Array | None, dict[str, Any], tuple[str, ...], Outcome | None]:
    """The best consistent point, notes on it, and the outcome (None: as usual)."""
    consistent = fit.consistent
    if fit.entropic is None and consistent.contains(fit.centre):
        details = {
            "constraints_active": False,
            "iterations": 0,
            "gap": 0.0,
            "chi_square_excess": fit.chi_square_excess(fit.centre),
        }
        return fit.centre, details, (), None
    found = fit_in(consistent, fit.F, fit.centre, pull=fit.pull, entropic=fit.entropic, freedom=fit.freedom)
    if not found.usable and found.verdict != "infeasible":
        found = _again(fit, found)
    if not found.usable:
        best = deepest_in(consistent, reference=fit.centre)
        if best.depth < -ON_BOUNDARY:
            labels = blamed(consistent, best.dual)
            notes = tuple(f"cannot hold together with the rest: {label}" for label in labels[:4])
            return None, {"depth": best.depth}, notes, Outcome.INFEASIBLE
        return None, {}, (f"the solver ended with '{found.solution.status}'",), Outcome.STALLED
    x, active = _unseen_effects_held(fit, found.x), True
    if fit.data_only and fit.chi_square_excess(x) < NEARLY_FREE:
        same = _unconstrained_base(fit, x)
        x, active = (x, True) if same is None else (same, False)
    details = {
        "constraints_active": active,
        "iterations": found.solution.iterations,
        "gap": found.solution.gap,
        "solver_seconds": found.solution.seconds,
        "moved": found.moved,
        "slack": found.slack,
        "chi_square_excess": fit.chi_square_excess(x),
        "objective": fit.value(x),
    }
    if found.verdict == "solved":
        return x, details, (), None
    return x, details, (f"the solver ended with '{found.solution.status}'",), Outcome.STALLED


def _again(fit: WhitenedFit, found: ConicFit) -> ConicFit:
    """A second attempt with a looser tolerance and a stronger pull, from which the better one is kept."""
    other = fit_in(
        fit.consistent, fit.F, fit.centre, pull=np.maximum(1e3 * fit.pull, 1e-9), entropic=fit.entropic, tolerance=1e-7
    )
    return other if other.usable else found


def _unseen_effects_held(fit: WhitenedFit, x: Array) -> Array:
    """``x`` with the effects that the data do not determine at their centre, which is the prior.

    Nothing but the pull holds them in the program, and that is weaker than the solver's tolerance.
    """
    seen = fit.problem.seen.mask
    unseen = ~(fit.problem.base.K[seen] != 0.0).any(axis=0)
    unseen[fit.consistent.layout.slots.ravel()] = False
    if not unseen.any():
        return x
    held = np.array(x)
    held[unseen] = fit.centre[unseen]
    held, _ = fit.consistent.pushed(held)
    return held if fit.consistent.contains(held, max(ON_BOUNDARY, -float(fit.consistent.slacks(x).min()))) else x


def _unconstrained_base(fit: WhitenedFit, x: Array) -> Array | None:
    """A consistent point with exactly the unconstrained base values, if there is one: nearest to the centre, or to ``x``."""
    nearby = fit.with_free_base(x)
    if nearby is not None:
        return nearby
    E = fit.problem.base.K * fit.consistent.scale
    empty = np.zeros((0, fit.consistent.n))
    same = fit_in(fit.consistent, empty, fit.centre, pull=1e-3, equalities=(E, fit.beta))
    if not same.usable:
        return None
    exact = onto_equalities(E, fit.beta, same.x)
    return exact if fit.consistent.contains(exact, ON_BOUNDARY) else None
