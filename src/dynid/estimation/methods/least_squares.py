"""Ordinary least squares: ``beta = argmin || W beta - tau ||``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.estimation.linear import LinearProblem
from dynid.estimation.result import Estimate
from dynid.estimation.seen import DATA_TOLERANCE
from dynid.estimation.uncertainty import CovarianceKind, check_kind, uncertainty
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression


@dataclass(frozen=True)
class OrdinaryLeastSquares:
    """Ordinary least squares: every row has the same weight, whatever its joint and unit.

    Args:
        covariance: ``corrected`` for the autocorrelation of each joint's residual, ``classical`` (independent rows) or
            ``bootstrap`` of time blocks.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> result = dynid.estimate(data, base, dynid.OrdinaryLeastSquares())
        >>> result.relative_error < 1e-9
        True
    """

    name: ClassVar[str] = "ols"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order", "units", "equal_weights", "covers"})
    covariance: CovarianceKind = "corrected"
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        check_kind(self.covariance)

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        weights = np.ones(len(problem.channels))
        beta = problem.solve(weights)
        sigma = problem.noise_sigma(beta, pooled=True)
        found = uncertainty(problem, beta, weights, sigma, self.covariance)
        return problem.finish(self.name, beta, found.covariance, details={**found.details, "noise_sigma": sigma.tolist()})
