"""The shapes of a robot's links, as its description has them: what is drawn, kept apart, and bounds where a link's mass can be.

URDF: collision shapes, or visual ones where the file has none of those; SDF: the same, link by link. MJCF: all geoms, a table and
other bodies of the world left out. Other descriptions have no shapes here. Meshes are read by coal, once they are known to be ordinary
files of a moderate size.

The box of a body is aligned with its frame and spans the shapes of all links that were merged into it. Where one of these has mass and
no shape, the body has no box.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.io.robots.description import Description, home_of, link_places, read_description, vetted_mesh, walk_tree
from dynid.io.robots.sdf_read import sdf_frames, sdf_model, stated_pose
from dynid.io.robots.simulator_joint import vector
from dynid.io.robots.solids import Solid, SolidKind, Solids, Surface, joined
from dynid.io.robots.urdf_read import origin_pose, urdf_joints, urdf_root
from dynid.io.robots.xml import named_elements, read_numbers, text_numbers
from dynid.model.poses import inverse_pose
from dynid.model.robot import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LinkShapes: TypeAlias = tuple[Surface | None, ...]
"""One surface per body in the body's frame, links that were merged into it included; None where none is described."""
Box: TypeAlias = tuple[tuple[float, float, float], tuple[float, float, float]]
"""Lower and upper corner in the frame of a body, m."""
WIDER_M = 0.01
"""Added on every side of a box: shapes of descriptions are simplified, and screws and cables stand out of them."""
_LENGTHS: dict[str, tuple[SolidKind, str, int, bool]] = {
    "box": ("box", "size", 3, False),
    "sphere": ("ellipsoid", "radius", 1, False),
    "ellipsoid": ("ellipsoid", "radii", 3, False),
    "cylinder": ("cylinder", "radius", 1, True),
    "capsule": ("capsule", "radius", 1, True),
    "cone": ("cone", "radius", 1, True),
}
"""By element of URDF and SDF: the solid, what its sizes are called, how many, and whether it has a length."""


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
        >>> from dynid.io.robots.shapes import link_shapes
        >>> (shape,) = link_shapes(dynid.read_robot("arm.urdf"))
        >>> shape.vertices.max(axis=0).tolist()
        [0.05, 0.1, 0.15]
    """
    return _shapes_of_bodies(robot, _named_shapes(robot))


def body_boxes(robot: Robot, wider_m: float = WIDER_M) -> tuple[dict[str, Box], dict[str, str]]:
    """The boxes that the masses of bodies lie in, of a robot read from URDF, MJCF or SDF, and why other bodies have none, by link.

    Args:
        robot: the robot, which remembers its file.
        wider_m: added on every side.

    Raises:
        InputError: no body has one; the sentence says why.

    Examples:
        >>> import dynid
        >>> from dynid.io.robots.shapes import body_boxes
        >>> body_boxes(dynid.demo_robot())
        Traceback (most recent call last):
        dynid.errors.InputError: robot 'demo_arm' was not read from a URDF, MJCF or SDF file, so its links have no shapes
    """
    named = _named_shapes(robot)
    shaped = {name for name, _ in named}
    boxes, missing = {}, {}
    for body, (name, shape) in enumerate(zip(robot.links, _shapes_of_bodies(robot, named), strict=True)):
        merged = [link.name for link in robot.merged if link.body == body and link.phi.any()]
        bare = [link for link in (name, *merged) if link not in shaped]
        if shape is None or bare:
            missing[name] = f"link '{(bare or [name])[0]}' has no shape"
            continue
        (x0, y0, z0), (x1, y1, z1) = (
            (shape.vertices.min(axis=0) - wider_m).tolist(),
            (shape.vertices.max(axis=0) + wider_m).tolist(),
        )
        boxes[name] = (x0, y0, z0), (x1, y1, z1)
    return boxes, missing


def _named_shapes(robot: Robot) -> list[tuple[str, Surface]]:
    """The shapes of the description, each with the link that has it, in the frame of that link."""
    if not has_shapes(robot):
        raise InputError(f"robot '{robot.name}' was not read from a URDF, MJCF or SDF file, so its links have no shapes")
    found = described_solids(robot, looks=True)
    named = [(solid.link, solid.surface()) for solid in found.solids if not solid.obstacle]
    if found.lacking and not named:
        raise InputError("; ".join(found.lacking.values()))
    return named


def _shapes_of_bodies(robot: Robot, named: Sequence[tuple[str, Surface]]) -> LinkShapes:
    """Shapes of links as those of the robot's bodies."""
    places = link_places(robot)
    parts: list[list[Surface]] = [[] for _ in robot.links]
    for name, surface in named:
        body, pose = places.get(name, (-1, np.eye(4)))
        if body >= 0 and len(surface.triangles):
            parts[body].append(surface.moved(pose[:3, :3], pose[:3, 3]))
    if not any(parts):
        raise InputError(f"robot file '{robot.source.path}' describes no shapes of links that move")
    return tuple(joined(found) if found else None for found in parts)


def has_shapes(robot: Robot) -> bool:
    """Whether the robot was read from a file whose shapes can be read: URDF, but no xacro, MJCF or SDF."""
    urdf = robot.source.format == "urdf" and Path(robot.source.path).suffix.lower() == ".urdf"
    return urdf or robot.source.format in ("mjcf", "sdf")


def described_solids(robot: Robot, *, looks: bool, package_dirs: Sequence[str | Path] | None = None) -> Solids:
    """The solids of a robot read from a file that has shapes.

    Args:
        robot: the robot, which remembers its file.
        looks: whether visual shapes of URDF and geoms of MJCF that do not collide are wanted too.
        package_dirs: where ``package://`` paths of URDF begin; None for the folders around the file.
    """
    path = Path(robot.source.path)
    if not path.is_file():
        raise InputError(f"robot file '{path}' is not there, so the shapes of its links are not known")
    if robot.source.format == "mjcf":
        from dynid.io.robots.mjcf_geoms import geom_solids

        return geom_solids(path, looks=looks)
    if robot.source.format == "sdf":
        return _sdf_solids(path)
    return _urdf_solids(path, looks, package_dirs)


def mesh_surface(path: Path, scale: Array) -> Surface:
    """The triangles of a mesh file."""
    import coal

    try:
        mesh = coal.MeshLoader().load(str(path), scale)
    except (ValueError, RuntimeError) as error:
        raise InputError(f"mesh '{path}' cannot be read: {coal_reason(error)}") from error
    if not mesh.num_tris or mesh.num_vertices < 3 or not np.isfinite(mesh.vertices()).all():
        raise InputError(f"mesh '{path}' has no triangles of three finite points")
    triangles = [[t[0], t[1], t[2]] for t in map(mesh.tri_indices, range(mesh.num_tris))]
    return Surface(np.array(mesh.vertices()), np.array(triangles, dtype=np.int64))


def coal_reason(error: Exception) -> str:
    """What coal says, without the place in its own source."""
    told = str(error).rsplit("message:", 1)[-1].strip()
    return next(iter(told.splitlines()), type(error).__name__)


# What the elements say ------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Shape:
    """One visual or collision element."""

    link: str
    visual: bool
    pose: Array
    """4x4, in the frame of the link."""
    colour: str
    """Red, green, blue and opacity; empty where none are stated."""
    tag: str
    solid: Solid | None
    """None of a mesh, and of what is no body."""
    mesh: str
    """Its file as stated."""
    scale: tuple[float, ...]
    mesh_file: Callable[[], Path]
    """Finds the file, an ordinary one of a moderate size."""


StatedShape: TypeAlias = tuple[str, "Element", Callable[[], Shape]]
"""Link, element, and what reads it."""


def stated_shapes(description: Description, format: str) -> Iterator[StatedShape]:
    """Every shape of a URDF or SDF file, links in the order of the file, visual elements of each before the others."""
    where = description.where
    if format == "sdf":
        links, poses = sdf_frames(sdf_model(description), where)
        return _sdf_shapes(links, poses, description)
    root = urdf_root(description)
    return _urdf_shapes(root, named_elements(root, "link", where), description, None)


def _urdf_shapes(
    root: Element, links: Mapping[str, Element], description: Description, package_dirs: Sequence[str | Path] | None
) -> Iterator[StatedShape]:
    colours = {one.get("name"): one.find("color") for one in root.findall("material")}

    def read(link: str, part: Element, shape: Element) -> Shape:
        where, name = f"{part.tag} of link '{link}' in {description.where}", shape.get("filename", "")
        pose = origin_pose(part, f"origin of the {where}")
        material = part.find("material")
        colour = None if material is None else material.find("color")
        colour = colours.get(material.get("name")) if colour is None and material is not None else colour
        look = "" if colour is None else _colour(colour.get("rgba", ""))
        find = partial(urdf_mesh_file, name, description.path, package_dirs)
        return _shape(link, part, shape, pose, look, shape.get, name, find, where)

    return _parts(links, read)


def _sdf_shapes(links: Mapping[str, Element], poses: Mapping[str, Array], description: Description) -> Iterator[StatedShape]:
    def read(link: str, part: Element, shape: Element) -> Shape:
        where = f"{part.tag} '{part.get('name', '')}' of link '{link}' in {description.where}"
        pose, relative = stated_pose(part, where, "")
        if relative and relative not in poses:
            raise InputError(f"pose of {where} is relative to '{relative}', which is no frame of the model")
        if relative:
            pose = inverse_pose(poses[link]) @ poses[relative] @ pose
        if shape.find("submesh") is not None:
            raise InputError(f"mesh of {where} has a <submesh>, which is not read; expected a file of its own")
        look, name = _colour(part.findtext("material/diffuse", "")), shape.findtext("uri", "").strip()
        find = partial(sdf_mesh_file, name, description.path, where)
        return _shape(link, part, shape, pose, look, shape.findtext, name, find, where)

    return _parts(links, read)


def _parts(links: Mapping[str, Element], read: Callable[[str, Element, Element], Shape]) -> Iterator[StatedShape]:
    for link, element in links.items():
        for part in (*element.findall("visual"), *element.findall("collision")):
            shape = part.find("geometry/*")
            if shape is not None and shape.tag != "empty":
                yield link, part, partial(read, link, part, shape)


def _shape(
    link: str,
    part: Element,
    shape: Element,
    pose: Array,
    colour: str,
    stated: Callable[[str, str], str],
    mesh: str,
    mesh_file: Callable[[], Path],
    where: str,
) -> Shape:
    """The shape with its sizes; ``stated`` gives the text of a size by its name."""
    solid = _plain_solid(link, shape, pose, stated, where) if shape.tag in _LENGTHS else None
    scale = text_numbers(stated("scale", "1 1 1"), 3, f"scale of the mesh of {where}") if shape.tag == "mesh" else [1.0] * 3
    return Shape(link, part.tag == "visual", pose, colour, shape.tag, solid, mesh, tuple(scale), mesh_file)


def _colour(text: str) -> str:
    """Red, green, blue and, if stated, opacity; none where the text is none."""
    values = read_numbers(text)
    known = len(values) in (3, 4) and all(0.0 <= value <= 1.0 for value in values)
    return vector(np.array([*values, 1.0][:4])) if known else ""


# As solids ------------------------------------------------------------------------------------
def _urdf_solids(path: Path, looks: bool, package_dirs: Sequence[str | Path] | None) -> Solids:
    """Collision shapes of a URDF file by link, or visual ones if the file has none of those and looks are wanted."""
    description = read_description(path)
    where, root = description.where, description.root
    links = named_elements(root, "link", where)
    tag = next((tag for tag in ("collision", "visual") if root.find(f"link/{tag}/geometry/*") is not None), "")
    if not looks and root.find("link/collision") is None:
        raise InputError(f"{where} has no <collision> element, so there are no shapes to keep apart")
    if looks and not tag:
        raise InputError(f"{where} has no link shapes")
    tag = tag if looks else "collision"
    ordered = {joint.child: links[joint.child] for joint in walk_tree(urdf_joints(root, links, where))}
    for element in ordered.values():
        # Pinocchio's own tag for cylinders that are meant to be round at their ends
        rounded = {one.get("name", "") for one in element.iterfind("collision_checking/capsule")}
        for shape in (one for part in element.findall(tag) if part.get("name") in rounded for one in part.iter("cylinder")):
            shape.tag = "capsule"
    shapes = [one for one in _urdf_shapes(root, ordered, description, package_dirs) if one[1].tag == tag]
    return _solids(shapes, f"{'' if looks else 'collision '}shapes of {where} cannot be read")


def _sdf_solids(path: Path) -> Solids:
    """Shapes of an SDF file by link: collision elements, or visual ones where a link has none of those."""
    description = read_description(path)
    links, poses = sdf_frames(sdf_model(description), description.where)
    hard = {link for link, element in links.items() if element.find("collision") is not None}
    shapes = _sdf_shapes(links, poses, description)
    return _solids([one for one in shapes if (one[1].tag == "collision") == (one[0] in hard)])


def _solids(shapes: Iterable[StatedShape], refusal: str = "") -> Solids:
    """The solids; a link one of whose shapes cannot be read has none, or is refused where a sentence for that is given."""
    solids: list[Solid] = []
    notes: list[str] = []
    lacking: dict[str, str] = {}
    for link, part, read in shapes:
        meshed = False
        try:
            shape = read()
            meshed = shape.tag == "mesh"
            if meshed:
                solids.append(Solid(link, "mesh", (), shape.pose, mesh_surface(shape.mesh_file(), np.array(shape.scale))))
            elif shape.solid is not None:
                solids.append(shape.solid)
            else:
                notes.append(f"not kept clear of: <{shape.tag}> of {part.tag} of link '{link}'")
        except InputError as error:
            if meshed and refusal:
                raise InputError(f"{refusal}: {error}") from error
            lacking[link] = str(error)
    whole = tuple(solid for solid in solids if solid.link not in lacking)
    return Solids(whole, lacking=lacking, notes=tuple(notes))


# Files of meshes ------------------------------------------------------------------------------
def urdf_mesh_file(name: str, path: Path, package_dirs: Sequence[str | Path] | None) -> Path:
    """The file of a mesh: beside the description, in a package in a folder above it or where ROS finds packages, or anywhere."""
    scheme, below = _scheme_and_path(name)
    folder = path.resolve().parent
    folders = [Path(one) for one in package_dirs] if package_dirs is not None else [folder]
    if scheme in ("package", "model"):
        below = below.lstrip("/")
        if package_dirs is None:
            folders = [*(above for above in folder.parents if (above / below.split("/")[0]).is_dir()), folder]
        folders += [Path(one) for one in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if one]
        prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
        folders += [Path(one) / "share" for one in prefixes if one]
    found = next((file for start in folders if below and (file := start / below).exists()), None)
    if found is None:
        raise InputError(f"mesh '{name}' could not be found")
    return vetted_mesh(found, path)


def _scheme_and_path(uri: str) -> tuple[str | None, str]:
    """``package``, ``model``, ``file``, another word or nothing before ``://``, and what follows."""
    scheme, separator, below = uri.partition("://")
    return (scheme, below) if separator else (None, uri)


def _plain_solid(link: str, shape: Element, pose: Array, stated: Callable[[str, str], str], place: str) -> Solid:
    """The solid of one element of :data:`_LENGTHS`."""
    kind, name, count, long = _LENGTHS[shape.tag]
    sizes: list[float] = []
    for key, wanted in ((name, count), ("length", 1)) if long else ((name, count),):
        what = f"{key} of the {shape.tag} of {place}"
        found = text_numbers(stated(key, ""), wanted, what)
        if min(found) < 0.0 or not any(found):
            raise InputError(f"{what} is '{stated(key, '')}', expected more than zero")
        sizes += [0.5 * size for size in found] if key in ("length", "size") else found
    return Solid(link, kind, tuple(sizes * 3 if shape.tag == "sphere" else sizes), pose)


def sdf_mesh_file(uri: str, path: Path, place: str) -> Path:
    """A file beside the description, or in a package that lies in a folder above it."""
    folder = path.resolve().parent
    scheme, below = _scheme_and_path(uri)
    if not below or scheme not in (None, "file", "model", "package"):
        raise InputError(f"mesh of {place} has the uri '{uri}', expected a path, file://, model:// or package://")
    if scheme in ("model", "package"):
        package = Path(below).parts[0]
        for above in folder.parents if package not in ("..", "/") else ():
            file = (above / below).resolve()
            if (above / package).is_dir() and file.is_relative_to((above / package).resolve()) and file.exists():
                return vetted_mesh(file, path)
    file, home = (folder / below).resolve(), home_of(folder)
    if not file.is_relative_to(home):
        raise InputError(f"{place} asks for the mesh '{file}', expected one below '{home}'")
    return vetted_mesh(file, path)
