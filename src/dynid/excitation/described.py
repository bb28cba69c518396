"""Collision shapes of a robot's description on its bodies: what is kept apart where the description has any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dynid.adapters.coal import ShapePairs, solid_shapes, urdf_shapes
from dynid.adapters.pinocchio import pinocchio_model
from dynid.errors import InputError
from dynid.excitation.hulls import body_capsules
from dynid.robot.model import Robot
from dynid.robot.read import FARTHEST
from dynid.robot.shapes import SOLID_FORMATS, check_mesh_files, described_solids, package_folders

MOST_SHAPES = 40
"""Solids of the robot, at most, for which each is looked at by itself: pairs grow with the square."""

MOST_OBSTACLES = 200
"""Solids of the world, at most."""


@dataclass(frozen=True, eq=False)
class Described:
    """Shapes on bodies, without pairs, and what the description says about them."""

    shapes: ShapePairs
    joined: frozenset[frozenset[str]] = frozenset()
    """Pairs of links that several joints at once join."""
    excluded: frozenset[frozenset[str]] = frozenset()
    """Pairs of links between which the description wants no contact."""
    floor_m: float | None = None
    """Height of the level floor that the description has, in the base frame."""
    notes: tuple[str, ...] = ()


def described_shapes(robot: Robot, package_dirs: Sequence[str | Path] | None = None) -> Described:
    """Collision shapes of the robot's URDF, MJCF or SDF file.

    Raises:
        InputError: there are none, or they cannot be read; the sentence says why.
    """
    path = Path(robot.source.path)
    if robot.source.format in SOLID_FORMATS:
        return _of_solids(robot, path)
    if robot.source.format != "urdf" or path.suffix.lower() != ".urdf":
        raise InputError(
            f"robot '{robot.name}' was not read from a .urdf, MJCF or SDF file, the only ones whose collision shapes are used here"
        )
    text = path.read_text(encoding="utf-8")
    if "<collision" not in text:
        raise InputError(f"robot file '{path}' has no <collision> element, so there are no shapes to keep apart")
    folders = [str(folder) for folder in package_dirs] if package_dirs is not None else package_folders(path, text)
    check_mesh_files(path, text, folders)
    return Described(urdf_shapes(pinocchio_model(robot), path, folders))


def _of_solids(robot: Robot, path: Path) -> Described:
    found = described_solids(robot, looks=False)
    obstacles = sum(solid.obstacle for solid in found.solids)
    own = len(found.solids) - obstacles
    if not own:
        why = "; ".join(found.lacking.values())
        raise InputError(why or f"robot file '{path}' describes no shapes of links, so there are none to keep apart")
    if obstacles > MOST_OBSTACLES:
        raise InputError(f"robot file '{path}' has {obstacles} shapes in the world, expected at most {MOST_OBSTACLES}")
    notes = list(found.notes)
    if own > MOST_SHAPES:
        found = found.by_link()
        notes.append(f"the {own} shapes of the description are many: those of each link count as one convex hull")
    model = pinocchio_model(robot)
    shapes = solid_shapes(model, found.solids)
    for shape in shapes.shapes:
        if not shape.lever <= FARTHEST:
            raise InputError(
                f"robot file '{path}' has a shape of '{shape.owner}' that reaches {shape.lever:.3g} m, expected at most {FARTHEST:.0e}"
            )
    if found.lacking:
        bodies = {_joint_of(robot, link) for link in found.lacking}
        shapes = shapes.with_capsules([one for one in body_capsules(robot, model) if one.joint in bodies])
        notes += [
            f"a capsule of joint frames and inertia stands for link '{link}': {why}" for link, why in found.lacking.items()
        ]
    return Described(shapes, found.joined, found.excluded, found.floor_m, tuple(notes))


def _joint_of(robot: Robot, link: str) -> int:
    """Number of the joint that moves a link, from 1; 0 for the base."""
    if link in robot.links:
        return robot.links.index(link) + 1
    return next((merged.body + 1 for merged in robot.merged if merged.name == link), 0)
