"""The joints of a log, and the columns that hold a quantity of each.

A column belongs to a joint by the joint's name, or else by its number (from 0 or from 1, whichever the log uses), never
by its place in the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from dynid.errors import InputError, UnknownNameError, listed
from dynid.io.logs.names import EVERY_ALIAS, QUALIFIED, STEMS, aliases, fold, joint_forms, near_name, numbered


@runtime_checkable
class HasJoints(Protocol):
    """Anything that names its moving joints in order, such as a robot."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints."""


class MissingJointsError(InputError):
    """A log that names its joints lacks some of the robot's; carries which are ``present`` and which ``missing``.

    ``misspelt`` gives columns that are not used and the missing joint whose name is close to theirs.
    """

    def __init__(
        self,
        where: str,
        present: Sequence[str],
        missing: Sequence[str],
        *,
        locked: Collection[str] = (),
        misspelt: Mapping[str, str] | None = None,
    ) -> None:
        self.present = tuple(present)
        self.missing = tuple(missing)
        self.misspelt = dict(misspelt or {})
        robot = len(self.present) + len(self.missing)
        hints = "".join(
            f"; column '{column}' is not used: did you mean '{joint}'?" for column, joint in self.misspelt.items()
        )
        super().__init__(
            f"{where}: log has {len(self.present)} position columns, robot has {robot} joints{besides(locked)}; "
            f"missing: {listed(self.missing)}{hints}"
        )

    def note(self, what: str) -> str:
        """That the joints are held, where what names its columns may lack some."""
        return (
            f"{what} lacks {len(self.missing)} of the robot's joints ({listed(self.missing)}): locked at neutral and merged"
        )


def besides(locked: Collection[str]) -> str:
    """Locked joints, as an addition to a number of joints in a message."""
    return f" besides the locked {', '.join(locked)}" if locked else ""


@dataclass(frozen=True)
class LogJoints:
    """The joints of a log.

    ``names`` are the joints to read, in the robot's order. Numbered columns stand for the joints in ``numbered``, in that
    order; locked ones among them are not read. ``described`` are all joints of the robot. ``given`` is true where the
    user named the joints of the columns.
    """

    names: tuple[str, ...]
    numbered: tuple[str, ...]
    described: tuple[str, ...]
    locked: Mapping[str, float] = field(default_factory=dict)
    given: bool = False
    branched: bool = False

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """Place of each joint to read among the numbered ones."""
        return tuple(self.numbered.index(name) for name in self.names)

    def in_order(self, values: Any) -> Any:
        """Values per joint, as a sequence or a table by name, for the joints to read alone.

        A sequence may be over the joints to read, over those that numbered columns stand for, or over all joints of the
        robot. Any other length is returned as it is, for the caller to refuse.
        """
        if isinstance(values, Mapping):
            return {name: value for name, value in values.items() if name in self.names or name not in self.described}
        if values is None or isinstance(values, str):
            return values
        if len(values) == len(self.numbered):
            return [values[k] for k in self.kept]
        if len(values) == len(self.described):
            return [values[self.described.index(name)] for name in self.names]
        return values

    def order_note(self) -> str | None:
        """Which joint each numbered column is taken for, where that is not obvious: trees, names with other numbers."""
        ends = [re.search(r"(\d{1,9})\D*$", name) for name in self.names]
        digits = [int(found[1]) for found in ends if found is not None]
        mixed = len(digits) == len(self.names) and digits != sorted(digits)
        if not (self.branched or mixed or self.given):
            return None
        return f"numbered columns are taken for the joints in this order: {', '.join(self.numbered if self.given else self.names)}"


def joints_of(robot: HasJoints | Sequence[str], given: Sequence[str] | None, needed: bool = True) -> LogJoints:
    """The joints of a robot, or of a sequence of names; ``given`` are those of the log's columns, in order.

    Where joints are not ``needed``, as in the log of a sensor with its own motion, there may be none.
    """
    names = tuple(robot.joint_names if isinstance(robot, HasJoints) else robot)
    if isinstance(robot, str) or (needed and not names):
        raise InputError(f"robot is {robot!r}, expected a robot with joints or a sequence of joint names")
    # a robot knows which of its joints are locked, and the order of all joints before that
    described, locked = tuple(getattr(robot, "described_joints", names)), dict(getattr(robot, "locked", {}))
    parents = [joint.parent for joint in getattr(robot, "joints", ())]
    branched = parents != list(range(-1, len(parents) - 1))
    if given is None:
        return LogJoints(names, described, described, locked, branched=branched)
    for name in given:
        if name not in described:
            raise UnknownNameError("joint", name, described, "the joints of the columns")
    chosen = tuple(name for name in names if name in given)
    if not chosen:
        raise InputError(
            f"joints names only locked joints ({', '.join(given)}), expected one that moves: {', '.join(names)}"
        )
    return LogJoints(chosen, tuple(given), described, locked, given=True, branched=branched)


@dataclass(frozen=True)
class Slot:
    """One number per row: a column, or one element of a column that holds a list per row; negated where a mapping says so."""

    column: str
    element: int | None = None
    negated: bool = False

    def __str__(self) -> str:
        return self.column if self.element is None else f"{self.column}[{self.element}]"


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

    def column_like(self, k: int) -> str:
        """How the numbered column of a joint would be called, by the first of those that are there."""
        first = min(self.slots)
        column = re.fullmatch(r"(.*?)(\d+)(\D*)", str(self.slots[first]))
        return str(self.slots[first]) if column is None else f"{column[1]}{int(column[2]) + k - first}{column[3]}"


@dataclass(frozen=True)
class JointColumns:
    """The columns of one log, to be matched to the joints of one robot.

    ``shapes`` gives the shape of one row's entry by column, ``element_names`` the names of the elements of list columns.
    """

    where: str
    joints: LogJoints
    shapes: Mapping[str, tuple[int, ...]]
    element_names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The joints to read."""
        return self.joints.names

    def found(self) -> str:
        """The columns there are, for a message."""
        return listed(self.shapes, 12, of="columns")

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

    @cached_property
    def _forms(self) -> dict[str, int]:
        return joint_forms(self.names)

    @cached_property
    def _by_head(self) -> dict[str, list[tuple[int, str]]]:
        """Numbered columns, folded, by what stands beside the number."""
        found: dict[str, list[tuple[int, str]]] = {}
        for folded in self.folded:
            heads, number = numbered(folded) or (frozenset[str](), 0)
            for head in heads:
                found.setdefault(head, []).append((number, folded))
        return found

    @cached_property
    def _by_joint(self) -> dict[str, list[tuple[int, str]]]:
        """Columns that name a joint, folded, by what stands beside the name."""
        found: dict[str, list[tuple[int, str]]] = {}
        for form, index in self._forms.items():
            for folded in self.folded:
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
            if len(self.names) == 1 and (column := self.one(alias)) is not None:
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
                elif (column := self.one(fold(name))) is not None:
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
                raise InputError(f"{self.where}: no column fits the mapping '{columns}' of {quantity}; found {self.found()}")
            slots = {k: replace(slot, negated=True) for k, slot in match.slots.items()}
            return replace(match, slots=slots) if turned else match
        named = dict(columns) if isinstance(columns, Mapping) else dict(enumerate(columns))
        named_slots: dict[int, Slot] = {}
        for key, text in named.items():
            if isinstance(key, str) and key not in self.names:
                raise UnknownNameError("joint", key, self.names, f"the mapping of {quantity}")
            named_slots[self.names.index(key) if isinstance(key, str) else key] = self.named_slot(text, f"{quantity} column")
        return self._to_joints(Match("mapping", named_slots, by_number=not isinstance(columns, Mapping)))

    def named_slot(self, text: str, what: str = "column") -> Slot:
        """The column of plain numbers that a mapping names, turned round by a minus before it."""
        column, negated = self._without_sign(text)
        if column not in self.shapes:
            raise UnknownNameError(what, column, self.shapes, self.where)
        if self.shapes[column] != ():
            raise InputError(f"{self.where}: column '{column}' holds lists, expected one number per row")
        return Slot(column, negated=negated)

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

    def lacks(self, match: Match) -> str:
        """The first joint without a column, how that would be called, and one whose name is close to it; as part of a sentence."""
        lacking = [k for k in range(len(self.names)) if k not in match.slots]
        if not lacking or not match.slots:
            return ""
        joint, like = self.names[lacking[0]], min(match.slots)
        have = str(match.slots[like])
        wanted = match.column_like(lacking[0]) if match.by_number else have.replace(self.names[like], joint)
        near = next((slot for name, slot in match.extra.items() if near_name(name, [joint])), None)
        called = "" if wanted == have else f" '{wanted}'"
        told = f"; no column{called} for joint '{joint}'"
        return told + ("" if near is None else f": did you mean column '{near}'?")

    def slots(self, match: Match) -> tuple[Slot, ...]:
        """The slot of every joint to read, in order."""
        return tuple(match.slots[index] for index in range(len(self.names)))

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
            if (column := self.one(folded)) is None:
                continue
            if index in slots and slots[index].column != column:
                raise InputError(
                    f"{self.where}: columns '{slots[index]}' and '{column}' both name joint "
                    f"'{self.names[index]}', expected one of them"
                )
            slots[index] = Slot(column)
        if not slots:
            return []
        used, extra = {slot.column for slot in slots.values()}, dict[str, Slot]()
        for name in (name for name, shape in self.shapes.items() if shape == () and name not in used):
            folded, number = fold(name), numbered(fold(name))
            joint = folded.removeprefix(alias + "_")
            joint = joint if joint != folded else folded.removesuffix("_" + alias)
            # `q_ref_wrist` is another quantity, not a joint called `ref_wrist`.
            other = any(f"{alias}_{joint}".startswith(one + "_") for one in EVERY_ALIAS if one != alias)
            if joint not in ("", folded) and not other and not (number is not None and number[0] & EVERY_ALIAS):
                extra[joint] = Slot(name)
        return [Match(alias, slots, by_number=False, extra=extra)]

    def _numbered(self, alias: str) -> list[Match]:
        columns: dict[int, str] = {}
        for number, folded in self._by_head.get(alias, ()):
            column = self.one(folded)
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
        """The elements of list columns, by their names where the file has them, else by number."""
        matches = []
        for column in self.folded.get(alias, ()):
            if len(self.shapes[column]) != 1:
                continue
            width, names = self.shapes[column][0], self.element_names.get(column, ())
            places = [self._forms.get(next(filter(self._forms.__contains__, _without_quantity(name)), "")) for name in names]
            places = places if len(names) == width else []
            slots = {index: Slot(column, element) for element, index in enumerate(places) if index is not None}
            extra = {names[element]: Slot(column, element) for element, index in enumerate(places) if index is None}
            by_number = {k: Slot(column, k) for k in range(width)}
            matches.append(Match(column, slots, False, extra) if slots else Match(column, by_number, True))
        return matches


def _without_quantity(name: str) -> Iterator[str]:
    """A name of an element, folded, and what is left of it without a quantity before or behind."""
    yield (folded := fold(name))
    for alias in (alias for quantity in QUALIFIED for alias in STEMS[quantity]):
        yield from (folded.removesuffix("_" + alias), folded.removeprefix(alias + "_"))
