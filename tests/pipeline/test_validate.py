"""Logs beside those of a run that were read in the wrong unit: the run's own model shows it, and a load is not taken for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import Bench
from cli_program import app
from dynid.apps.payload.load import identify_payload
from dynid.io.demo import demo_recording
from dynid.io.logs.read import read_recording, write_recording
from dynid.pipeline.folder import save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.pipeline.validate import misread_logs


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
