"""Shapes that the mass of a link lies in: ``tr(P Q) >= 0`` of an ellipsoid (Wensing and others 2018), and the like of a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.bodies import box_functionals, ellipsoid_functional
from dynid.estimation.constraints.rows import Rows, Vector, checked_vector, rows_of
from dynid.estimation.convex.layout import Layout


@dataclass(frozen=True)
class DensityInEllipsoid:
    """Some density inside the ellipsoid has these parameters; with full consistency necessary and sufficient."""

    kind: ClassVar[str] = "density_ellipsoid"
    link: int | str
    centre: Vector
    semi_axes: Vector
    rotation: tuple[Vector, Vector, Vector] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

    def __post_init__(self) -> None:
        for name in ("centre", "semi_axes"):
            object.__setattr__(self, name, checked_vector(f"ellipsoid {name} of link {self.link}", getattr(self, name)))
        object.__setattr__(self, "rotation", tuple(checked_vector("ellipsoid rotation", row) for row in self.rotation))
        self._functional()

    def _functional(self) -> Array:
        return ellipsoid_functional(self.centre, np.array(self.rotation), self.semi_axes)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        label = f"density of link {self.link} in its ellipsoid"
        return (rows_of("nonnegative", label, layout.link_slots(self.link), self._functional()),)


@dataclass(frozen=True)
class DensityInBox:
    """What every density inside the box obeys: centre of mass, second moments and products of its faces."""

    kind: ClassVar[str] = "density_box"
    link: int | str
    lower: Vector
    upper: Vector

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, checked_vector(f"{name} corner of link {self.link}", getattr(self, name)))
        box_functionals(self.lower, self.upper)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        label = f"density of link {self.link} in its box"
        return (rows_of("nonnegative", label, layout.link_slots(self.link), box_functionals(self.lower, self.upper)),)
