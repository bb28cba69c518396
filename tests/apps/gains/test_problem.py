"""The problem of drive gains without noise: the current linearised at the truth leaves nothing, least squares is exact."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.apps.gains.problem import GainProblem
from dynid.apps.payload.load_rows import load_columns, regressor_of
from dynid.io.demo import demo_robot, demo_samples
from dynid.model.frames import frame_named
from dynid.model.inertia import phi_from_mass_com_inertia
from dynid.regression.row_source import Chunk

ARM = demo_robot().only(["shoulder_pitch", "upper_arm_roll", "elbow"])
TRUE = np.array([9.0, 12.0, 11.0])
LOAD = phi_from_mass_com_inertia(3.0, [0.03, -0.02, 0.1], np.diag([0.01, 0.012, 0.008]))


@pytest.fixture(scope="module")
def problem() -> GainProblem:
    """Rows of one motion without the load and one with it."""
    place, logs = frame_named(ARM, None), []
    for seed, carried in ((0, 0.0), (1, 1.0)):
        samples = demo_samples(ARM, seconds=6.0, rate_hz=100.0, seed=seed)
        Y = regressor_of(ARM, samples)
        loads = carried * load_columns(ARM, place, Y)[..., :10]
        current = (Y @ ARM.parameters.values + loads @ LOAD) / TRUE
        rows = np.concatenate([Y[..., :30], loads, Y[..., 30:], current[..., None]], axis=-1)
        logs.append(Chunk([rows[:, j] for j in range(3)], samples.time))
    return GainProblem.of(ARM, place, logs, 3.0)


@pytest.mark.parametrize("method", ["tls", "ols"])
def test_gains_without_noise_are_exact(problem: GainProblem, method: str) -> None:
    phi, K, covariance, error = problem.solved(method)
    np.testing.assert_allclose(K, TRUE, rtol=1e-6)
    assert error < 1e-6
    assert np.abs(covariance).max() < 1e-6
    assert phi[30] == pytest.approx(3.0)


def test_a_prior_counts_by_its_deviation(problem: GainProblem) -> None:
    phi, _, _, error = problem.solved("tls")
    found = problem.gains((phi, TRUE, np.diag(TRUE**2) * 0.04**2, error), "N m/A", "tls", [10.0, 12.0, 11.0], 0.04)
    assert found.gains[0].value == pytest.approx((9.0 / 9.0**2 + 10.0 / 10.0**2) / (1.0 / 9.0**2 + 1.0 / 10.0**2))
    assert found.gains[1].sigma == pytest.approx(0.04 * 12.0 / np.sqrt(2.0))
