"""Frozen dataclasses as records of plain values, and back.

A record has the names of the fields as its keys. Reading is strict: a value of another type than its field is refused in a sentence that
names the field. A type whose record differs from its fields has methods ``as_dict`` and ``from_dict``, used wherever it stands.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Band:
...     hz: float
...     names: tuple[str, ...] = ()
>>> to_record(Band(2.0, ("force",)))
{'hz': 2.0, 'names': ['force']}
>>> from_record(Band, {"hz": 2})
Band(hz=2.0, names=())
>>> from_record(Band, {"hz": "wide"})
Traceback (most recent call last):
    ...
ValueError: 'hz': 'wide', expected a number
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from dynid.arrays import freeze
from dynid.files import plain

T = TypeVar("T")
_LEAVES: Mapping[type, tuple[tuple[type, ...], str]] = {
    float: ((Real,), "a number"),
    int: ((Integral,), "a whole number"),
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
}
"""What plain values each type is read from, and what a refusal calls them."""
_PARTS: Mapping[Any, tuple[tuple[type, ...], str]] = {tuple: ((list, tuple), "a list"), Mapping: ((Mapping,), "a table")}


def to_record(value: Any) -> Any:
    """Plain values of a dataclass, or of anything made of them; what is not finite becomes None, as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        own = getattr(value, "as_dict", None)
        return plain(own()) if own else {one.name: to_record(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_record(item) for key, item in value.items()}
    return [to_record(item) for item in value] if isinstance(value, (list, tuple)) else plain(value)


def from_record(kind: type[T], record: Any) -> T:
    """The dataclass that :func:`to_record` made a record of.

    Args:
        kind: its class.
        record: plain values, of whatever origin; fields that have a default may be missing.

    Raises:
        KeyError: a field is missing.
        ValueError: a value is not what its field says, or belongs to no field.
    """
    found: T = read_value(kind, record, kind.__name__)
    return found


def read_fields(kind: type, record: Mapping[str, Any]) -> dict[str, Any]:
    """Values of some fields of a dataclass by name, each read as its type says."""
    hints = _hints(kind)
    return {name: read_value(hints[name], value, name) for name, value in record.items()}


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def read_value(kind: Any, value: Any, where: str) -> Any:
    """``value`` as ``kind``, the type of a field; ``where`` names it in a refusal, which is a ValueError."""
    origin, inside = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _read_one_of(inside, value, where)
    if origin is Literal:
        _check(value in inside, value, where, f"one of {', '.join(map(str, inside))}")
        return value
    if kind in _LEAVES:
        sorts, words = _LEAVES[kind]
        _check(isinstance(value, sorts) and (kind is bool or not isinstance(value, bool)), value, where, words)
        return kind(value)
    if origin is tuple:
        _check(isinstance(value, Sequence) and not isinstance(value, str), value, where, "a list")
        sorts = inside[:1] * len(value) if inside[-1] is Ellipsis else inside
        _check(len(sorts) == len(value), value, where, f"{len(sorts)} values")
        return tuple(read_value(sort, item, where) for sort, item in zip(sorts, value, strict=True))
    if origin is np.ndarray:
        return freeze(np.array(value, dtype=np.float64))
    _check(isinstance(value, Mapping), value, where, "a table")
    if is_dataclass(kind):
        return kind.from_dict(value) if hasattr(kind, "from_dict") else _read_dataclass(kind, value)
    return {str(name): read_value(inside[1], item, f"{where}.{name}") for name, item in value.items()}


def _read_dataclass(kind: Any, record: Mapping[str, Any]) -> Any:
    names = [one.name for one in fields(kind)]
    for name in record:
        _check(name in names, name, kind.__name__, f"one of {', '.join(names)}")
    needed = [one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING]
    return kind(**{name: record[name] for name in needed} | read_fields(kind, record))


def _read_one_of(inside: tuple[Any, ...], value: Any, where: str) -> Any:
    """``value`` as the first of some types that it is of; what is of none is told by the last, of plain values by all."""
    if value is None and type(None) in inside:
        return None
    *first, last = (one for one in inside if one is not type(None))
    for one in first:
        with suppress(ValueError):
            return read_value(one, value, where)
    sorts = [_LEAVES.get(one) or _PARTS.get(get_origin(one)) for one in (*first, last)]
    words = [one[1] for one in sorts if one is not None]
    _check(not words or sorts[-1] is None or isinstance(value, sorts[-1][0]), value, where, " or ".join(words))
    return read_value(last, value, where)


def _check(holds: bool, value: Any, where: str, expected: str) -> None:
    if not holds:
        raise ValueError(f"'{where}': {value!r:.40}, expected {expected}")
