"""Expressions of xacro files against Python's own answer, and what they may cost."""

import math

import pytest

from dynid.io.robots.xacro_expression import SYMBOLS, Budget, ExpressionError, Namespace, evaluate, size_of

SAME = [
    "1 + 2 * 3 ** 2 - 7 // 2 % 3",
    "-2.5e-3 * (4 - 1)",
    "'a' + 'b' * 3",
    "[1, 2, 3][1:]",
    "3 in [1, 2, 3] and not 1 > 2 or 0",
    "1 if 0 else 'x'",
    "sin(pi / 6) + math.sqrt(2)",
    "'a_b'.split('_')[1].upper()",
    "sorted([3, 1, 2])[0] + len('abc') + max(1, 5)",
    "[2 * k for k in range(5) if k % 2]",
    "'-'.join(['a', 'b'])",
    "1 < 2 < 3 != 4",
]


@pytest.mark.parametrize("text", SAME)
def test_values_are_those_of_python(text: str) -> None:
    expected = eval(text, {**vars(math), "math": math})  # noqa: S307 - our own texts
    assert evaluate(text, SYMBOLS.__getitem__, Budget()) == expected


def test_dictionaries_are_read_by_dots_and_brackets() -> None:
    held = {"d": Namespace({"a": {"b": 3}})}
    assert evaluate("d.a.b + d['a']['b']", held.__getitem__, Budget()) == 6
    with pytest.raises(ExpressionError, match=r"'d\.c' is not defined"):
        evaluate("d.c", held.__getitem__, Budget())


def test_a_name_that_is_not_there_is_named() -> None:
    with pytest.raises(ExpressionError, match="name 'length' is not defined"):
        evaluate("2 * length", SYMBOLS.__getitem__, Budget())


def test_a_budget_ends() -> None:
    with pytest.raises(ExpressionError, match="more steps"):
        evaluate("[k for k in range(1000)]", SYMBOLS.__getitem__, Budget(100))


def test_sizes_count_what_is_inside() -> None:
    assert size_of("abc") == 3
    assert size_of([["abc", 1], {"k": "vw"}]) == 2 + (2 + 3 + 1) + (1 + 1 + 2)
    shared = ["a" * 1000] * 1000
    assert size_of([shared] * 1000) > 100_000
