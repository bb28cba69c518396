"""Weighted least squares: joints count by their own noise, ``w_j = 1 / sigma_j``, iterated until the weights settle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.linear import LinearProblem
from dynid.estimation.outcome import Outcome
from dynid.estimation.result import Estimate
from dynid.estimation.seen import DATA_TOLERANCE
from dynid.estimation.uncertainty import CovarianceKind, check_kind, uncertainty
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression


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
            beta, settled = problem.solve(weights), True
        else:
            weights, beta, settled = settled_weights(problem, self.iterations, self.settle)
        sigma = problem.noise_sigma(beta, pooled=False)
        found = uncertainty(problem, beta, weights, sigma, self.covariance)
        return problem.finish(
            self.name,
            beta,
            found.covariance,
            outcome=None if settled else Outcome.NOT_CONVERGED,
            details={**found.details, "noise_sigma": sigma.tolist(), "weights": weights.tolist()},
        )


def settled_weights(problem: LinearProblem, iterations: int = 20, settle: float = 1e-6) -> tuple[Array, Array, bool]:
    """Weights of the channels that agree with the residuals they lead to, the base values, and whether they have settled."""
    weights = np.ones(len(problem.channels))
    beta = problem.solve(weights)
    for _ in range(iterations):
        sigma = problem.noise_sigma(beta, pooled=False)
        # noise-free channels: equal weights at the level of round-off instead of infinite ones
        floor = 1e-10 * max(float(problem.regression.torque_norms.max()), 1e-300)
        new = 1.0 / np.maximum(sigma, floor)
        new /= np.exp(np.log(new).mean())
        change = float(np.abs(np.log(new / weights)).max())
        weights, beta = new, problem.solve(new)
        if change < settle:
            return weights, beta, True
    return weights, beta, False
