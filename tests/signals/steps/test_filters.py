"""Filters and derivatives against closed forms and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from dynid.errors import InputError
from dynid.signals.butterworth import filter_window, memory_rows
from dynid.signals.process import process
from dynid.signals.steps.clock import Resample
from dynid.signals.steps.filters import (
    Differentiate,
    LowPass,
    Median,
    SavitzkyGolay,
    SmoothingSpline,
    first_derivative,
    second_derivative,
)
from messages import facts
from small_logs import jittery_clock, log, wave


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


@pytest.mark.parametrize("jitter", [0.0, 1e-3])
def test_five_points_follow_fast_motion_on_an_even_clock(jitter: float) -> None:
    h, w = 0.01, 2.0 * np.pi * 5.0
    t = h * np.arange(400) + jitter * np.random.default_rng(0).uniform(-1.0, 1.0, 400)
    q = np.sin(w * t)[:, None]
    inner = slice(2, -2)
    slope, bent = (first_derivative(t, q, 5)[inner, 0] / w, second_derivative(t, q, 5)[inner, 0] / w**2)
    if jitter:  # the parabola through three neighbours, as before
        np.testing.assert_allclose(slope, first_derivative(t, q)[inner, 0] / w)
        return
    error = (w * h) ** 4
    assert np.abs(slope - np.cos(w * t)[inner]).max() < 1.05 * error / 30.0
    assert np.abs(bent + np.sin(w * t)[inner]).max() < 1.05 * error / 90.0
