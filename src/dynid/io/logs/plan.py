"""Which columns of a log are read as what: a plan for motion logs, pose tables and force/torque-sensor logs.

Columns that are missing, misspelt or too many are refused or noted in a sentence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dynid.errors import InputError, UnknownNameError
from dynid.finding import Finding
from dynid.io.logs.columns import JointColumns, LogJoints, Match, MissingJointsError, Slot, besides
from dynid.io.logs.layout import Layout
from dynid.io.logs.names import fold, header_unit, joint_forms, near_name, without_units
from dynid.io.logs.table import Table
from dynid.io.logs.units import UNITS, Clock
from dynid.signals.recording import COLUMN_OF_BODY_MOTION, COLUMN_OF_QUANTITY

AUXILIARY = ("reference_position", "reference_velocity", "external_torque")
"""Quantities that nothing is identified from: left out with a note where they are incomplete."""
_INERTIA = ("m", "inertia", "mass_matrix", "inertia_matrix")
_MATRIX_ENTRY = re.compile(r"M[_\[( ]?\d+[_, ]*\d+[\])]?")
_SEPARATED = re.compile(r"M[_\[( ]?(\d{1,4})[_, ]+(\d{1,4})[\])]?")
_TOGETHER = re.compile(r"M_?(\d{2,8})")
_FORCE = ("f", "force", "wrench_force", "ft_force", "forces")
_MOMENT = ("m", "t", "moment", "torque", "wrench_torque", "ft_torque", "tau")
_AXES = (("_x", "_y", "_z"), ("x", "y", "z"))
_WRENCH = ("wrench", "ft", "force_torque", "actual_tcp_force", "ft_raw_wrench")
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
_BODY: Mapping[str, tuple[str, ...]] = {
    "linear_velocity": ("v", "linear_velocity", "twist_linear", "velocity_linear"),
    "angular_velocity": ("w", "omega", "angular_velocity", "twist_angular", "gyro", "gyroscope"),
    "linear_acceleration": ("a", "acc", "linear_acceleration", "proper_acceleration", "accelerometer"),
    "angular_acceleration": ("alpha", "dw", "domega", "angular_acceleration"),
}


@dataclass(frozen=True)
class ColumnPlan:
    """What to read: the kind of log, its time columns and the slots of each quantity."""

    kind: str
    joint_names: tuple[str, ...]
    time: Clock
    slots: Mapping[str, tuple[Slot, ...]]
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    held: Mapping[str, Slot] = field(default_factory=dict)
    """Position columns of locked joints, which are only compared with the position they are locked at."""
    by_number: bool = False
    """Whether joints were found by the numbers of the position columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column to read, once."""
        wanted = [*self.time.columns, *(slot.column for slots in self.slots.values() for slot in slots)]
        wanted += [slot.column for slot in self.held.values()]
        return tuple(dict.fromkeys(wanted))

    def renamed(self, original: Mapping[str, str]) -> ColumnPlan:
        """The plan with every column under another name."""
        slots = {
            name: tuple(replace(slot, column=original[slot.column]) for slot in group) for name, group in self.slots.items()
        }
        held = {joint: replace(slot, column=original[slot.column]) for joint, slot in self.held.items()}
        time = replace(self.time, columns=tuple(original[name] for name in self.time.columns))
        return replace(self, slots=slots, time=time, held=held)

    @property
    def time_column(self) -> str:
        """The time column, for messages."""
        return self.time.columns[0] if self.time.columns else "time"

    def stated_units(self) -> dict[str, str | list[str]]:
        """Units that the names of the planned columns end in, by quantity; those of time as one."""
        stated: dict[str, str | list[str]] = {}
        for quantity, slots in self.slots.items():
            if quantity not in UNITS:
                continue
            found = [header_unit(slot.column, self.joint_names) for slot in slots]
            if any(found):
                plain = next(iter(UNITS[quantity]))
                stated[quantity] = [plain if one is None else one[1] for one in found]
        if len(self.time.columns) == 1 and (clock := header_unit(self.time.columns[0], self.joint_names)) is not None:
            stated["time"] = clock[1]
        return stated


def make_plan(where: str, table: Table, joints: LogJoints, layout: Layout) -> ColumnPlan:
    """The plan of a log, refused in one sentence where columns are missing or do not fit the robot."""
    for name in layout.rename:
        if name not in table.shapes:
            raise UnknownNameError("column", name, table.shapes, where)
    # A name that cannot be printed on one line is no quantity of anything.
    usable = [name for name in table.shapes if name.isprintable()]
    bare = without_units([name for name in usable if name not in layout.rename], joints.numbered)
    # Columns that the mapping spells out, by themselves or by a pattern, and that are left as they are.
    mapped = set(layout.time or ())
    for columns in layout.columns.values():
        named = (columns,) if isinstance(columns, str) else columns.values() if isinstance(columns, Mapping) else columns
        mapped |= {name for column in named for name in (column, column.removeprefix("-").strip())}
    patterns = [re.escape(name) for name in mapped if "{" in name]
    whole = [re.sub(r"\\\{(number|index)\\\}", r"\\d+", re.sub(r"\\\{joint\\\}", ".+", text)) for text in patterns]
    mapped = mapped | {name for name in usable if any(re.fullmatch(pattern, name) for pattern in whole)}
    bare = {name: short for name, short in bare.items() if name not in mapped}
    original = {str(layout.rename.get(name, bare.get(name, name))): name for name in usable}
    if len(original) != len(usable):
        raise InputError(f"{where}: the mapping renames two columns to the same name")
    shapes = {new: table.shapes[old] for new, old in original.items()}
    element_names = {new: table.element_names[old] for new, old in original.items() if old in table.element_names}
    return _plan(JointColumns(where, joints, shapes, element_names), layout).renamed(original)


def _plan(columns: JointColumns, layout: Layout) -> ColumnPlan:
    time, notes = _time_columns(columns, layout), tuple[str, ...]()
    if layout.rate_hz is not None:
        if time.columns:
            notes = (f"column '{time.columns[0]}' is ignored: the rate of {layout.rate_hz:g} Hz was given",)
        time = Clock()
    has_clock = bool(time.columns) or layout.rate_hz is not None
    mapped = layout.columns.get("wrench")
    wrench = _wrench_slots(columns) if mapped is None else _mapped_axes(columns, "wrench", mapped)
    kind = layout.kind or _kind(columns, layout, wrench is not None, has_clock)
    if kind == "static":
        return _static_plan(columns, layout, notes)
    if not has_clock:
        raise InputError(
            f"{columns.where}: no time column, expected t, time or timestamp (or give its rate: --rate-hz HZ, in Python rate_hz); "
            f"found {columns.found()}"
        )
    if kind == "wrench":
        return _wrench_plan(columns, layout, time, wrench, notes)
    expected = "q1.., or names such as q_<joint> and <joint>.position"
    if layout.preset is not None:
        expected = f"those of preset '{layout.preset}' ({layout.patterns['position'][0]} ..)"
    match = _position_match(columns, _match(columns, layout, "position"), expected)
    slots = {"position": columns.slots(match)}
    held, more, findings = _other_joints(columns, match)
    notes += more
    for name in COLUMN_OF_QUANTITY:
        if name == "position" or name in layout.ignore:
            continue
        found, note = _optional_slots(columns, name, _match(columns, layout, name), match)
        if found is not None:
            slots[name] = found
        if note is not None:
            notes += (note,)
    return ColumnPlan("motion", columns.names, time, slots, notes, findings, held, match.by_number)


def _time_columns(columns: JointColumns, layout: Layout) -> Clock:
    """Time columns as the mapping says, else as the preset says, else by the usual names; unit and origin are left to ``make_clock``."""
    if layout.time is not None:
        for name in layout.time:
            if name not in columns.shapes:
                raise UnknownNameError("time column", name, columns.shapes, columns.where)
        return Clock(layout.time)
    for names in layout.clocks or ():
        found = tuple(column for name in names if (column := columns.only(name)) is not None)
        if len(found) == len(names):
            return Clock(found)
    for folded in columns.folded:
        for ending in _NANOSECONDS:
            if not folded.endswith(ending):
                continue
            base = folded[: -len(ending)]
            for seconds in _SECONDS:
                whole, part = columns.one(base + seconds), columns.one(folded)
                if whole is not None and part is not None:
                    return Clock((whole, part), named_unit="s")
    for alias in _TIME:
        if (column := columns.one(alias)) is not None:
            return Clock((column,), named_unit="s" if alias in _SECONDS else None)
        for ending, unit in _TIME_UNITS.items():
            if (column := columns.one(f"{alias}_{ending}")) is not None:
                return Clock((column,), named_unit=unit)
    return Clock()


def _match(columns: JointColumns, layout: Layout, quantity: str, preset: bool = True) -> Match | None:
    """Columns of a quantity: as the mapping says, else as the preset says, else by the usual names."""
    if quantity in layout.columns:
        return columns.by_mapping(quantity, layout.columns[quantity])
    if preset and layout.preset is not None:
        patterns = layout.patterns.get(quantity)
        return None if patterns is None else columns.by_pattern(patterns)
    return columns.by_alias(quantity)


def _kind(columns: JointColumns, layout: Layout, wrench: bool, has_clock: bool) -> str:
    driven = any(_match(columns, layout, name) is not None for name in ("torque", "current"))
    if layout.preset is not None or (has_clock and driven):
        return "motion"
    has_inertia = any(  # entries of the inertia matrix, or whole matrices
        (shape == () and _MATRIX_ENTRY.fullmatch(name.strip()) is not None) or (len(shape) == 2 and fold(name) in _INERTIA)
        for name, shape in columns.shapes.items()
    )
    if has_inertia or (not has_clock and _match(columns, layout, "gravity", preset=False) is not None):
        return "static"
    return "wrench" if wrench else "motion"


# Columns of joints ----------------------------------------------------------------------------
def _position_match(columns: JointColumns, match: Match | None, expected: str) -> Match:
    """The columns of the joint positions; a log without some of them is refused with the names of the joints."""
    joints = columns.joints
    if match is None:
        raise InputError(
            f"{columns.where}: no position columns for the joints {', '.join(columns.names)}; expected {expected}, "
            f"found {columns.found()}; name them in a mapping file (--mapping FILE): position = {_suggested(columns)}"
        )
    if match.by_number and not columns.complete(match):
        _refuse_holes(columns, "position", match)
        which = ""
        if not joints.given and match.n_columns > len(joints.described):
            which = (
                f" ({', '.join(joints.names)}); is it of another robot? A mapping file of a log states the columns to read in "
                "joint order: position = ['q1', ..]"
            )
        elif not joints.given:
            which = (
                f" ({', '.join(joints.names)}); numbered columns do not tell which of these they are: name theirs in order with "
                "--joints (joints=[..] in Python; the others are locked), or lock the others with --lock"
            )
        raise InputError(_count(columns, "position", match) + which)
    missing = [name for index, name in enumerate(columns.names) if index not in match.slots]
    if missing:
        present = [name for name in columns.names if name not in missing]
        misspelt = {str(slot): near for name, slot in match.extra.items() if (near := near_name(name, missing))}
        raise MissingJointsError(columns.where, present, missing, locked=joints.locked, misspelt=misspelt)
    return match


def _optional_slots(
    columns: JointColumns, quantity: str, match: Match | None, position: Match
) -> tuple[tuple[Slot, ...] | None, str | None]:
    """Slots of a quantity that may be absent altogether but not for some joints; or None and a note."""
    if match is None:
        return None, None
    complete = columns.complete(match)
    # Both by number, one over all joints and one over those that are not locked: which is which is not known.
    by_number = match.by_number and position.by_number
    uneven = complete and by_number and match.numbers_all != position.numbers_all
    if complete and not uneven:
        return columns.slots(match), None
    word = quantity.replace("_", " ")
    if quantity in AUXILIARY:
        told = f"{word} is left out: log has {len(match.slots)} columns, robot has {len(columns.names)} joints"
        return None, told + columns.lacks(match)
    if uneven:
        raise InputError(f"{_count(columns, quantity, match)}, but {position.n_columns} positions")
    if match.by_number:
        _refuse_holes(columns, quantity, match)
    raise InputError(_count(columns, quantity, match) + columns.lacks(match))


def _other_joints(columns: JointColumns, match: Match) -> tuple[dict[str, Slot], tuple[str, ...], tuple[Finding, ...]]:
    """Position columns of joints that are not read: those of locked joints, and what to say of unknown and misspelt ones."""
    joints = columns.joints
    forms = joint_forms(joints.described)
    held, unknown, findings = dict(match.held), [], []
    for name, slot in match.extra.items():
        index = forms.get(fold(name))
        if index is not None and joints.described[index] in joints.locked:
            held[joints.described[index]] = slot
            continue
        absent = [joint for joint in joints.locked if joint not in held]
        if (near := near_name(name, absent)) is None:
            unknown.append(name)
            continue
        findings.append(
            Finding(
                "warning",
                f"column '{slot}' is not used; did you mean joint '{near}', which has no column and is locked at "
                f"{joints.locked[near]:g}",
                "spell the column like the joint, or rename it in a mapping under [rename]",
                where=(near,),
                code="misspelt_joint",
                values={"column": str(slot)},
            )
        )
    notes = []
    if held:
        named = ", ".join(f"{joint} ('{slot}')" for joint, slot in held.items())
        notes.append(f"the columns of locked joints are left out: {named}")
    if unknown:
        whose = "were not asked for" if joints.given else "are not the robot's"
        notes.append(f"joints of the log that {whose} are ignored: {', '.join(unknown)}")
    return held, tuple(notes), tuple(findings)


def _refuse_holes(columns: JointColumns, quantity: str, match: Match) -> None:
    """Refuse numbers that do not follow one another, with a column that is not used and looks like the first that is missing."""
    absent = [k for k in range(len(match.slots)) if k not in match.slots]
    if not absent:
        return
    wanted, hint = match.column_like(absent[0]), ""
    if wanted != str(match.slots[min(match.slots)]):
        left = [name for name in columns.shapes if name not in {str(slot) for slot in match.slots.values()}]
        close = next(iter(difflib.get_close_matches(wanted, left, n=1, cutoff=0.8)), None)
        hint = f"; no column '{wanted}'" + ("" if close is None else f": did you mean column '{close}'?")
        for near in (name for name in left if re.match(rf"{re.escape(wanted)}\s*[\[(]", name)):
            hint = f"; the unit in the brackets of column '{near}' is not known"
            break
    have = ", ".join(str(match.slots[k]) for k in sorted(match.slots))
    raise InputError(
        f"{columns.where}: numbers are missing among the {quantity} columns ({have}), expected consecutive numbers "
        f"from 0 or 1 for {len(columns.names)} joints{hint}"
    )


def _suggested(columns: JointColumns) -> str:
    """A pattern that names the first numbered columns of as many as there are joints, else what a pattern looks like."""
    found: dict[tuple[str, str], list[int]] = {}
    for name in columns.shapes:
        if (match := re.fullmatch(r"(.*?)(\d{1,3})(\D*)", name)) is not None:
            found.setdefault((match[1], match[3]), []).append(int(match[2]))
    for (head, tail), numbers in found.items():
        start = min(numbers)
        if start in (0, 1) and len(numbers) > 1 and set(range(start, start + len(columns.names))) <= set(numbers):
            return f'"{head}{{{"number" if start else "index"}}}{tail}"'
    return '"A{number}" for columns A1, A2, ..'


def _count(columns: JointColumns, quantity: str, match: Match) -> str:
    joints = columns.joints
    text = f"{columns.where}: log has {match.n_columns} {quantity.replace('_', ' ')} columns, "
    if joints.given and match.by_number:
        return f"{text}joints names {len(joints.numbered)}: {', '.join(joints.numbered)}"
    return f"{text}robot has {len(joints.names)} joints{besides(joints.locked)}"


# Pose tables and sensors ----------------------------------------------------------------------
def _static_plan(columns: JointColumns, layout: Layout, notes: tuple[str, ...]) -> ColumnPlan:
    # Positions first: a table that lacks joints is refused with their names, so that they can be locked.
    match = _position_match(columns, _match(columns, layout, "position", preset=False), "q1.. beside M11.. and g1..")
    slots = {"position": columns.slots(match)}
    held, more, findings = _other_joints(columns, match)
    joints = columns.joints
    # The entries of the matrix are numbered as the positions are.
    size, kept = (len(joints.numbered), joints.kept) if match.numbers_all else (len(joints.names), range(len(joints.names)))
    inertia = _inertia_slots(columns, size, kept)
    if inertia is not None:
        slots["inertia"] = inertia
    gravity, _ = _optional_slots(columns, "gravity", _match(columns, layout, "gravity", preset=False), match)
    if gravity is not None:
        slots["gravity"] = gravity
    if len(slots) == 1:
        raise InputError(f"{columns.where}: no inertia (M11, M21, ..) or gravity (g1, ..) columns; found {columns.found()}")
    notes = (*notes, *more, *(finding.what for finding in findings))
    return ColumnPlan("static", columns.names, Clock(), slots, notes, held=held, by_number=match.by_number)


def _wrench_plan(
    columns: JointColumns, layout: Layout, time: Clock, wrench: tuple[Slot, ...] | None, notes: tuple[str, ...]
) -> ColumnPlan:
    if wrench is None:
        absent = next((one for names in (_FORCE, _MOMENT) if (one := _absent_axis(columns, names))), None)
        lacks = "no force and moment columns" if absent is None else f"no column '{absent}' of the force and moment"
        raise InputError(f"{columns.where}: {lacks}, expected fx, fy, fz, mx, my, mz; found {columns.found()}")
    slots = {"wrench": wrench}
    for name in COLUMN_OF_BODY_MOTION:
        axes = _vector(columns, _BODY[name], *_AXES)
        if name in layout.columns:
            axes = _mapped_axes(columns, name, layout.columns[name])
        if axes is not None:
            slots[name] = axes
    taken = {slot.column for group in slots.values() for slot in group}
    # Motion of the joints that move the sensor, in columns that are not its own; none without positions.
    for name in ("position", "velocity", "acceleration") if columns.names else ():
        match = _match(columns, layout, name)
        if name in layout.ignore or match is None:
            continue
        if not columns.complete(match):
            if name == "position" and len(slots) == 1:  # nothing else tells how the sensor moved
                raise InputError(_count(columns, name, match) + columns.lacks(match))
            continue
        group = columns.slots(match)
        if not taken & {slot.column for slot in group} and ("position" in slots or name == "position"):
            slots[name] = group
    return ColumnPlan("wrench", columns.names, time, slots, notes)


def _inertia_slots(columns: JointColumns, n: int, kept: Sequence[int]) -> tuple[Slot, ...] | None:
    """Slots of the inertia matrix of ``n`` joints, the rows and columns ``kept``; None where the log has none.

    Entries are those of both triangles or of one, from which the other follows by symmetry.
    """
    named = (column for alias in _INERTIA for column in columns.folded.get(alias, ()))
    if (matrix := next((column for column in named if len(columns.shapes[column]) == 2), None)) is not None:
        if columns.shapes[matrix] != (n, n):
            raise InputError(
                f"{columns.where}: inertia matrices '{matrix}' are {columns.shapes[matrix]}, robot has {n} joints"
            )
        return tuple(Slot(matrix, i * n + j) for i in kept for j in kept)
    entries = {name: _matrix_entry(name, n) for name, shape in columns.shapes.items() if shape == ()}
    found = {entry: Slot(name) for name, entry in entries.items() if entry is not None}
    if not found:
        return None
    outside = sum(entry is None and _MATRIX_ENTRY.fullmatch(name.strip()) is not None for name, entry in entries.items())
    below = {(max(place), min(place)): slot for place, slot in found.items()}
    absent = sorted({(i, j) for i in range(n) for j in range(i + 1)} - set(below))
    if absent or outside:
        have = len(below) + outside
        hint = f"; M{absent[0][0] + 1}{absent[0][1] + 1} is missing" if absent else ""
        raise InputError(
            f"{columns.where}: log has {have} inertia columns, robot with {n} joints needs {n * (n + 1) // 2}{hint}"
        )
    return tuple(found.get((i, j)) or below[max(i, j), min(i, j)] for i in kept for j in kept)


def _matrix_entry(name: str, n: int) -> tuple[int, int] | None:
    """Row and column (from 0) of ``M21``, ``M_2_1``, ``M[2,1]``; digits without a separator are split inside the matrix."""
    text = name.strip()
    if (parts := _SEPARATED.fullmatch(text)) is not None:
        splits = [(int(parts[1]), int(parts[2]))]
    elif (parts := _TOGETHER.fullmatch(text)) is not None:
        digits = parts[1]
        splits = [(int(digits[:k]), int(digits[k:])) for k in range(1, len(digits)) if digits[k] != "0"]
    else:
        return None
    inside = [(i - 1, j - 1) for i, j in splits if 1 <= i <= n and 1 <= j <= n]
    lower = [(i, j) for i, j in inside if i >= j]
    if len(lower) == 1:
        return lower[0]
    return inside[0] if len(inside) == 1 else None


def _wrench_slots(columns: JointColumns) -> tuple[Slot, ...] | None:
    """Six slots, force then moment; None where the log has no such columns."""
    six = _vector(columns, _WRENCH, [f"_{k}" for k in range(6)])
    force, moment = _vector(columns, _FORCE, *_AXES), _vector(columns, _MOMENT, *_AXES)
    return six or (force + moment if force and moment else None)


def _vector(columns: JointColumns, names: Sequence[str], *endings: Sequence[str]) -> tuple[Slot, ...] | None:
    """Columns of a vector: one of lists, or one for each ending, by the first name that the log has; None where it has none."""
    for alias in names:
        for column in columns.folded.get(alias, ()):
            if columns.shapes[column] == (len(endings[0]),):
                return tuple(Slot(column, k) for k in range(len(endings[0])))
        for ends in endings:
            found = [columns.one(alias + end) for end in ends]
            if all(found):
                return tuple(Slot(str(name)) for name in found)
    return None


def _absent_axis(columns: JointColumns, names: Sequence[str]) -> str | None:
    """The first column that is missing of a vector of which the log has some; None where it has all or none."""
    for alias, ends in ((alias, ends) for alias in names for ends in _AXES):
        found = [columns.one(alias + end) for end in ends]
        if any(found) and not all(found):
            return alias + ends[found.index(None)]
    return None


def _mapped_axes(columns: JointColumns, name: str, given: str | Sequence[str] | Mapping[str, str]) -> tuple[Slot, ...]:
    """The columns that a mapping names for the wrench (six) or for a motion of the body (three)."""
    n = 6 if name == "wrench" else 3
    if isinstance(given, str):
        if columns.shapes.get(given) == (n,):
            return tuple(Slot(given, k) for k in range(n))
        raise InputError(f"{columns.where}: mapping of '{name}' is '{given}', expected {n} columns")
    named = tuple(given)
    if isinstance(given, Mapping) or len(named) != n:
        raise InputError(f"{columns.where}: mapping of '{name}' has {len(named)} columns, expected a list of {n}")
    return tuple(columns.named_slot(column) for column in named)
