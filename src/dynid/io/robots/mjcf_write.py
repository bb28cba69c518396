"""MJCF: the robot's own file with its numbers replaced, or a new file where there is none.

MuJoCo holds rotor inertia, viscous and Coulomb friction (``armature``, ``damping``, ``frictionloss``) and gravity. Of the robot's own
file only these numbers change; the rest stays as it was. Bodies that were merged of several are taken apart again, see
:mod:`dynid.model.links`. An actuator adds its own rotor inertia and damping times its gear squared,

    Ia = armature + sum gear^2 armature_actuator,        fv = damping + sum gear^2 damping_actuator,

so the joint gets the rest, or all where the actuators alone would have more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InconsistentModelError, InputError, UnknownNameError
from dynid.files import write_atomically
from dynid.io.robots.description import Description
from dynid.io.robots.mjcf_new import ATTRIBUTE, inertial_attributes, new_mjcf, solid_body
from dynid.io.robots.mjcf_read import actuator_shares, compiled_robot
from dynid.io.robots.mujoco_model import compiled_file, whole_mjcf
from dynid.io.robots.simulator_joint import (
    SYMBOL,
    WrittenModel,
    inconsistent_links,
    joint_dynamics,
    left_out,
    number,
    refuse_lumped,
    source_to_patch,
    those_of,
    vector,
)
from dynid.io.robots.xml import ElementSpan, XmlText, serialize_xml, xml_tag
from dynid.model.effects.effect import PLACES
from dynid.model.inertia import change_of_frame, mass_com_inertia
from dynid.model.links import Link, links_of, links_taken_apart
from dynid.model.poses import inverse_pose
from dynid.model.robot import Robot


def write_mjcf(
    robot: Robot,
    path: str | os.PathLike[str],
    source: str | os.PathLike[str] | None = None,
    described: Robot | None = None,
) -> WrittenModel:
    """Write the robot with its present parameters as MJCF.

    A robot that came from an MJCF file is written as that file with inertials, joint friction, rotor inertias and gravity
    replaced and everything else as it was. Other robots are written anew, with a motor on every joint and the visual and
    collision shapes of their URDF or SDF file.

    Args:
        robot: with the parameters to write.
        path: file to write.
        source: an MJCF file of the robot, where it did not come from one.
        described: the same robot with the parameters of its description, for bodies that must be taken apart in a file
            written anew.

    Returns:
        the file, and notes on what MJCF cannot hold.

    Raises:
        InconsistentModelError: a link is no physical body; MuJoCo compiles none such.

    Examples:
        >>> import dynid
        >>> dynid.write_mjcf(dynid.demo_robot(), "arm.xml").format
        'mjcf'
    """
    bad = inconsistent_links(robot)
    if bad:
        raise InconsistentModelError(
            f"{those_of(robot, bad)}; MuJoCo compiles no such bodies, allowed or not: choose a method that keeps links "
            "consistent, or have the nearest model written whose links are ('dynid repair RUN -o FILE.xml')"
        )
    refuse_lumped(robot)
    notes = left_out(robot, "MJCF", PLACES, gravity=False)
    target, text, patched = Path(path), None, False
    description = source_to_patch(robot, source, "mjcf", "its looks", notes)
    if description is not None:
        try:
            text = patched_mjcf(robot, description, target, notes)
            patched = True
        except UnpatchableError as reason:
            notes.append(f"{description.where} {reason}: written anew, without its looks")
    if text is None:
        text = new_mjcf(robot, notes, described, target).encode()
    content, problems = text, []

    def write_and_compile(temporary: Path) -> None:  # so that no file is left which MuJoCo does not compile
        temporary.write_bytes(content)
        try:
            problems.append(compiled_file(temporary)[1])
        except InputError as error:  # the user knows the file by its own name
            raise InputError(str(error).replace(str(temporary), str(target))) from error

    written = write_atomically(target, write_and_compile)
    notes.extend(f"MuJoCo compiles the file only without its looks: {problem}" for problem in problems if problem)
    return WrittenModel(written, "mjcf", patched, tuple(notes))


_ORIENTATIONS = ("fullinertia", "euler", "axisangle", "xyaxes", "zaxis")
_MASS_OPTIONS = {"settotalmass": "-1", "boundmass": "0", "boundinertia": "0", "balanceinertia": "false"}
"""Options that change masses while compiling, and the values with which they do not."""


class UnpatchableError(Exception):
    """Why the robot's own file cannot hold the robot."""


def patched_mjcf(robot: Robot, description: Description, target: Path, notes: list[str]) -> bytes:
    """The source with the tags of its inertials and joints edited; what is unchanged keeps every byte."""
    where, content = description.where, description.content
    present, model, refused = compiled_robot(description)
    if next(description.root.iter("include"), None) is not None:
        content = serialize_xml(whole_mjcf(description)).encode()
        notes.append("written as one file with what the source includes, without comments")
    text = XmlText(content, where)
    bodies, joints = _bodies_and_joints(text)
    own = {link.name: link.phi for link in links_of(present)}
    # with such options the compiler would change what is written, so every body is stated and they are put out of force
    all_stated = False
    for compiler in (child for child in text.root.children if child.tag == "compiler"):
        stated = compiler.attributes
        changed = {name: plain for name, plain in _MASS_OPTIONS.items() if stated.get(name, plain) not in (plain, "-1")}
        if stated.get("inertiafromgeom") == "true":
            changed["inertiafromgeom"] = "auto"
        text.set_attributes(compiler, changed)
        all_stated = all_stated or bool(changed)
    virtual = set(present.links) - set(bodies)
    moving = {name for name in present.links if name not in virtual}
    apart = links_taken_apart(robot, notes, own, physical=True)
    for wanted in apart:
        if wanted.name not in own:
            raise UnknownNameError("link", wanted.name, own, where)
    for wanted in _without_virtual(apart, virtual, robot, present):
        if wanted.name not in bodies:
            raise UnpatchableError(f"does not show the body '{wanted.name}' in its text")
        if all_stated or wanted.name in refused or not wanted.is_like(own[wanted.name]):
            phi = solid_body(wanted.name, wanted.phi, notes) if wanted.name in moving else wanted.phi
            _patch_inertial(text, bodies[wanted.name], phi)
    _patch_joints(robot, present, model, text, joints, where, notes)
    if not np.array_equal(robot.gravity, present.gravity):
        options = [child for child in text.root.children if child.tag == "option"]
        if options:
            text.set_attributes(options[-1], {"gravity": vector(robot.gravity)})
        else:
            text.insert_child(text.root, [f'<option gravity="{vector(robot.gravity)}"/>'])
        for option in options:
            flag = option.child("flag")
            if flag is not None and flag.attributes.get("gravity") == "disable":
                text.set_attributes(flag, {"gravity": "enable"})
    _patch_folders(text, description.path, target, notes)
    return text.edited()


def _without_virtual(apart: list[Link], virtual: set[str], robot: Robot, present: Robot) -> list[Link]:
    """Links between two joints of one body have no place for mass; what they have goes into the body where that is held."""
    kept = {wanted.name: wanted for wanted in apart}
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
        into = inverse_pose(link.placement)
        moved = change_of_frame(into[:3, :3], into[:3, 3]) @ wanted.phi
        before = kept[link.name]
        kept[link.name] = replace(before, phi=before.phi + moved, size=before.size + np.abs(moved))
    return list(kept.values())


def _bodies_and_joints(text: XmlText) -> tuple[dict[str, ElementSpan], dict[str, ElementSpan]]:
    """Bodies and joints of a text by the names that the compiler knows them under.

    MuJoCo numbers bodies and joints in the order of the text and names those without a name by their number.
    """
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
    return bodies, joints


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


def _patch_inertial(text: XmlText, body: ElementSpan, phi: Array) -> None:
    mass, com, inertia = mass_com_inertia(phi)
    values = inertial_attributes(float(mass), com, inertia)
    direct = body.child("inertial")
    if direct is not None:
        text.set_attributes(direct, values, drop=_ORIENTATIONS)
        return
    for framed in _inside(body, ("inertial",)):  # its numbers are the frame's; written in the body itself instead
        text.remove(framed)
    text.insert_child(body, [xml_tag("inertial", values)])


def _patch_joints(
    robot: Robot, present: Robot, model: Any, text: XmlText, joints: dict[str, ElementSpan], where: str, notes: list[str]
) -> None:
    before = {joint.name: joint for joint in present.joints}
    sections = [section for section in text.root.children if section.tag == "actuator"]
    actuators = [actuator for section in sections for actuator in section.children]
    for i, joint in enumerate(robot.joints):
        if joint.kind == "floating":
            continue
        if joint.name not in before or joint.name not in joints:
            raise UnknownNameError("joint", joint.name, before, where)
        shares = actuator_shares(model, present.joint_index(joint.name))
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
        text.set_attributes(joints[joint.name], values)


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
        text.insert_child(text.root, [xml_tag("compiler", folders)])
    notes.append(f"meshes and textures are looked for in '{folders['meshdir']}', from where the source has them")
