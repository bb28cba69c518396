"""A user's own description of a log's columns, as a table or a TOML or JSON file.

```toml
time = "clock_ms"                        # or ["sec", "nanosec"]
position = "axis{number}.angle"          # pattern with {joint}, {index} (from 0) or {number} (from 1)
torque = ["load_a", "-load_b"]           # or the columns in the robot's joint order; a minus turns a column round
velocity = {shoulder = "w1", elbow = "w2"}   # or by joint
wrench = ["fx", "-fz", "fy", "mx", "-mz", "my"]   # force and moment of a sensor; a minus turns a column round
drive_gains = [10.0, 8.5]                # N m per A at the joint side
gear_ratios = [100, 100]                 # motor turns per joint turn
sign = {elbow = -1}                      # joints that count the other way, motion and torque alike; or [1, -1]
[units]
time = "ms"
position = "deg"
force = "kgf"                            # of a sensor: N, kN, kgf, lbf
moment = "Nmm"                           # Nm, Nmm, Ncm, kgfm, kgfmm, lbfin
[side]
torque = "motor"
[rename]                                 # column of the log = the name it should have
"Axis 1 pos" = "q1"
```
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynid.errors import InputError, UnknownNameError
from dynid.recording.quantities import COLUMN_OF_BODY_MOTION, COLUMN_OF_QUANTITY
from dynid.structured import json_value, read_limited, toml_table

_NAMED = (*COLUMN_OF_QUANTITY, *COLUMN_OF_BODY_MOTION, "gravity", "wrench")
KEYS = (
    "time",
    *_NAMED,
    "units",
    "side",
    "gear_ratios",
    "drive_gains",
    "sign",
    "rename",
    "header",
    "preset",
    "topic",
)
"""Every key of a mapping; docs/mapping.md has an example of each."""

Columns = str | Sequence[str] | Mapping[str, str]


@dataclass(frozen=True)
class LogMapping:
    """What a mapping says, checked for its form but not yet against a log."""

    time: tuple[str, ...] = ()
    columns: Mapping[str, Columns] = field(default_factory=dict)
    units: Mapping[str, Any] = field(default_factory=dict)
    side: Mapping[str, str] = field(default_factory=dict)
    gear_ratios: Any = None
    drive_gains: Any = None
    sign: Any = None
    rename: Mapping[str, str] = field(default_factory=dict)
    header: tuple[str, ...] | None = None
    preset: str | None = None
    topic: str | None = None


def read_mapping(mapping: Mapping[str, Any] | str | os.PathLike[str] | None) -> LogMapping:
    """A mapping from a table or from a TOML or JSON file."""
    if mapping is None:
        return LogMapping()
    where = "mapping"
    if not isinstance(mapping, Mapping):
        path = Path(mapping)
        where = str(path)
        if path.suffix.lower() not in (".toml", ".json"):
            raise InputError(f"{where}: a mapping file ends in .toml or .json")
        content = read_limited(path, f"mapping '{where}'")
        mapping = (toml_table if path.suffix.lower() == ".toml" else json_value)(content, f"mapping '{where}'")
        if not isinstance(mapping, Mapping):
            raise InputError(f"{where}: holds {type(mapping).__name__}, expected a table")
    for key in mapping:
        if key not in KEYS:
            raise UnknownNameError("key", str(key), KEYS, where)
    header = mapping.get("header")
    return LogMapping(
        time=_names(where, "time", mapping["time"], most=2) if "time" in mapping else (),
        columns={name: _columns(where, name, mapping[name]) for name in _NAMED if name in mapping},
        units=_texts(where, "units", mapping),
        side=_texts(where, "side", mapping),
        gear_ratios=_numbers(where, "gear_ratios", mapping.get("gear_ratios")),
        drive_gains=_numbers(where, "drive_gains", mapping.get("drive_gains")),
        sign=_numbers(where, "sign", mapping.get("sign")),
        rename=_texts(where, "rename", mapping),
        header=None if header is None else _names(where, "header", header),
        preset=_text(where, "preset", mapping.get("preset")),
        topic=_text(where, "topic", mapping.get("topic")),
    )


def _text(where: str, key: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InputError(f"{where}: '{key}' is {value!r:.80}, expected text")
    return value


def _numbers(where: str, key: str, value: Any) -> Any:
    """Numbers in the order of the joints, or by joint; a program may give arrays."""
    found = list(value.values()) if isinstance(value, Mapping) else value
    if value is None or not isinstance(found, list | tuple | str | bool | int | float):
        return value
    if not isinstance(found, list | tuple) or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in found):
        raise InputError(f"{where}: '{key}' is {value!r:.80}, expected a list of numbers or a table joint = number")
    return value


def _names(where: str, key: str, value: Any, most: int | None = None) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (list, tuple)) else ()
    if not names or not all(isinstance(name, str) for name in names) or (most is not None and len(names) > most):
        amount = f"one to {most} column names" if most else "column names"
        raise InputError(f"{where}: '{key}' is {value!r}, expected {amount}")
    return names


def _columns(where: str, key: str, value: Any) -> Columns:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value.values()):
        return dict(value)
    if isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise InputError(f"{where}: '{key}' is {value!r}, expected a pattern, a list of columns or a table joint = column")


def _texts(where: str, key: str, mapping: Mapping[str, Any]) -> dict[str, str]:
    table = _table(where, key, mapping)
    for name, value in table.items():
        if not isinstance(value, str):
            raise InputError(f"{where}: '{name}' of '{key}' is {value!r:.80}, expected text")
    return table


def _table(where: str, key: str, mapping: Mapping[str, Any]) -> dict[str, Any]:
    value = mapping.get(key, {})
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: '{key}' is {value!r}, expected a table")
    return dict(value)
