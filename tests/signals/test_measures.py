"""Measures of signals: noise, lag, bandwidth, cut-off of a Fourier motion."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.signals.measures import (
    first_rows,
    is_difference,
    lag_between,
    longest_part,
    motion_bandwidth_hz,
    noise_level,
    velocity_lag,
)
from dynid.signals.recording import Recording

T = np.arange(4000) / 500.0
Q = np.stack([np.sin(2.0 * T), np.cos(3.1 * T)], axis=1)
V = np.stack([2.0 * np.cos(2.0 * T), -3.1 * np.sin(3.1 * T)], axis=1)


def test_bandwidth_sees_the_motion_and_not_the_noise() -> None:
    t = np.arange(20_000) / 1000.0
    random = np.random.default_rng(0)
    q = np.stack([np.sin(2 * np.pi * 0.7 * t), np.sin(2 * np.pi * 2.0 * t), 0.0 * t], axis=1)
    q[:, :2] += 1e-4 * random.normal(size=(20_000, 2))
    band = motion_bandwidth_hz(Recording(time=t, position=q, joint_names=("a", "b", "c")))
    np.testing.assert_allclose(band, [0.7, 2.0, 0.0], atol=0.15)


def test_noise_is_seen_beside_a_motion() -> None:
    noisy = Q + 1e-3 * np.random.default_rng(0).normal(size=Q.shape)
    np.testing.assert_allclose(noise_level(noisy), 1e-3, rtol=0.1)


@pytest.mark.parametrize("lag_s", [-0.0137, 0.0, 0.021])
def test_a_lag_is_found_between_samples_with_its_scale(lag_s: float) -> None:
    def wave(t: np.ndarray) -> np.ndarray:
        return np.stack([np.sin(w * t) + 0.7 * np.sin(3.7 * w * t + 1.0) for w in (4.0, 7.0)], axis=1)

    found = lag_between(1.5 * wave(T - lag_s), wave(T), 1.0 / 500.0)
    np.testing.assert_allclose(found.seconds, lag_s, atol=2e-4)
    np.testing.assert_allclose(found.scale, 1.5, rtol=1e-3)


def test_a_late_velocity_is_told_from_position() -> None:
    late = np.stack([2.0 * np.cos(2.0 * (T - 0.01)), -3.1 * np.sin(3.1 * (T - 0.01))], axis=1)
    np.testing.assert_allclose(velocity_lag(Recording(T, Q, ("a", "b"), velocity=late)).seconds, 0.01, atol=1e-3)
    with pytest.raises(InputError, match="no velocity"):
        velocity_lag(Recording(T, Q, ("a", "b")))


def test_a_velocity_that_is_the_last_difference_of_positions_is_told() -> None:
    last = np.vstack([V[:1], np.diff(Q, axis=0) * 500.0])
    assert is_difference(Recording(T, Q, ("a", "b"), velocity=last))
    assert not is_difference(Recording(T, Q, ("a", "b"), velocity=V))


def test_the_longest_part_lies_between_gaps() -> None:
    time = np.concatenate([T[:1000], T[1000:] + 5.0])
    part = longest_part(Recording(time, Q, ("a", "b")))
    assert part.n_samples == 3000
    assert part.time[0] == time[1000]
    assert first_rows(part, 10).n_samples == 10
