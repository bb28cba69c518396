"""Visual and collision shapes of a URDF or SDF description as geoms of an MJCF file that is written anew.

Looks are drawn and touch nothing (group 2). Collision shapes touch other things and not each other (``contype="1" conaffinity="0"``):
shapes of neighbouring links overlap in most descriptions, and a contact there would hold the joint. They are hidden (group 3) where the
link has looks. No shape has mass: the inertials are those identified. Meshes are named by their way from the new file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.io.robots.description import Description, check_mesh_file, read_description
from dynid.io.robots.mujoco_model import mujoco_reason, mujoco_warnings
from dynid.io.robots.sdf_read import sdf_frames, sdf_model, stated_pose
from dynid.io.robots.shapes import plain_solid, sdf_mesh_file, urdf_mesh_file
from dynid.io.robots.simulator_joint import vector
from dynid.io.robots.urdf_read import origin_pose, urdf_root
from dynid.io.robots.xml import named_elements, read_numbers, text_numbers
from dynid.model.poses import inverse_pose, quaternion_from_rotation
from dynid.model.robot import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MESH_SUFFIXES = (".stl", ".obj", ".msh")
"""Meshes that MuJoCo reads."""
_LOOK = {"group": "2", "contype": "0", "conaffinity": "0"}
_TOUCH = {"contype": "1", "conaffinity": "0"}
_MOST_NAMED = 6
"""Shapes that one note names."""


@dataclass(frozen=True, eq=False)
class Shape:
    """One visual or collision element: a plain solid, or a mesh by its file."""

    link: str
    visual: bool
    pose: Array
    """4x4, in the frame of the link."""
    attributes: Mapping[str, str]
    """Type and sizes as a geom has them; colour."""
    file: Path | None = None
    scale: tuple[float, ...] = (1.0, 1.0, 1.0)


class _NotWrittenError(Exception):
    """Why a shape has no geom; the first argument is the reason, the second what it is about."""


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

    description = _described(robot, notes)
    if description is None:
        return
    missing: dict[str, list[str]] = {}
    shapes = list(_read_shapes(robot.source.format, description, missing))
    assets = _Assets(root, target)
    written: list[tuple[Shape, str]] = []
    for shape in shapes:
        try:
            if shape.link in elements:
                written.append((shape, assets.name_of(shape) if shape.file is not None else ""))
        except _NotWrittenError as left:
            missing.setdefault(str(left.args[0]), []).append(f"{_what(shape)} {left.args[1]}")
    drawn = {shape.link for shape, _ in written if shape.visual}
    for shape, mesh in written:
        element = elements[shape.link]
        if element.find("inertial") is None:  # without one MuJoCo would weigh the geoms
            SubElement(element, "inertial", pos="0 0 0", mass="0", diaginertia="0 0 0")
        role = _LOOK if shape.visual else _TOUCH | ({"group": "3"} if shape.link in drawn else {})
        placed = {"pos": vector(shape.pose[:3, 3]), "quat": vector(quaternion_from_rotation(shape.pose[:3, :3]))}
        named = {"type": "mesh", "mesh": mesh} if mesh else {}
        SubElement(element, "geom", named | dict(shape.attributes) | placed | {"mass": "0"} | role)
    for reason, parts in missing.items():
        more = f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
        notes.append(f"shapes left out, {reason}: {', '.join(parts[:_MOST_NAMED])}{more}")
    if not written:
        notes.append(f"{description.where} has no shape that MJCF can hold: a viewer shows nothing")
    elif any(not shape.visual for shape, _ in written):
        notes.append("collision shapes touch other things, not each other (contype 1, conaffinity 0)")


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


def _what(shape: Shape) -> str:
    return f"{'visual' if shape.visual else 'collision'} of '{shape.link}'"


# Meshes ---------------------------------------------------------------------------------------
class _Assets:
    """The meshes of the new file, each once."""

    def __init__(self, root: Element, target: Path) -> None:
        self._root, self._folder = root, target.resolve().parent
        self._known: dict[tuple[Path, tuple[float, ...]], str] = {}

    def name_of(self, shape: Shape) -> str:
        """The name of a mesh, which is added at its first use."""
        from xml.etree.ElementTree import Element, SubElement

        assert shape.file is not None
        key = shape.file.resolve(), shape.scale
        if key in self._known:
            return self._known[key]
        reason = _unreadable(str(key[0]), shape.scale, key[0].stat().st_mtime_ns)
        if reason:
            raise _NotWrittenError(reason, f"({shape.file.name})")
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


# Elements of URDF and SDF ---------------------------------------------------------------------
def _read_shapes(format: str, description: Description, missing: dict[str, list[str]]) -> Iterator[Shape]:
    """Every shape of a description that has a geom; the others are added to ``missing`` by reason."""
    read = _urdf_shapes if format == "urdf" else _sdf_shapes
    for link, part, shape in read(description):
        try:
            yield shape()
        except _NotWrittenError as left:
            missing.setdefault(str(left.args[0]), []).append(f"{part.tag} of '{link}' {left.args[1]}")
        except InputError as error:
            missing.setdefault(str(error), []).append(f"{part.tag} of '{link}'")


def _urdf_shapes(description: Description) -> Iterator[tuple[str, Element, Callable[[], Shape]]]:
    """Link and element of every shape of a URDF file, and what reads it."""
    root = urdf_root(description)
    colours = {one.get("name"): one.find("color") for one in root.findall("material")}

    def read(link: str, part: Element, shape: Element) -> Shape:
        where = f"{part.tag} of link '{link}' in {description.where}"
        pose = origin_pose(part, f"origin of the {where}")
        material = part.find("material")
        colour = None if material is None else material.find("color")
        colour = colours.get(material.get("name")) if colour is None and material is not None else colour
        look = {} if colour is None else _colour(colour.get("rgba", ""))
        if shape.tag != "mesh":
            return Shape(link, part.tag == "visual", pose, _sizes(link, shape, shape.get, where) | look)
        scale = text_numbers(shape.get("scale", "1 1 1"), 3, f"scale of the mesh of {where}")
        file = _mesh(shape.get("filename", ""), lambda name: urdf_mesh_file(name, description.path, None), description.path)
        return Shape(link, part.tag == "visual", pose, look, file, tuple(scale))

    yield from _parts(named_elements(root, "link", description.where), read)


def _sdf_shapes(description: Description) -> Iterator[tuple[str, Element, Callable[[], Shape]]]:
    """Link and element of every shape of an SDF file, and what reads it."""
    links, poses = sdf_frames(sdf_model(description), description.where)

    def read(link: str, part: Element, shape: Element) -> Shape:
        where = f"{part.tag} '{part.get('name', '')}' of link '{link}' in {description.where}"
        pose, relative = stated_pose(part, where, "")
        if relative and relative not in poses:
            raise InputError(f"pose of {where} is relative to '{relative}', which is no frame of the model")
        if relative:
            pose = inverse_pose(poses[link]) @ poses[relative] @ pose
        look = _colour(part.findtext("material/diffuse", ""))
        if shape.tag != "mesh":
            return Shape(link, part.tag == "visual", pose, _sizes(link, shape, shape.findtext, where) | look)
        if shape.find("submesh") is not None:
            raise _NotWrittenError("a <submesh> of a file is not read", "")
        scale = text_numbers(shape.findtext("scale", "1 1 1"), 3, f"scale of the mesh of {where}")
        uri = shape.findtext("uri", "").strip()
        file = _mesh(uri, lambda name: sdf_mesh_file(name, description.path, where), description.path)
        return Shape(link, part.tag == "visual", pose, look, file, tuple(scale))

    yield from _parts(links, read)


def _parts(
    links: Mapping[str, Element], read: Callable[[str, Element, Element], Shape]
) -> Iterator[tuple[str, Element, Callable[[], Shape]]]:
    for link, element in links.items():
        for part in (*element.findall("visual"), *element.findall("collision")):
            shape = part.find("geometry/*")
            if shape is not None and shape.tag != "empty":
                yield link, part, partial(read, link, part, shape)


def _sizes(link: str, shape: Element, stated: Callable[[str, str], str], where: str) -> dict[str, str]:
    """Type and sizes of a plain solid as those of a geom."""
    solids = plain_solid(link, shape, np.eye(4), stated, where, [])
    if not solids or solids[0].kind == "cone":
        raise _NotWrittenError(f"MJCF has no <{shape.tag}>", "")
    kind, sizes = solids[0].kind, solids[0].sizes
    if shape.tag == "sphere":
        return {"type": "sphere", "size": vector(np.array(sizes[:1]))}
    return {"type": kind, "size": vector(np.array(sizes))}


def _colour(text: str) -> dict[str, str]:
    """Red, green, blue and, if stated, opacity of a geom; none where the text is none."""
    values = read_numbers(text)
    known = len(values) in (3, 4) and all(0.0 <= value <= 1.0 for value in values)
    return {"rgba": vector(np.array([*values, 1.0][:4]))} if known else {}


def _mesh(name: str, find: Callable[[str], Path], described: Path) -> Path:
    """The file of a mesh that MuJoCo may be able to read."""
    try:
        file = find(name)
        check_mesh_file(file, described)
    except InputError as error:
        raise _NotWrittenError("their files cannot be had", f"('{name}')") from error
    if file.suffix.lower() not in MESH_SUFFIXES:
        raise _NotWrittenError(f"MuJoCo reads {', '.join(MESH_SUFFIXES)} alone", f"({file.name})")
    return file
