"""Independent columns in a given order of preference."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.regression import channels
from dynid.regression.channels import independent_columns, orthonormal_basis


def columns(n):
    return np.arange(n, dtype=np.int64)


def known_case(seed=0, rows=40):
    """Three free columns, a zero, a double and two mixtures."""
    x, y, z = np.random.default_rng(seed).normal(size=(3, rows))
    return np.column_stack([x, np.zeros(rows), y, 2.0 * x, x - 3.0 * y, z, 0.5 * z + y])


def test_known_combinations_come_out_exactly():
    W = known_case()
    found = independent_columns(W, columns(7))
    assert found.kept.tolist() == [0, 2, 5]
    expected = [[1, 0, 0, 2, 1, 0, 0], [0, 0, 1, 0, -3, 0, 1], [0, 0, 0, 0, 0, 1, 0.5]]
    np.testing.assert_allclose(found.K, expected, rtol=0, atol=1e-13)
    # round-off is no coefficient, and kept columns stand for themselves alone
    assert np.count_nonzero(found.K) == 8
    np.testing.assert_array_equal(found.K[:, found.kept], np.eye(3))
    assert found.largest_dropped < 1e-14
    assert found.smallest_kept > 0.5


def test_order_decides_which_of_them_stand_for_the_rest():
    W = known_case()
    found = independent_columns(W, np.array([6, 4, 3, 0, 1, 2, 5]))
    assert found.kept.tolist() == [6, 4, 3]
    np.testing.assert_allclose(W[:, found.kept] @ found.K, W, rtol=0, atol=1e-12)
    # x = 0.5 column 3, y = (x - column 4) / 3, z = 2 (column 6 - y)
    np.testing.assert_allclose(found.K[:, 2], [0.0, -1.0 / 3.0, 1.0 / 6.0], atol=1e-13)


def test_zero_columns_are_dropped_even_when_preferred():
    W = known_case()
    found = independent_columns(W, np.array([1, 0, 2, 3, 4, 5, 6]))
    assert 1 not in found.kept
    assert not found.K[:, 1].any()
    noisy = W.copy()
    noisy[:, 1] = 1e-16 * np.random.default_rng(1).normal(size=len(W))
    again = independent_columns(noisy, np.array([1, 0, 2, 3, 4, 5, 6]))
    assert again.kept.tolist() == found.kept.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_units_do_not_matter(seed):
    """Another unit of a parameter scales its column; the choice stays and ``K`` scales along, small coefficients too."""
    W = known_case(seed)
    units = 10.0 ** np.random.default_rng(seed).uniform(-5.0, 5.0, 7)
    plain, scaled = independent_columns(W, columns(7)), independent_columns(W * units, columns(7))
    assert scaled.kept.tolist() == plain.kept.tolist()
    expected = plain.K * units / units[plain.kept, None]
    np.testing.assert_allclose(scaled.K, expected, rtol=1e-9, atol=0)


def test_coefficients_of_any_size_survive_between_units():
    """A column in units of 3e-6 beside one in 3e5: the coefficient 1e-11 is no round-off."""
    x, y = np.random.default_rng(3).normal(size=(2, 30))
    W = np.column_stack([3e5 * x, 3e-6 * y, 3e-6 * (x + y)])
    found = independent_columns(W, columns(3), tolerance=1e-8)
    np.testing.assert_allclose(found.K[:, 2], [1e-11, 1.0], rtol=1e-9)


def test_tolerance_is_relative_to_the_column():
    x, y = np.random.default_rng(4).normal(size=(2, 50))
    W = np.column_stack([x, x + 1e-5 * y])
    assert independent_columns(W, columns(2)).kept.tolist() == [0, 1]
    loose = independent_columns(W, columns(2), tolerance=1e-3)
    assert loose.kept.tolist() == [0]
    assert 1e-6 < loose.largest_dropped < 1e-4
    tiny = 1e-9 * W
    assert independent_columns(tiny, columns(2)).kept.tolist() == [0, 1]


def test_fewer_rows_than_columns():
    W = np.random.default_rng(5).normal(size=(3, 6))
    found = independent_columns(W, columns(6))
    assert found.kept.tolist() == [0, 1, 2]
    np.testing.assert_allclose(W[:, found.kept] @ found.K, W, atol=1e-12)


def test_nothing_to_choose_from():
    for W in (np.zeros((10, 4)), np.zeros((0, 4))):
        found = independent_columns(W, columns(4))
        assert found.kept.size == 0
        assert found.K.shape == (0, 4)


def test_nearly_dependent_columns_are_still_expressed_accurately():
    rng = np.random.default_rng(6)
    x, y, z = rng.normal(size=(3, 100))
    W = np.column_stack([x, x + 1e-6 * y, z, x + y + z])
    found = independent_columns(W, columns(4))
    assert found.kept.tolist() == [0, 1, 2]
    np.testing.assert_allclose(W[:, found.kept] @ found.K, W, rtol=0, atol=1e-9 * np.abs(W).max())


def test_results_are_read_only():
    found = independent_columns(known_case(), columns(7))
    with pytest.raises(ValueError, match="read-only"):
        found.K[0, 0] = 5.0


# Bases ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", [1.0, 1e-6, 1e6])
def test_a_basis_spans_the_columns_and_no_more(units):
    W = units * known_case()
    Q = orthonormal_basis(W)
    assert Q.shape == (40, 3)
    np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-13)
    np.testing.assert_allclose(Q @ (Q.T @ W), W, atol=1e-12 * units)
    free = W[:, [0, 2, 5]]  # of full rank, in units that differ
    found = orthonormal_basis(free * [1.0, 1e-9, 1e9])
    np.testing.assert_allclose(found @ found.T, Q @ Q.T, atol=1e-12)


@pytest.mark.parametrize(("apart", "rank"), [(1e-6, 3), (1e-7, 3), (1e-10, 2), (0.0, 2)])
def test_directions_of_round_off_are_left_out(apart, rank):
    x, y, z = np.random.default_rng(3).normal(size=(3, 50))
    W = np.column_stack([x, y, x + y + apart * z])
    Q = orthonormal_basis(W)
    assert Q.shape == (50, rank)
    np.testing.assert_allclose(Q.T @ Q, np.eye(rank), atol=1e-13)


def test_wide_empty_and_zero_matrices_have_bases():
    wide = np.random.default_rng(4).normal(size=(3, 7))
    np.testing.assert_allclose(orthonormal_basis(wide) @ orthonormal_basis(wide).T, np.eye(3), atol=1e-13)
    assert orthonormal_basis(np.zeros((5, 0))).shape == (5, 0)
    assert orthonormal_basis(np.zeros((5, 2))).shape == (5, 0)


def wide_case(seed=5, rows=400, free=130, mixed=80):
    """Free columns and sparse mixtures of those before them, in units that differ."""
    rng = np.random.default_rng(seed)
    found, kept = list[np.ndarray](), list[int]()
    for k in range(free + mixed):
        if len(kept) >= 3 and (k % 3 == 2 or len(kept) == free):
            found.append(sum(rng.normal() * found[i] for i in rng.choice(kept, 3, replace=False)))
        else:
            found.append(rng.normal(size=rows) * 10.0 ** rng.integers(-3, 4))
            kept.append(k)
    return np.column_stack(found), kept


def test_many_columns_are_decided_by_their_products_as_one_by_one(monkeypatch):
    W, kept = wide_case()
    monkeypatch.setattr(channels, "_by_columns", None)
    found = independent_columns(W, columns(W.shape[1]))
    assert found.kept.tolist() == kept
    monkeypatch.undo()
    monkeypatch.setattr(channels, "MANY", 10_000)
    slow = independent_columns(W, columns(W.shape[1]))
    assert slow.kept.tolist() == kept
    np.testing.assert_allclose(found.K, slow.K, rtol=1e-9, atol=1e-12 * np.abs(slow.K).max())
    assert found.smallest_kept == pytest.approx(slow.smallest_kept, rel=1e-9)
    assert found.largest_dropped < 1e-13
    np.testing.assert_allclose(W[:, found.kept] @ found.K, W, atol=1e-12 * np.abs(W).max())


@pytest.mark.parametrize(
    ("apart", "tolerance", "independent"), [(1e-6, 1e-8, True), (1e-6, 3e-4, False), (1e-9, 1e-8, False)]
)
def test_what_products_leave_in_doubt_is_decided_by_the_columns(apart, tolerance, independent):
    W, kept = wide_case()
    W[:, 100] = W[:, kept[:4]].sum(axis=1)
    W[:, 100] += apart * np.linalg.norm(W[:, 100]) / np.sqrt(len(W)) * np.random.default_rng(6).normal(size=len(W))
    found = independent_columns(W, columns(W.shape[1]), tolerance)
    assert (100 in found.kept) == independent
    one_by_one = channels._by_columns(W / np.linalg.norm(W, axis=0), columns(W.shape[1]), tolerance, np.ones(W.shape[1]))
    assert found.kept.tolist() == one_by_one[0]


def test_columns_shorter_than_usual_are_left_out_of_many_too():
    W, kept = wide_case()
    usual = np.zeros(W.shape[1])
    usual[kept[7]] = 1e9 * np.linalg.norm(W[:, kept[7]])
    assert kept[7] not in independent_columns(W, columns(W.shape[1]), usual=usual).kept
