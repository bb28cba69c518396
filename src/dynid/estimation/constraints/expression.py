"""Formulas of parameters: conditions of a retrieval, and published groupings of base parameters.

    >>> from dynid.estimation.constraints.expression import condition_from_text, linear_terms
    >>> linear_terms("Iyy2 + Izz1 - 0.0999 m3")
    {'Iyy2': 1.0, 'Izz1': 1.0, 'm3': -0.0999}
    >>> condition_from_text("m1 > 2 * m2 if m2 > 1").name
    'm1 > 2 * m2 if m2 > 1'

What a statement is worth as a violation ``h``, which must not be positive:

    a < b, a <= b       a - b
    A and B             the larger one (each apart where ``and`` joins the whole condition)
    A or B              the smaller one: the nearer of the two has to be reached
    A if B              the smaller one of A and of leaving B: A must hold where B holds
    A if B else C       that of A where B holds, else that of C

``<`` and ``<=`` differ only after ``if``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from dynid.errors import InputError
from dynid.estimation.constraints.conditions import (
    TOTAL_MASS,
    Condition,
    Dual,
    Reader,
    barycentric_name,
    centre_name,
    expected_names,
    is_known,
    parameter_name,
)
from dynid.estimation.constraints.grammar import (
    Both,
    Call,
    Choice,
    Comparison,
    Either,
    Name,
    Node,
    Number,
    Power,
    Product,
    Sum,
    is_statement,
    names_in,
    parse,
    refuse,
)
from dynid.parameters import Parameters

Value: TypeAlias = Dual | float
_LEAST = float(np.finfo(float).tiny)
"""Violation of a statement that fails exactly on the edge of its ``if``."""


class _NoValueError(Exception):
    """A formula has no value for these parameters: a division by zero, a logarithm of a negative number."""


@dataclass(frozen=True)
class Expression:
    """A statement on parameters as a violation: positive where it does not hold."""

    text: str
    tree: Node = field(repr=False)

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names that it reads."""
        return tuple(dict.fromkeys(name.text for name in names_in(self.tree)))

    def __call__(self, read: Reader) -> Any:
        parts = self.tree.parts if isinstance(self.tree, Both) else (self.tree,)
        try:
            return [_violation(part, read) for part in parts]
        except _NoValueError as error:
            raise InputError(
                f"condition '{self.text}' has no value for some parameters: {error}; say where it is meant: 'A if B'"
            ) from None

    def check(self, parameters: Parameters) -> None:
        """Refuse a name that no parameter of the robot has."""
        for name in names_in(self.tree):
            if not is_known(name.text, parameters):
                refuse(
                    "condition",
                    self.text,
                    name.at,
                    f"'{name.text}' is nothing that this robot has, expected {expected_names(parameters)}",
                )


def condition_from_text(text: str, name: str = "") -> Condition:
    """A condition that must hold, from its formula."""
    tree = parse(text, "condition")
    if not is_statement(tree):
        refuse("condition", text, 0, "it is a number, expected a comparison such as m1 > 2")
    return Condition(name or text, Expression(text, tree))


def conditions_from_tables(
    tables: Iterable[Mapping[str, Any]], parameters: Parameters | None = None
) -> tuple[Condition, ...]:
    """Conditions from the tables ``[[conditions]]`` of a run file: ``expression`` and, if wanted, a ``name``."""
    found = []
    for number, table in enumerate(tables, start=1):
        unknown = [key for key in table if key not in ("expression", "name")]
        if unknown:
            raise InputError(f"[[conditions]] number {number} has '{unknown[0]}', expected expression and name alone")
        for key in ("expression", "name"):
            if not isinstance(table.get(key, ""), str):
                raise InputError(f"{key} of [[conditions]] number {number} is {table[key]!r}, expected text")
        if not table.get("expression", "").strip():
            raise InputError(f"[[conditions]] number {number} has no expression, expected text such as 'm1 > 2 * m2'")
        condition = condition_from_text(table["expression"], table.get("name", ""))
        if parameters is not None:
            condition.violation.check(parameters)  # type: ignore[attr-defined]
        found.append(condition)
    return tuple(found)


# A combination of parameters --------------------------------------------------------------------------------


def linear_terms(text: str, what: str = "expression") -> dict[str, float]:
    """Coefficients by parameter of a formula that is linear in them, names as here: ``J2yy`` becomes ``Iyy2``."""
    terms, constant = _linear(parse(text, what), text, what)
    if constant != 0.0:
        refuse(what, text, 0, f"it has the constant {constant:g}, expected parameters only")
    left = {name: value for name, value in terms.items() if value != 0.0}
    if not left:
        refuse(what, text, 0, "nothing is left of it, expected a combination of parameters")
    return left


def _linear(node: Node, text: str, what: str) -> tuple[dict[str, float], float]:
    """Coefficients and the constant."""
    match node:
        case Number():
            return {}, node.value
        case Name():
            if centre_name(node.text) or barycentric_name(node.text) or node.text == TOTAL_MASS:
                refuse(what, text, node.at, f"'{node.text}' is no parameter of the regressor, expected m1, mx1, Ixx1 ..")
            return {parameter_name(node.text): 1.0}, 0.0
        case Sum():
            return _added([(sign, *_linear(term, text, what)) for sign, term in node.terms])
        case Product():
            return _multiplied(node, text, what)
    return refuse(what, text, node.at, "it is not linear in the parameters there")


def _added(parts: Iterable[tuple[float, dict[str, float], float]]) -> tuple[dict[str, float], float]:
    total: dict[str, float] = {}
    constant = 0.0
    for factor, terms, own in parts:
        constant += factor * own
        for name, value in terms.items():
            total[name] = total.get(name, 0.0) + factor * value
    return total, constant


def _multiplied(node: Product, text: str, what: str) -> tuple[dict[str, float], float]:
    found: dict[str, float] = {}
    constant = 1.0
    for divides, factor in node.factors:
        terms, own = _linear(factor, text, what)
        if (terms and (found or divides)) or (divides and own == 0.0):
            refuse(what, text, factor.at, "it is not linear in the parameters there")
        if terms:
            found, constant = _added([(constant, terms, own)])
        else:
            by = 1.0 / own if divides else own
            found, constant = _added([(by, found, constant)])
    return found, constant


# Values with their gradients --------------------------------------------------------------------------------


def _plain(value: Value) -> float:
    return value.value if isinstance(value, Dual) else value


def _finite(value: Value, text: str) -> Value:
    if not math.isfinite(_plain(value)):
        raise _NoValueError(f"{text} is {_plain(value):g}")
    return value


def _value(node: Node, read: Reader) -> Value:
    """The number that a formula is."""
    try:
        return _finite(_number(node, read), "a result")
    except ZeroDivisionError:
        raise _NoValueError("a division by zero") from None
    except OverflowError:
        raise _NoValueError("a number grows beyond all bounds") from None


def _number(node: Node, read: Reader) -> Value:
    match node:
        case Number():
            return node.value
        case Name():
            found: Value = read[node.text]
            return found
        case Sum():
            return sum((sign * _value(term, read) for sign, term in node.terms), 0.0)
        case Product():
            product: Value = 1.0
            for divides, factor in node.factors:
                product = product / _value(factor, read) if divides else product * _value(factor, read)
            return product
        case Power():
            return _power(_value(node.base, read), _value(node.exponent, read))
        case Call():
            return _called(node.function, [_value(argument, read) for argument in node.arguments])
        case Choice():
            assert node.other is not None
            return _value(node.value if _holds(node.test, read) else node.other, read)
    raise AssertionError(f"{node} is no number")  # the parser has refused it


def _power(base: Value, exponent: Value) -> Value:
    number = _plain(exponent)
    if _plain(base) < 0.0 and not number.is_integer():
        raise _NoValueError(f"a negative number to the power {number:g}")
    if isinstance(exponent, Dual):
        if not _plain(base) > 0.0:
            raise _NoValueError("zero or a negative number to a power that depends on parameters")
        return (exponent * _called("log", [base])).exp()
    if isinstance(base, Dual) and base.value == 0.0 and 0.0 < number < 1.0:
        return base * 0.0  # no slope there; that of the flat side, as for the square root
    return base**number


def _called(function: str, arguments: list[Value]) -> Value:
    if function in ("min", "max"):
        if function == "min":
            return min(arguments, key=_plain)
        return max(arguments, key=_plain)
    (x,) = arguments
    if function == "abs":
        return -x if _plain(x) < 0.0 else x
    if function in ("sqrt", "log") and (_plain(x) < 0.0 or (function == "log" and _plain(x) == 0.0)):
        raise _NoValueError(f"{function} of {_plain(x):g}")
    if isinstance(x, Dual):
        if function == "exp":
            math.exp(x.value)  # an overflow is said, not turned into infinity
        found: Dual = getattr(x, function)()
        return found
    return float(getattr(math, function)(x))


# Statements -------------------------------------------------------------------------------------------------


def _holds(node: Node, read: Reader) -> bool:
    """Whether a statement holds, to the last digit."""
    match node:
        case Comparison():
            left, right = _plain(_value(node.left, read)), _plain(_value(node.right, read))
            return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[node.sign]
        case Both():
            return all(_holds(part, read) for part in node.parts)
        case Either():
            return any(_holds(part, read) for part in node.parts)
        case Choice():
            if _holds(node.test, read):
                return _holds(node.value, read)
            return node.other is None or _holds(node.other, read)
    raise AssertionError(f"{node} is no statement")


def _violation(node: Node, read: Reader) -> Value:
    """How far a statement is from holding; not positive where it does."""
    match node:
        case Comparison():
            left, right = _value(node.left, read), _value(node.right, read)
            return left - right if node.sign in ("<", "<=") else right - left
        case Both():
            return max((_violation(part, read) for part in node.parts), key=_plain)
        case Either():
            return min(_those_with_a_value(node.parts, read), key=_plain)
        case Choice():
            if node.other is not None:
                return _violation(node.value if _holds(node.test, read) else node.other, read)
            return _where(node, read)
    raise AssertionError(f"{node} is no statement")


def _those_with_a_value(parts: Iterable[Node], read: Reader) -> list[Value]:
    found: list[Value] = []
    problem: _NoValueError | None = None
    for part in parts:
        try:
            found.append(_violation(part, read))
        except _NoValueError as error:
            problem = error
    if not found:
        assert problem is not None
        raise problem
    return found


def _where(node: Choice, read: Reader) -> Value:
    """``A if B``: the smaller one of the violation of A and of the way out of B."""
    leaving = -_violation(node.test, read)
    if not _holds(node.test, read):
        try:
            return min(_violation(node.value, read), leaving, key=_plain)
        except _NoValueError:  # the test is there to keep it from being asked
            return leaving
    own = _violation(node.value, read)
    return min(own, leaving if _plain(leaving) > 0.0 else _LEAST, key=_plain)
