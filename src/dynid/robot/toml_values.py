"""What a value of a robot's TOML file must be, with a sentence where it is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError


def check_keys(table: Mapping[str, Any], required: Sequence[str], optional: Sequence[str], where: str) -> None:
    """All that are required, and none that is unknown."""
    for key in required:
        if key not in table:
            raise InputError(f"{where} lacks the key '{key}'")
    for key in table:
        if key not in required and key not in optional:
            raise UnknownNameError("key", key, (*required, *optional), where)


def table_of(value: Any, what: str) -> Mapping[str, Any]:
    """A table."""
    if not isinstance(value, dict):
        raise InputError(f"{what} is {value!r}, expected a table")
    return value


def text(value: Any, what: str) -> str:
    """A name."""
    if not isinstance(value, str) or not value:
        raise InputError(f"{what} is {value!r}, expected a name")
    return value


def limit(value: Any, what: str) -> float:
    """A number that may be infinite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise InputError(f"{what} is {value!r}, expected a number")
    return float(value)


def number(value: Any, what: str) -> float:
    """A finite number."""
    found = limit(value, what)
    if not math.isfinite(found):
        raise InputError(f"{what} is {value!r}, expected a finite number")
    return found


def vector(value: Any, what: str) -> Array:
    """Three numbers."""
    if not isinstance(value, list) or len(value) != 3:
        raise InputError(f"{what} is {value!r}, expected three numbers")
    return np.array([number(entry, what) for entry in value])


def cosine_sine(angle: float) -> tuple[float, float]:
    """Exact at right angles, so that no 6e-17 leaks into expressions of base parameters."""
    cosine, sine = math.cos(angle), math.sin(angle)
    return (0.0 if abs(cosine) < 1e-15 else cosine), (0.0 if abs(sine) < 1e-15 else sine)


def pose_of(table: Mapping[str, Any], what: str) -> Array:
    """The 4x4 pose of ``position`` and ``rpy`` (turns about the fixed axes x, y, z in this order), either may be left out."""
    roll, pitch, yaw = vector(table.get("rpy", [0.0, 0.0, 0.0]), f"rpy of {what}")
    (cr, sr), (cp, sp), (cy, sy) = (cosine_sine(angle) for angle in (roll, pitch, yaw))
    pose = np.eye(4)
    about_x = np.array([[1.0, 0.0, 0.0], [0.0, cr, -sr], [0.0, sr, cr]])
    about_y = np.array([[cp, 0.0, sp], [0.0, 1.0, 0.0], [-sp, 0.0, cp]])
    about_z = np.array([[cy, -sy, 0.0], [sy, cy, 0.0], [0.0, 0.0, 1.0]])
    pose[:3, :3] = about_z @ about_y @ about_x
    pose[:3, 3] = vector(table.get("position", [0.0, 0.0, 0.0]), f"position of {what}")
    return pose
