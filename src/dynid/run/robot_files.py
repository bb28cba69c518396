"""The robot of a run on disk: its description as it was read, and what the record of the run says of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynid.errors import InputError
from dynid.files import write_bytes
from dynid.robot.builtin import demo_robot
from dynid.robot.coupling import Coupling
from dynid.robot.effects import effect_from_dict, effect_to_dict
from dynid.robot.model import Robot
from dynid.run.described import described_robot
from dynid.run.options import Settings
from dynid.run.sealed import read_file


def robot_record(robot: Robot, description: str | None) -> dict[str, Any]:
    """What a run keeps of its robot; ``description`` is the copy of its file in the run's folder, if it has one."""
    return {
        "name": robot.name,
        "file": description,
        "source": robot.source.path,
        "sha256": robot.source.sha256,
        "joints": robot.joint_names,
        "effects": [effect_to_dict(effect) for effect in robot.effects],
        "coupling": None if robot.coupling is None else robot.coupling.as_dict(),
    }


def copy_description(robot: Robot, folder: Path) -> str | None:
    """The description's own bytes into the run folder, so that the run stands on its own; None for a built-in robot."""
    if not robot.source.path:
        return None
    source = Path(robot.source.path)
    try:
        content = source.read_bytes()
    except OSError as error:
        raise InputError(f"robot description '{source}' can no longer be read: {error.strerror or error}") from None
    name = f"robot{source.suffix}"
    write_bytes(folder / name, content)
    return name


def _description(folder: Path, record: Mapping[str, Any]) -> Path:
    """The robot's own file where it is still what it was, beside its meshes and included files; else the run's copy."""
    original = Path(record["source"])
    if original.is_file() and hashlib.sha256(original.read_bytes()).hexdigest() == record["sha256"]:
        return original
    return folder / str(record["file"])


def load_robot(folder: Path, record: Mapping[str, Any], files: Mapping[str, Any], settings: Settings) -> Robot:
    """The robot of a run, from its own file or the run's copy; ``record`` is what the run keeps of it, ``files`` the whole record."""
    if record["file"] is not None:
        read_file(folder, files, str(record["file"]))  # a copy that was changed describes another robot
    built_in = record["file"] is None
    robot = described_robot(demo_robot(settings.effects or "none") if built_in else _description(folder, record), settings)
    if tuple(record["joints"]) != robot.joint_names:
        robot = robot.only(record["joints"])
    coupling = record.get("coupling")
    robot = replace(robot, coupling=None if coupling is None else Coupling.from_dict(coupling))
    return robot.with_effects([effect_from_dict(effect) for effect in record["effects"]])
