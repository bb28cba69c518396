"""Shapes of the links of an SDF file: collision elements, or visual ones where a link has none of those."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynid.adapters.solids import Solid, SolidKind, Solids
from dynid.adapters.surfaces import Surface
from dynid.adapters.xml import parse_xml
from dynid.arrays import Array
from dynid.errors import InputError
from dynid.robot.files import read_description
from dynid.robot.mesh_files import check_mesh_file, home_of
from dynid.robot.sdf import joint_element, link_poses, sdf_model, stated_name, stated_numbers, stated_pose

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_LENGTHS: dict[str, tuple[SolidKind, str, int, bool]] = {
    "box": ("box", "size", 3, False),
    "sphere": ("ellipsoid", "radius", 1, False),
    "ellipsoid": ("ellipsoid", "radii", 3, False),
    "cylinder": ("cylinder", "radius", 1, True),
    "capsule": ("capsule", "radius", 1, True),
    "cone": ("cone", "radius", 1, True),
}
"""By element: the solid, the element of its sizes, how many, and whether it has a length."""


def sdf_solids(path: Path) -> Solids:
    """Shapes of an SDF file by link."""
    where = f"robot file '{path}'"
    model = sdf_model(parse_xml(read_description(path).content, where), where)
    links = {stated_name(element, "link", where): element for element in model.findall("link")}
    joints = [joint_element(element, links, where) for element in model.findall("joint")]
    poses = link_poses(model, links, joints, where)
    solids: list[Solid] = []
    notes: list[str] = []
    lacking: dict[str, str] = {}
    for link, element in links.items():
        try:
            for part in element.findall("collision") or element.findall("visual"):
                place = f"{part.tag} '{part.get('name', '')}' of link '{link}' in {where}"
                pose, relative = stated_pose(part, place, "")
                if relative and relative not in poses:
                    raise InputError(f"pose of {place} is relative to '{relative}', which is no frame of the model")
                if relative:
                    pose = np.linalg.inv(poses[link]) @ poses[relative] @ pose
                solids += _solid(link, part, pose, path, place, notes)
        except InputError as error:
            lacking[link] = str(error)
    whole = tuple(solid for solid in solids if solid.link not in lacking)
    return Solids(whole, lacking=lacking, notes=tuple(notes))


def _solid(link: str, part: Element, pose: Array, path: Path, place: str, notes: list[str]) -> list[Solid]:
    """The solid of one element; none where its geometry is no body."""
    geometry = part.find("geometry")
    shape = next(iter(geometry), None) if geometry is not None else None
    if shape is None or shape.tag == "empty":
        return []
    if shape.tag == "mesh":
        return [Solid(link, "mesh", (), pose, _mesh(shape, path, place))]
    if shape.tag not in _LENGTHS:
        notes.append(f"not kept clear of: <{shape.tag}> of {place}")
        return []
    kind, tag, count, long = _LENGTHS[shape.tag]
    sizes = _lengths(shape, tag, count, place)
    if kind == "box":
        sizes = tuple(0.5 * size for size in sizes)
    elif shape.tag == "sphere":
        sizes = sizes * 3
    return [Solid(link, kind, (*sizes, 0.5 * _lengths(shape, "length", 1, place)[0]) if long else sizes, pose)]


def _lengths(shape: Element, tag: str, count: int, place: str) -> tuple[float, ...]:
    found = tuple(stated_numbers(shape.findtext(tag, ""), count, f"{tag} of the {shape.tag} of {place}"))
    if min(found) <= 0.0:
        raise InputError(f"{tag} of the {shape.tag} of {place} is '{shape.findtext(tag)}', expected more than zero")
    return found


def _mesh(shape: Element, path: Path, place: str) -> Surface:
    from dynid.adapters.coal import mesh_surface

    if shape.find("submesh") is not None:
        raise InputError(f"mesh of {place} has a <submesh>, which is not read; expected a file of its own")
    scale = stated_numbers(shape.findtext("scale", "1 1 1"), 3, f"scale of the mesh of {place}")
    file = _mesh_file(shape.findtext("uri", "").strip(), path, place)
    check_mesh_file(file, path)
    return mesh_surface(file, np.array(scale))


def _mesh_file(uri: str, path: Path, place: str) -> Path:
    """The file of a mesh: beside the description, or in a package that lies in a folder above it."""
    folder = path.resolve().parent
    scheme, below = re.fullmatch(r"(?:([a-z]+)://)?(.*)", uri, re.DOTALL).groups()  # type: ignore[union-attr]
    if not below or scheme not in (None, "file", "model", "package"):
        raise InputError(f"mesh of {place} has the uri '{uri}', expected a path, file://, model:// or package://")
    if scheme in ("model", "package"):
        package = Path(below).parts[0]
        for above in folder.parents if package not in ("..", "/") else ():
            file = (above / below).resolve()
            if (above / package).is_dir() and file.is_relative_to((above / package).resolve()) and file.exists():
                return file
    file, home = (folder / below).resolve(), home_of(folder)
    if not file.is_relative_to(home):
        raise InputError(f"{place} asks for the mesh '{file}', expected one below '{home}'")
    return file
