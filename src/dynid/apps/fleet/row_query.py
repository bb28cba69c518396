"""Which rows of a store, ``robot=R1 and day>=2026-03-01 and tool=B`` taken apart by hand and never evaluated; and what they hold."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dynid.apps.fleet.entry import Entry, Key, parse_day
from dynid.apps.fleet.store import Store, open_store
from dynid.engine import Engine, Serial, Tell, one_blas_thread
from dynid.errors import InputError, listed

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


Comparison: TypeAlias = tuple[str, str, str]
"""Of the robot, the day, or a condition by its name: that name, the sign, and the value."""
RobotRows: TypeAlias = Sequence[Entry]
"""Rows of one robot, days in order."""
Result = TypeVar("Result")


def holds(comparison: Comparison, key: Key) -> bool:
    """Whether a row is among those meant; a row without the condition is not."""
    name, sign, value = comparison
    compare = _OPERATORS[sign]
    if name == "robot":
        return compare(key.robot, value)
    if name == "day":
        return compare(key.day, parse_day(value, "the day of --where"))
    own = key.condition.get(name)
    if own is None:
        return False
    try:
        return compare(float(own), float(value))
    except ValueError:
        return compare(own, value)


@dataclass(frozen=True)
class RowQuery:
    """Rows of a store: robots, days and conditions."""

    robots: tuple[str, ...] = ()
    first: datetime.date | None = None
    last: datetime.date | None = None
    comparisons: tuple[Comparison, ...] = ()

    @classmethod
    def of(
        cls,
        where: str | None = None,
        robots: Sequence[str] = (),
        from_day: str | datetime.date | None = None,
        to_day: str | datetime.date | None = None,
    ) -> RowQuery:
        """From the texts of the command line."""
        first = None if from_day is None else parse_day(from_day, "--from-day")
        last = None if to_day is None else parse_day(to_day, "--to-day")
        comparisons = () if where is None else parse_where(where)
        named = tuple(value for name, sign, value in comparisons if (name, sign) == ("robot", "="))
        return cls(tuple(robots) or named, first, last, comparisons)

    def by_robot(self, store: Store, *, light: bool = False) -> Iterator[tuple[str, list[Entry]]]:
        """The rows of one robot after another, days in order; at least one row."""
        known = store.robots
        for robot in self.robots:
            if robot not in known:
                raise InputError(
                    f"store '{store.folder}' has no robot '{robot}', it has {listed(known) or 'none'}; 'dynid store list' shows all"
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
        """Whether a row is among those meant."""
        return all(holds(comparison, key) for comparison in self.comparisons)


def parse_where(text: str) -> tuple[Comparison, ...]:
    """The comparisons of ``--where``."""
    comparisons = []
    for part in _AND.split(text.strip()):
        match = _CLAUSE.fullmatch(part)
        if match is None:
            raise InputError(
                f"--where has '{part}', expected comparisons joined by 'and', such as \"robot=R1 and day>=2026-03-01 and tool=B\""
            )
        name, sign, *values = match.groups()
        value = next(value for value in values if value is not None)
        if name == "day":
            parse_day(value, "the day of --where")
        comparisons.append((name, sign, value))
    return tuple(comparisons)


def map_robots(
    work: Callable[[Store, str, RobotRows], Result], store: Store, query: RowQuery, engine: Engine, tell: Tell
) -> list[Result]:
    """Work on the rows of every robot that a query names, one robot after another; an engine reads them where it works."""
    if isinstance(engine, Serial):
        found = []
        for name, entries in query.by_robot(store):
            tell(f"robot {name}")
            found.append(work(store, name, entries))
        return found
    next(query.by_robot(store, light=True))  # names that the store does not have are refused before any work
    each = engine.map(
        partial(on_robot, work, store.folder, query),
        query.robots or store.robots,
        lambda done, count: tell(f"robot {done} of {count}"),
    )
    return [one for one in each if one is not None]


def on_robot(work: Callable[[Store, str, RobotRows], Result], folder: Path, query: RowQuery, name: str) -> Result | None:
    """Work on one robot of the store in a folder; None where a query leaves it no row."""
    store = open_store(folder)
    entries = list(store.entries([name], query.first, query.last, query.keeps))
    if not entries:
        return None
    with one_blas_thread():
        return work(store, name, entries)


def list_contents(store: Store, query: RowQuery | None = None) -> dict[str, Any]:
    """Rows of every robot: days, conditions, seconds of motion, held-out error; and what the store has fixed."""
    run = store.run
    by_robot = dict((query or RowQuery()).by_robot(store, light=True)) if store.robots else {}
    return {
        "store": str(store.folder),
        "robot": run.robot.name,
        "fixed": store.fixed,
        "filter": None if run.filter is None else run.filter.describe(),
        "rows": run.rows.kind,
        "effects": [effect.label for effect in run.robot.effects],
        "n_rows": sum(len(own) for own in by_robot.values()),
        "robots": [_robot(name, own) for name, own in by_robot.items()],
    }


def _robot(name: str, entries: list[Entry]) -> dict[str, Any]:
    days = sorted({entry.key.day for entry in entries})
    errors = [entry.held_out_error for entry in entries if np.isfinite(entry.held_out_error)]
    return {
        "id": name,
        "rows": len(entries),
        "logs": sum(len(entry.logs) for entry in entries),
        "days": len(days),
        "first_day": days[0].isoformat(),
        "last_day": days[-1].isoformat(),
        "conditions": sorted({f"{key}={value}" for entry in entries for key, value in entry.key.condition.items()}),
        "seconds": float(sum(entry.seconds for entry in entries)),
        "held_out_error": float(np.median(errors)) if errors else None,
    }
