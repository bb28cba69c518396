"""Rigid bodies of a run kept while friction is identified, and runs from a table of poses on a motion log: by commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from scipy.signal import butter, sosfiltfilt
from typer.testing import CliRunner

from bench import PLAIN, Bench
from cli_program import app
from dynid.dynamics.inverse_dynamics import random_states_within_limits
from dynid.dynamics.regressors import static_regressor
from dynid.errors import InputError
from dynid.io.logs.read import read_recording, write_recording
from dynid.io.robots.read import read_robot
from dynid.pipeline.folder import load_result
from dynid.signals.recording import StaticRecording


def dynid(*arguments: object) -> dict:
    """The JSON of a command that must succeed."""
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refusal(*arguments: object) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert isinstance(done.exception, InputError), done.output
    return str(done.exception)


@pytest.fixture(scope="module")
def poses(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a table of poses, and the table itself beside it."""
    place = tmp_path_factory.mktemp("poses")
    robot = read_robot(bench.urdf, "none")
    q, _, _ = random_states_within_limits(robot, 60)
    Y_inertia, Y_gravity = static_regressor(robot, q)
    phi = robot.parameters.values
    write_recording(
        StaticRecording(q, robot.joint_names, inertia=Y_inertia @ phi, gravity=Y_gravity @ phi), place / "poses.csv"
    )
    dynid("identify", bench.urdf, place / "poses.csv", "--export", "json", "-o", place / "run")
    return place


def test_a_run_from_poses_predicts_a_motion_log(bench: Bench, poses: Path) -> None:
    found = dynid("validate", poses / "run", bench.log, "--cutoff-hz", 8)
    assert len(found["rmse"]) == 4
    assert len(found["logs"]) == 1
    other = dynid("validate", poses / "run", bench.log, "--cutoff-hz", 30, "--velocity", "position")
    assert other["relative_error"] != found["relative_error"]
    smoothed = dynid("validate", poses / "run", bench.log, "--filter", "savgol:31,2")
    assert smoothed["relative_error"] == pytest.approx(found["relative_error"], rel=0.5)
    late = dynid("validate", poses / "run", bench.log, "--cutoff-hz", 8, "--from", 2, "--to", 5)
    assert late["logs"][0]["n_samples"] < found["logs"][0]["n_samples"]


def test_torque_of_a_log_is_judged_in_the_band_that_a_run_from_poses_is_given(bench: Bench, poses: Path) -> None:
    """Against SciPy's filter, plain differences and Pinocchio's RNEA."""
    band_hz, signals_hz = 2.0, 30.0
    found = dynid("validate", poses / "run", bench.log, "--cutoff-hz", band_hz, "--signal-band-hz", signals_hz)
    log, robot = read_recording(bench.log, bench.truth), load_result(poses / "run").model
    model = pinocchio.buildModelFromUrdf(str(bench.urdf))
    for body, phi in enumerate(robot.parameters.inertials, start=1):
        model.inertias[body] = pinocchio.Inertia.FromDynamicParameters(phi)
    data, rate_hz = model.createData(), 1.0 / float(np.median(np.diff(log.time)))

    def low_passed(signal: np.ndarray, cutoff_hz: float) -> np.ndarray:
        return sosfiltfilt(butter(4, cutoff_hz, fs=rate_hz, output="sos"), signal, axis=0)

    q = low_passed(log.position, signals_hz)
    v = low_passed(log.velocity, signals_hz)
    a = np.gradient(v, log.time, axis=0)
    rigid = np.array([pinocchio.rnea(model, data, *state).copy() for state in zip(q, v, a, strict=True)])
    inner = slice(int(0.6 * rate_hz), -int(0.6 * rate_hz))
    torque, predicted = low_passed(log.torque, band_hz)[inner], low_passed(rigid, band_hz)[inner]
    error = np.linalg.norm(torque - predicted) / np.linalg.norm(torque)
    assert found["relative_error"] == pytest.approx(error, rel=5e-3)
    assert found["rows"]["relative_error"] == pytest.approx(error, rel=0.05)  # the rows pass another filter of that band
    whole = np.linalg.norm(log.torque[inner] - rigid[inner]) / np.linalg.norm(log.torque[inner])
    assert abs(whole / error - 1.0) > 0.02  # torque that is not filtered would be told


def test_a_run_from_poses_needs_a_filter_for_a_log(bench: Bench, poses: Path) -> None:
    text = refusal("validate", poses / "run", bench.log)
    assert "table of poses" in text
    assert "--cutoff-hz F" in text
    assert "is a table of poses, expected a motion log" in refusal(
        "validate", poses / "run", poses / "poses.csv", "--cutoff-hz", 8
    )
    assert "'cutoff_hz' is -1" in refusal("validate", poses / "run", bench.log, "--cutoff-hz", -1)
    assert (
        CliRunner()
        .invoke(app, ["validate", str(poses / "run"), str(bench.log), "--cutoff-hz", "8", "--max-error", "0.001"])
        .exit_code
        == 1
    )


def test_a_run_with_a_filter_of_its_own_keeps_it(bench: Bench, tmp_path: Path) -> None:
    dynid("identify", bench.urdf, bench.log, "--method", "ols", *PLAIN, "-o", tmp_path / "run")
    text = refusal("validate", tmp_path / "run", bench.other_log, "--cutoff-hz", 5)
    assert "'cutoff_hz' differs from the run's" in text
    assert "10 Hz" in text
    assert "same content" in refusal("validate", tmp_path / "run", bench.log)


def test_poses_are_validated_afterwards_and_not_with_them(bench: Bench, poses: Path, tmp_path: Path) -> None:
    out = ("-o", tmp_path / "run")
    for extra in (("--validate", bench.log), ("--split", 0.5)):
        text = refusal("identify", bench.urdf, poses / "poses.csv", *extra, *out)
        assert "dynid validate RUN LOG --cutoff-hz F" in text


def test_friction_of_a_pose_run_from_a_part_of_a_log(bench: Bench, poses: Path, tmp_path: Path) -> None:
    options = ("--fix-bodies", poses / "run", "--cutoff-hz", 10, "--export", "json")
    found = dynid("identify", bench.urdf, bench.log, *options, "--split", 0.6, "-o", tmp_path / "split")
    assert found["method"] == "friction"
    assert found["relative_error"]["validation"] is not None
    whole = dynid("identify", bench.urdf, bench.log, *options, "-o", tmp_path / "whole")
    assert whole["relative_error"]["validation"] is None
    assert found["n_samples"] < 0.7 * whole["n_samples"]
    run, bodies = load_result(tmp_path / "split", with_samples=True), load_result(poses / "run")
    assert run.settings.split == 0.6
    assert len(run.unseen) == len(run.samples) == 1
    assert run.unseen[0].time[0] > run.samples[0].time[-1]
    n = bodies.robot.parameters.n_inertial
    np.testing.assert_allclose(run.estimate.standard.values[:n], bodies.estimate.standard.values, rtol=1e-13)
    # friction alone was identified: what the bodies could not explain is gone
    rigid = dynid("validate", poses / "run", bench.log, "--cutoff-hz", 10)
    assert found["relative_error"]["validation"] < 0.5 * rigid["relative_error"]


def test_bodies_of_a_motion_run_with_a_split_of_the_new_log(bench: Bench, tmp_path: Path) -> None:
    dynid("identify", bench.urdf, bench.log, *PLAIN, "-o", tmp_path / "first")
    first = load_result(tmp_path / "first")
    options = (bench.urdf, bench.other_log, "--fix-bodies", tmp_path / "first", "--export", "json")
    found = dynid("identify", *options, "--split", 0.5, "-o", tmp_path / "second")
    second = load_result(tmp_path / "second")
    assert second.filter == first.filter
    assert found["relative_error"]["validation"] == pytest.approx(second.validation.relative_error)
    n = first.robot.parameters.n_inertial
    np.testing.assert_allclose(second.estimate.standard.values[:n], first.estimate.standard.values[:n], rtol=1e-13)
    assert "expected one of the two" in refusal(
        "identify", *options, "--split", 0.5, "--validate", bench.log, "-o", tmp_path / "third"
    )
    assert "'method' is that of the run whose bodies are kept" in refusal(
        "identify", *options, "--split", 0.5, "--method", "ols", "-o", tmp_path / "third"
    )
