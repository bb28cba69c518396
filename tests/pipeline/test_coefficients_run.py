"""Runs in two steps, from coefficients of a table or of an earlier run, by the command line: files, report, refusals."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from bench import PLAIN, Bench
from cli_program import app
from dynid.errors import InputError
from dynid.model.inertia import mass_com_inertia
from dynid.pipeline.folder import load_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.pipeline.robot_setup import method_of
from dynid.regression.base import reduce_to_base


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def dynid(*arguments: object) -> dict:
    """The JSON of a command that must succeed."""
    done = call(*arguments, "--json")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refusal(*arguments: object) -> str:
    done = call(*arguments)
    assert isinstance(done.exception, InputError), done.output
    return str(done.exception)


@pytest.fixture(scope="module")
def place(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of the arm's rigid base values, bounds that its last mass breaks, and a run with friction."""
    folder = tmp_path_factory.mktemp("coefficients")
    rigid = bench.truth.with_effects(())
    base = reduce_to_base(rigid)
    values = base.base_values(rigid.parameters)
    lines = [
        f"{name},{value!r},{1 + 10 * i}" for i, (name, value) in enumerate(zip(base.names, values.tolist(), strict=True))
    ]
    (folder / "c.csv").write_text("\n".join(["name,value,sigma_percent", *lines]) + "\n")
    mass, _, _ = mass_com_inertia(rigid.parameters.inertials)
    limits = [f"m{i},{0.5 * m},{2.0 * m}" for i, m in enumerate(mass[:3], start=1)]
    limits.append(f"m4,{1.5 * mass[3]},{2.0 * mass[3]}")
    (folder / "b.csv").write_text("\n".join(["name,lower,upper", *limits]) + "\n")
    dynid("identify", bench.urdf, bench.log, "--method", "ols", *PLAIN, "-o", folder / "ols")
    return folder


def test_a_table_without_any_log_makes_a_whole_run(bench: Bench, place: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    found = dynid(
        "identify",
        bench.urdf,
        "--method",
        "retrieve",
        "--coefficients",
        place / "c.csv",
        "--bounds",
        place / "b.csv",
        "-o",
        run,
    )
    assert found["method"] == "retrieve"
    assert found["friction"] == "none"
    assert found["rows"]["kind"] == "coefficients"
    assert found["relative_error"] == found["relative_error_raw"] == {"identification": None, "validation": None}
    assert found["rmse"] == []
    assert (found["n_samples"], found["condition_number"], found["filter"]) == (0, None, None)
    assert any("no log was given" in note for note in found["notes"])
    retrieval = found["retrieval"]
    assert retrieval["violated"] == {}
    given = {entry["name"]: entry for entry in retrieval["coefficients"]}
    assert sum((entry["given"] - entry["retrieved"]) ** 2 for entry in given.values()) == pytest.approx(retrieval["cost"])
    mass = mass_com_inertia(bench.truth.parameters.inertials)[0]
    again = load_result(run, with_samples=True)
    assert 1.5 * mass[3] <= again.model.parameters["m4"] <= 2.0 * mass[3]
    assert np.isnan(again.estimate.relative_error)
    assert np.isnan(again.estimate.condition_number)
    assert json.loads(json.dumps(again.summary()["retrieval"])) == retrieval
    page = (run / "report.html").read_text()
    assert f"Retrieved from {len(given)} coefficients" in page
    assert "poses" not in page.split("Settings")[0].replace("200 test poses", "")
    assert {path.suffix for path in run.glob("*_identified.*")} == {".urdf", ".xml"}
    assert dynid("export", run, "--to", "json,c", "-o", tmp_path / "out")["files"]
    assert dynid("report", run, "-o", tmp_path / "again.html")["files"] == [str(tmp_path / "again.html")]


def test_the_printed_command_and_the_run_file_repeat_it(bench: Bench, place: Path, tmp_path: Path) -> None:
    options = ["--method", "retrieve", "--coefficients", place / "c.csv", "--bounds", place / "b.csv", "--drop-above", 55]
    dynid("identify", bench.urdf, *options, "-o", tmp_path / "run", "--export", "json")
    run = load_result(tmp_path / "run")
    assert run.settings.coefficients == str(place / "c.csv")
    assert run.settings.from_s is None
    words = shlex.split(run.command())
    assert words[:2] == ["dynid", "identify"]
    dynid(*words[1:], "-o", tmp_path / "again", "--export", "json")
    dynid("identify", "--config", tmp_path / "run" / "dynid.toml", "-o", tmp_path / "file", "--export", "json")
    for name in ("again", "file"):
        np.testing.assert_array_equal(load_result(tmp_path / name).estimate.standard.values, run.estimate.standard.values)


def test_vague_coefficients_are_left_out(bench: Bench, place: Path, tmp_path: Path) -> None:
    options = ["--method", "retrieve", "--coefficients", place / "c.csv", "-o", tmp_path / "run", "--export", "json"]
    found = dynid("identify", bench.urdf, *options, "--drop-above", 55)
    n = found["n_base"]
    assert len(found["retrieval"]["coefficients"]) == found["rank"] == 6  # 1, 11, .. 51 percent
    assert [entry["origin"] for entry in found["base"]] == ["data"] * 6 + ["prior"] * (n - 6)
    assert found["outcome"] == "rank_deficient"
    assert any("above 55 %" in note and "(61 %)" in note for note in found["notes"])
    assert "above 0.5 %, none is left" in refusal("identify", bench.urdf, *options, "--drop-above", 0.5)
    kept = dynid("identify", bench.urdf, *options, "--drop-above", 1000)
    assert kept["rank"] == n
    assert any("no coefficient has a standard deviation above 1000 %" in note for note in kept["notes"])


def test_logs_validate(bench: Bench, place: Path, tmp_path: Path) -> None:
    options = ["--method", "retrieve", "--coefficients", place / "c.csv", "--export", "json"]
    found = dynid("identify", bench.urdf, bench.log, *options, "--cutoff-hz", 10, "-o", tmp_path / "run")
    assert found["relative_error"]["identification"] is None
    assert 0.0 < found["relative_error"]["validation"] < 0.5  # rigid bodies alone, so friction is missing
    assert found["filter"]["row_band_hz"] == 10.0
    assert len(found["retrieval"]["largest_joint_wrench"]) == 4
    same = dynid("identify", bench.urdf, "--validate", bench.log, *options, "--cutoff-hz", 10, "-o", tmp_path / "same")
    assert same["relative_error"] == found["relative_error"]
    run = load_result(tmp_path / "run", with_samples=True)
    assert run.logs == ()
    assert [path for path, _ in run.validation_logs] == [str(bench.log)]
    assert len(run.unseen) == 1
    assert run.validation is not None
    assert run.validation.relative_error == pytest.approx(found["relative_error"]["validation"])
    shown = call("report", tmp_path / "run", "-o", tmp_path / "again.html")
    assert "gone" not in shown.output
    assert "unseen: log1.parquet" in (tmp_path / "again.html").read_text()
    assert dynid("validate", tmp_path / "run", bench.other_log)["relative_error"] > 0.0
    assert "give --cutoff-hz F" in refusal("identify", bench.urdf, bench.log, *options, "-o", tmp_path / "none")


def test_a_log_is_judged_afterwards_as_it_would_have_been_at_once(bench: Bench, place: Path, tmp_path: Path) -> None:
    table = tmp_path / "friction.csv"
    table.write_text((place / "c.csv").read_text() + "fv1,5.0,10\nfc1,3.0,10\n")
    options = ["--method", "retrieve", "--coefficients", table, "--export", "json"]
    at_once = dynid("identify", bench.urdf, bench.log, *options, "--cutoff-hz", 5, "-o", tmp_path / "at_once")
    dynid("identify", bench.urdf, *options, "-o", tmp_path / "run")
    afterwards = dynid("validate", tmp_path / "run", bench.log, "--cutoff-hz", 5)
    assert afterwards["relative_error"] == pytest.approx(at_once["relative_error"]["validation"], rel=1e-12)
    assert afterwards["relative_error_raw"] == pytest.approx(at_once["relative_error_raw"]["validation"], rel=1e-12)


def test_the_base_values_of_a_run(bench: Bench, place: Path, tmp_path: Path) -> None:
    earlier = load_result(place / "ols")
    options = ["--method", "retrieve", "--coefficients", place / "ols", "--bounds", place / "b.csv", "--export", "json"]
    found = dynid("identify", bench.urdf, bench.other_log, *options, "-o", tmp_path / "run")
    assert found["feasible"]
    assert found["n_base"] == earlier.estimate.base.n_base
    assert found["condition_number"] == pytest.approx(earlier.estimate.condition_number)
    run = load_result(tmp_path / "run")
    assert run.filter == earlier.filter  # filtered as the run was
    np.testing.assert_allclose(run.estimate.covariance, earlier.estimate.covariance, rtol=1e-9, atol=1e-18)
    given = np.array([entry["given"] for entry in found["retrieval"]["coefficients"]])
    np.testing.assert_array_equal(given, earlier.estimate.base_values)
    assert found["relative_error"]["validation"] < 0.2
    assert "has the same content as a log of the identification set" in refusal(
        "identify", bench.urdf, bench.log, *options, "-o", tmp_path / "own"
    )
    python = identify(
        bench.urdf, settings=Settings(method="retrieve", coefficients=str(place / "ols"), bounds=str(place / "b.csv"))
    )
    np.testing.assert_array_equal(python.estimate.standard.values, run.estimate.standard.values)


def test_annealing_takes_its_numbers_from_flags(bench: Bench, place: Path, tmp_path: Path) -> None:
    numbers = {"optimiser": "annealing", "starts": 1, "steps": 2, "growth": 3.0, "iterations": 4, "seed": 5}
    method = method_of(Settings(method="retrieve", **numbers), bench.truth)
    assert {name: getattr(method, name) for name in numbers} == numbers
    flags = [word for name, value in numbers.items() for word in (f"--{name}", value)]
    options = ["--method", "retrieve", "--coefficients", place / "c.csv", "--bounds", place / "b.csv", "--export", "json"]
    dynid("identify", bench.urdf, *options, *flags, "-o", tmp_path / "run")
    run = load_result(tmp_path / "run")
    assert (run.estimate.details["optimiser"], run.estimate.details["starts"]) == ("annealing", 1)
    assert {name: getattr(run.settings, name) for name in numbers} == numbers


@pytest.mark.slow
def test_conditions_of_a_run_file_bite(bench: Bench, place: Path, tmp_path: Path) -> None:
    (tmp_path / "dynid.toml").write_text(
        f'robot = "{bench.urdf}"\n[estimation]\nmethod = "retrieve"\ncoefficients = "{place / "c.csv"}"\n'
        '[[conditions]]\nexpression = "m3 > 2 m4 if m4 > 0.1"\n[[conditions]]\nname = "centre"\n'
        'expression = "sqrt(c2x ** 2 + c2y ** 2) < 0.9 and c2z > -10"\n'
    )
    found = dynid("identify", "--config", tmp_path / "dynid.toml", "-o", tmp_path / "run", "--export", "json")
    assert found["retrieval"]["violated"] == {}
    values = load_result(tmp_path / "run").model.parameters
    assert values["m4"] <= 0.1 or values["m3"] >= 2.0 * values["m4"]
    plain = dynid(
        "identify",
        bench.urdf,
        "--method",
        "retrieve",
        "--coefficients",
        place / "c.csv",
        "-o",
        tmp_path / "plain",
        "--export",
        "json",
    )
    assert plain["method"] == "retrieve"
    free = load_result(tmp_path / "plain").model.parameters
    assert free["m4"] > 0.1
    assert free["m3"] < 2.0 * free["m4"]
    # the run knows them, and its own run file repeats them
    assert load_result(tmp_path / "run").settings.conditions[1]["name"] == "centre"
    dynid("identify", "--config", tmp_path / "run" / "dynid.toml", "-o", tmp_path / "again", "--export", "json")
    np.testing.assert_array_equal(load_result(tmp_path / "again").estimate.standard.values, values.values)


@pytest.mark.parametrize(
    ("expression", "fact"),
    [
        ("__import__('os').system('true') > 0", "character 12"),
        ("m9 > 1", "'m9' is nothing that this robot has"),
        ("10 ** 10 ** 10 > m1", "grows beyond all bounds"),
        ("m1 + 1", "expected a comparison"),
    ],
)
def test_hostile_conditions_end_in_one_sentence(
    bench: Bench, place: Path, tmp_path: Path, expression: str, fact: str
) -> None:
    (tmp_path / "dynid.toml").write_text(
        f'robot = "{bench.urdf}"\n[estimation]\nmethod = "retrieve"\ncoefficients = "{place / "c.csv"}"\n'
        f'[[conditions]]\nexpression = "{expression}"\n'
    )
    text = refusal("identify", "--config", tmp_path / "dynid.toml", "-o", tmp_path / "run")
    assert fact in text
    assert expression in text
    assert not (tmp_path / "run").exists()


def test_what_does_not_go_together_is_refused(bench: Bench, place: Path, tmp_path: Path) -> None:
    table, out = place / "c.csv", ("-o", tmp_path / "run")
    retrieve = ("--method", "retrieve", "--coefficients", table, *out)
    assert "are for --method retrieve" in refusal("identify", bench.urdf, "--coefficients", table, *out)
    assert "--split identifies from logs" in refusal("identify", bench.urdf, bench.log, *retrieve, "--split", 0.5)
    assert "--friction identifies from logs" in refusal("identify", bench.urdf, bench.log, *retrieve, "--friction", "linear")
    assert "--drop-above leaves out given coefficients" in refusal(
        "identify", bench.urdf, bench.log, "--method", "retrieve", "--drop-above", 30, *out
    )
    assert "--from is 'c.csv', expected a number" in refusal("validate", place / "ols", bench.other_log, "--from", "c.csv")
    assert "no data on which methods could be compared" in refusal("identify", bench.urdf, *retrieve, "--compare", "ols")
    (tmp_path / "plain.csv").write_text("name,value\nIxx2,0.1\n")
    assert "--drop-above needs standard deviations" in refusal(
        "identify", bench.urdf, "--method", "retrieve", "--coefficients", tmp_path / "plain.csv", "--drop-above", 30, *out
    )
    assert "at least one log" in refusal("identify", bench.urdf, "--method", "retrieve", "--from", 2.5, *out)
    assert "--from is 'c.csv', expected a number" in refusal(
        "identify", bench.urdf, "--method", "retrieve", "--from", "c.csv"
    )
    other = tmp_path / "other.urdf"
    other.write_text(bench.urdf.read_text().replace("<robot", "<!-- another --><robot", 1))
    assert "was made from another description" in refusal(
        "identify", other, "--method", "retrieve", "--coefficients", place / "ols", *out
    )


def test_from_is_a_time_of_the_log(bench: Bench, tmp_path: Path) -> None:
    found = dynid(
        "identify", bench.urdf, bench.log, "--method", "ols", "--from", 2, "--cutoff-hz", 10, "--friction", "linear",
        "-o", tmp_path / "run", "--export", "json",
    )  # fmt: skip
    assert load_result(tmp_path / "run").settings.from_s == 2.0
    assert found["n_samples"] < 4.0 * 250.0
