"""Formulas of parameters: their grammar, their violations with exact derivatives, what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.base import Layout
from dynid.estimation.constraints.bounds import conditions_from_tables
from dynid.estimation.constraints.conditions import Reader
from dynid.estimation.constraints.formula import ALLOWED, MOST_CHARACTERS, MOST_LEVELS, condition_from_text
from dynid.estimation.methods.retrieval import PenaltyRetrieval
from dynid.model.inertia import mass_com_inertia
from dynid.regression.base import reduce_to_base
from noisy_logs import short_arm

ARM = short_arm()
LAYOUT = Layout.of_parameters(ARM.parameters)
PHI = ARM.parameters.values
MASS, COM, INERTIA = mass_com_inertia(ARM.parameters.inertials)


def violation(text: str, phi: np.ndarray = PHI) -> float:
    (found,) = condition_from_text(text).values(LAYOUT, phi)
    return float(found)


def number(text: str) -> float:
    """The value of a formula that is a number."""
    return violation(f"({text}) <= 0")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("2 - 3 - 4", -5.0),
        ("12 / 3 / 2", 2.0),
        ("12 / 3 * 2", 8.0),
        ("-2 ** 2", -4.0),
        ("2 ** 3 ** 2", 512.0),
        ("2 ** -1", 0.5),
        ("- - 3", 3.0),
        ("+1.5e-3", 1.5e-3),
        (".5 + 2.", 2.5),
        ("007 + 1", 8.0),
        ("2 (1 + 3)", 8.0),
        ("0.5 sqrt(16)", 2.0),
        ("3 ** 2 (2)", 18.0),
        ("abs(-3) + min(4, 2, 3) - max(1, 5)", 0.0),
        ("exp(0) + log(1) + sin(0) + cos(0)", 2.0),
        ("1 if 2 > 1 else 3", 1.0),
        ("1 if 2 < 1 else 3 if 1 < 1 else 5", 5.0),
        ("2 * (1 if 1 <= 1 and 2 < 1 or 3 > 2 else 7)", 2.0),
    ],
)
def test_arithmetic_is_that_of_the_trade(text: str, value: float) -> None:
    assert number(text) == pytest.approx(value, abs=1e-15)


def test_names_are_those_of_bounds_files() -> None:
    assert number("m2") == MASS[1]
    assert number("total_mass") == pytest.approx(MASS.sum(), rel=1e-14)
    assert number("c2x") == pytest.approx(COM[1, 0], rel=1e-14)
    assert number("I2yy") == pytest.approx(INERTIA[1, 1, 1], rel=1e-12)
    assert number("Iyy2") == number("J2yy") == ARM.parameters["Iyy2"]
    assert number("mx2") == number("mc2x") == ARM.parameters["mx2"]
    assert number("fv1") == ARM.parameters["fv1"]


@pytest.mark.parametrize(
    ("text", "holds", "value"),
    [
        ("1 < 2", True, -1.0),
        ("1 > 2", False, 1.0),
        ("3 >= 2", True, -1.0),
        ("3 <= 2", False, 1.0),
        ("1 < 2 and 5 < 3", False, 2.0),
        ("1 < 3 < 2", False, 1.0),
        ("5 < 3 or 9 < 8", False, 1.0),
        ("1 > 2 if 1 > 3", True, -2.0),  # one must hold only where the other does
        ("1 > 2 if 3 > 1", False, 1.0),
        ("1 > 5 if 3 > 1", False, 2.0),  # the way out of the 'if' is shorter
        ("1 > 2 if 1 > 1", True, 0.0),  # on the edge of a strict test
        ("1 < 2 if 3 > 1", True, -1.0),
        ("1 > 2 if 3 > 1 else 5 > 6", False, 1.0),
        ("1 > 2 if 3 < 1 else 6 > 5", True, -1.0),
        ("(1 > 2 if 1 > 3) and (4 < 5 or 1 > 9)", True, -1.0),
        ("log(-1) > 0 if 1 > 2", True, -1.0),  # not asked for where it has no value
        ("log(-1) > 0 or 1 < 2", True, -1.0),
    ],
)
def test_statements_as_violations(text: str, holds: bool, value: float) -> None:
    found = float(condition_from_text(text).values(LAYOUT, PHI).max())
    assert (found <= 0.0) is holds
    assert found == pytest.approx(value, abs=1e-15)


def test_the_edge_of_a_test_that_includes_it_counts() -> None:
    assert 0.0 < violation("1 > 2 if 1 >= 1") < 1e-200


def test_joined_statements_are_conditions_of_their_own() -> None:
    assert condition_from_text("m1 > 0 and m2 < 1 and c1x > c2x").values(LAYOUT, PHI).shape == (3,)


@pytest.mark.parametrize(
    "text",
    [
        "sqrt(c1x ** 2 + c1y ** 2 + 0.01) < 0.15",
        "m1 * c1x / m2 - 3 c2z ** 3 > 0.5",
        "exp(-m1) + log(m2) - sin(I1xx) * cos(Ixx2) <= abs(c2y - 1)",
        "m1 ** m2 < m2 ** -0.5",
        "max(m1, 2 m2) < min(total_mass, 8, I2zz)",
        "m1 > 2 * m2 if m2 > 1",
        "m1 > 2 * m2 if m2 > 1000",
        "c1x < (m1 if m2 > 1 else c2z ** 2)",
        "fv1 > 3 or mx1 > 1 or fc2 > Iyz2",
        "m1 < m2 < total_mass and fv2 / (fc1 + 2) > -(2 - m1)",
    ],
)
def test_derivatives_are_exact(text: str) -> None:
    condition = condition_from_text(text)
    rng = np.random.default_rng(3)
    phi = PHI * rng.uniform(0.8, 1.2, len(PHI))
    h, J, exact = condition.derivative(LAYOUT, phi, np.ones(len(phi)))
    assert exact
    np.testing.assert_array_equal(h, condition.values(LAYOUT, phi))
    step = 1e-6
    differences = np.array(
        [
            (condition.values(LAYOUT, phi + step * unit) - condition.values(LAYOUT, phi - step * unit)) / (2.0 * step)
            for unit in np.eye(len(phi))
        ]
    ).T
    np.testing.assert_allclose(J, differences, rtol=1e-6, atol=1e-7)


HOSTILE = [
    ("__import__('os').system('true')", "character 12: found"),
    ("__import__(m1) > 0", "character 1: '__import__' is no function"),
    ("().__class__ > 0", "character 3: found '.__class__ >'"),
    ("() > 0", "character 2: found ')', expected a number"),
    ("m1.__class__ > 0", "found '.__class__ >'"),
    ("[m1][0] > 1", "found '[m1][0] > 1'"),
    ("lambda: m1 > 0", "found ': m1 > 0'"),
    ("m1 := 3", "found ':= 3'"),
    ("m1 = 3", "found '= 3'"),
    ("m1 == 3", "found '== 3'"),
    ("eval(m1) > 0", "'eval' is no function"),
    ("m1 > 'a'", "character 6"),
    ("m1 > 1_000", "found '1_000'"),
    ("m1 > 0x10", "found '0x10'"),
    ("0.5m1 > 1", "found '0.5m1 > 1'"),
    ("m1 > 1e999", "1e999 is larger than any number"),
    ("m1 > inf(", "'inf' is no function"),
    ("m1 ^ 2 > 1", "found '^ 2 > 1'"),
    ("m1 > 2 # comment", "found '# comment'"),
    ("m1 ＞ 2", "character 4"),
    ("not m1 > 2", "found 'm1' after the end"),
    ("m1 > 2; m2 > 1", "found '; m2 > 1'"),
    ("m1 > 2 if m2", "character 11: found a number, expected a statement"),
    ("m1 if m2 > 1", "a number that is chosen by 'if' needs an 'else'"),
    ("m1 > (2 if m2 > 1 else m1 > 3)", "found a statement that holds or not, expected a number"),
    ("m1 > 2 if m2 > 1 else 3", "character 23: found a number, expected a statement"),
    ("m1 and m2 > 1", "character 1: found a number, expected a statement"),
    ("(m1 > 1) + 2 > 0", "found a statement"),
    ("-(m1 > 1) > 0", "found a statement"),
    ("m1 + 2", "it is a number, expected a comparison"),
    ("sqrt(m1, m2) > 1", "sqrt has 2 arguments, expected 1"),
    ("max(m1) > 1", "max has 1 arguments, expected 2 to 20"),
    ("m1 > ", "found 'the end'"),
    ("m1 >", "character 5"),
    ("(m1 > 1", "found 'the end', expected ')'"),
    ("m1 > 1)", "found ')' after the end"),
    ("m1 m2 > 1", "found 'm2' after the end"),
    ("if m1 > 1", "found 'if'"),
    ("", "found 'the end'"),
    ("(" * 500 + "m1" + ")" * 500 + " > 1", f"more than {MOST_LEVELS} levels"),
    ("-" * 500 + "m1 > 1", f"more than {MOST_LEVELS} levels"),
    ("2" + " ** 2" * 500 + " > m1", f"more than {MOST_LEVELS} levels"),
    ("m1 > 1 if m2 > 1" + " else m1 > 1 if m2 > 1" * 100, f"more than {MOST_LEVELS} levels"),
    ("m1 > " + "1" * (MOST_CHARACTERS + 1), f"expected at most {MOST_CHARACTERS}"),
]


@pytest.mark.parametrize(("text", "fact"), HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_formula_is_refused_with_its_place(text: str, fact: str) -> None:
    with pytest.raises(InputError) as refused:
        condition_from_text(text)
    assert fact in str(refused.value)
    assert len(str(refused.value)) < 700
    assert ALLOWED in str(refused.value) or len(text) > MOST_CHARACTERS


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("10 ** 10 ** 10 > m1", "grows beyond all bounds"),
        ("exp(1000 * 1000) > m1", "grows beyond all bounds"),
        ("exp(1e6 * m1) > m1", "grows beyond all bounds"),
        ("1 / (m1 - m1) > 2", "a division by zero"),
        ("sqrt(-m1) > 1", "sqrt of -"),
        ("log(m1 - m1) > 1", "log of 0"),
        ("(-8) ** (1 / 3) > m1", "a negative number to the power"),
        ("(-m1) ** m2 > 1", "to the power"),
        ("1e300 * 1e300 > m1", "inf"),
    ],
)
@pytest.mark.parametrize("gradients", [False, True])
def test_a_formula_without_a_value_says_so_at_once(text: str, fact: str, gradients: bool) -> None:
    condition = condition_from_text(text)
    with pytest.raises(InputError, match="has no value for some parameters") as refused:
        condition.violation(Reader(LAYOUT, PHI, gradients=gradients))
    assert fact in str(refused.value)
    assert text in str(refused.value)


def test_a_long_flat_formula_is_no_matter() -> None:
    text = " + ".join(["m1"] * 700) + " < 1"
    assert violation(text) == pytest.approx(700.0 * MASS[0] - 1.0)
    assert number(" * ".join(["1"] * 700)) == 1.0


def test_tables_of_a_run_file() -> None:
    tables = [{"expression": "m1 > m2"}, {"name": "light wrist", "expression": "m2 < 2 if m1 > 1"}]
    assert [one.name for one in conditions_from_tables(tables, ARM.parameters)] == ["m1 > m2", "light wrist"]
    for table, fact in (
        ({"expresion": "m1 > 1"}, "number 1 has 'expresion'"),
        ({"name": "a"}, "number 1 has no expression"),
        ({"expression": 3}, "expression of \\[\\[conditions\\]\\] number 1 is 3"),
        ({"expression": "m1 > 1", "name": 3}, "name of \\[\\[conditions\\]\\] number 1 is 3"),
        ({"expression": "m1 > 1 + m9"}, "'m1 > 1 \\+ m9', character 10: 'm9' is nothing that this robot has"),
        ({"expression": "c9x > 1"}, "'c9x' is nothing"),
        ({"expression": "fs1 > 1"}, "'fs1' is nothing"),
        ({"expression": "m1 > lambda"}, "character 6: 'lambda' is nothing"),
        ({"expression": "m1 > 1 if True > 0"}, "character 11: 'True' is nothing"),
    ):
        with pytest.raises(InputError, match=fact):
            conditions_from_tables([table], ARM.parameters)


def test_conditions_travel_to_other_processes() -> None:
    condition = condition_from_text("sqrt(c1x ** 2 + 1) < m2 if m2 > 1")
    travelled = pickle.loads(pickle.dumps(condition))  # noqa: S301  # our own bytes
    np.testing.assert_array_equal(travelled.values(LAYOUT, PHI), condition.values(LAYOUT, PHI))
    long = condition_from_text(" + ".join(["m1"] * 700) + " < 1")
    assert pickle.loads(pickle.dumps(long)).values(LAYOUT, PHI) == long.values(LAYOUT, PHI)  # noqa: S301


def test_a_link_that_the_grouping_lacks_is_refused_before_any_work() -> None:
    base = reduce_to_base(ARM)
    method = PenaltyRetrieval(conditions=(condition_from_text("c9x > 0"),))
    with pytest.raises(UnknownNameError, match=r"unknown link '9' in 'c9x' of condition 'c9x > 0'"):
        method.retrieve(base, base.base_values(ARM.parameters), robot=ARM)
