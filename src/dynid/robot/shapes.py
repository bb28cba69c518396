"""The shapes of a robot's links, as its description has them: what is drawn, and what bounds where a link's mass can be.

URDF: collision shapes, or visual ones where there are none; SDF: the same, link by link. MJCF: all geoms, a table and other bodies of
the world left out. Other descriptions have no shapes here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dynid.adapters.solids import Solids
from dynid.adapters.surfaces import Surface, joined
from dynid.errors import InputError
from dynid.robot.mesh_files import check_mesh_file
from dynid.robot.model import Robot

LinkShapes: TypeAlias = tuple[Surface | None, ...]
"""One surface per body in the body's frame, links that were merged into it included; None where none is described."""

SOLID_FORMATS = ("mjcf", "sdf")
"""Descriptions whose shapes are read as solids."""

_MESH = re.compile(r"<mesh\b[^>]*\bfilename\s*=\s*[\"']([^\"']+)[\"']")


def link_shapes(robot: Robot) -> LinkShapes:
    """The shape of every body of a robot, read from its description.

    Raises:
        InputError: the description has no shapes, or they cannot be read; the sentence says which.

    Examples:
        >>> import dynid
        >>> box = '<collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision>'
        >>> body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        >>> with open("arm.urdf", "w") as file:
        ...     _ = file.write(
        ...         f'<robot name="arm"><link name="base"/><link name="arm">{body}{box}</link><joint name="j" type="continuous">'
        ...         f'<parent link="base"/><child link="arm"/></joint></robot>'
        ...     )
        >>> from dynid.robot.shapes import link_shapes
        >>> (shape,) = link_shapes(dynid.read_robot("arm.urdf"))
        >>> shape.vertices.max(axis=0).tolist()
        [0.05, 0.1, 0.15]
    """
    return bodies_of(robot, named_shapes(robot))


def named_shapes(robot: Robot) -> list[tuple[str, Surface]]:
    """The shapes of the description, each with the link that has it, in the frame of that link."""
    path = Path(robot.source.path)
    if robot.source.format == "urdf" and path.suffix.lower() == ".urdf":
        return _of_urdf(path)
    if robot.source.format in SOLID_FORMATS:
        found = described_solids(robot, looks=True)
        named = [(solid.link, solid.surface()) for solid in found.solids if not solid.obstacle]
        if found.lacking and not named:
            raise InputError("; ".join(found.lacking.values()))
        return named
    raise InputError(f"robot '{robot.name}' was not read from a URDF, MJCF or SDF file, so its links have no shapes")


def described_solids(robot: Robot, *, looks: bool) -> Solids:
    """The solids of a robot read from MJCF or SDF.

    Args:
        robot: the robot, which remembers its file.
        looks: whether geoms of MJCF that do not collide are wanted beside those that do.
    """
    path = Path(robot.source.path)
    if not path.is_file():
        raise InputError(f"robot file '{path}' is not there, so the shapes of its links are not known")
    if robot.source.format == "mjcf":
        from dynid.robot.mjcf_shapes import mjcf_solids

        return mjcf_solids(path, looks=looks)
    from dynid.robot.sdf_shapes import sdf_solids

    return sdf_solids(path)


def bodies_of(robot: Robot, named: Sequence[tuple[str, Surface]]) -> LinkShapes:
    """Shapes of links as those of the robot's bodies."""
    places = {link: (i, np.eye(4)) for i, link in enumerate(robot.links)}
    places |= {link.name: (link.body, link.placement) for link in robot.merged if link.name not in places}
    parts: list[list[Surface]] = [[] for _ in robot.links]
    for name, surface in named:
        body, pose = places.get(name, (-1, np.eye(4)))
        if body >= 0 and len(surface.triangles):
            parts[body].append(surface.moved(pose[:3, :3], pose[:3, 3]))
    if not any(parts):
        raise InputError(f"robot file '{robot.source.path}' describes no shapes of links that move")
    return tuple(joined(found) if found else None for found in parts)


def package_folders(path: Path, text: str) -> list[str]:
    """Folders above a URDF file in which the packages it names lie."""
    names = set(re.findall(r"package://([^/\"']+)/", text))
    folders = [folder for folder in path.resolve().parents if any((folder / name).is_dir() for name in names)]
    return [str(folder) for folder in (*folders, path.resolve().parent)]


def check_mesh_files(path: Path, text: str, folders: Sequence[str]) -> None:
    """Refuse meshes of a URDF file that are no ordinary files or too large, before anything opens them."""
    for name in _MESH.findall(text):
        below = re.sub(r"^(package|model|file)://", "", name)
        for folder in (*folders, str(path.resolve().parent)):
            if (file := Path(folder) / below).exists():
                check_mesh_file(file, path)


def _of_urdf(path: Path) -> list[tuple[str, Surface]]:
    from dynid.adapters.coal import urdf_surfaces

    if not path.is_file():
        raise InputError(f"robot file '{path}' is not there, so the shapes of its links are not known")
    text = path.read_text(encoding="utf-8")
    if "<collision" not in text and "<visual" not in text:
        raise InputError(f"robot file '{path}' describes no shapes of links")
    folders = package_folders(path, text)
    check_mesh_files(path, text, folders)
    return urdf_surfaces(path, folders)
