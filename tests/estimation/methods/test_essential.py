"""Essential parameters: what the data do not support is dropped, what matters is kept."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.simulate import exact_motion
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.essential import EssentialParameters
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from noisy_logs import exact_log, noisy_log, short_arm

ARM = short_arm()
BASE = reduce_to_base(ARM)
SIGMA = np.array([0.3, 0.6, 0.1])
ABSENT = {"fo1": 0.0, "fo2": 0.0, "fv3": 0.0}
LEAN = ARM.with_parameters(ABSENT)
"""An arm that has no offset on two joints and no viscous friction on the third."""
LEAN_LOG = exact_motion(LEAN, exact_log())
TRUTH = BASE.base_values(LEAN.parameters)


def test_parameters_that_do_not_exist_are_dropped() -> None:
    found = estimate(build_regression(ARM, noisy_log(LEAN_LOG, SIGMA, seed=1)), BASE, EssentialParameters())
    dropped = set(found.details["dropped"])
    assert set(ABSENT) <= dropped
    index = [BASE.index(name) for name in dropped]
    assert (found.base_values[index] == 0.0).all()
    assert (found.covariance[index] == 0.0).all()
    assert found.rank == BASE.n_base - len(dropped)
    assert found.sigma_percent[[i for i in range(BASE.n_base) if i not in index]].max() <= 30.0
    assert found.details["f_statistic"] < found.details["f_limit"]
    full = estimate(build_regression(ARM, noisy_log(LEAN_LOG, SIGMA, seed=1)), BASE, OrdinaryLeastSquares())
    assert found.relative_error < 1.01 * full.relative_error


def test_what_matters_is_never_dropped_however_low_the_limit() -> None:
    """With a limit of 0.1 % nearly everything is a candidate; the F-test has to stop the dropping."""
    found = estimate(build_regression(ARM, noisy_log(LEAN_LOG, SIGMA, seed=2)), BASE, EssentialParameters(limit_percent=0.1))
    assert found.details["stopped_by_test"]
    full = estimate(build_regression(ARM, noisy_log(LEAN_LOG, SIGMA, seed=2)), BASE, OrdinaryLeastSquares())
    assert found.relative_error < 1.05 * full.relative_error


def test_the_statistic_is_the_f_test_on_the_growth_of_the_residual() -> None:
    """For independent noise the Wald form equals the growth of the residual per dropped parameter."""
    regression = build_regression(ARM, noisy_log(LEAN_LOG, 0.3, seed=3))
    method = EssentialParameters(weighted=False, covariance="classical", significance=1e-6)
    found = estimate(regression, BASE, method)
    full = estimate(regression, BASE, OrdinaryLeastSquares(covariance="classical"))
    squares = [float(np.sum(e.residual_rms**2)) * len(LEAN_LOG) for e in (found, full)]
    n_dropped = len(found.details["dropped"])
    statistic = (squares[0] - squares[1]) / n_dropped / (squares[1] / (regression.n_rows - BASE.n_base))
    assert n_dropped > 3
    assert found.details["f_statistic"] == pytest.approx(statistic, rel=1e-6)


def test_filtered_noise_does_not_make_parameters_essential() -> None:
    """Tested as if rows were independent, coloured noise passes for parameters; the corrected covariance sees through it."""
    found = {"corrected": 0, "classical": 0}
    for seed in range(10):
        regression = build_regression(ARM, noisy_log(LEAN_LOG, SIGMA, seed, cutoff_nyquist=0.1))
        for kind in found:
            method = EssentialParameters(covariance="corrected" if kind == "corrected" else "classical")
            found[kind] += len(set(ABSENT) & set(estimate(regression, BASE, method).details["dropped"]))
    assert found["corrected"] >= 27  # of 30
    assert found["classical"] <= 0.75 * found["corrected"]


def test_the_thirty_percent_rule_drops_all_at_once() -> None:
    regression = build_regression(ARM, noisy_log(LEAN_LOG, 0.3, seed=5))
    found = estimate(regression, BASE, EssentialParameters.gaz())
    first = estimate(regression, BASE, OrdinaryLeastSquares(covariance="classical"))
    above = [name for name, spread in zip(BASE.names, first.sigma_percent, strict=True) if spread > 30.0]
    assert found.details["dropped"] == tuple(above)
    assert above


def test_the_spread_after_dropping_is_that_of_the_smaller_fit() -> None:
    """Classical and unweighted: ``sigma^2 (W_r^T W_r)^-1`` over the kept columns, with the noise of the full fit."""
    regression = build_regression(ARM, noisy_log(LEAN_LOG, 0.3, seed=6))
    found = estimate(regression, BASE, EssentialParameters.gaz())
    full = estimate(regression, BASE, OrdinaryLeastSquares(covariance="classical"))
    kept = found.seen
    A = regression.stacked(BASE)[:, :-1][:, kept]
    wanted = full.details["noise_sigma"][0] ** 2 * np.linalg.inv(A.T @ A)
    assert not kept.all()
    assert np.allclose(found.sigma[kept], np.sqrt(np.diag(wanted)), rtol=1e-7)


def test_wrong_options_are_refused_in_words() -> None:
    with pytest.raises(InputError, match="is 0 %, expected a positive number"):
        EssentialParameters(limit_percent=0.0)
    with pytest.raises(InputError, match="significance of the F-test is 2"):
        EssentialParameters(significance=2.0)
