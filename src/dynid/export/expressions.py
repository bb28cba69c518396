"""Scalar expressions that become C: built like numbers, shared where they are equal, folded where they are known.

Equal expressions are one object, so a common part is computed once; products with zero and one vanish while they are built.
That is what makes straight-line code of a recursion short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

_BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "lt": "<",
    "le": "<=",
    "eq": "==",
    "ne": "!=",
    "and": "&&",
    "or": "||",
}
_PRECEDENCE = {"or": 1, "and": 2, "eq": 3, "ne": 3, "lt": 4, "le": 4, "add": 5, "sub": 5, "mul": 6, "div": 6}
_CALLS: Mapping[str, Callable[..., float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "cosh": math.cosh,
    "sinh": math.sinh,
    "atan": math.atan,
    "exp": math.exp,
    "expm1": math.expm1,
    "log": math.log,
    "log1p": math.log1p,
    "fabs": math.fabs,
    "pow": math.pow,
    "fmax": max,
    "fmin": min,
}
"""Functions of the C library and what they are in Python, for constants."""

_LONGEST = 12
"""Operations that one line of C may hold."""


class Expression:
    """One number that is not known yet, or a constant."""

    __slots__ = ("arguments", "kind", "number", "text")

    def __init__(self, kind: str, arguments: tuple[Expression, ...], number: int, text: str = "") -> None:
        self.kind = kind
        self.arguments = arguments
        self.number = number
        self.text = text

    @property
    def value(self) -> float | None:
        """The number that a constant is."""
        return float(self.text) if self.kind == "constant" else None


class Graph:
    """All expressions of one piece of code, each once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Expression] = {}
        self.zero = self.constant(0.0)
        self.one = self.constant(1.0)

    def _node(self, kind: str, arguments: tuple[Expression, ...] = (), text: str = "") -> Expression:
        key = (kind, text, *(argument.number for argument in arguments))
        found = self._known.get(key)
        if found is None:
            found = Expression(kind, arguments, len(self._known), text)
            self._known[key] = found
        return found

    def constant(self, value: float) -> Expression:
        return self._node("constant", text=repr(float(value) + 0.0))

    def input(self, name: str) -> Expression:
        """A variable that the code is given."""
        return self._node("input", text=name)

    def negative(self, x: Expression) -> Expression:
        if x.value is not None:
            return self.constant(-x.value)
        if x.kind == "negative":
            return x.arguments[0]
        if x.kind == "sub":
            return self.subtract(x.arguments[1], x.arguments[0])
        return self._node("negative", (x,))

    def add(self, x: Expression, y: Expression) -> Expression:
        if x.value is not None and y.value is not None:
            return self.constant(x.value + y.value)
        if x.value == 0.0:
            return y
        if y.value == 0.0:
            return x
        if y.kind == "negative":
            return self.subtract(x, y.arguments[0])
        if x.kind == "negative":
            return self.subtract(y, x.arguments[0])
        return self._node("add", (x, y) if x.number <= y.number else (y, x))

    def subtract(self, x: Expression, y: Expression) -> Expression:
        if x is y:
            return self.zero
        if x.value is not None and y.value is not None:
            return self.constant(x.value - y.value)
        if y.value == 0.0:
            return x
        if x.value == 0.0:
            return self.negative(y)
        if y.kind == "negative":
            return self.add(x, y.arguments[0])
        if x.kind == "negative":
            return self.negative(self.add(x.arguments[0], y))
        return self._node("sub", (x, y))

    def multiply(self, x: Expression, y: Expression) -> Expression:
        if y.value is not None:
            x, y = y, x
        if x.value is not None:
            if y.value is not None:
                return self.constant(x.value * y.value)
            if x.value == 0.0:
                return self.zero
            if x.value == 1.0:
                return y
            if x.value == -1.0:
                return self.negative(y)
            if x.value < 0.0:  # so that products of opposite sign are one
                return self.negative(self.multiply(self.constant(-x.value), y))
        if x.kind == "negative":
            return self.negative(self.multiply(x.arguments[0], y))
        if y.kind == "negative":
            return self.negative(self.multiply(x, y.arguments[0]))
        return self._node("mul", (x, y) if x.number <= y.number else (y, x))

    def divide(self, x: Expression, y: Expression) -> Expression:
        if y.value == 1.0 or x.value == 0.0:
            return x
        if x.value is not None and y.value is not None:
            return self.constant(x.value / y.value)
        return self._node("div", (x, y))

    def call(self, name: str, *arguments: Expression) -> Expression:
        """A function of the C library, or ``sign``."""
        values = [argument.value for argument in arguments]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            return self.constant(float(np.sign(known[0])) if name == "sign" else _CALLS[name](*known))
        return self._node("sign" if name == "sign" else "call", arguments, "" if name == "sign" else name)

    def compare(self, kind: str, x: Expression, y: Expression) -> Expression:
        """``lt le eq ne and or``: a truth, to be used in :meth:`select`."""
        if x.value is not None and y.value is not None:
            a, b = x.value, y.value
            truth = {"lt": a < b, "le": a <= b, "eq": a == b, "ne": a != b, "and": bool(a and b), "or": bool(a or b)}[kind]
            return self.constant(float(truth))
        return self._node(kind, (x, y))

    def select(self, condition: Expression, x: Expression, y: Expression) -> Expression:
        """``x`` where the condition holds, else ``y``."""
        if condition.value is not None:
            return x if condition.value else y
        return x if x is y else self._node("select", (condition, x, y))


def straight_line(outputs: Mapping[str, Expression], temporary: str = "t") -> list[str]:
    """C statements that compute the outputs: shared and long parts into temporaries, then the outputs themselves."""
    order = _reachable(outputs.values())
    uses: dict[int, int] = {}
    for node in order:
        for argument in node.arguments:
            uses[argument.number] = uses.get(argument.number, 0) + 1
    for node in outputs.values():
        uses[node.number] = uses.get(node.number, 0) + 1
    written: dict[int, tuple[str, int]] = {}  # text and precedence of what stands for a node
    size: dict[int, int] = {}
    lines: list[str] = []
    for node in order:
        text, precedence = _text(node, written)
        size[node.number] = 1 + sum(size[argument.number] for argument in node.arguments if argument.arguments)
        leaf = node.kind in ("constant", "input")
        if not leaf and (uses[node.number] > 1 or size[node.number] > _LONGEST):
            name = f"{temporary}{len(lines)}"
            lines.append(f"const double {name} = {text};")
            text, precedence = name, 9
            size[node.number] = 0
        written[node.number] = text, precedence
    lines.extend(f"{name} = {written[node.number][0]};" for name, node in outputs.items())
    return lines


def count_operations(outputs: Iterable[Expression]) -> int:
    """Additions, products, divisions and calls that the outputs need."""
    return sum(bool(node.arguments) and node.kind != "negative" for node in _reachable(outputs))


def inputs_of(outputs: Iterable[Expression]) -> set[str]:
    """Names of the variables that the outputs need."""
    return {node.text for node in _reachable(outputs) if node.kind == "input"}


def _reachable(outputs: Iterable[Expression]) -> list[Expression]:
    """Every expression the outputs need; arguments before what uses them."""
    found: dict[int, Expression] = {}
    waiting = list(outputs)
    while waiting:
        node = waiting.pop()
        if node.number not in found:
            found[node.number] = node
            waiting.extend(node.arguments)
    return [found[number] for number in sorted(found)]


def _text(node: Expression, written: Mapping[int, tuple[str, int]]) -> tuple[str, int]:
    """C for one node and how tightly it binds."""

    def inner(argument: Expression, least: int) -> str:
        text, precedence = written[argument.number]
        return text if precedence >= least else f"({text})"

    kind, arguments = node.kind, node.arguments
    if kind == "constant":
        return (node.text, 9) if not node.text.startswith("-") else (node.text, 7)
    if kind == "input":
        return node.text, 9
    if kind == "negative":
        return f"-{inner(arguments[0], 8)}", 7
    if kind == "call":
        return f"{node.text}({', '.join(inner(argument, 0) for argument in arguments)})", 9
    if kind == "sign":
        x = inner(arguments[0], 5)
        return f"(double)(({x} > 0.0) - ({x} < 0.0))", 7
    if kind == "select":
        return f"{inner(arguments[0], 3)} ? {inner(arguments[1], 1)} : {inner(arguments[2], 1)}", 0
    precedence = _PRECEDENCE[kind]
    left, right = inner(arguments[0], precedence), inner(arguments[1], precedence + 1)
    return f"{left} {_BINARY[kind]} {right}", precedence
