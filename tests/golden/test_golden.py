"""The results of commands over every kind of log are those that were kept; ``python tests/golden/make.py`` keeps new ones."""

from __future__ import annotations

import pytest

from golden.cases import CASES, Case
from golden.records import RECORDS, Workshop, differences, kept_of_text, machine, read_record

SHOWN = 40


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_result_is_the_one_kept(workshop: Workshop, case: Case) -> None:
    kept = read_record(case.name)
    tight = case.rule == "fixed" and kept["machine"] == machine()
    lines = differences(kept["answer"], workshop.answer(case.name), tight=tight)
    rule = "tight" if tight else "loose"
    assert not lines, f"{len(lines)} differences by the {rule} rule\n" + "\n".join(lines[:SHOWN])


def test_every_record_has_its_case() -> None:
    assert {path.stem for path in RECORDS.glob("*.json")} == {case.name for case in CASES}


def test_keys_that_come_and_go_are_named() -> None:
    lines = differences({"a": 1.0, "b": {"c": 2}}, {"b": {"d": 2}, "e": 0}, tight=True)
    assert lines == [".a was removed", ".e was added", ".b.c was removed", ".b.d was added"]


def test_numbers_are_measured_by_their_sigma_or_their_list() -> None:
    kept = {"base": [{"name": "Ixy2", "value": 1e-9, "sigma_percent": 1e11}], "com": [0.0, 0.5]}
    near = {"base": [{"name": "Ixy2", "value": 1.9e-9, "sigma_percent": 1e11}], "com": [1e-10, 0.5]}
    assert not differences(kept, near, tight=True)
    far = {"base": [{"name": "Ixy2", "value": 2e-2, "sigma_percent": 1e11}], "com": [1e-8, 0.5]}
    assert [line.split(":")[0] for line in differences(kept, far, tight=True)] == [".base[Ixy2].value", ".com[0]"]
    assert differences(kept, far, tight=False) == [".base[Ixy2].value: 1e-09 became 0.02 (2.0e-02 apart, 1.0e-02 allowed)"]


def test_of_sentences_numbers_and_names_are_kept() -> None:
    told = kept_of_text("joint elbow: fv2 is off by 3.5 % since 1e-3 s, see dynid 0.1.0")
    assert told == {"names": ["elbow", "fv2"], "in_text": [3.5, 0.001]}
    assert kept_of_text("some/folder/run.json") == "run.json"
