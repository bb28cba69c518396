"""Guides name commands and flags that exist, fill in files, and lock what stands still."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from typer.main import get_command

from bench import Bench
from cli_program import app
from dynid.apps.guide.guides import GUIDES, Files, _gain_flags, guide_for
from dynid.apps.guide.logged_gains import LoggedGains
from dynid.errors import UnknownNameError
from dynid.io.logs.read import read_recording, write_recording


@pytest.mark.parametrize("user", GUIDES)
def test_every_command_and_flag_exists(user: str) -> None:
    _, steps = guide_for(user)
    assert 3 <= len(steps) <= 6
    for step in steps:
        words = shlex.split(step.command)[1:]
        command = get_command(app).commands[words.pop(0)]
        if hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        known = {flag for one in command.params for flag in one.opts}
        assert {word for word in words if word.startswith("--")} <= known, step.command
        assert not step.ready


def test_files_are_filled_in_and_still_joints_locked(bench: Bench, tmp_path) -> None:
    recording = read_recording(bench.log, bench.truth)
    q, v = recording.position.copy(), np.array(recording.velocity)
    q[:, -1], v[:, -1] = 0.25, 0.0
    log = write_recording(recording.with_(position=q, velocity=v), tmp_path / "still.csv")
    files, steps = guide_for("franka", bench.urdf, log)
    identify = next(step for step in steps if step.words[0] == "identify")
    assert identify.ready
    assert str(log) in identify.words
    assert f"{recording.joint_names[-1]}=0.25" in identify.words
    assert any("stands still" in note for note in files.notes)


def test_an_unknown_user_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match="franka"):
        guide_for("kuka")


def test_feet_of_a_walk_are_taken_from_its_contacts(bench: Bench, tmp_path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    recording = read_recording(bench.log, bench.truth)
    plain = parquet.read_table(write_recording(recording, tmp_path / "plain.parquet"))
    down = pa.array(np.ones(recording.n_samples))
    for name in ("base_vx", "base_vy", "base_vz", "base_wx", "base_wy", "base_wz", "contact_LF", "contact_RF"):
        plain = plain.append_column(name, down)
    parquet.write_table(plain, tmp_path / "walk.parquet")
    files, steps = guide_for("legged", bench.urdf, tmp_path / "walk.parquet")
    assert files.feet == ("LF", "RF")
    (identify,) = [step for step in steps if step.words[0] == "identify"]
    assert identify.words[identify.words.index("--feet") + 1] == "LF,RF"
    (data,) = [step for step in steps if step.words[0] == "data"]
    assert "--feet" not in data.words


@pytest.mark.parametrize(("user", "told"), [("servo", False), ("ur", True)])
def test_a_log_without_torque_is_an_error_only_where_torque_is_needed(bench: Bench, tmp_path, user: str, told: bool) -> None:
    recording = read_recording(bench.log, bench.truth)
    log = write_recording(recording.with_(torque=None, reference_position=recording.position), tmp_path / "servo.csv")
    files, _ = guide_for(user, bench.urdf, log)
    assert any("no torque" in note for note in files.notes) == told


def test_gains_that_the_log_shows_are_filled_in_and_the_others_are_left_open() -> None:
    gains = LoggedGains(
        ("a", "b", "c"), np.array([11.98, np.nan, 9.84]), np.array([0.1, np.nan, 0.1]), ("moment", "current")
    )
    assert _gain_flags(gains) == ["--drive-gains", "11.98,K2,9.84"]
    steps = GUIDES["ur"][1](Files(given=True, flags=tuple(_gain_flags(gains)), current=True))
    (identify,) = [step for step in steps if step.words[0] == "identify"]
    assert not identify.ready
    assert "11.98,K2,9.84" in identify.words
    assert any(step.words[0] == "gains" for step in steps)


def test_the_legged_guide_asks_for_the_gains_of_the_controller(bench: Bench, tmp_path) -> None:
    recording = read_recording(bench.log, bench.truth)
    log = write_recording(recording.with_(torque=None, reference_position=recording.position), tmp_path / "dog.csv")
    (step,) = [one for one in guide_for("legged", bench.urdf, log)[1] if one.words[0] == "actuators"]
    assert step.words[step.words.index("--kp") + 1] == "KP"
    assert "--kd" in step.words
    assert not step.ready
