"""Solids of a description: plain shapes and meshes on links, before any library turns them into bodies or triangles.

Surfaces of plain solids as triangles, and fewer triangles where there are too many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import cos, pi
from typing import Literal, TypeAlias

import numpy as np

from dynid.arrays import Array, IntArray

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
            corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.array(self.sizes)
            quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
            return Surface(corners, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]))
        if self.kind == "ellipsoid":
            latitudes = np.linspace(-0.5 * np.pi, 0.5 * np.pi, AROUND // 2 + 1)
            unit = turned(np.column_stack([np.cos(latitudes), np.sin(latitudes)]))
            return Surface(unit.vertices * np.array(self.sizes), unit.triangles)
        radius, half = self.sizes
        if self.kind == "capsule":  # a cylinder between two half balls
            angles = np.linspace(0.0, 0.5 * np.pi, AROUND // 4 + 1)
            upper = np.column_stack([radius * np.cos(angles), half + radius * np.sin(angles)])
            return turned(np.concatenate([(upper * [1.0, -1.0])[::-1], upper]))
        top = [[radius, half], [0.0, half]] if self.kind == "cylinder" else [[0.0, half]]  # the tip of a cone is above
        return turned(np.array([[0.0, -half], [radius, -half], *top]))


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


AROUND = 16
"""Sides of a round solid."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles of one link's shape: vertices ``(n, 3)`` in a frame, and three of them for each triangle ``(m, 3)``."""

    vertices: Array
    triangles: IntArray

    def moved(self, rotation: Array, translation: Array) -> Surface:
        """The surface in a frame in which its own stands at this pose."""
        return Surface(self.vertices @ rotation.T + translation, self.triangles)

    def with_fewer(self, most: int) -> Surface:
        """The same shape with at most so many triangles: vertices of one cell of a growing grid become their mean."""
        size = float(np.ptp(self.vertices, axis=0).max()) if len(self.vertices) else 0.0
        cell, fewer = size / 64.0, self
        while len(fewer.triangles) > most and size > 0.0:
            keys = np.floor((self.vertices - self.vertices.min(axis=0)) / cell).astype(np.int64)
            _, number, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
            number = number.ravel()
            means = np.zeros((len(count), 3))
            np.add.at(means, number, self.vertices)
            triangles = number[self.triangles]
            a, b, c = triangles.T
            triangles = triangles[(a != b) & (b != c) & (c != a)]
            _, first = np.unique(np.sort(triangles, axis=1), axis=0, return_index=True)
            fewer = Surface(means / count[:, None], triangles[np.sort(first)])
            cell *= 1.3
        return fewer


def joined(surfaces: list[Surface]) -> Surface:
    """One surface of several."""
    starts = np.cumsum([0, *(len(one.vertices) for one in surfaces[:-1])])
    triangles = [one.triangles + start for one, start in zip(surfaces, starts, strict=True)]
    return Surface(np.concatenate([one.vertices for one in surfaces]), np.concatenate(triangles))


def turned(profile: Array) -> Surface:
    """The surface that a profile ``(radius, z)`` makes when it turns about z."""
    angles = 2.0 * np.pi * np.arange(AROUND) / AROUND
    radius, z = profile[:, :1], np.repeat(profile[:, 1:], AROUND, axis=1)
    vertices = np.stack([radius * np.cos(angles), radius * np.sin(angles), z], axis=2).reshape(-1, 3)
    ring, side = np.meshgrid(np.arange(len(profile) - 1) * AROUND, np.arange(AROUND), indexing="ij")
    after = (side + 1) % AROUND
    low, low_after, high, high_after = (
        x.ravel() for x in (ring + side, ring + after, ring + AROUND + side, ring + AROUND + after)
    )
    triangles = np.concatenate([np.column_stack([low, low_after, high_after]), np.column_stack([low, high_after, high])])
    corners = vertices[triangles]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return Surface(vertices, triangles[area > 0.0])
