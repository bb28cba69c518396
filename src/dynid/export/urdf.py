"""URDF: the robot's own file with its numbers replaced, or a new file where there is none.

A body that was merged of several links is taken apart again, see :mod:`dynid.robot.links_apart`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dynid.adapters.xml import parse_xml
from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.export.loops import refuse_lumped, write_side_file
from dynid.export.simulator_joint import FRICTION, joint_dynamics, left_out
from dynid.export.urdf_new import inertial_lines, new_urdf, tensor_attributes
from dynid.export.written import WrittenModel, number, refuse_inconsistent, refuse_moments_without_mass, vector
from dynid.export.xml_text import ElementSpan, XmlText
from dynid.files import write_bytes
from dynid.inertia import mass_com_inertia
from dynid.robot.effects import PLACES, Place
from dynid.robot.files import read_description
from dynid.robot.links_apart import links_taken_apart
from dynid.robot.model import Robot
from dynid.robot.urdf import expanded_xacro, link_phi, uses_xacro


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
        text = new_urdf(robot, notes, described).encode()
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
    text.set_attributes(_required(inertial, "inertia", text), tensor_attributes(tensor))


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
