"""Scalar expressions that become code: built like numbers, shared where they are equal, folded where they are known.

Equal expressions are one object, so a common part is computed once; products with zero and one vanish while they are built.
That is what makes straight-line code of a recursion short. The formulas of joint effects are evaluated over such expressions, so
that an effect states its physics once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partialmethod, reduce
from typing import Any

import numpy as np

from dynid.errors import InputError
from dynid.model.effects.effect import Effect, Motion
from dynid.model.effects.mathematics import arm

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
_COMPARISONS: Mapping[str, Callable[[float, float], Any]] = {
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": lambda x, y: bool(x and y),
    "or": lambda x, y: bool(x or y),
}
_LONGEST = 12
"""Operations that one line of C may hold."""


@dataclass(frozen=True)
class Dialect:
    """How one language writes what is not the same in all of them.

    Args:
        local: before a name that is given its value; empty where none is needed.
        operators: those that are written otherwise than in C: a word between both sides, or a text with ``{0}`` and ``{1}``.
        calls: functions of other names than in C.
        sign: of ``{0}``.
        select: ``{1}`` where ``{0}`` holds, else ``{2}``; each of them in brackets where it needs any.
        end: of a statement.
        entry: of an array, by its name and indices from zero.
        unused: statement for an argument that is not needed, which compilers of C would warn of; None where it needs none.
    """

    local: str = "const double "
    operators: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    sign: str = "(double)(({0} > 0.0) - ({0} < 0.0))"
    select: str = "{0} ? {1} : {2}"
    end: str = ";"
    entry: Callable[[str, tuple[int, ...]], str] = lambda name, place: name + "".join(f"[{index}]" for index in place)
    unused: str | None = "(void){0};"


class Expression:
    """One number that is not known yet, or a constant; operators make expressions of the same graph."""

    __slots__ = ("arguments", "graph", "kind", "number", "text")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Graph, kind: str, arguments: tuple[Expression, ...], number: int, text: str = "") -> None:
        self.graph = graph
        self.kind = kind
        self.arguments = arguments
        self.number = number
        self.text = text

    @property
    def value(self) -> float | None:
        """The number that a constant is."""
        return float(self.text) if self.kind == "constant" else None

    def __bool__(self) -> bool:
        if self.value is None:
            raise _UndecidedError
        return bool(self.value)

    def __neg__(self) -> Expression:
        if self.value is not None:
            return self.graph.constant(-self.value)
        if self.kind == "negative":
            return self.arguments[0]
        if self.kind == "sub":
            return self.arguments[1] - self.arguments[0]
        return self.graph.node("negative", self)

    def __abs__(self) -> Expression:
        return self.graph.call("fabs", self)

    def __add__(self, other: Any) -> Expression:
        x, y = self, self.graph.of(other)
        if x.value is not None and y.value is not None:
            return self.graph.constant(x.value + y.value)
        if x.value == 0.0:
            return y
        if y.value == 0.0:
            return x
        if y.kind == "negative":
            return x - y.arguments[0]
        if x.kind == "negative":
            return y - x.arguments[0]
        return self.graph.node("add", *((x, y) if x.number <= y.number else (y, x)))

    def __sub__(self, other: Any) -> Expression:
        x, y = self, self.graph.of(other)
        if x is y:
            return self.graph.constant(0.0)
        if x.value is not None and y.value is not None:
            return self.graph.constant(x.value - y.value)
        if y.value == 0.0:
            return x
        if x.value == 0.0:
            return -y
        if y.kind == "negative":
            return x + y.arguments[0]
        if x.kind == "negative":
            return -(x.arguments[0] + y)
        return self.graph.node("sub", x, y)

    def __rsub__(self, other: Any) -> Expression:
        return self.graph.of(other) - self

    def __mul__(self, other: Any) -> Expression:
        x, y = self, self.graph.of(other)
        if y.value is not None:
            x, y = y, x
        if x.value is not None:
            if y.value is not None:
                return self.graph.constant(x.value * y.value)
            if x.value in (0.0, 1.0):
                return y if x.value else x
            if x.value < 0.0:  # so that products of opposite sign are one
                return -(self.graph.constant(-x.value) * y)
        if x.kind == "negative":
            return -(x.arguments[0] * y)
        if y.kind == "negative":
            return -(x * y.arguments[0])
        return self.graph.node("mul", *((x, y) if x.number <= y.number else (y, x)))

    def __truediv__(self, other: Any) -> Expression:
        x, y = self, self.graph.of(other)
        if y.value == 1.0 or x.value == 0.0:
            return x
        if x.value is not None and y.value is not None:
            return self.graph.constant(x.value / y.value)
        return self.graph.node("div", x, y)

    def __rtruediv__(self, other: Any) -> Expression:
        return self.graph.of(other) / self

    def __pow__(self, other: Any) -> Expression:
        exponent = self.graph.of(other)
        whole = exponent.value
        if whole is None or whole != int(whole) or not 1 <= whole <= 8:
            return self.graph.call("pow", self, exponent)
        return reduce(operator.mul, [self] * int(whole))

    def __rpow__(self, other: Any) -> Expression:
        return self.graph.call("pow", other, self)

    def __gt__(self, other: Any) -> Expression:
        return self.graph.of(other)._compare("lt", self)

    def __ge__(self, other: Any) -> Expression:
        return self.graph.of(other)._compare("le", self)

    def _compare(self, kind: str, other: Any) -> Expression:
        """A truth, to be used in :meth:`Graph.where`."""
        y = self.graph.of(other)
        if self.value is None or y.value is None:
            return self.graph.node(kind, self, y)
        return self.graph.constant(float(_COMPARISONS[kind](self.value, y.value)))

    __lt__ = partialmethod(_compare, "lt")
    __le__ = partialmethod(_compare, "le")
    __eq__ = partialmethod(_compare, "eq")
    __ne__ = partialmethod(_compare, "ne")
    __and__ = partialmethod(_compare, "and")
    __or__ = partialmethod(_compare, "or")
    __radd__ = __add__
    __rmul__ = __mul__
    __rand__ = __and__
    __ror__ = __or__


class _UndecidedError(Exception):
    """A comparison was asked for its truth before the motion is known."""


class Graph:
    """All expressions of one piece of code, each once, and the functions of an effect's formula over them."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Expression] = {}
        for value in (0.0, 1.0):
            self.constant(value)

    def node(self, kind: str, *arguments: Expression, text: str = "") -> Expression:
        """The expression of a kind and its arguments, which is made where it is not known."""
        key = (kind, text, *(argument.number for argument in arguments))
        if key not in self._known:
            self._known[key] = Expression(self, kind, arguments, len(self._known), text)
        return self._known[key]

    def constant(self, value: float) -> Expression:
        return self.node("constant", text=repr(float(value) + 0.0))

    def of(self, value: Any) -> Expression:
        """An expression, or a number as one."""
        return value if isinstance(value, Expression) else self.constant(float(value))

    def input(self, name: str) -> Expression:
        """A variable that the code is given."""
        return self.node("input", text=name)

    def call(self, name: str, *values: Any) -> Expression:
        """A function of the C library, or ``sign``; of constants it is computed here."""
        arguments = [self.of(value) for value in values]
        known = [argument.value for argument in arguments if argument.value is not None]
        if len(known) == len(arguments):
            return self.constant(float(np.sign(known[0])) if name == "sign" else _CALLS[name](*known))
        return self.node("sign", *arguments) if name == "sign" else self.node("call", *arguments, text=name)

    exp = partialmethod(call, "exp")
    log = partialmethod(call, "log")
    sqrt = partialmethod(call, "sqrt")
    sin = partialmethod(call, "sin")
    cos = partialmethod(call, "cos")
    tanh = partialmethod(call, "tanh")
    sign = partialmethod(call, "sign")
    maximum = partialmethod(call, "fmax")
    minimum = partialmethod(call, "fmin")

    def where(self, condition: Any, x: Any, y: Any) -> Expression:
        """``x`` where the condition holds, else ``y``; what is known not to be chosen is not made."""
        asked = self.of(condition)
        if asked.value is not None:
            return self.of(arm(x if asked.value else y))
        one, other = self.of(arm(x)), self.of(arm(y))
        return one if one is other else self.node("select", asked, one, other)


def straight_line(outputs: Mapping[str, Expression], dialect: Dialect, temporary: str = "t") -> list[str]:
    """Statements that compute the outputs: shared and long parts into temporaries, then the outputs themselves."""
    order = reachable(outputs.values())
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
        text, precedence = _text(node, written, dialect)
        size[node.number] = 1 + sum(size[argument.number] for argument in node.arguments if argument.arguments)
        leaf = node.kind in ("constant", "input")
        if not leaf and (uses[node.number] > 1 or size[node.number] > _LONGEST):
            name = f"{temporary}{len(lines)}"
            lines.append(f"{dialect.local}{name} = {text}{dialect.end}")
            text, precedence = name, 9
            size[node.number] = 0
        written[node.number] = text, precedence
    lines.extend(f"{name} = {written[node.number][0]}{dialect.end}" for name, node in outputs.items())
    return lines


def derivative(outputs: Iterable[Expression], variable: Expression) -> list[Expression]:
    """Slopes of polynomials of a variable; what is divided by it, or a function of it, is refused."""
    wanted = list(outputs)
    slope: dict[int, Expression] = {}
    zero = variable.graph.constant(0.0)
    for node in reachable(wanted):
        inside = [slope[argument.number] for argument in node.arguments]
        if node is variable:
            slope[node.number] = variable.graph.constant(1.0)
        elif all(one is zero for one in inside):
            slope[node.number] = zero
        elif node.kind in ("add", "sub"):
            slope[node.number] = inside[0] + inside[1] if node.kind == "add" else inside[0] - inside[1]
        elif node.kind == "negative":
            slope[node.number] = -inside[0]
        elif node.kind == "mul":
            slope[node.number] = inside[0] * node.arguments[1] + node.arguments[0] * inside[1]
        else:
            raise InputError(f"'{node.kind}' of {variable.text} cannot be differentiated here, expected a polynomial of it")
    return [slope[node.number] for node in wanted]


def inputs_of(outputs: Iterable[Expression]) -> set[str]:
    """Names of the variables that the outputs need."""
    return {node.text for node in reachable(outputs) if node.kind == "input"}


def reachable(outputs: Iterable[Expression]) -> list[Expression]:
    """Every expression the outputs need; arguments before what uses them."""
    found: dict[int, Expression] = {}
    waiting = list(outputs)
    while waiting:
        node = waiting.pop()
        if node.number not in found:
            found[node.number] = node
            waiting.extend(node.arguments)
    return [found[number] for number in sorted(found)]


def _text(node: Expression, written: Mapping[int, tuple[str, int]], dialect: Dialect) -> tuple[str, int]:
    """Text of one node and how tightly it binds."""

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
        name = dialect.calls.get(node.text, node.text)
        return f"{name}({', '.join(inner(argument, 0) for argument in arguments)})", 9
    if kind == "sign":
        return dialect.sign.format(inner(arguments[0], 5)), 7
    if kind == "select":
        return dialect.select.format(*(inner(one, least) for one, least in zip(arguments, (3, 1, 1), strict=True))), 0
    precedence, operator_text = _PRECEDENCE[kind], dialect.operators.get(kind, _BINARY[kind])
    if "{" in operator_text:
        return operator_text.format(inner(arguments[0], 0), inner(arguments[1], 0)), 9
    left, right = inner(arguments[0], precedence), inner(arguments[1], precedence + 1)
    return f"{left} {operator_text} {right}", precedence


# Formulas of effects ------------------------------------------------------------------------------
def symbolic_signals(graph: Graph, effect: Effect, *signals: Iterable[Expression]) -> list[Expression]:
    """Signal of every column of an effect, from position, velocity, acceleration and load of the joints with one degree of freedom."""
    motion = [Motion(*one) for one in zip(*signals, strict=True)]
    try:
        return [graph.of(signal) for signal in effect.scalar_signals(graph, motion)]
    except _UndecidedError:
        raise InputError(
            f"formula of effect '{effect.name}' decides by an if what depends on the motion, which cannot be written as code; "
            "use m.where(condition, x, y)"
        ) from None
