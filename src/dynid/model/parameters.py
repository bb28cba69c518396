"""Names, units, order and kind of every column of a regressor, and names of the literature brought to these.

A column has a symbol (``Ixx``, ``fv``) and the number of its joint, counted from 1: ``Ixx2``. The ten inertial symbols of a
link stand in Pinocchio's order ``m mx my mz Ixx Ixy Iyy Ixz Iyz Izz``; the inertia is about the origin of the body's frame.

    here            m3    mx3   Iyy3   Ixy3   Ia3   fv3   fc3   fo3
    Sousa           m3    l3x   L3yy   L3xy   Ia3   fv3   fc3   fo3      (also with an underscore: L_3yy)
    Khalil          M3    MX3   YY3    XY3    IA3   FV3   FS3   OFF3

All hold tensor elements about the link frame's origin. Names of other columns stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_finite, check_shape, freeze
from dynid.errors import InputError, UnknownNameError

_KHALIL = dict(
    zip(
        ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M", "IA", "FV", "FS", "FC", "OFF"),
        ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mx", "my", "mz", "m", "Ia", "fv", "fc", "fc", "fo"),
        strict=True,
    )
)
INERTIAL_SYMBOLS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
_SYMBOLS = frozenset(INERTIAL_SYMBOLS) | {"Ia", "fv", "fc", "fo"}
_SYMBOL_FIRST = re.compile(r"([A-Za-z]+)_?(\d{1,9})")  # a number of more digits is no joint
_SOUSA = re.compile(r"([LlI])_?(\d{1,9}),?([xyz]{1,2})")


def canonical_name(name: str) -> str:
    """The name used here of a parameter named as here, by Sousa or by Khalil; unknown names come back unchanged."""
    inside = _SOUSA.fullmatch(name)
    if inside:
        letter, number, axes = inside[1], int(inside[2]), inside[3]
        if letter == "I":
            raise InputError(
                f"parameter '{name}' reads as inertia about the centre of mass, expected one about the link frame's "
                f"origin: L{number}{axes} or I{axes}{number}"
            )
        symbol = f"m{axes}" if letter == "l" else f"I{''.join(sorted(axes))}"
        if symbol in INERTIAL_SYMBOLS:
            return f"{symbol}{number}"
    first = _SYMBOL_FIRST.fullmatch(name)
    if first:
        symbol = _KHALIL.get(first[1], first[1])
        if symbol in _SYMBOLS:
            return f"{symbol}{int(first[2])}"
    return name


def canonical_names(names: Iterable[str]) -> tuple[str, ...]:
    """All names in the form used here; two names of one parameter are refused."""
    given = tuple(names)
    found: dict[str, str] = {}
    for name in given:
        here = canonical_name(name)
        if here in found:
            raise InputError(f"parameter names '{found[here]}' and '{name}' both mean '{here}'")
        found[here] = name
    return tuple(found)


def split_name(name: str) -> tuple[str, int] | None:
    """Symbol and joint number of a column, None for a name that has no number."""
    first = re.fullmatch(r"(.*\D)(\d{1,9})", name)
    return (first[1], int(first[2])) if first else None


Kind: TypeAlias = Literal["inertial", "friction", "actuator", "spring"]
INERTIAL_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)
"""Symbols and units of one link's ten parameters, in the order used everywhere inside dynid."""
GROUPING_SYMBOLS = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mx", "my", "mz", "m", "Ia", "fv", "fc", "fo")
"""Priority inside a link when base parameters are grouped: the order that gives the published tables."""


@dataclass(frozen=True)
class Column:
    """One column of a regressor.

    Args:
        symbol: of the value that it multiplies, such as ``Ixx`` or ``fv``.
        number: of its joint, from 1.
        kind: ``inertial``, ``friction``, ``actuator`` or ``spring``.
        unit: of the value.
        joint: name of the joint.

    Examples:
        >>> import dynid
        >>> from dynid.model.parameters import Column
        >>> Column("fv", 2, "friction", "N m s/rad", "elbow").name
        'fv2'
    """

    symbol: str
    number: int
    kind: Kind
    unit: str
    joint: str

    @property
    def name(self) -> str:
        return f"{self.symbol}{self.number}"


@dataclass(frozen=True)
class Parameters:
    """Named values, one per regressor column.

    Args:
        columns: symbol, joint, kind and unit of every column.
        values: one number per column.

    Examples:
        >>> import dynid
        >>> parameters = dynid.demo_robot().parameters
        >>> isinstance(parameters, dynid.Parameters), parameters.names[:3], parameters.updated({"m1": 5.0})["m1"]
        (True, ('m1', 'mx1', 'my1'), 5.0)
    """

    columns: tuple[Column, ...]
    values: Array

    def __post_init__(self) -> None:
        values = freeze(self.values)
        check_shape("parameter values", values, (len(self.columns),))
        check_finite("parameter values", values)
        object.__setattr__(self, "values", values)
        if len(self._position) != len(self.columns):
            seen: set[str] = set()
            twice = [name for name in self.names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
            raise InputError(f"parameter names appear twice: {', '.join(twice)}")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def units(self) -> tuple[str, ...]:
        return tuple(column.unit for column in self.columns)

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(column.kind for column in self.columns)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {column.name: index for index, column in enumerate(self.columns)}

    @cached_property
    def n_inertial(self) -> int:
        """How many columns are inertial; they stand first, ten per link."""
        return sum(column.kind == "inertial" for column in self.columns)

    @property
    def inertials(self) -> Array:
        """The inertial values as one row of ten per link."""
        return self.values[: self.n_inertial].reshape(-1, 10)

    def __len__(self) -> int:
        return len(self.columns)

    def index(self, name: str) -> int:
        """Position of a column by its name."""
        try:
            return self._position[name]
        except KeyError:
            raise UnknownNameError("parameter", name, self.names) from None

    def __getitem__(self, name: str) -> float:
        return float(self.values[self.index(name)])

    def as_dict(self) -> dict[str, float]:
        return dict(zip(self.names, self.values.tolist(), strict=True))

    def with_values(self, values: ArrayLike) -> Parameters:
        """The same columns with other values."""
        return replace(self, values=np.asarray(values, dtype=np.float64))

    def updated(self, values: Mapping[str, float]) -> Parameters:
        """The same columns with some values replaced by name."""
        new = self.values.copy()
        for name, value in values.items():
            new[self.index(name)] = value
        return self.with_values(new)

    def grouping(self, symbols: tuple[str, ...] = GROUPING_SYMBOLS) -> IntArray:
        """Column indices in the default order of base-parameter grouping: base to tip, inside a joint by symbol.

        Symbols that are not listed come after the listed ones, in the order of their columns.
        """
        rank = {symbol: place for place, symbol in enumerate(symbols)}
        order = sorted(
            range(len(self.columns)),
            key=lambda i: (self.columns[i].number, rank.get(self.columns[i].symbol, len(rank)), i),
        )
        return freeze(order, dtype=np.int64)


def inertial_columns(number: int, joint: str) -> tuple[Column, ...]:
    """The ten columns of the link that joint ``number`` (from 1) carries."""
    return tuple(
        Column(symbol, number, "inertial", unit, joint)
        for symbol, unit in zip(INERTIAL_SYMBOLS, INERTIAL_UNITS, strict=True)
    )
