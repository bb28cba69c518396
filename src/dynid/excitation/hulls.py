"""Hulls of bodies whose description has no collision shapes: one capsule from each body's joint to each joint it carries.

The radius follows from the inertia: a round bar of radius ``R`` has the second moment ``R^2 / 4`` across its axis. The last body
of a chain reaches from its joint through its centre of mass as far again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.adapters.coal import Capsule, ShapePairs, capsule_shapes
from dynid.adapters.pinocchio import pinocchio_model
from dynid.arrays import Array
from dynid.inertia import pseudo_inertia
from dynid.robot.model import Robot

RADIUS_M = (0.03, 0.15)
"""Radii are kept within these: inertias of descriptions are rough."""
_SHORTEST_M = 0.01


def hull_shapes(robot: Robot) -> ShapePairs:
    """Capsules around the bodies of a robot, and one from the base to the first joints."""
    model = pinocchio_model(robot)
    return capsule_shapes(model, body_capsules(robot, model))


def body_capsules(robot: Robot, model: Any) -> list[Capsule]:
    """The capsules of all bodies, in the frames of the joints of Pinocchio's model; those of the base have the joint 0."""
    offsets = [np.array(place.translation) for place in list(model.jointPlacements)[1:]]
    ends: dict[int, list[Array]] = {i: [] for i in range(-1, robot.n_bodies)}
    for joint, offset in zip(robot.joints, offsets, strict=True):
        ends[joint.parent].append(offset)
    capsules = [Capsule("base", 0, np.zeros(3), end, RADIUS_M[0]) for end in ends[-1] if np.linalg.norm(end) > _SHORTEST_M]
    for i, phi in enumerate(robot.parameters.inertials):
        radius, com = _radius(phi), phi[1:4] / phi[0] if phi[0] > 0.0 else np.zeros(3)
        reached = ends[i] or [2.0 * com]
        capsules += [Capsule(robot.links[i], i + 1, np.zeros(3), end, radius) for end in reached]
    return capsules


def _radius(phi: Array) -> float:
    """Radius of a round bar with the body's smaller second moments."""
    if not phi[0] > 0.0:
        return RADIUS_M[0]
    com = phi[1:4] / phi[0]
    spread = pseudo_inertia(phi)[:3, :3] / phi[0] - np.outer(com, com)
    smallest = max(float(np.linalg.eigvalsh(spread)[0]), 0.0)
    return float(np.clip(2.0 * np.sqrt(smallest), *RADIUS_M))
