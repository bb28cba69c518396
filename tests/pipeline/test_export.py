"""A section, a drawing, an export, a proof or a replay that fails becomes a note; the run is written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from bench import Bench
from cli_program import dynid as program
from dynid.errors import InputError, reason_of
from dynid.folders import changed_folder
from dynid.pipeline import export, model_files, verdict
from dynid.pipeline import report as run_report
from dynid.pipeline.export import export_models, write_result
from dynid.pipeline.folder import load_result
from dynid.pipeline.report import section_makers
from dynid.pipeline.result import IdentificationResult
from problems import inertial_urdf
from sensor_logs import NOISE, sensor_log, write_log, write_shoulder

MAKERS = (*section_makers(), run_report.repeat_section)
LATE = (ValueError("first line\nsecond line"), np.linalg.LinAlgError("Singular matrix"), InputError("too short"))


@pytest.fixture(scope="module")
def run(bench: Bench) -> IdentificationResult:
    return dynid.identify(bench.urdf, bench.log, dynid.Settings(method="wls", cutoff_hz=10.0, friction="linear"))


def failing(error: Exception) -> Any:
    def raises(*_: Any, **__: Any) -> Any:
        raise error

    return raises


@pytest.mark.parametrize("place", range(len(MAKERS)), ids=[make.__name__ for make in MAKERS])
def test_a_section_that_fails_takes_nothing_with_it(
    run: IdentificationResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    make, error = MAKERS[place], LATE[place % len(LATE)]

    def raises(shown: Any) -> Any:
        raise error

    raises.__name__ = make.__name__
    if make is run_report.repeat_section:
        monkeypatch.setattr(run_report, "repeat_section", raises)
    else:
        monkeypatch.setattr(run_report, "_MAKERS", [raises if one is make else one for one in section_makers()])
    done = write_result(run, tmp_path / "run", formats=["json"])
    title = make.__name__.removesuffix("_section").capitalize()
    assert done.refusals == (f"section '{title}' of the report could not be made: {reason_of(error)}",)
    assert "This section could not be made" in (tmp_path / "run" / "report.html").read_text()
    np.testing.assert_array_equal(load_result(tmp_path / "run").estimate.base_values, run.estimate.base_values)
    assert len(done.exported) == 1


@pytest.mark.parametrize("name", tuple(model_files._FORMATS))
def test_an_export_that_fails_is_a_refusal(
    run: IdentificationResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    broken = replace(model_files._FORMATS[name], write=failing(np.linalg.LinAlgError("Singular matrix")))
    monkeypatch.setattr(model_files, "_FORMATS", {**model_files._FORMATS, name: broken})
    other = "json" if name != "json" else "urdf"
    done = write_result(run, tmp_path / "run", formats=[name, other])
    assert done.refusals == (f"{name} was not written: LinAlgError: Singular matrix",)
    assert [item.format for item in done.exported] == [other]
    assert load_result(tmp_path / "run").estimate.method == "wls"


@pytest.mark.parametrize("name", tuple(model_files._FORMATS))
def test_a_proof_that_fails_leaves_the_file_unproven(
    run: IdentificationResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    broken = replace(model_files._FORMATS[name], prove=failing(RuntimeError("no such plugin")), unprovable=lambda: "")
    monkeypatch.setattr(model_files, "_FORMATS", {**model_files._FORMATS, name: broken})
    done = write_result(run, tmp_path / "run", formats=[name])
    (item,) = done.exported
    assert item.path.is_file()
    assert not item.proven
    assert not item.failed
    assert "could not be read again: RuntimeError: no such plugin" in item.notes[-1]


def test_a_drawing_that_fails_leaves_the_run_without_a_report(
    bench: Bench, run: IdentificationResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_report, "figure_svg", failing(ZeroDivisionError("float division by zero")))
    done = write_result(run, tmp_path / "run", formats=["json"])
    assert done.report is None
    assert done.refusals == ("report.html was not written: ZeroDivisionError: float division by zero",)
    assert all(path.is_file() for path in done.files)
    assert not (tmp_path / "run" / "report.html").exists()
    assert not (tmp_path / "run" / "figures").exists()
    assert load_result(tmp_path / "run").estimate.method == "wls"
    options = ("--method", "ols", "--cutoff-hz", 10, "--friction", "linear", "--export", "json")
    told = program("identify", bench.urdf, bench.log, *options, "-o", tmp_path / "other", "--json")
    assert told.returncode == 0
    assert json.loads(told.stdout)["refusals"] == list(done.refusals)


def test_a_replay_that_fails_is_a_note(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "replay", failing(np.linalg.LinAlgError("Singular matrix")))
    run = dynid.identify(bench.urdf, bench.log, dynid.Settings(method="sdp", cutoff_hz=10.0, friction="linear"))
    assert run.replay is None
    assert run.verdict is not None
    assert any("could not be replayed: LinAlgError: Singular matrix" in one.what for one in run.verdict.reasons)


def test_a_link_with_mass_and_no_inertia(tmp_path: Path) -> None:
    """Nothing determines the acceleration of its joint in a simulation; it is identified and written all the same."""
    limit = '<limit lower="-2" upper="2" velocity="3" effort="50"/>'
    point = '<inertial><mass value="0.5"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(
        f'<robot name="arm"><link name="base"/><link name="upper">{inertial_urdf(1.0, "0.2 0 0")}</link><link name="tip">{point}</link>'
        f'<joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>{limit}</joint>'
        f'<joint name="b" type="revolute"><parent link="upper"/><child link="tip"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>{limit}'
        "</joint></robot>"
    )
    robot = dynid.read_robot(urdf, "viscous,coulomb,offset")
    dynid.write_recording(dynid.demo_recording(robot, seconds=6.0, torque_noise=0.01), tmp_path / "log.csv")
    options = ("--cutoff-hz", 10, "--friction", "linear", "--effects", "viscous,coulomb,offset")
    for method in ("ols", "sdp"):
        folder = tmp_path / method
        done = program("identify", urdf, tmp_path / "log.csv", "--method", method, *options, "-o", folder, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["n_base"] > 0
        assert load_result(folder).verdict is not None


def test_a_body_on_a_sensor_is_written_whatever_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_report, "figure_svg", failing(ValueError("nothing to draw")))
    monkeypatch.setattr(model_files, "vendor_load", failing(KeyError("form")))
    robot, log = write_shoulder(tmp_path), tmp_path / "log.csv"
    write_log(sensor_log(1.0, 1, noise=0.1 * NOISE, duration_s=15.0), log)
    options = ("--frame", "ft_sensor", "--cutoff-hz", 12, "--filter-on", "signals", "--export", "urdf")
    done = program("identify", robot, log, *options, "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["refusals"] == [
        "urdf was not written: KeyError: 'form'",
        "report.html was not written: ValueError: nothing to draw",
    ]
    assert (tmp_path / "run" / "run.json").is_file()


def test_reasons_are_one_line() -> None:
    assert [reason_of(error) for error in (*LATE, KeyError())] == [
        "ValueError: first line second line",
        "LinAlgError: Singular matrix",
        "too short",
        "KeyError",
    ]
    assert export.reason_of is reason_of


def test_formats_are_exported_in_one_change_and_a_failed_one_leaves_nothing(
    run: IdentificationResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_result(run, tmp_path / "run", formats=["json"])

    def half(robot: Any, path: Path, *_: Any) -> Any:
        path.with_suffix(".h").write_text("half")
        raise InputError("no room for it")

    broken = replace(model_files._FORMATS["c"], write=half)
    monkeypatch.setattr(model_files, "_FORMATS", {**model_files._FORMATS, "c": broken})
    changes = []
    monkeypatch.setattr(export, "changed_folder", lambda place: changes.append(place) or changed_folder(place))
    refusals: list[str] = []
    done = export_models(run, tmp_path / "run", ["urdf", "c", "sdf"], refusals=refusals)
    assert ([item.format for item in done], refusals) == (["urdf", "sdf"], ["c was not written: no room for it"])
    assert changes == [tmp_path / "run"]
    assert not list((tmp_path / "run").glob("*.h"))
    with pytest.raises(InputError, match="c was not written: no room for it"):
        export_models(run, tmp_path / "run", ["c"], refusals=[])
