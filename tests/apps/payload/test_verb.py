"""``dynid payload`` by its command, with report and vendor form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_program import dynid


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
