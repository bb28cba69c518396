"""The manifold of bodies: the optimum of the semidefinite program, every iterate consistent, stopped at any time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from consistent_problems import linear_problem, noisy_tree, relative_difference
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.estimation.consistency.fit_problem import solve_whitened
from dynid.estimation.methods.descent import GRADIENT_MATRIX
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.manifold import EQUAL_MOMENTS, Manifold
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Outcome
from dynid.model.inertia import is_consistent, pseudo_inertia
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.signals.samples import Samples
from problems import planar_2r, random_motion, random_phi

CHART = Manifold()


@pytest.mark.parametrize("seed", range(6))
def test_optimum_with_an_entropic_prior_is_that_of_the_program(seed):
    robot, base, data = noisy_tree(seed, 4, 3.0)
    options = {"prior": "entropic", "strength": 1.0}
    fit = FeasibleSDP(**options).whiten(linear_problem(robot, base, data))
    x, _, _, _ = solve_whitened(fit)
    found = Manifold(covariance="classical", **options).estimate(data, base, robot.parameters)
    assert found.outcome is Outcome.SOLVED
    assert abs(relative_difference(found.details["objective"], fit.value(x))) < 1e-6
    assert found.standard.values / fit.consistent.scale == pytest.approx(x, abs=2e-3)


@pytest.mark.parametrize("seed", range(6))
def test_optimum_on_the_boundary_is_that_of_the_program(seed):
    robot, base, data = noisy_tree(seed, 4, 3.0)
    fit = FeasibleSDP().whiten(linear_problem(robot, base, data))
    x, details, _, _ = solve_whitened(fit)
    assert details["constraints_active"]
    found = Manifold(covariance="classical").estimate(data, base, robot.parameters)
    assert relative_difference(found.details["objective"], fit.value(x)) < 1e-5
    assert found.feasible


def test_every_iterate_is_consistent_and_no_worse_than_the_one_before():
    robot, base, data = noisy_tree(0, 4, 8.0)
    seen = []
    found = Manifold(covariance="classical", watch=seen.append).estimate(data, base, robot.parameters)
    assert len(seen) > 3
    for parameters in seen:
        assert is_consistent(parameters.inertials, "full").all()
    history = found.details["history"]
    assert len(history) > 3
    assert all(later <= earlier for earlier, later in pairwise(history))


def test_it_can_be_stopped_at_any_time_with_a_valid_answer():
    robot, base, data = noisy_tree(0, 4, 8.0)
    for method in (
        Manifold(covariance="classical", iterations=2),
        Manifold(covariance="classical", watch=lambda _: True),
        Manifold(covariance="classical", seconds=0.0),
    ):
        found = method.estimate(data, base, robot.parameters)
        assert found.outcome is Outcome.NOT_CONVERGED
        assert found.outcome.usable
        assert found.feasible


def test_feasible_least_squares_is_returned_unchanged():
    robot, base, data = noisy_tree(0, 4, noise=1e-4)
    free = OrdinaryLeastSquares(covariance="classical").estimate(data, base, robot.parameters)
    found = Manifold(covariance="classical").estimate(data, base, robot.parameters)
    assert np.array_equal(found.base_values, free.base_values)


def test_parameters_nobody_sees_do_not_wander():
    """A planar arm shows seven of its twenty parameters; the others stay of the robot's size."""
    robot = planar_2r()
    q, v, a = random_motion(robot, 200, 0)
    tau = inverse_dynamics(robot, q, v, a) + 3.0 * np.random.default_rng(0).normal(size=a.shape)
    samples = Samples(time=0.01 * np.arange(200), position=q, velocity=v, acceleration=a, torque=tau)
    base, data = reduce_to_base(robot), build_regression(robot, samples)
    unseen = [i for i in range(20) if not base.K[:, i].any()]
    assert len(unseen) > 5
    found = Manifold(covariance="classical").estimate(data, base, robot.parameters)
    assert found.feasible
    assert found.outcome is Outcome.SOLVED
    assert np.abs(found.standard.values - robot.parameters.values)[unseen].max() < 1.0


def test_a_step_moves_parameters_along_the_tangent_while_it_stays_inside():
    rng = np.random.default_rng(0)
    bodies = np.array([random_phi(rng), random_phi(rng)])
    state = CHART.state(bodies)
    assert CHART.bodies(state) == pytest.approx(bodies, rel=1e-12)
    step = 1e-4 * rng.normal(size=(2, 10))
    expected = bodies + np.einsum("lij,lj->li", CHART.jacobian(state), step)
    assert CHART.bodies(CHART.moved(state, step)) == pytest.approx(expected, rel=1e-10)
    # whatever the step, what comes out is a body
    wild = CHART.bodies(CHART.moved(state, np.maximum(10.0 * rng.normal(size=(2, 10)), CHART.lower(state))))
    assert np.linalg.eigvalsh(pseudo_inertia(wild)).min() > -1e-9


def test_cutting_off_costs_what_the_curvature_says():
    """At a vanishing moment with a positive multiplier: second differences of the gradient along retracted steps."""
    rng = np.random.default_rng(1)
    m, c, Q, L = (
        np.array([2.0]),
        rng.normal(size=(1, 3)),
        np.linalg.qr(rng.normal(size=(3, 3)))[0],
        np.array([[0.0, 0.3, 0.7]]),
    )
    Q[:, 0] *= np.linalg.det(Q)
    state = (m, c, Q[None], L)
    # a gradient that vanishes but for the multiplier of the first moment, as at an optimum
    n = np.append(Q[:, 0], -Q[:, 0] @ c[0])
    G = np.outer(n, n)
    g = np.array([np.sum(G * pseudo_inertia(e)) for e in np.eye(10)])
    assert np.einsum("ijk,k->ij", GRADIENT_MATRIX, g) == pytest.approx(G, abs=1e-12)
    H = CHART.curvature(state, G[None])[0]
    h = 1e-4
    for k in (1, 2, 3, 4, 5, 6):
        step = h * np.eye(10)[k]
        values = [g @ CHART.bodies(CHART.moved(state, s[None]))[0] for s in (step, 0 * step, -step)]
        second = (values[0] - 2.0 * values[1] + values[2]) / h**2
        assert second == pytest.approx(H[k, k], abs=1e-4)


def test_axes_of_equal_moments_are_turned_to_the_gradient():
    rng = np.random.default_rng(2)
    L = np.array([[0.0, 0.5 * EQUAL_MOMENTS, 0.4]])
    state = (np.ones(1), np.zeros((1, 3)), np.eye(3)[None], L)
    G = rng.normal(size=(1, 4, 4))
    G = G + np.swapaxes(G, 1, 2)
    turned = CHART.aligned(state, G)
    axes = turned[2][0]
    A = axes.T @ G[0, :3, :3] @ axes
    assert abs(A[0, 1]) < 1e-12
    assert CHART.bodies(turned) == pytest.approx(CHART.bodies(state), abs=2e-9)
    assert np.linalg.det(axes) == pytest.approx(1.0)


def test_refusals():
    with pytest.raises(InputError, match="iterations is 0, expected at least one"):
        Manifold(iterations=0)
