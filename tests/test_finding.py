"""Findings and verdicts: the gravest comes first and decides, and both survive being written."""

from __future__ import annotations

import json

import pytest

from dynid.codec import from_record, to_record
from dynid.finding import LEVELS, DataCheck, Finding, Verdict, dropped_rows

SLOW = Finding("warning", "joint 2 is slow", "move it faster", ("elbow", "wrist"), "slow", {"speed": 0.01})


def test_a_finding_is_written_and_read_again() -> None:
    record = json.loads(json.dumps(SLOW.as_dict()))
    assert {"level", "where", "what", "remedy"} <= set(record)
    assert record["where"] == "elbow, wrist"
    assert Finding.from_dict(record) == SLOW


def test_the_gravest_finding_comes_first() -> None:
    check = DataCheck(tuple(Finding(level, level) for level in reversed(LEVELS)), {"rows": 3})
    assert [one.level for one in check] == list(LEVELS)
    assert from_record(DataCheck, to_record(check)) == check
    assert check.find("slow") is None


@pytest.mark.parametrize(
    ("levels", "grade"),
    [
        ((), "good"),
        (("good", "note"), "good"),
        (("good", "warning"), "usable"),
        (("warning", "error"), "do not use"),
    ],
)
def test_the_gravest_reason_decides(levels: tuple[str, ...], grade: str) -> None:
    verdict = Verdict("predicts to 2 %", tuple(Finding(level, f"{level}.") for level in levels))  # type: ignore[arg-type]
    assert verdict.grade == grade
    told = [level for level in levels if level in ("warning", "error")]
    assert verdict.sentence == "; ".join([f"{grade}: predicts to 2 %", *told])
    assert Verdict.from_dict(verdict.as_dict()) == verdict


def test_many_dropped_rows_are_a_warning() -> None:
    assert dropped_rows("rows with NaN", 1, 1000).level == "note"
    assert dropped_rows("rows with NaN", 20, 1000).level == "warning"
