"""Columns that do not go by joint alone: the inertia matrix of pose tables, wrench and body motion of sensor logs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dynid.errors import InputError, UnknownNameError
from dynid.recording.quantities import COLUMN_OF_BODY_MOTION
from dynid.recording.readers.columns import LogColumns, Slot
from dynid.recording.readers.names import fold

_INERTIA = ("m", "inertia", "mass_matrix", "inertia_matrix")
_MATRIX_ENTRY = re.compile(r"M[_\[( ]?\d+[_, ]*\d+[\])]?")
_SEPARATED = re.compile(r"M[_\[( ]?(\d{1,4})[_, ]+(\d{1,4})[\])]?")
_TOGETHER = re.compile(r"M_?(\d{2,8})")
_FORCE = ("f", "force", "wrench_force", "ft_force", "forces")
_MOMENT = ("m", "t", "moment", "torque", "wrench_torque", "ft_torque", "tau")
_WRENCH = ("wrench", "ft", "force_torque", "actual_tcp_force", "ft_raw_wrench")
_BODY: Mapping[str, tuple[str, ...]] = {
    "linear_velocity": ("v", "linear_velocity", "twist_linear", "velocity_linear"),
    "angular_velocity": ("w", "omega", "angular_velocity", "twist_angular", "gyro", "gyroscope"),
    "linear_acceleration": ("a", "acc", "linear_acceleration", "proper_acceleration", "accelerometer"),
    "angular_acceleration": ("alpha", "dw", "domega", "angular_acceleration"),
}


def has_inertia(columns: LogColumns) -> bool:
    """Whether some column looks like an entry of the inertia matrix, or holds whole matrices."""
    return any(
        (shape == () and _MATRIX_ENTRY.fullmatch(name.strip()) is not None) or (len(shape) == 2 and fold(name) in _INERTIA)
        for name, shape in columns.shapes.items()
    )


def inertia_slots(columns: LogColumns, n: int, kept: Sequence[int]) -> tuple[Slot, ...] | None:
    """Slots of the inertia matrix of ``n`` joints, the rows and columns ``kept``; None where the log has none."""
    square = _inertia_square(columns, n)
    return None if square is None else tuple(square[i * n + j] for i in kept for j in kept)


def _inertia_square(columns: LogColumns, n: int) -> tuple[Slot, ...] | None:
    for alias in _INERTIA:
        for column in columns.folded.get(alias, ()):
            shape = columns.shapes[column]
            if len(shape) == 2:
                if shape != (n, n):
                    raise InputError(f"{columns.where}: inertia matrices '{column}' are {shape}, robot has {n} joints")
                return tuple(Slot(column, k) for k in range(n * n))
    return _inertia_entries(columns, n)


def _inertia_entries(columns: LogColumns, n: int) -> tuple[Slot, ...] | None:
    found, outside = _named_entries(columns, n)
    if not found:
        return None
    square = {(i, j): found.get((i, j), found.get((j, i))) for i in range(n) for j in range(n)}
    absent = sorted({(max(k), min(k)) for k, slot in square.items() if slot is None})
    if absent or outside:
        have = len({(max(k), min(k)) for k in found}) + outside
        hint = f"; M{absent[0][0] + 1}{absent[0][1] + 1} is missing" if absent else ""
        raise InputError(
            f"{columns.where}: log has {have} inertia columns, robot with {n} joints needs {n * (n + 1) // 2}{hint}"
        )
    return tuple(slot for slot in square.values() if slot is not None)


def _named_entries(columns: LogColumns, n: int) -> tuple[dict[tuple[int, int], Slot], int]:
    """Columns of single entries by their place in the matrix, and how many others are named like one."""
    entries = {name: _matrix_entry(name, n) for name, shape in columns.shapes.items() if shape == ()}
    found = {entry: Slot(name) for name, entry in entries.items() if entry is not None}
    other = [name for name, entry in entries.items() if entry is None and _MATRIX_ENTRY.fullmatch(name.strip())]
    return found, len(other)


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


def wrench_slots(columns: LogColumns) -> tuple[Slot, ...] | None:
    """Six slots, force then moment; None where the log has no such columns."""
    for alias in _WRENCH:
        for column in columns.folded.get(alias, ()):
            if columns.shapes[column] == (6,):
                return tuple(Slot(column, k) for k in range(6))
        six = [columns.one(f"{alias}_{k}") for k in range(6)]
        if all(name is not None for name in six):
            return tuple(Slot(name) for name in six if name is not None)
    force, moment = _axes(columns, _FORCE), _axes(columns, _MOMENT)
    return (*force, *moment) if force is not None and moment is not None else None


def body_motion_slots(columns: LogColumns) -> dict[str, tuple[Slot, ...]]:
    """Slots of the motion of the sensor body, as far as the log has it."""
    found = {name: _axes(columns, _BODY[name]) for name in COLUMN_OF_BODY_MOTION}
    return {name: slots for name, slots in found.items() if slots is not None}


def _axes(columns: LogColumns, names: Sequence[str]) -> tuple[Slot, ...] | None:
    for alias in names:
        for column in columns.folded.get(alias, ()):
            if columns.shapes[column] == (3,):
                return tuple(Slot(column, k) for k in range(3))
        for separator in ("_", ""):
            three = [columns.one(f"{alias}{separator}{axis}") for axis in "xyz"]
            if all(name is not None for name in three):
                return tuple(Slot(name) for name in three if name is not None)
    return None


def mapped_axes(columns: LogColumns, name: str, given: str | Sequence[str] | Mapping[str, str]) -> tuple[Slot, ...]:
    """The columns that a mapping names for the wrench (six) or for a motion of the body (three)."""
    n = 6 if name == "wrench" else 3
    if isinstance(given, str):
        if columns.shapes.get(given) == (n,):
            return tuple(Slot(given, k) for k in range(n))
        raise InputError(f"{columns.where}: mapping of '{name}' is '{given}', expected {n} columns")
    named = tuple(given)
    if isinstance(given, Mapping) or len(named) != n:
        raise InputError(f"{columns.where}: mapping of '{name}' has {len(named)} columns, expected a list of {n}")
    slots = tuple(_signed(columns, column) for column in named)
    for slot in slots:
        if slot.column not in columns.shapes:
            raise UnknownNameError("column", slot.column, columns.shapes, columns.where)
    return slots


def _signed(columns: LogColumns, name: str) -> Slot:
    """A column, negated where its name follows a minus sign that is not its own."""
    negated = name.startswith("-") and name not in columns.shapes
    return Slot(name[1:].strip(), negated=True) if negated else Slot(name)
