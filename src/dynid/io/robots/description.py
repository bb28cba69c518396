"""The bytes of a robot description, what the values of a TOML file must be, and which mesh files may be opened."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.files import read_limited
from dynid.io.robots.xml import parse_xml
from dynid.model.inertia import phi_from_mass_com_inertia
from dynid.model.poses import make_pose, rotation_from_rpy
from dynid.model.robot import Source

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LARGEST_FILE_BYTES = 64 * 2**20
"""No description of a robot is longer; a larger file is a mistake or an attack."""


@dataclass(frozen=True)
class Description:
    """The content of one description file, read once."""

    path: Path
    content: bytes

    def source(self, format: str, notes: tuple[str, ...] = ()) -> Source:
        """What a robot made from this file remembers of it."""
        return Source(str(self.path), format, hashlib.sha256(self.content).hexdigest(), notes)

    @property
    def where(self) -> str:
        """What messages call the file."""
        return f"robot file '{self.path}'"

    @property
    def root(self) -> Element:
        """The outermost element of an XML file, vetted."""
        return parse_xml(self.content, self.where)

    @property
    def text(self) -> str:
        """The content as UTF-8 text."""
        try:
            return self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{self.where} is not UTF-8 text: byte {error.start} cannot be decoded") from None


def read_description(path: str | PathLike[str]) -> Description:
    """The file's content, or the sentence that says why it cannot be had."""
    file = Path(path)
    if not file.exists():
        raise InputError(f"robot file '{file}' does not exist")
    if not file.is_file():
        raise InputError(f"robot file '{file}' is not a file")
    content = read_limited(file, f"robot file '{file}'", LARGEST_FILE_BYTES)
    if not content.strip():
        raise InputError(f"robot file '{file}' is empty")
    return Description(file, content)


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


def pose_of(table: Mapping[str, Any], what: str) -> Array:
    """The 4x4 pose of ``position`` and ``rpy`` (turns about the fixed axes x, y, z in this order), either may be left out."""
    rpy = vector(table.get("rpy", [0.0, 0.0, 0.0]), f"rpy of {what}")
    return make_pose(rotation_from_rpy(*rpy.tolist()), vector(table.get("position", [0.0, 0.0, 0.0]), f"position of {what}"))


TENSOR = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
"""What formats call the entries of an inertia, and where they stand in it."""


def body_parameters(mass: float, pose: Array, moments: Iterable[float]) -> Array:
    """The ten parameters of a body whose centre and axes stand at a pose; ``moments`` in the order of :data:`TENSOR`."""
    xx, xy, xz, yy, yz, zz = moments
    R = pose[:3, :3]
    inertia = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    return phi_from_mass_com_inertia(mass, pose[:3, 3], inertia)


MOST_MESH_BYTES = 64_000_000
"""Largest file of one mesh that is read."""


def vetted_mesh(file: Path, described: Path) -> Path:
    """A mesh of a description; refused where it is not there, no ordinary file or too large, before anything opens it."""
    if not file.exists():
        raise InputError(f"mesh '{file}' of robot file '{described}' is not there")
    if not file.is_file():
        raise InputError(f"mesh '{file}' of robot file '{described}' is not an ordinary file")
    if (size := file.stat().st_size) > MOST_MESH_BYTES:
        raise InputError(
            f"mesh '{file}' of robot file '{described}' has {size / 1e6:.0f} MB, expected at most {MOST_MESH_BYTES / 1e6:.0f} MB"
        )
    return file


def home_of(folder: Path) -> Path:
    """Where the meshes of a description in this folder may lie: its parent, unless that holds everything."""
    return folder if folder.parent == folder.parent.parent else folder.parent
