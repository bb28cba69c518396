"""Fewer points, the same peaks."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.report.panel import envelope_rows, spread_rows


@pytest.mark.parametrize("n", [1, 7, 100, 1_001, 99_999])
@pytest.mark.parametrize("most", [50, 400])
def test_peaks_survive(n: int, most: int) -> None:
    rng = np.random.default_rng(n + most)
    signals = rng.normal(size=(n, 2)).cumsum(axis=0)
    signals[n // 3, 0] = 1e4
    signals[n // 2, 1] = -1e4
    rows = envelope_rows(signals, most)
    np.testing.assert_array_equal(signals[rows].max(axis=0), signals.max(axis=0))
    np.testing.assert_array_equal(signals[rows].min(axis=0), signals.min(axis=0))
    assert rows[0] == 0
    assert rows[-1] == n - 1
    assert (np.diff(rows) > 0).all()
    assert len(rows) <= max(most, 1)


def test_short_signals_are_kept_whole() -> None:
    np.testing.assert_array_equal(envelope_rows(np.zeros((10, 3)), 10), np.arange(10))


def test_spread_rows_cover_the_values() -> None:
    signal = np.random.default_rng(0).normal(size=5_000)
    rows = spread_rows(signal, 100)
    assert len(rows) == 100
    assert signal[rows[0]] == signal.min()
    assert signal[rows[-1]] == signal.max()
    assert (np.diff(signal[rows]) >= 0.0).all()
