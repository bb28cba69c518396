"""Covariance against the scatter of rows: what consistent links take from the best fit by chance is no error of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import dynid
from dynid.estimation.block_scatter import EXACT, widen_by_blocks
from dynid.regression.factor import factorise
from dynid.regression.floating_rows import FloatingRows, base_states
from dynid.signals.base_motion import BaseMotion


def problem(seed: int, noise: Any = 1.0) -> tuple[Any, FloatingRows, dynid.Samples]:
    """Weighted least squares on a body with a wheel, with noise of every row by itself."""
    hinge = dynid.Joint("hinge", "revolute", 0, np.eye(4), [0, 0, 0, 0, 0, 1])
    body = [2.0, 0.1, 0, 0.1, 0.2, 0, 0.3, 0, 0, 0.4]
    robot = dynid.make_robot("wheel", [dynid.Joint("base", "floating", -1, np.eye(4), np.zeros(6)), hinge], [body, body])
    rng, n = np.random.default_rng(seed), 3000
    q, v, a = base_states(robot, BaseMotion(*rng.normal(size=(3, n, 3))), *rng.normal(size=(3, n, 1)))
    torque = dynid.inverse_dynamics(robot, q, v, a) + noise * rng.normal(size=(n, 7))
    samples = dynid.Samples(0.01 * np.arange(n), q, v, a, torque=torque)
    rows = FloatingRows(robot, (samples,))
    found = dynid.estimate(factorise(rows), dynid.reduce_to_base(robot), dynid.WeightedLeastSquares())
    return found, rows, samples


def wider(found: Any, rows: FloatingRows, samples: dynid.Samples) -> Any:
    seen = found.seen
    return (widen_by_blocks(found, rows, (samples,), np.zeros(7))[0].sigma / found.sigma)[seen]


def test_rows_with_noise_of_their_own_widen_intervals_little() -> None:
    assert np.median([wider(*problem(seed)) for seed in range(5)]) < 1.1


def test_a_step_that_noise_explains_widens_nothing_and_one_beyond_it_does() -> None:
    found, rows, samples = problem(0)
    step = np.linalg.cholesky(found.covariance) @ np.random.default_rng(1).choice([-1.0, 1.0], len(found.sigma))
    near, far = (replace(found, base_values=found.base_values + size * step) for size in (0.9, 4.0))
    np.testing.assert_allclose(wider(near, rows, samples), wider(found, rows, samples), rtol=1e-2)
    assert np.median(wider(far, rows, samples)) > 1.5 * np.median(wider(found, rows, samples))


def test_an_exact_log_has_intervals_of_a_part_of_its_torque() -> None:
    found, rows, samples = problem(0, 0.0)
    torque = np.sqrt(np.mean(np.square(samples.torque), axis=0))
    told = widen_by_blocks(found, rows, (samples,), torque)[0].sigma[found.seen]
    noisy = problem(0, EXACT * torque)[0].sigma[found.seen]
    np.testing.assert_allclose(told, noisy, rtol=0.3)
    assert (found.sigma[found.seen] < 1e-3 * noisy).all()
