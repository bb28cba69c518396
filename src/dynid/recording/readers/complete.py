"""Whether the columns found for a quantity are all there, and the sentences that refuse those that are not."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dynid.errors import InputError
from dynid.recording.finding import Finding
from dynid.recording.readers.columns import JointColumns, Match, Slot
from dynid.recording.readers.joints import MissingJointsError, besides
from dynid.recording.readers.names import fold, joint_forms, listed, near_name

AUXILIARY = ("reference_position", "reference_velocity", "external_torque")
"""Quantities that nothing is identified from: left out with a note where they are incomplete."""


def positions(columns: JointColumns, match: Match | None, expected: str) -> tuple[Slot, ...]:
    """Slots of the joint positions; a log without some of them is refused with the names of the joints."""
    if match is None:
        raise InputError(
            f"{columns.where}: no position columns for the joints {', '.join(columns.names)}; expected {expected}, "
            f"found {listed(columns.shapes)}; name them in a mapping file (--mapping FILE): position = {_suggested(columns)}"
        )
    if match.by_number and not columns.complete(match):
        _refuse_holes(columns, "position", match)
        raise InputError(_count(columns, "position", match) + _which_joints(columns, match))
    missing = [name for index, name in enumerate(columns.names) if index not in match.slots]
    if missing:
        present = [name for index, name in enumerate(columns.names) if index in match.slots]
        misspelt = {str(slot): near for name, slot in match.extra.items() if (near := near_name(name, missing))}
        raise MissingJointsError(columns.where, present, missing, locked=columns.joints.locked, misspelt=misspelt)
    return tuple(match.slots[index] for index in range(len(columns.names)))


def others(
    columns: JointColumns, quantity: str, match: Match | None, position: Match | None
) -> tuple[tuple[Slot, ...] | None, str | None]:
    """Slots of a quantity that may be absent altogether but not for some joints; or None and a note."""
    if match is None:
        return None, None
    n = len(columns.names)
    complete = columns.complete(match)
    # Both by number, one over all joints and one over those that are not locked: which is which is not known.
    uneven = (
        complete
        and position is not None
        and match.by_number
        and position.by_number
        and match.numbers_all != position.numbers_all
    )
    if complete and not uneven:
        return tuple(match.slots[index] for index in range(n)), None
    if quantity in AUXILIARY:
        return None, f"{_word(quantity)} is left out: log has {len(match.slots)} columns, robot has {n} joints"
    if uneven and position is not None:
        raise InputError(f"{_count(columns, quantity, match)}, but {position.n_columns} positions")
    if match.by_number:
        _refuse_holes(columns, quantity, match)
    raise InputError(_count(columns, quantity, match) + _near_column(columns, quantity, match))


@dataclass(frozen=True)
class OtherJoints:
    """Position columns that do not belong to a joint to read: of locked joints, unknown ones, misspelt ones."""

    held: dict[str, Slot]
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]


def other_joints(columns: JointColumns, match: Match) -> OtherJoints:
    """What the position columns of other joints are."""
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
                "misspelt_joint",
                "warning",
                f"column '{slot}' is not used; did you mean joint '{near}', which has no column and is locked at "
                f"{joints.locked[near]:g}",
                "spell the column like the joint, or rename it in a mapping under [rename]",
                (near,),
                {"column": str(slot)},
            )
        )
    notes = []
    if held:
        named = ", ".join(f"{joint} ('{slot}')" for joint, slot in held.items())
        notes.append(f"the columns of locked joints are left out: {named}")
    if unknown:
        whose = "were not asked for" if joints.given else "are not the robot's"
        notes.append(f"joints of the log that {whose} are ignored: {', '.join(unknown)}")
    return OtherJoints(held, tuple(notes), tuple(findings))


def _refuse_holes(columns: JointColumns, quantity: str, match: Match) -> None:
    absent = [k for k in range(len(match.slots)) if k not in match.slots]
    if absent:
        have = ", ".join(str(match.slots[k]) for k in sorted(match.slots))
        raise InputError(
            f"{columns.where}: numbers are missing among the {quantity} columns ({have}), expected consecutive numbers "
            f"from 0 or 1 for {len(columns.names)} joints{_near_number(columns, match, absent)}"
        )


def _near_number(columns: JointColumns, match: Match, absent: Sequence[int]) -> str:
    """A column that is not used and looks like one that is missing."""
    column, first = re.fullmatch(r"(.*?)(\d+)(\D*)", str(match.slots[min(match.slots)])), min(match.slots)
    if column is None:
        return ""
    wanted = f"{column[1]}{int(column[2]) + absent[0] - first}{column[3]}"
    left = [name for name in columns.shapes if name not in {str(slot) for slot in match.slots.values()}]
    near = next((name for name in left if re.match(rf"{re.escape(wanted)}\s*[\[(]", name)), None)
    if near is not None:
        return f"; the unit in the brackets of column '{near}' is not known"
    near = next(iter(difflib.get_close_matches(wanted, left, n=1, cutoff=0.8)), None)
    return f"; no column '{wanted}'" + ("" if near is None else f": did you mean column '{near}'?")


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
    text = f"{columns.where}: log has {match.n_columns} {_word(quantity)} columns, "
    if joints.given and match.by_number:
        return f"{text}joints names {len(joints.numbered)}: {', '.join(joints.numbered)}"
    return f"{text}robot has {len(joints.names)} joints{besides(joints.locked)}"


def _which_joints(columns: JointColumns, match: Match) -> str:
    """The joints of the robot, and how to say which of them numbered columns are."""
    joints = columns.joints
    if joints.given:
        return ""
    every = f" ({', '.join(joints.names)})"
    if match.n_columns > len(joints.described):
        return f"{every}; is it of another robot? A mapping file of a log states the columns to read in joint order: position = ['q1', ..]"
    return (
        f"{every}; numbered columns do not tell which of these they are: name theirs in order with --joints (joints=[..] in "
        "Python; the others are locked), or lock the others with --lock"
    )


def _near_column(columns: JointColumns, quantity: str, match: Match) -> str:
    """The first joint without a column, where columns go by name, and a column whose name is close to it."""
    lacking = [name for k, name in enumerate(columns.names) if k not in match.slots]
    if not lacking or match.by_number:
        return ""
    near = next((slot for name, slot in match.extra.items() if near_name(name, lacking[:1])), None)
    hint = "" if near is None else f": did you mean column '{near}'?"
    return f"; no {_word(quantity)} column for joint '{lacking[0]}'{hint}"


def _word(quantity: str) -> str:
    return quantity.replace("_", " ")
