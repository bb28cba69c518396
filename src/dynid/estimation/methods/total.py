"""Total least squares: regressor and torque are both in error.

    minimise || [E D^-1, e / d] ||_F   subject to   (W + E) beta = tau + e

The solution is the right singular vector of ``[W D, tau d]`` with the smallest singular value. The weighting ``D, d``
says how large errors are, column by column: by default as the columns themselves, so that all have the same relative
error; the answer then does not depend on units. Columns known without error (the ones of an offset) are eliminated
first by a QR factorisation (Golub, Hoffman and Stewart 1987).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray, IntArray
from dynid.errors import InputError
from dynid.estimation.linear import DATA_TOLERANCE, LinearProblem
from dynid.estimation.result import Estimate
from dynid.model.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.channels import triangle_of
from dynid.regression.factor import Regression

NEARLY_SINGULAR = 0.9
"""Ratio of the smallest singular values with and without torque above which the solution is hardly defined."""


@dataclass(frozen=True)
class TotalLeastSquares:
    """Total least squares: errors of the regressor and of the torque together.

    Args:
        column_error: standard deviation of the error of every base column, in base order; None for errors in proportion to
            the columns. Zero marks an exact column.
        torque_error: standard deviation of the torque's error, needed with ``column_error``.
        exact: symbols of columns without error.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> result = dynid.estimate(data, base, dynid.TotalLeastSquares())
        >>> result.relative_error < 1e-6
        True
    """

    name: ClassVar[str] = "tls"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order", "units"})
    column_error: tuple[float, ...] | None = None
    torque_error: float | None = None
    exact: tuple[str, ...] = ("fo",)
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        if (self.column_error is None) != (self.torque_error is None):
            raise InputError("total least squares takes the errors of columns and torque together, one of them is missing")
        errors = (*(self.column_error or ()), *((self.torque_error,) if self.torque_error is not None else ()))
        if any(not (np.isfinite(error) and error >= 0.0) for error in errors) or self.torque_error == 0.0:
            raise InputError("errors of total least squares must be zero or positive numbers, that of the torque positive")

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        problem = LinearProblem.of(regression, base, prior, self.tolerance)
        mask = problem.seen.mask
        stacked = np.vstack(problem.channels)
        A = stacked[:, :-1][:, mask]
        if not mask.any() or len(A) <= A.shape[1]:
            raise InputError(f"the data hold {regression.n_rows} rows, total least squares needs more than {mask.sum()}")
        b = stacked[:, -1] - stacked[:, :-1][:, ~mask] @ problem.held[~mask]
        scale, torque_scale, exact = self._errors(regression.parameters, base, mask, A, b)
        values, covariance, ratio = solve_total(A * scale, b * torque_scale, exact, regression.n_rows)
        beta = problem.held.copy()
        beta[mask] = values * scale / torque_scale
        spread = np.zeros((base.n_base, base.n_base))
        spread[np.ix_(mask, mask)] = covariance * np.outer(scale, scale) / torque_scale**2
        notes: Sequence[str] = ()
        if ratio > NEARLY_SINGULAR:
            size = f"errors are as large as the weakest part of the regressor (ratio {ratio:.2f})"
            notes = (f"{size}: total least squares hardly has a solution here",)
        return problem.finish(self.name, beta, spread, notes=notes, details={"singular_ratio": ratio})

    def _errors(
        self, parameters: Parameters, base: BaseReduction, mask: BoolArray, A: Array, b: Array
    ) -> tuple[Array, float, BoolArray]:
        """Scale of every seen column and of the torque that makes their errors equal, and which columns have none."""
        symbols = np.array(
            [
                "" if base.independent is None else parameters.columns[int(base.independent[row])].symbol
                for row in range(base.n_base)
            ]
        )[mask]
        exact = np.isin(symbols, self.exact)
        if self.column_error is None:
            norm_b = float(np.linalg.norm(b))
            return 1.0 / np.linalg.norm(A, axis=0), 1.0 / norm_b if norm_b > 0.0 else 1.0, exact
        if len(self.column_error) != base.n_base:
            raise InputError(f"total least squares got {len(self.column_error)} column errors, expected {base.n_base}")
        error = np.array(self.column_error)[mask]
        exact = exact | (error == 0.0)
        assert self.torque_error is not None
        return 1.0 / np.where(exact, np.linalg.norm(A, axis=0), error), 1.0 / self.torque_error, exact


def solve_total(A: Array, b: Array, exact: BoolArray, n_rows: int) -> tuple[Array, Array, float]:
    """Solution, its first-order covariance and the ratio of the smallest singular values, all columns equally in error.

    ``A`` and ``b`` may be triangles; ``n_rows`` is the number of rows that went into them.
    """
    n, n_exact = A.shape[1], int(exact.sum())
    order = np.concatenate([np.flatnonzero(exact), np.flatnonzero(~exact)])
    R = triangle_of(np.column_stack([A[:, order], b]))
    if n_exact == n:  # nothing but the torque is in error: ordinary least squares
        values = scipy.linalg.solve_triangular(R[:n, :n], R[:n, n])
        variance = float(np.sum(R[n:, n] ** 2)) / max(n_rows - n, 1)
        inverse = scipy.linalg.solve_triangular(R[:n, :n], np.eye(n))
        return _unsorted(values, order), _unsorted_square(variance * inverse @ inverse.T, order), 0.0
    trailing = R[n_exact:, n_exact:]
    _, singular, right = np.linalg.svd(trailing)
    v = right[-1]
    smallest = float(singular[-1]) if len(singular) == trailing.shape[1] else 0.0
    weakest = float(np.linalg.svd(trailing[:, :-1], compute_uv=False)[-1])
    if abs(v[-1]) < 1e-12:
        raise InputError(
            "total least squares has no solution: the errors hide the weakest direction of the regressor completely"
        )
    values = np.empty(n)
    values[n_exact:] = -v[:-1] / v[-1]
    values[:n_exact] = scipy.linalg.solve_triangular(
        R[:n_exact, :n_exact], R[:n_exact, n] - R[:n_exact, n_exact:n] @ values[n_exact:]
    )
    # first order: without its errors the regressor has A^T A - s^2 on the columns in error; a row's is sigma^2 (1 + |x|^2)
    gram = R[:n, :n].T @ R[:n, :n]
    gram[range(n_exact, n), range(n_exact, n)] -= smallest**2
    variance = smallest**2 / max(n_rows - n, 1)
    covariance = variance * (1.0 + float(values[n_exact:] @ values[n_exact:])) * np.linalg.pinv(gram, hermitian=True)
    ratio = smallest / weakest if weakest > 0.0 else 1.0
    return _unsorted(values, order), _unsorted_square(covariance, order), ratio


def _unsorted(values: Array, order: IntArray) -> Array:
    out = np.empty_like(values)
    out[order] = values
    return out


def _unsorted_square(values: Array, order: IntArray) -> Array:
    out = np.empty_like(values)
    out[np.ix_(order, order)] = values
    return out
