"""Every method on the same data: one that cannot work is there with its reason, and the others with their results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dynid
from cli_program import app
from dynid.errors import InputError
from dynid.estimation.methods.instrumental import InstrumentalVariables
from dynid.pipeline.compare import compare, compare_on
from dynid.pipeline.options import Settings
from dynid.validation.prediction import band_limited, predict

QUICK = Settings(cutoff_hz=20.0, friction="linear", split=0.65)


@pytest.fixture
def no_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise InputError("joint2 cannot be simulated")

    monkeypatch.setattr(InstrumentalVariables, "estimate", refuse)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Path(dynid.write_recording(dynid.demo_recording(), tmp_path / "log.csv"))


@pytest.mark.usefixtures("no_simulation")
def test_a_method_that_cannot_work_takes_nothing_from_the_others(log: Path) -> None:
    run, found = compare(dynid.demo_robot(), [log], QUICK, methods=["ols", "iv", "wls"])
    assert [one.method for one in found] == ["ols", "iv", "wls"]
    assert found[1].refusal
    assert found[1].estimate is None
    assert found[1].as_dict()["refusal"] == "joint2 cannot be simulated"
    assert all(one.validation < 0.02 for one in (found[0], found[2]))
    with pytest.raises(InputError, match="joint2"):
        compare_on(run, QUICK, ["iv"])


@pytest.mark.usefixtures("no_simulation")
def test_the_table_the_json_and_the_report_tell_which_method_refused(log: Path, tmp_path: Path) -> None:
    arm = dynid.write_urdf(dynid.demo_robot(), tmp_path / "arm.urdf").path
    words = [str(arm), str(log), "--friction", "linear", "--cutoff-hz", "20"]
    shown = CliRunner().invoke(app, ["compare", *words, "--methods", "ols,iv"])
    assert shown.exit_code == 0
    assert "refused" in shown.stdout
    assert "iv: joint2 cannot be simulated" in shown.stdout
    told = CliRunner().invoke(app, ["compare", *words, "--methods", "ols,iv", "--json"])
    methods = json.loads(told.stdout)["methods"]
    assert methods[0]["relative_error"]["validation"] < 0.02
    assert methods[1]["relative_error"] == {"identification": None, "validation": None}
    done = CliRunner().invoke(app, ["identify", *words, "--compare", "ols,iv", "-o", str(tmp_path / "run")])
    assert done.exit_code == 0
    assert "Methods compared" in (tmp_path / "run" / "report.html").read_text()


def test_errors_log_by_log(tmp_path: Path) -> None:
    logs = [Path(dynid.write_recording(dynid.demo_recording(seed=k), tmp_path / f"log{k}.csv")) for k in (1, 2, 3)]
    run, (found,) = compare(dynid.demo_robot(), logs[:2], replace(QUICK, split=None), validate_on=logs[2:], methods=["wls"])
    assert [(Path(one["log"]).name, one["data"]) for one in found.logs] == [
        ("log1.csv", "known"),
        ("log2.csv", "known"),
        ("log3.csv", "unseen"),
    ]
    for one, samples in zip(found.logs, (*run.samples, *run.unseen), strict=True):
        assert found.estimate is not None
        judged, predicted = band_limited(
            samples, predict(run.robot.with_parameters(found.estimate.standard), samples), run.judged_hz
        )
        missed = judged.torque - predicted
        assert one["relative_error"] == pytest.approx(np.linalg.norm(missed) / np.linalg.norm(judged.torque), rel=1e-9)
        np.testing.assert_allclose(one["rmse"], np.sqrt((missed**2).mean(axis=0)), rtol=1e-9)
    assert found.as_dict()["logs"][2]["data"] == "unseen"
    arm = dynid.write_urdf(dynid.demo_robot(), tmp_path / "arm.urdf").path
    words = ["--friction", "linear", "--cutoff-hz", "20", "--methods", "ols,wls"]
    shown = CliRunner().invoke(app, ["compare", str(arm), *map(str, logs), *words]).stdout
    assert shown.count("log2.csv") == 2  # its known part and its unseen part


def test_options_that_are_wrong_for_every_method_are_refused(log: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.toml"):
        compare(dynid.demo_robot(), [log], replace(QUICK, bounds="missing.toml"), methods=["ols", "retrieve"])
