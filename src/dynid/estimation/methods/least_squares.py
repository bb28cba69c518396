"""Ordinary least squares: ``beta = argmin || W beta - tau ||``.

Weighted least squares: joints count by their own noise, ``w_j = 1 / sigma_j``, iterated until the weights settle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.errors import InputError
from dynid.estimation.linear import DATA_TOLERANCE, LinearProblem
from dynid.estimation.result import Estimate, Outcome
from dynid.estimation.uncertainty import CovarianceKind, check_kind, uncertainty
from dynid.model.parameters import Parameters
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
        covariance, spread = uncertainty(problem, beta, weights, sigma, self.covariance)
        return problem.finish(self.name, beta, covariance, details={**spread, "noise_sigma": sigma.tolist()})


@dataclass(frozen=True)
class WeightedLeastSquares:
    """Weighted least squares: the rows of each joint are divided by the noise of that joint.

    Args:
        sigma: standard deviation of each joint's torque; None to take it from the residuals, by iteration.
        iterations: limit of the iterations.
        settle: relative change of the weights at which the iteration stops.
        covariance: ``corrected`` for the autocorrelation of each joint's residual, ``classical`` (independent rows) or
            ``bootstrap`` of time blocks.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> result = dynid.estimate(data, base, dynid.WeightedLeastSquares())
        >>> result.relative_error < 1e-9
        True
    """

    name: ClassVar[str] = "wls"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order", "units", "covers"})
    sigma: tuple[float, ...] | None = None
    iterations: int = 20
    settle: float = 1e-6
    """Relative change of the weights below which they count as settled."""
    covariance: CovarianceKind = "corrected"
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        check_kind(self.covariance)

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        if self.sigma is not None:
            if len(self.sigma) != len(problem.channels) or min(self.sigma) <= 0.0:
                raise InputError(
                    f"weighted least squares got {len(self.sigma)} standard deviations, "
                    f"expected {len(problem.channels)} positive ones"
                )
            weights = 1.0 / np.array(self.sigma)
            settled = True
        else:
            weights, settled = problem.settled_weights(self.iterations, self.settle)
        beta = problem.solve(weights)
        sigma = problem.noise_sigma(beta, pooled=False)
        covariance, spread = uncertainty(problem, beta, weights, sigma, self.covariance)
        return problem.finish(
            self.name,
            beta,
            covariance,
            outcome=None if settled else Outcome.NOT_CONVERGED,
            details={**spread, "noise_sigma": sigma.tolist(), "weights": weights.tolist()},
        )
