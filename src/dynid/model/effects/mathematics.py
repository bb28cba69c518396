"""The functions that the formula of an effect is written in, and what they work on.

A formula is written once, over operators (``+ - * / **``, ``abs``, comparisons) and the functions of :class:`Mathematics`:

* over arrays it gives the signals of a chunk of samples (:data:`ARRAYS`);
* over dual numbers, values that carry their slopes, it gives exact derivatives in the same pass (:data:`DUALS`);
* over expressions it gives C source; those live with the exporter.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np

from dynid.arrays import Array

Value: TypeAlias = Any
"""An array, a dual number or an expression: whatever the formula is evaluated over."""


class Mathematics(Protocol):
    """Functions that a formula may use beside the operators; arms of ``where`` may be functions without arguments, called only
    where needed.

    Examples:
        >>> import numpy as np
        >>> from dynid.model.effects.mathematics import ARRAYS, Mathematics
        >>> def smooth_sign(m: Mathematics, v):
        ...     return m.tanh(v / 0.1)
        >>> smooth_sign(ARRAYS, np.array([-9.0, 9.0])).tolist()
        [-1.0, 1.0]
    """

    def exp(self, x: Value) -> Value: ...
    def log(self, x: Value) -> Value: ...
    def sqrt(self, x: Value) -> Value: ...
    def sin(self, x: Value) -> Value: ...
    def cos(self, x: Value) -> Value: ...
    def tanh(self, x: Value) -> Value: ...
    def sign(self, x: Value) -> Value: ...
    def maximum(self, x: Value, y: Value) -> Value: ...
    def minimum(self, x: Value, y: Value) -> Value: ...
    def where(self, condition: Value, x: Value, y: Value) -> Value: ...


def arm(value: Value) -> Value:
    """The value of one arm of ``where``."""
    return value() if callable(value) else value


class ArrayMathematics:
    """NumPy; the arms of ``where`` are computed only where some sample needs them."""

    exp, log, sqrt, sin, cos, tanh, sign = (
        staticmethod(function) for function in (np.exp, np.log, np.sqrt, np.sin, np.cos, np.tanh, np.sign)
    )
    maximum, minimum = staticmethod(np.maximum), staticmethod(np.minimum)

    def where(self, condition: Value, x: Value, y: Value) -> Value:
        if isinstance(condition, (bool, np.bool_)) or condition.ndim == 0:
            return arm(x) if condition else arm(y)
        if condition.all():
            return arm(x)
        if not condition.any():
            return arm(y)
        with np.errstate(all="ignore"):  # an arm may be undefined where the other one is taken
            return np.where(condition, arm(x), arm(y))


class Dual:
    """A value with its slopes: how it changes with each of a few named quantities; what is absent does not change it.

    A slope may be an array, of how a number changes with many. Comparisons look at the value. NumPy's functions take it too.
    """

    __slots__ = ("slopes", "value")

    def __init__(self, value: Value, slopes: Mapping[str, Value]) -> None:
        self.value = value
        self.slopes = slopes

    def through(self, value: Value, factor: Value) -> Dual:
        """A function of this: its value, and what it multiplies the slopes by."""
        return Dual(value, {name: factor * slope for name, slope in self.slopes.items()})

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Value, **options: Any) -> Value:
        """NumPy's operators and functions, where one of the operands is this."""
        if method != "__call__" or options or ufunc.__name__ not in _UFUNCS:
            return NotImplemented
        return _UFUNCS[ufunc.__name__](*inputs)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __pos__(self) -> Dual:
        return self

    def __neg__(self) -> Dual:
        return self.through(-self.value, -1.0)

    def __abs__(self) -> Dual:
        return self.through(np.abs(self.value), np.sign(self.value))

    def __add__(self, other: Value) -> Dual:
        value, slopes = parts(other)
        return Dual(self.value + value, _sum(self.slopes, slopes))

    def __sub__(self, other: Value) -> Dual:
        value, slopes = parts(other)
        return Dual(self.value - value, _sum(self.slopes, {name: -slope for name, slope in slopes.items()}))

    def __rsub__(self, other: Value) -> Dual:
        return (-self).__add__(other)

    def __mul__(self, other: Value) -> Dual:
        value, slopes = parts(other)
        return Dual(self.value * value, _sum(_scaled(self.slopes, value), _scaled(slopes, self.value)))

    def __truediv__(self, other: Value) -> Dual:
        value, slopes = parts(other)
        ratio = self.value / value
        return Dual(ratio, _sum(_scaled(self.slopes, 1.0 / value), _scaled(slopes, -ratio / value) if slopes else {}))

    def __rtruediv__(self, other: Value) -> Dual:
        ratio = other / self.value
        return self.through(ratio, -ratio / self.value)

    def __pow__(self, other: Value) -> Dual:
        exponent, slopes = parts(other)
        power = self.value**exponent
        with np.errstate(divide="ignore", invalid="ignore"):  # a root is infinitely steep at zero; the slope there is zero
            factor = exponent * np.asarray(self.value) ** (exponent - 1.0)
            factor = np.where(np.isfinite(factor), factor, 0.0) if np.any(exponent < 1.0) else factor
        return Dual(power, _sum(_scaled(self.slopes, factor), _scaled(slopes, _power_slope(self.value, power, slopes))))

    def __rpow__(self, other: Value) -> Dual:
        power = other**self.value
        return self.through(power, _power_slope(other, power, self.slopes))

    def __lt__(self, other: Value) -> Value:
        return self.value < parts(other)[0]

    def __le__(self, other: Value) -> Value:
        return self.value <= parts(other)[0]

    def __gt__(self, other: Value) -> Value:
        return self.value > parts(other)[0]

    def __ge__(self, other: Value) -> Value:
        return self.value >= parts(other)[0]

    def __eq__(self, other: object) -> Value:
        return self.value == parts(other)[0]

    def __ne__(self, other: object) -> Value:
        return self.value != parts(other)[0]

    __hash__ = None  # type: ignore[assignment]
    __radd__ = __add__
    __rmul__ = __mul__


class DualMathematics:
    """The same functions over dual numbers; plain arrays stay plain, so only what changes is differentiated."""

    def exp(self, x: Value) -> Value:
        return _chain(x, np.exp, lambda value, result: result)

    def log(self, x: Value) -> Value:
        return _chain(x, np.log, lambda value, result: 1.0 / value)

    def sqrt(self, x: Value) -> Value:
        return _chain(x, np.sqrt, lambda value, result: 0.5 / np.where(result > 0.0, result, np.inf))

    def sin(self, x: Value) -> Value:
        return _chain(x, np.sin, lambda value, result: np.cos(value))

    def cos(self, x: Value) -> Value:
        return _chain(x, np.cos, lambda value, result: -np.sin(value))

    def tan(self, x: Value) -> Value:
        return self.sin(x) / self.cos(x)

    def tanh(self, x: Value) -> Value:
        return _chain(x, np.tanh, lambda value, result: 1.0 - result * result)

    def arctan2(self, y: Value, x: Value) -> Value:
        (a, of_a), (b, of_b) = parts(y), parts(x)
        square = a * a + b * b
        return Dual(np.arctan2(a, b), _sum(_scaled(of_a, b / square), _scaled(of_b, -a / square)))

    def hypot(self, x: Value, y: Value) -> Value:
        return self.sqrt(x * x + y * y)

    def sign(self, x: Value) -> Value:
        return np.sign(parts(x)[0])

    def maximum(self, x: Value, y: Value) -> Value:
        return self.where(parts(x)[0] > parts(y)[0], x, y)

    def minimum(self, x: Value, y: Value) -> Value:
        return self.where(parts(x)[0] < parts(y)[0], x, y)

    def where(self, condition: Value, x: Value, y: Value) -> Value:
        if isinstance(condition, (bool, np.bool_)) or condition.ndim == 0:
            return arm(x) if condition else arm(y)
        if condition.all():
            return arm(x)
        if not condition.any():
            return arm(y)
        with np.errstate(all="ignore"):
            (a, of_a), (b, of_b) = parts(arm(x)), parts(arm(y))
        value = np.where(condition, a, b)
        slopes = {name: np.where(condition, of_a.get(name, 0.0), of_b.get(name, 0.0)) for name in {**of_a, **of_b}}
        return Dual(value, slopes) if slopes else value


ARRAYS = ArrayMathematics()
DUALS = DualMathematics()


def _either(forward: str, backward: str) -> Callable[[Value, Value], Value]:
    """An operator by the dual number among its two operands: left to itself, NumPy would ask for it again."""
    return lambda x, y: getattr(x, forward)(y) if isinstance(x, Dual) else getattr(y, backward)(x)


_UFUNCS: dict[str, Callable[..., Value]] = {
    **{
        name: getattr(DUALS, name)
        for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "arctan2", "hypot", "sign")
    },
    **{name: getattr(DUALS, name) for name in ("maximum", "minimum")},
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": abs,
    "add": _either("__add__", "__radd__"),
    "subtract": _either("__sub__", "__rsub__"),
    "multiply": _either("__mul__", "__rmul__"),
    "divide": _either("__truediv__", "__rtruediv__"),
    "power": _either("__pow__", "__rpow__"),
    "less": _either("__lt__", "__gt__"),
    "less_equal": _either("__le__", "__ge__"),
    "greater": _either("__gt__", "__lt__"),
    "greater_equal": _either("__ge__", "__le__"),
    "equal": _either("__eq__", "__eq__"),
    "not_equal": _either("__ne__", "__ne__"),
}


def parts(x: Value) -> tuple[Value, Mapping[str, Value]]:
    """Value and slopes; a plain value has none."""
    return (x.value, x.slopes) if isinstance(x, Dual) else (x, {})


def _sum(one: Mapping[str, Value], other: Mapping[str, Value]) -> dict[str, Value]:
    total = dict(one)
    for name, slope in other.items():
        total[name] = total[name] + slope if name in total else slope
    return total


def _scaled(slopes: Mapping[str, Value], factor: Value) -> dict[str, Value]:
    return {name: factor * slope for name, slope in slopes.items()}


def _power_slope(base: Value, power: Value, slopes: Mapping[str, Value]) -> Value:
    """How ``base^n`` changes with ``n``; zero where the base is zero."""
    return power * np.log(np.where(base > 0.0, base, 1.0)) if slopes else 0.0


def _chain(x: Value, function: Callable[[Array], Array], slope: Callable[[Array, Array], Array]) -> Value:
    if not isinstance(x, Dual):
        return function(x)
    result = function(x.value)
    return x.through(result, slope(x.value, result))
