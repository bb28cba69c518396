"""The columns of a log by name, and those that hold a quantity of each joint.

A column belongs to a joint by the joint's name, or else by its number (from 0 or from 1, whichever the log uses), never
by its place in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dynid.errors import InputError, UnknownNameError
from dynid.recording.readers.joints import LogJoints
from dynid.recording.readers.names import EVERY_ALIAS, QUALIFIED, STEMS, aliases, fold, joint_forms, listed, numbered


@dataclass(frozen=True)
class Slot:
    """One number per row: a column, or one element of a column that holds a list per row; negated where a mapping says so."""

    column: str
    element: int | None = None
    negated: bool = False

    def __str__(self) -> str:
        return self.column if self.element is None else f"{self.column}[{self.element}]"


@dataclass(frozen=True)
class LogColumns:
    """The columns of one log: name to the shape of one row's entry, and names of the elements of list columns."""

    where: str
    shapes: Mapping[str, tuple[int, ...]]
    element_names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def folded(self) -> dict[str, list[str]]:
        """Columns by their folded name."""
        found: dict[str, list[str]] = {}
        for name in self.shapes:
            found.setdefault(fold(name), []).append(name)
        return found

    def one(self, folded: str) -> str | None:
        """The only column of plain numbers folded like this; several that look alike are refused."""
        found = [name for name in self.folded.get(folded, ()) if self.shapes[name] == ()]
        if len(found) > 1:
            raise InputError(f"{self.where}: columns '{found[0]}' and '{found[1]}' mean the same, expected one of them")
        return found[0] if found else None

    def only(self, name: str) -> str | None:
        """The column of plain numbers called ``name``, exactly or after folding."""
        return name if self.shapes.get(name) == () else self.one(fold(name))


@dataclass(frozen=True)
class Match:
    """Columns of one alias: joint index to slot; by number the index may exceed the joints there are.

    ``extra`` gives names of joints that are not the robot's and their columns; ``held`` the columns of locked joints,
    where the numbers are those of all joints that numbered columns can stand for, ``numbers_all``.
    """

    alias: str
    slots: Mapping[int, Slot]
    by_number: bool
    extra: Mapping[str, Slot] = field(default_factory=dict)
    held: Mapping[str, Slot] = field(default_factory=dict)
    numbers_all: bool = False

    @property
    def n_columns(self) -> int:
        """How many columns the log has of it, those of locked joints included."""
        return len(self.slots) + len(self.held)


@dataclass(frozen=True)
class JointColumns:
    """The columns of one log matched to the joints of one robot."""

    columns: LogColumns
    joints: LogJoints

    @property
    def where(self) -> str:
        """The file, for messages."""
        return self.columns.where

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Column name to the shape of one row's entry."""
        return self.columns.shapes

    @property
    def names(self) -> tuple[str, ...]:
        """The joints to read."""
        return self.joints.names

    @cached_property
    def _forms(self) -> dict[str, int]:
        return joint_forms(self.names)

    @cached_property
    def _by_head(self) -> dict[str, list[tuple[int, str]]]:
        """Numbered columns, folded, by what stands beside the number."""
        found: dict[str, list[tuple[int, str]]] = {}
        for folded in self.columns.folded:
            heads, number = numbered(folded) or (frozenset[str](), 0)
            for head in heads:
                found.setdefault(head, []).append((number, folded))
        return found

    @cached_property
    def _by_joint(self) -> dict[str, list[tuple[int, str]]]:
        """Columns that name a joint, folded, by what stands beside the name."""
        found: dict[str, list[tuple[int, str]]] = {}
        for form, index in self._forms.items():
            for folded in self.columns.folded:
                if folded.endswith("_" + form):
                    found.setdefault(folded[: -len(form) - 1], []).append((index, folded))
                if folded.startswith(form + "_"):
                    found.setdefault(folded[len(form) + 1 :], []).append((index, folded))
        return found

    # -- the ways to find the columns of a quantity ----

    def by_alias(self, quantity: str) -> Match | None:
        """The best set of columns for ``quantity``: complete ones first, names before numbers, likelier names first."""
        candidates: list[Match] = []
        for alias in aliases(quantity):
            candidates += self._lists(alias)
            candidates += self._named(alias)
            candidates += self._numbered(alias)
            if len(self.names) == 1 and (column := self.columns.one(alias)) is not None:
                candidates.append(Match(alias, {0: Slot(column)}, by_number=False))
        return self._best(candidates)

    def by_pattern(self, patterns: Sequence[str]) -> Match | None:
        """Columns of patterns with ``{joint}``, ``{index}`` (from 0), ``{number}`` (from 1), or of a list column."""
        candidates: list[Match] = []
        for pattern in patterns:
            if not re.search(r"\{(joint|index|number)\}", pattern):
                candidates += self._lists(fold(pattern))
                continue
            by_number = "{joint}" not in pattern
            count = len(self.shapes) if by_number else len(self.names)
            slots: dict[int, Slot] = {}
            for k in range(count):
                joint = self.names[k] if k < len(self.names) else ""
                name = pattern.replace("{joint}", joint).replace("{index}", str(k)).replace("{number}", str(k + 1))
                if name in self.shapes:
                    slots[k] = Slot(name)
                elif (column := self.columns.one(fold(name))) is not None:
                    slots[k] = Slot(column)
            if slots:
                candidates.append(Match(pattern, slots, by_number))
        return self._best(candidates)

    def by_mapping(self, quantity: str, columns: str | Sequence[str] | Mapping[str, str]) -> Match:
        """The columns that a mapping names: a pattern or list column, columns in joint order, or a table by joint."""
        if isinstance(columns, str):
            pattern, turned = self._without_sign(columns)
            match = self.by_pattern([pattern])
            if match is None:
                raise InputError(
                    f"{self.where}: no column fits the mapping '{columns}' of {quantity}; found {listed(self.shapes)}"
                )
            slots = {k: replace(slot, negated=True) for k, slot in match.slots.items()}
            return replace(match, slots=slots) if turned else match
        named = dict(columns) if isinstance(columns, Mapping) else dict(enumerate(columns))
        named_slots: dict[int, Slot] = {}
        for key, text in named.items():
            column, negated = self._without_sign(text)
            if column not in self.shapes:
                raise UnknownNameError(f"{quantity} column", column, self.shapes, self.where)
            if self.shapes[column] != ():
                raise InputError(f"{self.where}: column '{column}' holds lists, expected one number per row")
            if isinstance(key, str) and key not in self.names:
                raise UnknownNameError("joint", key, self.names, f"the mapping of {quantity}")
            named_slots[self.names.index(key) if isinstance(key, str) else key] = Slot(column, negated=negated)
        return self._to_joints(Match("mapping", named_slots, by_number=not isinstance(columns, Mapping)))

    def _without_sign(self, text: str) -> tuple[str, bool]:
        """A column, and whether a minus before it turns it round; a column may also be called so."""
        turned = text.startswith("-") and text not in self.shapes
        return text[1:].strip() if turned else text, turned

    def complete(self, match: Match) -> bool:
        """Whether a match has one column for each joint to read and, by number, no other column."""
        n = len(self.names)
        covered = all(index in match.slots for index in range(n))
        if not match.by_number:
            return covered
        return covered and len(match.slots) == n and (match.numbers_all or not self.joints.given)

    def _best(self, candidates: Iterable[Match]) -> Match | None:
        resolved = [self._to_joints(match) for match in candidates]
        whole = next((match for match in resolved if self.complete(match)), None)
        return whole or max(resolved, key=lambda match: len(match.slots), default=None)

    def _to_joints(self, match: Match) -> Match:
        """Numbers of columns as places among the joints to read, where they can only be those of ``joints.numbered``."""
        n, every = len(self.names), len(self.joints.numbered)
        numbers = set(match.slots)
        if not match.by_number:
            return match
        if self.joints.given:
            fits = numbers == set(range(every))
        else:
            fits = n < every and numbers != set(range(n)) and set(self.joints.kept) <= numbers <= set(range(every))
        if not fits:
            return match
        held = {self.joints.numbered[k]: slot for k, slot in match.slots.items() if k not in self.joints.kept}
        slots = {k: match.slots[i] for k, i in enumerate(self.joints.kept)}
        return replace(match, slots=slots, held=held, numbers_all=True)

    def _named(self, alias: str) -> list[Match]:
        slots: dict[int, Slot] = {}
        for index, folded in self._by_joint.get(alias, ()):
            if (column := self.columns.one(folded)) is None:
                continue
            if index in slots and slots[index].column != column:
                raise InputError(
                    f"{self.where}: columns '{slots[index]}' and '{column}' both name joint "
                    f"'{self.names[index]}', expected one of them"
                )
            slots[index] = Slot(column)
        if not slots:
            return []
        used = {slot.column for slot in slots.values()}
        rest = ((self._other_joint(alias, name), name) for name in self.shapes if name not in used)
        return [Match(alias, slots, by_number=False, extra={joint: Slot(name) for joint, name in rest if joint})]

    def _other_joint(self, alias: str, column: str) -> str | None:
        """The joint name in a column of this alias that is not a joint of the robot."""
        if self.shapes[column] != ():
            return None
        folded = fold(column)
        if folded.startswith(alias + "_"):
            rest = folded[len(alias) + 1 :]
        elif folded.endswith("_" + alias):
            rest = folded[: -len(alias) - 1]
        else:
            return None
        # `q_ref_wrist` is another quantity, not a joint called `ref_wrist`.
        if any(f"{alias}_{rest}".startswith(other + "_") for other in EVERY_ALIAS if other != alias):
            return None
        parsed = numbered(folded)
        return None if parsed is not None and parsed[0] & EVERY_ALIAS else rest

    def _numbered(self, alias: str) -> list[Match]:
        columns: dict[int, str] = {}
        for number, folded in self._by_head.get(alias, ()):
            column = self.columns.one(folded)
            if column is None:
                continue
            if number in columns:
                raise InputError(
                    f"{self.where}: columns '{columns[number]}' and '{column}' mean the same, expected one of them"
                )
            columns[number] = column
        if not columns:
            return []
        base = 0 if 0 in columns else 1
        return [Match(alias, {number - base: Slot(name) for number, name in columns.items()}, by_number=True)]

    def _lists(self, alias: str) -> list[Match]:
        return [self._elements(column) for column in self.columns.folded.get(alias, ()) if len(self.shapes[column]) == 1]

    def _elements(self, column: str) -> Match:
        """The elements of a list column, by their names where the file has them, else by number."""
        width = self.shapes[column][0]
        names = self.columns.element_names.get(column, ())
        if len(names) == width:
            places = {element: self._joint_of(name) for element, name in enumerate(names)}
            slots = {index: Slot(column, element) for element, index in places.items() if index is not None}
            extra = {names[element]: Slot(column, element) for element, index in places.items() if index is None}
            if slots:
                return Match(column, slots, by_number=False, extra=extra)
        return Match(column, {k: Slot(column, k) for k in range(width)}, by_number=True)

    def _joint_of(self, name: str) -> int | None:
        folded = fold(name)
        if folded in self._forms:
            return self._forms[folded]
        for quantity in QUALIFIED:
            for alias in STEMS[quantity]:
                for form in (folded.removesuffix("_" + alias), folded.removeprefix(alias + "_")):
                    if form in self._forms:
                        return self._forms[form]
        return None
