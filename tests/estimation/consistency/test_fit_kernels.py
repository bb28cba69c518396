"""The compiled fits end at points strictly inside where the conditions of optimality hold, or say why not."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimation.consistency.fit_kernels import BROKEN, OUT_OF_STEPS, SOLVED, entropic_fit, interior_fit
from dynid.model.inertia import PSEUDO_BASIS

SLOTS, BASIS = np.arange(10).reshape(1, 10), PSEUDO_BASIS[None]
BOUNDED = np.array([10])
UNIT = np.array([1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 2.0, 0.0, 0.0, 2.0, 0.0])
"""A body whose pseudo-inertia is the identity, and one effect."""


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The curvature, a matrix outside the cone at the minimum, an effect whose bound is violated there."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(30, 11))
    return root.T @ root / 30.0, np.diag([1.0, 0.5, -0.3, 2.0])[None], np.array([-0.2])


@pytest.mark.parametrize("seed", range(3))
def test_the_interior_fit_is_optimal(seed):
    P, constant, offset = problem(seed)
    start = 2.0 * UNIT + np.eye(11)[10]
    x, end, iterations, gap = interior_fit(P, SLOTS, BASIS, constant, BOUNDED, offset, start, 1e-9, 60)
    assert end == SOLVED
    assert 0 < iterations < 30
    assert gap < 1e-8
    block = constant[0] + np.einsum("a,aij->ij", x[:10], PSEUDO_BASIS)
    assert np.linalg.eigvalsh(block)[0] > 0.0
    assert x[10] + offset[0] > 0.0
    # no direction towards another point of the set goes down
    rng, gradient = np.random.default_rng(9), P @ x
    for _ in range(50):
        factor = rng.normal(size=(4, 4))
        other = np.linalg.lstsq(PSEUDO_BASIS.reshape(10, 16).T, (factor @ factor.T - constant[0]).ravel(), rcond=None)[0]
        assert gradient @ (np.append(other, 0.2 + rng.uniform()) - x) > -1e-6


def test_the_entropic_fit_has_no_gradient_left():
    P, constant, offset = problem(0)
    linear, weight = np.append(np.einsum("aii->a", PSEUDO_BASIS), 0.0), 0.1
    start = 2.0 * UNIT + np.eye(11)[10]
    x, end, _, gap = entropic_fit(P, SLOTS, BASIS, constant, linear, weight, BOUNDED, offset, start, 1e-9, 60)
    assert end == SOLVED
    assert gap <= 1e-9
    inverse = np.linalg.inv(constant[0] + np.einsum("a,aij->ij", x[:10], PSEUDO_BASIS))
    gradient = P @ x + weight * linear
    gradient[:10] -= weight * np.einsum("ij,aij->a", inverse, PSEUDO_BASIS)
    np.testing.assert_allclose(gradient[:10], 0.0, atol=1e-5)
    assert gradient[10] * (x[10] + offset[0]) == pytest.approx(0.0, abs=1e-6)


def test_ends_that_are_no_answer_are_said():
    P, constant, offset = problem(0)
    inside, outside = 2.0 * UNIT + np.eye(11)[10], np.zeros(11)
    assert interior_fit(P, SLOTS, BASIS, constant, BOUNDED, offset, outside, 1e-9, 60)[1] == BROKEN
    assert interior_fit(P, SLOTS, BASIS, constant, BOUNDED, offset, inside, 1e-9, 2)[1] == OUT_OF_STEPS
    given = (P, SLOTS, BASIS, constant, np.zeros(11), 0.1, BOUNDED, offset)
    assert entropic_fit(*given, outside, 1e-9, 60)[1] == BROKEN
    assert entropic_fit(*given, inside, 1e-9, 2)[1] == OUT_OF_STEPS
