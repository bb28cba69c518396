"""Solids of a description: plain shapes and meshes on links, before any library turns them into bodies or triangles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import cos, pi
from typing import Literal, TypeAlias

import numpy as np

from dynid.adapters.surfaces import AROUND, Surface, box, capsule, cone, cylinder, ellipsoid, joined
from dynid.arrays import Array

SolidKind: TypeAlias = Literal["box", "ellipsoid", "capsule", "cylinder", "cone", "mesh"]


@dataclass(frozen=True, eq=False)
class Solid:
    """One shape of one link."""

    link: str
    """Link that carries it; a name of its own for an obstacle."""
    kind: SolidKind
    sizes: tuple[float, ...]
    """Half edges of a box, radii of an ellipsoid, radius and half length along z of the others; none of a mesh."""
    pose: Array
    """4x4, in the frame of the link, or of the base for an obstacle."""
    mesh: Surface | None = None
    obstacle: bool = False
    """Whether it stands in the world and is no part of the robot."""

    def surface(self) -> Surface:
        """Its triangles in the frame in which its pose is given; round solids are cut flat a little inside."""
        return self._triangles().moved(self.pose[:3, :3], self.pose[:3, 3])

    def wide_surface(self) -> Surface:
        """The same for round solids cut flat a little outside: the solid lies inside of these triangles."""
        if self.kind in ("box", "mesh"):
            return self.surface()
        wider = 1.0 / cos(pi / AROUND) ** 2  # sides around the axis, and along it
        return replace(self, sizes=tuple(wider * size for size in self.sizes)).surface()

    def _triangles(self) -> Surface:
        if self.mesh is not None:
            return self.mesh
        if self.kind == "box":
            return box(np.array(self.sizes))
        if self.kind == "ellipsoid":
            return ellipsoid(np.array(self.sizes))
        made = {"capsule": capsule, "cylinder": cylinder, "cone": cone}[self.kind]
        return made(*self.sizes)


@dataclass(frozen=True, eq=False)
class Solids:
    """The solids of a description and what it says about them."""

    solids: tuple[Solid, ...]
    joined: frozenset[frozenset[str]] = frozenset()
    """Pairs of links that several joints at once join; pairs that one joint joins are known by it."""
    excluded: frozenset[frozenset[str]] = frozenset()
    """Pairs of links between which the description wants no contact."""
    floor_m: float | None = None
    """Height of the level floor that the description has."""
    lacking: Mapping[str, str] = field(default_factory=dict)
    """Links of which a shape cannot be had, each with the reason; they have no solids at all."""
    notes: tuple[str, ...] = ()

    def by_link(self) -> Solids:
        """One mesh for all solids of a link, in which they lie once it is made convex; obstacles stay as they are."""
        of_link: dict[str, list[Surface]] = {}
        for solid in self.solids:
            if not solid.obstacle:
                of_link.setdefault(solid.link, []).append(solid.wide_surface())
        whole = [Solid(link, "mesh", (), np.eye(4), joined(parts)) for link, parts in of_link.items()]
        return replace(self, solids=(*whole, *(solid for solid in self.solids if solid.obstacle)))
