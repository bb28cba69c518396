"""The verdict on a run: decided once, shown alike in terminal, JSON, stored run and report."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli_program import dynid
from dynid.recording.motion import Recording
from dynid.recording.write import write_recording
from dynid.regression.torque import inverse_dynamics
from dynid.robot.effects import Viscous
from dynid.run.identify import identify
from dynid.run.options import Settings
from dynid.run.record import Run
from dynid.run.store import load_run, save_run
from dynid.run.verdict import verdict_on
from problems import planar_2r

FIXED = ("--signals", "--effects", "viscous", "--cutoff-hz", 10)


def log_of(path: Path, spoil: float = 0.0, robot=None) -> Path:
    """A log of the planar arm; ``spoil`` is the share of torque that nothing explains."""
    robot = robot or planar_2r()
    t = np.arange(0.0, 8.0, 0.01)
    q = np.column_stack([np.sin(1.1 * t) + 0.4 * np.sin(3.1 * t), np.cos(1.7 * t) + 0.3 * np.sin(4.3 * t)])
    v = np.gradient(q, t, axis=0)
    tau = inverse_dynamics(robot, q, v, np.gradient(v, t, axis=0))
    rng = np.random.default_rng(1)
    tau = tau * (1.0 + 1e-3 * rng.normal(size=tau.shape))
    slow = np.cumsum(rng.normal(size=tau.shape), axis=0)
    tau = tau + spoil * np.linalg.norm(tau) / np.linalg.norm(slow) * slow
    return write_recording(Recording(t, q, robot.joint_names, velocity=v, torque=tau), path, by_name=True)


@pytest.fixture(scope="module")
def urdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dynid.export.urdf import write_urdf

    path = tmp_path_factory.mktemp("robot") / "arm.urdf"
    write_urdf(planar_2r(), path)
    return path


@pytest.fixture(scope="module")
def run(urdf: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    log = log_of(tmp_path_factory.mktemp("log") / "log.csv")
    settings = Settings(signals=True, effects=("viscous",), cutoff_hz=10.0, split=0.6)
    return identify(urdf, log, settings)


@pytest.mark.parametrize(("spoil", "grade"), [(0.0, "usable with reservations"), (1.5, "do not use")])
def test_every_output_shows_the_same_verdict(urdf: Path, tmp_path: Path, spoil: float, grade: str) -> None:
    log = log_of(tmp_path / "log.csv", spoil)
    folder = tmp_path / "run"
    text = dynid("identify", urdf, log, *FIXED, "-o", folder, "--export", "json")
    assert text.returncode == 0, text.stderr
    last = text.stdout.strip().splitlines()[-1]
    stored = json.loads((folder / "run.json").read_text())["result"]["verdict"]
    page = html.unescape((folder / "report.html").read_text())
    again = json.loads(dynid("identify", urdf, log, *FIXED, "-o", folder, "--export", "json", "--json").stdout)["verdict"]
    assert stored["grade"] == again["grade"] == load_run(folder).verdict.grade == grade
    assert last == f"verdict: {stored['sentence']}" == f"verdict: {again['sentence']}"
    for reason in stored["reasons"]:
        assert reason["text"] in page


def test_the_error_allowed_sets_the_exit_code(urdf: Path, tmp_path: Path) -> None:
    log = log_of(tmp_path / "log.csv", spoil=0.5)
    arguments = ("identify", urdf, log, *FIXED, "-o", tmp_path / "run", "--export", "json", "--json")
    error = json.loads((first := dynid(*arguments)).stdout)["relative_error"]["identification"]
    assert first.returncode == 0
    assert dynid(*arguments, "--at-most", 1.01 * error).returncode == 0
    refused = dynid(*arguments, "--at-most", 0.99 * error)
    assert refused.returncode == 1
    assert "more than the" in refused.stderr
    assert dynid(*arguments, "--at-most", -1).returncode == 2


def test_a_good_run_is_called_good(run: Run) -> None:
    told = verdict_on(replace(run, checks=()))
    assert [reason.level for reason in told.reasons if reason.level in ("warning", "error")] == []
    assert told.grade == "good"
    assert "drift by at most" in told.reasons[3].text  # the replay is part of it


def test_the_verdict_is_stored_with_the_run(run: Run, tmp_path: Path) -> None:
    again = load_run(save_run(run, tmp_path / "run"))
    assert again.verdict == run.verdict


def test_a_joint_that_drifts_is_a_reservation(run: Run) -> None:
    """A replay whose second joint does not move at all drifts by its whole motion."""
    still = replace(run.replay, position_drift=np.array([0.0, 1.0]))
    told = verdict_on(replace(run, checks=(), replay=still))
    (reason,) = [reason for reason in told.reasons if reason.level == "warning"]
    assert run.robot.joint_names[1] in reason.text
    assert run.robot.joint_names[0] not in reason.text
    assert "57.3 degrees" in reason.text


def test_an_error_that_explains_nothing_is_not_to_be_used_without_validation_either(run: Run) -> None:
    alone = replace(run, validation=None, unseen=(), identification=replace(run.identification, relative_error=0.61))
    told = verdict_on(replace(alone, checks=()))
    assert told.grade == "do not use"
    assert "61" in told.sentence


def test_friction_that_drives_a_joint_is_named_after_an_unconstrained_method(urdf: Path, tmp_path: Path) -> None:
    """Truth: a joint whose viscous friction is negative, as only a motor has it."""
    driven = planar_2r([Viscous()]).with_parameters({"fv1": 0.5, "fv2": -0.3})
    log = log_of(tmp_path / "log.csv", robot=driven)
    settings = Settings(signals=True, effects=("viscous",), cutoff_hz=10.0)
    free = identify(urdf, log, replace(settings, method="ols"))
    assert free.verdict is not None
    (reason,) = (one for one in free.verdict.reasons if "Friction would drive" in one.text)
    assert reason.level == "warning"
    assert "elbow with 1.2 N m at 4 rad/s" in reason.text  # its velocity limit
    assert "shoulder" not in reason.text
    assert reason.text.rstrip(".") in free.verdict.sentence
    held = identify(urdf, log, settings)
    assert held.verdict is not None
    assert held.estimate.standard["fv2"] >= 0.0
    assert any(one.text.startswith("Friction takes energy") and one.level == "good" for one in held.verdict.reasons)
