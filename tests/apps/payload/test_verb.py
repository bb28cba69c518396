"""``dynid payload`` by its command, with report and vendor form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench import Bench
from cli_program import dynid
from dynid.dynamics.simulate import simulate
from dynid.excitation.shapes import random_fourier
from dynid.io.logs.read import write_recording
from dynid.pipeline.folder import save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from uniform_bodies import phi_of_cuboid

LOAD = phi_of_cuboid(2.0, [0.06, 0.05, 0.08], [0.02, -0.03, 0.12], np.eye(3))


@pytest.fixture(scope="module")
def loaded_log(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    values = bench.truth.parameters.values.copy()
    values[30:40] += LOAD
    loaded = bench.truth.with_parameters(bench.truth.parameters.with_values(values))
    motion = random_fourier(loaded, 6.0, 4, seed=5).samples(250.0)
    recording = simulate(loaded, motion, rate_hz=250.0, seed=5).recording
    return Path(write_recording(recording, tmp_path_factory.mktemp("load") / "loaded.parquet"))


@pytest.fixture(scope="module")
def run(bench: Bench):
    return identify(bench.urdf, [bench.log, bench.other_log], Settings(cutoff_hz=15.0, friction="linear"))


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_result(run, tmp_path_factory.mktemp("payload") / "run")


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
