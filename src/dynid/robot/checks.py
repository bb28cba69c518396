"""What a job needs of a robot beyond being readable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.robot.joint import Joint
from dynid.robot.model import Robot

Limit: TypeAlias = Literal["position", "velocity", "acceleration", "torque"]
LIMITS: tuple[Limit, ...] = ("position", "velocity", "acceleration", "torque")

_FIELDS: dict[Limit, tuple[str, ...]] = {
    "position": ("q_min", "q_max"),
    "velocity": ("dq_max",),
    "acceleration": ("ddq_max",),
    "torque": ("tau_max",),
}


def require_limits(robot: Robot, limits: Iterable[Limit] = ("position", "velocity")) -> None:
    """Refuse a robot without one of these limits on a driven joint; continuous joints need no range."""
    for limit in limits:
        lacking = _lacking(robot.driven_joints, limit)
        if lacking:
            raise InputError(
                f"robot '{robot.name}' has no {limit} limit ({' and '.join(_FIELDS[limit])}) on "
                f"{_count(lacking, 'joint')} {', '.join(lacking)}; expected a finite one"
            )


def require_simulatable(robot: Robot) -> None:
    """Refuse a robot with a joint that moves no mass: its acceleration under a torque would be infinite.

    A massless link that carries others, or a joint with rotor inertia, is no obstacle. In a closed robot the loops carry mass to
    joints from elsewhere; its inertia matrix itself is looked at where it is simulated.
    """
    massless = _massless_joints(robot)
    if massless:
        raise InputError(
            f"robot '{robot.name}' cannot be simulated: {_count(massless, 'link')} {', '.join(massless)} and "
            f"what {'it carries' if len(massless) == 1 else 'they carry'} have no mass, expected more"
        )


def is_simulatable(robot: Robot) -> bool:
    """Whether every joint moves some mass."""
    return not _massless_joints(robot)


def _massless_joints(robot: Robot) -> list[str]:
    """Links of joints that move no mass; none in a closed robot, where loops carry mass to joints from elsewhere."""
    if robot.loops:
        return []
    masses = carried_masses(robot)
    values = robot.parameters.as_dict()
    return [
        link
        for i, (link, joint) in enumerate(zip(robot.links, robot.joints, strict=True))
        if masses[i] <= 0.0 and (joint.kind == "floating" or values.get(f"Ia{i + 1}", 0.0) <= 0.0)
    ]


def carried_masses(robot: Robot) -> Array:
    """Mass that each joint moves: its link and all links beyond."""
    masses = robot.parameters.inertials[:, 0].copy()
    for i in range(robot.n_bodies - 1, -1, -1):
        if robot.joints[i].parent >= 0:
            masses[robot.joints[i].parent] += masses[i]
    return masses


def limit_notes(joints: Sequence[Joint], limits: Iterable[Limit] = ("position", "velocity", "torque")) -> list[str]:
    """One note per kind of limit that a description does not give."""
    driven = [joint for joint in joints if joint.kind != "floating"]
    notes = []
    for limit in limits:
        lacking = _lacking(driven, limit)
        if lacking:
            which = "every joint" if len(lacking) == len(driven) else ", ".join(lacking)
            notes.append(f"no {limit} limit: {which}")
    return notes


def _lacking(joints: Sequence[Joint], limit: Limit) -> list[str]:
    return [
        joint.name
        for joint in joints
        if not (limit == "position" and joint.kind == "continuous")
        and not all(np.isfinite(getattr(joint, field)) for field in _FIELDS[limit])
    ]


def _count(names: Sequence[str], what: str) -> str:
    return what if len(names) == 1 else f"{what}s"
