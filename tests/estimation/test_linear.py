"""The linear solve behind the least-squares family, against dense algebra on the stacked rows."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.estimation.linear import LinearProblem, condition_number, relative
from dynid.estimation.result import Outcome
from dynid.model.parameters import Column, Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.factor import matrix_regression
from messages import facts

RNG = np.random.default_rng(0)
A1, A2 = RNG.normal(size=(40, 4)), RNG.normal(size=(25, 4))
TRUE = np.array([1.0, -2.0, 0.5, 3.0])
B1, B2 = A1 @ TRUE + 0.1 * RNG.normal(size=40), A2 @ TRUE + 0.3 * RNG.normal(size=25)


def problem(*blocks, prior=(0.0, 0.0, 0.0, 0.0)) -> LinearProblem:
    parameters = Parameters(tuple(Column(s, 1, "friction", "", "") for s in "abcd"), np.array(prior, dtype=float))
    made = [np.column_stack(block) for block in blocks]
    regression = matrix_regression(parameters, [f"c{i}" for i in range(len(made))], made)
    base = BaseReduction.from_matrix(np.eye(4), parameters.names)
    return LinearProblem.of(regression, base, parameters)


BOTH = problem((A1, B1), (A2, B2))


@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 0.2), (3.0, 7.0)])
def test_solve_is_weighted_least_squares(weights):
    w1, w2 = weights
    expected = np.linalg.lstsq(np.vstack([w1 * A1, w2 * A2]), np.concatenate([w1 * B1, w2 * B2]))[0]
    np.testing.assert_allclose(BOTH.solve(np.array(weights)), expected, rtol=1e-11)


def test_residuals_rows_and_noise():
    beta = np.array([1.1, -1.9, 0.4, 3.2])
    norms = [np.linalg.norm(B1 - A1 @ beta), np.linalg.norm(B2 - A2 @ beta)]
    np.testing.assert_allclose(BOTH.residual_norms(beta), norms, rtol=1e-11)
    assert BOTH.rows().tolist() == [40.0, 25.0]
    pooled = np.sqrt((norms[0] ** 2 + norms[1] ** 2) / (65 - 4))
    np.testing.assert_allclose(BOTH.noise_sigma(beta, pooled=True), [pooled, pooled], rtol=1e-11)
    single = [norms[0] / np.sqrt(40 - 4 * 40 / 65), norms[1] / np.sqrt(25 - 4 * 25 / 65)]
    np.testing.assert_allclose(BOTH.noise_sigma(beta, pooled=False), single, rtol=1e-11)


def test_triangle_and_covariance_are_those_of_the_normal_matrix():
    weights, sigma = np.array([2.0, 0.5]), np.array([0.1, 0.3])
    normal = 4.0 * A1.T @ A1 + 0.25 * A2.T @ A2
    R = BOTH.seen_triangle(weights)
    np.testing.assert_allclose(R.T @ R, normal, rtol=1e-11, atol=1e-11)
    inverse = BOTH.inverse_triangle(weights)
    np.testing.assert_allclose(inverse @ inverse.T, np.linalg.inv(normal), rtol=1e-10, atol=1e-14)
    B = np.linalg.inv(normal)
    meat = 16.0 * 0.01 * A1.T @ A1 + 0.0625 * 0.09 * A2.T @ A2
    np.testing.assert_allclose(BOTH.covariance(weights, sigma), B @ meat @ B, rtol=1e-9, atol=1e-15)


def test_condition_numbers_with_and_without_column_scaling():
    stacked = np.vstack([A1, A2]) * [1.0, 1e3, 1.0, 1.0]
    scaled_columns = problem((A1 * [1.0, 1e3, 1.0, 1.0], B1), (A2 * [1.0, 1e3, 1.0, 1.0], B2))
    unscaled, scaled = scaled_columns.condition_numbers()
    assert unscaled == pytest.approx(np.linalg.cond(stacked), rel=1e-9)
    assert scaled == pytest.approx(np.linalg.cond(stacked / np.linalg.norm(stacked, axis=0)), rel=1e-9)


def test_what_the_data_do_not_show_is_held_at_the_prior():
    hidden = A1 * [1.0, 1.0, 0.0, 1.0]
    found = problem((hidden, hidden @ TRUE), prior=(9.0, 9.0, 7.0, 9.0))
    assert found.seen.mask.tolist() == [True, True, False, True]
    assert found.seen.origin == ("data", "data", "prior", "data")
    np.testing.assert_allclose(found.solve(np.ones(1)), [1.0, -2.0, 7.0, 3.0], rtol=1e-11)


def test_a_parameter_tied_to_an_unseen_one_is_mixed():
    tied = A1.copy()
    tied[:, 3] = 2.0 * tied[:, 0]
    found = problem((tied, tied @ TRUE), prior=(0.0, 0.0, 0.0, 1.0))
    assert found.seen.origin == ("mixed", "data", "data", "prior")
    # a + 2 d = 7 is what the rows show; with d held at 1, a is 5
    np.testing.assert_allclose(found.solve(np.ones(1)), [5.0, -2.0, 0.5, 1.0], rtol=1e-10)


def test_estimating_some_holds_the_others_where_asked():
    only = BOTH.estimating(np.array([True, False, True, False]), np.array([0.0, -2.0, 0.0, 3.0]))
    beta = only.solve(np.ones(2))
    stacked, y = np.vstack([A1, A2]), np.concatenate([B1, B2])
    expected = np.linalg.lstsq(stacked[:, [0, 2]], y - stacked[:, [1, 3]] @ [-2.0, 3.0])[0]
    np.testing.assert_allclose(beta[[0, 2]], expected, rtol=1e-11)
    assert beta[[1, 3]].tolist() == [-2.0, 3.0]
    assert only.seen.origin == ("data", "prior", "data", "prior")
    assert only.covariance(np.ones(2), np.ones(2))[1].tolist() == [0.0] * 4


def test_finish_says_what_is_known():
    beta = BOTH.solve(np.ones(2))
    done = BOTH.finish("test", beta, np.eye(4))
    assert done.outcome is Outcome.SOLVED
    assert (done.rank, done.n_rows) == (4, 65)
    reference = np.linalg.norm(np.concatenate([B1, B2]))
    residual = np.linalg.norm(np.concatenate([B1 - A1 @ beta, B2 - A2 @ beta]))
    assert done.relative_error == pytest.approx(residual / reference, rel=1e-10)
    assert done.residual_rms[0] == pytest.approx(np.linalg.norm(B1 - A1 @ beta) / np.sqrt(40), rel=1e-10)
    hidden = A1 * [1.0, 1.0, 0.0, 1.0]
    partly = problem((hidden, hidden @ TRUE))
    assert partly.finish("test", partly.solve(np.ones(1)), np.eye(4)).outcome is Outcome.RANK_DEFICIENT


def test_refusals():
    empty = problem((np.zeros((10, 4)), np.ones(10)))
    with pytest.raises(InputError, match=facts("4", "base parameters", "zero")):
        empty.solve(np.ones(1))
    with pytest.raises(InputError, match="no row"):  # rows of zeros say nothing
        problem((np.zeros((10, 4)), np.zeros(10)))
    short = problem((A1[:2], B1[:2])).estimating(np.ones(4, dtype=bool))
    with pytest.raises(InputError, match=facts("2 rows", "4")):
        short.solve(np.ones(1))


def test_small_helpers():
    assert condition_number(np.diag([4.0, 2.0])) == 2.0
    assert condition_number(np.diag([4.0, 0.0])) == np.inf
    assert relative(np.array([3.0, 4.0]), np.array([0.0, 10.0])) == 0.5
    assert np.isnan(relative(np.ones(2), np.zeros(2)))
