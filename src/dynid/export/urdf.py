"""URDF: the robot's own file with its numbers replaced, or a new file where there is none.

A URDF link frame sits on its joint's axis. With ``A`` the translation from a body's frame to the nearest point of its
axis,

    P exp([S] q) = (P A) exp([S_A] q) A^-1,      phi_link = X(A^-1) phi_body,

so a robot described by other frames (standard DH, MJCF) is written with shifted link frames and the same dynamics.

A body that was merged of several links is taken apart again, see :mod:`dynid.robot.links_apart`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dynid.adapters.tree import axis_point, pitch
from dynid.adapters.xml import parse_xml
from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.export.escaping import quoteattr
from dynid.export.loops import refuse_lumped, write_side_file
from dynid.export.simulator_joint import FRICTION, joint_dynamics, left_out
from dynid.export.written import WrittenModel, number, refuse_inconsistent, refuse_moments_without_mass, untied, vector
from dynid.export.xml_text import ElementSpan, XmlText
from dynid.files import write_bytes
from dynid.inertia import change_of_frame, mass_com_inertia
from dynid.robot.effects import PLACES, Place
from dynid.robot.files import read_description
from dynid.robot.joint import Joint
from dynid.robot.links_apart import links_taken_apart, own_inertials
from dynid.robot.model import Robot
from dynid.robot.urdf import expanded_xacro, link_phi, uses_xacro

_TENSOR = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
UNBOUNDED = 1e9
"""What stands for no position limit where URDF demands one."""


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

    Examples:
        >>> import dynid
        >>> written = dynid.write_urdf(dynid.demo_robot(), "arm.urdf")
        >>> written.format, written.patched
        ('urdf', False)
    """
    bad = refuse_inconsistent(robot, allow_inconsistent)
    _refuse_unwritable(robot)
    refuse_lumped(robot)
    notes = [f"links {', '.join(bad)} are not physically consistent"] if bad else []
    notes.extend(left_out(robot, "URDF", FRICTION))
    content = _source_content(robot, source, notes)
    if content is None:
        text = _new_text(robot, notes, described).encode()
    else:
        original, where = content
        text = _patched(robot, original, where, notes)
        _note_relative_meshes(original, where, Path(path), source or robot.source.path, notes)
    written = write_bytes(path, text)
    companions = (write_side_file(robot, Path(path)),) if robot.loops else ()
    return WrittenModel(written, "urdf", content is not None, tuple(notes), companions)


def _refuse_unwritable(robot: Robot) -> None:
    """A mass of zero cannot carry first moments in URDF, whatever is allowed."""
    for link, phi in zip(robot.links, robot.parameters.inertials, strict=True):
        refuse_moments_without_mass(link, phi, "URDF")


def _source_content(robot: Robot, source: str | os.PathLike[str] | None, notes: list[str]) -> tuple[bytes, str] | None:
    """The URDF text to patch and what messages call it; None where there is none."""
    if source is None:
        if robot.source.format != "urdf" or not robot.source.path:
            return None
        if not Path(robot.source.path).is_file():
            notes.append(f"robot file '{robot.source.path}' is no longer there: written anew, without meshes")
            return None
    description = read_description(source or robot.source.path)
    where = f"robot file '{description.path}'"
    if source is None and description.source("urdf").sha256 != robot.source.sha256:
        raise InputError(f"{where} has changed since the robot was read from it; name the file to patch as the source")
    content = description.content
    if description.path.suffix.lower() == ".xacro" or uses_xacro(parse_xml(content, where)):
        content = expanded_xacro(description.path)
        notes.append("written as the text that xacro expands to")
    return content, where


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
        span = joints[joint.name]
        stated = span.child("dynamics")
        places = PLACES if stated is not None and "armature" in stated.attributes else FRICTION
        _patch_dynamics(text, span, joint_dynamics(robot, i, notes, places))
    return text.edited()


def _patch_inertial(text: XmlText, link: ElementSpan, phi: Array) -> None:
    inertial = link.child("inertial")
    if inertial is None:
        if phi.any():
            text.insert_child(link, _inertial_lines(phi, text.indent_step))
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
    text.set_attributes(_required(inertial, "inertia", text), _tensor_attributes(tensor))


def _patch_dynamics(text: XmlText, joint: ElementSpan, values: Mapping[Place, float]) -> None:
    dynamics = joint.child("dynamics")
    if dynamics is None:
        given = {name: value for name, value in values.items() if value != 0.0 and name != "armature"}
        if given:
            attributes = " ".join(f'{name}="{number(value)}"' for name, value in given.items())
            text.insert_child(joint, [f"<dynamics {attributes}/>"], at_end=True)
        return
    # rotor inertia is no part of URDF, but where a file states it, it must not contradict the rest
    changed: dict[str, str] = {
        name: number(value)
        for name, value in values.items()
        if (name != "armature" or name in dynamics.attributes) and not _is_number(dynamics.attributes.get(name, "0"), value)
    }
    text.set_attributes(dynamics, changed)


def _is_number(text: str, value: float) -> bool:
    try:
        return float(text) == value
    except ValueError:
        return False


def _required(element: ElementSpan, tag: str, text: XmlText) -> ElementSpan:
    child = element.child(tag)
    if child is None:
        raise InputError(f"an <{element.tag}> in {text.where} has no <{tag}>")
    return child


def _note_relative_meshes(content: bytes, where: str, path: Path, source: str | os.PathLike[str], notes: list[str]) -> None:
    """Meshes named relative to the file are not found from another folder."""
    if path.resolve().parent == Path(source).resolve().parent:
        return
    files = [element.get("filename", "") for element in parse_xml(content, where).iter("mesh")]
    relative = [name for name in files if name and "://" not in name and not name.startswith("/")]
    if relative:
        notes.append(
            f"{len(relative)} meshes such as '{relative[0]}' are named relative to the folder '{Path(source).parent}'"
        )


# A new file ---------------------------------------------------------------------------------------


def _new_text(robot: Robot, notes: list[str], described: Robot | None) -> str:
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
        *(f"    {line}" for line in _inertial_lines(phi)),
        "  </link>",
    ]


def _inertial_lines(phi: Array, step: str = "  ") -> list[str]:
    """``<inertial>`` with the tensor along the axes of the link; ``step`` is one level of indentation."""
    mass, com, tensor = mass_com_inertia(phi)
    moments = " ".join(f'{name}="{value}"' for name, value in _tensor_attributes(tensor).items())
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


# Numbers ------------------------------------------------------------------------------------------


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


def _tensor_attributes(tensor: Array) -> dict[str, str]:
    return {name: number(float(tensor[row, column])) for name, row, column in _TENSOR}
