"""Dataclasses as records: what is written is read back, and nothing else is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.codec import from_record, read_fields, to_record
from dynid.finding import DataCheck, Finding


@dataclass(frozen=True)
class Inner:
    hz: float
    kind: Literal["low", "high"] = "low"


@dataclass(frozen=True)
class Outer:
    name: str
    count: int
    inner: Inner
    pairs: tuple[tuple[str, float], ...] = ()
    other: Inner | None = None
    on: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


WHOLE = Outer("a", 3, Inner(2.0, "high"), (("x", 1.0), ("y", 2.5)), Inner(1.0), True, {"n": 1})


def test_what_is_written_is_read_back() -> None:
    assert from_record(Outer, to_record(WHOLE)) == WHOLE
    assert from_record(Outer, {"name": "a", "count": 3, "inner": {"hz": 2}}) == Outer("a", 3, Inner(2.0))


def test_arrays_are_read_only_numbers() -> None:
    @dataclass(frozen=True, eq=False)
    class Held:
        values: Array

    record = to_record(Held(np.array([1.0, np.inf])))
    assert record == {"values": [1.0, None]}
    found = read_fields(WithArray, {"values": [1, 2.5]})["values"]
    np.testing.assert_array_equal(found, [1.0, 2.5])
    assert not found.flags.writeable


@dataclass(frozen=True, eq=False)
class WithArray:
    values: Array


def test_a_record_of_its_own_is_used_inside_another() -> None:
    check = DataCheck((Finding("note", "what", where=("a", "b")),), {"x": np.array([1.0])})
    assert to_record(check)["findings"][0]["where"] == "a, b"
    assert from_record(DataCheck, to_record(check)).findings == check.findings


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": 1}, ("name", "text")),
        ({"count": 1.5}, ("count", "whole number")),
        ({"count": True}, ("count", "whole number")),
        ({"inner": [1]}, ("inner", "table")),
        ({"inner": {"hz": None}}, ("hz", "number")),
        ({"inner": {"hz": 1, "kind": "wide"}}, ("kind", "low, high")),
        ({"inner": {"hz": 1, "more": 1}}, ("more", "hz, kind")),
        ({"pairs": "xy"}, ("pairs", "list")),
        ({"pairs": [["x"]]}, ("pairs", "2 values")),
        ({"on": 1}, ("on", "true or false")),
    ],
)
def test_what_has_another_type_is_refused_by_name(changed: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=words[0]) as refusal:
        from_record(Outer, to_record(WHOLE) | changed)
    for one in words:
        assert one in str(refusal.value)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(KeyError, match="count"):
        from_record(Outer, {"name": "a", "inner": {"hz": 1.0}})
