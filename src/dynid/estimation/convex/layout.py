"""Which variable of a constrained problem is which parameter of which link.

Published groupings leave out parameters without effect (``m1``, say); consistency of the link still involves them, so they
become free variables after the named ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from dynid.arrays import Array, IntArray, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.completion import parameter_scale
from dynid.naming import canonical_name, canonical_names, split_name
from dynid.parameters import INERTIAL_SYMBOLS, Parameters


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
        """The layout of named parameters, in the names of :mod:`dynid.naming`."""
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
        return cls(tuple(known), n_named, tuple(links), freeze(slots, np.int64), MappingProxyType(dict(aliases or {})))

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

    @cached_property
    def contiguous(self) -> bool:
        """Whether the inertial variables stand first, ten per link in order."""
        return bool((self.slots.ravel() == np.arange(self.slots.size)).all())

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
