"""Ridge to a prior: the normal equations, both limits, and the choice of its strength."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.linear import parameter_scale
from dynid.estimation.methods.least_squares import Ridge, WeightedLeastSquares, base_scale
from dynid.model.parameters import Parameters
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from messages import facts
from noisy_logs import exact_log, locked, noisy_log, short_arm

ARM = short_arm()
BASE = reduce_to_base(ARM)
TRUTH = BASE.base_values(ARM.parameters)
SIGMA = np.array([0.3, 0.6, 0.1])


def prior_off_by(error: float, seed: int = 0) -> Parameters:
    rng = np.random.default_rng(seed)
    scale = parameter_scale(ARM.parameters)
    return ARM.parameters.with_values(ARM.parameters.values + error * scale * rng.normal(size=len(scale)))


def test_the_answer_solves_the_normal_equations() -> None:
    log, prior = noisy_log(exact_log(), SIGMA, seed=1), prior_off_by(0.1)
    found = estimate(build_regression(ARM, log), BASE, Ridge(spread=0.2), prior)
    weight = np.tile(1.0 / np.array(found.details["noise_sigma"]), len(log))
    W = torque_regressor(ARM, log.position, log.velocity, log.acceleration).reshape(-1, len(ARM.parameters)) @ BASE.lift
    assert log.torque is not None
    start, size = BASE.base_values(prior), base_scale(BASE, prior)
    A, b = W * weight[:, None], log.torque.ravel() * weight
    normal = A.T @ A + np.diag(1.0 / (0.2 * size) ** 2)
    assert np.allclose(found.base_values - start, np.linalg.solve(normal, A.T @ (b - A @ start)), rtol=1e-6, atol=1e-9)
    assert np.allclose(found.covariance, np.linalg.inv(normal), rtol=1e-6, atol=1e-12)


def test_its_limits_are_the_data_and_the_prior() -> None:
    regression, prior = build_regression(ARM, noisy_log(exact_log(), SIGMA, seed=1)), prior_off_by(0.2)
    trusting = estimate(regression, BASE, Ridge(spread=1e-7), prior)
    assert np.allclose(trusting.base_values, BASE.base_values(prior), rtol=1e-6, atol=1e-9)
    assert set(trusting.origin) == {"prior"}
    doubting = estimate(regression, BASE, Ridge(spread=1e6), prior)
    sigma = tuple(doubting.details["noise_sigma"])
    weighted = estimate(regression, BASE, WeightedLeastSquares(sigma=sigma), prior)
    assert np.allclose(doubting.base_values, weighted.base_values, rtol=1e-6, atol=1e-7)
    assert set(doubting.origin) == {"data"}


def test_a_good_prior_helps_poor_data() -> None:
    """A short noisy log: closer to the truth with the prior than without, for the spread chosen by itself too."""
    better = 0
    for seed in range(6):
        log = noisy_log(exact_log()[:160], 10.0 * SIGMA, seed)
        regression, prior = build_regression(ARM, log), prior_off_by(0.02, seed)
        size = base_scale(BASE, prior)
        ordinary = estimate(regression, BASE, WeightedLeastSquares(), prior)
        ridge = estimate(regression, BASE, Ridge(), prior)
        better += np.linalg.norm((ridge.base_values - TRUTH) / size) < np.linalg.norm((ordinary.base_values - TRUTH) / size)
    assert better >= 5


def test_the_chosen_spread_follows_the_prior() -> None:
    regression = build_regression(ARM, noisy_log(exact_log(None, 20.0), SIGMA, seed=3))
    good, bad = (estimate(regression, BASE, Ridge(), prior_off_by(error)).details["spread"] for error in (0.001, 2.0))
    assert good < 0.1 < bad


def test_what_the_data_do_not_show_stays_with_the_prior() -> None:
    prior = prior_off_by(0.1)
    found = estimate(build_regression(ARM, locked(exact_log(), 1, ARM)), BASE, Ridge(spread=0.5), prior)
    unseen = BASE.index("fv2")
    assert found.origin[unseen] == "prior"
    assert found.base_values[unseen] == pytest.approx(BASE.base_values(prior)[unseen], rel=1e-9)
    assert found.details["share_of_data"][unseen] < 1e-6


def test_a_prior_that_may_not_be_wrong_is_refused() -> None:
    with pytest.raises(InputError, match=facts("0", "spread", "prior")):
        Ridge(spread=0.0)
