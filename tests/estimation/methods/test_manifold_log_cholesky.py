"""Log-Cholesky coordinates: exact derivatives, the optimum inside, an answer near it on the boundary."""

from __future__ import annotations

import numpy as np
import pytest

from consistent_problems import linear_problem, noisy_tree, relative_difference
from dynid.estimation.consistency.fit_problem import solve_whitened
from dynid.estimation.methods.descent import GRADIENT_MATRIX
from dynid.estimation.methods.manifold import LogCholesky, log_cholesky, upper_factor
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Outcome
from dynid.model.inertia import is_consistent, pseudo_inertia
from problems import random_phi

CHART = LogCholesky()


@pytest.mark.parametrize("seed", range(6))
def test_optimum_with_an_entropic_prior_is_that_of_the_program(seed):
    robot, base, data = noisy_tree(seed, 4, 3.0)
    fit = FeasibleSDP(prior="entropic").whiten(linear_problem(robot, base, data))
    x, _, _, _ = solve_whitened(fit)
    found = LogCholesky(covariance="classical", prior="entropic").estimate(data, base, robot.parameters)
    assert found.outcome is Outcome.SOLVED
    assert abs(relative_difference(found.details["objective"], fit.value(x))) < 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_without_a_prior_it_comes_near_the_optimum(seed):
    robot, base, data = noisy_tree(seed, 4, 3.0)
    fit = FeasibleSDP().whiten(linear_problem(robot, base, data))
    x, details, _, _ = solve_whitened(fit)
    assert details["constraints_active"]
    found = LogCholesky(covariance="classical").estimate(data, base, robot.parameters)
    assert -1e-6 < relative_difference(found.details["objective"], fit.value(x)) < 1e-3
    assert found.feasible


def test_every_iterate_is_consistent():
    robot, base, data = noisy_tree(0, 4, 8.0)
    seen = []
    LogCholesky(covariance="classical", watch=seen.append).estimate(data, base, robot.parameters)
    assert len(seen) > 3
    for parameters in seen:
        assert is_consistent(parameters.inertials, "full").all()


def test_derivatives_are_exact():
    rng = np.random.default_rng(0)
    bodies = np.array([random_phi(rng), random_phi(rng)])
    state = CHART.state(bodies)
    assert CHART.bodies(state) == pytest.approx(bodies, rel=1e-12)
    g = rng.normal(size=(2, 10))
    G = np.einsum("ijk,lk->lij", GRADIENT_MATRIX, g)

    def value(step):
        return float(np.sum(g * CHART.bodies(CHART.moved(state, step.reshape(2, 10)))))

    h, unit = 1e-4, np.eye(20)
    first = [(value(h * e) - value(-h * e)) / (2 * h) for e in unit]
    assert np.einsum("lk,lkj->lj", g, CHART.jacobian(state)).ravel() == pytest.approx(first, abs=1e-6)
    second = [
        [(value(h * (a + b)) - value(h * (a - b)) - value(h * (b - a)) + value(-h * (a + b))) / (4 * h * h) for b in unit]
        for a in unit
    ]
    blocks = np.zeros((20, 20))
    blocks[:10, :10], blocks[10:, 10:] = CHART.curvature(state, G)
    assert blocks == pytest.approx(np.array(second), abs=1e-5)


def test_upper_factor_is_that_of_the_coordinates():
    phi = random_phi(np.random.default_rng(3))
    U = upper_factor(log_cholesky(phi))
    assert pytest.approx(pseudo_inertia(phi), rel=1e-12) == U @ U.T
