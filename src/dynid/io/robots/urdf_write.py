"""URDF: the robot's own file with its numbers replaced, or a new file where there is none.

A body that was merged of several links is taken apart again, see :mod:`dynid.model.links`.

In a new file a URDF link frame sits on its joint's axis. With ``A`` the translation from a body's frame to the nearest point of its
axis,

    P exp([S] q) = (P A) exp([S_A] q) A^-1,      phi_link = X(A^-1) phi_body,

so a robot described by other frames (standard DH, MJCF) is written with shifted link frames and the same dynamics.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.files import write_bytes
from dynid.io.robots.closures import write_side_file
from dynid.io.robots.description import TENSOR
from dynid.io.robots.simulator_joint import (
    FRICTION,
    WrittenModel,
    joint_dynamics,
    left_out,
    number,
    refuse_inconsistent,
    refuse_lumped,
    refuse_moments_without_mass,
    source_to_patch,
    untied,
    vector,
)
from dynid.io.robots.urdf_read import link_phi
from dynid.io.robots.xacro import expand_xacro, uses_xacro
from dynid.io.robots.xml import ElementSpan, XmlText, parse_xml, quoteattr, read_numbers
from dynid.model.effects.effect import PLACES
from dynid.model.inertia import change_of_frame, mass_com_inertia
from dynid.model.joint import Joint, axis_point, pitch
from dynid.model.links import links_taken_apart, own_inertials
from dynid.model.poses import inverse_pose, make_pose, rpy_from_rotation
from dynid.model.robot import Robot


def write_urdf(
    robot: Robot,
    path: str | os.PathLike[str],
    source: str | os.PathLike[str] | None = None,
    allow_inconsistent: bool = False,
    described: Robot | None = None,
) -> WrittenModel:
    """Write the robot with its present parameters as URDF.

    A robot that came from a URDF (or xacro) file is written as that file with inertials and friction replaced and everything
    else, comments and meshes included, as it was. Other robots are written anew. URDF has no rotor inertia, torque offset or
    gravity: the notes of the result name what was left out.

    Args:
        robot: with the parameters to write.
        path: file to write.
        source: a URDF file of the robot, where it did not come from one.
        allow_inconsistent: write links that no physical body can be, instead of refusing.
        described: the same robot with the parameters of its description, for bodies that must be taken apart in a file
            written anew.

    Returns:
        the file, and notes on what URDF cannot hold.

    Examples:
        >>> import dynid
        >>> written = dynid.write_urdf(dynid.demo_robot(), "arm.urdf")
        >>> written.format, written.patched
        ('urdf', False)
    """
    notes = refuse_inconsistent(robot, allow_inconsistent)
    for link, phi in zip(robot.links, robot.parameters.inertials, strict=True):
        refuse_moments_without_mass(link, phi, "URDF")  # whatever is allowed
    refuse_lumped(robot)
    notes.extend(left_out(robot, "URDF", FRICTION))
    description = source_to_patch(robot, source, "urdf", "meshes", notes)
    if description is None:
        text = new_urdf(robot, notes, described).encode()
    else:
        where, content = description.where, description.content
        if description.path.suffix.lower() == ".xacro" or uses_xacro(description.root):
            content = expand_xacro(description.path)
            notes.append("written as the text that xacro expands to")
        text = _patched(robot, content, where, notes)
        files = [element.get("filename", "") for element in parse_xml(content, where).iter("mesh")]
        relative = [name for name in files if name and "://" not in name and not name.startswith("/")]
        if relative and Path(path).resolve().parent != description.path.resolve().parent:
            notes.append(
                f"{len(relative)} meshes such as '{relative[0]}' are named relative to the folder '{description.path.parent}'"
            )
    written = write_bytes(path, text)
    companions = (write_side_file(robot, Path(path)),) if robot.loops else ()
    return WrittenModel(written, "urdf", description is not None, tuple(notes), companions)


# The robot's own file -----------------------------------------------------------------------------
def _patched(robot: Robot, content: bytes, where: str, notes: list[str]) -> bytes:
    """The source with the start tags of its inertials and dynamics edited; untouched links keep every byte."""
    root = parse_xml(content, where)
    present = {
        link.get("name", ""): link_phi(link, f"link '{link.get('name')}' in {where}") for link in root.findall("link")
    }
    text = XmlText(content, where)
    links = {span.attributes["name"]: span for span in text.root.children if span.tag == "link"}
    joints = {span.attributes["name"]: span for span in text.root.children if span.tag == "joint"}
    for wanted in links_taken_apart(robot, notes, present):
        if wanted.link not in links:
            raise UnknownNameError("link", wanted.link, links, where)
        if not wanted.is_like(present[wanted.link]):
            _patch_inertial(text, links[wanted.link], wanted.phi)
    for i, joint in enumerate(robot.joints):
        if joint.kind == "floating":
            continue
        if joint.name not in joints:
            raise UnknownNameError("joint", joint.name, joints, where)
        stated = joints[joint.name].child("dynamics")
        # rotor inertia is no part of URDF, but where a file states it, it must not contradict the rest
        values = joint_dynamics(robot, i, notes, PLACES if stated and "armature" in stated.attributes else FRICTION)
        if stated is not None:
            before = {name: read_numbers(stated.attributes.get(name, "0")) for name in values}
            text.set_attributes(stated, {name: number(x) for name, x in values.items() if before[name] != [x]})
        elif given := " ".join(f'{name}="{number(value)}"' for name, value in values.items() if value != 0.0):
            text.insert_child(joints[joint.name], [f"<dynamics {given}/>"], at_end=True)
    return text.edited()


def _patch_inertial(text: XmlText, link: ElementSpan, phi: Array) -> None:
    inertial = link.child("inertial")
    if inertial is None:
        if phi.any():
            text.insert_child(link, inertial_lines(phi, text.indent_step))
        return
    if not phi.any():
        text.remove(inertial)
        return
    mass, com, tensor = mass_com_inertia(phi)
    origin = inertial.child("origin")
    pose = {"xyz": vector(com), "rpy": "0 0 0"}
    if origin is None:
        text.insert_child(inertial, [f'<origin xyz="{pose["xyz"]}" rpy="{pose["rpy"]}"/>'])
    else:
        text.set_attributes(origin, pose)
    text.set_attributes(_required(inertial, "mass", text), {"value": number(float(mass))})
    text.set_attributes(_required(inertial, "inertia", text), {name: number(float(tensor[i, j])) for name, i, j in TENSOR})


def _required(element: ElementSpan, tag: str, text: XmlText) -> ElementSpan:
    child = element.child(tag)
    if child is None:
        raise InputError(f"an <{element.tag}> in {text.where} has no <{tag}>")
    return child


UNBOUNDED = 1e9
"""What stands for no position limit where URDF demands one."""


def new_urdf(robot: Robot, notes: list[str], described: Robot | None) -> str:
    """A URDF of the tree: one link per body, fixed joints for the links merged into them, no shapes."""
    for joint in robot.joints:
        if pitch(joint) != 0.0:
            raise InputError(f"joint '{joint.name}' is a screw that advances {pitch(joint):g} m/rad; URDF has no such joint")
    shift = [make_pose(None, axis_point(joint)) for joint in robot.joints]  # of each link's frame in its body, onto the axis
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
        in_link = inverse_pose(shift[i])
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
            name = _unused((f"{link.name}_fixed", f"{link.name}_mount"), set(robot.joint_names))
            lines.append(f'  <joint name={quoteattr(name)} type="fixed">')
            lines.extend(_ends_and_origin(parent, link.name, above @ link.placement))
            lines.append("  </joint>")
    return "\n".join([*lines, "</robot>", ""])


def _frame_above(robot: Robot, shift: Sequence[Array], body: int, root: str) -> tuple[Array, str]:
    """What brings a pose in a body, or on the ground, into the URDF frame of its link, and the name of that link."""
    return (inverse_pose(shift[body]), robot.links[body]) if body >= 0 else (np.eye(4), root)


def _root_link(robot: Robot) -> tuple[str, str | None]:
    """Name of the outermost link, and the same again where it is a link that the robot has fixed to the ground."""
    if robot.floating:
        return robot.links[0], None
    for link in robot.merged:
        if link.body < 0 and np.array_equal(link.placement, np.eye(4)):
            return link.name, link.name
    taken = {*robot.links, *(link.name for link in robot.merged)}
    return _unused(("base_link", "world", "base"), taken), None


def _unused(candidates: Sequence[str], taken: set[str]) -> str:
    for name in candidates:
        if name not in taken:
            return name
    number = 1
    while f"{candidates[0]}{number}" in taken:
        number += 1
    return f"{candidates[0]}{number}"


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
    moments = " ".join(f'{name}="{number(float(tensor[i, j]))}"' for name, i, j in TENSOR)
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
