"""Rows as samples come: the filters give the numbers of their counterparts for whole logs, in any pieces, stored in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.signal import savgol_filter

from dynid.apps.online.rows import OnlineBand, OnlineSavitzkyGolay, RowOptions, Sliding, correlated_rows, online_rows
from dynid.errors import InputError
from dynid.regression.row_filter import BandLimit
from online_streams import small_arm

PERIOD_S = 0.005


def signal(n: int, width: int = 2) -> np.ndarray[Any, Any]:
    t = PERIOD_S * np.arange(n)[:, None]
    return np.sin(2.0 * t + np.arange(width)) + 0.01 * np.random.default_rng(0).normal(size=(n, width))


@pytest.mark.parametrize("piece", [1, 7, 90])
def test_smoothed_signal_and_derivatives_are_those_of_a_whole_log(piece: int) -> None:
    window, x = 21, signal(90)
    online = OnlineSavitzkyGolay(window, 4, PERIOD_S, 2, (0, 1, 2))
    made = []
    for start in range(0, len(x), piece):
        again = OnlineSavitzkyGolay(window, 4, PERIOD_S, 2, (0, 1, 2))
        again.restore(online.state())
        online = again
        made.append(online.push(x[start : start + piece])[0])
    found = np.concatenate(made)
    inner = slice(window // 2, -(window // 2))
    for d in range(3):
        expected = savgol_filter(x, window, 4, deriv=d, delta=PERIOD_S, axis=0)[inner]
        np.testing.assert_allclose(found[:, d], expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())


def test_a_band_gives_the_same_rows_in_any_pieces() -> None:
    rows = np.column_stack([signal(400, 3), PERIOD_S * np.arange(400)])

    def filtered(piece: int, *, stored: bool = False) -> list[tuple[float, np.ndarray[Any, Any]]]:
        online, made = OnlineBand(BandLimit(8.0), PERIOD_S, 3), []
        for start in range(0, len(rows), piece):
            made += list(online.push(rows[start : start + piece]))
            if stored:
                kept, online = online.state(), OnlineBand(BandLimit(8.0), PERIOD_S, 3)
                online.restore(kept)
        return made + list(online.end())

    whole = filtered(400)
    assert len(whole) > 10
    for other in (filtered(1), filtered(32), filtered(13, stored=True)):
        assert [time for time, _ in other] == [time for time, _ in whole]
        np.testing.assert_array_equal([row for _, row in other], [row for _, row in whole])


def test_a_stored_band_that_lacks_rows_is_refused() -> None:
    online = OnlineBand(BandLimit(8.0), PERIOD_S, 3)
    list(online.push(np.column_stack([signal(300, 3), PERIOD_S * np.arange(300)])))
    for wrong in ({"target": 0}, {"n": 10**9}, {"rows": online.state()["rows"][:5]}):
        with pytest.raises(ValueError, match="rows wait for the band"):
            OnlineBand(BandLimit(8.0), PERIOD_S, 3).restore(online.state() | wrong)


def test_white_rows_count_for_themselves_and_equal_ones_as_one() -> None:
    assert correlated_rows(np.array([1.0]), 1) == 1.0
    assert correlated_rows(np.ones(5) / 5.0, 1) == pytest.approx(5.0)
    assert correlated_rows(np.ones(5) / 5.0, 5) == pytest.approx(1.0)


def test_the_newest_rows_are_kept_in_one_piece() -> None:
    held = Sliding(1, 4)
    for k in range(100):
        held.push(np.array([[float(k)]]))
        assert held.rows[held.end - 1, 0] == k
        assert held.rows[held.end - min(k + 1, 4), 0] == max(k - 3, 0)


def test_a_window_follows_from_its_band() -> None:
    options = RowOptions()
    assert options.window_rows(0.001) % 2 == 1
    assert options.window_rows(0.001) > options.window_rows(0.002) > options.order
    assert RowOptions(window=33).window_rows(0.001) == 33
    with pytest.raises(InputError, match="expected torque or polynomial"):
        online_rows(small_arm(), RowOptions(kind="energy"), PERIOD_S)
