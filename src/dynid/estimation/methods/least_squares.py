"""Ordinary least squares: ``beta = argmin || W beta - tau ||``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.estimation.estimate import Estimate
from dynid.estimation.linear import LinearProblem
from dynid.estimation.seen import DATA_TOLERANCE
from dynid.estimation.uncertainty import CovarianceKind, check_kind, uncertainty
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression


@dataclass(frozen=True)
class OrdinaryLeastSquares:
    """Every row counts the same, whatever its joint and unit.

    ``covariance`` is ``corrected`` for the colour of each joint's residual, ``classical`` (all rows independent, all joints
    equally noisy) or by ``bootstrap`` of time blocks.
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
