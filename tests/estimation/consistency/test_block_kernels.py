"""Compiled algebra of small blocks against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimation.consistency.block_kernels import (
    add_adjoint,
    add_blocks,
    block_values,
    half_hessians,
    inverses,
    log_determinants,
    longest_step,
    scaled_hessians,
    symmetric_products,
)
from dynid.model.inertia import PSEUDO_BASIS

RNG = np.random.default_rng(0)
SLOTS = np.array([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [10, 11, 12, 13, 14, 15, 16, 17, 18, -1]])
BASIS = np.tile(PSEUDO_BASIS, (2, 1, 1, 1))


def positive(count: int = 2) -> np.ndarray:
    root = RNG.normal(size=(count, 4, 4))
    return root @ np.swapaxes(root, 1, 2) + 0.1 * np.eye(4)


def basis_of(block: int) -> np.ndarray:
    """The basis with nothing in empty slots."""
    return np.where(SLOTS[block] >= 0, 1.0, 0.0)[:, None, None] * BASIS[block]


def test_values_and_their_adjoint():
    x, constant, S = RNG.normal(size=19), RNG.normal(size=(2, 4, 4)), np.empty((2, 4, 4))
    block_values(x, SLOTS, BASIS, constant, S)
    for b in range(2):
        np.testing.assert_allclose(S[b], constant[b] + np.einsum("a,aij->ij", x[SLOTS[b]], basis_of(b)), atol=1e-14)
    M, out = positive(), np.zeros(19)
    add_adjoint(M, SLOTS, BASIS, 2.0, out)
    assert out @ x == pytest.approx(2.0 * np.vdot(M, S - constant), rel=1e-12)


def test_inverses_products_and_determinants():
    A, X, Y = positive(), positive(), positive()
    found, product = np.empty_like(A), np.empty_like(A)
    assert inverses(A, found)
    np.testing.assert_allclose(found, np.linalg.inv(A), rtol=1e-9)
    symmetric_products(found, X, Y, product)
    whole = np.linalg.inv(A) @ X @ Y
    np.testing.assert_allclose(product, 0.5 * (whole + np.swapaxes(whole, 1, 2)), rtol=1e-8, atol=1e-9)
    assert log_determinants(A) == pytest.approx(np.linalg.slogdet(A)[1].sum(), rel=1e-12)
    assert not inverses(-A, found)
    assert log_determinants(-A) == -np.inf


def test_both_hessians_are_the_curvature_of_the_barrier():
    S, Z = positive(), positive()
    inverse, D, J = np.empty_like(S), np.empty((2, 10, 10)), np.empty((2, 16, 10))
    inverses(S, inverse)
    scaled_hessians(inverse, Z, SLOTS, BASIS, D)
    assert half_hessians(S, Z, SLOTS, BASIS, J)
    for b in range(2):
        B = basis_of(b)
        wanted = np.einsum("aij,cij->ac", B, np.linalg.inv(S[b]) @ B @ Z[b])
        np.testing.assert_allclose(D[b], 0.5 * (wanted + wanted.T), rtol=1e-8, atol=1e-9)
        used = SLOTS[b] >= 0
        np.testing.assert_allclose((J[b].T @ J[b])[np.ix_(used, used)], D[b][np.ix_(used, used)], rtol=1e-8, atol=1e-9)
    H = np.ones((19, 19))
    add_blocks(D, SLOTS, H)
    np.testing.assert_array_equal(H[:10, :10], 1.0 + D[0])
    np.testing.assert_array_equal(H[:10, 10:], 1.0)


def test_the_longest_step_stays_inside_and_reaches_the_boundary():
    A, step = positive(), -positive()
    longest = min(1.0 / np.linalg.eigvals(np.linalg.solve(a, -s)).real.max() for a, s in zip(A, step, strict=True))
    found = longest_step(A, step, 1e3)
    assert 0.95 * longest < found
    assert found <= longest
    assert longest_step(A, positive(), 0.7) == 0.7
