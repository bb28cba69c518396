"""The filter of a run: its steps, what it says of itself, and the noise it leaves."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import InputError
from dynid.model.effects.dry_friction import Coulomb
from dynid.pipeline.options import Settings
from dynid.pipeline.signal_filter import (
    Filter,
    repairs,
    savgol_band_hz,
    savgol_numbers,
    to_samples,
    velocity_sources,
    with_dead_zone,
)
from dynid.signals.steps.clock import Decimate
from dynid.signals.steps.cuts import SplitAtGaps

ROWS = Filter(20.0, 5.0, 4, "position", row_band_hz=5.0)
SIGNALS = Filter(8.0, 8.0, 4, "position")


def test_torque_stays_as_recorded_where_rows_are_filtered() -> None:
    log = dynid.demo_recording(seconds=4.0, torque_noise=0.5)
    rows, signals = (to_samples(log, one, 10_000) for one in (ROWS, SIGNALS))
    np.testing.assert_array_equal(rows.torque, rows.raw_torque)
    assert np.abs(signals.torque - signals.raw_torque).max() > 0.1


def test_samples_are_thinned_to_the_rows_allowed_where_signals_are_filtered() -> None:
    log = dynid.demo_recording(seconds=4.0)
    assert Decimate(every=4) in SIGNALS.steps(log, log.n_samples // 4)
    assert not any(isinstance(step, Decimate) for step in ROWS.steps(log, 10))


def test_a_gap_is_cut_out_before_any_filter() -> None:
    log = dynid.demo_recording(seconds=4.0)
    time = np.array(log.time)
    time[200:] += 1.0
    assert repairs(log) == []
    (step,) = repairs(log.with_(time=time))
    assert isinstance(step, SplitAtGaps)


def test_savitzky_golay_is_taken_apart() -> None:
    assert savgol_numbers("butterworth") is None
    assert savgol_numbers("savgol:11,2") == (11, 2)
    assert savgol_band_hz(11, 2, 100.0) == pytest.approx(50.0 * 3.0 / 30.6)
    for text in ("savgol:10,2", "savgol:11", "median:11,2"):
        with pytest.raises(InputError, match="--filter is"):
            savgol_numbers(text)


def test_the_dead_zone_follows_the_noise_or_the_settings() -> None:
    robot, log = dynid.demo_robot(effects=[Coulomb()]), dynid.demo_recording(seconds=6.0)
    (fixed,) = with_dead_zone(robot, [log], ROWS, Settings(dead_zone=0.2)).effects
    assert isinstance(fixed, Coulomb)
    assert fixed.dead_zone == (0.2,) * 7
    noisy = log.with_(position=log.position + 1e-3 * np.random.default_rng(0).normal(size=log.position.shape))
    zones = [with_dead_zone(robot, [one], ROWS, Settings()).effects[0].dead_zone for one in (log, noisy)]  # type: ignore[attr-defined]
    assert np.all(np.array(zones[1]) > 2.0 * np.array(zones[0]))
    smooth = dynid.demo_robot(effects=[dynid.Viscous()])
    assert with_dead_zone(smooth, [log], ROWS, Settings()) is smooth


def test_a_velocity_that_was_not_logged_cannot_be_asked_for() -> None:
    log = dynid.demo_recording(seconds=2.0).with_(velocity=None)
    assert velocity_sources([log], Settings()) == ("position",)
    with pytest.raises(InputError, match="has no velocity columns"):
        velocity_sources([log], Settings(velocity="logged"))
