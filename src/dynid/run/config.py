"""Run files: everything the command line takes, in one commented TOML file; flags win over it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dynid.errors import InputError, UnknownNameError
from dynid.run.settings import Settings

_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "model": ("effects", "friction", "gravity", "lock"),
    "signals": (
        "velocity", "cutoff_hz", "torque_cutoff_hz", "filter_order", "dead_zone", "from_s", "to_s", "drive_gains", "preset",
        "mapping", "max_rows",
    ),
    "estimation": ("method", "split"),
}  # fmt: skip
_FILES = ("robot", "logs", "validate", "output")


@dataclass(frozen=True)
class RunFile:
    """What a run file asks for."""

    robot: Path | None = None
    logs: tuple[Path, ...] = ()
    validate: tuple[Path, ...] = ()
    output: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings that the file fixes, by name."""
    constraints: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, flags: Mapping[str, Any]) -> Settings:
        """Settings of the file with those of the flags over them."""
        return replace(Settings.from_dict({**self.options, **flags}))


def read_run_file(path: str | Path) -> RunFile:
    """Read a run file; paths in it are relative to the file."""
    place = Path(path)
    try:
        with place.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise InputError(f"run file '{place}' cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"run file '{place}' is not valid TOML: {error}") from None
    for name in content:
        if name not in (*_FILES, *_SECTIONS, "constraints"):
            raise UnknownNameError("entry", name, (*_FILES, *_SECTIONS, "constraints"), f"run file '{place}'")
    options: dict[str, Any] = {}
    for section, names in _SECTIONS.items():
        values = content.get(section, {})
        if not isinstance(values, dict):
            raise InputError(f"[{section}] of run file '{place}' is {values!r}, expected a table")
        for name, value in values.items():
            if name not in names:
                raise UnknownNameError("setting", name, names, f"[{section}] of run file '{place}'")
            options[name] = value
    folder = place.parent
    robot, output = content.get("robot"), content.get("output")
    return RunFile(
        robot=None if robot is None else folder / _text(robot, "robot", place),
        logs=tuple(folder / _text(item, "logs", place) for item in _list(content.get("logs", []), "logs", place)),
        validate=tuple(folder / _text(item, "validate", place) for item in _list(content.get("validate", []), "validate", place)),
        output=None if output is None else folder / _text(output, "output", place),
        options=options,
        constraints=content.get("constraints", {}),
    )


def _text(value: Any, name: str, place: Path) -> str:
    if not isinstance(value, str):
        raise InputError(f"'{name}' of run file '{place}' is {value!r}, expected text")
    return value


def _list(value: Any, name: str, place: Path) -> list[Any]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise InputError(f"'{name}' of run file '{place}' is {value!r}, expected a list of files")
    return value
