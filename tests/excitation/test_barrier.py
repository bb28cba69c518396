"""Minimisation inside limits: known optima, strict feasibility, deadlines."""

from __future__ import annotations

from time import monotonic

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from dynid.excitation.barrier import LinearLimits, Point
from dynid.excitation.barrier import minimise as inside


def box(n=2, k=3, seed=0):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(40, k))
    return LinearLimits(C, rng.normal(scale=0.1, size=(40, n)), rng.uniform(0.8, 1.5, (40, n)), 1.0 / 40.0)


def test_barrier_derivatives():
    limits = box()
    x = 0.1 * np.random.default_rng(1).normal(size=6)
    h = 1e-6
    steps = h * np.eye(6)
    slope = [(limits.value(x + s) - limits.value(x - s)) / (2.0 * h) for s in steps]
    np.testing.assert_allclose(limits.gradient(x), slope, rtol=1e-6, atol=1e-7)
    curvature = [(limits.gradient(x + s) - limits.gradient(x - s)) / (2.0 * h) for s in steps]
    np.testing.assert_allclose(limits.hessian(x), curvature, rtol=1e-5, atol=1e-6)
    assert limits.value(100.0 * np.ones(6)) == np.inf
    d = np.ones(6)
    step = limits.longest_step(x, d)
    assert limits.inside(x + step * d)
    assert not limits.inside(x + 1.06 * step * d)


def test_quadratic_programme_as_solved_by_scipy():
    limits = box()
    target = np.array([3.0, -1.0, 2.0, 0.5, 0.4, -2.0])

    def function(x):
        return float(((x - target) ** 2).sum()), 2.0 * (x - target)

    point = Point(np.zeros(6), np.inf)
    for mu in (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-6):
        point = inside(function, limits, point, mu, 100, enough=1e-10)
        assert limits.inside(point.x)
    A = np.kron(np.eye(2), limits.C)
    centre, half = limits.centre.T.ravel(), limits.half.T.ravel()
    expected = minimize(
        lambda x: function(x)[0],
        np.zeros(6),
        jac=lambda x: function(x)[1],
        method="SLSQP",
        constraints=[LinearConstraint(A, centre - half, centre + half)],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert point.value == pytest.approx(expected.fun, rel=2e-3)
    np.testing.assert_allclose(point.x, expected.x, atol=2e-2)


def test_regions_that_a_function_forbids_are_not_entered():
    limits = LinearLimits(np.eye(1), np.zeros((1, 1)), np.full((1, 1), 10.0), 1.0)
    seen = []

    def function(x):
        seen.append(float(x[0]))
        return (np.inf, np.zeros(1)) if x[0] > 1.0 else (-float(x[0]), -np.ones(1))

    point = inside(function, limits, Point(np.zeros(1), np.inf), 1e-3, 50)
    assert point.x[0] <= 1.0
    assert point.x[0] > 0.9


def test_deadline_stops_at_once_with_the_start():
    def function(x):
        return float((x**2).sum()), 2.0 * x

    limits = LinearLimits(np.eye(2), np.zeros((2, 1)), np.ones((2, 1)), 0.5)
    point = inside(function, limits, Point(np.full(2, 0.5), np.inf), 0.1, 50, deadline=monotonic() - 1.0)
    assert point.out_of_time
    np.testing.assert_array_equal(point.x, 0.5)


def test_curvature_that_lost_its_positive_part_is_learnt_anew():
    limits = box()
    target = 0.1 * np.ones(6)

    def function(x):
        return float(((x - target) ** 2).sum()), 2.0 * (x - target)

    spoilt = -1e6 * np.eye(6)
    clean = inside(function, limits, Point(np.zeros(6), np.inf), 1e-3, 100, enough=1e-12)
    again = inside(function, limits, Point(np.zeros(6), np.inf, spoilt), 1e-3, 100, enough=1e-12)
    np.testing.assert_allclose(again.x, clean.x, atol=1e-5)
