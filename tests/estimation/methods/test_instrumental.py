"""Instrumental variables: noise on the motion biases least squares, and instruments take the bias away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods import instrumental
from dynid.estimation.methods.instrumental import InstrumentalVariables, motion_frequency_hz
from dynid.estimation.methods.least_squares import WeightedLeastSquares
from dynid.estimation.result import Outcome
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.signals.samples import Samples
from gravity_controller import GravityPD
from messages import facts
from noisy_logs import exact_log, noisy_log, short_arm

ARM = short_arm()
BASE = reduce_to_base(ARM)
TRUTH = BASE.base_values(ARM.parameters)
SIGMA = np.array([0.3, 0.6, 0.1])


def with_motion_noise(log: Samples, position: float, velocity: float, acceleration: float, seed: int) -> Samples:
    rng = np.random.default_rng(seed)
    shape = log.velocity.shape
    return replace(
        log,
        position=log.position + position * rng.normal(size=shape),
        velocity=log.velocity + velocity * rng.normal(size=shape),
        acceleration=log.acceleration + acceleration * rng.normal(size=shape),
    )


def test_noise_on_the_motion_biases_least_squares_but_not_this() -> None:
    """Acceleration noise of a third of the acceleration itself: inertias shrink by a tenth, with instruments not."""
    exact = exact_log(None, 8.0, 200.0, 2)
    level = 0.35 * float(np.sqrt(np.mean(exact.acceleration**2)))
    inertias = [BASE.index(name) for name in ("Izz1", "Izz2", "Izz3", "Ixx2")]
    errors: dict[str, list[Any]] = {"wls": [], "iv": []}
    for seed in range(2):
        log = noisy_log(with_motion_noise(exact, 1e-4, 1e-3, level, seed), SIGMA, seed)
        regression = build_regression(ARM, log)
        for name, method in (("wls", WeightedLeastSquares()), ("iv", InstrumentalVariables())):
            errors[name].append((estimate(regression, BASE, method).base_values / TRUTH - 1.0)[inertias])
    bias = {name: np.abs(np.mean(values, axis=0)).max() for name, values in errors.items()}
    assert bias["wls"] > 0.05
    assert bias["iv"] < 0.4 * bias["wls"]


def test_the_estimate_solves_its_moments() -> None:
    regression = build_regression(ARM, noisy_log(exact_log(), SIGMA, seed=1))
    found = estimate(regression, BASE, InstrumentalVariables())
    moments = found.details["moments"]
    assert moments.shape == (BASE.n_base, BASE.n_base + 1)
    left, right = moments[:, :-1] @ found.base_values, moments[:, -1]
    assert np.abs(left - right).max() < 1e-8 * np.abs(right).max()
    assert found.outcome is Outcome.SOLVED


def test_instruments_are_the_regressor_of_the_tracked_motion() -> None:
    """Exact computed torque tracks perfectly, so ``Z`` is the regressor of the low-passed motion: the full-matrix oracle."""
    log = noisy_log(exact_log(), SIGMA, seed=2)
    found = estimate(build_regression(ARM, log), BASE, InstrumentalVariables(cutoff_hz=8.0, weighted=False))
    (own,) = instrumental.row_logs(build_regression(ARM, log))
    tracked = own.tracked(8.0)
    assert found.details["tracking_error"][0] < 2e-3

    def rows(motion: Samples) -> np.ndarray:
        Y = torque_regressor(ARM, motion.position, motion.velocity, motion.acceleration)
        return Y.reshape(-1, len(ARM.parameters)) @ BASE.lift

    Z, W = rows(tracked), rows(log)
    assert log.torque is not None
    wanted = np.linalg.solve(Z.T @ W, Z.T @ log.torque.ravel())
    assert np.abs(found.base_values - wanted).max() < 0.3 * found.sigma.max()


def test_a_logged_reference_serves_as_well() -> None:
    exact = exact_log()
    log = noisy_log(with_motion_noise(exact, 1e-5, 1e-3, 0.3, seed=3), SIGMA, seed=3)
    reference = Samples(exact.time, exact.position, exact.velocity, exact.acceleration)
    found = estimate(build_regression(ARM, log), BASE, InstrumentalVariables(reference=(reference,)))
    assert found.outcome is Outcome.SOLVED
    assert np.mean(np.abs(found.base_values - TRUTH) < 3.0 * found.sigma) > 0.9


def test_another_controller_moves_the_model_with_its_friction() -> None:
    log = noisy_log(exact_log(None, 2.0, 100.0, 2), SIGMA, seed=4)
    method = InstrumentalVariables(controller=GravityPD(bandwidth_hz=8.0), iterations=3, settle=0.05)
    found = estimate(build_regression(ARM, log), BASE, method)
    assert found.details["tracking_error"][0] > 1e-3
    assert found.relative_error < 0.1


def test_a_model_that_cannot_move_is_replaced_and_said() -> None:
    """So little data that the estimated inertia matrix is not positive: the prior's instruments are used."""
    log = noisy_log(exact_log()[:60], 60.0 * SIGMA, seed=0)
    found = estimate(build_regression(ARM, log), BASE, InstrumentalVariables(iterations=1))
    assert any("instruments are those of the prior" in note for note in found.notes)
    assert np.isfinite(found.base_values).all()


def test_a_description_without_masses_moves_by_a_consistent_fit() -> None:
    """A DH table says nothing of masses: neither the estimate nor the prior could be simulated."""
    empty = ARM.with_parameters(ARM.parameters.with_values(0.0 * ARM.parameters.values))
    log = noisy_log(exact_log()[:60], 60.0 * SIGMA, seed=0)
    found = estimate(build_regression(empty, log), BASE, InstrumentalVariables(iterations=1), prior=empty.parameters)
    assert any("instruments are those of a consistent fit" in note for note in found.notes)
    assert np.isfinite(found.base_values).all()


def test_two_logs_are_simulated_each_by_itself() -> None:
    logs = [noisy_log(exact_log(None, 5.0, 100.0, seed), SIGMA, seed) for seed in (2, 3)]
    found = estimate(build_regression(ARM, logs), BASE, InstrumentalVariables())
    assert len(found.details["tracking_error"]) == 2
    assert np.mean(np.abs(found.base_values - TRUTH) < 3.0 * found.sigma) > 0.9


def test_the_frequency_of_a_motion_is_that_of_its_fastest_joint() -> None:
    time = np.arange(2000) / 100.0
    q = np.column_stack([np.sin(2.0 * np.pi * 0.5 * time), 0.2 * np.sin(2.0 * np.pi * 3.0 * time), np.zeros(2000)])
    assert 3.0 <= motion_frequency_hz(q, 50.0) < 3.4


def test_wrong_options_are_refused_in_words() -> None:
    with pytest.raises(InputError, match="cut-off of the tracked motion is -1 Hz"):
        InstrumentalVariables(cutoff_hz=-1.0)
    regression = build_regression(ARM, exact_log())
    with pytest.raises(InputError, match=facts("2", "1", "reference")):
        estimate(regression, BASE, InstrumentalVariables(reference=(exact_log(), exact_log())))
    with pytest.raises(InputError, match="every row again"):
        estimate(regression.without_sources(), BASE, InstrumentalVariables())
    with pytest.raises(InputError, match=facts("8", "12", "sample")):
        estimate(build_regression(ARM, [exact_log(), exact_log()[:8]]), BASE, InstrumentalVariables())
    late = exact_log()[50:]
    with pytest.raises(InputError, match=facts("0.5", "5", "0", "reference")):
        estimate(regression, BASE, InstrumentalVariables(reference=(late,)))
