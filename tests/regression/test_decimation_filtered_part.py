"""A part behind a symmetric filter: against a plain convolution of the part continued by reflection, however it is cut."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.regression.decimation import FilteredPart


def expected(rows: Array, taps: Array, every: int, first: int) -> tuple[Array, Array]:
    """Filtered rows and their numbers by one convolution per column."""
    reach, n = len(taps) // 2, len(rows)
    mirrored = np.minimum(np.arange(1, reach + 1), n - 1)
    before = 2.0 * rows[0] - rows[mirrored[::-1]]
    known = np.concatenate([before, rows])
    after = 2.0 * rows[-1] - known[::-1][1 : reach + 1]
    whole = np.concatenate([known, after])
    numbers = np.arange(first, n, every)
    return np.stack([np.convolve(column, taps, "valid") for column in whole.T], axis=1)[numbers], numbers


@pytest.mark.parametrize("cuts", [(), (1, 2, 3), (40,), (7, 90, 91, 200), tuple(range(16, 300, 16))])
@pytest.mark.parametrize("every", [1, 3, 50])
def test_every_cut_gives_the_convolution(cuts: tuple[int, ...], every: int) -> None:
    rng = np.random.default_rng(len(cuts))
    rows = rng.normal(size=(310, 7))
    half = rng.normal(size=20)
    taps = np.concatenate([half, [1.0], half[::-1]])
    first = 5
    part, found, times = FilteredPart(taps, every, first), [], []
    time = 0.01 * np.arange(len(rows))
    for begin, end in zip((0, *cuts), (*cuts, len(rows)), strict=True):
        piece = np.array(rows[begin:end], order="F")
        part.append([piece[:, :4], piece[:, 4:]], time[begin:end])
        piece[:] = np.nan  # a source fills its chunk again
        while first + len(times) * every + part.reach < part.n_rows:
            chunk = part.take(1)
            found.append(np.hstack(chunk.blocks))
            assert chunk.time is not None
            times.extend(chunk.time)
    part.end()
    want, numbers = expected(rows, taps, every, first)
    left = part.take(len(numbers) - len(times))
    assert left.time is not None
    np.testing.assert_allclose(np.concatenate([*found, np.hstack(left.blocks)]), want, atol=1e-12)
    np.testing.assert_array_equal([*times, *left.time], time[numbers])


def test_a_part_shorter_than_the_taps_is_continued_by_what_it_has() -> None:
    rows = np.random.default_rng(0).normal(size=(9, 2))
    taps = np.hanning(33)
    part = FilteredPart(taps, 2, 2)
    part.append([np.asfortranarray(rows[:4])], np.arange(4.0))
    part.append([np.asfortranarray(rows[4:])], np.arange(4.0, 9.0))
    part.end()
    want, numbers = expected(rows, taps, 2, 2)
    np.testing.assert_allclose(part.take(len(numbers)).blocks[0], want, atol=1e-12)
