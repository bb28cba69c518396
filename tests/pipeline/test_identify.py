from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import Bench
from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits
from dynid.dynamics.regressors import static_regressor
from dynid.errors import InputError
from dynid.io.demo import demo_recording
from dynid.io.logs.read import read_recording, write_recording
from dynid.io.robots.read import read_robot
from dynid.model.joint import Joint
from dynid.model.robot import make_robot
from dynid.pipeline.folder import load_result, save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.signals.recording import Recording, StaticRecording
from dynid.signals.samples import Samples


@pytest.fixture(scope="module")
def run(bench: Bench):
    return identify(bench.urdf, bench.log, Settings(), validate_on=[bench.other_log])


def test_predicts_the_true_robot(bench: Bench, run) -> None:
    q, v, a = random_states_within_limits(bench.truth, 300, seed=5)
    true, found = inverse_dynamics(bench.truth, q, v, a), inverse_dynamics(run.model, q, v, a)
    assert np.linalg.norm(found - true) < 0.03 * np.linalg.norm(true)
    assert run.validation.relative_error < 0.03


def test_errors_name_what_they_were_measured_against(run) -> None:
    summary = run.summary()
    assert summary["relative_error"]["validation"] == run.validation.relative_error
    assert summary["relative_error_raw"]["validation"] > summary["relative_error"]["validation"]
    assert len(summary["rmse"]) == 4
    assert summary["filter"]["cutoff_hz"] in {trial.filter.cutoff_hz for trial in run.trials}


def test_chosen_filter_is_the_best_of_those_tried(run) -> None:
    assert run.filter == min(run.trials, key=lambda trial: trial.error).filter


def test_split_validates_on_the_later_part(bench: Bench) -> None:
    split = identify(bench.urdf, bench.log, Settings(split=0.6, cutoff_hz=10.0, friction="linear"))
    assert split.samples[0].time[-1] < split.unseen[0].time[0]
    assert split.validation is not None


def test_save_and_load_keep_every_number(run, tmp_path: Path) -> None:
    again = load_result(save_result(run, tmp_path / "run"))
    np.testing.assert_array_equal(again.estimate.standard.values, run.estimate.standard.values)
    np.testing.assert_array_equal(again.estimate.covariance, run.estimate.covariance)
    np.testing.assert_array_equal(again.estimate.base_values, run.estimate.base_values)
    assert again.robot.parameters.names == run.robot.parameters.names
    assert again.robot.effects == run.robot.effects
    assert again.filter == run.filter
    assert again.settings == run.settings


def test_loaded_run_validates_as_it_did(bench: Bench, run, tmp_path: Path) -> None:
    again = load_result(save_result(run, tmp_path / "run"))
    verdict = again.validate([bench.other_log])
    assert verdict.relative_error == pytest.approx(run.validation.relative_error, rel=1e-12)


def test_loaded_run_gets_its_samples_back(run, tmp_path: Path) -> None:
    again = load_result(save_result(run, tmp_path / "run"), with_samples=True)
    np.testing.assert_array_equal(again.samples[0].torque, run.samples[0].torque)
    assert again.validation.relative_error == run.validation.relative_error


@pytest.mark.parametrize(("rows", "at_most"), [("polynomial", 0.05), ("energy", 0.15)])  # energy shows less of each joint
def test_friction_under_load_in_other_rows(bench: Bench, rows: str, at_most: float) -> None:
    """The load is found with the estimate, so what is chosen before it must do without."""
    found = identify(bench.urdf, bench.log, Settings(rows=rows, friction="load"), validate_on=[bench.other_log])
    assert any(effect.loaded for effect in found.robot.effects)
    assert found.validation.relative_error < at_most


def test_a_run_finds_its_logs_from_any_folder(bench: Bench, run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.csv").write_bytes(Path(bench.log).read_bytes())
    folder = save_result(replace(run, logs=(("log.csv", run.logs[0][1]),)), tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert Path(load_result(folder).logs[0][0]).read_bytes() == Path(bench.log).read_bytes()


def test_joints_the_log_lacks_are_locked(bench: Bench, tmp_path: Path) -> None:
    import polars as pl

    log = write_recording(read_recording(bench.log, bench.truth), tmp_path / "four.parquet", by_name=True)
    table = pl.read_parquet(log)
    columns = [name for name in table.columns if not name.endswith("elbow")]
    assert len(columns) < len(table.columns)
    table.select(columns).write_parquet(tmp_path / "three.parquet")
    run = identify(bench.urdf, tmp_path / "three.parquet", Settings(cutoff_hz=10.0, friction="linear"))
    assert run.robot.joint_names == ("shoulder_yaw", "shoulder_pitch", "upper_arm_roll")
    assert any("elbow" in note and "locked" in note for note in run.notes)


def test_table_of_poses_recovers_base_parameters(bench: Bench, tmp_path: Path) -> None:
    robot = read_robot(bench.urdf, "none")
    q, _, _ = random_states_within_limits(robot, 60)
    Y_inertia, Y_gravity = static_regressor(robot, q)
    phi = robot.parameters.values
    poses = StaticRecording(q, robot.joint_names, inertia=Y_inertia @ phi, gravity=Y_gravity @ phi)
    path = write_recording(poses, tmp_path / "poses.csv")
    run = identify(bench.urdf, path)
    np.testing.assert_allclose(run.estimate.base_values, run.estimate.base.base_values(robot.parameters), atol=1e-9)
    assert run.filter is None
    assert run.robot.effects == ()


def test_same_log_twice_is_refused(bench: Bench) -> None:
    with pytest.raises(InputError, match="same content"):
        identify(bench.urdf, [bench.log, bench.log])
    with pytest.raises(InputError, match="same content as a log of the identification set"):
        identify(bench.urdf, bench.log, validate_on=[bench.log])


def test_split_and_validation_logs_exclude_each_other(bench: Bench) -> None:
    with pytest.raises(InputError, match="expected one of the two"):
        identify(bench.urdf, bench.log, Settings(split=0.5), validate_on=[bench.other_log])


def test_too_short_a_log_is_said(bench: Bench, tmp_path: Path) -> None:
    import polars as pl

    pl.read_parquet(bench.log).head(20).write_parquet(tmp_path / "short.parquet")
    with pytest.raises(InputError, match=r"short\.parquet: 20 rows and 0\.076 s are too short"):
        identify(bench.urdf, tmp_path / "short.parquet")


def test_run_folder_that_is_damaged_is_said(run, tmp_path: Path) -> None:
    folder = save_result(run, tmp_path / "run")
    (folder / "estimate.npz").write_bytes(b"not an archive")
    with pytest.raises(InputError, match=r"estimate\.npz"):
        load_result(folder)
    (folder / "run.json").write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        load_result(folder)


def test_unseen_parameters_keep_the_nominal_value(bench: Bench) -> None:
    """A joint that stands still shows neither its friction nor its own inertia."""
    from dynid.estimation.estimate import estimate
    from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
    from dynid.excitation.shapes import random_fourier
    from dynid.regression.base import reduce_to_base
    from dynid.regression.factor import build_regression

    robot = bench.truth
    motion = random_fourier(robot, 5.0, 4, seed=8).samples(100.0)
    v, a = motion.velocity.copy(), motion.acceleration.copy()
    q = motion.position.copy()
    q[:, 3], v[:, 3], a[:, 3] = 0.3, 0.0, 0.0
    still = Samples(motion.time, q, v, a, inverse_dynamics(robot, q, v, a))
    base = reduce_to_base(robot)
    wrong = robot.parameters.with_values(robot.parameters.values * 1.5)
    result = estimate(build_regression(robot, still), base, OrdinaryLeastSquares(), wrong)
    place = base.index("fv4")
    assert result.origin[place] == "prior"
    assert result.base_values[place] == pytest.approx(base.base_values(wrong)[place])
    assert result.rank < base.n_base
    assert result.outcome.name == "RANK_DEFICIENT"
    np.testing.assert_allclose(inverse_dynamics(robot.with_parameters(result.standard), q, v, a), still.torque, atol=1e-6)


def test_the_description_holds_what_the_data_do_not_see(bench: Bench) -> None:
    held = identify(bench.urdf, bench.log, Settings(cutoff_hz=15.0, friction="linear"))
    free = identify(bench.urdf, bench.log, Settings(cutoff_hz=15.0, friction="linear", prior="none"))
    nominal = held.robot.parameters.inertials[:, 0]
    assert held.estimate.feasible
    assert free.estimate.feasible
    assert (np.abs(np.log(held.estimate.standard.inertials[:, 0] / nominal)) < np.log(2.0)).all()
    # and costs nothing: the base values are those of the data
    assert held.identification.relative_error < 1.01 * free.identification.relative_error


def test_without_inertials_masses_stay_as_small_as_the_data_let_them(bench: Bench, tmp_path: Path) -> None:
    import re

    text = re.sub(r"<inertial>.*?</inertial>", "", bench.urdf.read_text(encoding="utf-8"), flags=re.S)
    (tmp_path / "bare.urdf").write_text(text, encoding="utf-8")
    run = identify(
        tmp_path / "bare.urdf", bench.log, Settings(cutoff_hz=15.0, friction="linear"), validate_on=[bench.other_log]
    )
    free = identify(
        tmp_path / "bare.urdf",
        bench.log,
        Settings(cutoff_hz=15.0, friction="linear", prior="none"),
        validate_on=[bench.other_log],
    )
    assert run.estimate.feasible
    assert run.validation.relative_error < 1.01 * free.validation.relative_error
    weight, heavy = (one.estimate.standard.inertials[:, 0].sum() for one in (run, free))
    assert weight < 1.5 * bench.truth.parameters.inertials[:, 0].sum()
    assert weight < heavy


def test_a_run_says_that_friction_of_a_long_chain_was_found_in_turn(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dynid.estimation.friction import fit

    quick = Settings(method="wls", cutoff_hz=10.0, signal_band_hz=30.0, velocity="logged", friction="smooth")
    monkeypatch.setattr(fit, "LONG_CHAIN", 1)
    found = identify(bench.urdf, bench.log, quick)
    (note,) = [one for one in found.notes if "slightly too narrow" in one]
    folder = save_result(found, tmp_path / "run")
    assert note in json.loads((folder / "run.json").read_text())["result"]["notes"]
    assert note in load_result(folder).notes


def test_the_residual_of_a_misread_log_is_not_blamed_on_springs(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A base that leans loads the first joint by its position, as a cable would: the check names the base, and that is all."""
    asked: list[str] = []
    monkeypatch.setattr("dynid.pipeline.choices.advise", lambda robot, *_args, **_options: asked.append(robot.name) or ())
    settings = Settings(method="ols", cutoff_hz=10.0, friction="linear")
    for gravity, told in (((0.0, 0.0, -9.81), False), ((1.2, 0.0, -9.736), True)):
        log = write_recording(demo_recording(bench.truth.with_gravity(gravity), torque_noise=0.01), tmp_path / "log.parquet")
        asked.clear()
        tilted = any("base is likely tilted" in note for note in identify(bench.urdf, log, settings).notes)
        assert (tilted, bool(asked)) == (told, not told)


def test_a_robot_of_a_thousand_joints_is_refused_before_its_log_is_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    swing, body = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    names = [f"j{k}" for k in range(1000)]
    robot = make_robot(
        "chain", [Joint(name, "revolute", k - 1, np.eye(4), swing) for k, name in enumerate(names)], [body] * 1000
    )
    signals = np.random.default_rng(0).standard_normal((2, 300, 1000))
    log = Recording(0.01 * np.arange(300.0), signals[0], names, torque=signals[1])
    monkeypatch.setenv("DYNID_MEMORY_GB", "1")
    monkeypatch.setattr("dynid.pipeline.identify.check_data", lambda *_: pytest.fail("the log was worked on"))
    with pytest.raises(
        InputError, match=r"robot 'chain' with 1000 joints needs \d+\.\d GiB of memory, expected at most 1 GiB"
    ):
        identify(robot, log, Settings(effects="none"))
