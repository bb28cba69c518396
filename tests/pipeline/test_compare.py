"""Every method on the same data: one that cannot work is there with its reason, and the others with their results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dynid
from cli_program import app
from dynid.errors import InputError
from dynid.estimation.methods.instrumental import InstrumentalVariables
from dynid.pipeline.compare import compare, compare_on
from dynid.pipeline.options import Settings

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


def test_options_that_are_wrong_for_every_method_are_refused(log: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.toml"):
        compare(dynid.demo_robot(), [log], replace(QUICK, bounds="missing.toml"), methods=["ols", "retrieve"])
