"""Logs beside those of a run that were read in the wrong unit: the run's own model shows it, and a load is not taken for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import scipy.signal
from typer.testing import CliRunner

from bench import Bench
from cli_program import app
from dynid.apps.payload.load import identify_payload
from dynid.io.demo import demo_recording
from dynid.io.logs.read import read_recording, write_recording
from dynid.io.robots.urdf_write import write_urdf
from dynid.pipeline.folder import save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.pipeline.validate import misread_logs, unseen_logs


@pytest.fixture(scope="module")
def run(bench: Bench):
    return identify(bench.urdf, bench.log, Settings(cutoff_hz=10.0, friction="linear"))


@pytest.fixture(scope="module")
def degrees(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = read_recording(bench.other_log, bench.truth)
    assert log.velocity is not None
    wrong = log.with_(position=np.rad2deg(log.position), velocity=np.rad2deg(log.velocity))
    return Path(write_recording(wrong, tmp_path_factory.mktemp("degrees") / "degrees.csv"))


def test_a_log_in_degrees_is_told_when_a_run_is_validated_on_it(run, degrees: Path, bench: Bench, tmp_path: Path) -> None:
    folder = save_result(run, tmp_path / "run")
    done = CliRunner().invoke(app, ["validate", str(folder), str(degrees), "--quiet"])
    assert done.exit_code == 0
    assert "warning: degrees.csv: position of joint" in done.stderr
    assert "likely in degrees" in done.stderr
    assert CliRunner().invoke(app, ["validate", str(folder), str(bench.other_log), "--quiet"]).stderr == ""


def test_a_loaded_log_in_degrees_is_told(run, degrees: Path) -> None:
    assert "likely in degrees" in identify_payload(run, [degrees]).warnings[0]


def test_torque_in_newton_millimetres_is_told_of_the_runs_model(run, bench: Bench) -> None:
    log = read_recording(bench.other_log, bench.truth)
    assert log.torque is not None
    (text,) = misread_logs(run, [log.with_(torque=1000.0 * log.torque)])
    assert "times the run's model's: it is likely in another unit" in text
    assert misread_logs(run, [log]) == ()


@pytest.mark.parametrize("loaded", [False, True])
def test_a_load_is_no_unit_and_no_sign(run, bench: Bench, loaded: bool) -> None:
    """Far beside the last axis, which the robot itself hardly loads."""
    values = bench.truth.parameters
    heavy = bench.truth.with_parameters({"m4": values["m4"] + 3.0, "mx4": values["mx4"] - 1.5, "my4": values["my4"] + 0.9})
    assert misread_logs(run, [demo_recording(heavy, torque_noise=0.01)], loaded=loaded) == ()


def test_unseen_logs_of_an_identification_are_looked_into_where_they_are_not_predicted(degrees: Path, bench: Bench) -> None:
    settings = Settings(method="wls", cutoff_hz=10.0, friction="linear")
    wrong = identify(bench.urdf, bench.log, settings, validate_on=[degrees])
    assert any("degrees.csv: position of joint" in note for note in wrong.notes)
    right = identify(bench.urdf, bench.log, settings, validate_on=[bench.other_log])
    assert not any(bench.other_log.name in note for note in right.notes)


def test_errors_of_three_motions_are_those_of_pinocchio_and_scipy(run, bench: Bench, tmp_path: Path) -> None:
    """Motions A, B and C apart, as in a paper's table: torque by Pinocchio and a friction of our own, the band by SciPy."""
    logs = [Path(write_recording(demo_recording(bench.truth, seed=k), tmp_path / f"{k}.csv")) for k in (11, 12, 13)]
    folder = run.save(tmp_path / "run", formats=["json"])
    told = CliRunner().invoke(app, ["validate", str(folder), *map(str, logs), "--json"])
    assert told.exit_code == 0, told.stdout
    answer = json.loads(told.stdout)
    model = pin.buildModelFromUrdf(str(write_urdf(run.model, tmp_path / "links.urdf").path))
    data, n, values = model.createData(), run.robot.n_joints, run.model.parameters.as_dict()
    fv, fc, fo, Ia = (np.array([values[f"{symbol}{j + 1}"] for j in range(n)]) for symbol in ("fv", "fc", "fo", "Ia"))
    zone = np.asarray(next(one.dead_zone for one in run.robot.effects if one.name == "coulomb"))
    missed, size = np.zeros(n), np.zeros(n)
    for log, one in zip(unseen_logs(run, logs).samples, answer["logs"], strict=True):
        q, v, a = log.position, log.velocity, log.acceleration
        sign = np.where(np.abs(v) < zone, 0.0, np.sign(v))
        tau = (
            np.array([pin.rnea(model, data, *state) for state in zip(q, v, a, strict=True)])
            + fv * v
            + fc * sign
            + fo
            + Ia * a
        )
        low = scipy.signal.butter(4, run.judged_hz, fs=1.0 / np.median(np.diff(log.time)), output="sos")
        ends = slice(round(0.3 / np.median(np.diff(log.time))), -round(0.3 / np.median(np.diff(log.time))))
        measured, found = (scipy.signal.sosfiltfilt(low, x, axis=0)[ends] for x in (log.torque, tau))
        error = ((measured - found) ** 2).sum(axis=0)
        np.testing.assert_allclose(one["rmse"], np.sqrt(error / len(measured)), rtol=1e-4)
        assert one["relative_error"] == pytest.approx(np.sqrt(error.sum() / (measured**2).sum()), rel=1e-4)
        missed, size = missed + error, size + (measured**2).sum(axis=0)
    assert answer["relative_error"] == pytest.approx(np.sqrt(missed.sum() / size.sum()), rel=1e-4)
    assert len({round(one["relative_error"], 6) for one in answer["logs"]}) == 3
