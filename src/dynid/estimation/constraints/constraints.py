"""What may be known of a robot beyond physical consistency: one vocabulary for every constrained method.

Each constraint is a value that says its name, its links and its numbers, and writes itself as rows of a cone. A link is named by
its number from 1, by its own name or by that of its joint.
"""

from __future__ import annotations

from dynid.estimation.constraints.centres import (
    CentreOfMassInBox,
    CentreOfMassInCylinder,
    CentreOfMassInHull,
    CentreOfMassInSphere,
)
from dynid.estimation.constraints.densities import DensityInBox, DensityInEllipsoid
from dynid.estimation.constraints.masses import MassBounds, TotalMass
from dynid.estimation.constraints.meshes import mesh_vertices
from dynid.estimation.constraints.rows import AXES, Axis, Constraint, Rows, Vector
from dynid.estimation.constraints.single import FixedValues, Linear, PositiveEffects
from dynid.estimation.constraints.symmetry import EqualLinks, SymmetricLink
from dynid.estimation.constraints.table import (
    KINDS,
    constraints_from_table,
    table_from_constraints,
    with_meshes_seen_from,
)

__all__ = [
    "AXES",
    "KINDS",
    "Axis",
    "CentreOfMassInBox",
    "CentreOfMassInCylinder",
    "CentreOfMassInHull",
    "CentreOfMassInSphere",
    "Constraint",
    "DensityInBox",
    "DensityInEllipsoid",
    "EqualLinks",
    "FixedValues",
    "Linear",
    "MassBounds",
    "PositiveEffects",
    "Rows",
    "SymmetricLink",
    "TotalMass",
    "Vector",
    "constraints_from_table",
    "mesh_vertices",
    "table_from_constraints",
    "with_meshes_seen_from",
]
