"""What is known of a load beforehand, as constraints: its mass, the shape that it fills."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.errors import InputError
from dynid.estimation.constraints.base import Constraint
from dynid.estimation.constraints.bodies import CentreOfMassInCylinder, CentreOfMassInHull, MassBounds
from dynid.estimation.constraints.shapes import DensityInBox, mesh_vertices

SHAPES = "box:X0,Y0,Z0,X1,Y1,Z1, cylinder:X0,Y0,Z0,X1,Y1,Z1,RADIUS or mesh:FILE (m, in the frame of the load)"


def known_load(mass: float | None = None, shape: str | None = None, links: tuple[int, ...] = (1,)) -> tuple[Constraint, ...]:
    """Constraints on bodies of known mass or within a known shape.

    Args:
        mass: of each body, kg.
        shape: ``box:`` two corners, ``cylinder:`` both ends of its axis and its radius, ``mesh:`` an STL or OBJ file.
        links: numbers of the bodies.

    Examples:
        >>> from dynid.pipeline.known_load import known_load
        >>> [one.kind for one in known_load(2.0, "box:-0.1,-0.1,0,0.1,0.1,0.2")]
        ['mass', 'density_box']
    """
    found: list[Constraint] = []
    for link in links:
        if mass is not None:
            if not (np.isfinite(mass) and mass > 0.0):
                raise InputError(f"--mass is {mass:g}, expected a positive number of kg")
            found.append(MassBounds(link, mass, mass))
        if shape is not None:
            found += _shape(shape, link)
    return tuple(found)


def _shape(text: str, link: int) -> list[Constraint]:
    kind, _, rest = text.partition(":")
    if kind == "mesh" and rest:
        points = mesh_vertices(Path(rest))
        lower, upper = points.min(axis=0), points.max(axis=0)
        hull = CentreOfMassInHull(link, tuple((float(x), float(y), float(z)) for x, y, z in points))
        return [hull, DensityInBox(link, tuple(lower.tolist()), tuple(upper.tolist()))]
    try:
        numbers = [float(part) for part in rest.split(",")]
    except ValueError:
        numbers = []
    if kind == "box" and len(numbers) == 6:
        corners = np.sort(np.reshape(numbers, (2, 3)), axis=0)
        return [DensityInBox(link, tuple(corners[0].tolist()), tuple(corners[1].tolist()))]
    if kind == "cylinder" and len(numbers) == 7:
        start, end, radius = np.array(numbers[:3]), np.array(numbers[3:6]), numbers[6]
        axis = (end - start) / max(float(np.linalg.norm(end - start)), 1e-300)
        reach = radius * np.sqrt(np.maximum(1.0 - axis**2, 0.0))  # of a disc across the axis, along x, y and z
        lower, upper = np.minimum(start, end) - reach, np.maximum(start, end) + reach
        inside = CentreOfMassInCylinder(link, tuple(start.tolist()), tuple(end.tolist()), radius)
        return [inside, DensityInBox(link, tuple(lower.tolist()), tuple(upper.tolist()))]
    raise InputError(f"--shape is '{text}', expected {SHAPES}")
