"""Steps that leave rows out."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.signals.process import process
from dynid.signals.steps.clock import PeriodAverage
from dynid.signals.steps.cuts import DropEdges, DropRepeated, SplitAtGaps, Trim, TrimToMotion, Unwrap
from dynid.signals.steps.filters import Differentiate, LowPass
from messages import facts
from small_logs import log, wave


def test_drop_edges_by_rows_and_by_seconds() -> None:
    t = np.arange(101) / 100.0
    recording = log(t, t, t)
    assert len(process(recording, [Differentiate(), DropEdges(seconds=0.1)])) == 81
    assert len(process(recording, [Differentiate(), DropEdges(seconds=0.1, rows=20)])) == 61
    assert len(process(recording, [Differentiate(), DropEdges()])) == 101


def test_trim_and_what_follows_sees_an_end_there() -> None:
    t = np.arange(2000) / 100.0
    x = np.where((t > 5.0) & (t < 15.0), np.sin(t), 100.0)
    samples = process(log(t, x, x), [Trim(5.005, 14.995), LowPass(2.0), Differentiate()], edge_s=0.0)
    assert samples.time[0] == pytest.approx(5.01)
    assert np.abs(samples.position).max() < 1.2
    assert "1001 rows outside the chosen time left out" in samples.notes
    with pytest.raises(InputError, match="Trim from 3 s to 2 s is empty"):
        Trim(3.0, 2.0)
    with pytest.raises(InputError, match="no row is left after the processing steps"):
        process(log(t, x, x), [Trim(50.0, 60.0), Differentiate()])


def test_trim_to_motion() -> None:
    t = np.arange(3000) / 100.0
    phase = np.clip(t, 8.0, 20.0) - 8.0
    q = np.stack([np.sin(phase), 0.0 * t], axis=1) + 1e-5 * np.random.default_rng(0).normal(size=(3000, 2)) * [1, 0]
    samples = process(log(t, q), [TrimToMotion(), Differentiate()], edge_s=0.0)
    assert 8.0 <= samples.time[0] < 8.05
    assert 19.95 < samples.time[-1] <= 20.0
    wider = process(log(t, q), [TrimToMotion(margin_s=1.0), Differentiate()], edge_s=0.0)
    assert wider.time[0] == pytest.approx(samples.time[0] - 1.0, abs=1e-6)
    with pytest.raises(InputError, match="finds no motion"):
        process(log(t, 0.0 * t), [TrimToMotion(), Differentiate()])


def test_edges_are_dropped_before_an_average() -> None:
    t = np.arange(5000) / 100.0
    w = 2 * np.pi / 4.0
    samples = process(log(t, np.sin(w * t)), [LowPass(3.0), Differentiate(), PeriodAverage(4.0)])
    assert any("30 rows dropped at the start" in note for note in samples.notes)
    np.testing.assert_allclose(samples.position[:, 0], np.sin(w * samples.time), atol=1e-4)


def test_repeated_rows_are_left_out() -> None:
    t = np.arange(1000) / 1000.0
    q, v, _ = wave(t)
    stale = np.arange(50, 1000, 20)
    for array in (q, v):
        array[stale] = array[stale - 1]
    samples = process(log(t, q, v), [DropRepeated(), Differentiate()], edge_s=0.0)
    assert len(samples) == 1000 - len(stale)
    assert f"{len(stale)} rows that repeat the row before left out" in samples.notes
    assert not np.isin(np.round(samples.time * 1000), stale).any()


def test_split_at_gaps_invents_nothing() -> None:
    t = np.arange(3000) / 100.0
    t[1000:] += 3.0
    t[2000:] += 4.0
    t[2010:] += 4.0  # ten rows on their own
    q, v, _ = wave(t)
    steps = [SplitAtGaps(1.0), LowPass(10.0), Differentiate()]
    samples = process(log(t, q, v), steps)
    assert "10 rows in parts between gaps too short to use left out" in samples.notes
    assert "90 rows dropped at the start, where filters settle" in samples.notes
    parts = np.split(samples.time, np.flatnonzero(np.diff(samples.time) > 1.0) + 1)
    assert [round(float(part[0]), 2) for part in parts] == [0.3, 13.3, 31.4]
    np.testing.assert_allclose(samples.position[:, 0], np.sin(3.0 * samples.time), atol=2e-3)
    with pytest.raises(InputError, match="longer_than_s is 0"):
        SplitAtGaps(0.0)


def test_unwrap() -> None:
    t = np.arange(1000) / 100.0
    turning = 2.0 * t
    q = np.stack([np.angle(np.exp(1j * turning)), np.where(t > 5.0, 4.0, 0.0)], axis=1)
    samples = process(log(t, q), [Unwrap(joints=(1,)), Differentiate()], edge_s=0.0)
    np.testing.assert_allclose(samples.position[:, 0], turning, atol=1e-12)
    np.testing.assert_array_equal(samples.position[:, 1], q[:, 1])
    with pytest.raises(InputError, match=facts("3", "2", "joint")):
        process(log(t, q), [Unwrap(joints=(3,)), Differentiate()])
