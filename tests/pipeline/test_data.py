"""Logs that are in memory: recordings, dictionaries of arrays and data frames in place of files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dynid
from bench import Bench
from dynid.dynamics.inverse_dynamics import random_states_within_limits
from dynid.dynamics.regressors import static_regressor
from dynid.errors import InputError
from dynid.io.logs.read import read_recording
from dynid.pipeline.folder import save_result
from dynid.signals.recording import Recording, StaticRecording

SETTINGS = dynid.Settings(method="wls", cutoff_hz=10.0, friction="linear")


def recorded(bench: Bench, path: Path) -> Recording:
    found = read_recording(path, bench.truth)
    assert isinstance(found, Recording)
    return found


def columns(log: Recording) -> dict[str, np.ndarray]:
    """One array per column, under numbered names."""
    found = {"t": log.time}
    for name, values in (("q", log.position), ("dq", log.velocity), ("tau", log.torque)):
        assert values is not None
        found |= {f"{name}{k + 1}": values[:, k] for k in range(log.n_joints)}
    return found


FORMS: dict[str, Callable[[Recording], Any]] = {
    "recording": lambda log: log,
    "list": lambda log: [log],
    "other order of joints": lambda log: log.select(log.joint_names[::-1]),
    "arrays": lambda log: {"t": log.time, "q": log.position, "dq": log.velocity, "tau": log.torque},
    "columns": columns,
    "polars": lambda log: pl.DataFrame(columns(log)),
}


@pytest.fixture(scope="module")
def from_file(bench: Bench) -> dynid.IdentificationResult:
    return dynid.identify(bench.urdf, bench.log, SETTINGS, validate_on=[bench.other_log])


@pytest.mark.parametrize("form", FORMS)
def test_a_log_in_memory_gives_what_its_file_gives(bench: Bench, from_file: dynid.IdentificationResult, form: str) -> None:
    known, unseen = (FORMS[form](recorded(bench, path)) for path in (bench.log, bench.other_log))
    run = dynid.identify(bench.urdf, known, SETTINGS, validate_on=unseen)
    np.testing.assert_allclose(run.estimate.base_values, from_file.estimate.base_values, rtol=1e-9, atol=1e-12)
    assert run.validation is not None
    assert from_file.validation is not None
    assert run.validation.relative_error == pytest.approx(from_file.validation.relative_error, rel=1e-9)


def test_files_and_memory_stand_together(bench: Bench, tmp_path: Path) -> None:
    log = recorded(bench, bench.other_log).with_(source=dynid.Recording.__dataclass_fields__["source"].default_factory())
    run = dynid.identify(bench.urdf, [bench.log, log], SETTINGS)
    files = dynid.identify(bench.urdf, [bench.log, bench.other_log], SETTINGS)
    np.testing.assert_allclose(run.estimate.base_values, files.estimate.base_values, rtol=1e-9, atol=1e-12)
    assert [path for path, _ in run.logs] == [str(bench.log), "recording 2"]
    again = dynid.load_result(save_result(run, tmp_path / "run"), with_samples=True)
    assert again.samples == ()  # what is gone is not made again from something else
    assert again.logs == run.logs


def test_other_verbs_take_them_too(bench: Bench, from_file: dynid.IdentificationResult) -> None:
    log = recorded(bench, bench.other_log)
    alone = dynid.identify(bench.urdf, bench.log, SETTINGS)
    assert alone.validate(log).relative_error == pytest.approx(from_file.judged_error, rel=1e-9)
    heavy = bench.truth.with_parameters({"m4": bench.truth.parameters["m4"] + 2.0})
    loaded = dynid.demo_recording(heavy, seed=3)
    assert dynid.identify_payload(alone, loaded).mass == pytest.approx(2.0, rel=0.1)
    _, found = dynid.compare(bench.urdf, log, SETTINGS, methods=["ols", "wls"])
    assert [one.method for one in found] == ["ols", "wls"]


def test_poses(bench: Bench) -> None:
    robot = bench.truth.with_effects(())
    q, _, _ = random_states_within_limits(robot, 60)
    inertia, gravity = (Y @ robot.parameters.values for Y in static_regressor(robot, q))
    run = dynid.identify(robot, StaticRecording(q, robot.joint_names, inertia=inertia, gravity=gravity))
    assert run.rows.kind == "static"
    assert run.estimate.relative_error < 1e-6


def test_a_recording_of_some_joints_locks_the_others(bench: Bench) -> None:
    log = recorded(bench, bench.log)
    run = dynid.identify(bench.urdf, log.select(log.joint_names[1:]), SETTINGS)
    assert run.robot.joint_names == log.joint_names[1:]
    assert any("locked at neutral" in note for note in run.notes)


def test_what_is_no_log_is_refused_in_one_sentence(bench: Bench) -> None:
    log = recorded(bench, bench.log)
    for given, message in (
        (log.with_(joint_names=("a", "b", "c", "d")), "has joints a, b, c, d, expected those of the robot"),
        (log.with_(torque=None), "has no joint torque"),
        ({"t": log.time}, "recording 1"),
        ([3.0], "log 1 is of type float"),
        ([log, log], "same content"),
    ):
        with pytest.raises(InputError, match=message):
            dynid.identify(bench.urdf, given, SETTINGS)
    with pytest.raises(InputError, match="same content"):
        dynid.identify(bench.urdf, log, SETTINGS, validate_on=log)
