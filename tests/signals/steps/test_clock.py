"""Resampling, shifts, decimation and period averages against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.signals.process import process
from dynid.signals.steps.clock import Decimate, PeriodAverage, Resample, Shift, interpolate, nominal_period_s
from dynid.signals.steps.filters import Differentiate, LowPass
from messages import facts
from small_logs import jittery_clock, log, wave


def test_resample_is_on_the_logged_clock() -> None:
    t = jittery_clock(2000)
    samples = process(log(t, 3.0 * t + 1.0, 3.0 + 0.0 * t), [Resample(0.004), Differentiate()], edge_s=0.0)
    assert np.allclose(np.diff(samples.time), 0.004, rtol=1e-9)
    assert samples.time[0] == t[0]
    assert t[-1] - 0.004 < samples.time[-1] <= t[-1]
    np.testing.assert_allclose(samples.position[:, 0], 3.0 * samples.time + 1.0, atol=1e-12)


@pytest.mark.parametrize(("method", "error"), [("linear", 3e-4), ("cubic", 3e-6)])
def test_resample_interpolates(method: Any, error: float) -> None:
    t = jittery_clock(1000)
    q, v, _ = wave(t)
    samples = process(log(t, q, v, q), [Resample(rate_hz=150.0, method=method), Differentiate()])
    gap = np.abs(samples.position[:, 0] - np.sin(3.0 * samples.time)).max()
    assert 0.01 * error < gap < error
    assert samples.raw_torque is not None
    np.testing.assert_array_equal(samples.raw_torque, samples.position)


def test_resample_leaves_a_uniform_log_alone() -> None:
    t = 5.0 + np.arange(3000) / 250.0
    q, v, _ = wave(t)
    samples = process(log(t, q, v), [Resample(), Differentiate()], edge_s=0.0)
    assert len(samples) == len(t)
    np.testing.assert_allclose(samples.position[:, 0], q, atol=1e-11)


def test_the_step_is_the_median_of_a_jittery_clock() -> None:
    t = np.cumsum(np.where(np.arange(999) % 10 == 0, 0.016, 0.01))
    assert nominal_period_s(t) == 0.01
    with pytest.raises(InputError, match="signal has 1 row, expected at least 2"):
        nominal_period_s(t[:1])


def test_a_pause_of_hours_is_not_filled() -> None:
    t = np.concatenate([np.arange(100) * 0.001, 7200.0 + np.arange(100) * 0.001])
    with pytest.raises(InputError, match=facts("200", "7200", "SplitAtGaps", "row")):
        process(log(t, np.sin(t), np.cos(t)), [Resample(0.001), Differentiate()])


def test_decimate_counts_from_the_start_of_the_log() -> None:
    t = np.arange(100) / 10.0
    samples = process(log(t, t, t), [Differentiate(), Decimate(7)])
    # row 0 is dropped as an edge, the next multiple of seven is row 7
    np.testing.assert_allclose(samples.time, t[7:99:7])
    with pytest.raises(InputError, match="every is 0"):
        Decimate(0)


def test_period_average_of_an_unaligned_log() -> None:
    period, n = 2.0, 6200
    t = jittery_clock(n, 0.004) + 0.7
    random = np.random.default_rng(3)
    w = 2 * np.pi / period
    tau = 5.0 * np.cos(w * t) + random.normal(size=n)
    samples = process(log(t, np.sin(w * t), tau=tau), [PeriodAverage(period, skip=1), LowPass(6.0), Differentiate()])
    assert len(samples) == pytest.approx(500, abs=10)
    assert samples.time[-1] - samples.time[0] == pytest.approx(period * (1.0 - 1.0 / len(samples)))
    note = next(note for note in samples.notes if note.startswith("mean of"))
    periods = int(note.split()[2])
    assert periods == int((t[-1] - t[0]) / period) - 1
    # no end is lost and none is bent: one period stands for the endless motion
    np.testing.assert_allclose(samples.position[:, 0], np.sin(w * samples.time), atol=2e-3)
    np.testing.assert_allclose(samples.velocity[:, 0], w * np.cos(w * samples.time), atol=2e-2)
    np.testing.assert_allclose(samples.acceleration[:, 0], -(w**2) * np.sin(w * samples.time), atol=0.2)
    assert samples.torque is not None
    noise = samples.torque[:, 0] - 5.0 * np.cos(w * samples.time)
    assert noise.std() < 0.3
    raw = samples.raw_torque[:, 0] - 5.0 * np.cos(w * samples.time)  # type: ignore[index]
    # linear interpolation of white noise keeps two thirds of its variance
    assert raw.std() == pytest.approx(np.sqrt(2.0 / 3.0 / periods), rel=0.2)
    spread = next(note for note in samples.notes if "from period to period" in note)
    assert float(spread.split("standard deviation of ")[1].split(" by")[0]) == pytest.approx(np.sqrt(2.0 / 3.0), rel=0.1)


def test_period_average_refusals() -> None:
    t = np.arange(500) / 100.0
    with pytest.raises(InputError, match=facts("2.5", "2", "4", "period")):
        process(log(t, np.sin(t)), [PeriodAverage(2.0, skip=3), Differentiate()])
    with pytest.raises(InputError, match=facts("0.05", "5", "period")):
        process(log(t, np.sin(t)), [PeriodAverage(0.05), Differentiate()])
    with pytest.raises(InputError, match=facts("200", "7", "period")):
        process(log(t, np.sin(t)), [PeriodAverage(2.0), Differentiate(), Decimate(7)])
    with pytest.raises(InputError, match="Resample cannot follow PeriodAverage"):
        process(log(t, np.sin(t)), [PeriodAverage(2.0), Resample(0.01), Differentiate()])


@pytest.mark.parametrize("lag", [0.0123, -0.02])
def test_shift_puts_a_late_signal_back(lag: float) -> None:
    t = jittery_clock(2000, 0.005)
    q, _, _ = wave(t)
    late = 3.0 * np.cos(3.0 * (t - lag))
    tau = np.cos(3.0 * (t - lag))
    samples = process(log(t, q, late, tau), [Shift(lag, signals=("velocity", "torque")), Differentiate()], edge_s=0.0)
    np.testing.assert_allclose(samples.velocity[:, 0], 3.0 * np.cos(3.0 * samples.time), atol=3e-5)
    np.testing.assert_allclose(samples.position[:, 0], np.sin(3.0 * samples.time), atol=1e-12)
    np.testing.assert_array_equal(samples.raw_torque, samples.torque)  # type: ignore[arg-type]
    lost = len(t) - len(samples)
    assert 0 < lost < 10
    assert f"{lost} rows dropped at an end, where a shifted signal has no value" in samples.notes


def test_stamps_on_the_grid_are_taken_as_they_are_and_others_interpolated() -> None:
    t = np.arange(2000) / 1000.0
    q = np.column_stack([np.sin(t), t**2])
    on = interpolate(t, q, t[3:1500] + 1e-13)
    assert np.array_equal(on, q[3:1500])
    between = interpolate(t, q, t[3:1500] + 5e-4)
    np.testing.assert_allclose(between, 0.5 * (q[3:1500] + q[4:1501]), rtol=1e-12)
    assert interpolate(t, q, np.array([1.9995])).shape == (1, 2)
