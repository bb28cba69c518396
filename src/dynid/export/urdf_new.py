"""A robot as a new URDF file, for robots that have none.

A URDF link frame sits on its joint's axis. With ``A`` the translation from a body's frame to the nearest point of its
axis,

    P exp([S] q) = (P A) exp([S_A] q) A^-1,      phi_link = X(A^-1) phi_body,

so a robot described by other frames (standard DH, MJCF) is written with shifted link frames and the same dynamics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dynid.adapters.tree import axis_point, pitch
from dynid.arrays import Array
from dynid.errors import InputError
from dynid.export.escaping import quoteattr
from dynid.export.simulator_joint import FRICTION, joint_dynamics
from dynid.export.written import number, untied, vector
from dynid.inertia import change_of_frame, mass_com_inertia
from dynid.robot.joint import Joint
from dynid.robot.links_apart import links_taken_apart, own_inertials
from dynid.robot.model import Robot

_TENSOR = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
UNBOUNDED = 1e9
"""What stands for no position limit where URDF demands one."""


def new_urdf(robot: Robot, notes: list[str], described: Robot | None) -> str:
    """A URDF of the tree: one link per body, fixed joints for the links merged into them, no shapes."""
    shift = [_to_axis(joint) for joint in robot.joints]
    notes.extend(untied(robot))
    if any(pose[:3, 3].any() for pose in shift):
        notes.append("link frames were shifted onto their joint axes, as URDF wants them")
    apart = {wanted.link: wanted.phi for wanted in links_taken_apart(robot, notes, own_inertials(described))}
    root, grounded = _root_link(robot)
    lines = ['<?xml version="1.0"?>', f"<robot name={quoteattr(robot.name)}>"]
    if grounded is not None:
        lines.extend(_link_lines(root, apart[root]))
    elif not robot.floating:
        lines.append(f"  <link name={quoteattr(root)}/>")
    for i, joint in enumerate(robot.joints):
        in_link = _inverse(shift[i])
        lines.extend(_link_lines(robot.links[i], change_of_frame(in_link[:3, :3], in_link[:3, 3]) @ apart[robot.links[i]]))
        if joint.kind == "floating":
            notes.append(f"floating joint '{joint.name}' is not written: load the file with a floating base")
            if not np.array_equal(joint.placement, np.eye(4)):
                xyz, rpy = joint.placement[:3, 3], rpy_from_rotation(joint.placement[:3, :3])
                notes.append(f"the base is measured from xyz {vector(xyz)}, rpy {vector(rpy)}: URDF cannot say so")
            continue
        above, parent = _frame_above(robot, shift, joint.parent, root)
        origin = above @ joint.placement @ shift[i]
        lines.extend(_joint_lines(robot, i, parent, origin, notes))
    for link in robot.merged:
        if link.name != grounded:
            above, parent = _frame_above(robot, shift, link.body, root)
            lines.extend(_link_lines(link.name, apart[link.name]))
            lines.append(f'  <joint name={quoteattr(_unused_joint(robot, link.name))} type="fixed">')
            lines.extend(_ends_and_origin(parent, link.name, above @ link.placement))
            lines.append("  </joint>")
    return "\n".join([*lines, "</robot>", ""])


def _frame_above(robot: Robot, shift: Sequence[Array], body: int, root: str) -> tuple[Array, str]:
    """What brings a pose in a body, or on the ground, into the URDF frame of its link, and the name of that link."""
    return (_inverse(shift[body]), robot.links[body]) if body >= 0 else (np.eye(4), root)


def _root_link(robot: Robot) -> tuple[str, str | None]:
    """Name of the outermost link, and the same again where it is a link that the robot has fixed to the ground."""
    if robot.floating:
        return robot.links[0], None
    for link in robot.merged:
        if link.body < 0 and np.array_equal(link.placement, np.eye(4)):
            return link.name, link.name
    taken = {*robot.links, *(link.name for link in robot.merged)}
    return _unused(("base_link", "world", "base"), taken), None


def _unused_joint(robot: Robot, link: str) -> str:
    return _unused((f"{link}_fixed", f"{link}_mount"), set(robot.joint_names))


def _unused(candidates: Sequence[str], taken: set[str]) -> str:
    for name in candidates:
        if name not in taken:
            return name
    number = 1
    while f"{candidates[0]}{number}" in taken:
        number += 1
    return f"{candidates[0]}{number}"


def _to_axis(joint: Joint) -> Array:
    """Pose of the URDF link frame in the body frame: moved to the axis, same directions."""
    if pitch(joint) != 0.0:
        raise InputError(f"joint '{joint.name}' is a screw that advances {pitch(joint):g} m/rad; URDF has no such joint")
    pose = np.eye(4)
    pose[:3, 3] = axis_point(joint)
    return pose


def _inverse(pose: Array) -> Array:
    inverse = np.eye(4)
    inverse[:3, :3] = pose[:3, :3].T
    inverse[:3, 3] = -pose[:3, :3].T @ pose[:3, 3]
    return inverse


def _link_lines(name: str, phi: Array) -> list[str]:
    if not phi.any():
        return [f"  <link name={quoteattr(name)}/>"]
    return [
        f"  <link name={quoteattr(name)}>",
        *(f"    {line}" for line in inertial_lines(phi)),
        "  </link>",
    ]


def inertial_lines(phi: Array, step: str = "  ") -> list[str]:
    """``<inertial>`` with the tensor along the axes of the link; ``step`` is one level of indentation."""
    mass, com, tensor = mass_com_inertia(phi)
    moments = " ".join(f'{name}="{value}"' for name, value in tensor_attributes(tensor).items())
    return [
        "<inertial>",
        f'{step}<origin xyz="{vector(com)}" rpy="0 0 0"/>',
        f'{step}<mass value="{number(float(mass))}"/>',
        f"{step}<inertia {moments}/>",
        "</inertial>",
    ]


def _joint_lines(robot: Robot, i: int, parent: str, origin: Array, notes: list[str]) -> list[str]:
    joint = robot.joints[i]
    kind: str = joint.kind
    bounded = math.isfinite(joint.q_min) and math.isfinite(joint.q_max)
    if kind == "revolute" and not bounded:
        kind = "continuous"
        notes.append(f"joint '{joint.name}' has no position limits and is written as continuous")
    axis = joint.screw[:3] if kind == "prismatic" else joint.screw[3:]
    lines = [f'  <joint name={quoteattr(joint.name)} type="{kind}">']
    lines.extend(_ends_and_origin(parent, robot.links[i], origin))
    lines.append(f'    <axis xyz="{vector(axis)}"/>')
    if kind != "continuous" or math.isfinite(joint.tau_max) or math.isfinite(joint.dq_max):
        limits = _limits(joint, kind, notes)
        if kind == "prismatic" and not bounded:
            notes.append(f"joint '{joint.name}' has no position limits; URDF demands some, written as {UNBOUNDED:g}")
        lines.append("    <limit " + " ".join(f'{name}="{number(value)}"' for name, value in limits.items()) + "/>")
    friction = joint_dynamics(robot, i, notes, FRICTION)
    if any(friction.values()):
        attributes = " ".join(f'{name}="{number(value)}"' for name, value in friction.items())
        lines.append(f"    <dynamics {attributes}/>")
    return [*lines, "  </joint>"]


def _limits(joint: Joint, kind: str, notes: list[str]) -> dict[str, float]:
    """Attributes of ``<limit>``; URDF demands effort and velocity even where they are not known."""
    limits: dict[str, float] = {}
    if kind != "continuous":
        limits = {"lower": max(joint.q_min, -UNBOUNDED), "upper": min(joint.q_max, UNBOUNDED)}
    for name, value in (("effort", joint.tau_max), ("velocity", joint.dq_max)):
        limits[name] = value if math.isfinite(value) else 0.0
        if not math.isfinite(value):
            notes.append(f"joint '{joint.name}' has no {name} limit; URDF demands one, written as 0 (unknown)")
    return limits


def _ends_and_origin(parent: str, child: str, pose: Array) -> list[str]:
    return [
        f"    <parent link={quoteattr(parent)}/>",
        f"    <child link={quoteattr(child)}/>",
        f'    <origin xyz="{vector(pose[:3, 3])}" rpy="{vector(rpy_from_rotation(pose[:3, :3]))}"/>',
    ]


def rpy_from_rotation(rotation: Array) -> Array:
    """Angles of ``Rz(yaw) Ry(pitch) Rx(roll)``, accurate for every rotation.

    Once yaw is chosen, roll and pitch are read off ``Rz(-yaw) R``, which stays well defined where roll and yaw merge.
    """
    R = rotation
    yaw = math.atan2(R[1, 0], R[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    pitch_angle = math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch_angle, yaw])


def tensor_attributes(tensor: Array) -> dict[str, str]:
    """Attributes of ``<inertia>``."""
    return {name: number(float(tensor[row, column])) for name, row, column in _TENSOR}
