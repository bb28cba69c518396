"""What may be known of a robot beyond physical consistency."""

from __future__ import annotations

from typing import Any

from dynid.lazy import Offered

_OFFERED = Offered(
    __name__,
    {
        "dynid.estimation.constraints.bounds": ("Bounds", "read_bounds"),
        "dynid.estimation.constraints.conditions": ("Condition",),
        "dynid.estimation.constraints.constraints": (
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
            "SymmetricLink",
            "TotalMass",
            "constraints_from_table",
        ),
    },
)

__all__ = _OFFERED.names


def __getattr__(name: str) -> Any:
    return _OFFERED.load(name)


def __dir__() -> list[str]:
    return _OFFERED.names
