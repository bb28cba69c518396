"""Ordinary least squares: ``beta = argmin || W beta - tau ||``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.estimation.estimate import Estimate
from dynid.estimation.linear import LinearProblem
from dynid.estimation.seen import DATA_TOLERANCE
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression


@dataclass(frozen=True)
class OrdinaryLeastSquares:
    """Every row counts the same, whatever its joint and unit; covariance as if all joints were equally noisy."""

    name: ClassVar[str] = "ols"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order", "units", "equal_weights", "covers"})
    tolerance: float = DATA_TOLERANCE

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        weights = np.ones(len(problem.channels))
        beta = problem.solve(weights)
        sigma = problem.noise_sigma(beta, pooled=True)
        return problem.finish(self.name, beta, problem.covariance(weights, sigma), details={"noise_sigma": sigma.tolist()})
