"""A row filter planned for a whole log against the same filter run along its rows."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.regression.row_filter import BandLimit, FilterAndDecimate
from dynid.regression.row_source import Chunk

FILTERS = [BandLimit(5.0), BandLimit(17.0), FilterAndDecimate(every=6), FilterAndDecimate(every=9, cutoff_hz=8.0)]


def signals(n: int, columns: int) -> Array:
    return np.random.default_rng(n).normal(size=(n, columns)).cumsum(axis=0)


def clock(n: int, gap_after: int | None) -> Array:
    time = 0.002 * np.arange(n)
    if gap_after is not None:
        time[gap_after:] += 0.5
    return time


def along(row_filter: BandLimit | FilterAndDecimate, values: Array, time: Array) -> Array:
    chunks = iter([Chunk([np.asfortranarray(values)], time)])
    return np.concatenate([part.blocks[0] for part in row_filter.over(chunks)])


@pytest.mark.parametrize("row_filter", FILTERS, ids=str)
@pytest.mark.parametrize("gap_after", [None, 1203])
@pytest.mark.parametrize("columns", [1, 4, 6])
def test_planned_filter_is_the_one_along_rows(
    row_filter: BandLimit | FilterAndDecimate, gap_after: int | None, columns: int
) -> None:
    values, time = signals(3001, columns), clock(3001, gap_after)
    expected = along(row_filter, values, time)
    planned = row_filter.decimation(time)
    halves = [np.asfortranarray(values[:, : columns // 2]), values[:, columns // 2 :]]
    assert np.allclose(planned.rows(halves), expected, rtol=0.0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("gap_after", [None, 1203])
def test_fewer_samples_give_the_same_rows_of_slow_signals(gap_after: int | None) -> None:
    time = clock(3001, gap_after)
    slow = np.column_stack([np.sin(7.0 * time), np.cos(3.0 * time) ** 2, np.ones_like(time)])
    planned = BandLimit(5.0).decimation(time)
    kept, thinned = planned.thinned(100, 8)
    assert len(kept) * 4 < len(time)
    assert [part.step for part in thinned.parts] == [planned.parts[0].every // 8] * len(planned.parts)
    assert np.allclose(thinned.rows([slow[kept]]), planned.rows([slow]), rtol=0.0, atol=3e-3)
    assert np.allclose(thinned.rows([slow[kept, 2:]]), 1.0, rtol=1e-12)


def test_a_part_without_a_row_is_refused_with_its_numbers() -> None:
    with pytest.raises(InputError, match=r"60 rows.*50 rows are left out"):
        BandLimit(5.0).decimation(clock(60, None))
