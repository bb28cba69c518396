"""Products of columns in cells of frequency: kept by halves, they add up, and empty cells do not travel."""

from __future__ import annotations

import numpy as np

from dynid.regression.row_source import Cells


def cells(seed: int) -> tuple[Cells, np.ndarray]:
    z = np.random.default_rng(seed).normal(size=(4, 3, 6))
    gram = z @ z.transpose(0, 2, 1)
    gram[1] = 0.0
    return Cells.of(np.array([2.0, 0.0, 3.0, 1.0]), (gram,)), gram


def test_full_matrices_come_back_and_add_up() -> None:
    (one, gram), (other, second) = cells(0), cells(1)
    np.testing.assert_array_equal(one.gram(0), gram)
    np.testing.assert_allclose((one + other).gram(0), gram + second)
    np.testing.assert_array_equal((one + other).count, [4.0, 0.0, 6.0, 2.0])


def test_cells_travel_without_those_that_are_empty() -> None:
    one, gram = cells(0)
    make, arguments = one.__reduce__()
    assert [len(half) for half in arguments[2]] == [3]
    again = make(*arguments)
    np.testing.assert_array_equal(again.gram(0), gram)
    np.testing.assert_array_equal(again.count, one.count)
