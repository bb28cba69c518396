"""A robot's own MJCF file with its numbers replaced: inertials, friction, rotor inertias, gravity; the rest as it was.

An actuator adds its own rotor inertia and damping times its gear squared,

    Ia = armature + sum gear^2 armature_actuator,        fv = damping + sum gear^2 damping_actuator,

so the joint gets the rest, or all where the actuators alone would have more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.adapters.mujoco_joints import actuator_shares
from dynid.adapters.xml import parse_xml, serialize_xml
from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.export.mjcf_body import ATTRIBUTE, attributes_text, body_inertial, solid_body
from dynid.export.simulator_joint import SYMBOL, joint_dynamics
from dynid.export.written import number, vector
from dynid.export.xml_text import ElementSpan, XmlText
from dynid.inertia import change_of_frame
from dynid.robot.files import Description
from dynid.robot.links import links_of
from dynid.robot.links_apart import LinkInertial, links_taken_apart
from dynid.robot.mjcf import CompiledRobot, compiled_robot, expand_includes
from dynid.robot.model import Robot

_ORIENTATIONS = ("fullinertia", "euler", "axisangle", "xyaxes", "zaxis")
_MASS_OPTIONS = {"settotalmass": "-1", "boundmass": "0", "boundinertia": "0", "balanceinertia": "false"}
"""Options that change masses while compiling, and the values with which they do not."""


class UnpatchableError(Exception):
    """Why the robot's own file cannot hold the robot."""


@dataclass(frozen=True, eq=False)
class _Elements:
    """Bodies and joints of a text by the names that MuJoCo's compiler knows them under."""

    bodies: dict[str, ElementSpan]
    joints: dict[str, ElementSpan]


def patched_mjcf(robot: Robot, description: Description, target: Path, notes: list[str]) -> bytes:
    """The source with the tags of its inertials and joints edited; what is unchanged keeps every byte."""
    where = f"robot file '{description.path}'"
    content = _whole_text(description, where, notes)
    source = compiled_robot(description)
    present = source.robot
    text = XmlText(content, where)
    elements = _elements(text)
    own = {link.name: link.phi for link in links_of(present)}
    # with such options the compiler would change what is written, so every body is stated and they are put out of force
    all_stated = _put_out_of_force(text)
    virtual = set(present.links) - set(elements.bodies)
    moving = {name for name in present.links if name not in virtual}
    apart = links_taken_apart(robot, notes, own, physical=True)
    for wanted in apart:
        if wanted.link not in own:
            raise UnknownNameError("link", wanted.link, own, where)
    for wanted in _without_virtual(apart, virtual, robot, present):
        if wanted.link not in elements.bodies:
            raise UnpatchableError(f"does not show the body '{wanted.link}' in its text")
        if all_stated or wanted.link in source.refused or not wanted.is_like(own[wanted.link]):
            phi = solid_body(wanted.link, wanted.phi, notes) if wanted.link in moving else wanted.phi
            _patch_inertial(text, elements.bodies[wanted.link], phi)
    _patch_joints(robot, source, text, elements, where, notes)
    _patch_gravity(text, robot, present)
    _patch_folders(text, description.path, target, notes)
    return text.edited()


def _without_virtual(apart: list[LinkInertial], virtual: set[str], robot: Robot, present: Robot) -> list[LinkInertial]:
    """Links between two joints of one body have no place for mass; what they have goes into the body where that is held."""
    kept = {wanted.link: wanted for wanted in apart}
    merged = {link.name: link for link in robot.merged}
    for name in virtual & set(kept):
        wanted = kept.pop(name)
        if not wanted.phi.any():
            continue
        i = present.links.index(name)
        while present.links[i] in virtual:
            i = next(k for k, joint in enumerate(present.joints) if joint.parent == i)
        link = merged.get(present.links[i])
        if link is None or name not in robot.links or link.body != robot.links.index(name):
            raise UnpatchableError(f"has no body of its own for link '{name}' between two joints of one body")
        into = np.linalg.inv(link.placement)
        moved = change_of_frame(into[:3, :3], into[:3, 3]) @ wanted.phi
        before = kept[link.name]
        kept[link.name] = LinkInertial(link.name, before.phi + moved, before.size + np.abs(moved))
    return list(kept.values())


def _whole_text(description: Description, where: str, notes: list[str]) -> bytes:
    """The file's own bytes, or one text with the files that it includes."""
    root = parse_xml(description.content, where)
    if root.tag != "mujoco":
        raise InputError(f"{where} has the outermost element <{root.tag}>, expected <mujoco>")
    if next(root.iter("include"), None) is None:
        return description.content
    folder = description.path.resolve().parent
    expand_includes(root, folder, folder, {description.path.resolve()}, where)
    notes.append("written as one file with what the source includes, without comments")
    return serialize_xml(root).encode()


def _elements(text: XmlText) -> _Elements:
    """MuJoCo numbers bodies and joints in the order of the text and names those without a name by their number."""
    bodies: dict[str, ElementSpan] = {}
    joints: dict[str, ElementSpan] = {}

    def walk(element: ElementSpan) -> None:
        for joint in _inside(element, ("joint", "freejoint")):
            joints[joint.attributes.get("name") or f"joint{len(joints) + 1}"] = joint
        for body in _inside(element, ("body",)):
            bodies[body.attributes.get("name") or f"body{len(bodies) + 1}"] = body
            walk(body)

    for section in text.root.children:
        if section.tag == "worldbody":
            walk(section)
    return _Elements(bodies, joints)


def _inside(element: ElementSpan, tags: tuple[str, ...]) -> Iterator[ElementSpan]:
    """Children of these names, those inside frames included."""
    for child in element.children:
        if child.tag == "replicate":
            raise UnpatchableError("uses <replicate>, which stands for several bodies")
        if child.tag in tags:
            yield child
        elif child.tag == "frame":
            if {"scale", "massscale"} & child.attributes.keys():
                raise UnpatchableError("has a frame that scales what is in it")
            yield from _inside(child, tags)


def _put_out_of_force(text: XmlText) -> bool:
    """Whether compiler options would have changed masses; they no longer do."""
    found = False
    for compiler in (child for child in text.root.children if child.tag == "compiler"):
        changed = {
            name: plain for name, plain in _MASS_OPTIONS.items() if compiler.attributes.get(name, plain) not in (plain, "-1")
        }
        if compiler.attributes.get("inertiafromgeom") == "true":
            changed["inertiafromgeom"] = "auto"
        text.set_attributes(compiler, changed)
        found = found or bool(changed)
    return found


def _patch_inertial(text: XmlText, body: ElementSpan, phi: Array) -> None:
    values = body_inertial(phi)
    direct = body.child("inertial")
    if direct is not None:
        text.set_attributes(direct, values, drop=_ORIENTATIONS)
        return
    for framed in _inside(body, ("inertial",)):  # its numbers are the frame's; written in the body itself instead
        text.remove(framed)
    text.insert_child(body, [f"<inertial {attributes_text(values)}/>"])


def _patch_joints(
    robot: Robot, source: CompiledRobot, text: XmlText, elements: _Elements, where: str, notes: list[str]
) -> None:
    present = source.robot
    before = {joint.name: joint for joint in present.joints}
    sections = [section for section in text.root.children if section.tag == "actuator"]
    actuators = [actuator for section in sections for actuator in section.children]
    for i, joint in enumerate(robot.joints):
        if joint.kind == "floating":
            continue
        if joint.name not in before or joint.name not in elements.joints:
            raise UnknownNameError("joint", joint.name, before, where)
        shares = actuator_shares(source.model, present.joint_index(joint.name))
        values: dict[str, str] = {}
        for name, value in joint_dynamics(robot, i, notes).items():
            if value == before[joint.name].nominal.get(SYMBOL[name], 0.0):
                continue
            rest = value - shares.get(name, 0.0)
            if rest < 0.0:
                notes.append(
                    f"actuators of joint '{joint.name}' had more {name} ({shares[name]:.4g}) than was found ({value:.4g}): "
                    "written in the joint alone"
                )
                for actuator in actuators:
                    if actuator.attributes.get("joint") == joint.name:
                        text.set_attributes(actuator, {name: "0"})
                rest = value
            values[ATTRIBUTE[name]] = number(rest)
        text.set_attributes(elements.joints[joint.name], values)


def _patch_gravity(text: XmlText, robot: Robot, present: Robot) -> None:
    if np.array_equal(robot.gravity, present.gravity):
        return
    options = [child for child in text.root.children if child.tag == "option"]
    if not options:
        text.insert_child(text.root, [f'<option gravity="{vector(robot.gravity)}"/>'])
        return
    text.set_attributes(options[-1], {"gravity": vector(robot.gravity)})
    for option in options:
        flag = option.child("flag")
        if flag is not None and flag.attributes.get("gravity") == "disable":
            text.set_attributes(flag, {"gravity": "enable"})


def _patch_folders(text: XmlText, source: Path, target: Path, notes: list[str]) -> None:
    """Meshes and textures are named from the file's own folder; from another one they need another way."""
    here, there = source.resolve().parent, target.resolve().parent
    files = [
        asset.attributes.get("file", "")
        for section in text.root.children
        if section.tag == "asset"
        for asset in section.children
    ]
    if here == there or not any(file and not Path(file).is_absolute() for file in files):
        return
    compilers = [child for child in text.root.children if child.tag == "compiler"]
    stated: dict[str, str] = {}
    for compiler in compilers:
        stated |= compiler.attributes
    folders = {
        name: os.path.relpath(here / stated.get(name, stated.get("assetdir", "")), there)
        for name in ("meshdir", "texturedir")
    }
    if compilers:
        text.set_attributes(compilers[-1], folders)
    else:
        text.insert_child(text.root, [f"<compiler {attributes_text(folders)}/>"])
    notes.append(f"meshes and textures are looked for in '{folders['meshdir']}', from where the source has them")
