"""The verdict on a run: decided once, shown alike in terminal, JSON, stored run and report."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt

from bench import Bench
from cli_program import dynid
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.io.logs.read import read_recording, write_recording
from dynid.model.effects.linear import Viscous
from dynid.pipeline.export import write_result
from dynid.pipeline.folder import load_result, save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.verdict import verdict_on
from dynid.signals.recording import Recording
from problems import planar_2r

FIXED = ("--filter-on", "signals", "--effects", "viscous", "--cutoff-hz", 10)


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
    from dynid.io.robots.urdf_write import write_urdf

    path = tmp_path_factory.mktemp("robot") / "arm.urdf"
    write_urdf(planar_2r(), path)
    return path


@pytest.fixture(scope="module")
def run(urdf: Path, tmp_path_factory: pytest.TempPathFactory) -> IdentificationResult:
    log = log_of(tmp_path_factory.mktemp("log") / "log.csv")
    settings = Settings(filter_on="signals", effects=("viscous",), cutoff_hz=10.0, split=0.6)
    return identify(urdf, log, settings)


@pytest.mark.parametrize(("spoil", "grade"), [(0.0, "usable"), (1.5, "do not use")])
def test_every_output_shows_the_same_verdict(urdf: Path, tmp_path: Path, spoil: float, grade: str) -> None:
    log = log_of(tmp_path / "log.csv", spoil)
    folder = tmp_path / "run"
    text = dynid("identify", urdf, log, *FIXED, "-o", folder, "--export", "json")
    assert text.returncode == 0, text.stderr
    first = text.stdout.splitlines()[0]
    stored = json.loads((folder / "run.json").read_text())["result"]["verdict"]
    page = html.unescape((folder / "report.html").read_text())
    again = json.loads(dynid("identify", urdf, log, *FIXED, "-o", folder, "--export", "json", "--json").stdout)["verdict"]
    assert stored["grade"] == again["grade"] == load_result(folder).verdict.grade == grade
    assert stored["sentence"] == again["sentence"]
    assert first.startswith(f"verdict: {stored['grade']}: {stored['opening']}".replace("\u00a0", " "))
    for reason in stored["reasons"]:
        assert reason["text"] in page


def test_the_error_allowed_sets_the_exit_code(urdf: Path, tmp_path: Path) -> None:
    log = log_of(tmp_path / "log.csv", spoil=0.5)
    arguments = ("identify", urdf, log, *FIXED, "-o", tmp_path / "run", "--export", "json", "--json")
    error = json.loads((first := dynid(*arguments)).stdout)["relative_error"]["identification"]
    assert first.returncode == 0
    assert dynid(*arguments, "--max-error", 1.01 * error).returncode == 0
    refused = dynid(*arguments, "--max-error", 0.99 * error)
    assert refused.returncode == 1
    assert "more than the" in refused.stderr
    assert dynid(*arguments, "--max-error", -1).returncode == 2


def test_a_good_run_is_called_good(run: IdentificationResult) -> None:
    told = verdict_on(replace(run, checks=()))
    assert [reason.level for reason in told.reasons if reason.level in ("warning", "error")] == []
    assert told.grade == "good"
    assert any("drift by at most" in reason.what for reason in told.reasons)  # the replay is part of it


def test_the_verdict_is_stored_with_the_run(run: IdentificationResult, tmp_path: Path) -> None:
    again = load_result(save_result(run, tmp_path / "run"))
    assert again.verdict == run.verdict


def test_a_joint_that_drifts_is_a_reservation(run: IdentificationResult) -> None:
    """A replay whose second joint does not move at all drifts by its whole motion."""
    still = replace(run.replay, position_drift=np.array([0.0, 1.0]))
    told = verdict_on(replace(run, checks=(), replay=still))
    (reason,) = [reason for reason in told.reasons if reason.level == "warning"]
    assert run.robot.joint_names[1] in reason.what
    assert run.robot.joint_names[0] not in reason.what
    assert "57.3 degrees" in reason.what


def test_a_log_that_is_explained_worse_than_unseen_torque_is_a_reservation(run: IdentificationResult) -> None:
    """A part of the log that fits nothing, such as contacts: the rest predicts well, and yet the model was bent to that part."""
    assert run.validation is not None
    bent = replace(run, checks=(), identification=replace(run.identification, relative_error=0.108))
    reasons = [reason for reason in verdict_on(bent).reasons if reason.level == "warning"]
    assert ["explained to 10.8" in reason.what for reason in reasons] == [True], verdict_on(bent).sentence
    assert verdict_on(bent).grade == "usable"


def test_an_error_that_explains_nothing_is_not_to_be_used_without_validation_either(run: IdentificationResult) -> None:
    alone = replace(
        run,
        validation=None,
        data=replace(run.data, unseen=None),
        identification=replace(run.identification, relative_error=0.61),
    )
    told = verdict_on(replace(alone, checks=()))
    assert told.grade == "do not use"
    assert "61" in told.sentence


@pytest.mark.parametrize(("spoil", "code"), [(0.0, 0), (1.5, 1)])
def test_strict_ends_with_1_unless_the_verdict_is_good(urdf: Path, tmp_path: Path, spoil: float, code: int) -> None:
    log = log_of(tmp_path / "log.csv", spoil)
    options = ("--split", 0.6, "--effects", "viscous", "--cutoff-hz", 10, "--export", "json", "--strict")
    ended = dynid("identify", urdf, log, *options, "-o", tmp_path / "run")
    assert ended.returncode == code, ended.stderr
    assert (tmp_path / "run" / "run.json").exists()
    assert ("--strict" in ended.stderr) == bool(code)


def test_friction_that_drives_a_joint_is_named_after_an_unconstrained_method(urdf: Path, tmp_path: Path) -> None:
    """Truth: a joint whose viscous friction is negative, as only a motor has it."""
    driven = planar_2r([Viscous()]).with_parameters({"fv1": 0.5, "fv2": -0.3})
    log = log_of(tmp_path / "log.csv", robot=driven)
    settings = Settings(filter_on="signals", effects=("viscous",), cutoff_hz=10.0)
    free = identify(urdf, log, replace(settings, method="ols"))
    assert free.verdict is not None
    (reason,) = (one for one in free.verdict.reasons if "Friction would drive" in one.what)
    assert reason.level == "warning"
    assert "elbow with 1.2 N m at 4 rad/s" in reason.what  # its velocity limit
    assert "shoulder" not in reason.what
    assert reason.what.rstrip(".") in free.verdict.sentence
    held = identify(urdf, log, settings)
    assert held.verdict is not None
    assert held.estimate.standard["fv2"] >= 0.0
    assert any(one.what.startswith("Friction takes energy") and one.level == "good" for one in held.verdict.reasons)


def test_every_joint_that_is_predicted_badly_is_named(urdf: Path, tmp_path: Path) -> None:
    """The elbow is off by a quarter of its own torque, which is little beside that of the shoulder: never good."""
    settings = Settings(effects=("viscous",), cutoff_hz=10.0, split=0.6)
    log = log_of(tmp_path / "log.csv")
    recording = read_recording(log, planar_2r())
    noise = sosfiltfilt(butter(2, 8.0, fs=100.0, output="sos"), np.random.default_rng(2).normal(size=len(recording.time)))
    torque = np.array(recording.torque)
    torque[:, 1] += 0.25 * np.linalg.norm(torque[:, 1]) / np.linalg.norm(noise) * noise
    spoilt = identify(urdf, recording.with_(torque=torque), settings)
    assert spoilt.validation is not None
    assert spoilt.validation.relative_error < 0.1  # over all joints it is small
    shoulder, elbow = spoilt.validation.total.relative_error_per_channel
    assert shoulder < 0.1 < 0.15 < elbow < 0.4
    assert spoilt.verdict is not None
    assert spoilt.verdict.grade == "do not use"  # half of its joints
    (reason,) = [one for one in spoilt.verdict.reasons if one.code == "joints"]
    assert (reason.level, reason.where) == ("error", ("elbow",))
    assert "far above the sensor noise" in reason.what
    clean = identify(urdf, log, settings)
    assert clean.verdict is not None
    assert not [one for one in clean.verdict.reasons if one.code == "joints"]


def test_a_robot_that_never_moved_is_not_to_be_used_and_gets_no_model_unless_asked(bench: Bench, tmp_path: Path) -> None:
    log = read_recording(bench.log, bench.truth)
    assert isinstance(log, Recording)
    still = replace(log, position=np.tile(log.position[0], (len(log.time), 1)), velocity=0.0 * log.position)
    run = identify(bench.urdf, write_recording(still, tmp_path / "still.csv"), Settings(method="ridge"))
    assert run.verdict is not None
    assert run.verdict.grade == "do not use"
    assert "No joint moved in the logs" in run.verdict.sentence
    done = write_result(run, tmp_path / "run")
    assert not done.exported
    assert done.refusals == ("no model was written, because no joint moved; --export urdf,mjcf writes it all the same",)
    assert [item.format for item in write_result(run, tmp_path / "run", formats=["json"]).exported] == ["json"]
