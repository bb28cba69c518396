"""Which constraints the parameters of a robot keep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.estimation.constraints.constraints import Constraint
from dynid.estimation.convex.consistent_set import ConsistentSet
from dynid.estimation.convex.layout import Layout
from dynid.robot.model import Robot

KEPT = 1e-6
"""How far outside, relative to a link's size, still counts as kept: files state some six digits."""


def violated_constraints(robot: Robot, constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """Labels of the constraints that do not hold for a robot's bodies, those merged into one counted together.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.constraints.kept import violated_constraints
        >>> robot = dynid.demo_robot()
        >>> violated_constraints(robot, [dynid.TotalMass(upper=10.0), dynid.MassBounds("hand", upper=1.0)])
        ('total mass <= 10',)
    """
    parameters = robot.parameters
    layout = Layout.of_parameters(parameters, robot.links)
    held = ConsistentSet.of(layout, constraints=constraints, margin=0.0, links=[], prior=parameters)
    slacks = held.slacks(parameters.values / held.scale) if held.cones else np.zeros(0)
    return tuple(dict.fromkeys(label for label, slack in zip(held.labels, slacks, strict=True) if slack < -KEPT))
