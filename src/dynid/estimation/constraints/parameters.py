"""What may be known of single parameters and of friction: fixed values, signs, linear combinations, friction that drives nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dynid.errors import InputError
from dynid.estimation.constraints.base import ConeRows, Layout, bounded_rows, check_between, rows_of
from dynid.estimation.friction.passivity import MORE_LOAD, FrictionReach, PassivityRows, passivity_of
from dynid.model.effects import nonnegative_symbols
from dynid.model.robot import Robot


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
