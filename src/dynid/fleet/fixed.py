"""What a store fixes when it is made: robot, effects with their inner numbers, filter and rows. Everything added later has the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import InputError
from dynid.files import to_json
from dynid.robot.effects import effect_to_dict
from dynid.robot.model import Robot
from dynid.run.described import described_robot
from dynid.run.option import flag_of, kind_of, options_of
from dynid.run.options import Model, Reading, Rows, Settings, Work
from dynid.run.record import Run

FIXED = tuple(one.name for one in options_of(Model, Rows) if one.name != "max_rows")
"""Options that a store fixes."""
FREE = tuple(one.name for one in (*fields(Reading), *fields(Work)))
"""Options that each addition may have of its own: how its logs are read, and where the work runs."""
SAME = 1e-9


def fixed_hash(run: Run) -> str:
    """Hash of structure and options: rows with the same hash can be merged."""
    joints = [[joint.name, joint.kind, joint.parent, joint.placement, joint.screw] for joint in run.robot.joints]
    record = {
        "joints": joints,
        "gravity": run.robot.gravity,
        "effects": [effect_to_dict(effect) for effect in run.robot.effects],
        "coupling": None if run.robot.coupling is None else run.robot.coupling.as_dict(),
        "filter": None if run.filter is None else run.filter.as_dict(),
        "rows": run.rows.as_dict(),
        "options": {name: getattr(run.settings, name) for name in FIXED},
    }
    return hashlib.sha256(to_json(record).encode()).hexdigest()


def reading_of(run: Run, given: Mapping[str, Any], store: Path) -> Settings:
    """How logs of an addition are read; options that the store fixes are refused where they differ from it."""
    asked = Settings.from_dict(given)  # in the types that settings have
    options = {one.name: one for one in options_of(Model, Rows)}
    for name in FIXED:
        if name in given and getattr(asked, name) != getattr(run.settings, name):
            one, own = options[name], getattr(run.settings, name)
            given_now = _told(one, getattr(asked, name))
            raise InputError(
                f"store '{store}' was made with {flag_of(one)} {_told(one, own)}, {given_now} was given: a store never mixes options; "
                "leave the flag out, or make another store with --to"
            )
    values = run.settings.as_dict() | {"from_s": None, "to_s": None, "engine": Work.engine}
    return Settings.from_dict(values | {name: getattr(asked, name) for name in FREE if name in given})


def _told(one: Field[Any], value: Any) -> str:
    return "the default" if value in (None, (), {}) else kind_of(one).text(value)


def refuse_other_robot(run: Run, robot: Robot | str | Path, store: Path) -> None:
    """Refuse a robot with other joints or another gravity than the store's; nominal masses may differ."""
    own = run.robot
    if isinstance(robot, Robot):
        other = robot
    elif own.source.sha256 and _digest(Path(robot)) == own.source.sha256:
        return
    else:
        other = described_robot(robot, run.settings)
    if set(own.joint_names) < set(other.joint_names):
        other = other.only(own.joint_names)
    found = difference(own, other)
    if found:
        raise InputError(
            f"store '{store}' holds rows of '{own.name}': {found}; a store never mixes structures, make another with --to"
        )


def difference(own: Robot, other: Robot) -> str:
    """The first difference in structure between two robots, in words; empty where there is none."""
    if own.joint_names != other.joint_names:
        return f"its joints are {', '.join(own.joint_names)}, those of '{other.name}' are {', '.join(other.joint_names)}"
    for mine, theirs in zip(own.joints, other.joints, strict=True):
        if mine.kind != theirs.kind:
            return f"joint '{mine.name}' is {mine.kind} there and {theirs.kind} in '{other.name}'"
        for what, one, two in (
            ("placement", mine.placement, theirs.placement),
            ("axis", mine.screw, theirs.screw),
        ):
            if not np.allclose(one, two, rtol=SAME, atol=SAME):
                worst = float(np.abs(one - two).max())
                return f"the {what} of joint '{mine.name}' differs by {worst:.3g} in '{other.name}'"
    if not np.allclose(own.gravity, other.gravity, rtol=SAME, atol=SAME):
        return f"its gravity is {_numbers(own.gravity)}, that of '{other.name}' is {_numbers(other.gravity)}"
    return ""


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
