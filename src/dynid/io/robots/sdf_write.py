"""SDF for Gazebo: the robot's own file with its numbers replaced, or a new file in the robot's own frames where there is none.

Of the robot's own file inertials and joint friction change; shapes, sensors, plugins and everything else stay. In a new file a joint's
pose lies in its child link, so axes beside a body's origin need no other frames, and a screw joint can be written. Bodies that were
merged of several links are taken apart again, see :mod:`dynid.model.links`. SDF keeps gravity in its worlds and has no rotor inertia.

A closed loop is a joint more, on a link that hangs on another joint already. Its two frames meet where the links stand in the file, so
a closed robot is written anew in the closed position that its description starts from, and joints count from there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.files import write_bytes, write_text
from dynid.io.robots.description import TENSOR, Description
from dynid.io.robots.sdf_read import link_phi, sdf_model
from dynid.io.robots.simulator_joint import (
    FRICTION,
    WrittenModel,
    closed_position,
    joint_dynamics,
    joints_in_file,
    left_out,
    number,
    refuse_inconsistent,
    refuse_moments_without_mass,
    source_to_patch,
    untied,
    vector,
)
from dynid.io.robots.xml import ElementSpan, XmlText, add_element, xml_document, xml_lines
from dynid.model.inertia import mass_com_inertia
from dynid.model.joint import axis_point, pitch
from dynid.model.links import links_taken_apart, own_inertials
from dynid.model.loops import COMPONENTS, Loop
from dynid.model.poses import rpy_from_rotation
from dynid.model.robot import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_UNLIMITED = 1e16
"""What SDF itself takes for no limit."""


def write_sdf(
    robot: Robot,
    path: str | os.PathLike[str],
    allow_inconsistent: bool = False,
    described: Robot | None = None,
    source: str | os.PathLike[str] | None = None,
) -> WrittenModel:
    """Write the robot with its present parameters as one SDF model.

    A robot that came from an SDF file is written as that file with inertials and joint friction replaced and everything else as it
    was. Other robots are written anew, with the visual and collision shapes of a URDF file.

    Args:
        robot: with the parameters to write.
        path: file to write.
        allow_inconsistent: write links that no physical body can be, instead of refusing.
        described: the same robot with the parameters of its description, for bodies that must be taken apart in a file
            written anew.
        source: an SDF file of the robot, where it did not come from one.

    Returns:
        the file, and notes on what SDF cannot hold.

    Examples:
        >>> import dynid
        >>> dynid.write_sdf(dynid.demo_robot(), "arm.sdf").format
        'sdf'
    """
    notes = refuse_inconsistent(robot, allow_inconsistent)
    notes.extend(left_out(robot, "SDF", FRICTION, gravity=False))
    notes.append(f"SDF keeps gravity in its worlds; this robot's is {vector(robot.gravity)} m/s^2")
    description = source_to_patch(robot, source, "sdf", "its shapes", notes)
    if description is not None:
        edited = _patched(robot, description, notes)
        edited.move_meshes(description.path.resolve().parent, Path(path).resolve().parent, notes)
        return WrittenModel(write_bytes(path, edited.edited()), "sdf", True, tuple(notes))
    if robot.loops.ties:
        raise InputError(
            f"joints of robot '{robot.name}' follow others ({', '.join(tie.name for tie in robot.loops.ties)}), which is not written to "
            "SDF; export it as mjcf, urdf or json"
        )
    notes.extend(untied(robot))
    if robot.loops:
        shift = closed_position(robot)
        moved = [f"{joint.name} from {x:.6g}" for joint, x in zip(robot.joints, shift, strict=True) if x != 0.0]
        if moved:
            notes.append(f"joints count from the closed position that the links are written in: {', '.join(moved)}")
        robot = counted_from(robot, shift)
    return WrittenModel(write_text(path, _new_sdf(robot, notes, described, Path(path))), "sdf", False, tuple(notes))


# The robot's own file -----------------------------------------------------------------------------
def _patched(robot: Robot, description: Description, notes: list[str]) -> XmlText:
    """The source with the numbers of its inertials and of friction replaced; what is unchanged keeps every byte."""
    where, text = description.where, XmlText(description.content, description.where)
    present = {
        link.get("name", ""): link_phi(link, f"link '{link.get('name')}' in {where}")
        for link in sdf_model(description).findall("link")
    }
    model = next(child for outer in (text.root, *text.root.children) for child in outer.children if child.tag == "model")
    links, joints = (model.named(tag) for tag in ("link", "joint"))
    for wanted in links_taken_apart(robot, notes, present):
        if wanted.name not in links:
            raise UnknownNameError("link", wanted.name, links, where)
        refuse_moments_without_mass(wanted.name, wanted.phi, "SDF")
        if not wanted.is_like(present[wanted.name]):
            _patch_inertial(text, links[wanted.name], wanted.phi)
    for i, joint in joints_in_file(robot, joints, where):
        axis = joint.child("axis")
        assert axis is not None  # a joint that moves has one, or was not read
        values = joint_dynamics(robot, i, notes, FRICTION)
        stated = axis.child("dynamics")
        if stated is not None:
            text.put_texts(stated, {name: number(x) for name, x in values.items() if x != 0.0 or stated.child(name)})
        elif any(values.values()):
            text.insert_child(axis, xml_lines(_element("dynamics", values.items()), text.indent_step), at_end=True)
    return text


def _patch_inertial(text: XmlText, link: ElementSpan, phi: Array) -> None:
    wanted, stated = _inertial(phi), link.child("inertial")
    tensor = None if stated is None else stated.child("inertia")
    if stated is None or tensor is None:
        if stated is not None:
            text.remove(stated)
        text.insert_child(link, xml_lines(wanted, text.indent_step))
        return
    pose = stated.child("pose")
    if pose is not None:  # another form of rotation would mean other numbers
        text.set_attributes(pose, {}, drop=("degrees", "rotation_format"))
    for element, into in ((wanted, stated), (wanted[-1], tensor)):
        text.put_texts(into, {child.tag: child.text or "" for child in element if not len(child)})


# A new file ---------------------------------------------------------------------------------------
def counted_from(robot: Robot, position: Array) -> Robot:
    """The same robot whose joints are at zero where they were at ``position``."""
    joints = tuple(
        replace(joint, placement=joint.pose(x), q_min=joint.q_min - x, q_max=joint.q_max - x)
        for joint, x in zip(robot.joints, position.tolist(), strict=True)
    )
    loops = replace(robot.loops, start=robot.loops.start - position)
    return replace(robot, joints=joints, loops=loops)


def closing_joint(loop: Loop) -> tuple[str, Array]:
    """Kind and axis, in the closure's frames, of the joint that closes a loop."""
    free = [component for component in COMPONENTS if component not in loop.closed]
    if not free:
        return "fixed", np.zeros(3)
    if free == ["rx", "ry", "rz"]:
        return "ball", np.zeros(3)
    if len(free) == 1:
        return "revolute" if free[0].startswith("r") else "prismatic", np.eye(3)["xyz".index(free[0][-1])]
    raise InputError(
        f"loop '{loop.name}' closes {', '.join(loop.closed)}, for which SDF has no joint; it holds fixed, revolute, prismatic and ball "
        "joints: export the robot as json"
    )


def _new_sdf(robot: Robot, notes: list[str], described: Robot | None, target: Path) -> str:
    from xml.etree.ElementTree import Element

    from dynid.io.robots.written_shapes import sdf_shapes

    shapes = sdf_shapes(robot, target, notes)
    apart = {wanted.name: wanted.phi for wanted in links_taken_apart(robot, notes, own_inertials(described))}
    called = _link_names(robot, notes)
    # a thread pitch in metres per turn came with version 1.10
    version = "1.10" if any(pitch(joint) != 0.0 for joint in robot.joints) else "1.8"
    root = Element("sdf", version=version)
    model = add_element(root, "model", name=robot.name)
    above = {-1: "world"} | {i: called[link] for i, link in enumerate(robot.links)}
    taken = {*robot.joint_names, *called.values()}
    carriers: dict[str, tuple[Element, Array]] = {}  # of the shapes of each link, with its place in the carrier
    for i, joint in enumerate(robot.joints):
        added = _add_link(model, above[i], above[joint.parent], joint.placement, apart[robot.links[i]], notes)
        carriers[robot.links[i]] = added, np.eye(4)
        if joint.kind == "floating":
            notes.append(f"floating joint '{joint.name}' is not written: nothing holds the model to the world")
        else:
            _add_moving_joint(model, robot, i, above, notes)
    shaped = {shape.link for shape, _ in shapes}
    for link in robot.merged:
        parent, phi = above[link.body], apart[link.name]
        if not phi.any() and (link.body >= 0 or link.name not in shaped):  # SDF has no links without mass, but frames
            attached = {"attached_to": parent} if link.body >= 0 else {}
            frame = add_element(model, "frame", name=called[link.name], **attached)
            add_element(frame, "pose", _pose(link.placement))
            if link.body >= 0:
                carriers[link.name] = carriers[robot.links[link.body]][0], link.placement
            continue
        # the mass of what stands on the ground has no torque: without an inertial it has SDF's own
        added = _add_link(model, called[link.name], parent, link.placement, phi if phi.any() else None, notes)
        carriers[link.name] = added, np.eye(4)
        name = f"{link.name}_fixed"
        while name in taken:
            name += "_"
        taken.add(name)
        _add_joint(model, name, "fixed", parent, called[link.name])
    for loop in robot.loops.framed:  # after the joints of the tree: the first joint of a link carries it
        kind, axis = closing_joint(loop)
        first, second = (loop.first, loop.second) if loop.second.body >= 0 else (loop.second, loop.first)
        made = _add_joint(model, loop.name, kind, above[first.body], above[second.body])
        add_element(made, "pose", _pose(second.placement))
        if axis.any():
            add_element(add_element(made, "axis"), "xyz", vector(axis))
    for k, (shape, geometry) in enumerate(shapes):
        carrier, place = carriers[shape.link]
        part = add_element(carrier, "visual" if shape.visual else "collision", name=f"{shape.link}_shape{k + 1}")
        add_element(part, "pose", _pose(place @ shape.pose))
        part.append(geometry)
        if shape.visual and shape.colour:
            material = add_element(part, "material")
            add_element(material, "ambient", shape.colour)
            add_element(material, "diffuse", shape.colour)
    return xml_document(root)


def _link_names(robot: Robot, notes: list[str]) -> dict[str, str]:
    """Links under names that SDF allows: none like a joint's, none like the ground's."""
    links = [*robot.links, *(link.name for link in robot.merged)]
    taken = {"world", *robot.joint_names}
    called: dict[str, str] = {}
    for link in links:
        name = link
        while name in taken or (name != link and name in links):
            name += "_link"
        if name != link:
            notes.append(f"link '{link}' is written as '{name}': SDF keeps that name for a joint or for the ground")
        called[link] = name
        taken.add(name)
    return called


def _add_link(model: Element, name: str, parent: str, placement: Array, phi: Array | None, notes: list[str]) -> Element:
    link = add_element(model, "link", name=name)
    add_element(link, "pose", _pose(placement), **({} if parent == "world" else {"relative_to": parent}))
    if phi is None:
        return link
    refuse_moments_without_mass(name, phi, "SDF")
    if not phi.any():
        # without an inertial SDF would give the link 1 kg
        notes.append(f"link '{name}' has no mass; Gazebo may refuse that")
    link.append(_inertial(phi))
    return link


def _inertial(phi: Array) -> Element:
    """``<inertial>`` with the tensor along the axes of the link, which comes last."""
    from xml.etree.ElementTree import Element

    mass, com, tensor = mass_com_inertia(phi)
    made = Element("inertial")
    add_element(made, "pose", f"{vector(com)} 0 0 0")
    add_element(made, "mass", number(float(mass)))
    made.append(_element("inertia", ((tag, float(tensor[row, column])) for tag, row, column in TENSOR)))
    return made


def _element(tag: str, values: Iterable[tuple[str, float]]) -> Element:
    """An element with one number in each of its children."""
    from xml.etree.ElementTree import Element

    made = Element(tag)
    for name, value in values:
        add_element(made, name, number(value))
    return made


def _add_joint(model: Element, name: str, kind: str, parent: str, child: str) -> Element:
    made = add_element(model, "joint", name=name, type=kind)
    add_element(made, "parent", parent)
    add_element(made, "child", child)
    return made


def _add_moving_joint(model: Element, robot: Robot, i: int, above: Mapping[int, str], notes: list[str]) -> None:
    joint, advance = robot.joints[i], pitch(robot.joints[i])
    kind, point = "screw" if advance != 0.0 else joint.kind, axis_point(joint)
    made = _add_joint(model, joint.name, kind, above[joint.parent], above[i])
    if point.any():
        add_element(made, "pose", f"{vector(point)} 0 0 0")
    if kind == "screw":
        add_element(made, "screw_thread_pitch", number(2.0 * math.pi * advance))
    axis = add_element(made, "axis")
    add_element(axis, "xyz", vector(joint.screw[:3] if kind == "prismatic" else joint.screw[3:]))
    low, high = (-math.inf, math.inf) if kind == "continuous" else (joint.q_min, joint.q_max)
    limits = {"lower": (low, -_UNLIMITED), "upper": (high, _UNLIMITED)}
    limits |= {"effort": (joint.tau_max, -1.0), "velocity": (joint.dq_max, -1.0)}
    axis.append(_element("limit", ((tag, x if math.isfinite(x) else none) for tag, (x, none) in limits.items())))
    friction = joint_dynamics(robot, i, notes, FRICTION)
    if any(friction.values()):
        axis.append(_element("dynamics", friction.items()))


def _pose(placement: Array) -> str:
    return f"{vector(placement[:3, 3])} {vector(rpy_from_rotation(placement[:3, :3]))}"
