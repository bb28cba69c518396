"""The bytes of a robot description, what the values of a TOML file must be, and which mesh files may be opened.

Links and joints of a file become a robot; limits that it lacks.

The tree is walked outward from the ground. Links that fixed joints hold to a body are merged into it and remembered: with ``P`` the
pose of a merged link in the frame of its body,

    phi_body = phi_link + sum X(P) phi_merged.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.files import read_limited
from dynid.io.robots.xml import parse_xml
from dynid.model.inertia import change_of_frame, phi_from_mass_com_inertia
from dynid.model.joint import Joint, JointKind, MergedLink
from dynid.model.poses import make_pose, rotation_from_rpy
from dynid.model.robot import Robot, Source, make_robot

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


FLOATING_JOINT = "root_joint"
"""Name of the floating joint under an outermost link that nothing holds to the ground."""

Limit: TypeAlias = Literal["position", "velocity", "acceleration", "torque"]
LIMITS: tuple[Limit, ...] = ("position", "velocity", "acceleration", "torque")
_FIELDS: dict[Limit, tuple[str, ...]] = {
    "position": ("q_min", "q_max"),
    "velocity": ("dq_max",),
    "acceleration": ("ddq_max",),
    "torque": ("tau_max",),
}


@dataclass(frozen=True, eq=False)
class DescribedJoint:
    """One joint as a file describes it, between two of its links."""

    name: str
    kind: JointKind | Literal["fixed"]
    parent: str | None
    """Link that carries it; None for the ground."""
    child: str
    placement: Array
    """4x4 pose of the child in its parent at position zero."""
    screw: Array = field(default_factory=lambda: np.zeros(6))
    """Linear and angular part in the child's frame."""
    limits: Mapping[str, float] = field(default_factory=dict)
    nominal: Mapping[str, float] = field(default_factory=dict)


def walk_tree(joints: Iterable[DescribedJoint]) -> list[DescribedJoint]:
    """The joints that the ground carries, depth first, those of one link in the order in which they are given."""
    below: dict[str | None, list[DescribedJoint]] = {}
    for joint in joints:
        below.setdefault(joint.parent, []).append(joint)
    found: list[DescribedJoint] = []
    waiting = below.get(None, [])[::-1]
    while waiting:
        found.append(waiting.pop())
        waiting.extend(below.get(found[-1].child, [])[::-1])
    return found


def assemble_robot(
    name: str,
    joints: Iterable[DescribedJoint],
    inertials: Mapping[str, Array],
    source: Source,
    where: str,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Robot:
    """The robot of a file, without effects.

    Args:
        name: of the robot.
        joints: at most one on every link; the joints of one link in the order in which they are to be numbered.
        inertials: the ten parameters of every link in its own frame.
        source: what is remembered of the file.
        where: what messages call the file.
        gravity: in the base frame, m/s^2.
    """
    moving: list[Joint] = []
    links: list[str] = []
    phi: list[Array] = []
    merged: list[MergedLink] = []
    # the body that carries a link, and the pose of the link in its frame
    carried: dict[str | None, tuple[int, Array]] = {None: (-1, np.eye(4))}
    for joint in walk_tree(joints):
        body, pose = carried[joint.parent]
        placement, own = pose @ joint.placement, inertials[joint.child]
        if joint.kind == "fixed":
            carried[joint.child] = body, placement
            merged.append(MergedLink(joint.child, body, placement, own))
            if body >= 0:
                phi[body] = phi[body] + change_of_frame(placement[:3, :3], placement[:3, 3]) @ own
        else:
            carried[joint.child] = len(moving), np.eye(4)
            moving.append(Joint(joint.name, joint.kind, body, placement, joint.screw, nominal=joint.nominal, **joint.limits))
            links.append(joint.child)
            phi.append(own)
    lost = [link for link in inertials if link not in carried]
    if lost:
        raise InputError(f"{where} is cyclic: links {', '.join(lost[:5])} are each other's parents")
    if not moving:
        raise InputError(f"{where} has no moving joint")
    return make_robot(name, moving, np.array(phi), links=links, gravity=gravity, merged=merged, source=source)


def link_places(robot: Robot) -> dict[str, tuple[int, Array]]:
    """Body and pose in it of every link of the description, be it merged into another one; the ground is body -1."""
    places = {name: (body, np.eye(4)) for body, name in enumerate(robot.links)}
    return places | {link.name: (link.body, np.array(link.placement)) for link in robot.merged}


def require_limits(robot: Robot, limits: Iterable[Limit] = ("position", "velocity")) -> None:
    """Refuse a robot without one of these limits on a driven joint; continuous joints need no range."""
    for limit in limits:
        lacking = _lacking(robot.driven_joints, limit)
        if lacking:
            raise InputError(
                f"robot '{robot.name}' has no {limit} limit ({' and '.join(_FIELDS[limit])}) on "
                f"joint{'s' * (len(lacking) > 1)} {', '.join(lacking)}; expected a finite one"
            )


def limit_notes(joints: Sequence[Joint], limits: Iterable[Limit] = ("position", "velocity", "torque")) -> list[str]:
    """One note per kind of limit that a description does not give."""
    driven = [joint for joint in joints if joint.kind != "floating"]
    notes = []
    for limit in limits:
        lacking = _lacking(driven, limit)
        if lacking:
            which = "every joint" if len(lacking) == len(driven) else ", ".join(lacking)
            notes.append(f"no {limit} limit: {which}")
    return notes


def _lacking(joints: Sequence[Joint], limit: Limit) -> list[str]:
    return [
        joint.name
        for joint in joints
        if not (limit == "position" and joint.kind == "continuous")
        and not all(np.isfinite(getattr(joint, field)) for field in _FIELDS[limit])
    ]
