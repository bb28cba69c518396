"""``dynid check --base``: feasibility of a bare vector of base values, as users type it."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import Bench
from cli_program import app
from dynid.errors import InputError
from dynid.estimation.consistency.consistent_set import MARGIN
from dynid.io.robots.read import read_robot
from dynid.model.inertia import is_consistent
from dynid.pipeline.base_check import BaseValues, check_base, read_base_values
from dynid.regression.base import reduce_to_base
from papers.test_sousa_table1 import ROWS, T1, T2, T2_CORRECTED

NAMES = sorted({name for row in ROWS for name in row[0]})


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def result(self) -> dict:
        return json.loads(self.out)


def dynid(*words: object) -> Done:
    """The program with these words, in this process; what it refuses it says as the command line does."""
    done = CliRunner().invoke(app, ["check", *(str(word) for word in words[1:])])
    if isinstance(done.exception, InputError):
        return Done(2, done.stdout, f"dynid: {done.exception}\n")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def written(path: Path, rows: list[list[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def expression(terms: dict[str, int]) -> str:
    return " ".join(f"{'+' if factor > 0 else '-'} {name}" for name, factor in terms.items()).removeprefix("+ ")


def expressions(folder: Path, values: np.ndarray) -> Path:
    """Values beside their combinations."""
    rows = [[expression(row[0]), value] for row, value in zip(ROWS, values, strict=True)]
    return written(folder / "values.csv", [["expression", "value"], *rows])


def grouping(folder: Path) -> Path:
    rows = [[f"b{i + 1}", *(row[0].get(name, "") for name in NAMES)] for i, row in enumerate(ROWS)]
    return written(folder / "K.csv", [["name", *NAMES], *rows])


def sousa(folder: Path, values: np.ndarray, *flags: object) -> Done:
    return dynid("check", "--base", expressions(folder, values), *flags)


# Table 1 of Sousa and Cortesao --------------------------------------------------------------------


def test_the_infeasible_vector_is_refused_with_its_proof_and_correction(tmp_path: Path) -> None:
    done = sousa(tmp_path, T2, "--condition", "plain", "--json")
    assert done.code == 1, done.err
    found = done.result
    assert found["decision"] == "infeasible"
    # printed: 1.651e-3; the nearest values belong to no finite body, ours are a little nearer, and the bound is below both
    assert found["distance"] == pytest.approx(1.651e-3, abs=1e-6)
    assert found["bound"] <= found["distance"] <= found["bound"] * (1.0 + 1e-4)
    assert found["closest"] == pytest.approx(T2_CORRECTED, abs=5e-6)
    proof = found["feasibility"]
    assert proof["proven"]
    assert np.dot(found["direction"], T2) == pytest.approx(proof["value"])
    assert proof["value"] < proof["bound"] <= np.dot(found["direction"], T1)
    assert is_consistent(np.array(found["bodies"]), "plain", margin=0.9 * MARGIN, absolute=True).all()


def test_the_text_has_distance_bound_and_proof(tmp_path: Path) -> None:
    done = sousa(tmp_path, T2, "--condition", "plain")
    text = " ".join(done.out.split())
    assert done.code == 1
    assert "infeasible, proven" in text
    assert "distance 1.650" in text
    assert "none is nearer than 1.650" in text
    assert "proof: 0.577 (L1yy + L2yy + L3yy + m3)" in text
    assert "consistency of links" in text


def test_the_feasible_vector_has_a_certificate(tmp_path: Path) -> None:
    values = written(tmp_path / "v.csv", [["name", "value"], *([f"b{i + 1}", value] for i, value in enumerate(T1))])
    flags = ("--grouping", grouping(tmp_path), "--condition", "plain")
    done = dynid("check", "--base", values, *flags, "--json")
    assert done.code == 0, done.err
    found = done.result
    assert (found["decision"], found["distance"], found["bound"]) == ("feasible", 0.0, 0.0)
    assert found["closest"] == pytest.approx(T1)
    assert is_consistent(np.array(found["bodies"]), "plain").all()
    shown = dynid("check", "--base", values, *flags)
    assert "feasible, proven" in shown.out
    assert sousa(tmp_path, T1, "--json").code == 1  # under the full condition it is not


def test_a_margin_and_constraints_change_the_answer(tmp_path: Path) -> None:
    plain = ("--condition", "plain", "--json")
    wide = sousa(tmp_path, T2, *plain, "--margin", "1e-2").result
    assert wide["distance"] > 5.0 * sousa(tmp_path, T2, *plain).result["distance"]
    light = write(tmp_path, "light.toml", "[constraints]\nmass = { link = 3, upper = 1.0 }\n")
    assert sousa(tmp_path, T1, *plain).result["decision"] == "feasible"
    bounded = sousa(tmp_path, T1, *plain, "--constraints", light).result
    assert bounded["decision"] == "infeasible"
    assert any("mass of link 3 <= 1" in label for label in bounded["feasibility"]["conflicts"])
    absurd = write(tmp_path, "absurd.toml", "[constraints]\nmass = { link = 3, upper = 1e-9 }\n")
    none = sousa(tmp_path, T1, *plain, "--constraints", absurd)
    assert none.code == 1
    assert (none.result["distance"], none.result["closest"]) == (None, None)
    assert any("mass of link 3" in note for note in none.result["notes"])


# A robot --------------------------------------------------------------------------------------------


def test_values_of_a_robot_by_the_names_of_its_base_parameters(bench: Bench, tmp_path: Path) -> None:
    robot = read_robot(bench.urdf)
    base = reduce_to_base(robot)
    beta = base.base_values(robot.parameters)
    rows = [[name, value] for name, value in zip(base.names, beta, strict=True)]
    good = written(tmp_path / "good.csv", [["name", "value"], *rows])
    done = dynid("check", bench.urdf, "--base", good, "--json")
    assert done.code == 0, done.err
    assert done.result["decision"] == "feasible"
    assert done.result["feasibility"]["positive_definite_share"] == 1.0
    bad = written(tmp_path / "bad.csv", [["name", "value"], *([name, -value] for name, value in rows)])
    done = dynid("check", bench.urdf, "--base", bad)
    assert done.code == 1
    assert "mass matrix positive definite in 0 of" in done.out
    assert any(link in done.out.split("in conflict:")[1] for link in robot.links)
    some = written(tmp_path / "some.csv", [["name", "value"], *rows[:5]])
    assert dynid("check", bench.urdf, "--base", some, "--json").result["feasibility"]["positive_definite_share"] is None


def test_a_grouping_of_a_robot_need_not_name_every_parameter(bench: Bench, tmp_path: Path) -> None:
    table = written(tmp_path / "K.csv", [["m4", "fv1"], [1.0, 0.0], [0.0, 1.0]])
    good = written(tmp_path / "v.csv", [["value"], [2.0], [0.5]])
    found = read_base_values(good, table, read_robot(bench.urdf))
    assert found.labels == ("beta1", "beta2")
    assert [effect.name for effect in found.robot.effects] == ["viscous"]
    assert check_base(found).verdict.decision == "feasible"
    wrong = BaseValues(found.base, np.array([2.0, -0.5]), found.labels, found.robot)
    assert check_base(wrong).verdict.in_conflict == "fv1 not negative"


# Files that cannot be read ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "table", "facts"),
    [
        ("name,value\nb1,1\n", None, ("v.csv", "expression", "--grouping")),
        ("name,weight\nb1,1\n", "name,m1\nb1,1\n", ("v.csv", "name, weight", "value")),
        ("name,value\nb1,heavy\n", "name,m1\nb1,1\n", ("v.csv", "line 2", "heavy")),
        ("name,value\nb1,nan\n", "name,m1\nb1,1\n", ("v.csv", "line 2", "nan")),
        ("name,value\nb1,1\nb1,2\n", "name,m1,m2\nb1,1,\nb2,,1\n", ("v.csv", "b1", "2 times")),
        ("name,value\nb7,1\n", "name,m1\nb1,1\n", ("b7", "b1", "v.csv", "K.csv")),
        ("value\n1\n2\n", "name,m1\nb1,1\n", ("2 lines", "has 1", "v.csv", "K.csv")),
        ("value\n1\n", "m1,m2\n1\n", ("K.csv", "line 2", "1 cells", "2")),
        ("value\n1\n", "m1,\n1,2\n", ("K.csv", "without a name")),
        ("value\n1\n", "speed\n1\n", ("speed", "K.csv", "L1xx")),
        ("value\n1\n2\n", "m1,m2\n1,2\n2,4\n", ("K.csv", "rank 1")),
        ("value\n1\n", "m1\none\n", ("K.csv", "line 2", "one")),
        ("value\n", "m1\n1\n", ("v.csv", "1 lines")),
        ("expression,value\n2 * m1 * m2,1\n", None, ("line 2", "v.csv", "linear")),
        ("expression,value\nm1 + 3,1\n", None, ("line 2", "v.csv", "constant 3")),
    ],
)
def test_bad_files_are_refused_in_one_sentence(
    tmp_path: Path, values: str, table: str | None, facts: tuple[str, ...]
) -> None:
    flags = () if table is None else ("--grouping", write(tmp_path, "K.csv", table))
    done = dynid("check", "--base", write(tmp_path, "v.csv", values), *flags)
    assert (done.code, done.out) == (2, "")
    for fact in facts:
        assert fact in done.err, done.err
    assert len(done.err.strip().splitlines()) == 1


def test_missing_files_and_wrong_combinations_of_flags(bench: Bench, tmp_path: Path) -> None:
    values = expressions(tmp_path, T1)
    for words, fact in (
        ((), "--base"),
        ((bench.urdf, "--grouping", "K.csv"), "--base"),
        (("--base", tmp_path / "none.csv"), "none.csv"),
        (("--base", values, "--grouping", tmp_path / "none.csv"), "none.csv"),
        (("--base", values, "--condition", "strict"), "strict"),
        (("--base", values, "--margin", "-1"), "margin"),
        (("--base", values, "--constraints", tmp_path / "none.toml"), "none.toml"),
    ):
        done = dynid("check", *words)
        assert done.code == 2, (words, done.out)
        assert fact in done.err
    foreign = dynid("check", bench.urdf, "--base", values, "--json")
    assert any("no motion of this robot shows" in note for note in foreign.result["notes"])


# Constraints of a model ---------------------------------------------------------------------------------


def test_a_model_is_checked_against_constraints(bench: Bench, tmp_path: Path) -> None:
    total = float(read_robot(bench.urdf).parameters.inertials[:, 0].sum())
    kept = write(tmp_path, "kept.toml", f"[constraints]\ntotal_mass = {{ upper = {total + 1.0} }}\n")
    done = dynid("check", bench.urdf, "--constraints", kept)
    assert done.code == 0
    assert "constraints: all are kept" in done.out
    broken = write(tmp_path, "broken.toml", f"[constraints]\ntotal_mass = {{ upper = {total - 1.0} }}\n")
    done = dynid("check", bench.urdf, "--constraints", broken, "--json")
    assert done.code == 1
    assert not done.result["feasible"]
    assert [label.startswith("total mass <= ") for label in done.result["violated"]] == [True]


def test_a_model_is_repaired_under_constraints(bench: Bench, tmp_path: Path) -> None:
    total = float(read_robot(bench.urdf).parameters.inertials[:, 0].sum())
    light = write(tmp_path, "light.toml", f"[constraints]\ntotal_mass = {{ upper = {0.9 * total} }}\n")
    words = ("repair", str(bench.urdf), "-o", str(tmp_path / "light.urdf"), "--constraints", str(light), "--json")
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["base_kept"]
    assert [label.startswith("total mass <= ") for label in result["violated"]] == [True]
    assert dynid("check", tmp_path / "light.urdf", "--constraints", light).code == 0
