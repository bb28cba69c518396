"""Triangles of parts, made anywhere: together they are those of the whole, in any number of parts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import dynid
from dynid.errors import InputError
from dynid.regression.factor import factorise
from dynid.regression.partitions import OwnRows, merged
from dynid.regression.row_source import BLOCK_LIMIT, matrix_rows
from dynid.regression.torque_rows import TorqueRows

ROBOT, SAMPLES = dynid.demo_robot(), dynid.demo_samples(seconds=4.0)
WHOLE = TorqueRows(ROBOT, (SAMPLES,))


@pytest.mark.parametrize("count", [1, 2, BLOCK_LIMIT + 3])
def test_parts_in_time_merge_to_the_whole(count: int) -> None:
    bounds = np.concatenate([[-np.inf], np.linspace(0.5, 3.5, count - 1), [np.inf]]) if count > 1 else [-np.inf, np.inf]
    parts = [OwnRows(WHOLE, float(a), float(b)) for a, b in pairwise(bounds)]
    together, once = merged(parts, map, WHOLE), factorise(WHOLE)
    assert together.n_samples == once.n_samples == len(SAMPLES)
    assert together.n_blocks <= BLOCK_LIMIT
    for mine, theirs in zip(together.factors, once.factors, strict=True):
        gram = theirs.R.T @ theirs.R
        np.testing.assert_allclose(mine.R.T @ mine.R, gram, atol=1e-10 * np.abs(gram).max())


def test_rows_without_a_clock_have_no_part_in_time() -> None:
    rows = matrix_rows(ROBOT.parameters, ["one"], [np.zeros((5, len(ROBOT.parameters) + 1))])
    with pytest.raises(InputError, match="without a clock"):
        list(OwnRows(rows, 0.0, 1.0).passes())
