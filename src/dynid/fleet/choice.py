"""Which rows of a store: ``robot=R1 and day>=2026-03-01 and tool=B``, taken apart by hand, never evaluated."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynid.errors import InputError
from dynid.fleet.add import parsed_day
from dynid.fleet.entry import Entry, Key
from dynid.fleet.store import Store
from dynid.naming import listed

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_CLAUSE = re.compile(r"\s*([^\s=<>!]+)\s*(>=|<=|!=|=|>|<)\s*(?:'([^']*)'|\"([^\"]*)\"|(\S+))\s*")
_AND = re.compile(r"\s+and\s+")


@dataclass(frozen=True)
class Clause:
    """One comparison: of the robot, the day, or a condition by its name."""

    name: str
    sign: str
    value: str

    def holds(self, key: Key) -> bool:
        """Whether a row is among those meant; a row without the condition is not."""
        compare = _OPERATORS[self.sign]
        if self.name == "robot":
            return compare(key.robot, self.value)
        if self.name == "day":
            return compare(key.day, parsed_day(self.value, "the day of --where"))
        own = key.condition.get(self.name)
        if own is None:
            return False
        try:
            return compare(float(own), float(self.value))
        except ValueError:
            return compare(own, self.value)


@dataclass(frozen=True)
class Choice:
    """Rows of a store: robots, days and conditions."""

    robots: tuple[str, ...] = ()
    first: datetime.date | None = None
    last: datetime.date | None = None
    clauses: tuple[Clause, ...] = field(default=())

    @classmethod
    def of(
        cls,
        where: str | None = None,
        robots: Sequence[str] = (),
        from_day: str | datetime.date | None = None,
        to_day: str | datetime.date | None = None,
    ) -> Choice:
        """From the texts of the command line."""
        first = None if from_day is None else parsed_day(from_day, "--from-day")
        last = None if to_day is None else parsed_day(to_day, "--to-day")
        clauses = () if where is None else parsed_where(where)
        named = tuple(clause.value for clause in clauses if clause.name == "robot" and clause.sign == "=")
        return cls(tuple(robots) or named, first, last, clauses)

    def by_robot(self, store: Store, *, light: bool = False) -> Iterator[tuple[str, list[Entry]]]:
        """The rows of one robot after another, days in order; at least one row."""
        known = store.robots
        for robot in self.robots:
            if robot not in known:
                raise InputError(
                    f"store '{store.folder}' has no robot '{robot}', it has {_some(known)}; 'dynid store list' shows all"
                )
        empty = True
        for robot in self.robots or known:
            found = list(store.entries([robot], self.first, self.last, self.keeps, light=light))
            if found:
                empty = False
                yield robot, found
        if empty:
            raise InputError(f"store '{store.folder}' has no row that matches; 'dynid store list' shows all")

    def keeps(self, key: Key) -> bool:
        return all(clause.holds(key) for clause in self.clauses)


def parsed_where(text: str) -> tuple[Clause, ...]:
    """The comparisons of ``--where``."""
    clauses = []
    for part in _AND.split(text.strip()):
        match = _CLAUSE.fullmatch(part)
        if match is None:
            raise InputError(
                f"--where has '{part}', expected comparisons joined by 'and', such as \"robot=R1 and day>=2026-03-01 and tool=B\""
            )
        name, sign, *values = match.groups()
        value = next(value for value in values if value is not None)
        if name == "day":
            parsed_day(value, "the day of --where")
        clauses.append(Clause(name, sign, value))
    return tuple(clauses)


def _some(names: Sequence[str]) -> str:
    return listed(names) or "none"
