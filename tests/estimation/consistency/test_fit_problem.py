"""The fit that consistent methods share: its cost, its priors, what the data say of each value, and its solution."""

from __future__ import annotations

import numpy as np
import pytest

from consistent_problems import fit_of_three_links, linear_problem, noisy_tree
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.consistency.fit_problem import ConsistentFit, _root_of, check_prior, solve_whitened
from messages import facts


def test_the_cost_is_chi_square_around_the_unconstrained_solution():
    robot, base, data = noisy_tree(0, 3, 3.0)
    problem = linear_problem(robot, base, data)
    fit = ConsistentFit.of(problem, condition="full", margin=1e-6)
    assert fit.data_only
    assert fit.chi_square_excess(fit.free) == 0.0
    np.testing.assert_allclose(base.K @ fit.phi(fit.free), fit.beta, rtol=1e-9, atol=1e-12)
    triangle = problem.triangle(fit.weights)

    def squares(x):
        return float(np.sum((triangle[:, -1] - triangle[:, :-1] @ (base.K @ fit.phi(x))) ** 2))

    x = fit.free + 0.1 * np.random.default_rng(0).normal(size=fit.consistent.n)
    least = squares(fit.free)
    assert fit.chi_square_excess(x) == pytest.approx(fit.freedom * (squares(x) - least) / least, rel=1e-6)


@pytest.mark.parametrize("prior", ["euclidean", "scaled", "entropic", "auto"])
def test_a_stronger_prior_leaves_less_to_the_data(prior):
    weak, strong = (fit_of_three_links(0, prior=prior, strength=strength) for strength in (1e-6, 1e6))
    shares = [fit.share_of_data(solve_whitened(fit)[0]) for fit in (weak, strong)]
    assert all(((share >= 0.0) & (share <= 1.0)).all() for share in shares)
    assert shares[1].mean() < shares[0].mean()
    described = strong.problem.prior.values / strong.consistent.scale
    slots = strong.consistent.layout.slots.ravel()
    np.testing.assert_allclose(solve_whitened(strong)[0][slots], described[slots], atol=1e-2)


def test_the_solution_is_inside_and_no_better_than_the_unconstrained_one():
    fit = fit_of_three_links(1)
    x, details, notes, outcome = solve_whitened(fit)
    assert fit.consistent.contains(x, 1e-9)
    assert (notes, outcome) == ((), None)
    assert details["objective"] == pytest.approx(fit.value(x))
    assert fit.chi_square_excess(x) >= 0.0


def test_priors_are_checked():
    with pytest.raises(UnknownNameError, match=facts("prior", "wild")):
        check_prior("wild", 1.0, 0.0)
    with pytest.raises(InputError, match=facts("strength", "0")):
        check_prior("scaled", 0.0, 0.0)
    with pytest.raises(InputError, match=facts("regularization", "-1")):
        check_prior("scaled", 1.0, -1.0)


def test_the_root_of_a_curvature_at_the_edge() -> None:
    """A matrix that only rounding leaves definite has a root too, and a definite one the triangular root."""
    definite = np.array([[4.0, 2.0], [2.0, 3.0]])
    root = _root_of(definite, 1e-9)
    assert np.tril(root, -1) == pytest.approx(0.0)
    assert root.T @ root == pytest.approx(definite)
    edge = np.array([[1.0, 1.0 + 1e-12], [1.0 + 1e-12, 1.0]])
    root = _root_of(edge, 1e-9)
    assert root.T @ root == pytest.approx(edge, abs=1e-8)
    assert np.linalg.eigvalsh(root.T @ root).min() > 0.0
