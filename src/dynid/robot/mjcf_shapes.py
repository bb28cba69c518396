"""Shapes of the links of an MJCF file: the text is vetted and cut to bodies, geoms and meshes before MuJoCo compiles it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dynid.adapters.solids import Solids
from dynid.adapters.xml import parse_xml, serialize_xml
from dynid.robot.files import read_description
from dynid.robot.mesh_files import check_mesh_file
from dynid.robot.mjcf import expand_includes, fix_mesh_folder
from dynid.robot.mjcf_limits import check_limits

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_KEPT_SECTIONS = ("compiler", "default", "asset", "worldbody", "contact")
_ASSETS = ("mesh", "hfield", "material", "texture")
_LOOKS = ("camera", "light", "plugin", "site")


def mjcf_solids(path: Path, *, looks: bool = False) -> Solids:
    """Geoms of an MJCF file by body.

    Args:
        path: the file.
        looks: whether geoms that do not collide are wanted beside those that do; else a body has them only for want of others.
    """
    from dynid.adapters.mujoco_geoms import geom_solids

    where, folder = f"robot file '{path}'", path.resolve().parent
    root = parse_xml(read_description(path).content, where)
    expand_includes(root, folder, folder, {path.resolve()}, where)
    check_limits(root, where)
    for child in list(root):
        if child.tag not in _KEPT_SECTIONS:
            root.remove(child)
    for asset in root.findall("asset"):
        for child in list(asset):
            if child.tag not in _ASSETS:
                asset.remove(child)
    for mesh in root.iter("mesh"):
        mesh.attrib.pop("material", None)
        for child in mesh.findall("plugin"):
            mesh.remove(child)
    for world in root.findall("worldbody"):
        _cut_looks(world)
    meshes = fix_mesh_folder(root, folder, where)
    return geom_solids(serialize_xml(root), where, lambda file: check_mesh_file(meshes / file, path), looks=looks)


def _cut_looks(element: Element) -> None:
    for child in list(element):
        if child.tag in _LOOKS:
            element.remove(child)
        else:
            _cut_looks(child)
