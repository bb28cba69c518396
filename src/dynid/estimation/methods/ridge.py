"""Ridge to a prior: a CAD model corrected by data, each value as far as the data insist.

    minimise  sum_j || A_j beta - b_j ||^2 / sigma_j^2  +  || D^-1 (beta - beta0) ||^2 / spread^2

``D`` is the size of each base parameter, from the masses and radii of gyration of the prior's links, so that a
kilogram and a gram square metre count alike; ``spread`` says how far the prior may be wrong, in those sizes. The
covariance is that of the posterior: ``(sum_j A_j^T A_j / sigma_j^2 + D^-2 / spread^2)^-1``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.linalg

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.linear import DATA_TOLERANCE, Identifiability, LinearProblem, origins_of, parameter_scale
from dynid.estimation.result import Estimate
from dynid.model.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression
from dynid.regression.independence import triangle_of

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
