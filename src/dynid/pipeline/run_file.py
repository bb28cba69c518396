"""Run files: everything the command line takes, in one commented TOML file; flags win over it."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field
from pathlib import Path
from typing import Any

from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.bounds import with_meshes_seen_from
from dynid.files import read_limited, toml_table
from dynid.io.logs.log_file import UrlPath, is_url, log_path
from dynid.model.coupling import split_table
from dynid.option_types import is_flag, kind_of, options_of
from dynid.pipeline.option_groups import READING, ROWS, SECTIONS
from dynid.pipeline.options import Settings, all_options

_SECTIONS: Mapping[str, tuple[str, ...]] = {
    **{section: tuple(one.name for one in options_of(Settings, group)) for section, group in SECTIONS.items()},
    "signals": tuple(one.name for one in options_of(Settings, READING, ROWS)),  # the former name of both
}
_TABLES = tuple(one.name for one in all_options() if not is_flag(one))
"""Options that are tables of their own at the top of a run file."""
_TOP = ("coupling", "spring")
"""Tables at the top of a run file that give options of other sections."""
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

    def settings(self, flags: Mapping[str, Any]) -> Settings:
        """Settings of the file with those of the flags over them."""
        return Settings.from_dict({**self.options, **flags})


def read_run_file(path: str | Path) -> RunFile:
    """Read a run file; paths in it are relative to the file."""
    place = Path(path)
    where = f"run file '{place}'"
    content = toml_table(read_limited(place, where), where)
    known = (*_FILES, *_SECTIONS, *_TABLES, *_TOP)
    for name in content:
        if name not in known:
            raise UnknownNameError("entry", name, known, f"run file '{place}'")
    options: dict[str, Any] = {}
    for section, names in _SECTIONS.items():
        values = content.get(section, {})
        if not isinstance(values, dict):
            raise InputError(f"[{section}] of run file '{place}' is {values!r}, expected a table")
        for name, value in values.items():
            if name not in names:
                raise UnknownNameError("setting", name, names, f"[{section}] of run file '{place}'")
            options[name] = value
    options |= _top_tables(content, place)
    folder = place.parent
    options |= {name: with_meshes_seen_from(content[name], folder) for name in _TABLES if name in content}
    for one in all_options():
        kind = kind_of(one)
        if one.name in options and kind.is_path(options[one.name]):
            options[one.name] = str(folder / _text(options[one.name], one.name, place))
    robot, output = content.get("robot"), content.get("output")
    return RunFile(
        robot=None if robot is None else folder / _text(robot, "robot", place),
        logs=_logs(content, "logs", place),
        validate=_logs(content, "validate", place),
        output=None if output is None else folder / _text(output, "output", place),
        options=options,
    )


def _top_tables(content: Mapping[str, Any], place: Path) -> dict[str, Any]:
    """Options that the tables ``[coupling]`` and ``[[spring]]`` give."""
    found: dict[str, Any] = {"spring": content["spring"]} if "spring" in content else {}
    if "coupling" in content:
        terms, rest = split_table(content["coupling"], f"[coupling] of run file '{place}'")
        rows = rest.pop("matrix", ())
        if not all(isinstance(row, list | tuple) and len(row) == len(rows) for row in rows):
            raise InputError(
                f"'matrix' in [coupling] of run file '{place}' is {rows!r}, expected one row of numbers per joint"
            )
        entries = {(i, j): x for i, row in enumerate(rows, 1) for j, x in enumerate(row, 1) if float(x) != float(i == j)}
        found["coupling"] = (*(f"{i}:{j}={x!r}" for (i, j), x in entries.items()), *terms)
        found |= {{"effects": "motor_effects"}.get(name, name): value for name, value in rest.items()}
    return found


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


def _logs(content: Mapping[str, Any], name: str, place: Path) -> tuple[Path, ...]:
    """Logs by paths relative to the file, or by URLs."""
    items = [_text(item, name, place) for item in _list(content.get(name, []), name, place)]
    return tuple(log_path(item) if is_url(item) else place.parent / item for item in items)


def _seen_from(path: str | Path, folder: Path) -> str:
    """A path as the run file writes it: relative to the file, unless it is a URL or was given as an absolute one."""
    if isinstance(log_path(path), UrlPath):
        return json.dumps(str(log_path(path)), ensure_ascii=False)
    seen = Path(path) if Path(path).is_absolute() else Path(os.path.relpath(path, folder))
    return json.dumps(seen.as_posix(), ensure_ascii=False)  # a JSON string is a TOML string


def write_run_file(
    path: str | Path, robot: str | Path, logs: Sequence[str | Path], settings: Settings | None = None
) -> Path:
    """A commented run file for this robot and these logs, with every option written out.

    Options without a value of their own stand there as a comment, with an example.
    """
    place = Path(path)
    chosen = settings or Settings()
    lines = [
        f"# Run file of dynid: dynid identify --config {place.name}",
        "# Paths are relative to this file; flags on the command line win over what stands here.",
        "",
        f"robot = {_seen_from(robot, place.parent)}",
        f"logs = [{', '.join(_seen_from(log, place.parent) for log in logs)}]",
        '# validate = ["unseen.parquet"]    # logs to validate on; or split under [estimation]',
        'output = "run"',
    ]
    tables = [one for one in all_options() if not is_flag(one)]
    filled = [one for one in tables if getattr(chosen, one.name)]
    here = Path(os.path.relpath(Path.cwd(), place.parent.resolve()))
    lines += [f"{one.name} = {kind_of(one).toml(with_meshes_seen_from(getattr(chosen, one.name), here))}" for one in filled]
    for section, group in SECTIONS.items():
        lines += ["", f"[{section}]  # {group[:1].lower()}{group[1:]}"]
        for one in options_of(Settings, group):
            if is_flag(one):
                lines += _option_lines(one, getattr(chosen, one.name), place.parent)
    if not filled:
        lines += ["", *_CONSTRAINTS]
    from dynid.files import write_text

    write_text(place, "\n".join(lines) + "\n")
    return place


_CONSTRAINTS = """\
# [[constraints.mass]]                 # what is known of the links beyond physical consistency
# link = 1
# lower = 2.0
# upper = 4.0

# [coupling]                           # how motors drive joints: v_m6 = v_6 + v_5, log measured at the motors
# "6:5" = 1
# side = "motor"
# gear_ratios = [100, 100, 80, -80, 50, 50]

# [[spring]]                           # counterbalance between two points of joint 2, its geometry fitted
# joint = 2
# kind = "linear"

# [[conditions]]                       # of method = "retrieve": expressions of the parameters that must hold
# expression = "m1 > 2 * m2 if m2 > 0.5"
""".splitlines()


def _option_lines(one: Field[Any], value: Any, folder: Path) -> list[str]:
    """The meaning of an option as a comment, and its value; an example where it has none."""
    kind = kind_of(one)
    meaning = textwrap.wrap(str(one.metadata["help"]), 110)
    lines = [f"# {line}" for line in meaning]
    nothing = value is None or value in ({}, ())
    if nothing and one.name != "effects":
        return [*lines, f"# {one.name} = {kind.toml(one.metadata['example'])}"]
    path = kind.is_path(value)
    written = _seen_from(value, folder) if path else kind.toml(value)
    return [*lines, f"{one.name} = {written}"]
