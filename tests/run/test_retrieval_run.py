"""A whole run under a bounds file, from Python, from the command line and from a run file."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

import numpy as np
import pytest

from bench import Bench
from dynid.cli import main
from dynid.errors import InputError
from dynid.inertia import mass_com_inertia
from dynid.run.identify import identify, method_of
from dynid.run.options import Settings
from dynid.run.runfile import read_run_file
from dynid.run.store import load_run, save_run


@pytest.fixture(scope="module")
def bounds(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Masses of the truth to a fifth, and one that is wrong on purpose."""
    mass, _, _ = mass_com_inertia(bench.truth.parameters.inertials)
    lines = [f"m{i},{0.8 * m},{1.2 * m}" for i, m in enumerate(mass, start=1)]
    lines[3] = f"m4,{1.5 * mass[3]},{2.0 * mass[3]}"
    path = tmp_path_factory.mktemp("bounds") / "arm.csv"
    path.write_text("\n".join(["name,lower,upper", *lines, "I1xy,-0.2,0.2", f"total_mass,,{1.5 * mass.sum()}"]) + "\n")
    return path


def test_a_run_keeps_to_its_bounds(bench: Bench, bounds: Path, tmp_path: Path) -> None:
    run = identify(bench.urdf, bench.log, Settings(method="retrieve", bounds=str(bounds), cutoff_hz=10.0, friction="linear"))
    mass, _, _ = mass_com_inertia(bench.truth.parameters.inertials)
    found, _, inertia = mass_com_inertia(run.identified.parameters.inertials)
    assert (found[:3] >= 0.8 * mass[:3]).all()
    assert (found[:3] <= 1.2 * mass[:3]).all()
    assert 1.5 * mass[3] <= found[3] <= 2.0 * mass[3]
    assert abs(inertia[0, 0, 1]) <= 0.2
    details = run.estimate.details
    assert details["violated"] == {}
    assert details["lower_bound"] <= details["cost"]
    again = load_run(save_run(run, tmp_path / "run"))
    assert again.settings.bounds == str(bounds)
    np.testing.assert_array_equal(again.estimate.standard.values, run.estimate.standard.values)


def test_bounds_are_for_retrieval(bench: Bench, bounds: Path) -> None:
    with pytest.raises(InputError, match="'sdp' takes no bounds"):
        identify(bench.urdf, bench.log, Settings(method="sdp", bounds=str(bounds), cutoff_hz=10.0))


def test_the_command_line_states_cost_gap_and_violations(bench: Bench, bounds: Path, tmp_path: Path, monkeypatch) -> None:
    arguments = [
        "identify",
        bench.urdf,
        bench.log,
        "--method",
        "retrieve",
        "--bounds",
        bounds,
        "--cutoff-hz",
        "10",
        "--friction",
        "linear",
    ]
    monkeypatch.setattr(sys, "argv", ["dynid", *map(str, arguments), "-o", str(tmp_path / "run")])
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main()
    assert (tmp_path / "run" / "run.json").is_file()
    text = " ".join(out.getvalue().split())
    assert "no feasible set costs less than" in text
    assert "constraints violated: none" in text
    assert "largest joint forces" in text


def test_a_run_file_names_its_bounds_relative_to_itself(bounds: Path) -> None:
    path = bounds.parent / "run.toml"
    path.write_text('[estimation]\nmethod = "retrieve"\nbounds = "arm.csv"\n')
    assert read_run_file(path).settings({}).bounds == str(bounds.parent / "arm.csv")


def test_annealing_is_reached_from_settings_and_says_how_far_it_is(bench: Bench, bounds: Path) -> None:
    heard: list[str] = []
    settings = Settings(method="retrieve", bounds=str(bounds), optimiser="annealing", starts=3, seed=4)
    method = method_of(settings, bench.truth, heard.append)
    assert (method.optimiser, method.starts, method.seed, method.engine) == ("annealing", 3, 4, "processes")
    method.progress(2, 3)
    assert heard == ["estimating by retrieve: 2 of 3 starts done"]
