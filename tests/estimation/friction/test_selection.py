"""Friction models in whole runs: asked for by name, stored, loaded, validated, and identified anew on an old run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import Bench
from cli_program import app
from dynid.dynamics.regressors import static_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.io.logs.read import write_recording
from dynid.pipeline.fix_bodies import refit_friction
from dynid.pipeline.folder import load_result, save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.signals.recording import StaticRecording
from messages import facts

CUTOFF = {"cutoff_hz": 10.0, "velocity": "position"}


@pytest.fixture(scope="module")
def run(bench: Bench):
    return identify(bench.urdf, bench.log, Settings(friction="load", **CUTOFF), validate_on=[bench.other_log])


def test_a_model_takes_the_place_of_linear_friction(run) -> None:
    names = [effect.name for effect in run.robot.effects]
    assert names == ["viscous", "smooth_coulomb", "load_coulomb", "load_viscous", "offset", "armature"]
    assert run.friction_choice.model == "load"
    assert run.validation.relative_error < 0.05
    assert all(samples.load is not None for samples in (*run.samples, *run.unseen))


def test_a_stored_run_predicts_as_before(bench: Bench, run, tmp_path: Path) -> None:
    folder = save_result(run, tmp_path / "run")
    again = load_result(folder)
    assert again.robot.effects == run.robot.effects
    assert again.friction_choice.model == "load"
    assert again.validate([bench.other_log]).relative_error == pytest.approx(run.validation.relative_error, rel=1e-9)
    filled = load_result(folder, with_samples=True)
    assert filled.validation.relative_error == pytest.approx(run.validation.relative_error, rel=1e-9)
    assert json.loads((folder / "run.json").read_text())["result"]["friction_model"]["model"] == "load"


def test_auto_says_what_it_chose_against(bench: Bench) -> None:
    found = identify(bench.urdf, bench.log, Settings(friction="auto", **CUTOFF))
    noise = np.min([trial.rmse for trial in found.friction_choice.trials], axis=0)
    errors = {trial.model: np.linalg.norm(trial.rmse / noise) for trial in found.friction_choice.trials}
    assert errors[found.friction_choice.model] <= 1.1 * min(errors.values())
    assert errors[found.friction_choice.model] < 0.8 * errors["linear"]  # the simulated sign turns over 0.01 rad/s
    assert any("Friction model: " in note for note in found.notes)


def test_friction_anew_on_an_old_run(bench: Bench, run) -> None:
    refit = refit_friction(run, bench.other_log, "linear", validate_on=[bench.log])
    inertial = run.robot.parameters.n_inertial
    np.testing.assert_allclose(
        refit.estimate.standard.values[:inertial], run.estimate.standard.values[:inertial], atol=1e-10
    )
    assert refit.filter == run.filter
    assert refit.friction_choice.model == "linear"
    assert refit.validation.relative_error < 0.05
    with pytest.raises(InputError, match="same content"):
        refit_friction(run, bench.log, validate_on=[bench.log])


def test_bodies_from_poses_and_friction_from_motion(bench: Bench, tmp_path: Path) -> None:
    """The procedure of the Panda paper: reverse engineering first, friction on what is left of the torque."""
    truth = bench.truth.with_effects(())
    q = np.random.default_rng(0).uniform(-1.5, 1.5, (60, 4))
    Y_inertia, Y_gravity = static_regressor(truth, q)
    poses = StaticRecording(
        position=q,
        inertia=Y_inertia @ truth.parameters.values,
        gravity=Y_gravity @ truth.parameters.values,
        joint_names=truth.joint_names,
    )
    table = write_recording(poses, tmp_path / "poses.parquet")
    bodies = identify(bench.urdf, table, Settings(**CUTOFF))
    assert bodies.filter is None
    refit = refit_friction(bodies, bench.log, "sigmoid")
    assert [effect.name for effect in refit.robot.effects] == ["viscous", "sigmoid", "offset"]
    assert refit.identification.relative_error < 0.1
    with pytest.raises(InputError, match="is a table of poses, expected a motion log"):
        refit_friction(bodies, table)


def test_command_line(bench: Bench, tmp_path: Path) -> None:
    def call(*arguments: object) -> dict:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    options = ("--cutoff-hz", 10, "--velocity", "position", "--json")
    first = call("identify", bench.urdf, bench.log, "--friction", "smooth", "-o", tmp_path / "first", *options)
    assert first["friction_model"]["model"] == "smooth"
    assert "smooth_coulomb" in first["friction"]
    second = call(
        "identify", bench.urdf, bench.other_log, "--fix-bodies", tmp_path / "first", "-o", tmp_path / "second", "--json"
    )
    assert second["method"] == "friction"
    assert second["friction_model"]["model"] == "smooth"
    assert (
        load_result(tmp_path / "second").estimate.standard["m2"] == load_result(tmp_path / "first").estimate.standard["m2"]
    )


def test_unknown_models_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=facts("linear", "smooth", "magic", "friction")):
        Settings(friction="magic")
