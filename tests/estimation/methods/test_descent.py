"""Damped Newton on consistent coordinates: bounded steps, starts, derivatives and the descent itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from consistent_problems import linear_problem, noisy_tree
from dynid.errors import InputError
from dynid.estimation.methods.descent import (
    GRADIENT_MATRIX,
    block_diagonal,
    bounded_step,
    consistent_start,
    lifted,
)
from dynid.estimation.methods.manifold import Manifold
from dynid.model.inertia import PSEUDO_BASIS, pseudo_inertia
from messages import facts


@pytest.fixture(scope="module")
def fit():
    """A problem whose unconstrained solution is not consistent."""
    made = Manifold(covariance="classical").whiten(linear_problem(*noisy_tree(0, 4, 8.0)))
    assert not made.consistent.contains(made.centre)
    return made


@pytest.mark.parametrize("seed", range(5))
def testbounded_step_is_the_minimum_within_the_bounds(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(6, 6))
    H, g, size = root @ root.T + 0.1 * np.eye(6), rng.normal(size=6), np.ones(6)
    lower = np.array([-np.inf, -0.1, 0.0, -0.5, -np.inf, 0.0])
    step = bounded_step(H, g, size, 0.3, lower)
    assert (step >= lower).all()
    M = H + 0.3 * np.eye(6)
    slope = g + M @ step
    inside = step > lower + 1e-12
    np.testing.assert_allclose(slope[inside], 0.0, atol=1e-10)
    assert (slope[~inside] >= -1e-10).all()
    bounds = [(None if np.isinf(low) else low, None) for low in lower]
    other = minimize(lambda x: g @ x + 0.5 * x @ M @ x, np.zeros(6), jac=lambda x: g + M @ x, bounds=bounds, tol=1e-14)
    assert g @ step + 0.5 * step @ M @ step <= other.fun + 1e-9


def test_no_step_of_a_model_that_is_not_convex():
    free = np.full(2, -np.inf)
    assert bounded_step(np.diag([1.0, -1.0]), np.ones(2), np.ones(2), 0.5, free) is None
    np.testing.assert_allclose(bounded_step(np.diag([1.0, -1.0]), np.ones(2), np.ones(2), 3.0, free), [-0.25, -0.5])


def test_gradient_matrix_is_the_adjoint_of_the_pseudo_inertia():
    """``<G, P(phi)> = g . phi`` for every gradient and body."""
    rng = np.random.default_rng(0)
    g, phi = rng.normal(size=(2, 10))
    G = np.einsum("ijk,k->ij", GRADIENT_MATRIX, g)
    assert np.sum(G * np.einsum("k,kij->ij", phi, PSEUDO_BASIS)) == pytest.approx(g @ phi, rel=1e-12)


def test_blocks_on_the_diagonal():
    made = block_diagonal(np.full((2, 10, 10), 2.0), 23)
    assert made[:10, :10].min() == made[10:20, 10:20].max() == 2.0
    assert not made[:10, 10:].any()
    assert np.diag(made)[20:].tolist() == [1.0] * 3
    assert not block_diagonal(np.zeros((2, 10, 10)), 23, rest=0.0).any()


@pytest.mark.parametrize("prior", ["none", "entropic"])
def test_derivatives_are_those_of_the_value(prior):
    """Gradient against central differences of the value, Hessian against those of the gradient."""
    made = Manifold(covariance="classical", prior=prior).whiten(linear_problem(*noisy_tree(1, 3, 4.0)))
    x = consistent_start(made)
    gradient, hessian = made.derivatives(x)
    rng, h = np.random.default_rng(0), 1e-5
    for _ in range(5):
        d = rng.normal(size=len(x))
        d /= np.linalg.norm(d)
        slope = (made.value(x + h * d) - made.value(x - h * d)) / (2.0 * h)
        assert gradient @ d == pytest.approx(slope, rel=1e-4, abs=1e-6 * np.linalg.norm(gradient))
        change = (made.derivatives(x + h * d)[0] - made.derivatives(x - h * d)[0]) / (2.0 * h)
        np.testing.assert_allclose(hessian @ d, change, rtol=1e-3, atol=1e-5 * np.abs(hessian).max())


def test_lifted_is_inside_and_leaves_what_is_inside(fit):
    slots = fit.consistent.layout.slots
    raised = lifted(fit, fit.centre, 1e-2)
    assert np.linalg.eigvalsh(pseudo_inertia(raised[slots])).min() >= fit.consistent.margin + 1e-2 - 1e-9
    assert (raised[fit.consistent.linear.lower_bounded] >= 1e-2).all()
    assert fit.consistent.contains(raised)
    np.testing.assert_allclose(lifted(fit, raised, 1e-3), raised, rtol=1e-9, atol=1e-9)


def test_the_start_is_the_better_of_data_and_prior(fit):
    start = consistent_start(fit)
    assert fit.consistent.contains(start)
    prior = lifted(fit, fit.problem.prior.values / fit.consistent.scale, 1e-2)
    assert fit.value(start) <= min(fit.value(prior), fit.value(lifted(fit, fit.centre, 1e-2)))


def test_descent_never_rises_and_ends_where_no_step_promises_more(fit):
    method = Manifold(covariance="classical")
    x, converged, details = method.solve(fit)
    assert converged
    assert len(details["history"]) > 2
    assert (np.diff(details["history"]) <= 0.0).all()
    assert details["decrement"] <= method.settle * (0.5 + details["objective"])
    slots = fit.consistent.layout.slots
    assert np.linalg.eigvalsh(pseudo_inertia(x[slots])).min() >= fit.consistent.margin * (1.0 - 1e-6) - 1e-12
    assert (x[fit.consistent.linear.lower_bounded] >= 0.0).all()
    # nothing consistent nearby is better
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = lifted(fit, x + 1e-3 * rng.normal(size=len(x)), 0.0)
        assert fit.value(other) >= details["objective"] * (1.0 - 1e-9)


def test_a_watcher_ends_it(fit):
    seen = []
    x, converged, _ = Manifold(covariance="classical").solve(fit, lambda phi: seen.append(phi) or len(seen) == 2)
    assert len(seen) == 2
    assert not converged
    np.testing.assert_array_equal(fit.phi(x), seen[-1])


def test_options_are_checked():
    with pytest.raises(InputError, match=facts("iterations", "0")):
        Manifold(iterations=0)
