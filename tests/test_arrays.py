"""Frozen arrays, and what is refused of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.arrays import all_finite, check_shape, freeze, frozen_view, matrix, per_joint
from dynid.errors import InputError, UnknownNameError


def test_a_frozen_array_is_a_copy_that_nobody_writes_to() -> None:
    mine = np.arange(6.0).reshape(2, 3).T
    kept = freeze(mine)
    assert kept.flags.c_contiguous
    mine[0, 0] = 9.0
    assert kept[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 1.0
    assert freeze(kept) is kept
    view = frozen_view(mine)
    assert np.shares_memory(view, mine)
    assert not view.flags.writeable


def test_shapes_and_numbers_are_refused_by_name() -> None:
    check_shape("x", np.zeros((2, 3)), (None, 3))
    with pytest.raises(InputError, match=r"x has shape \(2, 3\), expected \(any, 4\)"):
        check_shape("x", np.zeros((2, 3)), (None, 4))
    with pytest.raises(InputError, match="x holds 2 values that are NaN or infinite"):
        matrix("x", [[np.nan, np.inf, 1.0]], (1, 3))
    assert all_finite(np.full(3, 1e308))  # though their sum is not


def test_numbers_of_joints_come_in_order_or_by_name() -> None:
    names = ("a", "b")
    np.testing.assert_array_equal(per_joint("gains", {"b": 2, "a": 1}, names), [1.0, 2.0])
    np.testing.assert_array_equal(per_joint("gains", [1, 2], names), [1.0, 2.0])
    with pytest.raises(UnknownNameError, match="unknown joint 'c' in gains; available: a, b"):
        per_joint("gains", {"a": 1, "c": 2}, names)
    with pytest.raises(InputError, match="gains lack joint 'b'; given: a"):
        per_joint("gains", {"a": 1}, names)
    with pytest.raises(InputError, match="3 gains given, robot has 2 joints"):
        per_joint("gains", [1, 2, 3], names)
    with pytest.raises(InputError, match="gains are not numbers"):
        per_joint("gains", ["one", "two"], names)
