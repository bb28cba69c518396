"""URDF: the robot's own file with its numbers replaced, or a new file where there is none.

A body that was merged of several links is taken apart again, see :mod:`dynid.model.links`.

In a new file a URDF link frame sits on its joint's axis. With ``A`` the translation from a body's frame to the nearest point of its
axis,

    P exp([S] q) = (P A) exp([S_A] q) A^-1,      phi_link = X(A^-1) phi_body,

so a robot described by other frames (standard DH, MJCF) is written with shifted link frames and the same dynamics.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    joints_in_file,
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
from dynid.io.robots.xml import ElementSpan, XmlText, add_element, parse_xml, read_numbers, xml_document, xml_lines
from dynid.model.effects.effect import PLACES
from dynid.model.inertia import change_of_frame, mass_com_inertia
from dynid.model.joint import Joint, axis_point, pitch
from dynid.model.links import links_taken_apart, own_inertials
from dynid.model.poses import inverse_pose, make_pose, rpy_from_rotation
from dynid.model.robot import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


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
        edited = _patched(robot, content, where, notes)
        edited.move_meshes(description.path.resolve().parent, Path(path).resolve().parent, notes)
        text = edited.edited()
    written = write_bytes(path, text)
    companions = (write_side_file(robot, Path(path)),) if robot.loops else ()
    return WrittenModel(written, "urdf", description is not None, tuple(notes), companions)


# The robot's own file -----------------------------------------------------------------------------
def _patched(robot: Robot, content: bytes, where: str, notes: list[str]) -> XmlText:
    """The source with the start tags of its inertials and dynamics edited; untouched links keep every byte."""
    root = parse_xml(content, where)
    present = {
        link.get("name", ""): link_phi(link, f"link '{link.get('name')}' in {where}") for link in root.findall("link")
    }
    text = XmlText(content, where)
    links, joints = (text.root.named(tag) for tag in ("link", "joint"))
    for wanted in links_taken_apart(robot, notes, present):
        if wanted.name not in links:
            raise UnknownNameError("link", wanted.name, links, where)
        if not wanted.is_like(present[wanted.name]):
            _patch_inertial(text, links[wanted.name], wanted.phi)
    for i, joint in joints_in_file(robot, joints, where):
        stated = joint.child("dynamics")
        # rotor inertia is no part of URDF, but where a file states it, it must not contradict the rest
        values = joint_dynamics(robot, i, notes, PLACES if stated and "armature" in stated.attributes else FRICTION)
        if stated is not None:
            before = {name: read_numbers(stated.attributes.get(name, "0")) for name in values}
            text.set_attributes(stated, {name: number(x) for name, x in values.items() if before[name] != [x]})
        elif given := " ".join(f'{name}="{number(value)}"' for name, value in values.items() if value != 0.0):
            text.insert_child(joint, [f"<dynamics {given}/>"], at_end=True)
    return text


def _patch_inertial(text: XmlText, link: ElementSpan, phi: Array) -> None:
    inertial = link.child("inertial")
    if inertial is None or not phi.any():
        if inertial is not None:
            text.remove(inertial)
        elif phi.any():
            text.insert_child(link, xml_lines(_inertial(phi), text.indent_step))
        return
    for wanted in _inertial(phi):
        stated = inertial.child(wanted.tag)
        if stated is not None:
            text.set_attributes(stated, wanted.attrib)
        else:
            text.insert_child(inertial, xml_lines(wanted))


# A new file ---------------------------------------------------------------------------------------
UNBOUNDED = 1e9
"""What stands for no position limit where URDF demands one."""


def new_urdf(robot: Robot, notes: list[str], described: Robot | None) -> str:
    """A URDF of the tree: one link per body, fixed joints for the links merged into them, no shapes."""
    from xml.etree.ElementTree import Element

    for joint in robot.joints:
        if pitch(joint) != 0.0:
            raise InputError(f"joint '{joint.name}' is a screw that advances {pitch(joint):g} m/rad; URDF has no such joint")
    shift = [make_pose(None, axis_point(joint)) for joint in robot.joints]  # of each link's frame in its body, onto the axis
    notes.extend(untied(robot))
    if any(pose[:3, 3].any() for pose in shift):
        notes.append("link frames were shifted onto their joint axes, as URDF wants them")
    apart = {wanted.name: wanted.phi for wanted in links_taken_apart(robot, notes, own_inertials(described))}
    ground, grounded = _root_link(robot)
    # the link of a body, or of the ground, and what brings a pose in the body into the frame of that link
    above = {-1: (ground, np.eye(4))} | {i: (robot.links[i], inverse_pose(pose)) for i, pose in enumerate(shift)}
    root = Element("robot", name=robot.name)
    if not robot.floating:
        _add_link(root, ground, apart[ground] if grounded else np.zeros(10))
    for i, joint in enumerate(robot.joints):
        link, into = above[i]
        _add_link(root, link, change_of_frame(into[:3, :3], into[:3, 3]) @ apart[link])
        if joint.kind == "floating":
            notes.append(f"floating joint '{joint.name}' is not written: load the file with a floating base")
            if not np.array_equal(joint.placement, np.eye(4)):
                xyz, rpy = joint.placement[:3, 3], rpy_from_rotation(joint.placement[:3, :3])
                notes.append(f"the base is measured from xyz {vector(xyz)}, rpy {vector(rpy)}: URDF cannot say so")
            continue
        kind = _kind(joint, notes)
        made = _add_joint(root, joint.name, kind, above[joint.parent], link, joint.placement @ shift[i])
        add_element(made, "axis", xyz=vector(joint.screw[:3] if kind == "prismatic" else joint.screw[3:]))
        if kind != "continuous" or math.isfinite(joint.tau_max) or math.isfinite(joint.dq_max):
            add_element(made, "limit", **_limits(joint, kind, notes))
        friction = joint_dynamics(robot, i, notes, FRICTION)
        if any(friction.values()):
            add_element(made, "dynamics", **{name: number(value) for name, value in friction.items()})
    for merged in robot.merged:
        if not (grounded and merged.name == ground):
            _add_link(root, merged.name, apart[merged.name])
            name = _unused((f"{merged.name}_fixed", f"{merged.name}_mount"), robot.joint_names)
            _add_joint(root, name, "fixed", above[merged.body], merged.name, merged.placement)
    return xml_document(root)


def _root_link(robot: Robot) -> tuple[str, bool]:
    """Name of the outermost link, and whether it is one that the robot has fixed to the ground."""
    if robot.floating:
        return robot.links[0], False
    for link in robot.merged:
        if link.body < 0 and np.array_equal(link.placement, np.eye(4)):
            return link.name, True
    return _unused(("base_link", "world", "base"), (*robot.links, *(link.name for link in robot.merged))), False


def _unused(candidates: Sequence[str], taken: Collection[str]) -> str:
    more = (f"{candidates[0]}{number}" for number in itertools.count(1))
    return next(name for name in itertools.chain(candidates, more) if name not in taken)


def _add_link(root: Element, name: str, phi: Array) -> None:
    link = add_element(root, "link", name=name)
    if phi.any():
        link.append(_inertial(phi))


def _inertial(phi: Array) -> Element:
    """``<inertial>`` with the tensor along the axes of the link."""
    from xml.etree.ElementTree import Element

    mass, com, tensor = mass_com_inertia(phi)
    made = Element("inertial")
    add_element(made, "origin", xyz=vector(com), rpy="0 0 0")
    add_element(made, "mass", value=number(float(mass)))
    add_element(made, "inertia", **{name: number(float(tensor[i, j])) for name, i, j in TENSOR})
    return made


def _add_joint(root: Element, name: str, kind: str, above: tuple[str, Array], child: str, placement: Array) -> Element:
    """A joint between two links; ``placement`` is the child's in the body above."""
    parent, into = above
    pose, made = into @ placement, add_element(root, "joint", name=name, type=kind)
    add_element(made, "parent", link=parent)
    add_element(made, "child", link=child)
    add_element(made, "origin", xyz=vector(pose[:3, 3]), rpy=vector(rpy_from_rotation(pose[:3, :3])))
    return made


def _kind(joint: Joint, notes: list[str]) -> str:
    bounded = math.isfinite(joint.q_min) and math.isfinite(joint.q_max)
    if joint.kind == "revolute" and not bounded:
        notes.append(f"joint '{joint.name}' has no position limits and is written as continuous")
        return "continuous"
    if joint.kind == "prismatic" and not bounded:
        notes.append(f"joint '{joint.name}' has no position limits; URDF demands some, written as {UNBOUNDED:g}")
    return joint.kind


def _limits(joint: Joint, kind: str, notes: list[str]) -> dict[str, str]:
    """Attributes of ``<limit>``; URDF demands effort and velocity even where they are not known."""
    limits: dict[str, float] = {}
    if kind != "continuous":
        limits = {"lower": max(joint.q_min, -UNBOUNDED), "upper": min(joint.q_max, UNBOUNDED)}
    for name, value in (("effort", joint.tau_max), ("velocity", joint.dq_max)):
        limits[name] = value if math.isfinite(value) else 0.0
        if not math.isfinite(value):
            notes.append(f"joint '{joint.name}' has no {name} limit; URDF demands one, written as 0 (unknown)")
    return {name: number(value) for name, value in limits.items()}
