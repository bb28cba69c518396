"""A small language for formulas of parameters, read into a tree. Nothing of it is ever run as Python.

    choice      = either ["if" either ["else" choice]]
    either      = both {"or" both}
    both        = comparison {"and" comparison}
    comparison  = sum {("<" | "<=" | ">" | ">=") sum}
    sum         = product {("+" | "-") product}
    product     = signed {("*" | "/") signed}         a number may stand before a name or a bracket: 0.0999 m3
    signed      = ("-" | "+") signed | power
    power       = atom ["**" signed]
    atom        = number | name | function "(" choice {"," choice} ")" | "(" choice ")"

A formula is a number (``Iyy2 + Izz1``) or a statement that holds or does not (``m1 > 2 * m2 if m2 > 1``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from dynid.errors import InputError

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
_COMPARISONS = ("<", "<=", ">", ">=")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))|(?P<name>[A-Za-z_]\w*)|(?P<sign>\*\*|<=|>=|[-+*/()<>,]))",
    re.ASCII,
)


@dataclass(frozen=True)
class Number:
    """A number as written."""

    value: float
    at: int


@dataclass(frozen=True)
class Name:
    """A parameter by its name."""

    text: str
    at: int


@dataclass(frozen=True)
class Sum:
    """Terms, each with its sign, ``1`` or ``-1``."""

    terms: tuple[tuple[float, Node], ...]
    at: int


@dataclass(frozen=True)
class Product:
    """Factors; those marked divide."""

    factors: tuple[tuple[bool, Node], ...]
    at: int


@dataclass(frozen=True)
class Power:
    """``base ** exponent``."""

    base: Node
    exponent: Node
    at: int


@dataclass(frozen=True)
class Call:
    """A function of some arguments."""

    function: str
    arguments: tuple[Node, ...]
    at: int


@dataclass(frozen=True)
class Comparison:
    """``left sign right``."""

    sign: str
    left: Node
    right: Node
    at: int


@dataclass(frozen=True)
class Both:
    """All of the statements hold."""

    parts: tuple[Node, ...]
    at: int


@dataclass(frozen=True)
class Either:
    """One of the statements holds."""

    parts: tuple[Node, ...]
    at: int


@dataclass(frozen=True)
class Choice:
    """``value if test else other``; a statement without ``else`` must hold only where the test does."""

    value: Node
    test: Node
    other: Node | None
    at: int


Node: TypeAlias = Number | Name | Sum | Product | Power | Call | Comparison | Both | Either | Choice


def is_statement(node: Node) -> bool:
    """Whether a formula holds or does not, rather than being a number."""
    if isinstance(node, Choice):
        return is_statement(node.value)
    return isinstance(node, Comparison | Both | Either)


def names_in(node: Node) -> Iterator[Name]:
    """Every parameter that a formula reads, in the order of the text."""
    if isinstance(node, Name):
        yield node
    for part in _parts(node):
        yield from names_in(part)


def _parts(node: Node) -> tuple[Node, ...]:
    match node:
        case Sum():
            return tuple(term for _, term in node.terms)
        case Product():
            return tuple(factor for _, factor in node.factors)
        case Power():
            return node.base, node.exponent
        case Call():
            return node.arguments
        case Comparison():
            return node.left, node.right
        case Both() | Either():
            return node.parts
        case Choice():
            return (node.value, node.test) if node.other is None else (node.value, node.test, node.other)
    return ()


def refuse(what: str, text: str, at: int, problem: str) -> NoReturn:
    """Refuse a formula: which, where, what is wrong there, and what there may be."""
    shown = text if len(text) <= 100 else f"{text[max(0, at - 40) : at + 40]} ..."
    raise InputError(f"{what} '{shown}', character {at + 1}: {problem}; allowed: {ALLOWED}")


def parse(text: str, what: str = "expression") -> Node:
    """The tree of a formula; ``what`` names it in a refusal."""
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"{what} '{text[:40]} ...' has {len(text)} characters, expected at most {MOST_CHARACTERS}")
    return _Parser(text, what).formula()


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """One function per line of the grammar."""

    def __init__(self, text: str, what: str) -> None:
        self._text, self._what = text, what
        self._tokens = list(self._split())
        self._next = self._level = 0

    def _split(self) -> Iterator[_Token]:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            found = _TOKEN.match(self._text, at)
            if found is None or found.lastgroup is None:
                start = at + len(self._text[at:]) - len(self._text[at:].lstrip())
                self._refuse(
                    start, f"found {self._text[start : start + 12]!r}, which is neither a number, a name nor a sign"
                )
            word = found[found.lastgroup]
            kind = "word" if word in _WORDS else found.lastgroup
            yield _Token(kind, word, found.start(found.lastgroup))
            at = found.end()
        yield _Token("end", "the end", end)

    def _refuse(self, at: int, problem: str) -> NoReturn:
        refuse(self._what, self._text, at, problem)

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> _Token | None:
        """The next token, if it is one of these."""
        token = self._token
        if token.kind in ("sign", "word") and token.text in texts:
            self._next += 1
            return token
        return None

    def _expect(self, text: str) -> None:
        if self._take(text) is None:
            self._refuse(self._token.at, f"found '{self._token.text}', expected '{text}'")

    def _deeper(self, read: Callable[[], Node]) -> Node:
        self._level += 1
        if self._level > MOST_LEVELS:
            self._refuse(self._token.at, f"more than {MOST_LEVELS} levels inside one another")
        found = read()
        self._level -= 1
        return found

    def _number(self, node: Node) -> Node:
        if is_statement(node):
            self._refuse(node.at, "found a statement that holds or not, expected a number")
        return node

    def _statement(self, node: Node) -> Node:
        if not is_statement(node):
            self._refuse(node.at, "found a number, expected a statement such as m1 > 2")
        return node

    def formula(self) -> Node:
        found = self._choice()
        if self._token.kind != "end":
            self._refuse(self._token.at, f"found '{self._token.text}' after the end of the formula")
        return found

    def _choice(self) -> Node:
        value = self._either()
        if self._take("if") is None:
            return value
        test = self._statement(self._either())
        if self._take("else") is None:
            if not is_statement(value):
                self._refuse(self._token.at, "a number that is chosen by 'if' needs an 'else'")
            return Choice(value, test, None, value.at)
        other = self._deeper(self._choice)
        same = self._statement if is_statement(value) else self._number
        return Choice(value, test, same(other), value.at)

    def _either(self) -> Node:
        return self._joined("or", self._both, Either)

    def _both(self) -> Node:
        return self._joined("and", self._comparison, Both)

    def _joined(self, word: str, read: Callable[[], Node], kind: type[Both] | type[Either]) -> Node:
        parts = [read()]
        while self._take(word) is not None:
            parts.append(read())
        if len(parts) == 1:
            return parts[0]
        return kind(tuple(self._statement(part) for part in parts), parts[0].at)

    def _comparison(self) -> Node:
        left = self._sum()
        found: list[Node] = []
        while (sign := self._take(*_COMPARISONS)) is not None:
            right = self._number(self._sum())
            found.append(Comparison(sign.text, self._number(left), right, left.at))
            left = right
        if not found:
            return left
        return found[0] if len(found) == 1 else Both(tuple(found), found[0].at)

    def _sum(self) -> Node:
        first = self._product()
        terms = [(1.0, first)]
        while (sign := self._take("+", "-")) is not None:
            terms.append((1.0 if sign.text == "+" else -1.0, self._number(self._product())))
        return first if len(terms) == 1 else Sum(((1.0, self._number(first)), *terms[1:]), first.at)

    def _product(self) -> Node:
        first = self._signed()
        factors = [(False, first)]
        while True:
            sign = self._take("*", "/")
            if sign is not None:
                factors.append((sign.text == "/", self._number(self._signed())))
            elif self._stands_before():
                factors.append((False, self._number(self._power())))
            else:
                break
        return first if len(factors) == 1 else Product(((False, self._number(first)), *factors[1:]), first.at)

    def _stands_before(self) -> bool:
        """Whether a number was just read and a name or a bracket follows: ``0.0999 m3``."""
        before = self._tokens[self._next - 1]
        return before.kind == "number" and (self._token.kind == "name" or self._token.text == "(")

    def _signed(self) -> Node:
        sign = self._take("-", "+")
        if sign is None:
            return self._power()
        found = self._number(self._deeper(self._signed))
        return found if sign.text == "+" else Sum(((-1.0, found),), sign.at)

    def _power(self) -> Node:
        base = self._atom()
        if self._take("**") is None:
            return base
        return Power(self._number(base), self._number(self._deeper(self._signed)), base.at)

    def _atom(self) -> Node:
        token = self._token
        if token.kind == "number":
            self._next += 1
            value = float(token.text)
            if not math.isfinite(value):
                self._refuse(token.at, f"{token.text} is larger than any number here")
            return Number(value, token.at)
        if token.kind == "name":
            self._next += 1
            return self._call(token) if self._token.text == "(" else Name(token.text, token.at)
        if self._take("(") is not None:
            found = self._deeper(self._choice)
            self._expect(")")
            return found
        self._refuse(token.at, f"found '{token.text}', expected a number, a parameter, a function or '('")

    def _call(self, name: _Token) -> Node:
        if name.text not in FUNCTIONS:
            self._refuse(name.at, f"'{name.text}' is no function")
        self._expect("(")
        arguments = [self._number(self._deeper(self._choice))]
        while self._take(",") is not None:
            arguments.append(self._number(self._deeper(self._choice)))
        self._expect(")")
        fewest, most = FUNCTIONS[name.text]
        if not fewest <= len(arguments) <= most:
            expected = str(fewest) if fewest == most else f"{fewest} to {most}"
            self._refuse(name.at, f"{name.text} has {len(arguments)} arguments, expected {expected}")
        return Call(name.text, tuple(arguments), name.at)
