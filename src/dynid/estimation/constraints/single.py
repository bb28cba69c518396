"""Single parameters: fixed values, signs of effects, any linear combination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dynid.errors import InputError
from dynid.estimation.constraints.rows import Rows, bounded_rows, check_between, rows_of
from dynid.estimation.convex.layout import Layout
from dynid.robot.effects import nonnegative_symbols


@dataclass(frozen=True)
class FixedValues:
    """``phi_name = value`` for each name."""

    kind: ClassVar[str] = "fixed"
    values: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", {name: float(value) for name, value in self.values.items()})
        if not self.values or not np.isfinite(list(self.values.values())).all():
            raise InputError(f"fixed values are {dict(self.values)}, expected at least one finite number")

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        return tuple(
            rows_of("zero", f"{name} = {value:g}", np.array([layout.index(name)]), [[1.0]], -value)
            for name, value in self.values.items()
        )


@dataclass(frozen=True)
class PositiveEffects:
    """Rotor inertia, viscous and Coulomb friction and the like are not negative on any joint (Sousa 28).

    Which columns these are is said by the effects themselves, unless ``symbols`` names them.
    """

    kind: ClassVar[str] = "positive"
    symbols: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbols", None if self.symbols is None else tuple(self.symbols))

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        symbols = nonnegative_symbols() if self.symbols is None else self.symbols
        present = [symbol for symbol in symbols if len(layout.with_symbol((symbol,)))]
        columns = layout.with_symbol(present)
        if not len(columns):
            return ()
        label = f"{', '.join(present)} not negative"
        return (rows_of("nonnegative", label, columns, np.eye(len(columns)), strict=True),)


@dataclass(frozen=True)
class Linear:
    """``lower <= sum_name terms[name] phi_name <= upper``; an equality where both bounds are the same."""

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

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        columns = np.array([layout.index(name) for name in self.terms])
        return bounded_rows(self.text, columns, np.array(list(self.terms.values())), self.lower, self.upper)
