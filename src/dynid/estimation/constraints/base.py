"""What constraints are made of: variables by name, rows in a cone over them, and the checks that all constraints share.

Published groupings leave out parameters without effect (``m1``, say); consistency of the link still involves them, so they
become free variables after the named ones.

Each constraint writes itself as rows ``M phi + k`` that must lie in a cone: zero (equalities), not negative (inequalities), or
second-order (``||tail|| <= head``). A link is named by its number from 1, by its own name or by that of its joint.

What may be known of single parameters and of friction: fixed values, signs, linear combinations, friction that drives nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.friction.passivity import MORE_LOAD, FrictionReach, PassivityRows, passivity_of
from dynid.estimation.linear import parameter_scale
from dynid.model.effects import nonnegative_symbols
from dynid.model.parameters import INERTIAL_SYMBOLS, Parameters, canonical_name, canonical_names, split_name
from dynid.model.robot import Robot

Axis: TypeAlias = Literal["x", "y", "z"]
AXES: tuple[Axis, ...] = ("x", "y", "z")
Vector: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Layout:
    """Named variables first, then the hidden ones of links that are not named completely."""

    names: tuple[str, ...]
    n_named: int
    links: tuple[int, ...]
    """Joint number, from 1, of every link."""
    slots: IntArray
    """``(links, 10)``: the variable of each inertial parameter."""
    aliases: Mapping[str, int] = field(default_factory=dict)
    """Numbers of links by the name of the link or of its joint."""

    @classmethod
    def of(cls, names: Iterable[str], aliases: Mapping[str, int] | None = None) -> Layout:
        """The layout of named parameters, in the names of :mod:`dynid.model.parameters`."""
        known = list(canonical_names(names))
        n_named = len(known)
        split = [split_name(name) for name in known]
        links = sorted({part[1] for part in split if part is not None and part[0] in INERTIAL_SYMBOLS})
        if not links:
            raise InputError(
                f"none of the {n_named} parameter names belongs to a link, expected names such as m1, mx1, Ixx1 or L1xx"
            )
        position = {name: index for index, name in enumerate(known)}
        slots = np.empty((len(links), 10), dtype=np.int64)
        for row, number in enumerate(links):
            for column, symbol in enumerate(INERTIAL_SYMBOLS):
                name = f"{symbol}{number}"
                if name not in position:
                    position[name] = len(known)
                    known.append(name)
                slots[row, column] = position[name]
        return cls(tuple(known), n_named, tuple(links), freeze(slots, np.int64), dict(aliases or {}))

    @classmethod
    def of_parameters(cls, parameters: Parameters, link_names: Iterable[str] = ()) -> Layout:
        """The layout of a robot's parameters; links answer to their number, their joint's name and their own."""
        aliases = {column.joint: column.number for column in parameters.columns}
        aliases |= {name: index + 1 for index, name in enumerate(link_names)}
        return cls.of(parameters.names, aliases)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """Variable of a named parameter."""
        try:
            return self._position[canonical_name(name)]
        except KeyError:
            raise UnknownNameError("parameter", name, self.names) from None

    def link_row(self, link: int | str) -> int:
        """Row of ``slots`` for a link by number or by name."""
        number = self.aliases.get(link) if isinstance(link, str) else int(link)
        if number not in self.links:
            available = [str(n) for n in self.links] + [name for name, n in self.aliases.items() if n in self.links]
            raise UnknownNameError("link", str(link), available)
        return self.links.index(number)

    def link_slots(self, link: int | str) -> IntArray:
        """The ten variables of a link."""
        return np.asarray(self.slots[self.link_row(link)])

    def with_symbol(self, symbols: Iterable[str]) -> IntArray:
        """Variables of all parameters with one of these symbols."""
        wanted = set(symbols)
        found = [i for i, name in enumerate(self.names) if (part := split_name(name)) is not None and part[0] in wanted]
        return freeze(found, np.int64)

    def scale(self, prior: Parameters | None) -> Array:
        """Size of each variable, ``(m, m l, m l^2)`` on a link; one in SI units where no prior says better."""
        scale = np.ones(len(self))
        if prior is not None:
            scale[: self.n_named] = parameter_scale(prior)
        return scale

    def inertials(self, values: Array) -> Array:
        """One row of ten per link from a vector of all variables."""
        return np.asarray(values[self.slots])

    def extended(self, values: Array) -> Array:
        """Named values with zeros for the hidden ones."""
        full = np.zeros(len(self))
        full[: self.n_named] = values
        return full


@dataclass(frozen=True, eq=False)
class ConeRows:
    """``M phi + k`` in one cone, as triplets over the variables of a layout."""

    cone: Literal["zero", "nonnegative", "second_order"]
    label: str
    row: IntArray
    column: IntArray
    value: Array
    offset: Array
    strict: bool = False
    """Whether an absolute margin applies to these rows too."""


class Constraint(Protocol):
    """Something known of the parameters: its ``kind``, as run files call it, and the ``rows(layout)`` that it stands for.

    Examples:
        >>> import dynid
        >>> def kinds(known: list[dynid.Constraint]) -> list[str]:
        ...     return [one.kind for one in known]
        >>> kinds([dynid.TotalMass(upper=30.0)])
        ['total_mass']
    """

    kind: ClassVar[str]

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]: ...


def rows_of(
    cone: Literal["zero", "nonnegative", "second_order"],
    label: str,
    columns: IntArray,
    matrix: ArrayLike,
    offset: ArrayLike | None = None,
    strict: bool = False,
) -> ConeRows:
    """Rows from a small dense matrix over the given variables."""
    M = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    row, entry = np.nonzero(M)
    k = np.zeros(len(M)) if offset is None else np.atleast_1d(np.asarray(offset, dtype=np.float64))
    return ConeRows(cone, label, row, np.asarray(columns)[entry], M[row, entry], k, strict)


def checked_vector(name: str, values: Sequence[float]) -> Vector:
    """Three finite numbers, or a refusal that names what they should be."""
    numbers = tuple(float(value) for value in values)
    if len(numbers) != 3 or not np.isfinite(numbers).all():
        raise InputError(f"{name} is {list(values)}, expected three finite numbers")
    return numbers[0], numbers[1], numbers[2]


def checked_positive(name: str, value: float) -> float:
    """A positive number, or a refusal."""
    if not (np.isfinite(value) and value > 0.0):
        raise InputError(f"{name} is {value:g}, expected a positive number")
    return float(value)


def check_between(what: str, lower: float, upper: float) -> None:
    """Refuse bounds in the wrong order, or none at all."""
    if np.isnan(lower) or np.isnan(upper) or lower > upper:
        raise InputError(f"{what} has lower bound {lower:g} and upper bound {upper:g}, expected lower <= upper")
    if np.isinf(lower) and np.isinf(upper):
        raise InputError(f"{what} has no bound, expected a lower or an upper one")


def bounded_rows(label: str, columns: IntArray, coefficients: Array, lower: float, upper: float) -> tuple[ConeRows, ...]:
    """``lower <= a . phi <= upper``, as an equality where both are the same."""
    if lower == upper:
        return (rows_of("zero", label, columns, coefficients, -lower),)
    found = []
    if np.isfinite(lower):
        found.append(rows_of("nonnegative", f"{label} >= {lower:g}", columns, coefficients, -lower))
    if np.isfinite(upper):
        found.append(rows_of("nonnegative", f"{label} <= {upper:g}", columns, -coefficients, upper))
    return tuple(found)


@dataclass(frozen=True)
class FixedValues:
    """``phi_name = value`` for each name.

    Examples:
        >>> FixedValues({"Ia7": 0.0}).values["Ia7"]
        0.0
    """

    kind: ClassVar[str] = "fixed"
    values: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", {name: float(value) for name, value in self.values.items()})
        if not self.values or not np.isfinite(list(self.values.values())).all():
            raise InputError(f"fixed values are {dict(self.values)}, expected at least one finite number")

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        return tuple(
            rows_of("zero", f"{name} = {value:g}", np.array([layout.index(name)]), [[1.0]], -value)
            for name, value in self.values.items()
        )


@dataclass(frozen=True)
class PositiveEffects:
    """Rotor inertia, viscous and Coulomb friction and the like are not negative on any joint (Sousa 28).

    Which columns these are is said by the effects themselves, unless ``symbols`` names them.

    Examples:
        >>> PositiveEffects(("fv", "fc")).symbols
        ('fv', 'fc')
    """

    kind: ClassVar[str] = "positive"
    symbols: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbols", None if self.symbols is None else tuple(self.symbols))

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        symbols = nonnegative_symbols() if self.symbols is None else self.symbols
        present = [symbol for symbol in symbols if len(layout.with_symbol((symbol,)))]
        columns = layout.with_symbol(present)
        if not len(columns):
            return ()
        label = f"{', '.join(present)} not negative"
        return (rows_of("nonnegative", label, columns, np.eye(len(columns)), strict=True),)


@dataclass(frozen=True)
class Linear:
    """``lower <= sum_name terms[name] phi_name <= upper``; an equality where both bounds are the same.

    ``label`` is its name in messages.

    Examples:
        >>> Linear({"m1": 1.0, "m2": -1.0}, lower=0.0, label="link 1 is heavier").lower
        0.0
    """

    kind: ClassVar[str] = "linear"
    terms: Mapping[str, float]
    lower: float = -np.inf
    upper: float = np.inf
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", {name: float(value) for name, value in self.terms.items()})
        if not self.terms or not np.isfinite(list(self.terms.values())).all():
            raise InputError(f"linear constraint has terms {dict(self.terms)}, expected at least one finite coefficient")
        check_between(self.text, self.lower, self.upper)

    @property
    def text(self) -> str:
        return self.label or " + ".join(f"{value:g} {name}" for name, value in self.terms.items())

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        columns = np.array([layout.index(name) for name in self.terms])
        return bounded_rows(self.text, columns, np.array(list(self.terms.values())), self.lower, self.upper)


@dataclass(frozen=True, eq=False)
class PassiveFriction:
    """The friction of every joint, all its effects together, takes energy at every speed, see :mod:`dynid.estimation.friction.passivity`.

    ``v tau_odd(v) >= 0`` over the speeds of the robot. Where signs of the single values say so already, nothing is added.
    """

    kind: ClassVar[str] = "passive"
    condition: PassivityRows

    @classmethod
    def of(cls, robot: Robot, samples: Iterable[Any] = ()) -> PassiveFriction:
        """Over the velocity limits of a robot, the speeds of these samples, and more than their loads."""
        return cls(passivity_of(robot, FrictionReach.of(robot, samples).beyond(MORE_LOAD), implied=False))

    def rows(self, layout: Layout) -> tuple[ConeRows, ...]:
        if not len(self.condition):
            return ()
        known = np.array([layout.index(name) for name in self.condition.names])
        found = []
        for joint in dict.fromkeys(self.condition.joint):
            own = self.condition.G[[name == joint for name in self.condition.joint]]
            used = np.flatnonzero(np.abs(own).max(axis=0) > 0.0)
            found.append(rows_of("nonnegative", f"friction of {joint} drives it nowhere", known[used], own[:, used]))
        return tuple(found)
