"""The shapes of a robot's links, as its description has them: what is drawn, and what bounds where a link's mass can be.

URDF: collision shapes, or visual ones where there are none. MJCF: all geoms. Other descriptions have no shapes here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dynid.adapters.surfaces import Surface, joined
from dynid.errors import InputError
from dynid.robot.model import Robot

MOST_MESH_BYTES = 64_000_000
"""Largest file of one mesh that is read."""

LinkShapes: TypeAlias = tuple[Surface | None, ...]
"""One surface per body in the body's frame, links that were merged into it included; None where none is described."""

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
    if robot.source.format == "mjcf":
        return _of_mjcf(path)
    raise InputError(f"robot '{robot.name}' was not read from a URDF or MJCF file, so its links have no shapes")


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
            file = Path(folder) / below
            if not file.exists():
                continue
            if not file.is_file():
                raise InputError(f"mesh '{file}' of robot file '{path}' is not an ordinary file")
            if (size := file.stat().st_size) > MOST_MESH_BYTES:
                raise InputError(
                    f"mesh '{file}' of robot file '{path}' has {size / 1e6:.0f} MB, expected at most {MOST_MESH_BYTES / 1e6:.0f} MB"
                )


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


def _of_mjcf(path: Path) -> list[tuple[str, Surface]]:
    from dynid.adapters.mujoco import compile_mjcf_file, geom_surfaces
    from dynid.adapters.xml import parse_xml
    from dynid.robot.mjcf import expand_includes
    from dynid.robot.mjcf_limits import check_limits, check_meshes

    if not path.is_file():
        raise InputError(f"robot file '{path}' is not there, so the shapes of its links are not known")
    where, folder = f"robot file '{path}'", path.resolve().parent
    root = parse_xml(path.read_bytes(), where)
    expand_includes(root, folder, folder, {path.resolve()}, where)
    check_limits(root, where)
    stated = {key: value for compiler in root.findall("compiler") for key, value in compiler.attrib.items()}
    check_meshes(root, folder, stated.get("meshdir", stated.get("assetdir", "")), where)
    model, problem = compile_mjcf_file(path)
    if model is None:
        raise InputError(f"shapes of {where} cannot be read: {problem}")
    return [(model.body(body).name or f"body{body}", surface) for body, surface in geom_surfaces(model)]
