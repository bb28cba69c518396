"""Robust weights: outliers lose their say, and the solution is the minimum it claims to be."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import (
    TUNING,
    IteratedReweighted,
    Loss,
    OrdinaryLeastSquares,
    huber_weight,
    tukey_weight,
)
from dynid.regression.base import reduce_to_base
from dynid.regression.energy_rows import energy_regression
from dynid.regression.factor import build_regression
from dynid.signals.samples import Samples
from messages import facts
from noisy_logs import exact_log, noisy_log, short_arm

ARM = short_arm()
BASE = reduce_to_base(ARM)
TRUTH = BASE.base_values(ARM.parameters)
SIGMA = np.array([0.3, 0.6, 0.1])
LOSSES: tuple[Loss, ...] = ("huber", "tukey")


def with_outliers(log: Samples, share: float, size: float, seed: int = 0) -> Samples:
    """Some torque readings far off, all to one side: a contact, a dropped packet."""
    rng = np.random.default_rng(seed)
    assert log.torque is not None
    hit = rng.random(log.torque.shape) < share
    return log.with_torque(log.torque + hit * size * rng.uniform(0.5, 1.5, log.torque.shape))


def psi(loss: Loss, u: Array) -> Array:
    return u * (huber_weight(u) if loss == "huber" else tukey_weight(u))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_solution_is_stationary_for_its_loss(loss: Loss) -> None:
    """``sum_j sum_t psi(r / s_j) x / s_j = 0``, from the full regressor and the scales it reports."""
    log = with_outliers(noisy_log(exact_log(), SIGMA, seed=1), 0.05, 5.0)
    found = estimate(build_regression(ARM, log), BASE, IteratedReweighted(loss, settle=1e-10, iterations=300))
    assert log.torque is not None
    W = torque_regressor(ARM, log.position, log.velocity, log.acceleration) @ BASE.lift
    scale = np.array(found.details["noise_sigma"])
    u = (log.torque - W @ found.base_values) / scale
    slope = np.einsum("tjp,tj->p", W / scale[:, None], psi(loss, u))
    size = np.sqrt(np.einsum("tjp,tj->p", (W / scale[:, None]) ** 2, psi(loss, u) ** 2))
    assert np.abs(slope / size).max() < 1e-6


@pytest.mark.parametrize(("loss", "gain"), [("huber", 3.0), ("tukey", 8.0)])
def test_outliers_lose_their_say(loss: Loss, gain: float) -> None:
    log = with_outliers(noisy_log(exact_log(), SIGMA, seed=1), 0.08, 15.0)
    regression = build_regression(ARM, log)
    ordinary, robust = (estimate(regression, BASE, m) for m in (None, IteratedReweighted(loss)))
    spread = estimate(build_regression(ARM, noisy_log(exact_log(), SIGMA, seed=1)), BASE, OrdinaryLeastSquares()).sigma
    errors = [np.linalg.norm((e.base_values - TRUTH) / spread) for e in (ordinary, robust)]
    assert errors[1] * gain < errors[0]
    assert 0.04 < np.mean(robust.details["share_downweighted"]) < 0.16


def test_without_outliers_little_is_lost() -> None:
    """95 % efficiency: variances about 1/0.95 of those of weighted least squares, on the average over logs."""
    ratios = []
    for seed in range(5):
        regression = build_regression(ARM, noisy_log(exact_log(), 0.3, seed))
        robust, ordinary = (estimate(regression, BASE, m) for m in (IteratedReweighted(covariance="classical"), None))
        ratios.append(np.mean(robust.sigma**2 / np.square(ordinary.details["classical_sigma"])))
    assert 1.0 < np.mean(ratios) < 1.12


def test_a_wide_tuning_constant_is_least_squares() -> None:
    from dynid.estimation.methods.least_squares import WeightedLeastSquares

    regression = build_regression(ARM, noisy_log(exact_log(), SIGMA, seed=3))
    robust = estimate(regression, BASE, IteratedReweighted(tuning=1e6))
    weighted = estimate(regression, BASE, WeightedLeastSquares(sigma=tuple(robust.details["noise_sigma"])))
    assert np.allclose(robust.base_values, weighted.base_values, rtol=1e-8, atol=1e-9)


def test_rows_without_joints_can_be_reweighted_too() -> None:
    log = with_outliers(exact_log(None, 20.0, 500.0, 2), 0.001, 20.0)
    regression = energy_regression(ARM, log)
    ordinary, robust = (estimate(regression, BASE, m) for m in (None, IteratedReweighted("tukey")))
    assert np.linalg.norm(robust.base_values - TRUTH) < 0.2 * np.linalg.norm(ordinary.base_values - TRUTH)


def test_weights_have_their_published_form() -> None:
    u = np.array([0.0, 1.0, -1.345, 2.69, 4.684, -9.0])
    assert np.allclose(huber_weight(u), [1.0, 1.0, 1.0, 0.5, 1.345 / 4.684, 1.345 / 9.0])
    assert np.allclose(tukey_weight(u)[[0, 5]], [1.0, 0.0])
    assert tukey_weight(np.array([TUNING["tukey"] / np.sqrt(2.0)]))[0] == pytest.approx(0.25)


def test_wrong_options_are_refused_in_words() -> None:
    with pytest.raises(InputError, match=facts("huber", "tukey", "cauchy")):
        IteratedReweighted("cauchy")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=facts("-1", "tuning")):
        IteratedReweighted(tuning=-1.0)
    bare = build_regression(ARM, exact_log()).without_sources()
    with pytest.raises(InputError, match="robust weights need every row again"):
        estimate(bare, BASE, IteratedReweighted())
