"""Which column of a log is which quantity of which joint.

Names are compared after folding case and separators, so ``shoulder_pan.q``, ``q[shoulder_pan]`` and
``Q/Shoulder_Pan`` are one name. A column belongs to a joint by the joint's name, or else by its number (from
0 or from 1, whichever the log uses), never by its place in the file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from dynid.errors import InputError, UnknownNameError
from dynid.recording.finding import Finding
from dynid.recording.recording import COLUMN_OF_BODY_MOTION, COLUMN_OF_QUANTITY


@runtime_checkable
class HasJoints(Protocol):
    """Anything that names its moving joints in order, such as a robot."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints."""


@runtime_checkable
class HasLockedJoints(HasJoints, Protocol):
    """A robot that knows which of its joints are held, and the order of all joints before that."""

    @property
    def described_joints(self) -> tuple[str, ...]:
        """Names of all joints of the description, in order."""

    @property
    def locked(self) -> Mapping[str, float]:
        """Joints that are held, each with its position."""


class MissingJointsError(InputError):
    """The log lacks joints of the robot; carries which are ``present`` and which ``missing``.

    ``by_number`` tells that the log numbers its columns, so that the present joints are the robot's first
    ones. ``misspelt`` names columns that are not used and the missing joint whose name is nearly theirs.
    """

    def __init__(
        self,
        where: str,
        present: Sequence[str],
        missing: Sequence[str],
        *,
        by_number: bool,
        locked: Collection[str] = (),
        misspelt: Mapping[str, str] | None = None,
    ) -> None:
        self.present = tuple(present)
        self.missing = tuple(missing)
        self.by_number = by_number
        self.misspelt = dict(misspelt or {})
        robot = len(self.present) + len(self.missing)
        hints = "".join(
            f"; column '{column}' is not used: did you mean '{joint}'?" for column, joint in self.misspelt.items()
        )
        super().__init__(
            f"{where}: log has {len(self.present)} position columns, robot has {robot} joints{besides(locked)}; "
            f"missing: {', '.join(self.missing)}{hints}"
        )


@dataclass(frozen=True)
class Slot:
    """One number per row: a column, or one element of a column that holds a list per row."""

    column: str
    element: int | None = None

    def __str__(self) -> str:
        return self.column if self.element is None else f"{self.column}[{self.element}]"


@dataclass(frozen=True)
class ColumnPlan:
    """What to read: ``time`` is empty, one column, or a column of seconds and one of nanoseconds."""

    joint_names: tuple[str, ...]
    time: tuple[str, ...]
    time_unit: str | None
    slots: Mapping[str, tuple[Slot, ...]]
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    held: Mapping[str, Slot] = field(default_factory=dict)
    """Position columns of locked joints, which are only compared with the position they are locked at."""
    by_number: bool = False
    """Whether joints were told by the numbers of the position columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column to read, once."""
        wanted = [*self.time, *(slot.column for slots in self.slots.values() for slot in slots)]
        wanted += [slot.column for slot in self.held.values()]
        return tuple(dict.fromkeys(wanted))


_STEMS: Mapping[str, tuple[str, ...]] = {
    "position": ("q", "pos", "position", "positions", "angle", "jpos", "joint_angle"),
    "velocity": ("dq", "qd", "qdot", "v", "vel", "velocity", "velocities", "speed", "jvel"),
    "acceleration": ("ddq", "qdd", "qddot", "acc", "accel", "acceleration", "accelerations"),
    "torque": ("tau", "tau_j", "torque", "torques", "effort", "efforts", "trq"),
    "current": ("i", "current", "currents", "motor_current", "amps"),
    "reference_position": (
        "q_ref", "q_des", "q_d", "q_cmd", "target_q", "commanded_joint_position", "reference_position",
        "position_reference", "target_position", "command_position", "action",
    ),
    "external_torque": (
        "tau_ext", "external_torque", "tau_external", "tau_ext_hat_filtered", "external_joint_torque",
    ),
    "gravity": ("g", "gravity", "gravity_torque"),
}  # fmt: skip
_QUALIFIERS = (
    "", "actual_", "measured_", "joint_", "measured_joint_", "actual_joint_", "meas_", "msr_", "observation_"
)  # fmt: skip
_QUALIFIERS_AFTER = ("_actual", "_measured", "_meas", "_msr")
_QUALIFIED = ("position", "velocity", "acceleration", "torque", "current")
#: Names that are a quantity as a whole, not a stem with a qualifier.
_WHOLE: Mapping[str, tuple[str, ...]] = {"position": ("observation_state",)}
_NAMESPACES = ("joint_states_", "robot_state_", "state_")

AUXILIARY = ("reference_position", "external_torque")
_WORD: Mapping[str, str] = {"reference_position": "reference position", "external_torque": "external torque"}

_TIME = (
    "t", "time", "timestamp", "stamp", "time_stamp", "timestamps", "header_stamp", "clock", "seconds", "sec",
    "secs", "duration", "elapsed", "elapsed_time", "time_since_start",
)  # fmt: skip
_TIME_UNITS: Mapping[str, str] = {
    "s": "s", "sec": "s", "secs": "s", "seconds": "s",
    "ms": "ms", "msec": "ms", "millis": "ms", "milliseconds": "ms",
    "us": "us", "usec": "us", "micros": "us", "microseconds": "us",
    "ns": "ns", "nsec": "ns", "nsecs": "ns", "nanos": "ns", "nanosec": "ns", "nanoseconds": "ns",
}  # fmt: skip
_NANOSECONDS = ("nanoseconds", "nanosecs", "nanosec", "nano_sec", "nsecs", "nsec")
_SECONDS = ("sec", "secs", "seconds")

_INERTIA = ("m", "inertia", "mass_matrix", "inertia_matrix")
_MATRIX_ENTRY = re.compile(r"M[_\[( ]?\d+[_, ]*\d+[\])]?")

_FORCE = ("f", "force", "wrench_force", "ft_force", "forces")
_MOMENT = ("m", "t", "moment", "torque", "wrench_torque", "ft_torque", "tau")
_WRENCH = ("wrench", "ft", "force_torque", "actual_tcp_force", "ft_raw_wrench")
_BODY: Mapping[str, tuple[str, ...]] = {
    "linear_velocity": ("v", "linear_velocity", "twist_linear", "velocity_linear"),
    "angular_velocity": ("w", "omega", "angular_velocity", "twist_angular", "gyro", "gyroscope"),
    "linear_acceleration": ("a", "acc", "linear_acceleration", "proper_acceleration", "accelerometer"),
    "angular_acceleration": ("alpha", "dw", "domega", "angular_acceleration"),
}


def fold(name: str) -> str:
    """Lower case, every separator an underscore, the namespace of joint-state exports dropped."""
    folded = re.sub(r"[^0-9a-z]+", "_", name.strip().lower()).strip("_")
    for namespace in _NAMESPACES:
        if folded.startswith(namespace) and len(folded) > len(namespace):
            return folded[len(namespace) :]
    return folded


def aliases(quantity: str) -> tuple[str, ...]:
    """Every folded name under which ``quantity`` is looked for, the likeliest first."""
    stems = _STEMS[quantity]
    names = [*stems]
    if quantity in _QUALIFIED:
        names += [qualifier + stem for qualifier in _QUALIFIERS for stem in stems]
        names += [stem + qualifier for qualifier in _QUALIFIERS_AFTER for stem in stems]
    return tuple(dict.fromkeys([*names, *_WHOLE.get(quantity, ())]))


_EVERY_ALIAS = frozenset(name for quantity in _STEMS for name in aliases(quantity))
_MOTION_ALIAS = frozenset(name for quantity in _QUALIFIED for name in aliases(quantity))


def is_motion(name: str) -> bool:
    """Whether a column of this name would be read as motion, torque or current of some joint."""
    folded = fold(name)
    numbered = _numbered(folded)
    return folded in _MOTION_ALIAS or (numbered is not None and bool(numbered[0] & _MOTION_ALIAS))


def near_name(name: str, joint_names: Iterable[str]) -> str | None:
    """The joint that a name is nearly spelt like; numbers in it have to be the same."""

    def bare(text: str) -> str:
        return fold(text).removesuffix("_joint").removeprefix("joint_")

    digits = re.findall(r"\d+", name)
    known = {bare(joint): joint for joint in joint_names if re.findall(r"\d+", joint) == digits}
    found = difflib.get_close_matches(bare(name), known, n=1, cutoff=0.8)
    return known[found[0]] if found else None


def besides(locked: Collection[str]) -> str:
    """Locked joints, as an addition to a number of joints."""
    return f" besides the locked {', '.join(locked)}" if locked else ""


def joint_forms(joint_names: Sequence[str]) -> dict[str, int]:
    """Folded spellings of each joint's name to its index: with and without ``_joint`` and a prefix all names
    share.
    """
    folded = [fold(name) for name in joint_names]
    spellings: list[set[str]] = [{name} for name in folded]
    shared = _shared_prefix(folded)
    for name, forms in zip(folded, spellings, strict=True):
        for form in (name, name[len(shared) :]):
            forms |= {form, form.removesuffix("_joint"), form.removeprefix("joint_")}
    counts: dict[str, int] = {}
    for forms in spellings:
        for form in forms:
            counts[form] = counts.get(form, 0) + 1
    # A bare number is no name: whether it counts from 0 or from 1 is known only from all columns together.
    return {
        form: index
        for index, forms in enumerate(spellings)
        for form in forms
        if form and counts[form] == 1 and not form.isdigit()
    }


def _shared_prefix(names: Sequence[str]) -> str:
    if len(names) < 2:
        return ""
    low, high = min(names), max(names)
    length = next((k for k, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[: low.rfind("_", 0, length) + 1]


@dataclass(frozen=True)
class Match:
    """Columns of one alias: joint index to slot; by number the index may exceed the robot's joints.

    ``extra`` gives joints that are not the robot's and their columns; ``held`` the columns of locked joints, where the
    numbers are those of all joints before locking, ``numbers_all``.
    """

    alias: str
    slots: Mapping[int, Slot]
    by_number: bool
    extra: Mapping[str, Slot] = field(default_factory=dict)
    held: Mapping[str, Slot] = field(default_factory=dict)
    numbers_all: bool = False

    def complete(self, n_joints: int) -> bool:
        covered = all(index in self.slots for index in range(n_joints))
        return covered and not (self.by_number and len(self.slots) > n_joints)


@dataclass
class ColumnMatcher:
    """The columns of one log (name to trailing shape) matched to the joints of one robot."""

    where: str
    shapes: Mapping[str, tuple[int, ...]]
    joint_names: tuple[str, ...]
    element_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    described: tuple[str, ...] = ()
    locked: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.forms = joint_forms(self.joint_names)
        self.described = self.described or self.joint_names
        self.kept = [self.described.index(name) for name in self.joint_names]
        self.folded: dict[str, list[str]] = {}
        for name in self.shapes:
            self.folded.setdefault(fold(name), []).append(name)
        self.numbered: dict[str, list[tuple[int, str]]] = {}
        for folded in self.folded:
            heads, number = _numbered(folded) or (frozenset[str](), 0)
            for head in heads:
                self.numbered.setdefault(head, []).append((number, folded))
        self.named: dict[str, list[tuple[int, str]]] = {}
        for form, index in self.forms.items():
            for folded in self.folded:
                if folded.endswith("_" + form):
                    self.named.setdefault(folded[: -len(form) - 1], []).append((index, folded))
                if folded.startswith(form + "_"):
                    self.named.setdefault(folded[len(form) + 1 :], []).append((index, folded))

    # -- one column ----

    def _one(self, folded: str, scalar: bool = True) -> str | None:
        """The only column folded like this; several that look alike are refused."""
        found = [name for name in self.folded.get(folded, ()) if not scalar or self.shapes[name] == ()]
        if len(found) > 1:
            raise InputError(f"{self.where}: columns '{found[0]}' and '{found[1]}' mean the same, expected one of them")
        return found[0] if found else None

    def only(self, name: str) -> str | None:
        """The column of numbers called ``name``, exactly or after folding."""
        return name if self.shapes.get(name) == () else self._one(fold(name))

    def time(self) -> tuple[tuple[str, ...], str | None]:
        """The time column, or seconds and nanoseconds, and the unit its name tells."""
        for folded in self.folded:
            for ending in _NANOSECONDS:
                if not folded.endswith(ending):
                    continue
                base = folded[: -len(ending)]
                for seconds in _SECONDS:
                    whole, part = self._one(base + seconds), self._one(folded)
                    if whole is not None and part is not None:
                        return (whole, part), "s"
        for alias in _TIME:
            if (column := self._one(alias)) is not None:
                return (column,), "s" if alias in ("seconds", "sec", "secs") else None
            for ending, unit in _TIME_UNITS.items():
                if (column := self._one(f"{alias}_{ending}")) is not None:
                    return (column,), unit
        return (), None

    # -- one quantity ----

    def by_alias(self, quantity: str, names: Iterable[str] | None = None) -> Match | None:
        """The best set of columns for ``quantity``: complete ones first, names before numbers, likelier names
        first.
        """
        candidates: list[Match] = []
        for alias in names if names is not None else aliases(quantity):
            candidates += self._by_list(alias)
            candidates += self._by_name(alias)
            candidates += self._by_number(alias)
            if len(self.joint_names) == 1 and (column := self._one(alias)) is not None:
                candidates.append(Match(alias, {0: Slot(column)}, by_number=False))
        return self._best(candidates)

    def by_pattern(self, patterns: Sequence[str]) -> Match | None:
        """Columns named by patterns with ``{joint}``, ``{index}`` (from 0), ``{number}`` (from 1), or a list
        column.
        """
        candidates: list[Match] = []
        for pattern in patterns:
            if not re.search(r"\{(joint|index|number)\}", pattern):
                candidates += self._by_list(fold(pattern))
                continue
            by_number = "{joint}" not in pattern
            count = len(self.shapes) if by_number else len(self.joint_names)
            slots: dict[int, Slot] = {}
            for k in range(count):
                joint = self.joint_names[k] if k < len(self.joint_names) else ""
                name = pattern.replace("{joint}", joint).replace("{index}", str(k)).replace("{number}", str(k + 1))
                if name in self.shapes:
                    slots[k] = Slot(name)
                elif (column := self._one(fold(name))) is not None:
                    slots[k] = Slot(column)
            if slots:
                candidates.append(Match(pattern, slots, by_number))
        return self._best(candidates)

    def by_mapping(self, quantity: str, columns: str | Sequence[str] | Mapping[str, str]) -> Match:
        """The columns that a mapping names: a pattern or list column, columns in joint order, or a table by
        joint.
        """
        if isinstance(columns, str):
            match = self.by_pattern([columns])
            if match is None:
                raise InputError(
                    f"{self.where}: no column fits the mapping '{columns}' of {quantity}; found {listed(self.shapes)}"
                )
            return match
        named = dict(columns) if isinstance(columns, Mapping) else dict(enumerate(columns))
        slots: dict[int, Slot] = {}
        for key, column in named.items():
            if column not in self.shapes:
                raise UnknownNameError(f"{quantity} column", column, self.shapes, self.where)
            if self.shapes[column] != ():
                raise InputError(f"{self.where}: column '{column}' holds lists, expected one number per row")
            if isinstance(key, str) and key not in self.joint_names:
                raise UnknownNameError("joint", key, self.joint_names, f"the mapping of {quantity}")
            slots[self.joint_names.index(key) if isinstance(key, str) else key] = Slot(column)
        return self._without_locked(Match("mapping", slots, by_number=not isinstance(columns, Mapping)))

    def _without_locked(self, match: Match) -> Match:
        """The match without locked joints, where its numbers can only be those of all joints before locking."""
        n, every = len(self.joint_names), len(self.described)
        numbers = set(match.slots)
        if not match.by_number or n == every or numbers == set(range(n)):
            return match
        if not set(self.kept) <= numbers <= set(range(every)):
            return match
        held = {self.described[k]: slot for k, slot in match.slots.items() if k not in self.kept}
        return replace(match, slots={k: match.slots[i] for k, i in enumerate(self.kept)}, held=held, numbers_all=True)

    def _best(self, candidates: Sequence[Match]) -> Match | None:
        n = len(self.joint_names)
        candidates = [self._without_locked(match) for match in candidates]
        for match in candidates:
            if match.complete(n):
                return match
        return max(candidates, key=lambda match: len(match.slots), default=None)

    def _by_name(self, alias: str) -> list[Match]:
        slots: dict[int, Slot] = {}
        for index, folded in self.named.get(alias, ()):
            if (column := self._one(folded)) is None:
                continue
            if index in slots and slots[index].column != column:
                raise InputError(
                    f"{self.where}: columns '{slots[index]}' and '{column}' both name joint "
                    f"'{self.joint_names[index]}', expected one of them"
                )
            slots[index] = Slot(column)
        if not slots:
            return []
        used = {slot.column for slot in slots.values()}
        rest = ((self._stranger(alias, name), name) for name in self.shapes if name not in used)
        return [Match(alias, slots, by_number=False, extra={joint: Slot(name) for joint, name in rest if joint})]

    def _stranger(self, alias: str, column: str) -> str | None:
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
        if any(f"{alias}_{rest}".startswith(other + "_") for other in _EVERY_ALIAS if other != alias):
            return None
        parsed = _numbered(folded)
        return None if parsed is not None and parsed[0] & _EVERY_ALIAS else rest

    def _by_number(self, alias: str) -> list[Match]:
        columns: dict[int, str] = {}
        for number, folded in self.numbered.get(alias, ()):
            column = self._one(folded)
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

    def _by_list(self, alias: str) -> list[Match]:
        matches: list[Match] = []
        for column in self.folded.get(alias, ()):
            shape = self.shapes[column]
            if len(shape) != 1:
                continue
            names = self.element_names.get(column)
            if names is not None and len(names) == shape[0]:
                slots: dict[int, Slot] = {}
                extra: dict[str, Slot] = {}
                for element, name in enumerate(names):
                    index = self._joint_of(name)
                    if index is None:
                        extra[name] = Slot(column, element)
                    else:
                        slots[index] = Slot(column, element)
                if slots:
                    matches.append(Match(column, slots, by_number=False, extra=extra))
                    continue
            matches.append(Match(column, {k: Slot(column, k) for k in range(shape[0])}, by_number=True))
        return matches

    def _joint_of(self, name: str) -> int | None:
        folded = fold(name)
        if folded in self.forms:
            return self.forms[folded]
        for quantity in _QUALIFIED:
            for alias in _STEMS[quantity]:
                for form in (folded.removesuffix("_" + alias), folded.removeprefix(alias + "_")):
                    if form in self.forms:
                        return self.forms[form]
        return None

    # -- checks of completeness ----

    def positions(self, match: Match | None, expected: str) -> tuple[Slot, ...]:
        """Slots of the joint positions; refused with the joints that are missing."""
        if match is None:
            raise InputError(
                f"{self.where}: no position columns for the joints {', '.join(self.joint_names)}; "
                f"expected {expected}, "
                f"found {listed(self.shapes)}"
            )
        n = len(self.joint_names)
        if match.by_number:
            self._consecutive("position", match)
            if len(match.slots) > n:
                raise InputError(self._counts("position", match))
        missing = [name for index, name in enumerate(self.joint_names) if index not in match.slots]
        if missing:
            present = [name for index, name in enumerate(self.joint_names) if index in match.slots]
            misspelt = {str(slot): near for name, slot in match.extra.items() if (near := near_name(name, missing))}
            raise MissingJointsError(
                self.where, present, missing, by_number=match.by_number, locked=self.locked, misspelt=misspelt
            )
        return tuple(match.slots[index] for index in range(n))

    def strangers(self, match: Match) -> tuple[dict[str, Slot], list[str], list[Finding]]:
        """What position columns of other joints are: those of locked ones; a note on the rest; names misspelt."""
        forms = joint_forms(self.described)
        held, strange, findings = dict(match.held), [], []
        for name, slot in match.extra.items():
            index = forms.get(fold(name))
            if index is not None and self.described[index] in self.locked:
                held[self.described[index]] = slot
                continue
            absent = [joint for joint in self.locked if joint not in held]
            if (near := near_name(name, absent)) is None:
                strange.append(name)
                continue
            findings.append(
                Finding(
                    "misspelt_joint",
                    "warning",
                    f"column '{slot}' is not used; did you mean joint '{near}', which has no column and is locked at "
                    f"{self.locked[near]:g}",
                    "spell the column like the joint, or rename it in a mapping under [rename]",
                    (near,),
                    {"column": str(slot)},
                )
            )
        notes = []
        if held:
            named = ", ".join(f"{joint} ('{slot}')" for joint, slot in held.items())
            notes.append(f"the columns of locked joints are left out: {named}")
        if strange:
            notes.append(f"joints of the log that are not the robot's are ignored: {', '.join(strange)}")
        return held, notes, findings

    def _same_numbers(self, match: Match, positions: Match) -> bool:
        """Whether two quantities number the same joints, all of them or those that are not locked."""
        return not (match.by_number and positions.by_number) or match.numbers_all == positions.numbers_all

    def others(
        self, quantity: str, match: Match | None, positions: Match | None = None
    ) -> tuple[tuple[Slot, ...] | None, str | None]:
        """Slots of a quantity that may be absent altogether but not for some joints; or None and a note."""
        if match is None:
            return None, None
        n = len(self.joint_names)
        uneven = positions is not None and match.complete(n) and not self._same_numbers(match, positions)
        if match.complete(n) and not uneven:
            return tuple(match.slots[index] for index in range(n)), None
        if quantity in AUXILIARY:
            return (
                None,
                f"{_WORD[quantity]} is left out: log has {len(match.slots)} columns, robot has {n} joints",
            )
        if uneven and positions is not None:
            raise InputError(f"{self._counts(quantity, match)}, but {len(positions.slots) + len(positions.held)} positions")
        if match.by_number:
            self._consecutive(quantity, match)
        raise InputError(self._counts(quantity, match))

    def _consecutive(self, quantity: str, match: Match) -> None:
        absent = [k for k in range(len(match.slots)) if k not in match.slots]
        if absent:
            have = ", ".join(str(match.slots[k]) for k in sorted(match.slots))
            raise InputError(
                f"{self.where}: the numbers of the {quantity} columns have a hole ({have}), expected "
                "consecutive "
                f"numbers from 0 or 1 for {len(self.joint_names)} joints"
            )

    def _counts(self, quantity: str, match: Match) -> str:
        word = _WORD.get(quantity, quantity)
        n = len(self.joint_names)
        found = len(match.slots) + len(match.held)
        text = f"{self.where}: log has {found} {word} columns, robot has {n} joints{besides(self.locked)}"
        lacking = [name for k, name in enumerate(self.joint_names) if k not in match.slots]
        if not lacking or match.by_number:
            return text
        near = next((slot for name, slot in match.extra.items() if near_name(name, lacking[:1])), None)
        hint = "" if near is None else f": did you mean column '{near}'?"
        return f"{text}; no {word} column for joint '{lacking[0]}'{hint}"

    # -- static and wrench columns ----

    def has_inertia(self) -> bool:
        """Whether some column looks like an entry of the inertia matrix."""
        return any(
            (shape == () and _MATRIX_ENTRY.fullmatch(name.strip()) is not None)
            or (len(shape) == 2 and fold(name) in _INERTIA)
            for name, shape in self.shapes.items()
        )

    def inertia(self) -> tuple[Slot, ...] | None:
        """Slots of the inertia matrix, row by row over the full square; None where the log has no such
        columns.
        """
        n = len(self.joint_names)
        for alias in _INERTIA:
            for column in self.folded.get(alias, ()):
                if len(self.shapes[column]) == 2:
                    if self.shapes[column] != (n, n):
                        raise InputError(
                            f"{self.where}: inertia matrices '{column}' are {self.shapes[column]}, robot has {n} joints"
                        )
                    return tuple(Slot(column, k) for k in range(n * n))
        found: dict[tuple[int, int], Slot] = {}
        outside = 0
        for name, shape in self.shapes.items():
            entry = _matrix_entry(name, n) if shape == () else None
            if entry is not None:
                found[entry] = Slot(name)
            elif shape == () and _MATRIX_ENTRY.fullmatch(name.strip()):
                outside += 1
        if not found:
            return None
        need = n * (n + 1) // 2
        square = {(i, j): found.get((i, j), found.get((j, i))) for i in range(n) for j in range(n)}
        absent = sorted({(max(k), min(k)) for k, slot in square.items() if slot is None})
        if absent or outside:
            have = len({(max(k), min(k)) for k in found}) + outside
            hint = f"; M{absent[0][0] + 1}{absent[0][1] + 1} is missing" if absent else ""
            raise InputError(f"{self.where}: log has {have} inertia columns, robot with {n} joints needs {need}{hint}")
        return tuple(slot for slot in square.values() if slot is not None)

    def wrench(self) -> tuple[Slot, ...] | None:
        """Six slots, force then moment; None where the log has no such columns."""
        for alias in _WRENCH:
            for column in self.folded.get(alias, ()):
                if self.shapes[column] == (6,):
                    return tuple(Slot(column, k) for k in range(6))
            six = [self._one(f"{alias}_{k}") for k in range(6)]
            if all(name is not None for name in six):
                return tuple(Slot(name) for name in six if name is not None)
        force, moment = self._axes(_FORCE), self._axes(_MOMENT)
        return (*force, *moment) if force is not None and moment is not None else None

    def body_motion(self) -> dict[str, tuple[Slot, ...]]:
        """Slots of the motion of the sensor body, as far as the log has it."""
        found = {name: self._axes(_BODY[name]) for name in COLUMN_OF_BODY_MOTION}
        return {name: slots for name, slots in found.items() if slots is not None}

    def _axes(self, names: Sequence[str]) -> tuple[Slot, ...] | None:
        for alias in names:
            for column in self.folded.get(alias, ()):
                if self.shapes[column] == (3,):
                    return tuple(Slot(column, k) for k in range(3))
            for joint in ("_", ""):
                three = [self._one(f"{alias}{joint}{axis}") for axis in "xyz"]
                if all(name is not None for name in three):
                    return tuple(Slot(name) for name in three if name is not None)
        return None


def _numbered(folded: str) -> tuple[frozenset[str], int] | None:
    """Possible aliases and the number in ``q1``, ``q_1``, ``q_joint_1``, ``joint1_q``, ``j1_q``,
    ``a1_position``.
    """
    if (parts := re.fullmatch(r"(.*\D)(\d+)", folded)) is not None:
        head = parts[1].rstrip("_")
        heads = {head}
        if (inner := re.fullmatch(r"(.+)_(?:joint|j|axis|a)", head)) is not None:
            heads.add(inner[1])
        return frozenset(heads), int(parts[2])
    if (parts := re.fullmatch(r"(?:joint|j|axis|a)_?(\d+)_(.*\D)", folded)) is not None:
        return frozenset({parts[2]}), int(parts[1])
    return None


def _matrix_entry(name: str, n: int) -> tuple[int, int] | None:
    """Row and column (from 0) of ``M21``, ``M_2_1``, ``M[2,1]``; of digits run together the split inside the
    matrix.
    """
    text = name.strip()
    if (parts := re.fullmatch(r"M[_\[( ]?(\d+)[_, ]+(\d+)[\])]?", text)) is not None:
        splits = [(int(parts[1]), int(parts[2]))]
    elif (parts := re.fullmatch(r"M_?(\d{2,})", text)) is not None:
        digits = parts[1]
        splits = [(int(digits[:k]), int(digits[k:])) for k in range(1, len(digits)) if digits[k] != "0"]
    else:
        return None
    inside = [(i - 1, j - 1) for i, j in splits if 1 <= i <= n and 1 <= j <= n]
    lower = [(i, j) for i, j in inside if i >= j]
    if len(lower) == 1:
        return lower[0]
    return inside[0] if len(inside) == 1 else None


def listed(names: Collection[str], most: int = 12) -> str:
    """Names for a message, cut short."""
    shown = ", ".join(list(names)[:most])
    return f"{shown}, .. ({len(names)} columns)" if len(names) > most else shown or "none"


def quantities_of_motion(ignore: Collection[str] = ()) -> tuple[str, ...]:
    """Quantities of a motion log that are looked for."""
    return tuple(name for name in COLUMN_OF_QUANTITY if name not in ignore)
