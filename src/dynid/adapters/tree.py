"""What an adapter needs to know of a robot to build the same one in another library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.inertia import mass_com_inertia
from dynid.parameters import Parameters


class JointLike(Protocol):
    """One joint: ``T(q) = placement exp([screw] q)`` is the pose of its body in the parent's."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def parent(self) -> int: ...
    @property
    def placement(self) -> Array: ...
    @property
    def screw(self) -> Array: ...
    @property
    def q_min(self) -> float: ...
    @property
    def q_max(self) -> float: ...
    @property
    def dq_max(self) -> float: ...
    @property
    def tau_max(self) -> float: ...
    @property
    def nominal(self) -> Mapping[str, float]: ...


class MergedLinkLike(Protocol):
    """A link fixed to a body (-1: the ground)."""

    @property
    def name(self) -> str: ...
    @property
    def body(self) -> int: ...
    @property
    def placement(self) -> Array: ...


class RobotLike(Protocol):
    """A tree of bodies, one joint each, with its parameters."""

    @property
    def name(self) -> str: ...
    @property
    def joints(self) -> Sequence[JointLike]: ...
    @property
    def links(self) -> Sequence[str]: ...
    @property
    def gravity(self) -> Array: ...
    @property
    def parameters(self) -> Parameters: ...
    @property
    def merged(self) -> Sequence[MergedLinkLike]: ...


def axis_point(joint: JointLike) -> Array:
    """Point of a rotating joint's axis nearest to the body's origin; the origin for other joints."""
    if joint.kind in ("prismatic", "floating"):
        return np.zeros(3)
    return np.cross(joint.screw[3:], joint.screw[:3])


def pitch(joint: JointLike) -> float:
    """Advance along the axis per radian; rounding counts as none."""
    if joint.kind in ("prismatic", "floating"):
        return 0.0
    advance = float(joint.screw[3:] @ joint.screw[:3])
    return advance if abs(advance) > 1e-12 else 0.0


def effect_value(robot: RobotLike, symbol: str, joint: int) -> float:
    """Value of an effect's column on a joint, zero when the robot has no such column."""
    return robot.parameters.as_dict().get(f"{symbol}{joint + 1}", 0.0)


def mass_parts(robot: RobotLike, body: int) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia about it; refuses a body that has moments but no mass."""
    phi = robot.parameters.inertials[body]
    if phi[0] == 0.0:
        if np.any(phi[1:4]):
            raise InputError(f"link '{robot.links[body]}' has first moments {phi[1:4].tolist()} but no mass")
        tensor = phi[[4, 5, 7, 5, 6, 8, 7, 8, 9]].reshape(3, 3)
        return 0.0, np.zeros(3), tensor
    mass, com, inertia = mass_com_inertia(phi)
    return float(mass), com, inertia
