"""Least squares, then the nearest feasible base values (Sousa and Cortesao 2014, 4.3: OLS and BPFC).

    beta = argmin || W beta - tau ||,     beta' = argmin || beta - K phi ||   over consistent phi

The correction knows nothing of the data, so on them the semidefinite estimate is never worse; it is here to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dynid.engine import Tell, silent
from dynid.errors import UnknownNameError
from dynid.estimation.consistency.consistent_set import MARGIN
from dynid.estimation.consistency.correction import METRICS, Metric, closest_feasible
from dynid.estimation.consistency.fit_problem import passive_friction
from dynid.estimation.constraints.base import Constraint
from dynid.estimation.constraints.table import constraints_from_table
from dynid.estimation.linear import DATA_TOLERANCE, LinearProblem
from dynid.estimation.methods.registry import options_given
from dynid.estimation.result import Estimate, Outcome
from dynid.estimation.uncertainty import CovarianceKind, check_kind, uncertainty
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression


@dataclass(frozen=True)
class CorrectedLeastSquares:
    """Least squares moved to the nearest feasible base values (OLS and BPFC of Sousa and Cortesao).

    The covariance is that of the unconstrained fit.

    Args:
        condition: ``full``, or ``plain`` for Sousa's condition without the triangle inequality.
        margin: smallest eigenvalue of every link, relative to its size in the prior.
        absolute: take the margin in SI units instead.
        constraints: further constraints, such as ``dynid.TotalMass``.
        effects_positive: keep friction and rotor inertia that cannot be negative at zero or above, and the whole friction of every
            joint passive.
        metric: distance that is made small: ``base`` for that of base values, as in the paper, or ``torque``.
        weighted: weight joints by their own noise.
        covariance: ``corrected`` for the autocorrelation of each joint's residual, ``classical`` (independent rows) or
            ``bootstrap`` of time blocks.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.methods.corrected import CorrectedLeastSquares
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> dynid.estimate(data, base, CorrectedLeastSquares()).feasible
        True
    """

    name: ClassVar[str] = "bpfc"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order"})
    condition: str = "full"
    margin: float = MARGIN
    absolute: bool = False
    constraints: tuple[Constraint, ...] = ()
    effects_positive: bool = True
    metric: Metric = "base"
    weighted: bool = False
    covariance: CovarianceKind = "corrected"
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        object.__setattr__(self, "constraints", tuple(self.constraints))
        check_kind(self.covariance)
        if self.metric not in METRICS:
            raise UnknownNameError("metric", self.metric, METRICS)

    @classmethod
    def from_options(cls, options: Mapping[str, Any], robot: Robot, tell: Tell = silent) -> CorrectedLeastSquares:
        """The method of a run."""
        chosen = options_given(options, ("condition", "margin", "weighted"))
        return cls(constraints=constraints_from_table(options["constraints"]), **chosen)

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        weights = problem.settled_weights()[0] if self.weighted else np.ones(len(problem.channels))
        beta = problem.solve(weights)
        sigma = problem.noise_sigma(beta, pooled=not self.weighted)
        covariance, spread = uncertainty(problem, beta, weights, sigma, self.covariance)
        near = closest_feasible(
            base,
            beta,
            self.condition,
            self.metric,
            (*(passive_friction(regression) if self.effects_positive else ()), *self.constraints),
            self.margin,
            absolute=self.absolute,
            prior=prior,
            robot=regression.robot if self.metric == "torque" else None,
            effects_positive=self.effects_positive,
        )
        details = {
            **spread,
            "noise_sigma": sigma.tolist(),
            "weights": weights.tolist(),
            "distance": near.distance,
            "lower_bound": near.lower_bound,
            "constraints_active": not near.feasible_before,
        }
        return problem.finish(
            self.name,
            near.base,
            covariance,
            outcome=None if near.outcome is Outcome.SOLVED else near.outcome,
            standard=near.standard if isinstance(near.standard, Parameters) else None,
            notes=near.notes,
            details=details,
        )
