"""What stands around a robot, and what it carries: boxes, planes, ceiling and walls in the base frame, and the tool.

A plane is a half space ``n . p >= d`` in which the robot stays; a wall ``x=0.8`` and a ceiling are planes whose free side is that of
the base. A file lists several: ``[[box]]`` with ``centre``, ``size``, ``yaw``; ``[[plane]]`` with ``normal``, ``distance``; ``ceiling``.
It may also be a scene of MJCF, whose geoms are obstacles.
"""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.files import read_limited, toml_table
from dynid.io.robots.mjcf_geoms import geom_solids
from dynid.io.robots.solids import Solid
from dynid.model.poses import frame_with_z

FAR_M = 20.0
"""Half width of the slab that stands for a plane, m."""
THICK_M = 2.0
"""Half thickness of it, m."""

_AXES = ("x", "y", "z")


def stated_obstacles(
    boxes: tuple[str, ...] = (), planes: tuple[str, ...] = (), ceiling: float | None = None, walls: tuple[str, ...] = ()
) -> tuple[Solid, ...]:
    """Obstacles as the command line states them.

    Args:
        boxes: ``x,y,z,sx,sy,sz[,yaw]``: centre, edges, turn about z, m and rad; or the path of a file of obstacles.
        planes: ``nx,ny,nz,d``: the robot stays where ``n . p >= d``.
        ceiling: height, m.
        walls: ``x=0.8`` or ``y=-0.5``.
    """
    found: list[Solid] = []
    for number, text in enumerate(boxes, start=1):
        if Path(text).suffix.lower() in (".toml", ".xml"):
            found += _file_obstacles(Path(text))
            continue
        values = _numbers("--box", text, (6, 7), "x,y,z,sx,sy,sz[,yaw]: centre, edges and turn about z, m and rad")
        name = "--box" if len(boxes) == 1 else f"--box {number}"
        found.append(box(name, values[:3], values[3:6], values[6] if len(values) == 7 else 0.0))
    for number, text in enumerate(planes, start=1):
        values = _numbers("--plane", text, (4,), "nx,ny,nz,d: the robot stays where n . p >= d")
        found.append(half_space("--plane" if len(planes) == 1 else f"--plane {number}", values[:3], values[3]))
    if ceiling is not None:
        found.append(half_space("--ceiling", (0.0, 0.0, -1.0), -ceiling))
    for text in walls:
        axis, equals, place = (part.strip() for part in text.partition("="))
        if not equals or axis not in _AXES[:2]:
            raise InputError(f"--wall is '{text}', expected x=PLACE or y=PLACE, m")
        (at,) = _numbers("--wall", place, (1,), "x=PLACE or y=PLACE, m")
        if at == 0.0:
            raise InputError(f"--wall is '{text}', which goes through the base; expected a place beside it")
        normal = np.zeros(3)
        normal[_AXES.index(axis)] = -np.sign(at)
        found.append(half_space(f"--wall {axis}={at:g}", normal, -abs(at)))
    return tuple(found)


def tool_solid(sphere_m: float | None, edges_m: tuple[float, ...] | None, point: Array) -> Solid | None:
    """A ball or a box about the tool's point of its body; None where neither is stated."""
    pose = np.eye(4)
    pose[:3, 3] = point
    if sphere_m is not None:
        return Solid("tool", "ellipsoid", (sphere_m,) * 3, pose)
    if edges_m is not None:
        return Solid("tool", "box", tuple(0.5 * edge for edge in edges_m), pose)
    return None


def box(name: str, centre: ArrayLike, edges: ArrayLike, yaw: float = 0.0) -> Solid:
    """A box by its centre, its edges and its turn about z, in the base frame."""
    size = np.asarray(edges, dtype=np.float64)
    if not (size > 0.0).all():
        raise InputError(f"{name} has edges {size.tolist()} m, expected positive numbers")
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]
    pose[:3, 3] = centre
    return Solid(name, "box", tuple((0.5 * size).tolist()), pose, obstacle=True)


def half_space(name: str, normal: ArrayLike, distance: float) -> Solid:
    """What lies behind the plane ``n . p = d``, as a slab."""
    n = np.asarray(normal, dtype=np.float64)
    length = float(np.linalg.norm(n))
    if not length > 0.0:
        raise InputError(f"{name} has the normal {n.tolist()}, expected one that is not zero")
    pose = np.eye(4)
    pose[:3, :3] = frame_with_z(n / length)
    pose[:3, 3] = (distance / length - THICK_M) * n / length
    return Solid(name, "box", (FAR_M, FAR_M, THICK_M), pose, obstacle=True)


def _numbers(flag: str, text: str, counts: tuple[int, ...], expected: str) -> list[float]:
    try:
        values = [float(part) for part in str(text).split(",")]
    except ValueError:
        values = []
    if len(values) not in counts or not all(map(isfinite, values)):
        raise InputError(f"{flag} is '{text}', expected {expected}")
    return values


def _file_obstacles(path: Path) -> list[Solid]:
    what = f"scene '{path}'"
    if path.suffix.lower() != ".toml":
        return _scene_shapes(path, what)
    table = toml_table(read_limited(path, what), what)
    unknown = sorted(set(table) - {"box", "plane", "ceiling"})
    if unknown or not table:
        raise InputError(f"{what} has '{', '.join(unknown)}', expected [[box]], [[plane]] or ceiling")
    found = []
    for number, entry in enumerate(_entries(table, "box", what), start=1):
        centre, size = (_vector(entry, key, f"[[box]] {number} of {what}") for key in ("centre", "size"))
        found.append(box(f"--box {number} of {path.name}", centre, size, _scalar(entry, "yaw", what, 0.0)))
    for number, entry in enumerate(_entries(table, "plane", what), start=1):
        normal = _vector(entry, "normal", f"[[plane]] {number} of {what}")
        found.append(half_space(f"--plane {number} of {path.name}", normal, _scalar(entry, "distance", what)))
    if "ceiling" in table:
        found.append(half_space(f"--ceiling of {path.name}", (0.0, 0.0, -1.0), -_scalar(table, "ceiling", what)))
    return found


def _scene_shapes(path: Path, what: str) -> list[Solid]:
    """Shapes of an MJCF world that stand still, in its frame."""
    found = [solid for solid in geom_solids(path, looks=False).solids if solid.obstacle]
    if not found:
        raise InputError(f"{what} has no geom that stands in the world, expected some")
    return [replace(solid, link=f"--box {solid.link} of {path.name}") for solid in found]


def _entries(table: dict[str, Any], key: str, what: str) -> list[dict[str, Any]]:
    entries = table.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{what} has '{key}' = {entries!r}, expected tables [[{key}]]")
    return entries


def _vector(entry: dict[str, Any], key: str, where: str) -> list[float]:
    values = entry.get(key)
    if not isinstance(values, list) or len(values) != 3:
        raise InputError(f"{where} has {key} = {values!r}, expected three numbers, m")
    return [_scalar({key: value}, key, where) for value in values]


def _scalar(entry: dict[str, Any], key: str, where: str, default: float | None = None) -> float:
    value = entry.get(key, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
        raise InputError(f"{where} has {key} = {value!r}, expected a number")
    return float(value)
