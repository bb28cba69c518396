"""Visual and collision shapes of a URDF or SDF description in an MJCF or SDF file that is written anew.

SDF has elements of the same meaning. In MJCF they are geoms: looks are drawn and touch nothing (group 2), collision shapes touch other
things and not each other (``contype="1" conaffinity="0"``), because shapes of neighbouring links overlap in most descriptions, and a
contact there would hold the joint. They are hidden (group 3) where the link has looks. No shape has mass: the inertials are those
identified. In both, meshes are named by their way from the new file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dynid.errors import InputError
from dynid.io.robots.description import Description, link_places, read_description
from dynid.io.robots.mujoco_model import mujoco_reason, mujoco_warnings
from dynid.io.robots.shapes import Shape, stated_shapes
from dynid.io.robots.simulator_joint import number, vector
from dynid.io.robots.xml import add_element
from dynid.model.poses import quaternion_from_rotation
from dynid.model.robot import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Made = TypeVar("Made")
MESH_SUFFIXES = {"MuJoCo": (".stl", ".obj", ".msh"), "Gazebo": (".dae", ".stl", ".obj", ".glb")}
"""Meshes that each reads."""
_LOOK = {"group": "2", "contype": "0", "conaffinity": "0"}
_TOUCH = {"contype": "1", "conaffinity": "0"}
_MOST_NAMED = 6
"""Shapes that one note names."""


class _NotWrittenError(Exception):
    """Why a shape is not written; the first argument is the reason, the second what it is about."""


def add_shapes(root: Element, elements: Mapping[str, Element], robot: Robot, target: Path, notes: list[str]) -> None:
    """Put the shapes of the robot's URDF or SDF file into a new MJCF file.

    Args:
        root: the new file, with its bodies.
        elements: the bodies by link.
        robot: the robot, which remembers its file.
        target: where the new file will lie.
        notes: what could not be written is added.
    """
    from xml.etree.ElementTree import SubElement

    assets = _Assets(root, target)
    written = _written(robot, elements, assets.geom, "MJCF", notes)
    drawn = {shape.link for shape, _ in written if shape.visual}
    for shape, geom in written:
        element = elements[shape.link]
        if element.find("inertial") is None:  # without one MuJoCo would weigh the geoms
            SubElement(element, "inertial", pos="0 0 0", mass="0", diaginertia="0 0 0")
        role = _LOOK if shape.visual else _TOUCH | ({"group": "3"} if shape.link in drawn else {})
        placed = {"pos": vector(shape.pose[:3, 3]), "quat": vector(quaternion_from_rotation(shape.pose[:3, :3]))}
        look = {"rgba": shape.colour} if shape.colour else {}
        SubElement(element, "geom", geom | look | placed | {"mass": "0"} | role)
    if any(not shape.visual for shape, _ in written):
        notes.append("collision shapes touch other things, not each other (contype 1, conaffinity 0)")


def sdf_shapes(robot: Robot, target: Path, notes: list[str]) -> list[tuple[Shape, Element]]:
    """Shapes of the robot's URDF file with the ``<geometry>`` of each in a new SDF file; what could not be written is noted."""
    folder = target.resolve().parent
    return _written(robot, link_places(robot), partial(_geometry, folder=folder), "SDF", notes)


def _written(
    robot: Robot, links: Container[str], made: Callable[[Shape], Made], format: str, notes: list[str]
) -> list[tuple[Shape, Made]]:
    """Shapes of these links, each with what a format makes of it."""
    description = _described(robot, notes)
    if description is None:
        return []
    missing: dict[str, list[str]] = {}
    written: list[tuple[Shape, Made]] = []
    for link, part, read in stated_shapes(description, robot.source.format):
        try:
            if link in links:
                shape = read()
                written.append((shape, made(shape)))
        except _NotWrittenError as left:
            missing.setdefault(str(left.args[0]), []).append(f"{part.tag} of '{link}' {left.args[1]}".rstrip())
        except InputError as error:
            missing.setdefault(str(error), []).append(f"{part.tag} of '{link}'")
    for reason, parts in missing.items():
        more = f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
        notes.append(f"shapes left out, {reason}: {', '.join(parts[:_MOST_NAMED])}{more}")
    if not written:
        notes.append(f"{description.where} has no shape that {format} can hold: a viewer shows nothing")
    return written


def _geometry(shape: Shape, folder: Path) -> Element:
    """``<geometry>`` of SDF."""
    from xml.etree.ElementTree import Element

    made, solid = Element("geometry"), shape.solid
    if solid is None:
        mesh = add_element(made, "mesh")
        add_element(mesh, "uri", os.path.relpath(_mesh_file(shape, "Gazebo"), folder))
        if shape.scale != (1.0, 1.0, 1.0):
            add_element(mesh, "scale", vector(np.array(shape.scale)))
        return made
    if solid.kind == "cone":
        raise _NotWrittenError("SDF 1.8 has no <cone>", "")
    element = add_element(made, solid.kind)
    if solid.kind in ("box", "ellipsoid"):
        name, sizes = ("size", 2.0 * np.array(solid.sizes)) if solid.kind == "box" else ("radii", np.array(solid.sizes))
        add_element(element, name, vector(sizes))
    else:
        add_element(element, "radius", number(solid.sizes[0]))
        add_element(element, "length", number(2.0 * solid.sizes[1]))
    return made


def _described(robot: Robot, notes: list[str]) -> Description | None:
    """The file that the robot was read from, where it is as it was."""
    if robot.source.format not in ("urdf", "sdf") or not robot.source.path:
        return None
    if not Path(robot.source.path).is_file():
        notes.append(f"robot file '{robot.source.path}' is no longer there: written without its shapes")
        return None
    description = read_description(robot.source.path)
    if description.source(robot.source.format).sha256 != robot.source.sha256:
        notes.append(f"{description.where} has changed since the robot was read from it: written without its shapes")
        return None
    return description


# Meshes ---------------------------------------------------------------------------------------
def _mesh_file(shape: Shape, program: str) -> Path:
    """The file of a mesh that a program may be able to read."""
    if shape.tag != "mesh":
        raise _NotWrittenError(f"<{shape.tag}> is not written", "")
    try:
        file = shape.mesh_file()
    except InputError as error:
        raise _NotWrittenError("their files cannot be had", f"('{shape.mesh}')") from error
    if file.suffix.lower() not in MESH_SUFFIXES[program]:
        raise _NotWrittenError(f"{program} reads {', '.join(MESH_SUFFIXES[program])} alone", f"({file.name})")
    return file.resolve()


class _Assets:
    """The meshes of the new file, each once."""

    def __init__(self, root: Element, target: Path) -> None:
        self._root, self._folder = root, target.resolve().parent
        self._known: dict[tuple[Path, tuple[float, ...]], str] = {}

    def geom(self, shape: Shape) -> dict[str, str]:
        """Type and sizes, or name of the mesh, of a geom."""
        if shape.solid is None:
            return {"type": "mesh", "mesh": self._name_of(shape)}
        kind, sizes = shape.solid.kind, np.array(shape.solid.sizes)
        if kind == "cone":
            raise _NotWrittenError("MJCF has no <cone>", "")
        if kind == "ellipsoid" and np.ptp(sizes) == 0.0:
            return {"type": "sphere", "size": vector(sizes[:1])}
        return {"type": kind, "size": vector(sizes)}

    def _name_of(self, shape: Shape) -> str:
        """The name of a mesh, which is added at its first use."""
        from xml.etree.ElementTree import Element, SubElement

        key = _mesh_file(shape, "MuJoCo"), shape.scale
        if key in self._known:
            return self._known[key]
        reason = _unreadable(str(key[0]), shape.scale, key[0].stat().st_mtime_ns)
        if reason:
            raise _NotWrittenError(reason, f"({key[0].name})")
        assets = self._root.find("asset")
        if assets is None:
            assets = Element("asset")
            self._root.insert(list(self._root).index(self._root.find("worldbody")), assets)  # type: ignore[arg-type]
        taken, name = set(self._known.values()), key[0].stem
        while name in taken:
            name = f"{key[0].stem}_{len(taken)}" if name == key[0].stem else f"{name}_"
        # shell: looks may be open or thin, and a mesh without volume is refused; no mass follows from it
        mesh = {"name": name, "file": os.path.relpath(key[0], self._folder), "inertia": "shell"}
        scale = {} if shape.scale == (1.0, 1.0, 1.0) else {"scale": vector(np.array(shape.scale))}
        SubElement(assets, "mesh", mesh | scale)
        self._known[key] = name
        return name


@lru_cache(maxsize=256)
def _unreadable(file: str, scale: tuple[float, ...], _changed: int) -> str:
    """Why MuJoCo does not take a mesh; empty where it does."""
    import mujoco

    spec = mujoco.MjSpec()
    shell = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    spec.add_mesh(name="mesh", file=file, scale=list(scale), inertia=shell)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="mesh")
    try:
        with mujoco_warnings():
            spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        return f"MuJoCo does not read them ({mujoco_reason(error).replace(file, Path(file).name)})"
    return ""
