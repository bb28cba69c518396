"""Each processing step against a closed form or SciPy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import signal

import dynid
from dynid.arrays import Array
from dynid.errors import InputError
from dynid.io.logs.read import open_recording
from dynid.signals.butterworth import filter_window, memory_rows
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.signals import Signals, Tally, Upstream
from dynid.signals.steps.clock import Decimate, PeriodAverage, Resample, Shift, interpolate, nominal_period_s
from dynid.signals.steps.cuts import DropEdges, DropRepeated, SplitAtGaps, Trim, TrimToMotion, Unwrap
from dynid.signals.steps.filters import Differentiate, LowPass, Median, SavitzkyGolay, SmoothingSpline
from messages import facts


def log(t: Array, q: Array, v: Array | None = None, tau: Array | None = None) -> Recording:
    """A log of joints a, b, .. from columns."""
    columns = [None if x is None else np.asarray(x).reshape(len(t), -1) for x in (q, v, tau)]
    assert columns[0] is not None
    names = tuple("abcdefg"[: columns[0].shape[1]])
    return Recording(time=t, position=columns[0], velocity=columns[1], torque=columns[2], joint_names=names)


def wave(t: Array, w: float = 3.0) -> tuple[Array, Array, Array]:
    return np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)


def jittery_clock(n: int, step: float = 0.01, seed: int = 0) -> Array:
    return np.cumsum(np.random.default_rng(seed).uniform(0.5 * step, 1.5 * step, n))


# Resample ----------------------------------------------------------------------------------------


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


# LowPass -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 4, 7])
@pytest.mark.parametrize("frequency", [1.0, 5.0, 9.0])
def test_gain_and_no_phase(order: int, frequency: float) -> None:
    t = np.arange(8000) / 200.0
    x = np.sin(2 * np.pi * frequency * t)
    samples = process(log(t, x, x, x), [LowPass(5.0, order=order), Differentiate()], edge_s=10.0)
    # the digital filter warps frequency by tan(pi f / f_s)
    warp = np.tan(np.pi * frequency / 200.0) / np.tan(np.pi * 5.0 / 200.0)
    gain = 1.0 / (1.0 + warp ** (2 * order))
    expected = gain * np.sin(2 * np.pi * frequency * samples.time)
    for found in (samples.position, samples.velocity, samples.torque):
        assert found is not None
        np.testing.assert_allclose(found[:, 0], expected, atol=2e-8)


def test_filter_equals_scipy_far_from_the_ends() -> None:
    x = np.random.default_rng(1).normal(size=(12_000, 3)).cumsum(axis=0)
    for order, fraction in ((4, 0.02), (5, 0.15), (3, 0.6)):
        expected = signal.sosfiltfilt(signal.butter(order, fraction, output="sos"), x, axis=0)
        found = filter_window(x, order, fraction, True, True)
        inner = slice(memory_rows(order, fraction), -memory_rows(order, fraction))
        assert len(found[inner]) > 100
        np.testing.assert_allclose(found[inner], expected[inner], atol=1e-9)


def test_ends_are_better_than_those_of_scipy() -> None:
    t = np.arange(5000) / 1000.0
    x = np.sin(2.0 * t + 0.3)[:, None]
    expected = signal.sosfiltfilt(signal.butter(4, 0.01, output="sos"), x, axis=0)
    found = filter_window(x, 4, 0.01, True, True)
    first = slice(0, 300)
    assert np.abs(found[first] - x[first]).max() < 0.5 * np.abs(expected[first] - x[first]).max()


def test_a_constant_stays_constant_to_the_last_digit() -> None:
    x = np.full((500, 1), 0.1234567890123)
    np.testing.assert_array_equal(filter_window(x, 4, 0.02, True, True), x)


def test_only_chosen_signals_are_filtered() -> None:
    t = np.arange(2000) / 100.0
    x = np.sign(np.sin(t))
    steps = [LowPass(cutoff_nyquist=0.1, signals=("torque",)), Differentiate()]
    samples = process(log(t, x, x, x), steps, edge_s=0.0)
    np.testing.assert_array_equal(samples.position[:, 0], x)
    assert samples.torque is not None
    assert samples.raw_torque is not None
    np.testing.assert_array_equal(samples.raw_torque[:, 0], x)
    assert np.abs(samples.torque[:, 0] - x).max() > 0.4


def test_lowpass_refusals() -> None:
    t = np.arange(500) / 100.0
    recording = log(t, np.sin(t), np.cos(t))
    with pytest.raises(InputError, match=facts("60", "50", "cut-off")):
        process(recording, [LowPass(60.0), Differentiate()])
    with pytest.raises(InputError, match=facts("10", "4", "15", "row")):
        process(recording.rows(0, 10), [LowPass(10.0), Differentiate()])
    with pytest.raises(InputError, match=facts("50", "500", "0.49", "0.3", "row")):
        process(recording.rows(0, 50), [LowPass(10.0), Differentiate()])
    with pytest.raises(InputError, match=facts("torque", "position", "velocity")):
        process(recording, [LowPass(5.0, signals=("torque",)), Differentiate()])
    for wrong, message in (
        ({}, "one cut-off"),
        ({"cutoff_hz": 3.0, "cutoff_nyquist": 0.1}, "one cut-off"),
        ({"cutoff_hz": -1.0}, "cutoff_hz is -1.0"),
        ({"cutoff_nyquist": 1.0}, "fraction between 0 and 1"),
        ({"cutoff_hz": 1.0, "order": 0}, "order is 0"),
        ({"cutoff_hz": 1.0, "signals": ("speed",)}, "knows no signal 'speed'"),
        ({"cutoff_hz": 1.0, "signals": "torque"}, "expected a tuple"),
    ):
        with pytest.raises(InputError, match=message):
            LowPass(**wrong)  # type: ignore[arg-type]


# Derivatives -------------------------------------------------------------------------------------


def test_differences_are_exact_on_parabolas_of_a_jittery_clock() -> None:
    t = jittery_clock(300)
    q = 1.0 - 2.0 * t + 0.5 * t**2
    samples = process(log(t, q), [Differentiate()])
    assert len(samples) == 298
    np.testing.assert_allclose(samples.velocity[:, 0], samples.time - 2.0, atol=1e-11)
    np.testing.assert_allclose(samples.acceleration[:, 0], 1.0, atol=1e-8)


def test_velocity_may_come_from_the_log_or_from_position() -> None:
    t = np.arange(1000) / 500.0
    q, v, a = wave(t)
    recording = log(t, q, 2.0 * v)  # a velocity that is plainly not the derivative
    logged = process(recording, [Differentiate("logged")])
    derived = process(recording, [Differentiate("position")])
    np.testing.assert_allclose(logged.velocity[:, 0], 2.0 * v[1:-1])
    np.testing.assert_allclose(logged.acceleration[:, 0], 2.0 * a[1:-1], atol=1e-3)
    np.testing.assert_allclose(derived.velocity[:, 0], v[1:-1], atol=1e-4)
    np.testing.assert_allclose(derived.acceleration[:, 0], a[1:-1], atol=1e-3)
    np.testing.assert_array_equal(process(recording, [Differentiate()]).velocity, logged.velocity)
    bare = log(t, q)
    with pytest.raises(InputError, match=facts("velocity", "position")):
        process(bare, [Differentiate("logged")])
    np.testing.assert_allclose(process(bare, [Differentiate()]).velocity, derived.velocity)


def test_second_difference_of_position_is_the_compact_one() -> None:
    t = np.arange(400) / 100.0
    q = np.random.default_rng(0).normal(size=400)
    samples = process(log(t, q), [Differentiate("position")], edge_s=0.0)
    expected = (q[2:] - 2.0 * q[1:-1] + q[:-2]) * 100.0**2
    np.testing.assert_allclose(samples.acceleration[1:-1, 0], expected, rtol=1e-9, atol=1e-7)


def test_logged_acceleration_may_be_kept() -> None:
    t = np.arange(300) / 100.0
    q, v, a = wave(t)
    recording = log(t, q, v).with_(acceleration=(5.0 * a)[:, None])
    samples = process(recording, [Differentiate(acceleration="logged")])
    np.testing.assert_array_equal(samples.acceleration[:, 0], 5.0 * a[1:-1])
    np.testing.assert_array_equal(process(recording, []).acceleration[:, 0], 5.0 * a)
    with pytest.raises(InputError, match="acts on 'acceleration'"):
        process(log(t, q, v), [Differentiate(acceleration="logged")])


def test_savitzky_golay_is_exact_on_its_polynomials() -> None:
    t = np.arange(500) / 250.0
    q = 1.0 + t - 2.0 * t**2 + 0.7 * t**3
    samples = process(log(t, q, tau=q), [Resample(1 / 250.0), SavitzkyGolay(11, 3)])
    np.testing.assert_allclose(samples.position[:, 0], q[5:-5], atol=1e-10)
    np.testing.assert_allclose(samples.velocity[:, 0], (1.0 - 4.0 * t + 2.1 * t**2)[5:-5], atol=1e-8)
    np.testing.assert_allclose(samples.acceleration[:, 0], (-4.0 + 4.2 * t)[5:-5], atol=1e-5)


def test_savitzky_golay_equals_scipy() -> None:
    t = np.arange(400) / 250.0
    x = np.random.default_rng(2).normal(size=(400, 3))
    recording = log(t, x, 2.0 * x, 3.0 * x)
    samples = process(recording, [Resample(1 / 250.0), SavitzkyGolay(11, 2, velocity="logged")], edge_s=0.0)
    expected = signal.savgol_filter(x, 11, 2, axis=0)
    slope = signal.savgol_filter(x, 11, 2, 1, 1 / 250.0, axis=0)
    np.testing.assert_allclose(samples.position, expected, atol=1e-10)
    np.testing.assert_allclose(samples.velocity, 2.0 * expected, atol=1e-10)
    np.testing.assert_allclose(samples.torque, 3.0 * expected, atol=1e-10)  # type: ignore[arg-type]
    np.testing.assert_allclose(samples.acceleration, 2.0 * slope, atol=1e-8)


def test_savitzky_golay_refusals() -> None:
    t = np.arange(100) / 100.0
    with pytest.raises(InputError, match=facts("10", "window", "row")):
        SavitzkyGolay(10)
    with pytest.raises(InputError, match=facts("11", "0", "10", "row")):
        SavitzkyGolay(11, 11)
    with pytest.raises(InputError, match="order 1 has no derivative 2"):
        process(log(t, t), [SavitzkyGolay(11, 1)])
    with pytest.raises(InputError, match=facts("9", "SavitzkyGolay", "11", "row")):
        process(log(t[:9], t[:9]), [SavitzkyGolay(11, 2)])


@pytest.mark.parametrize("frequency", [0.5, 2.0, 4.0])
def test_spline_halves_at_its_cutoff(frequency: float) -> None:
    t = jittery_clock(4000)
    w = 2 * np.pi * frequency
    samples = process(log(t, np.sin(w * t), tau=np.sin(w * t)), [SmoothingSpline(2.0)], edge_s=2.0)
    gain = 1.0 / (1.0 + (frequency / 2.0) ** 4)
    np.testing.assert_allclose(samples.position[:, 0], gain * np.sin(w * samples.time), atol=0.012)
    np.testing.assert_allclose(samples.torque, samples.position, atol=1e-12)  # type: ignore[arg-type]
    np.testing.assert_allclose(samples.velocity[:, 0], gain * w * np.cos(w * samples.time), atol=0.02 * w)
    np.testing.assert_allclose(samples.acceleration[:, 0], -gain * w**2 * np.sin(w * samples.time), atol=0.04 * w**2)


def test_spline_of_logged_velocity() -> None:
    t = jittery_clock(2000)
    q, v, a = wave(t)
    samples = process(log(t, q, v), [SmoothingSpline(20.0, velocity="logged")])
    inner = (t >= samples.time[0]) & (t <= samples.time[-1])
    np.testing.assert_allclose(samples.velocity[:, 0], v[inner], atol=2e-3)
    np.testing.assert_allclose(samples.acceleration[:, 0], a[inner], atol=2e-2)
    with pytest.raises(InputError, match="a smoothing spline needs at least 5"):
        process(log(t[:4], q[:4]), [SmoothingSpline(5.0)])


# The others --------------------------------------------------------------------------------------


def test_median_takes_out_spikes_only() -> None:
    t = np.arange(1000) / 100.0
    q, v, _ = wave(t)
    tau = np.where(t < 5.0, -1.0, 1.0)
    spiked = tau.copy()
    spiked[[100, 300, 301, 700]] = 50.0
    samples = process(log(t, q, v, spiked), [Median(5, signals=("torque",)), Differentiate()], edge_s=0.0)
    np.testing.assert_array_equal(samples.torque[:, 0], tau)  # type: ignore[index]
    np.testing.assert_array_equal(samples.raw_torque[:, 0], spiked)  # type: ignore[index]
    with pytest.raises(InputError, match="Median window is 4"):
        Median(4)


def test_decimate_counts_from_the_start_of_the_log() -> None:
    t = np.arange(100) / 10.0
    samples = process(log(t, t, t), [Differentiate(), Decimate(7)])
    # row 0 is dropped as an edge, the next multiple of seven is row 7
    np.testing.assert_allclose(samples.time, t[7:99:7])
    with pytest.raises(InputError, match="every is 0"):
        Decimate(0)


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


def test_edges_are_dropped_before_an_average() -> None:
    t = np.arange(5000) / 100.0
    w = 2 * np.pi / 4.0
    samples = process(log(t, np.sin(w * t)), [LowPass(3.0), Differentiate(), PeriodAverage(4.0)])
    assert any("30 rows dropped at the start" in note for note in samples.notes)
    np.testing.assert_allclose(samples.position[:, 0], np.sin(w * samples.time), atol=1e-4)


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


def test_stamps_on_the_grid_are_taken_as_they_are_and_others_interpolated() -> None:
    t = np.arange(2000) / 1000.0
    q = np.column_stack([np.sin(t), t**2])
    on = interpolate(t, q, t[3:1500] + 1e-13)
    assert np.array_equal(on, q[3:1500])
    between = interpolate(t, q, t[3:1500] + 5e-4)
    np.testing.assert_allclose(between, 0.5 * (q[3:1500] + q[4:1501]), rtol=1e-12)
    assert interpolate(t, q, np.array([1.9995])).shape == (1, 2)


class _Doubled(dynid.Step):
    """A step as a user writes one: only what it does."""

    def over(self, upstream: Upstream, tally: Tally) -> Iterator[Signals]:
        for piece in upstream(tally):
            yield piece.updated({"torque": 2.0 * piece.values["torque"]})


def test_a_step_of_ones_own_needs_nothing_but_what_it_does(tmp_path: Path) -> None:
    log = dynid.demo_recording(seconds=6.0)
    steps = [dynid.LowPass(cutoff_hz=8.0), dynid.Differentiate()]
    plain, doubled = dynid.process(log, steps), dynid.process(log, [_Doubled(), *steps])
    np.testing.assert_allclose(doubled.torque, 2.0 * plain.torque, rtol=1e-12)
    np.testing.assert_array_equal(doubled.position, plain.position)
    path = dynid.write_recording(log, tmp_path / "log.parquet")
    stream = open_recording(path, dynid.demo_robot(), chunk_rows=50)
    pieces = list(dynid.process(stream, [_Doubled(), *steps]))
    np.testing.assert_allclose(np.vstack([piece.torque for piece in pieces]), doubled.torque, rtol=1e-9)


def test_a_step_that_does_nothing_is_refused_at_once() -> None:
    class Empty(dynid.Step):
        pass

    with pytest.raises(TypeError, match="over"):
        Empty()  # type: ignore[abstract]
