"""Where the centre of mass of a link may be: with ``h = m c`` all of these are linear or second-order in ``(m, h)``.

in a box       h - m lower >= 0,  m upper - h >= 0    (Sousa 26)
in a sphere    || h - m centre || <= m radius
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.constraints.meshes import mesh_vertices
from dynid.estimation.constraints.rows import Rows, Vector, checked_positive, checked_vector, rows_of
from dynid.estimation.convex.layout import Layout


@dataclass(frozen=True)
class CentreOfMassInBox:
    """``lower <= c <= upper``, metres in the link's frame."""

    kind: ClassVar[str] = "com_box"
    link: int | str
    lower: Vector
    upper: Vector

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, checked_vector(f"{name} corner of link {self.link}", getattr(self, name)))
        if not np.less_equal(self.lower, self.upper).all():
            raise InputError(
                f"box of link {self.link} has lower {self.lower} and upper {self.upper}, expected lower <= upper"
            )

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        slots = layout.link_slots(self.link)[:4]
        above = np.hstack([-np.array(self.lower)[:, None], np.eye(3)])
        below = np.hstack([np.array(self.upper)[:, None], -np.eye(3)])
        return (rows_of("nonnegative", f"centre of mass of link {self.link} in its box", slots, np.vstack([above, below])),)


@dataclass(frozen=True)
class CentreOfMassInSphere:
    """``|| c - centre || <= radius``, metres in the link's frame."""

    kind: ClassVar[str] = "com_sphere"
    link: int | str
    centre: Vector
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", checked_vector(f"sphere centre of link {self.link}", self.centre))
        checked_positive(f"sphere radius of link {self.link}", self.radius)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        M = np.zeros((4, 4))
        M[0, 0] = self.radius
        M[1:, 0] = -np.array(self.centre)
        M[1:, 1:] = np.eye(3)
        label = f"centre of mass of link {self.link} in its sphere"
        return (rows_of("second_order", label, layout.link_slots(self.link)[:4], M),)


@dataclass(frozen=True)
class CentreOfMassInCylinder:
    """Within ``radius`` of the line from ``start`` to ``end`` and between the two, metres in the link's frame."""

    kind: ClassVar[str] = "com_cylinder"
    link: int | str
    start: Vector
    end: Vector
    radius: float

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            object.__setattr__(
                self, name, checked_vector(f"{name} of the cylinder of link {self.link}", getattr(self, name))
            )
        checked_positive(f"cylinder radius of link {self.link}", self.radius)
        if self.start == self.end:
            raise InputError(f"cylinder of link {self.link} starts and ends at {self.start}, expected two points")

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        start, end = np.array(self.start), np.array(self.end)
        length = float(np.linalg.norm(end - start))
        axis = (end - start) / length
        across = np.linalg.svd(axis[None])[2][1:]  # two directions normal to the axis
        slots = layout.link_slots(self.link)[:4]
        label = f"centre of mass of link {self.link} in its cylinder"
        along = np.concatenate([[-axis @ start], axis])
        ends = np.vstack([along, np.concatenate([[length], np.zeros(3)]) - along])
        disc = np.zeros((3, 4))
        disc[0, 0] = self.radius
        disc[1:, 0] = -across @ start
        disc[1:, 1:] = across
        return rows_of("nonnegative", label, slots, ends), rows_of("second_order", label, slots, disc)


@dataclass(frozen=True)
class CentreOfMassInHull:
    """``c`` in the convex hull of points, the vertices of the link's mesh say; metres in the link's frame."""

    kind: ClassVar[str] = "com_hull"
    link: int | str
    points: tuple[Vector, ...]

    def __post_init__(self) -> None:
        points = np.asarray(self.points, dtype=np.float64)
        if points.ndim != 2 or points.shape[-1] != 3 or len(points) < 4 or not np.isfinite(points).all():
            raise InputError(f"hull of link {self.link} has points of shape {points.shape}, expected at least four of three")
        object.__setattr__(self, "points", tuple(tuple(point) for point in points.tolist()))
        self.faces()

    @classmethod
    def from_mesh(
        cls, link: int | str, path: Path | str, scale: float = 1.0, placement: ArrayLike | None = None
    ) -> CentreOfMassInHull:
        """The hull of an STL or OBJ mesh, scaled and then placed in the link's frame by a 4x4 pose."""
        pose = np.eye(4) if placement is None else np.asarray(placement, dtype=np.float64)
        points = scale * mesh_vertices(Path(path)) @ pose[:3, :3].T + pose[:3, 3]
        return cls(link, tuple(tuple(point) for point in points.tolist()))

    def faces(self) -> Array:
        """``(faces, 4)``: ``n . x + d <= 0`` inside."""
        from scipy.spatial import ConvexHull, QhullError

        try:
            equations = ConvexHull(np.asarray(self.points)).equations
        except QhullError:
            raise InputError(
                f"the {len(self.points)} hull points of link {self.link} lie in a plane, expected a solid"
            ) from None
        # a flat face is reported once per triangle
        return np.unique(np.round(equations, 9), axis=0)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        faces = self.faces()
        M = -np.column_stack([faces[:, 3], faces[:, :3]])
        label = f"centre of mass of link {self.link} in its convex hull"
        return (rows_of("nonnegative", label, layout.link_slots(self.link)[:4], M),)
