"""Expressions of xacro files, evaluated over their syntax tree: nothing of a file is ever run as code.

An expression is parsed by ``ast.parse`` and walked node by node. There are numbers, texts, lists, dictionaries, arithmetic, comparisons,
choices, simple comprehensions, the functions of :data:`FUNCTIONS` and a few methods of texts and dictionaries. There are no attributes
of Python objects, no functions of one's own and nothing that starts with an underscore, so there is no way from a value to the
interpreter. What an expression may make is bounded: texts and lists with all that is in them by :data:`MOST_ITEMS`, integers by
:data:`MOST_BITS`, and work by a budget of steps that a whole file shares, which what is made is charged to.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

MOST_CHARACTERS = 10_000
"""Length of one expression."""
MOST_ITEMS = 100_000
"""Characters of a text; entries of a list and of what is in it."""
MOST_BITS = 10_000
"""Size of an integer."""


class ExpressionError(Exception):
    """An expression that is not evaluated; the text says why."""


class Namespace(dict[str, Any]):
    """A dictionary whose entries are also read as ``name.entry``: of YAML files, and of included files."""


class Budget:
    """Steps that are left for one file, whatever it includes."""

    def __init__(self, steps: int = 3_000_000) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Take some steps, or refuse."""
        self.left -= steps
        if self.left < 0:
            raise ExpressionError("it needs more steps than a robot description does")


def size_of(value: Any, limit: int = MOST_ITEMS) -> int:
    """Characters and entries of a value and of all that is in it; something above the limit where there are more."""
    if isinstance(value, str):
        return len(value)
    if not isinstance(value, list | dict):
        return 1
    found = len(value)
    for one in value if isinstance(value, list) else (part for pair in value.items() for part in pair):
        if found > limit:
            break
        found += size_of(one, limit - found)
    return found


def _refuse_size(size: int) -> None:
    if size > MOST_ITEMS:
        raise ExpressionError(f"a text or list has more than {MOST_ITEMS} entries")


def _range(*limits: int) -> list[int]:
    found = range(*limits)
    _refuse_size(len(found))
    return list(found)


def _round(value: Any, digits: int | None = None) -> Any:
    return round(value, None if digits is None else max(-400, min(digits, 400)))


def _map(function: Any, values: Any) -> list[Any]:
    if function not in (float, int, str, bool, len, abs):
        raise ExpressionError("map takes float, int, str, bool, len or abs in an expression of xacro")
    return [function(one) for one in values]


def _zip(*each: Any) -> list[list[Any]]:
    _refuse_size(sum(map(len, each)))
    return [list(one) for one in zip(*each, strict=False)]


def _sum(values: Any, start: Any = 0) -> Any:
    for one in values:
        if not isinstance(one, int | float):
            raise ExpressionError("sum adds numbers in an expression of xacro")
        start += one
    return start


def _tokenize(text: str, sep: str = ",; ", skip_empty: bool = True) -> list[str]:
    for one in sep[1:]:
        text = text.replace(one, sep[0])
    return [part for part in text.split(sep[0]) if part or not skip_empty]


def joined(between: str, values: list[str]) -> str:
    """Texts as one, which is not too long."""
    _refuse_size(size_of(values) + len(between) * len(values))
    return between.join(values)


def _replace(text: str, old: str, new: str) -> str:
    _refuse_size(len(text) + (text.count(old) + 1) * len(new))
    return text.replace(old, new)


def _fatal(*words: Any) -> Any:
    raise ExpressionError(" ".join(map(str, words)))


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() * b > MOST_BITS:
        raise ExpressionError("a power is too large")
    return a**b


def _product(a: Any, b: Any) -> Any:
    for items, times in ((a, b), (b, a)):
        if isinstance(items, str | list) and isinstance(times, int):
            _refuse_size(size_of(items) * times)
    return a * b


def _quiet(*_words: Any, **_options: Any) -> str:
    """Messages of a file are not shown."""
    return ""


_UNBOUNDED = ("factorial", "comb", "perm", "prod", "lcm")
_MATH = Namespace({name: one for name, one in vars(math).items() if not name.startswith("_") and name not in _UNBOUNDED})
_PYTHON = Namespace(
    {one.__name__: one for one in (len, str, float, int, bool, min, max, abs, all, any, sorted, list, divmod)}
    | {
        "tuple": list,
        "dict": Namespace,
        "range": _range,
        "round": _round,
        "map": _map,
        "sum": _sum,
        "True": True,
        "False": False,
    }
    | {"zip": _zip}
    | {"enumerate": lambda each: [[k, one] for k, one in enumerate(each)], "reversed": lambda each: list(each)[::-1]}
)
_XACRO = Namespace(
    {"tokenize": _tokenize, "dotify": Namespace, "fatal": _fatal}
    | dict.fromkeys(("message", "warning", "error", "print_location"), _quiet)
)
SYMBOLS: Mapping[str, Any] = {**_MATH, **_PYTHON, **_XACRO, "math": _MATH, "python": _PYTHON, "xacro": _XACRO, "None": None}
"""Names that every file knows."""
_METHODS: Mapping[type, Mapping[str, Callable[..., Any]]] = {
    str: {
        name: getattr(str, name)
        for name in ("lower", "upper", "strip", "lstrip", "rstrip", "split", "startswith", "endswith")
    }
    | {"join": joined, "replace": _replace},
    Namespace: {name: getattr(dict, name) for name in ("keys", "values", "items", "get")},
}
_BINARY: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: _product, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Pow: _power,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_UNARY: Mapping[type[ast.AST], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
_ALLOWED = {
    *_BINARY, *_UNARY, ast.And, ast.Or, ast.Load, ast.Store, ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.IfExp, ast.List, ast.Tuple, ast.Dict, ast.Slice, ast.Subscript, ast.Attribute, ast.Call, ast.keyword, ast.ListComp,
    ast.GeneratorExp, ast.comprehension,
}  # fmt: skip
"""All that a syntax tree may have in it."""


def evaluate(text: str, symbol: Callable[[str], Any], budget: Budget) -> Any:
    """The value of an expression.

    Args:
        text: the expression.
        symbol: gives the value of a name, and raises ``KeyError`` where there is none.
        budget: is charged for every step.
    """
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(f"an expression has {len(text)} characters, expected at most {MOST_CHARACTERS}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if not _ALLOWED.issuperset(map(type, ast.walk(tree))):
            raise ExpressionError(f"'{text[:80]}' is not allowed in an expression of xacro")
        return _Evaluation(symbol, budget).value(tree)
    except ExpressionError:
        raise
    except (SyntaxError, RecursionError, MemoryError):
        raise ExpressionError(f"'{text[:80]}' is no expression") from None
    except Exception as error:  # a function that was given what it cannot take
        raise ExpressionError(f"'{text[:80]}': {' '.join(str(error).split())[:120] or type(error).__name__}") from None


class _Evaluation:
    """One walk over a syntax tree."""

    def __init__(self, symbol: Callable[[str], Any], budget: Budget) -> None:
        self._symbol, self._budget = symbol, budget

    def value(self, node: ast.expr) -> Any:
        """The value of a node, no larger than the limits."""
        self._budget.spend()
        found = getattr(self, f"_{type(node).__name__.lower()}")(node)
        if isinstance(found, str | list | dict):
            size = size_of(found)
            _refuse_size(size)
            self._budget.spend(size // (64 if isinstance(found, str) else 2))  # entries are counted one by one
        if isinstance(found, int) and found.bit_length() > MOST_BITS:
            raise ExpressionError("a number is too large")
        return found

    def _constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bool | int | float | str | None):
            return node.value
        raise ExpressionError(f"'{ast.unparse(node)[:80]}' is not allowed in an expression of xacro")

    def _name(self, node: ast.Name) -> Any:
        if node.id.startswith("_"):
            raise ExpressionError(f"the name '{node.id}' is not allowed in an expression of xacro")
        try:
            return self._symbol(node.id)
        except KeyError:
            raise ExpressionError(f"name '{node.id}' is not defined") from None

    def _binop(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Mod) and isinstance(left, str):  # its format could ask for any width
            raise ExpressionError("text % values is not allowed in an expression of xacro")
        return _BINARY[type(node.op)](left, right)

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        return _UNARY[type(node.op)](self.value(node.operand))

    def _boolop(self, node: ast.BoolOp) -> Any:
        stops = isinstance(node.op, ast.Or)
        found: Any = None
        for one in node.values:
            found = self.value(one)
            if bool(found) is stops:
                break
        return found

    def _compare(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for sign, one in zip(node.ops, node.comparators, strict=True):
            right = self.value(one)
            if not _BINARY[type(sign)](left, right):
                return False
            left = right
        return True

    def _ifexp(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def _list(self, node: ast.List | ast.Tuple) -> list[Any]:
        return [self.value(one) for one in node.elts]

    _tuple = _list

    def _dict(self, node: ast.Dict) -> Namespace:
        if None in node.keys:
            raise ExpressionError(f"'{ast.unparse(node)[:80]}' is not allowed in an expression of xacro")
        keys = [self.value(key) for key in node.keys if key is not None]
        return Namespace(zip(keys, map(self.value, node.values), strict=True))

    def _slice(self, node: ast.Slice) -> slice:
        return slice(*(None if one is None else self.value(one) for one in (node.lower, node.upper, node.step)))

    def _subscript(self, node: ast.Subscript) -> Any:
        held = self.value(node.value)
        if not isinstance(held, str | list | dict):
            raise ExpressionError(f"'{ast.unparse(node.value)[:80]}' has no entries")
        return dotted(held[self.value(node.slice)])

    def _attribute(self, node: ast.Attribute) -> Any:
        held = self.value(node.value)
        if node.attr.startswith("_"):
            raise ExpressionError(f"the name '{node.attr}' is not allowed in an expression of xacro")
        if isinstance(held, Namespace) and node.attr in held:
            return dotted(held[node.attr])
        if method := _METHODS.get(type(held), {}).get(node.attr):
            return partial(method, held)
        raise ExpressionError(f"'{ast.unparse(node)[:80]}' is not defined")

    def _call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        if not callable(function):
            raise ExpressionError(f"'{ast.unparse(node)[:80]}' is not allowed in an expression of xacro")
        named = {str(one.arg): self.value(one.value) for one in node.keywords if one.arg is not None}
        given = [self.value(one) for one in node.args]
        if function is not _map and any(map(callable, (*given, *named.values()))):  # its calls would not be counted
            raise ExpressionError(f"'{ast.unparse(node)[:80]}' is not allowed in an expression of xacro")
        found = function(*given, **named)
        return found if isinstance(found, str | list | Namespace) or not isinstance(found, Iterable) else list(found)

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        (loop, *more) = node.generators
        if more or not isinstance(loop.target, ast.Name) or loop.is_async:
            raise ExpressionError(f"'{ast.unparse(node)[:80]}' is not allowed in an expression of xacro")
        outside, name, found = self._symbol, loop.target.id, []
        for one in list(self.value(loop.iter)):
            self._symbol = lambda wanted, own=one: own if wanted == name else outside(wanted)  # type: ignore[misc]
            if all(self.value(test) for test in loop.ifs):
                found.append(self.value(node.elt))
        self._symbol = outside
        return found

    _generatorexp = _listcomp


def dotted(value: Any) -> Any:
    """A dictionary of a YAML file as a :class:`Namespace`; other values as they are."""
    return Namespace(value) if isinstance(value, dict) and not isinstance(value, Namespace) else value
