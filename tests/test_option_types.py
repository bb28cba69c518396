"""Kinds of options: a value becomes words of a command line or a line of a run file, and comes back."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.option_types import (
    Kind,
    Names,
    Number,
    Numbers,
    Switch,
    Table,
    Text,
    changed_options,
    check_options,
    is_flag,
    misplaced_options,
    option,
    options_of,
)

PAIRS = Numbers("LOW:HIGH,..", count=2, separators=",:", written="low:high", expected="pairs")
GAINS = Numbers("K", separators="/,", low=0.0, words_taken=("auto",), expected="gains")
WHOLE = Number("N", 1, 12, whole=True)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Text("NAME"), "a log"),
        (Text("FILE", path=True), "bounds.csv"),
        (Text("SECONDS|FILE", path=True, or_number=True), "0.2"),
        (Number("HZ", 0.0), 0.1),
        (Number("HZ", words_taken=("auto",)), "auto"),
        (Number("SECONDS"), -2.0),
        (WHOLE, 12),
        (Numbers("X,Y,Z", 3), (0.0, -1.5, 1e-9)),
        (PAIRS, ((-1.0, 2.0), (0.0, 0.5))),
        (GAINS, ((20.0, 30.0), (40.0, 60.0))),
        (GAINS, "auto"),
        (Names("NAMES"), ("a", "b")),
        (Names("NAMES"), ()),
    ],
)
def test_a_value_comes_back_from_a_flag_and_from_a_run_file(kind: Kind, value: Any) -> None:
    *_, last = kind.words("--flag", value)
    assert kind.parse(last.removeprefix("--flag="), "--flag") == value
    assert kind.check(tomllib.loads(f"x = {kind.toml(value)}")["x"], "x") == value


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (Names("M:J=X", form="6:5=1"), ("6:5=1", "4:a=-0.5"), ["--flag", "6:5=1", "--flag", "4:a=-0.5"]),
        (Table("JOINT=VALUE"), {"elbow": 0.5, "é": -1.0}, ["--flag", "elbow=0.5", "--flag", "é=-1.0"]),
        (Table("JOINT=KIND", many=True), ({"joint": "2", "kind": "linear"},), ["--flag", "2=linear"]),
    ],
)
def test_a_flag_that_is_repeated(kind: Kind, value: Any, words: list[str]) -> None:
    assert kind.repeated
    assert kind.words("--flag", value) == words
    assert kind.parse(words[1::2], "--flag") == value
    assert not kind.needs_file(value)
    assert kind.check(tomllib.loads(f"x = {kind.toml(value)}")["x"], "x") == value


def test_tables_that_no_flag_can_give() -> None:
    spring = Table("JOINT=KIND", many=True)
    detailed = ({"joint": 2, "kind": "linear", "rate": 3.0},)
    assert spring.needs_file(detailed)
    assert spring.words("--spring", detailed) == []
    assert Table().needs_file({})
    assert Table().toml({}) == "{}"


def test_a_switch_has_two_words() -> None:
    assert [Switch().words("--trim", value) for value in (True, False)] == [["--trim"], ["--no-trim"]]


def test_numbers_for_all_joints_or_all_logs_may_be_given_alone() -> None:
    assert GAINS.check(20, "kp") == GAINS.check([20.0], "kp") == GAINS.check([[20]], "kp") == ((20.0,),)
    assert GAINS.check((20.0, 30.0), "kp") == ((20.0, 30.0),)


def test_which_texts_are_paths() -> None:
    either = Text(path=True, or_number=True)
    assert [either.is_path(value) for value in ("knots.json", "auto", "0.2")] == [True, False, False]
    assert Text(path=True).is_path("3")
    assert not Text().is_path("knots.json")
    assert Text(path=True).check(Path("a/b"), "x") == "a/b"
    assert either.check(2, "x") == "2.0"


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (Text(), 3, "text"),
        (Number("A", 0.0, open_low=True, unit="Hz"), 0.0, "a positive number of Hz"),
        (Number("A", 0.0), True, "zero or a positive number"),
        (Number("A", 0.0), float("inf"), "zero or a positive number"),
        (Number("A", 1.0, words_taken=("auto",)), "fast", "a number of at least 1 or 'auto'"),
        (WHOLE, 13, "a whole number between 1 and 12"),
        (WHOLE, 2.0, "a whole number between 1 and 12"),
        (Numbers("X,Y,Z", 3), (1.0, 2.0), "3 numbers"),
        (Numbers(), (1.0, "a"), "a list of numbers"),
        (PAIRS, (1.0, 2.0), "pairs"),
        (PAIRS, ((1.0, 2.0, 3.0),), "pairs"),
        (PAIRS, (), "pairs"),
        (GAINS, (-1.0,), "gains"),
        (GAINS, ((),), "gains"),
        (GAINS, "none", "gains"),
        (Names(), 3, "a list of names"),
        (Names(form="6:5=1"), ("6:5",), "texts such as '6:5=1'"),
        (Switch(), 1, "true or false"),
        (Table(), 3, "a table"),
        (Table("J=V"), {"a": "b"}, "a table of joints and positions"),
        (Table(many=True), {"a": 1}, "tables [[x]]"),
    ],
)
def test_a_value_that_a_kind_refuses(kind: Kind, value: Any, expected: str) -> None:
    with pytest.raises(InputError) as refused:
        kind.check(value, "x")
    assert str(refused.value) == f"setting 'x' is {value!r}, expected {expected}"


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (Number("HZ", unit="Hz"), "5,6", "--f is '5,6', expected a number of Hz"),
        (WHOLE, "1.5", "--f is '1.5', expected a whole number"),
        (Numbers("X,Y,Z", 3), "1,2", "--f has 2 numbers ('1,2'), expected 3: x,y,z"),
        (PAIRS, "1:2:3", "--f is '1:2:3', expected low:high"),
        (Table("J=V"), ["elbow"], "--f is '', expected joint=value, the value a number in rad or m"),
        (Table("J=K", many=True), ["2"], "--f is '2', expected JOINT=KIND such as 2=linear"),
    ],
)
def test_words_that_a_flag_refuses(kind: Kind, text: Any, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        kind.parse(text, "--f")
    assert str(refused.value) == sentence


def test_names_may_be_known_elsewhere() -> None:
    kind = Text("NAME", known_in="dynid.option_types:DEFAULT_EFFECTS", what="effect")
    assert kind.check("viscous", "x") == "viscous"
    with pytest.raises(UnknownNameError, match=r"effect 'luck'.*viscous"):
        kind.check("luck", "x")


@dataclass(frozen=True)
class Some:
    """Options of two groups, one of which means something for spheres alone."""

    radius: float = option(1.0, "Radius.", Number("M", 0.0), group="Size", only_for=("sphere",))
    depth: float | None = option(None, "Depth.", Number("M", 0.0), group="Size")
    name: str = option("a", "Name.", Text("NAME"), group="Words")
    more: dict[str, Any] = option({}, "More.", Table(), group="Words")  # noqa: RUF009

    def __post_init__(self) -> None:
        check_options(self)


def test_options_by_their_groups() -> None:
    assert [one.name for one in options_of(Some, "Words", "Size")] == ["name", "more", "radius", "depth"]
    assert [one.name for one in options_of(Some) if is_flag(one)] == ["radius", "depth", "name"]
    assert changed_options(Some(radius=2.0, name="b"), "Words") == {"name": "b"}
    assert changed_options(Some()) == {}


def test_options_that_mean_nothing_for_these_data() -> None:
    given = Some(radius=2.0, depth=1.0)
    assert [one.name for one in misplaced_options(given, "box")] == ["radius"]
    assert misplaced_options(given, "sphere") == misplaced_options(given, "box", "Words") == []
    assert misplaced_options(Some(), "box") == []
