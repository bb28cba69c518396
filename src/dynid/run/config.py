"""Run files: everything the command line takes, in one commented TOML file; flags win over it."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.constraints import with_meshes_seen_from
from dynid.run.settings import Settings

_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "model": ("effects", "friction", "gravity", "lock"),
    "signals": (
        "velocity", "cutoff_hz", "torque_cutoff_hz", "filter_order", "dead_zone", "from_s", "to_s", "drive_gains", "preset",
        "mapping", "max_rows",
    ),
    "estimation": ("method", "split", "bounds", "optimiser", "starts", "seed", "prior", "prior_strength"),
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

    def settings(self, flags: Mapping[str, Any]) -> Settings:
        """Settings of the file with those of the flags over them."""
        return Settings.from_dict({**self.options, **flags})


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
    if "constraints" in content:
        options["constraints"] = with_meshes_seen_from(content["constraints"], folder)
    for name in ("bounds", "mapping"):
        if name in options:
            options[name] = str(folder / _text(options[name], name, place))
    robot, output = content.get("robot"), content.get("output")
    return RunFile(
        robot=None if robot is None else folder / _text(robot, "robot", place),
        logs=tuple(folder / _text(item, "logs", place) for item in _list(content.get("logs", []), "logs", place)),
        validate=tuple(
            folder / _text(item, "validate", place) for item in _list(content.get("validate", []), "validate", place)
        ),
        output=None if output is None else folder / _text(output, "output", place),
        options=options,
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


def _seen_from(path: str | Path, folder: Path) -> str:
    """A path as the run file writes it: relative to the file, unless it was given as an absolute one."""
    seen = Path(path) if Path(path).is_absolute() else Path(os.path.relpath(path, folder))
    return json.dumps(seen.as_posix(), ensure_ascii=False)  # a JSON string is a TOML string


def write_run_file(path: str | Path, robot: str | Path, logs: list[str | Path]) -> Path:
    """A commented run file for this robot and these logs, with every default written out."""
    defaults = Settings()
    place = Path(path)
    listed = ", ".join(_seen_from(log, place.parent) for log in logs)
    text = f"""# Run file of dynid: dynid identify --config {place.name}
# Paths are relative to this file; flags on the command line win over what stands here.

robot = {_seen_from(robot, place.parent)}
logs = [{listed}]
# validate = ["unseen.parquet"]        # logs to validate on; or [estimation] split
output = "run"

[model]
effects = [{", ".join(f'"{name}"' for name in defaults.effects)}]   # [] for rigid bodies only
# friction = "auto"                    # a model in place of viscous, coulomb, offset: linear, sigmoid, stribeck, load, auto
# gravity = [0.0, 0.0, -9.81]          # default: the description's
# lock = {{ finger_joint = 0.02 }}       # joints to hold and merge

[signals]
velocity = "{defaults.velocity}"                     # "logged", "position" (differentiated) or "auto"
cutoff_hz = "{defaults.cutoff_hz}"                   # Hz, or "auto": what predicts held-out raw torque best
# torque_cutoff_hz = 20.0              # default: the same
filter_order = {defaults.filter_order}
dead_zone = "{defaults.dead_zone}"                   # rad/s, or "auto": three times the velocity noise
# from_s = 0.0                         # use each log from here
# to_s = 60.0                          # up to here
# drive_gains = [10.0, 10.0, 8.0]      # N m per A, where the log holds motor current
# preset = "rtde"                      # libfranka, rtde, fri, joint_states
# mapping = "columns.toml"             # names of the log's columns

[estimation]
method = "{defaults.method}"                       # sdp, retrieve, ols, wls, robust, tls, ridge, essential, recursive, iv,
                                     # manifold, logcholesky
prior = "{defaults.prior}"                      # what holds sdp where data are silent: none, euclidean, scaled, entropic or auto
prior_strength = {defaults.prior_strength}                   # 1: the description is as uncertain as each parameter's size
# split = 0.65                         # identify on this share of each log, validate on the rest
# bounds = "bounds.csv"                # for method = "retrieve": name, lower, upper of m1, c1x, I1xx, total_mass
# optimiser = "annealing"              # of method = "retrieve"; default "refine", from the convex relaxation
# starts = 4

# [[constraints.mass]]                 # what is known of the links beyond physical consistency
# link = 1
# lower = 2.0
# upper = 4.0
"""
    from dynid.files import write_text

    write_text(place, text)
    return place
