"""The modified recursive least squares of Lomakin and Deutscher by the command line: bounds from a file, flags, both forms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from bench import Bench
from cli_program import app
from dynid.errors import InputError, UnknownNameError
from dynid.io.robots.read import read_robot
from dynid.option_types import DEFAULT_EFFECTS
from dynid.pipeline.folder import load_result
from dynid.regression.base import reduce_to_base


def dynid(*arguments: object) -> dict:
    """The JSON of a command that must succeed."""
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def values_of(found: dict) -> dict[str, float]:
    return {entry["name"]: entry["value"] for entry in found["base"]}


@pytest.fixture(scope="module")
def free(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """The recursive estimate without bounds, and the ordinary one."""
    place = tmp_path_factory.mktemp("recursive")
    common = (bench.urdf, bench.log, "--friction", "linear", "--cutoff-hz", 10, "--export", "json", "-o")
    return {
        "recursive": dynid("identify", *common, place / "recursive", "--method", "recursive"),
        "ols": dynid("identify", *common, place / "ols", "--method", "ols"),
    }


def test_without_bounds_it_is_ordinary_least_squares(free: dict) -> None:
    recursive, ordinary = values_of(free["recursive"]), values_of(free["ols"])
    largest = max(map(abs, ordinary.values()))
    np.testing.assert_allclose(list(recursive.values()), list(ordinary.values()), rtol=1e-8, atol=1e-8 * largest)
    found = free["recursive"]["recursive"]
    assert set(found["flags"]) == set(recursive)
    assert set(found["flags"].values()) == {1}
    assert found["clipped"] == []
    assert "recursive" not in free["ols"]


def test_a_threshold_that_no_column_passes_identifies_nothing(bench: Bench, free: dict, tmp_path: Path) -> None:
    """``sigma^2`` of the printed algorithm, or a share of a column's usual size."""
    common = (bench.urdf, bench.log, "--friction", "linear", "--cutoff-hz", 10, "--method", "recursive", "--export", "json")
    flags = {
        threshold: dynid("identify", *common, "--threshold", threshold, "-o", tmp_path / str(threshold))["recursive"][
            "flags"
        ]
        for threshold in (1e-3, 0.5)
    }
    assert flags[1e-3] == free["recursive"]["recursive"]["flags"]
    assert sum(value == 1 for value in flags[0.5].values()) < len(flags[0.5])


@pytest.mark.parametrize("form", ["repaired", "literal"])
def test_bounds_of_a_file_clip_what_leaves_them(bench: Bench, free: dict, tmp_path: Path, form: str) -> None:
    known = values_of(free["recursive"])
    bounds = {"fv1": (0.0, 0.8 * known["fv1"]), "fc2": (1.2 * known["fc2"], 5.0 * known["fc2"]), "fv3": (0.0, 1e3)}
    lines = [f"{name},{low},{high}" for name, (low, high) in bounds.items()]
    (tmp_path / "b.csv").write_text("\n".join(["name,lower,upper", *lines]) + "\n")
    found = dynid(
        "identify", bench.urdf, bench.log, "--method", "recursive", "--form", form, "--bounds", tmp_path / "b.csv",
        "--friction", "linear", "--cutoff-hz", 10, "--export", "json", "-o", tmp_path / "run",
    )  # fmt: skip
    values = values_of(found)
    for name, (low, high) in bounds.items():
        assert low <= values[name] <= high
    run = load_result(tmp_path / "run")
    assert run.settings.form == form
    assert run.recursion["flags"] == found["recursive"]["flags"]
    assert set(found["recursive"]["flags"].values()) <= {-1, 0, 1}
    if form == "repaired":  # the state stays free: only what is returned is clipped
        assert sorted(found["recursive"]["clipped"]) == ["fc2", "fv1"]
        assert (values["fv1"], values["fc2"]) == (bounds["fv1"][1], bounds["fc2"][0])
        others = [name for name in known if name not in ("fv1", "fc2")]
        largest = max(map(abs, known.values()))
        assert np.allclose([values[n] for n in others], [known[n] for n in others], rtol=1e-8, atol=1e-8 * largest)
        assert any("moved into their bounds: " in note for note in found["notes"])


def test_a_box_on_parameters_becomes_one_on_the_base_parameter_they_make(bench: Bench, free: dict, tmp_path: Path) -> None:
    """Interval arithmetic of section VI: the base parameter of a link's moment with the masses that it carries."""
    entry = next(one for one in free["ols"]["base"] if " " in one["expression"] and one["name"].startswith("mx"))
    base = reduce_to_base(read_robot(bench.urdf, DEFAULT_EFFECTS))
    row = base.K[base.index(entry["name"])]
    names = [base.parameter_names[i] for i in np.flatnonzero(row)]
    lines = [f"{name},-0.001,0.001" for name in names]
    (tmp_path / "b.csv").write_text("\n".join(["name,lower,upper", *lines]) + "\n")
    found = dynid(
        "identify", bench.urdf, bench.log, "--method", "recursive", "--bounds", tmp_path / "b.csv", "--cutoff-hz", 10,
        "--friction", "linear", "--export", "json", "-o", tmp_path / "run",
    )  # fmt: skip
    assert found["recursive"]["clipped"] == [entry["name"]]
    reach = 0.001 * np.abs(row).sum()
    assert abs(values_of(found)[entry["name"]]) == pytest.approx(reach, rel=1e-12)


@pytest.mark.parametrize(
    ("line", "fact"),
    [("c1x,0,1", "unknown parameter 'c1x'"), ("total_mass,1,2", "'total_mass'"), ("m9,0,1", "unknown parameter 'm9'")],
)
def test_names_that_are_no_parameters_are_refused(bench: Bench, tmp_path: Path, line: str, fact: str) -> None:
    (tmp_path / "b.csv").write_text(f"name,lower,upper\n{line}\n")
    done = CliRunner().invoke(
        app, ["identify", str(bench.urdf), str(bench.log), "--method", "recursive", "--bounds", str(tmp_path / "b.csv")]
    )
    assert isinstance(done.exception, UnknownNameError)
    assert fact in str(done.exception)


def test_other_methods_take_no_bounds(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("name,lower,upper\nfv1,0,1\n")
    done = CliRunner().invoke(
        app, ["identify", str(bench.urdf), str(bench.log), "--method", "ols", "--bounds", str(tmp_path / "b.csv")]
    )
    assert isinstance(done.exception, InputError)
    assert "--method recursive or retrieve does" in str(done.exception)


def test_on_polynomial_rows_it_is_their_ordinary_least_squares(bench: Bench, tmp_path: Path) -> None:
    common = (bench.urdf, bench.log, "--rows", "polynomial", "--window", 0.044, "--cutoff-hz", 10, "--friction", "linear",
        "--export", "json", "-o")  # fmt: skip
    recursive = dynid("identify", *common, tmp_path / "recursive", "--method", "recursive")
    ordinary = dynid("identify", *common, tmp_path / "ols", "--method", "ols")
    assert recursive["rows"]["kind"] == ordinary["rows"]["kind"] == "polynomial"
    identified = [name for name, flag in recursive["recursive"]["flags"].items() if flag == 1]
    assert len(identified) == recursive["n_base"]
    a, b = values_of(recursive), values_of(ordinary)
    largest = max(map(abs, b.values()))
    np.testing.assert_allclose([a[name] for name in b], list(b.values()), rtol=1e-9, atol=1e-9 * largest)


@pytest.mark.parametrize("rows", ["torque", "polynomial"])
@pytest.mark.parametrize("noise", [0.0, 1e-5])
def test_a_joint_that_stands_still_is_flagged(bench: Bench, tmp_path: Path, rows: str, noise: float) -> None:
    table = pl.read_parquet(bench.log)
    around = noise * np.random.default_rng(0).normal(size=(2, len(table)))
    still = table.with_columns(pl.Series("q4", 0.3 + around[0]), pl.Series("dq4", 100.0 * around[1]))
    still.write_parquet(tmp_path / "still.parquet")
    found = dynid(
        "identify", bench.urdf, tmp_path / "still.parquet", "--method", "recursive", "--rows", rows, "--window", 0.044,
        "--cutoff-hz", 10, "--friction", "linear", "--export", "json", "-o", tmp_path / "run",
    )  # fmt: skip
    flags = found["recursive"]["flags"]
    assert flags["fv4"] == flags["fc4"] == 0
    assert flags["fv1"] == 1
    assert next(entry for entry in found["base"] if entry["name"] == "fv4")["origin"] == "prior"
