"""Logs of more joints than the robot has once some are locked, by name and by number."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench import Bench
from cli_program import app
from dynid.errors import InputError
from dynid.io.logs.read import read_recording, write_recording
from dynid.io.robots.read import read_robot
from dynid.signals.recording import Recording


def test_a_robot_remembers_what_was_locked_and_where(bench: Bench) -> None:
    robot = read_robot(bench.urdf)
    assert (robot.locked, robot.described_joints) == ({}, robot.joint_names)
    cut = robot.lock({"shoulder_pitch": 0.2}).only(["shoulder_yaw", "elbow"]).with_effects(()).with_gravity((0.0, 0.0, -1.0))
    assert cut.joint_names == ("shoulder_yaw", "elbow")
    assert cut.locked == {"shoulder_pitch": 0.2, "upper_arm_roll": 0.0}
    assert cut.described_joints == robot.joint_names


@pytest.mark.parametrize(("at", "warned"), [(0.3, False), (0.35, True)])
def test_a_numbered_log_of_a_robot_with_a_locked_joint(bench: Bench, tmp_path: Path, at: float, warned: bool) -> None:
    recording = read_recording(bench.log, bench.truth)
    assert isinstance(recording, Recording)
    assert recording.velocity is not None
    position, velocity = recording.position.copy(), recording.velocity.copy()
    position[:, 2], velocity[:, 2] = 0.3, 0.0
    log = write_recording(recording.with_(position=position, velocity=velocity), tmp_path / "log.csv")
    command = [
        "identify",
        str(bench.urdf),
        str(log),
        "--lock",
        f"upper_arm_roll={at}",
        "--cutoff-hz",
        "10",
        "--friction",
        "linear",
    ]
    done = CliRunner().invoke(app, [*command, "--method", "ols", "-o", str(tmp_path / "run"), "--json"])
    assert done.exit_code == 0, done.exception
    notes = json.loads(done.stdout)["notes"]
    assert "log.csv: the columns of locked joints are left out: upper_arm_roll ('q3')" in notes
    assert any(f"upper_arm_roll is locked at {at}, in the log its column 'q3' is 0.3" in note for note in notes) == warned
    again = CliRunner().invoke(app, ["validate", str(tmp_path / "run"), str(bench.other_log), "--json"])
    assert again.exit_code == 0, again.exception


def test_a_misspelt_joint_is_asked_about(bench: Bench, tmp_path: Path) -> None:
    recording = read_recording(bench.log, bench.truth)
    log = write_recording(recording, tmp_path / "log.csv", by_name=True)
    log.write_text(log.read_text().replace("_elbow", "_ellbow"))
    shown = " ".join(CliRunner().invoke(app, ["data", str(log), "--robot", str(bench.urdf)]).stdout.split())
    assert (
        "warning: column 'q_ellbow' is not used; did you mean joint 'elbow', which has no column and is locked at 0" in shown
    )


def test_a_split_names_its_parts(bench: Bench, tmp_path: Path) -> None:
    command = ["identify", str(bench.urdf), str(bench.log), "-o", str(tmp_path / "run")]
    refused = CliRunner().invoke(app, [*command, "--split", "0.99", "--cutoff-hz", "5"]).exception
    assert isinstance(refused, InputError)
    assert "(1501 rows, 6 s), validation part, the last 16 of its 1501 rows: " in str(refused)
    refused = CliRunner().invoke(app, [*command, "--to", "1.5"]).exception
    assert isinstance(refused, InputError)
    assert "log1.parquet: 376 rows and 1.5 s are too short, expected at least 64 rows and 2 s" in str(refused)
