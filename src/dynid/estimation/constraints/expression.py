"""Conditions of a retrieval as formulas: ``m1 > 2 * m2 if m2 > 1`` as a violation with its derivative.

    >>> from dynid.estimation.constraints.expression import condition_from_text
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

import ast
import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dynid.errors import InputError
from dynid.estimation.constraints.conditions import Condition, Reader, expected_names, is_known
from dynid.estimation.constraints.formula import Formula, is_statement, operands_of
from dynid.model.effects.mathematics import DUALS, Dual
from dynid.model.parameters import Parameters

_STEPS = {"sum": (operator.add, operator.sub), "product": (operator.mul, operator.truediv)}
_COMPARED = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
_LEAST = float(np.finfo(float).tiny)
"""Violation of a statement that fails exactly on the edge of its ``if``."""

Value: TypeAlias = Dual | float


class _NoValueError(Exception):
    """A formula has no value for these parameters: a division by zero, a logarithm of a negative number."""


@dataclass(frozen=True)
class Expression(Formula):
    """A statement on parameters as a violation: positive where it does not hold."""

    what: str = "condition"

    def __call__(self, read: Reader) -> Any:
        tree = self.tree
        try:
            if isinstance(tree, ast.Compare):
                return self._differences(tree, read)
            parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
            return [self._violation(part, read) for part in parts]
        except _NoValueError as error:
            raise InputError(
                f"condition '{self.text}' has no value for some parameters: {error}; say where it is meant: 'A if B'"
            ) from None

    def check_names(self, parameters: Parameters) -> None:
        """Refuse a name that no parameter of the robot has."""
        for name, at in self.names:
            if not is_known(name, parameters):
                self.refuse(at, f"'{name}' is nothing that this robot has, expected {expected_names(parameters)}")

    def _value(self, node: ast.expr, read: Reader) -> Value:
        """The number that a formula is."""
        try:
            found = self._number(node, read)
        except ZeroDivisionError:
            raise _NoValueError("a division by zero") from None
        except OverflowError:
            raise _NoValueError("a number grows beyond all bounds") from None
        if not math.isfinite(_plain(found)):
            raise _NoValueError(f"a result is {_plain(found):g}")
        return found

    def _number(self, node: ast.expr, read: Reader) -> Value:
        kind, operands = operands_of(node)
        if kind:
            total: Value = 0.0 if kind == "sum" else 1.0
            for inverse, part in operands:
                total = _STEPS[kind][inverse](total, self._value(part, read))
            return total
        match node:
            case ast.Name():
                kind, word, _ = self.token(node)
                return float(word) if kind == "number" else read[word]
            case ast.BinOp(left=base, right=exponent):
                return _power(self._value(base, read), self._value(exponent, read))
            case ast.Call(func=name, args=parts):
                return _called(self.token(name)[1], [self._value(part, read) for part in parts])
            case ast.IfExp(body=body, test=test, orelse=other):
                return self._value(body if self._holds(test, read) else other, read)
        raise AssertionError(f"{ast.dump(node)} is no number")  # it has been refused

    def _holds(self, node: ast.expr, read: Reader) -> bool:
        """Whether a statement holds, to the last digit."""
        match node:
            case ast.Compare():
                return all(
                    _COMPARED[type(sign)](_plain(self._value(left, read)), _plain(self._value(right, read)))
                    for left, sign, right in _compared(node)
                )
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(self._holds(part, read) for part in parts)
            case ast.BoolOp(values=parts):
                return any(self._holds(part, read) for part in parts)
            case ast.IfExp(body=body, test=test, orelse=other):
                if self._holds(test, read):
                    return self._holds(body, read)
                return isinstance(other, ast.Constant) or self._holds(other, read)
        raise AssertionError(f"{ast.dump(node)} is no statement")

    def _violation(self, node: ast.expr, read: Reader) -> Value:
        """How far a statement is from holding; not positive where it does."""
        match node:
            case ast.Compare():
                return max(self._differences(node, read), key=_plain)
            case ast.BoolOp(op=ast.And(), values=parts):
                return max((self._violation(part, read) for part in parts), key=_plain)
            case ast.BoolOp(values=parts):
                found = [own for part in parts if (own := self._violation_if_any(part, read)) is not None]
                return min(found, key=_plain) if found else self._violation(parts[-1], read)
            case ast.IfExp(body=body, test=test, orelse=ast.Constant()):
                # ``A if B``: the smaller one of the violation of A and of the way out of B.
                leaving = 0.0 - self._violation(test, read)
                if not self._holds(test, read):  # it is there to keep A from being asked where it has no value
                    own = self._violation_if_any(body, read)
                    return leaving if own is None else min(own, leaving, key=_plain)
                return min(self._violation(body, read), leaving if _plain(leaving) > 0.0 else _LEAST, key=_plain)
            case ast.IfExp(body=body, test=test, orelse=other):
                return self._violation(body if self._holds(test, read) else other, read)
        raise AssertionError(f"{ast.dump(node)} is no statement")

    def _differences(self, node: ast.Compare, read: Reader) -> list[Value]:
        """One for each sign of a comparison."""
        found = []
        for left, sign, right in _compared(node):
            a, b = self._value(left, read), self._value(right, read)
            found.append(a - b if isinstance(sign, ast.Lt | ast.LtE) else b - a)
        return found

    def _violation_if_any(self, node: ast.expr, read: Reader) -> Value | None:
        """None where the statement has no value."""
        try:
            return self._violation(node, read)
        except _NoValueError:
            return None


def condition_from_text(text: str, name: str = "") -> Condition:
    """A condition that must hold, from its formula."""
    found = Expression(text)
    if not is_statement(found.tree):
        found.refuse(0, "it is a number, expected a comparison such as m1 > 2")
    return Condition(name or text, found)


def _compared(node: ast.Compare) -> Iterator[tuple[ast.expr, ast.cmpop, ast.expr]]:
    return zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)


def _plain(value: Value) -> float:
    return float(value.value) if isinstance(value, Dual) else value


def _power(base: Value, exponent: Value) -> Value:
    number = _plain(exponent)
    if _plain(base) < 0.0 and not number.is_integer():
        raise _NoValueError(f"a negative number to the power {number:g}")
    if isinstance(exponent, Dual) and not _plain(base) > 0.0:
        raise _NoValueError("zero or a negative number to a power that depends on parameters")
    if isinstance(base, Dual) and base.value == 0.0 and 0.0 < number < 1.0:
        return base * 0.0  # no slope there; that of the flat side, as for the square root
    return base**exponent


def _called(function: str, arguments: list[Value]) -> Value:
    if function == "min":
        return min(arguments, key=_plain)
    if function == "max":
        return max(arguments, key=_plain)
    (x,) = arguments
    if function == "abs":
        return 0.0 - x if _plain(x) < 0.0 else x
    if function in ("sqrt", "log") and (_plain(x) < 0.0 or (function == "log" and _plain(x) == 0.0)):
        raise _NoValueError(f"{function} of {_plain(x):g}")
    value = float(getattr(math, function)(_plain(x)))  # an overflow is said, not turned into infinity
    return Dual(value, getattr(DUALS, function)(x).slopes) if isinstance(x, Dual) else value
