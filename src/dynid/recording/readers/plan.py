"""Which columns of a log are read as what: a plan for motion logs, pose tables and force/torque-sensor logs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dynid.errors import InputError, UnknownNameError
from dynid.recording.finding import Finding
from dynid.recording.quantities import COLUMN_OF_BODY_MOTION, COLUMN_OF_QUANTITY
from dynid.recording.readers.axes import body_motion_slots, has_inertia, inertia_slots, mapped_axes, wrench_slots
from dynid.recording.readers.clock import TimeColumns, find_time
from dynid.recording.readers.columns import JointColumns, LogColumns, Match, Slot
from dynid.recording.readers.complete import OtherJoints, other_joints, others, positions
from dynid.recording.readers.formats.table import Table
from dynid.recording.readers.header_units import header_unit, without_units
from dynid.recording.readers.joints import LogJoints
from dynid.recording.readers.names import listed
from dynid.recording.readers.options import Layout
from dynid.recording.readers.units import UNITS


@dataclass(frozen=True)
class ColumnPlan:
    """What to read: the kind of log, its time columns and the slots of each quantity."""

    kind: str
    joint_names: tuple[str, ...]
    time: TimeColumns
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
        wanted = [*self.time.names, *(slot.column for slots in self.slots.values() for slot in slots)]
        wanted += [slot.column for slot in self.held.values()]
        return tuple(dict.fromkeys(wanted))

    def renamed(self, original: Mapping[str, str]) -> ColumnPlan:
        """The plan with every column under another name."""
        slots = {
            name: tuple(replace(slot, column=original[slot.column]) for slot in group) for name, group in self.slots.items()
        }
        held = {joint: replace(slot, column=original[slot.column]) for joint, slot in self.held.items()}
        time = replace(self.time, names=tuple(original[name] for name in self.time.names))
        return replace(self, slots=slots, time=time, held=held)


def make_plan(where: str, table: Table, joints: LogJoints, layout: Layout) -> ColumnPlan:
    """The plan of a log, refused in one sentence where columns are missing or do not fit the robot."""
    for name in layout.rename:
        if name not in table.shapes:
            raise UnknownNameError("column", name, table.shapes, where)
    # A name that cannot be printed on one line is no quantity of anything.
    usable = [name for name in table.shapes if name.isprintable()]
    bare = without_units([name for name in usable if name not in layout.rename], joints.numbered)
    mapped = _mapped_names(layout, usable)
    # A name that the mapping spells out, by itself or by a pattern, is left as it is.
    bare = {name: short for name, short in bare.items() if name not in mapped}
    original = {str(layout.rename.get(name, bare.get(name, name))): name for name in usable}
    if len(original) != len(usable):
        raise InputError(f"{where}: the mapping renames two columns to the same name")
    shapes = {new: table.shapes[old] for new, old in original.items()}
    element_names = {new: table.element_names[old] for new, old in original.items() if old in table.element_names}
    planner = _Planner(JointColumns(LogColumns(where, shapes, element_names), joints), layout)
    return planner.plan().renamed(original)


def _mapped_names(layout: Layout, names: Sequence[str]) -> set[str]:
    """Every column that the mapping names; of ``names`` those that fit a pattern of it."""
    found = set(layout.time)
    for columns in layout.columns.values():
        named = (columns,) if isinstance(columns, str) else columns.values() if isinstance(columns, Mapping) else columns
        found |= {name for column in named for name in (column, column.removeprefix("-").strip())}
    patterns = [re.escape(name) for name in found if "{" in name]
    whole = [re.sub(r"\\\{(number|index)\\\}", r"\\d+", re.sub(r"\\\{joint\\\}", ".+", text)) for text in patterns]
    return found | {name for name in names if any(re.fullmatch(pattern, name) for pattern in whole)}


def stated_units(plan: ColumnPlan) -> dict[str, str | list[str]]:
    """Units that the names of the planned columns end in, by quantity; those of time as one."""
    stated: dict[str, str | list[str]] = {}
    for quantity, slots in plan.slots.items():
        if quantity not in UNITS:
            continue
        found = [header_unit(slot.column, plan.joint_names) for slot in slots]
        if any(found):
            plain = next(iter(UNITS[quantity]))
            stated[quantity] = [plain if one is None else one[1] for one in found]
    if len(plan.time.names) == 1 and (clock := header_unit(plan.time.names[0], plan.joint_names)) is not None:
        stated["time"] = clock[1]
    return stated


@dataclass(frozen=True)
class _Planner:
    columns: JointColumns
    layout: Layout

    @property
    def where(self) -> str:
        return self.columns.where

    def plan(self) -> ColumnPlan:
        rate_hz = self.layout.options.rate_hz
        time = self.time()
        notes: tuple[str, ...] = ()
        if rate_hz is not None:
            if time.names:
                notes = (f"column '{time.names[0]}' is ignored: the rate of {rate_hz:g} Hz was given",)
            time = TimeColumns()
        has_clock = bool(time.names) or rate_hz is not None
        wrench = self.wrench()
        kind = self.layout.options.kind or self.kind(wrench is not None, has_clock)
        if kind == "static":
            return self.static(notes)
        if not has_clock:
            raise InputError(
                f"{self.where}: no time column, expected t, time or timestamp (or give its rate: --rate-hz HZ, in Python rate_hz); "
                f"found {listed(self.columns.shapes)}"
            )
        return self.sensor(time, wrench, notes) if kind == "wrench" else self.motion(time, notes)

    def time(self) -> TimeColumns:
        """Time columns as the mapping says, else as the preset says, else by the usual names."""
        columns = self.columns.columns
        if self.layout.time:
            for name in self.layout.time:
                if name not in columns.shapes:
                    raise UnknownNameError("time column", name, columns.shapes, self.where)
            return TimeColumns(self.layout.time)
        for candidate in self.layout.preset.time if self.layout.preset is not None else ():
            names = (candidate,) if isinstance(candidate, str) else candidate
            found = tuple(column for name in names if (column := columns.only(name)) is not None)
            if len(found) == len(names):
                return TimeColumns(found)
        return find_time(columns)

    def match(self, quantity: str, preset: bool = True) -> Match | None:
        """Columns of a quantity: as the mapping says, else as the preset says, else by the usual names."""
        if quantity in self.layout.columns:
            return self.columns.by_mapping(quantity, self.layout.columns[quantity])
        if preset and self.layout.preset is not None:
            patterns = self.layout.preset.columns.get(quantity)
            return None if patterns is None else self.columns.by_pattern(patterns)
        return self.columns.by_alias(quantity)

    def wrench(self) -> tuple[Slot, ...] | None:
        if "wrench" in self.layout.columns:
            return mapped_axes(self.columns.columns, "wrench", self.layout.columns["wrench"])
        return wrench_slots(self.columns.columns)

    def kind(self, wrench: bool, has_clock: bool) -> str:
        driven = any(self.match(name) is not None for name in ("torque", "current"))
        if self.layout.preset is not None or (has_clock and driven):
            return "motion"
        poses = has_inertia(self.columns.columns) or (not has_clock and self.match("gravity", preset=False) is not None)
        if poses:
            return "static"
        return "wrench" if wrench else "motion"

    def motion(self, time: TimeColumns, notes: tuple[str, ...]) -> ColumnPlan:
        preset = self.layout.preset
        expected = (
            "q1.., or names such as q_<joint> and <joint>.position"
            if preset is None
            else f"those of preset '{preset.name}' ({preset.columns['position'][0]} ..)"
        )
        match = self.match("position")
        slots = {"position": positions(self.columns, match, expected)}
        beside = self.beside(match)
        more = list(beside.notes)
        for name in COLUMN_OF_QUANTITY:
            if name == "position" or name in self.layout.options.ignore:
                continue
            found, note = others(self.columns, name, self.match(name), match)
            if found is not None:
                slots[name] = found
            if note is not None:
                more.append(note)
        return ColumnPlan(
            "motion",
            self.columns.names,
            time,
            slots,
            (*notes, *more),
            beside.findings,
            beside.held,
            match is not None and match.by_number,
        )

    def static(self, notes: tuple[str, ...]) -> ColumnPlan:
        # Positions first: a table that lacks joints is refused with their names, so that they can be locked.
        match = self.match("position", preset=False)
        slots = {"position": positions(self.columns, match, "q1.. beside M11.. and g1..")}
        beside = self.beside(match)
        # The entries of the matrix are numbered as the positions are.
        joints = self.columns.joints
        size, kept = len(joints.names), tuple(range(len(joints.names)))
        if match is not None and match.numbers_all:
            size, kept = len(joints.numbered), joints.kept
        inertia = inertia_slots(self.columns.columns, size, kept)
        if inertia is not None:
            slots["inertia"] = inertia
        gravity, _ = others(self.columns, "gravity", self.match("gravity", preset=False), match)
        if gravity is not None:
            slots["gravity"] = gravity
        if len(slots) == 1:
            raise InputError(
                f"{self.where}: no inertia (M11, M21, ..) or gravity (g1, ..) columns; found {listed(self.columns.shapes)}"
            )
        all_notes = (*notes, *beside.notes, *(finding.sentence for finding in beside.findings))
        numbered = match is not None and match.by_number
        return ColumnPlan(
            "static", self.columns.names, TimeColumns(), slots, all_notes, held=beside.held, by_number=numbered
        )

    def sensor(self, time: TimeColumns, wrench: tuple[Slot, ...] | None, notes: tuple[str, ...]) -> ColumnPlan:
        if wrench is None:
            raise InputError(
                f"{self.where}: no force and moment columns, expected fx, fy, fz, mx, my, mz; "
                f"found {listed(self.columns.shapes)}"
            )
        slots = {"wrench": wrench, **body_motion_slots(self.columns.columns)}
        for name in COLUMN_OF_BODY_MOTION:
            if name in self.layout.columns:
                slots[name] = mapped_axes(self.columns.columns, name, self.layout.columns[name])
        slots |= self._joints_beside({slot.column for group in slots.values() for slot in group})
        return ColumnPlan("wrench", self.columns.names, time, slots, notes)

    def _joints_beside(self, taken: set[str]) -> dict[str, tuple[Slot, ...]]:
        """Motion of the joints that move a sensor, in columns that are not its own; none without positions."""
        found: dict[str, tuple[Slot, ...]] = {}
        for name in ("position", "velocity", "acceleration") if self.columns.names else ():
            match = self.match(name)
            if name in self.layout.options.ignore or match is None or not self.columns.complete(match):
                continue
            group = tuple(match.slots[k] for k in range(len(self.columns.names)))
            if not taken & {slot.column for slot in group} and ("position" in found or name == "position"):
                found[name] = group
        return found

    def beside(self, match: Match | None) -> OtherJoints:
        return OtherJoints({}, (), ()) if match is None else other_joints(self.columns, match)
