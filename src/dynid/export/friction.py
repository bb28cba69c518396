"""The formulas of joint effects as expressions, for code that is written out: the effect's own formula, evaluated over symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynid.errors import InputError
from dynid.export.expressions import Expression, Graph
from dynid.robot.effects import Effect, FormulaMotion
from dynid.robot.effects.mathematics import arm


def symbolic_signals(
    graph: Graph,
    effect: Effect,
    position: Sequence[Expression],
    velocity: Sequence[Expression],
    acceleration: Sequence[Expression],
    load: Sequence[Expression],
) -> list[Expression]:
    """Signal of every column of an effect, from the motion of the joints with one degree of freedom."""
    m = CodeMathematics(graph)
    motion = [
        FormulaMotion(*(Symbol(graph, part) for part in one))
        for one in zip(position, velocity, acceleration, load, strict=True)
    ]
    try:
        return [m.of(signal).expression for signal in effect.scalar_signals(m, motion)]
    except _UndecidedError:
        raise InputError(
            f"formula of effect '{effect.name}' decides by an if what depends on the motion, which cannot be written as code; "
            "use m.where(condition, x, y)"
        ) from None


class _UndecidedError(Exception):
    """A comparison was asked for its truth before the motion is known."""


class Symbol:
    """An expression with operators, so that a formula can be written as with numbers."""

    __slots__ = ("expression", "graph")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Graph, expression: Expression) -> None:
        self.graph = graph
        self.expression = expression

    def __bool__(self) -> bool:
        if self.expression.value is None:
            raise _UndecidedError
        return bool(self.expression.value)

    def _with(self, expression: Expression) -> Symbol:
        return Symbol(self.graph, expression)

    def _other(self, value: Any) -> Expression:
        return value.expression if isinstance(value, Symbol) else self.graph.constant(float(value))

    def __neg__(self) -> Symbol:
        return self._with(self.graph.negative(self.expression))

    def __abs__(self) -> Symbol:
        return self._with(self.graph.call("fabs", self.expression))

    def __add__(self, other: Any) -> Symbol:
        return self._with(self.graph.add(self.expression, self._other(other)))

    def __sub__(self, other: Any) -> Symbol:
        return self._with(self.graph.subtract(self.expression, self._other(other)))

    def __rsub__(self, other: Any) -> Symbol:
        return self._with(self.graph.subtract(self._other(other), self.expression))

    def __mul__(self, other: Any) -> Symbol:
        return self._with(self.graph.multiply(self.expression, self._other(other)))

    def __truediv__(self, other: Any) -> Symbol:
        return self._with(self.graph.divide(self.expression, self._other(other)))

    def __rtruediv__(self, other: Any) -> Symbol:
        return self._with(self.graph.divide(self._other(other), self.expression))

    def __pow__(self, other: Any) -> Symbol:
        exponent = self._other(other)
        whole = exponent.value
        if whole is None or whole != int(whole) or not 1 <= whole <= 8:
            return self._with(self.graph.call("pow", self.expression, exponent))
        power = self.expression
        for _ in range(int(whole) - 1):
            power = self.graph.multiply(power, self.expression)
        return self._with(power)

    def __rpow__(self, other: Any) -> Symbol:
        return self._with(self.graph.call("pow", self._other(other), self.expression))

    def __lt__(self, other: Any) -> Symbol:
        return self._with(self.graph.compare("lt", self.expression, self._other(other)))

    def __le__(self, other: Any) -> Symbol:
        return self._with(self.graph.compare("le", self.expression, self._other(other)))

    def __gt__(self, other: Any) -> Symbol:
        return self._with(self.graph.compare("lt", self._other(other), self.expression))

    def __ge__(self, other: Any) -> Symbol:
        return self._with(self.graph.compare("le", self._other(other), self.expression))

    def __eq__(self, other: object) -> Symbol:  # type: ignore[override]
        return self._with(self.graph.compare("eq", self.expression, self._other(other)))

    def __ne__(self, other: object) -> Symbol:  # type: ignore[override]
        return self._with(self.graph.compare("ne", self.expression, self._other(other)))

    def __and__(self, other: Any) -> Symbol:
        return self._with(self.graph.compare("and", self.expression, self._other(other)))

    def __or__(self, other: Any) -> Symbol:
        return self._with(self.graph.compare("or", self.expression, self._other(other)))

    __radd__ = __add__
    __rmul__ = __mul__
    __rand__ = __and__
    __ror__ = __or__


class CodeMathematics:
    """The functions of a formula over symbols; what is known while the code is written is computed here."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def of(self, value: Any) -> Symbol:
        """A symbol, or a number as one."""
        return value if isinstance(value, Symbol) else Symbol(self.graph, self.graph.constant(float(value)))

    def _call(self, name: str, *values: Any) -> Symbol:
        return Symbol(self.graph, self.graph.call(name, *(self.of(value).expression for value in values)))

    def exp(self, x: Any) -> Symbol:
        return self._call("exp", x)

    def log(self, x: Any) -> Symbol:
        return self._call("log", x)

    def sqrt(self, x: Any) -> Symbol:
        return self._call("sqrt", x)

    def sin(self, x: Any) -> Symbol:
        return self._call("sin", x)

    def cos(self, x: Any) -> Symbol:
        return self._call("cos", x)

    def tanh(self, x: Any) -> Symbol:
        return self._call("tanh", x)

    def sign(self, x: Any) -> Symbol:
        return self._call("sign", x)

    def maximum(self, x: Any, y: Any) -> Symbol:
        return self._call("fmax", x, y)

    def minimum(self, x: Any, y: Any) -> Symbol:
        return self._call("fmin", x, y)

    def where(self, condition: Any, x: Any, y: Any) -> Symbol:
        asked = self.of(condition).expression
        if asked.value is not None:
            return self.of(arm(x if asked.value else y))
        chosen, other = self.of(arm(x)).expression, self.of(arm(y)).expression
        return Symbol(self.graph, self.graph.select(asked, chosen, other))
