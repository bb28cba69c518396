"""Ordinary least squares: ``beta = argmin || W beta - tau ||``.

Weighted least squares: joints count by their own noise, ``w_j = 1 / sigma_j``, iterated until the weights settle.

Ridge to a prior: a CAD model corrected by data, each value as far as the data insist.

    minimise  sum_j || A_j beta - b_j ||^2 / sigma_j^2  +  || D^-1 (beta - beta0) ||^2 / spread^2

``D`` is the size of each base parameter, from the masses and radii of gyration of the prior's links, so that a
kilogram and a gram square metre count alike; ``spread`` says how far the prior may be wrong, in those sizes. The
covariance is that of the posterior: ``(sum_j A_j^T A_j / sigma_j^2 + D^-2 / spread^2)^-1``.

Robust estimation by iterated reweighting: rows that fit badly count less.

    minimise  sum_j sum_t rho((tau_jt - x_jt beta) / s_j),      w(u) = rho'(u) / u,

    Huber (1964):  w = min(1, k / |u|)          k = 1.345
    Tukey:         w = (1 - (u / c)^2)^2, zero beyond c          c = 4.685

with a scale ``s_j`` of each joint from the median of its absolute residuals. Both constants give 95 % of the efficiency of
least squares when there are no outliers. Tukey's loss has several minima, so it starts where Huber's ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import scipy.linalg

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.linear import DATA_TOLERANCE, Identifiability, LinearProblem, Merged, origins_of, parameter_scale
from dynid.estimation.residuals import (
    channel_coefficients,
    require_rows,
    residual_blocks,
    residual_sample,
    reweighted,
)
from dynid.estimation.result import Estimate, Outcome
from dynid.estimation.uncertainty import CovarianceKind, channel_noise, check_kind, uncertainty
from dynid.model.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.channels import triangle_of
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


SPREADS = tuple(float(s) for s in np.logspace(-3.0, 2.0, 26))
"""Tried when the spread is to be chosen."""
FOLDS = 8


@dataclass(frozen=True)
class Ridge:
    """Ridge regression towards the prior parameters.

    Args:
        spread: relative uncertainty of the prior; None chooses it by predicting held-out blocks of time.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> result = dynid.estimate(data, base, dynid.Ridge(spread=0.5))
        >>> result.relative_error < 1e-3
        True
    """

    name: ClassVar[str] = "ridge"
    laws: ClassVar[frozenset[str]] = frozenset({"row_order"})
    spread: float | None = None
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        if self.spread is not None and not self.spread > 0.0:
            raise InputError(f"spread of the prior is {self.spread:g}, expected a positive number")

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        size = base_scale(base, prior)
        start = problem.solve()
        floor = 1e-12 * max(float(regression.torque_norms.max()), 1e-300)
        weights = 1.0 / np.maximum(problem.noise_sigma(start, pooled=False), floor)
        spread = self.spread if self.spread is not None else _chosen_spread(problem, weights, size)
        stacked = np.vstack([w * block for w, block in zip(weights, problem.channels, strict=True)])
        z, inverse = _solve(stacked[:, :-1] * size, stacked[:, -1] - stacked[:, :-1] @ problem.held, 1.0 / spread)
        beta = problem.held + size * z
        posterior = inverse @ inverse.T
        covariance = posterior * np.outer(size, size)
        from_data = 1.0 - np.clip(np.diag(posterior) / spread**2, 0.0, 1.0)
        shown = replace(problem, seen=Identifiability(problem.seen.mask, origins_of(from_data)))
        return shown.finish(
            self.name,
            beta,
            covariance,
            details={"spread": spread, "share_of_data": from_data.tolist(), "noise_sigma": (1.0 / weights).tolist()},
        )


def base_scale(base: BaseReduction, prior: Parameters) -> Array:
    """Size of every base parameter: the root of the summed squares of its terms' sizes."""
    return np.asarray(np.sqrt((base.K**2) @ parameter_scale(prior) ** 2))


def _solve(A: Array, b: Array, strength: float) -> tuple[Array, Array]:
    """``argmin |A z - b|^2 + strength^2 |z|^2`` and the inverse of its triangle."""
    n = A.shape[1]
    R = triangle_of(np.vstack([np.column_stack([A, b]), np.column_stack([strength * np.eye(n), np.zeros(n)])]))
    return (
        np.asarray(scipy.linalg.solve_triangular(R[:n, :n], R[:n, n])),
        np.asarray(scipy.linalg.solve_triangular(R[:n, :n], np.eye(n))),
    )


def _chosen_spread(problem: LinearProblem, weights: Array, size: Array) -> float:
    """The spread that predicts left-out blocks best; with a single block, the one of least generalised cross-validation."""
    # ``[A b]`` of up to eight stretches of time, all channels of each stacked.
    regression = problem.regression
    n_blocks = min(len(factor.blocks) for factor in regression.factors)
    groups = np.array_split(np.arange(n_blocks), min(FOLDS, n_blocks))
    folds = []
    for group in groups:
        parts = [
            w * regression.channel_matrix(j, problem.base, factor.blocks[k])
            for j, (factor, w) in enumerate(zip(regression.factors, weights, strict=True))
            for k in group
        ]
        folds.append(triangle_of(np.vstack(parts)))
    if len(folds) < 2:
        stacked = np.vstack(folds)
        A, b = stacked[:, :-1] * size, stacked[:, -1] - stacked[:, :-1] @ problem.held
        U, s, _ = np.linalg.svd(A, full_matrices=False)
        projected = U.T @ b
        outside = float(b @ b - projected @ projected)
        scores = []
        for spread in SPREADS:
            damping = 1.0 / (1.0 + (spread * s) ** 2)
            residual = outside + float(np.sum((damping * projected) ** 2))
            scores.append(residual / (problem.regression.n_rows - float(np.sum(1.0 - damping))) ** 2)
        return SPREADS[int(np.argmin(scores))]
    total = np.zeros(len(SPREADS))
    for left_out in range(len(folds)):
        rest = triangle_of(np.vstack([fold for k, fold in enumerate(folds) if k != left_out]))
        test = folds[left_out]
        A, b = rest[:, :-1] * size, rest[:, -1] - rest[:, :-1] @ problem.held
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        seen = test[:, :-1] * size @ Vt.T
        y = test[:, -1] - test[:, :-1] @ problem.held
        for i, spread in enumerate(SPREADS):
            z = s / (s**2 + 1.0 / spread**2) * (U.T @ b)
            total[i] += float(np.sum((y - seen @ z) ** 2))
    return SPREADS[int(np.argmin(total))]


Loss = Literal["huber", "tukey"]
TUNING: dict[str, float] = {"huber": 1.345, "tukey": 4.685}
_SCALE_PASSES = 4
"""Passes in which the scales still follow the residuals; then they rest, so that the iteration has a fixed target."""
_NORMAL_MAD = 1.4826
"""Standard deviation of a normal variable over its median absolute value."""


@dataclass(frozen=True)
class IteratedReweighted:
    """Robust regression: rows with large residuals get less weight, by Huber's or Tukey's loss.

    Args:
        loss: ``huber`` or ``tukey``.
        tuning: ``k`` or ``c`` of the loss in standard deviations; None for 1.345 or 4.685.
        iterations: limit of the iterations.
        settle: relative change of the values at which the iteration stops.
        covariance: ``corrected`` for the autocorrelation of each joint's residual, ``classical`` (independent rows) or
            ``bootstrap`` of time blocks.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> result = dynid.estimate(data, base, dynid.IteratedReweighted(loss="huber"))
        >>> result.relative_error < 1e-6
        True
    """

    name: ClassVar[str] = "robust"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order", "units", "covers"})
    loss: Loss = "huber"
    tuning: float | None = None
    iterations: int = 50
    settle: float = 1e-6
    """Change of the prediction, relative to the residual, below which the iteration counts as settled."""
    covariance: CovarianceKind = "corrected"
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        if self.loss not in TUNING:
            raise UnknownNameError("loss", self.loss, TUNING)
        if self.tuning is not None and not self.tuning > 0.0:
            raise InputError(f"tuning of the {self.loss} loss is {self.tuning:g}, expected a positive number")
        check_kind(self.covariance)

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        require_rows(regression, "robust weights")
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        beta = problem.solve()
        beta, scale, settled = self._iterate(problem, beta, "huber")
        if self.loss == "tukey":
            beta, scale, settled = self._iterate(problem, beta, "tukey")
        return self._finish(problem, beta, scale, settled)

    def _weights(self, loss: Loss) -> Callable[[Array], Array]:
        own = self.tuning is not None and loss == self.loss
        limit = self.tuning if own and self.tuning is not None else TUNING[loss]
        return (lambda u: huber_weight(u, limit)) if loss == "huber" else (lambda u: tukey_weight(u, limit))

    def _iterate(self, problem: LinearProblem, beta: Array, loss: Loss) -> tuple[Array, Array, bool]:
        weight = self._weights(loss)
        scale = np.ones(len(problem.channels))
        # round-off of the torque: residuals below it are no noise
        torque = problem.regression.torque_norms / np.sqrt(np.maximum(problem.rows(), 1.0))
        floor = 1e-12 * float(max(torque.max(), 1e-300))
        for step in range(self.iterations):
            coefficients = channel_coefficients(problem.regression, problem.base, beta)
            if step < _SCALE_PASSES:
                residuals = residual_sample(problem.regression, coefficients)
                spread = [_NORMAL_MAD * float(np.median(np.abs(r))) if len(r) else 0.0 for r in residuals]
                scale = np.maximum(spread, floor)
            again = reweighted(problem.regression, coefficients, partial(_root_weight, weight, scale))
            channels = tuple(again.channel_matrix(j, problem.base) for j in range(len(again.factors)))
            new = replace(problem, merged=Merged(channels)).solve(np.ones(len(channels)))
            moved = np.linalg.norm(np.vstack(problem.channels)[:, :-1] @ (new - beta))
            rest = np.linalg.norm(problem.residual_norms(new))
            beta = new
            # on exact data the last digits never rest
            limit = self.settle * rest + 1e-9 * np.linalg.norm(problem.regression.torque_norms)
            if step + 1 >= _SCALE_PASSES and moved <= limit:
                return beta, scale, True
        return beta, scale, False

    def _finish(self, problem: LinearProblem, beta: Array, scale: Array, settled: bool) -> Estimate:
        """Covariance by the influence of each row: ``s psi(u) / mean psi'`` takes the place of the residual."""
        weight = self._weights(self.loss)
        coefficients = channel_coefficients(problem.regression, problem.base, beta)
        slope, total, rejected = self._slopes(problem, coefficients, scale, weight)

        def influence(j: int, r: Array) -> Array:
            return np.asarray(r * weight(r / scale[j]) / slope[j])

        weights = np.sqrt(slope) / scale
        noise = channel_noise(problem, coefficients, influence)
        covariance, spread = uncertainty(problem, beta, weights, noise, self.covariance, influence)
        return problem.finish(
            self.name,
            beta,
            covariance,
            outcome=None if settled else Outcome.NOT_CONVERGED,
            details={
                **spread,
                "loss": self.loss,
                "noise_sigma": scale.tolist(),
                "share_downweighted": (rejected / np.maximum(total, 1.0)).tolist(),
            },
        )

    @staticmethod
    def _slopes(
        problem: LinearProblem, coefficients: tuple[Array, ...], scale: Array, weight: Callable[[Array], Array]
    ) -> tuple[Array, Array, Array]:
        """``mean psi'(u)`` of each channel, its rows, and how many of them count less than half."""
        slope, total, rejected = np.zeros((3, len(scale)))
        h = 1e-4
        for blocks in residual_blocks(problem.regression, coefficients):
            for j, r in enumerate(blocks):
                u = r / scale[j]
                slope[j] += ((u + h) * weight(u + h) - (u - h) * weight(u - h)).sum() / (2.0 * h)
                total[j] += len(u)
                rejected[j] += np.count_nonzero(weight(u) < 0.5)
        return np.maximum(slope / np.maximum(total, 1.0), 1e-3), total, rejected


def _root_weight(weight: Callable[[Array], Array], scale: Array, j: int, r: Array) -> Array:
    """Factor of the rows of a channel: the root of their weight over its scale."""
    return np.asarray(np.sqrt(weight(r / scale[j])) / scale[j])


def huber_weight(u: Array, k: float = TUNING["huber"]) -> Array:
    """``min(1, k / |u|)``."""
    return np.asarray(k / np.maximum(np.abs(u), k))


def tukey_weight(u: Array, c: float = TUNING["tukey"]) -> Array:
    """``(1 - (u / c)^2)^2``, zero beyond ``c``."""
    return np.asarray(np.maximum(1.0 - (u / c) ** 2, 0.0) ** 2)
