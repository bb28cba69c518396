"""Ordinary and weighted least squares against NumPy on the full stacked regressor."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from dynid.estimation.result import Outcome
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


def stacked(log: Samples) -> tuple[np.ndarray, np.ndarray]:
    """``W`` over base parameters and ``tau``, row = sample * joints + joint."""
    Y = torque_regressor(ARM, log.position, log.velocity, log.acceleration)
    assert log.torque is not None
    return Y.reshape(-1, len(ARM.parameters)) @ BASE.lift, log.torque.ravel()


def test_values_and_classical_uncertainty_follow_the_published_formulas() -> None:
    log = noisy_log(exact_log(), SIGMA, seed=1)
    found = estimate(build_regression(ARM, log), BASE, OrdinaryLeastSquares(covariance="classical"))
    W, tau = stacked(log)
    beta, *_ = np.linalg.lstsq(W, tau, rcond=None)
    assert np.allclose(found.base_values, beta, rtol=1e-9, atol=1e-10)
    variance = np.sum((tau - W @ beta) ** 2) / (len(tau) - BASE.n_base)  # (82)
    sigma = np.sqrt(np.diag(variance * np.linalg.inv(W.T @ W)))  # (81)
    assert np.allclose(found.sigma, sigma, rtol=1e-8)
    assert np.allclose(found.sigma_percent, 100.0 * sigma / np.abs(beta), rtol=1e-8)  # (83)
    assert found.condition_number == pytest.approx(np.linalg.cond(W), rel=1e-8)
    assert found.condition_number_scaled == pytest.approx(np.linalg.cond(W / np.linalg.norm(W, axis=0)), rel=1e-8)
    assert np.allclose(found.residual_rms, np.sqrt(np.mean((tau - W @ beta).reshape(-1, 3) ** 2, axis=0)))
    assert found.relative_error == pytest.approx(np.linalg.norm(tau - W @ beta) / np.linalg.norm(tau))


def test_the_classical_sigma_stands_beside_the_corrected_one() -> None:
    log = noisy_log(exact_log(), SIGMA, seed=1, cutoff_nyquist=0.1)
    regression = build_regression(ARM, log)
    corrected = estimate(regression, BASE, OrdinaryLeastSquares())
    classical = estimate(regression, BASE, OrdinaryLeastSquares(covariance="classical"))
    assert corrected.details["covariance"] == "corrected"
    assert np.allclose(corrected.details["classical_sigma"], classical.sigma)
    assert np.median(corrected.sigma / classical.sigma) > 2.0


def test_weights_are_those_of_the_joints() -> None:
    log = noisy_log(exact_log(), SIGMA, seed=2)
    W, tau = stacked(log)
    weight = np.tile(1.0 / SIGMA, len(log))
    beta, *_ = np.linalg.lstsq(W * weight[:, None], tau * weight, rcond=None)
    regression = build_regression(ARM, log)
    given = estimate(regression, BASE, WeightedLeastSquares(sigma=tuple(SIGMA)))
    assert np.allclose(given.base_values, beta, rtol=1e-8, atol=1e-9)
    found = estimate(regression, BASE, WeightedLeastSquares())
    assert np.allclose(found.details["noise_sigma"], SIGMA, rtol=0.1)
    assert found.outcome is Outcome.SOLVED
    # weighting pays where noise differs
    errors = [
        np.linalg.norm((e.base_values - TRUTH) / e.sigma)
        for e in (estimate(regression, BASE, OrdinaryLeastSquares()), found)
    ]
    assert np.sum(found.sigma**2 / estimate(regression, BASE, OrdinaryLeastSquares()).sigma ** 2) < 0.8 * BASE.n_base
    assert max(errors) < 3.0 * np.sqrt(BASE.n_base)


def test_equal_weights_are_ordinary_least_squares() -> None:
    regression = build_regression(ARM, noisy_log(exact_log(), SIGMA, seed=2))
    equal = estimate(regression, BASE, WeightedLeastSquares(sigma=(2.0, 2.0, 2.0)))
    assert np.allclose(
        equal.base_values, estimate(regression, BASE, OrdinaryLeastSquares()).base_values, rtol=1e-10, atol=1e-12
    )


def test_iteration_that_does_not_settle_says_so() -> None:
    regression = build_regression(ARM, noisy_log(exact_log(), SIGMA, seed=2))
    found = estimate(regression, BASE, WeightedLeastSquares(iterations=1, settle=1e-12))
    assert found.outcome is Outcome.NOT_CONVERGED


def test_wrong_options_are_refused_in_words() -> None:
    regression = build_regression(ARM, exact_log())
    with pytest.raises(InputError, match=facts("2", "3", "deviation")):
        estimate(regression, BASE, WeightedLeastSquares(sigma=(1.0, 1.0)))
    with pytest.raises(InputError, match=facts("classical", "corrected", "bootstrap", "exact", "covariance")):
        OrdinaryLeastSquares(covariance="exact")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=facts("30", "42", "prior")):
        estimate(regression, BASE, OrdinaryLeastSquares(), prior=ARM.with_effects(()).parameters)


def test_energy_differences_identify_without_acceleration() -> None:
    """Gautier and Khalil 1992 (7-10): one channel, no joints; what the torque rows know, the energy rows know too."""
    log = exact_log(None, 20.0, 1000.0, 2)
    assert log.torque is not None
    nothing = Samples(log.time, log.position, log.velocity, np.zeros_like(log.acceleration), log.torque)
    regression = energy_regression(ARM, nothing)
    found = estimate(regression, BASE, OrdinaryLeastSquares())
    assert regression.channel_names == ("energy",)
    assert found.details["covariance"] == "corrected"  # intervals of one length follow one another in time
    assert found.outcome is Outcome.SOLVED
    # trapezoidal work of a smooth motion; Coulomb friction jumps, which costs a few digits
    assert np.abs(found.base_values - TRUTH).max() < 2e-3 * np.abs(TRUTH).max()
    assert found.relative_error < 1e-3
