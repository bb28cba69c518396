"""Logs as they come: joints that stand still, rows that are missing, angles that wrap, logs that lack a joint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import Bench
from dynid.dynamics.simulate import simulate
from dynid.errors import InputError
from dynid.excitation.shapes import random_fourier
from dynid.io.logs.read import read_recording, write_recording
from dynid.model.robot import Robot
from dynid.pipeline.fix_bodies import refit_friction
from dynid.pipeline.identify import identify
from dynid.pipeline.log import hold_still
from dynid.pipeline.options import Settings
from dynid.pipeline.row_plan import plan_rows
from dynid.pipeline.signal_filter import Filter, to_samples
from dynid.signals.recording import Recording
from dynid.signals.stream import survey
from messages import facts

CUTOFF = Settings(cutoff_hz=12.0, friction="linear")


def log_of(bench: Bench, folder: Path, change, name: str = "log.parquet", seed: int = 3) -> Path:
    """A simulated log of 10 s at 250 Hz after a change of its recording."""
    return Path(write_recording(change(simulated(bench.truth, seed)), folder / name))


_SIMULATED: dict[int, Recording] = {}  # most tests change the same log of the one robot


def simulated(robot: Robot, seed: int) -> Recording:
    if seed not in _SIMULATED:
        motion = random_fourier(robot, 10.0, 4, seed=seed).samples(250.0)
        _SIMULATED[seed] = simulate(robot, motion, rate_hz=250.0, seed=seed).recording
    return _SIMULATED[seed]


def chosen(recording: Recording, rows: np.ndarray) -> Recording:
    """Some rows of a recording."""
    return Recording(
        time=recording.time[rows],
        position=recording.position[rows],
        velocity=recording.velocity[rows],
        torque=recording.torque[rows],
        joint_names=recording.joint_names,
    )


def standing(recording: Recording) -> Recording:
    """Joint 3 at rest: what its sensors show is noise."""
    rng = np.random.default_rng(0)
    q, v = np.array(recording.position), np.array(recording.velocity)
    q[:, 2] = 0.3 + 1e-6 * rng.normal(size=len(q))
    v[:, 2] = 1e-4 * rng.normal(size=len(q))
    return recording.with_(position=q, velocity=v)


@pytest.mark.parametrize("method", ["ols", "sdp", "recursive", "wls", "robust"])
def test_nothing_is_read_from_the_noise_of_a_resting_joint(bench: Bench, tmp_path: Path, method: str) -> None:
    log = log_of(bench, tmp_path, standing)
    run = identify(bench.urdf, log, replace(CUTOFF, method=method))
    origin = dict(zip(run.estimate.base.names, run.estimate.origin, strict=True))
    nominal = run.robot.parameters
    for name in ("fv3", "fc3"):
        assert origin[name] == "prior"
        assert run.estimate.standard[name] == pytest.approx(nominal[name], abs=1e-9)
    assert run.estimate.rank < run.estimate.base.n_base
    assert any("stands still" in note for note in run.notes)


def test_searched_friction_survives_a_resting_joint(bench: Bench, tmp_path: Path) -> None:
    run = identify(bench.urdf, log_of(bench, tmp_path, standing), replace(CUTOFF, method="ols", friction="stribeck"))
    assert run.estimate.condition_number < 1e6
    assert np.abs(run.estimate.standard.values).max() < 1e3


def test_a_moving_joint_is_left_alone(bench: Bench, tmp_path: Path) -> None:
    motion = random_fourier(bench.truth, 5.0, 3, seed=0).samples(100.0)
    assert hold_still([motion])[0] is motion


def test_nothing_is_invented_in_a_gap(bench: Bench, tmp_path: Path) -> None:
    """Four seconds are missing: the parts before and after count, not a straight line between them."""

    def torn(recording: Recording) -> Recording:
        return chosen(recording, np.flatnonzero((recording.time < 3.0) | (recording.time > 7.0)))

    whole = identify(bench.urdf, log_of(bench, tmp_path, lambda recording: recording, "whole.parquet"), CUTOFF)
    run = identify(bench.urdf, log_of(bench, tmp_path, torn), CUTOFF)
    assert run.identification.relative_error < 1.5 * whole.identification.relative_error
    assert not ((run.samples[0].time > 3.0) & (run.samples[0].time < 7.0)).any()
    assert any("taken as 2 parts" in note for note in run.notes)


def test_wrapped_angles_are_unwrapped(bench: Bench, tmp_path: Path) -> None:
    def turned(recording: Recording) -> Recording:
        q = np.array(recording.position)
        shift = np.pi - np.median(q[:, 0])
        q[:, 0] += shift  # the first axis is vertical: turning all of it changes nothing
        q[:, 0] = np.angle(np.exp(1j * q[:, 0]))
        assert (np.abs(np.diff(q[:, 0])) > 6.0).any()
        return recording.with_(position=q)

    plain = log_of(bench, tmp_path, lambda recording: recording, "plain.parquet")
    wrapped = log_of(bench, tmp_path, turned, "wrapped.parquet")
    settings = replace(CUTOFF, velocity="position")
    errors = [identify(bench.urdf, log, settings).identification.relative_error for log in (plain, wrapped)]
    assert errors[1] == pytest.approx(errors[0], rel=0.02)


def test_repairs_are_told(bench: Bench) -> None:
    motion = random_fourier(bench.truth, 5.0, 3, seed=0).samples(100.0)
    recording = simulate(bench.truth, motion, rate_hz=100.0, seed=0).recording
    assert survey(recording).notes(recording.joint_names) == []
    assert survey(recording).repairs() == []


def test_a_split_is_one_in_time(bench: Bench) -> None:
    motion = random_fourier(bench.truth, 10.0, 3, seed=0).samples(100.0)
    recording = simulate(bench.truth, motion, rate_hz=100.0, seed=0).recording
    rows = np.concatenate([np.arange(0, 500, 5), np.arange(500, recording.n_samples)])  # slow first, fast later
    uneven = chosen(recording, rows)
    first, rest = uneven.split(0.6)
    assert first.time[-1] < uneven.time[0] + 0.6 * uneven.duration_s <= rest.time[0]


def test_a_log_that_lacks_a_joint_is_named(bench: Bench, tmp_path: Path) -> None:
    def lacking(recording: Recording) -> Recording:
        names = recording.joint_names[:-1]
        n = len(names)
        return Recording(
            time=recording.time,
            position=recording.position[:, :n],
            velocity=recording.velocity[:, :n],
            torque=recording.torque[:, :n],
            joint_names=names,
        )

    run = identify(bench.urdf, bench.log, CUTOFF)
    numbered = log_of(bench, tmp_path, lacking, "numbered.csv")
    with pytest.raises(InputError, match=facts("numbered.csv", "3", "4", "shoulder_yaw", "position")):
        run.validate([numbered])
    named = write_recording(read_recording(numbered, bench.truth.joint_names[:-1]), tmp_path / "lacking.csv", by_name=True)
    with pytest.raises(InputError, match=rf"lacking\.csv lacks joint {bench.truth.joint_names[-1]}"):
        run.validate([named])


def test_the_log_at_fault_is_named(bench: Bench, tmp_path: Path) -> None:
    path = log_of(bench, tmp_path, lambda recording: recording, "slow.parquet")
    with pytest.raises(InputError, match=r"slow\.parquet.*: a band of 500 Hz is asked for"):
        identify(bench.urdf, path, Settings(cutoff_hz=500.0))


def test_refitting_takes_what_another_log_may_have_of_its_own(bench: Bench, tmp_path: Path) -> None:
    run = identify(bench.urdf, bench.log, CUTOFF)
    again = refit_friction(run, bench.other_log, changes={"cutoff_hz": 8.0, "to_s": 4.0})
    assert again.filter.row_band_hz == 8.0
    assert again.samples[0].time[-1] <= 4.0
    with pytest.raises(InputError, match="setting 'method' is that of the run"):
        refit_friction(run, bench.other_log, changes={"method": "ols"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("split", "abc"), ("cutoff_hz", "abc"), ("dead_zone", "x"), ("max_rows", "z"), ("filter_order", "4"), ("starts", "a"),
        ("prior_strength", "q"), ("lock", 3), ("gravity", "a"), ("from_s", "a"), ("effects", [1]), ("method", 3), ("seed", 0.5),
    ],
)  # fmt: skip
def test_settings_of_the_wrong_type_are_said(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"setting '{name}' is"):
        Settings.from_dict({name: value})


def test_effects_may_be_one_text() -> None:
    assert Settings.from_dict({"effects": "viscous, coulomb"}).effects == ("viscous", "coulomb")
    assert Settings.from_dict({"effects": "none"}).effects == ()
    with pytest.raises(InputError, match="use --friction load"):
        Settings(effects=("viscous", "load_coulomb"))


def test_filter_of_a_log_without_velocity(bench: Bench) -> None:
    motion = random_fourier(bench.truth, 5.0, 3, seed=0).samples(100.0)
    recording = simulate(bench.truth, motion, rate_hz=100.0, seed=0).recording.with_(velocity=None)
    samples = to_samples(recording, Filter(8.0, 8.0, 4, "position"), 10_000)
    assert np.isfinite(samples.velocity).all()


def test_a_window_has_the_delay_asked_for() -> None:
    """The window and delay of Lomakin and Deutscher's experiment; without one, that of a zero of the next polynomial."""
    asked = plan_rows(Settings(rows="polynomial", window=0.044, window_delay=0.0147)).polynomial
    usual = plan_rows(Settings(rows="polynomial", window=0.044)).polynomial
    assert asked is not None
    assert usual is not None
    assert asked.delay_s == pytest.approx(0.0147)
    assert usual.exact_degree == asked.exact_degree + 1
    with pytest.raises(InputError, match=facts("0.05", "outside", "0.044")):
        plan_rows(Settings(rows="polynomial", window=0.044, window_delay=0.05))
