"""Surfaces of plain solids as triangles, and fewer triangles where there are too many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, IntArray

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
            fewer = self._in_cells(cell)
            cell *= 1.3
        return fewer

    def _in_cells(self, cell: float) -> Surface:
        keys = np.floor((self.vertices - self.vertices.min(axis=0)) / cell).astype(np.int64)
        _, number, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        number = number.ravel()
        means = np.zeros((len(count), 3))
        np.add.at(means, number, self.vertices)
        triangles = number[self.triangles]
        a, b, c = triangles.T
        triangles = triangles[(a != b) & (b != c) & (c != a)]
        _, first = np.unique(np.sort(triangles, axis=1), axis=0, return_index=True)
        return Surface(means / count[:, None], triangles[np.sort(first)])


def joined(surfaces: list[Surface]) -> Surface:
    """One surface of several."""
    starts = np.cumsum([0, *(len(one.vertices) for one in surfaces[:-1])])
    triangles = [one.triangles + start for one, start in zip(surfaces, starts, strict=True)]
    return Surface(np.concatenate([one.vertices for one in surfaces]), np.concatenate(triangles))


def box(half: Array) -> Surface:
    """A box about the origin."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.asarray(half, dtype=np.float64)
    quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    return Surface(corners, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]))


def ellipsoid(radii: Array) -> Surface:
    """An ellipsoid about the origin."""
    latitudes = np.linspace(-0.5 * np.pi, 0.5 * np.pi, AROUND // 2 + 1)
    profile = np.column_stack([np.cos(latitudes), np.sin(latitudes)])
    unit = turned(profile)
    return Surface(unit.vertices * np.asarray(radii, dtype=np.float64), unit.triangles)


def cylinder(radius: float, half_length: float) -> Surface:
    """A cylinder along z about the origin."""
    return turned(np.array([[0.0, -half_length], [radius, -half_length], [radius, half_length], [0.0, half_length]]))


def cone(radius: float, half_length: float) -> Surface:
    """A cone along z with its tip above."""
    return turned(np.array([[0.0, -half_length], [radius, -half_length], [0.0, half_length]]))


def capsule(radius: float, half_length: float) -> Surface:
    """A cylinder along z between two half balls."""
    angles = np.linspace(0.0, 0.5 * np.pi, AROUND // 4 + 1)
    upper = np.column_stack([radius * np.cos(angles), half_length + radius * np.sin(angles)])
    return turned(np.concatenate([(upper * [1.0, -1.0])[::-1], upper]))


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
