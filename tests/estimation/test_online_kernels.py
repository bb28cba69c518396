"""The loops of recursive least squares against NumPy and SciPy on small dense problems."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from dynid.estimation.online_kernels import choose_columns, eliminate, fold_rows, solve_identified

RNG = np.random.default_rng(5)


def folded(*parts: np.ndarray) -> np.ndarray:
    """Triangle of rows folded in one part after another."""
    n = parts[0].shape[1]
    R, buffer = np.zeros((n, n)), np.zeros(n)
    for part in parts:
        fold_rows(R, part.copy(), buffer)
    return R


def test_chosen_columns_are_a_product_with_a_selection():
    channels = [
        (RNG.normal(size=(3, 4)), [(0, 1, 2.0), (2, 1, -1.0), (1, 0, 0.5)]),
        (RNG.normal(size=(2, 3)), [(1, 2, 3.0)]),
    ]
    weights = np.array([0.5, 2.0])
    flat = np.concatenate([block.ravel(order="F") for block, _ in channels])
    entries = [entry for _, group in channels for entry in group]
    source, target, factor = (np.array(part) for part in zip(*entries, strict=True))
    out = np.zeros((5, 4))
    shapes = np.array([block.shape for block, _ in channels])
    choose_columns(flat, shapes, np.array([0, 3, 4]), source, target, factor.astype(float), weights, out)
    expected = np.zeros((5, 4))
    first = 0
    for (block, group), weight in zip(channels, weights, strict=True):
        rows = slice(first, first + len(block))
        for a, b, times in group:
            expected[rows, b] += weight * times * block[:, a]
        expected[rows, -1] = weight * block[:, -1]
        first += len(block)
    np.testing.assert_allclose(out, expected, rtol=1e-14)


@pytest.mark.parametrize("zeros", [False, True])
def test_folding_keeps_the_normal_matrix_and_the_triangle(zeros):
    parts = [RNG.normal(size=(m, 5)) for m in (1, 4, 7)]
    if zeros:
        for part in parts:
            part[:, 2] = 0.0
            part[0] = 0.0
    R = folded(*parts)
    stacked = np.vstack(parts)
    np.testing.assert_allclose(R.T @ R, stacked.T @ stacked, atol=1e-13)
    np.testing.assert_array_equal(np.tril(R, -1), 0.0)
    assert (np.diag(R) != 0.0).tolist() == [True, True, not zeros, True, True]


def test_folding_a_negative_and_a_positive_head_loses_no_digits():
    """The reflection goes away from the head, so that a large one and small rows below do not cancel."""
    for head, small in ((1e8, 1e-4), (-1e8, 1e-4), (0.5, 1e-9), (-0.5, 1e-9)):
        R = np.array([[head, 3.0], [0.0, 1.0]])
        before = R.copy()
        rows = np.array([[small, 2.0]])
        fold_rows(R, rows.copy(), np.zeros(2))
        both = np.vstack([before, rows])
        expected = scipy.linalg.qr(both, mode="r")[0][:2]
        np.testing.assert_allclose(np.abs(R), np.abs(expected), rtol=1e-13)


def solved(A: np.ndarray, b: np.ndarray, start: np.ndarray, bound: float = 1e-8, relative: float = 1e-5):
    n = A.shape[1]
    R = folded(np.column_stack([A, b]))
    flags, values = np.zeros(n, dtype=np.int64), np.zeros(n)
    before = R.copy()
    residual = solve_identified(R, start, np.full(n, bound), relative, np.empty_like(R), np.zeros(n + 1), flags, values)
    np.testing.assert_array_equal(R, before)  # the triangle is kept
    return residual, flags, values


def test_full_rank_is_least_squares():
    A, b, start = RNG.normal(size=(30, 6)), RNG.normal(size=30), RNG.normal(size=6)
    residual, flags, values = solved(A, b, start)
    expected, (squares,), *_ = np.linalg.lstsq(A, b, rcond=None)
    np.testing.assert_array_equal(flags, 1)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert residual == pytest.approx(squares, rel=1e-12)


def test_dependent_and_silent_columns_keep_their_start():
    A, b, start = RNG.normal(size=(30, 7)), RNG.normal(size=30), RNG.normal(size=7)
    A[:, 1] = 0.0  # never excited
    A[:, 3] = 2.0 * A[:, 0] - A[:, 2]  # dependent on columns before it
    A[:, 6] = A[:, 4]
    residual, flags, values = solved(A, b, start)
    np.testing.assert_array_equal(flags, [1, 0, 1, -1, 1, 1, -1])
    held = [1, 3, 6]
    free = [0, 2, 4, 5]
    np.testing.assert_array_equal(values[held], start[held])
    expected, (squares,), *_ = np.linalg.lstsq(A[:, free], b - A[:, held] @ start[held], rcond=None)
    np.testing.assert_allclose(values[free], expected, atol=1e-11)
    assert residual == pytest.approx(squares, rel=1e-11)


def test_bounds_decide_between_seen_dependent_and_silent():
    A, b = np.diag([1.0, 1e-3, 2.0]), np.array([1.0, 1.0, 1.0])
    A[0, 2] = 5.0
    start = np.zeros(3)
    assert solved(A, b, start, bound=1e-7)[1].tolist() == [1, 1, 1]
    assert solved(A, b, start, bound=1e-5)[1].tolist() == [1, 0, 1]
    assert solved(A, b, start, bound=4.5)[1].tolist() == [0, 0, 1]  # its own square counts 29, and none is before it
    # relative: the part of column 3 outside column 1 is 2 of a length of 5.4
    assert solved(A, b, start, relative=0.36)[1].tolist() == [1, 1, 1]
    assert solved(A, b, start, relative=0.38)[1].tolist() == [1, 1, -1]


@pytest.mark.parametrize("head", [3.0, -3.0, 0.5, -0.5])
def test_turning_rows_behind_a_silent_column_loses_no_digits(head):
    """Column 2 takes the row that column 1 left; below its large entry stands a small one."""
    R = np.array([[0.0, head, 1.0, 2.0], [0.0, 1e-9, 4.0, 1.0], [0.0, 0.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.5]])
    flags, values = np.zeros(3, dtype=np.int64), np.zeros(3)
    residual = solve_identified(R, np.zeros(3), np.full(3, 1e-20), 1e-12, np.empty_like(R), np.zeros(4), flags, values)
    assert flags.tolist() == [0, 1, 1]
    expected, (squares,), *_ = np.linalg.lstsq(R[:, 1:3], R[:, 3], rcond=None)
    np.testing.assert_allclose(values[1:], expected, rtol=1e-12)
    assert residual == pytest.approx(squares, rel=1e-12)


def test_entries_of_exactly_one_are_turned_like_any_other():
    R = np.array([[0.0, 2.0, 4.0], [0.0, 1.0, 2.0], [0.0, 0.0, 5.0]])
    flags, values = np.zeros(2, dtype=np.int64), np.zeros(2)
    residual = solve_identified(R, np.zeros(2), np.full(2, 1e-20), 1e-12, np.empty_like(R), np.zeros(3), flags, values)
    assert flags.tolist() == [0, 1]
    assert values == pytest.approx([0.0, 2.0])
    assert residual == pytest.approx(25.0)


def test_a_column_of_zeros_is_silent_even_without_a_bound():
    A, b = RNG.normal(size=(10, 3)), RNG.normal(size=10)
    A[:, 1] = 0.0
    assert solved(A, b, np.zeros(3), bound=0.0)[1].tolist() == [1, 0, 1]


def eliminated(K: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    n = len(K)
    M, flags = np.empty((n, 2 * n)), np.zeros(n, dtype=np.int64)
    eliminate(K, threshold, M, flags)
    return M[:, n:], flags


def test_elimination_inverts():
    A = RNG.normal(size=(20, 5))
    K = A.T @ A
    inverse, flags = eliminated(K, 1e-9)
    np.testing.assert_array_equal(flags, 1)
    np.testing.assert_allclose(inverse, np.linalg.inv(K), rtol=1e-10)


def test_elimination_of_equal_columns_is_exact():
    """Factors of exactly one on the way down and back."""
    inverse, _ = eliminated(np.array([[1.0, 1.0], [1.0, 2.0]]), 1e-9)
    np.testing.assert_array_equal(inverse, [[2.0, -1.0], [-1.0, 1.0]])


def test_elimination_leaves_out_what_is_not_identified():
    A = RNG.normal(size=(20, 5))
    A[:, 1] = 0.0
    A[:, 3] = A[:, 0] + A[:, 2]
    inverse, flags = eliminated(A.T @ A, 1e-9)
    np.testing.assert_array_equal(flags, [1, 0, 1, -1, 1])
    free = [0, 2, 4]
    expected = np.zeros((5, 5))
    expected[np.ix_(free, free)] = np.linalg.inv(A[:, free].T @ A[:, free])
    np.testing.assert_allclose(inverse, expected, atol=1e-12)
