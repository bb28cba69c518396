"""``dynid payload`` by its command, with report and vendor form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli_program import dynid
from dynid.apps.payload.load import identify_payload
from dynid.apps.payload.verb import load_grade, show_load
from dynid.finding import Finding, Verdict


def test_by_command_with_report_and_vendor_form(folder: Path, loaded_log: Path, tmp_path: Path) -> None:
    done = dynid("payload", folder, loaded_log, "--format", "ur", "--report", tmp_path / "load.html", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for key in ("mass", "com", "inertia", "sigma", "feasible", "vendor", "relative_error", "frame"):
        assert key in found
    assert found["vendor"]["fields"]["mass"] == pytest.approx(found["mass"])
    page = (tmp_path / "load.html").read_text("utf-8")
    assert "What the load explains" in page
    assert "Content-Security-Policy" in page
    (tmp_path / "tool.json").write_text(done.stdout)
    again = dynid("payload", folder, loaded_log, "--tool", tmp_path / "tool.json", "--each", "--json")
    assert again.returncode == 0, again.stderr
    assert abs(json.loads(again.stdout)["loads"][0]["mass"]) < 0.05
    refused = dynid("payload", folder, loaded_log, "-o", tmp_path / "x.txt")
    assert refused.returncode == 2
    assert "--format" in refused.stderr


def test_a_load_is_no_better_than_its_run(run, loaded_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load = replace(identify_payload(run, [loaded_log]), warnings=(), gain_sigma=0.1)
    fine, bad = Verdict("predicts unseen torque to 1 %", ()), Finding("error", "torque is in another unit", "mend it")
    assert load_grade(load, fine) == load_grade(load, None) == "good"
    assert load_grade(load, Verdict("explains nothing", (bad,))) == "do not use"
    assert load_grade(replace(load, covariance=(10.0 * load.mass) ** 2 * np.eye(10)), fine) == "usable"
    show_load(load, "", Verdict("explains nothing", (bad,)))
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("verdict: do not use: load on ")
    assert "the run without the load is 'do not use': explains nothing" in told
    assert "intervals include 10 % (1 sigma) for the drive gains" in told
