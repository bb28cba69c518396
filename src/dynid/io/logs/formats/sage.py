"""SAGE recordings: a folder with ``control.csv``, ``state_motor.csv`` and ``joint_list.txt``.

Rows are ``type,timestamp,positions,velocities,torques`` with a list of numbers per cell; stamps are seconds (simulation) or microseconds
(robot). Commands have a clock of their own: each state gets the command that was in force, the last one sent before it.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.files import check_memory, read_limited
from dynid.io.logs.table import OpenOptions, Table, array_table, named_elements

_STATE, _CONTROL, _JOINTS = "state_motor.csv", "control.csv", "joint_list.txt"
_LONGEST_STEP_S = 1.0
"""Median step of the clock above which stamps are microseconds, not seconds."""
_LONGEST_CELL = 1_000_000


class SageFormat:
    """Folders of SAGE."""

    name = "sage"
    suffixes = ()

    def recognises(self, path: Path, head: bytes) -> bool:
        """A folder with both tables."""
        return not head and (path / _STATE).is_file() and (path / _CONTROL).is_file()

    def open(self, path: Path, options: OpenOptions) -> Table:
        """Motor states, with the command in force at each."""
        time, state = _table(path / _STATE)
        sent, control = _table(path / _CONTROL)
        if "positions" not in state or "positions" not in control:
            raise InputError(f"{path}: a table has no column 'positions', expected one in {_STATE} and in {_CONTROL}")
        commands = control["positions"]
        if commands.shape[1] != state["positions"].shape[1]:
            raise InputError(
                f"{path}: {_CONTROL} has {commands.shape[1]} joints and {_STATE} has {state['positions'].shape[1]}, expected as many"
            )
        place = np.searchsorted(sent, time, side="right") - 1
        if (place < 0).all():
            raise InputError(
                f"{path}: no command was sent before the last state: the clocks of {_CONTROL} and {_STATE} are apart"
            )
        begun = place >= 0
        arrays: dict[str, NDArray[Any]] = {
            "t": time[begun] - time[begun][0],
            "q": state["positions"][begun],
            "q_cmd": commands[place[begun]],
        }
        if "velocities" in state:
            arrays["dq"] = state["velocities"][begun]
        notes = ("each state has the last command before it; torques of the file are motor loads and not used",)
        listed = read_limited(path / _JOINTS, f"{path}: {_JOINTS}").decode() if (path / _JOINTS).is_file() else ""
        names = tuple(line.strip() for line in listed.replace(",", "\n").splitlines() if line.strip())
        return array_table("sage", arrays, element_names=named_elements(arrays, names), notes=notes)


def _table(path: Path) -> tuple[Array, dict[str, Array]]:
    """Stamps in seconds, and the lists of every column that has numbers, rows by joints."""
    check_memory(f"{path}", 16 * path.stat().st_size)  # numbers as Python holds them
    columns: dict[str, list[list[float]]] = {}
    stamps: list[float] = []
    with path.open(newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            if "timestamp" not in row:
                raise InputError(f"{path}: no column 'timestamp', found {', '.join(map(str, row))}")
            try:
                stamps.append(float(row["timestamp"]))
            except ValueError:
                text = row["timestamp"]
                raise InputError(f"{path}: line {number} has the timestamp '{text}', expected a number") from None
            for name in ("positions", "velocities"):
                if text := row.get(name):
                    columns.setdefault(name, []).append(_numbers(text, f"{path}: line {number}"))
    if len(stamps) < 2:
        raise InputError(f"{path}: {len(stamps)} rows, expected at least 2")
    time = np.array(stamps)
    if np.median(np.diff(time)) > _LONGEST_STEP_S:
        time = time * 1e-6
    found = {}
    for name, rows in columns.items():
        widths = {len(row) for row in rows}
        if len(widths) == 1 and 0 not in widths and len(rows) == len(stamps):
            found[name] = np.array(rows)
    return time, found


def _numbers(text: str, where: str) -> list[float]:
    """The numbers of one cell."""
    try:
        values = json.loads(text.replace("nan", "NaN")) if len(text) < _LONGEST_CELL else None
    except json.JSONDecodeError:
        values = None
    if not isinstance(values, list) or not all(isinstance(x, int | float) for x in values):
        raise InputError(f"{where} has '{text[:40]}', expected a list of numbers such as [0.1, 0.2]")
    return [float(x) for x in values]
