"""Essential parameters: those that the data support; the others are set to zero and the rest is fitted again.

The base parameter with the largest relative standard deviation above a limit is dropped and the fit repeated. Dropping ends
when no parameter is above the limit or when the dropped set ``d`` would matter,

    F = beta_d^T C_dd^-1 beta_d / |d|  >  F_{1 - significance}(|d|, freedom),

with values and covariance ``C`` of the full fit. For independent noise this is the F-test on the growth of the residual
(Khalil and Dombre); with the corrected covariance it holds for filtered data as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.errors import InputError
from dynid.estimation.linear import DATA_TOLERANCE, LinearProblem
from dynid.estimation.result import Estimate, Outcome
from dynid.estimation.uncertainty import CovarianceKind, check_kind, uncertainty
from dynid.model.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression


@dataclass(frozen=True)
class EssentialParameters:
    """Weighted least squares on the essential parameters: those with a large relative standard deviation are dropped.

    Args:
        limit_percent: relative standard deviation above which a parameter may be dropped, percent.
        significance: significance level of the F-test that stops the dropping; None never stops it.
        at_once: drop all above the limit together after the first fit instead of one after the other.
        weighted: weight joints by their own noise.
        covariance: ``corrected`` for the autocorrelation of each joint's residual, ``classical`` (independent rows) or
            ``bootstrap`` of time blocks.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> result = dynid.estimate(data, base, dynid.EssentialParameters(limit_percent=20.0))
        >>> result.method
        'essential'
    """

    name: ClassVar[str] = "essential"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "units"})
    limit_percent: float = 30.0
    significance: float | None = 0.05
    at_once: bool = False
    weighted: bool = True
    covariance: CovarianceKind = "corrected"
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        if not self.limit_percent > 0.0:
            raise InputError(
                f"limit of the relative standard deviation is {self.limit_percent:g} %, expected a positive number"
            )
        if self.significance is not None and not 0.0 < self.significance < 1.0:
            raise InputError(f"significance of the F-test is {self.significance:g}, expected a number between 0 and 1")
        check_kind(self.covariance)

    @classmethod
    def gaz(cls) -> EssentialParameters:
        """Gaz et al. 2019: coefficients with a standard deviation above 30 % are discarded, at once and untested."""
        return cls(limit_percent=30.0, significance=None, at_once=True, weighted=False, covariance="classical")

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        weights = problem.settled_weights(5, 0.0)[0] if self.weighted else np.ones(len(problem.channels))
        values = problem.solve(weights)
        sigma = problem.noise_sigma(values, pooled=not self.weighted)
        full, spread = uncertainty(problem, values, weights, sigma, self.covariance)
        noise = _noise_moment(problem, weights, full)
        dropped: list[int] = []
        statistic, limit, stopped = 0.0, np.inf, False
        current, beta, covariance = problem, values, full
        while True:
            candidates = self._candidates(current, beta, covariance)
            if not candidates:
                break
            attempt = [*dropped, *candidates]
            freedom = float(spread.get("degrees_of_freedom", regression.n_rows - problem.seen.rank))
            value, critical = self._test(values, full, freedom, attempt)
            if value > critical:
                stopped = True
                break
            dropped, statistic, limit = attempt, value, critical
            current = _without(problem, dropped)
            if not current.seen.mask.any():
                raise InputError(f"no base parameter has a standard deviation below {self.limit_percent:g} %")
            beta, covariance = current.solve(weights), _reduced_covariance(current, weights, noise)
            if self.at_once:
                break
        return current.finish(
            self.name,
            beta,
            covariance,
            outcome=Outcome.SOLVED if problem.seen.mask.all() else None,
            notes=(f"set to zero: {', '.join(base.names[i] for i in dropped)}",) if dropped else (),
            details={
                **spread,
                "dropped": tuple(base.names[i] for i in dropped),
                "f_statistic": statistic,
                "f_limit": limit,
                "stopped_by_test": stopped,
                "weights": weights.tolist(),
            },
        )

    def _candidates(self, problem: LinearProblem, beta: Array, covariance: Array) -> list[int]:
        """Base parameters to drop next: the least certain above the limit, or all of them."""
        sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        relative = np.where(problem.seen.mask, 100.0 * sigma / np.maximum(np.abs(beta), 1e-300), 0.0)
        above = np.flatnonzero(relative > self.limit_percent)
        return [int(i) for i in (above if self.at_once else above[np.argsort(relative[above])[-1:]])]

    def _test(self, beta: Array, covariance: Array, freedom: float, dropped: list[int]) -> tuple[float, float]:
        """The statistic and the value it may not exceed."""
        if self.significance is None:
            return 0.0, np.inf
        from scipy.stats import f

        values = beta[dropped]
        spread = covariance[np.ix_(dropped, dropped)]
        scale = np.sqrt(np.diag(spread))
        unit = values / scale
        statistic = float(unit @ np.linalg.lstsq(spread / np.outer(scale, scale), unit, rcond=None)[0]) / len(dropped)
        return statistic, float(f.ppf(1.0 - self.significance, len(dropped), max(freedom, 1.0)))


def _noise_moment(problem: LinearProblem, weights: Array, covariance: Array) -> Array:
    """``M`` of ``covariance = B M B``, over all base parameters: what the noise does to the normal equations."""
    mask = problem.seen.mask
    R = problem.seen_triangle(weights)
    whitened = R @ covariance[np.ix_(mask, mask)] @ R.T
    moment = np.zeros_like(covariance)
    moment[np.ix_(mask, mask)] = R.T @ whitened @ R
    return moment


def _reduced_covariance(problem: LinearProblem, weights: Array, noise: Array) -> Array:
    """``B M B`` over fewer parameters; the noise is that of the full fit, so no further pass over the rows is needed."""
    mask = problem.seen.mask
    inverse = problem.inverse_triangle(weights)
    whitened = inverse.T @ noise[np.ix_(mask, mask)] @ inverse
    covariance = np.zeros_like(noise)
    covariance[np.ix_(mask, mask)] = inverse @ whitened @ inverse.T
    return covariance


def _without(problem: LinearProblem, dropped: list[int]) -> LinearProblem:
    """The problem with some seen base parameters held at zero."""
    mask: BoolArray = problem.seen.mask.copy()
    mask[dropped] = False
    held = problem.held.copy()
    held[dropped] = 0.0
    return problem.estimating(mask, held)
