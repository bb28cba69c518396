"""Formulas of parameters, read into a tree; nothing of them is ever run.

    >>> from dynid.estimation.constraints.formula import linear_terms
    >>> linear_terms("Iyy2 + Izz1 - 0.0999 m3")
    {'Iyy2': 1.0, 'Izz1': 1.0, 'm3': -0.0999}

A formula is a number (``Iyy2 + Izz1``) or a statement that holds or does not (``m1 > 2 * m2 if m2 > 1``). It is written like Python,
but a number may stand before a name or a bracket (``0.0999 m3``) and ``A if B`` needs no ``else``. It is split into tokens, which are
checked one by one and written anew over names of our own, and ``ast.parse`` makes a tree of that. Published groupings of base
parameters are formulas that are linear in the parameters.

Conditions of a retrieval as formulas: ``m1 > 2 * m2 if m2 > 1`` as a violation with its derivative.

    >>> from dynid.estimation.constraints.formula import condition_from_text
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
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, TypeAlias

import numpy as np

from dynid.errors import InputError
from dynid.estimation.constraints.conditions import (
    TOTAL_MASS,
    Condition,
    Reader,
    barycentric_name,
    centre_name,
    expected_names,
    is_known,
    parameter_name,
)
from dynid.model.effects.mathematics import DUALS, Dual
from dynid.model.parameters import Parameters

FUNCTIONS = {
    "sqrt": (1, 1),
    "abs": (1, 1),
    "exp": (1, 1),
    "log": (1, 1),
    "sin": (1, 1),
    "cos": (1, 1),
    "min": (2, 20),
    "max": (2, 20),
}
"""Functions, with the fewest and the most arguments each takes."""
ALLOWED = (
    "numbers, parameters (m1, mx1, Ixx1, c1x, I1xx, fv1, total_mass), + - * / **, brackets, "
    f"{' '.join(FUNCTIONS)}, < <= > >=, and, or, 'A if B', 'A if B else C'"
)
MOST_CHARACTERS = 4000
MOST_LEVELS = 30
"""Brackets, signs, powers and choices inside one another."""
_WORDS = ("if", "else", "and", "or")
_BETWEEN = ("+", "-", "*", "/", "**", "<", "<=", ">", ">=", "and", "or")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))|(?P<name>[A-Za-z_]\w*)|(?P<sign>\*\*|<=|>=|[-+*/()<>,]))",
    re.ASCII,
)
Token: TypeAlias = tuple[str, str, int]
"""Kind, text and place."""
Operands: TypeAlias = list[tuple[bool, ast.expr]]
"""Each with whether it is taken off, or divides."""
Terms: TypeAlias = tuple[dict[str, float], float]
"""Coefficients by parameter, and a constant."""


@dataclass
class _Bracket:
    """What was read of an open bracket, or of the whole formula."""

    of_call: bool = False
    waits: bool = False
    """An ``if`` has no ``else`` yet."""
    choices: int = 0
    """Choices around what comes next, each in the ``else`` of the one before."""
    signs: int = 0
    """Signs and powers around it."""


@dataclass(frozen=True)
class Formula:
    """A formula, checked as it is made."""

    text: str
    what: str = "expression"
    """What it is called in a refusal."""

    def __post_init__(self) -> None:
        self._check(self.tree)

    def __reduce__(self) -> tuple[type[Formula], tuple[str, str]]:
        return type(self), (self.text, self.what)  # the tree of a long formula is too deep to travel

    def refuse(self, at: int, problem: str) -> NoReturn:
        """Refuse the formula: which, where, what is wrong there, and what there may be."""
        shown = self.text if len(self.text) <= 100 else f"{self.text[max(0, at - 40) : at + 40]} ..."
        raise InputError(f"{self.what} '{shown}', character {at + 1}: {problem}; allowed: {ALLOWED}")

    @property
    def names(self) -> Iterator[tuple[str, int]]:
        """Every parameter that it reads with its place, in the order of the text."""
        for (kind, word, at), after in zip(self._tokens, [*self._tokens[1:], ("", "", 0)], strict=True):
            if kind == "name" and after[1] != "(":
                yield word, at

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names that it reads."""
        return tuple(dict.fromkeys(name for name, _ in self.names))

    def terms(self) -> dict[str, float]:
        """Coefficients by parameter of a formula that is linear in them, names as here: ``J2yy`` becomes ``Iyy2``."""
        terms, constant = self._linear(self.tree)
        if constant != 0.0:
            self.refuse(0, f"it has the constant {constant:g}, expected parameters only")
        left = {name: value for name, value in terms.items() if value != 0.0}
        if not left:
            self.refuse(0, "nothing is left of it, expected a combination of parameters")
        return left

    @cached_property
    def _tokens(self) -> list[Token]:
        text, found = self.text, list[Token]()
        if len(text) > MOST_CHARACTERS:
            raise InputError(f"{self.what} '{text[:40]} ...' has {len(text)} characters, expected at most {MOST_CHARACTERS}")
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                start = at + len(text[at:]) - len(text[at:].lstrip())
                self.refuse(start, f"found {text[start : start + 12]!r}, which is neither a number, a name nor a sign")
            word = match[match.lastgroup]
            found.append(("word" if word in _WORDS else match.lastgroup, word, match.start(match.lastgroup)))
            at = match.end()
        return [*found, ("end", "the end", end)]

    @cached_property
    def _python(self) -> tuple[str, dict[int, int]]:
        """The formula as Python over ``n0``, ``n1`` .., its operands by number, and the place in the text of every column."""
        pieces, places, column = list[str](), dict[int, int](), 0
        opened, operand = [_Bracket()], True
        for i, (kind, word, at) in enumerate(self._tokens):
            new = ["" if kind == "end" else f"n{i}" if kind in ("number", "name") else word]
            if not operand and self._tokens[i - 1][0] == "number" and (kind == "name" or word == "("):
                new.insert(0, "*")
                opened[-1].signs, operand = 0, True
            if operand:
                operand = self._take_operand(i, opened)
            else:
                unfinished = self._is_end(i, opened) and opened[-1].waits
                operand = self._take_operator(i, opened)
                new = ["else", "True", *new] if unfinished else new
            if len(opened) - 1 + sum(one.choices + one.signs for one in opened) > MOST_LEVELS:
                self.refuse(self._tokens[i + 1][2], f"more than {MOST_LEVELS} levels inside one another")
            for piece in new:
                places[column] = at
                pieces.append(piece)
                column += len(piece) + 1
        return " ".join(pieces), places

    def _take_operand(self, i: int, opened: list[_Bracket]) -> bool:
        """Take a number, a name, a bracket that opens, or a sign; whether an operand must still follow."""
        kind, word, at = self._tokens[i]
        called = kind == "name" and self._tokens[i + 1][1] == "("
        if kind == "number" and not math.isfinite(float(word)):
            self.refuse(at, f"{word} is larger than any number here")
        if called and word not in FUNCTIONS:
            self.refuse(at, f"'{word}' is no function")
        if kind not in ("number", "name") and word not in ("(", "+", "-"):
            self.refuse(at, f"found '{word}', expected a number, a parameter, a function or '('")
        if word == "(":
            opened.append(_Bracket(of_call=i > 0 and self._tokens[i - 1][0] == "name"))
        opened[-1].signs += word in ("+", "-")
        return called or word in ("(", "+", "-")

    def _take_operator(self, i: int, opened: list[_Bracket]) -> bool:
        """Take what may follow an operand; whether another one must follow."""
        _, word, at = self._tokens[i]
        last = opened[-1]
        if word in _BETWEEN:
            last.signs = last.signs + 1 if word == "**" else 0
            return True
        if (word, last.waits) in (("if", False), ("else", True)):
            opened[-1] = _Bracket(last.of_call, word == "if", last.choices + (word == "else"))
            return True
        if not self._is_end(i, opened):
            self.refuse(at, f"found '{word}'" + (" after the end of the formula" if len(opened) == 1 else ", expected ')'"))
        opened[-1] = _Bracket(last.of_call)
        if word == ")":
            opened.pop()
        return word == ","

    def _is_end(self, i: int, opened: list[_Bracket]) -> bool:
        """Whether a token ends a bracket, an argument or the formula, where that is open."""
        kind, word, _ = self._tokens[i]
        if len(opened) == 1:
            return kind == "end"
        return word == ")" or (word == "," and opened[-1].of_call)

    @cached_property
    def tree(self) -> ast.expr:
        return ast.parse(self._python[0], mode="eval").body

    def token(self, node: ast.expr) -> Token:
        """Of an operand, or of the name of a function."""
        assert isinstance(node, ast.Name)
        return self._tokens[int(node.id[1:])]

    def _at(self, node: ast.expr) -> int:
        """Where a part of the formula begins, brackets left out."""
        while True:
            match node:
                case ast.Name():
                    return self.token(node)[2]
                case ast.BinOp(left=first) | ast.Compare(left=first) | ast.IfExp(body=first) | ast.Call(func=first):
                    node = first
                case ast.BoolOp(values=[first, *_]) | ast.UnaryOp(op=ast.UAdd(), operand=first):
                    node = first
                case _:
                    return self._python[1][node.col_offset]

    def _check(self, node: ast.expr, statement: bool | None = None) -> None:
        """Refuse numbers where statements belong, statements where numbers do, and calls with other arguments."""
        for child, kind in _children(node):
            self._check(child, kind)
        if isinstance(node, ast.Call):
            _, function, at = self.token(node.func)
            fewest, most = FUNCTIONS[function]
            if not fewest <= len(node.args) <= most:
                expected = str(fewest) if fewest == most else f"{fewest} to {most}"
                self.refuse(at, f"{function} has {len(node.args)} arguments, expected {expected}")
        if isinstance(node, ast.IfExp) and isinstance(node.orelse, ast.Constant) and not is_statement(node):
            self.refuse(self._at(node.orelse), "a number that is chosen by 'if' needs an 'else'")
        if statement is True and not is_statement(node):
            self.refuse(self._at(node), "found a number, expected a statement such as m1 > 2")
        if statement is False and is_statement(node):
            self.refuse(self._at(node), "found a statement that holds or not, expected a number")

    def _linear(self, node: ast.expr) -> Terms:
        """Coefficients and the constant."""
        kind, operands = operands_of(node)
        if kind == "sum":
            return _added([(-1.0 if taken_off else 1.0, self._linear(part)) for taken_off, part in operands])
        if kind == "product":
            found: Terms = ({}, 1.0)
            for divides, part in operands:
                terms, own = self._linear(part)
                if (terms and (found[0] or divides)) or (divides and own == 0.0):
                    self.refuse(self._at(part), "it is not linear in the parameters there")
                factor = 1.0 / own if divides else own
                found = _added([(found[1], (terms, own)) if terms else (factor, found)])
            return found
        if not isinstance(node, ast.Name):
            self.refuse(self._at(node), "it is not linear in the parameters there")
        kind, name, at = self.token(node)
        if kind == "number":
            return {}, float(name)
        if centre_name(name) or barycentric_name(name) or name == TOTAL_MASS:
            self.refuse(at, f"'{name}' is no parameter of the regressor, expected m1, mx1, Ixx1 ..")
        return {parameter_name(name): 1.0}, 0.0

    def __call__(self, read: Reader) -> Any:
        """What a statement on parameters is worth as a violation: positive where it does not hold."""
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


def linear_terms(text: str, what: str = "expression") -> dict[str, float]:
    """Coefficients by parameter of a formula that is linear in them, names as here: ``J2yy`` becomes ``Iyy2``."""
    return Formula(text, what).terms()


def is_statement(node: ast.expr) -> bool:
    """Whether a part of a formula holds or does not, rather than being a number."""
    while isinstance(node, ast.IfExp):
        node = node.body
    return isinstance(node, ast.Compare | ast.BoolOp)


def operands_of(node: ast.expr) -> tuple[str, Operands]:
    """What a sum or a product is made of, from the left, however long; nothing of any other part."""
    if isinstance(node, ast.UnaryOp):
        return "sum", [(isinstance(node.op, ast.USub), node.operand)]
    for kind, (forward, inverse) in {"sum": (ast.Add, ast.Sub), "product": (ast.Mult, ast.Div)}.items():
        found: Operands = []
        first = node
        while isinstance(first, ast.BinOp) and isinstance(first.op, forward | inverse):
            found.append((isinstance(first.op, inverse), first.right))
            first = first.left
        if found:
            return kind, [(False, first), *reversed(found)]
    return "", []


def _children(node: ast.expr) -> list[tuple[ast.expr, bool | None]]:
    """Parts of a part, and whether each must be a statement; None where it may be either."""
    numbers = [part for _, part in operands_of(node)[1]]
    match node:
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            numbers = [left, right]
        case ast.Compare(left=left, comparators=others):
            numbers = [left, *others]
        case ast.Call(args=parts):
            numbers = parts
        case ast.BoolOp(values=parts):
            return [(part, True) for part in parts]
        case ast.IfExp(body=body, test=test, orelse=other):
            own = [] if isinstance(other, ast.Constant) else [(other, is_statement(body))]
            return [(body, None), (test, True), *own]
    return [(part, False) for part in numbers]


def _added(parts: Iterable[tuple[float, Terms]]) -> Terms:
    total: dict[str, float] = {}
    constant = 0.0
    for factor, (terms, own) in parts:
        constant += factor * own
        for name, value in terms.items():
            total[name] = total.get(name, 0.0) + factor * value
    return total, constant


_STEPS = {"sum": (operator.add, operator.sub), "product": (operator.mul, operator.truediv)}
_COMPARED = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
_LEAST = float(np.finfo(float).tiny)
"""Violation of a statement that fails exactly on the edge of its ``if``."""

Value: TypeAlias = Dual | float


class _NoValueError(Exception):
    """A formula has no value for these parameters: a division by zero, a logarithm of a negative number."""


def condition_from_text(text: str, name: str = "") -> Condition:
    """A condition that must hold, from its formula."""
    found = Formula(text, "condition")
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
