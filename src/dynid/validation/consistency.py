"""Physical consistency of every link of a model: the one decision that runs, reports and `dynid check` show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.model.inertia import consistency, is_consistent
from dynid.model.links import links_of
from dynid.model.robot import Robot


@dataclass(frozen=True)
class LinkConsistency:
    """Verdict on one link; slacks are negative where the condition is broken, in kg m^2."""

    name: str
    mass: float
    consistent: bool
    empty: bool
    """Neither mass nor inertia: a frame, not a body."""
    triangle_slack: float
    """Smallest of ``I1 + I2 - I3`` over the principal moments about the centre of mass."""
    min_eigenvalue: float
    """Smallest eigenvalue of the 4x4 pseudo-inertia."""
    fault: str
    """What is wrong, in words; empty when nothing is."""


@dataclass(frozen=True)
class ModelConsistency:
    """Verdict on a whole model."""

    links: tuple[LinkConsistency, ...]

    @property
    def feasible(self) -> bool:
        return all(link.consistent or link.empty for link in self.links)

    @property
    def inconsistent(self) -> tuple[str, ...]:
        return tuple(link.name for link in self.links if not (link.consistent or link.empty))


def check_model(robot: Robot) -> ModelConsistency:
    """Full physical consistency of every link of a robot, links fixed to others included.

    Args:
        robot: with the parameters to check.

    Returns:
        each link with its mass in kg, triangle slack in kg m^2 and smallest eigenvalue, and whether all are consistent.

    Examples:
        >>> import dynid
        >>> dynid.check_model(dynid.demo_robot().with_parameters({"m3": -1.0})).inconsistent
        ('upper_arm',)
    """
    links = links_of(robot)
    phi = np.array([link.phi for link in links])
    facts = consistency(phi)
    good = np.atleast_1d(np.asarray(is_consistent(phi, condition="full", allow_empty=True)))
    verdicts = []
    for i, link in enumerate(links):
        verdicts.append(
            LinkConsistency(
                name=link.name,
                mass=float(facts.mass[i]),
                consistent=bool(good[i]),
                empty=bool(facts.empty[i]),
                triangle_slack=float(facts.triangle_slack[i]),
                min_eigenvalue=float(facts.min_eigenvalue[i]),
                fault="" if good[i] else _fault(float(facts.mass[i]), facts.principal_moments[i]),
            )
        )
    return ModelConsistency(tuple(verdicts))


def _fault(mass: float, moments: np.ndarray) -> str:
    if not mass > 0.0:
        return f"mass is {mass:g} kg, expected a positive one"
    low, middle, high = np.sort(moments)
    if low <= 0.0:
        return f"smallest principal moment of inertia is {low:.3g} kg m^2, expected a positive one"
    return f"principal moments {low:.3g}, {middle:.3g}, {high:.3g} kg m^2 break the triangle inequality"
