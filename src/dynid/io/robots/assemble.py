"""Links and joints of a file become a robot; limits that it lacks.

The tree is walked outward from the ground. Links that fixed joints hold to a body are merged into it and remembered: with ``P`` the
pose of a merged link in the frame of its body,

    phi_body = phi_link + sum X(P) phi_merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.model.inertia import change_of_frame
from dynid.model.joint import Joint, JointKind, MergedLink
from dynid.model.robot import Robot, Source, make_robot

FLOATING_JOINT = "root_joint"
"""Name of the floating joint under an outermost link that nothing holds to the ground."""

Limit: TypeAlias = Literal["position", "velocity", "acceleration", "torque"]
LIMITS: tuple[Limit, ...] = ("position", "velocity", "acceleration", "torque")
_FIELDS: dict[Limit, tuple[str, ...]] = {
    "position": ("q_min", "q_max"),
    "velocity": ("dq_max",),
    "acceleration": ("ddq_max",),
    "torque": ("tau_max",),
}


@dataclass(frozen=True, eq=False)
class DescribedJoint:
    """One joint as a file describes it, between two of its links."""

    name: str
    kind: JointKind | Literal["fixed"]
    parent: str | None
    """Link that carries it; None for the ground."""
    child: str
    placement: Array
    """4x4 pose of the child in its parent at position zero."""
    screw: Array = field(default_factory=lambda: np.zeros(6))
    """Linear and angular part in the child's frame."""
    limits: Mapping[str, float] = field(default_factory=dict)
    nominal: Mapping[str, float] = field(default_factory=dict)


def walk_tree(joints: Iterable[DescribedJoint]) -> list[DescribedJoint]:
    """The joints that the ground carries, depth first, those of one link in the order in which they are given."""
    below: dict[str | None, list[DescribedJoint]] = {}
    for joint in joints:
        below.setdefault(joint.parent, []).append(joint)
    found: list[DescribedJoint] = []
    waiting = below.get(None, [])[::-1]
    while waiting:
        found.append(waiting.pop())
        waiting.extend(below.get(found[-1].child, [])[::-1])
    return found


def assemble_robot(
    name: str,
    joints: Iterable[DescribedJoint],
    inertials: Mapping[str, Array],
    source: Source,
    where: str,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Robot:
    """The robot of a file, without effects.

    Args:
        name: of the robot.
        joints: at most one on every link; the joints of one link in the order in which they are to be numbered.
        inertials: the ten parameters of every link in its own frame.
        source: what is remembered of the file.
        where: what messages call the file.
        gravity: in the base frame, m/s^2.
    """
    moving: list[Joint] = []
    links: list[str] = []
    phi: list[Array] = []
    merged: list[MergedLink] = []
    # the body that carries a link, and the pose of the link in its frame
    carried: dict[str | None, tuple[int, Array]] = {None: (-1, np.eye(4))}
    for joint in walk_tree(joints):
        body, pose = carried[joint.parent]
        placement, own = pose @ joint.placement, inertials[joint.child]
        if joint.kind == "fixed":
            carried[joint.child] = body, placement
            merged.append(MergedLink(joint.child, body, placement, own))
            if body >= 0:
                phi[body] = phi[body] + change_of_frame(placement[:3, :3], placement[:3, 3]) @ own
        else:
            carried[joint.child] = len(moving), np.eye(4)
            moving.append(Joint(joint.name, joint.kind, body, placement, joint.screw, nominal=joint.nominal, **joint.limits))
            links.append(joint.child)
            phi.append(own)
    lost = [link for link in inertials if link not in carried]
    if lost:
        raise InputError(f"{where} is cyclic: links {', '.join(lost[:5])} are each other's parents")
    if not moving:
        raise InputError(f"{where} has no moving joint")
    return make_robot(name, moving, np.array(phi), links=links, gravity=gravity, merged=merged, source=source)


def link_places(robot: Robot) -> dict[str, tuple[int, Array]]:
    """Body and pose in it of every link of the description, be it merged into another one; the ground is body -1."""
    places = {name: (body, np.eye(4)) for body, name in enumerate(robot.links)}
    return places | {link.name: (link.body, np.array(link.placement)) for link in robot.merged}


def require_limits(robot: Robot, limits: Iterable[Limit] = ("position", "velocity")) -> None:
    """Refuse a robot without one of these limits on a driven joint; continuous joints need no range."""
    for limit in limits:
        lacking = _lacking(robot.driven_joints, limit)
        if lacking:
            raise InputError(
                f"robot '{robot.name}' has no {limit} limit ({' and '.join(_FIELDS[limit])}) on "
                f"joint{'s' * (len(lacking) > 1)} {', '.join(lacking)}; expected a finite one"
            )


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
