"""Total least squares against the singular value decomposition of the full matrix and on errors in variables."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.total import TotalLeastSquares, solve_total
from dynid.model.parameters import Column, Parameters
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.factor import Regression, build_regression, matrix_regression
from noisy_logs import exact_log, noisy_log, short_arm

ARM = short_arm()
BASE = reduce_to_base(ARM)


def plain_regression(A: np.ndarray, b: np.ndarray, symbols: str = "abcdefgh") -> tuple[Regression, BaseReduction]:
    """A regression without a robot: one channel, columns named after letters."""
    columns = tuple(Column(symbols[i], 1, "friction", "", "") for i in range(A.shape[1]))
    parameters = Parameters(columns, np.zeros(len(columns)))
    return matrix_regression(parameters, ["rows"], [np.column_stack([A, b])]), BaseReduction.from_matrix(
        np.eye(len(columns)), parameters.names
    )


def test_without_exact_columns_it_is_the_smallest_singular_vector() -> None:
    log = noisy_log(exact_log(), 0.3, seed=1)
    found = estimate(build_regression(ARM, log), BASE, TotalLeastSquares(exact=()))
    W = torque_regressor(ARM, log.position, log.velocity, log.acceleration).reshape(-1, len(ARM.parameters)) @ BASE.lift
    assert log.torque is not None
    full = np.column_stack([W, log.torque.ravel()])
    scale = 1.0 / np.linalg.norm(full, axis=0)
    v = np.linalg.svd(full * scale, full_matrices=False)[2][-1] * scale
    assert np.allclose(found.base_values, -v[:-1] / v[-1], rtol=1e-7, atol=1e-8)


def test_exact_columns_are_projected_out() -> None:
    """Golub, Hoffman and Stewart: total least squares of what is orthogonal to the exact columns, the rest by fit."""
    rng = np.random.default_rng(2)
    A, x = rng.normal(size=(200, 4)), np.array([1.0, -2.0, 0.5, 3.0])
    b = A @ x + 0.1 * rng.normal(size=200)
    A[:, 2:] += 0.1 * rng.normal(size=(200, 2))
    exact = np.array([True, True, False, False])
    values, _, _ = solve_total(A, b, exact, 200)
    Q = np.linalg.qr(A[:, exact])[0]
    rest = np.column_stack([A[:, ~exact], b])
    rest = rest - Q @ (Q.T @ rest)
    v = np.linalg.svd(rest)[2][-1]
    assert np.allclose(values[~exact], -v[:-1] / v[-1])
    assert np.allclose(values[exact], np.linalg.lstsq(A[:, exact], b - A[:, ~exact] @ values[~exact], rcond=None)[0])


def test_errors_in_the_regressor_bias_least_squares_but_not_this() -> None:
    rng = np.random.default_rng(3)
    n, x = 20_000, np.array([2.0, -1.0, 0.5])
    truth = rng.normal(size=(n, 3))
    A, b = truth + 0.4 * rng.normal(size=(n, 3)), truth @ x + 0.4 * rng.normal(size=n)
    regression, base = plain_regression(A, b)
    ordinary = estimate(regression, base, OrdinaryLeastSquares())
    total = estimate(regression, base, TotalLeastSquares(column_error=(0.4, 0.4, 0.4), torque_error=0.4))
    assert np.linalg.norm(ordinary.base_values - x) > 0.2
    assert np.linalg.norm(total.base_values - x) < 0.03


def test_claimed_spread_is_that_of_repeated_draws() -> None:
    rng = np.random.default_rng(4)
    truth, x = rng.normal(size=(400, 3)), np.array([2.0, -1.0, 0.5])
    method = TotalLeastSquares(column_error=(0.1, 0.1, 0.0), torque_error=0.2)
    values, claimed = [], []
    for _ in range(200):
        noise = rng.normal(size=(400, 4)) * [0.1, 0.1, 0.0, 0.2]
        regression, base = plain_regression(truth + noise[:, :3], truth @ x + noise[:, 3])
        found = estimate(regression, base, method)
        values.append(found.base_values)
        claimed.append(found.sigma)
    assert np.abs(np.mean(values, axis=0) - x).max() < 0.01
    assert np.allclose(np.mean(claimed, axis=0), np.std(values, axis=0), rtol=0.25)


def test_all_columns_exact_is_least_squares() -> None:
    rng = np.random.default_rng(5)
    A, b = rng.normal(size=(50, 3)), rng.normal(size=50)
    regression, base = plain_regression(A, b)
    found = estimate(regression, base, TotalLeastSquares(exact=("a", "b", "c")))
    assert np.allclose(found.base_values, np.linalg.lstsq(A, b, rcond=None)[0])


def test_hidden_directions_are_said() -> None:
    rng = np.random.default_rng(6)
    A = rng.normal(size=(60, 2))
    regression, base = plain_regression(A, 5.0 * rng.normal(size=60))
    found = estimate(regression, base, TotalLeastSquares())
    assert "hardly has a solution" in found.notes[0]


def test_wrong_options_are_refused_in_words() -> None:
    with pytest.raises(InputError, match="errors of columns and torque together"):
        TotalLeastSquares(column_error=(1.0,))
    with pytest.raises(InputError, match="that of the torque positive"):
        TotalLeastSquares(column_error=(1.0,), torque_error=0.0)
    with pytest.raises(InputError, match="got 1 column errors, expected 25"):
        estimate(build_regression(ARM, exact_log()), BASE, TotalLeastSquares(column_error=(1.0,), torque_error=1.0))
