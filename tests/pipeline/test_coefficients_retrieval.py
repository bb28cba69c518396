"""A whole run under a bounds file, from Python, from the command line and from a run file."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from bench import PLAIN, Bench
from cli_program import dynid
from dynid.cli import main
from dynid.errors import InputError
from dynid.model.inertia import mass_com_inertia
from dynid.pipeline.folder import load_result, save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.pipeline.robot_setup import method_of
from dynid.pipeline.run_file import read_run_file
from dynid.regression.base import reduce_to_base


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
    found, _, inertia = mass_com_inertia(run.model.parameters.inertials)
    assert (found[:3] >= 0.8 * mass[:3]).all()
    assert (found[:3] <= 1.2 * mass[:3]).all()
    assert 1.5 * mass[3] <= found[3] <= 2.0 * mass[3]
    assert abs(inertia[0, 0, 1]) <= 0.2
    details = run.estimate.details
    assert details["violated"] == {}
    assert details["lower_bound"] <= details["cost"]
    again = load_result(save_result(run, tmp_path / "run"))
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


def test_only_a_retrieval_is_shown_as_one(bench: Bench, tmp_path: Path) -> None:
    """The closest consistent parameters have a lower bound too, of their distance: no cost, no bounds, nothing violated."""
    words = ("identify", bench.urdf, bench.log, "--method", "bpfc", *PLAIN, "-o", tmp_path / "run")
    plain = dynid(*words)
    assert plain.returncode == 0, plain.stderr
    assert "verdict: " in plain.stdout
    done = dynid(*words, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["feasible"]
    assert "retrieval" not in found
    assert "lower_bound" in load_result(tmp_path / "run").estimate.details
    assert "Retrieval under bounds" not in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.parametrize(("beyond", "grade"), [(0.3, "do not use"), (0.12, "usable"), (0.0, "usable")])
def test_a_retrieval_that_ends_far_above_its_bound_is_not_to_be_used(
    bench: Bench, tmp_path: Path, beyond: float, grade: str
) -> None:
    """Exact base values of a known arm, under a condition that is not convex: without it the least cost is zero, that of the truth."""
    rigid = bench.truth.with_effects(())
    base = reduce_to_base(rigid)
    true = base.base_values(rigid.parameters)
    lines = [f"{name},{value!r},1" for name, value in zip(base.names, true.tolist(), strict=True)]
    (tmp_path / "c.csv").write_text("\n".join(["name,value,sigma_percent", *lines]) + "\n")
    size = float(np.linalg.norm(true))
    asked = ({"name": "beyond", "expression": f"abs(mx2) >= {beyond * size!r}"},)
    settings = Settings(method="retrieve", coefficients=str(tmp_path / "c.csv"), conditions=asked)
    run = identify(bench.urdf, (), settings)
    wrong = np.linalg.norm(run.estimate.base_values - true) / size
    reasons = [reason for reason in run.verdict.reasons if reason.code == "gap"]
    assert run.retrieval["violated"] == {}
    assert run.verdict.grade == grade, run.verdict.sentence
    assert run.retrieval["gap_share"] == pytest.approx(wrong, abs=1e-9)
    assert [reason.level for reason in reasons] == {0.3: ["error"], 0.12: ["warning"], 0.0: []}[beyond]
    assert all(f"gap {run.retrieval['gap']:.3g}" in reason.what for reason in reasons)
    assert (wrong > 0.15) == (grade == "do not use")
