"""A robot as a new MJCF file, for robots that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid.adapters.mujoco import motion_attributes, pose_attributes
from dynid.adapters.xml import serialize_xml
from dynid.arrays import Array
from dynid.export.loops import add_equalities
from dynid.export.mjcf_body import ATTRIBUTE, body_inertial, solid_body
from dynid.export.simulator_joint import joint_dynamics
from dynid.export.written import number, untied, vector
from dynid.robot.links_apart import links_taken_apart, own_inertials
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


def new_mjcf(robot: Robot, notes: list[str], described: Robot | None) -> str:
    """One body per link, merged links as bodies without joints, a motor on every driven joint, no shapes; closures as equalities."""
    from xml.etree.ElementTree import Element, SubElement, indent

    notes.extend(untied(robot))
    apart = {wanted.link: wanted.phi for wanted in links_taken_apart(robot, notes, own_inertials(described), physical=True)}
    called = _body_names(robot, notes)
    root = Element("mujoco", model=robot.name)
    SubElement(root, "compiler", angle="radian", autolimits="true")
    SubElement(root, "option", gravity=vector(robot.gravity), integrator="implicitfast")
    world = SubElement(root, "worldbody")
    bodies: list[Element] = []
    for i, joint in enumerate(robot.joints):
        above = bodies[joint.parent] if joint.parent >= 0 else world
        body = SubElement(above, "body", {"name": called[robot.links[i]]} | pose_attributes(joint.placement))
        bodies.append(body)
        _add_joint(body, robot, i, notes)
        phi = apart[robot.links[i]]
        if phi[0] != 0.0 or robot.parameters.inertials[i, 0] == 0.0:
            phi = solid_body(robot.links[i], phi, notes)
        _add_inertial(body, phi)
    for link in robot.merged:
        above = bodies[link.body] if link.body >= 0 else world
        body = SubElement(above, "body", {"name": called[link.name]} | pose_attributes(link.placement))
        _add_inertial(body, apart[link.name])
    if robot.loops:
        add_equalities(root, robot, bodies, world, notes)
    if robot.driven_joints:
        motors = SubElement(root, "actuator")
        for joint in robot.driven_joints:
            SubElement(motors, "motor", name=joint.name, joint=joint.name)
    indent(root)
    return serialize_xml(root) + "\n"


def _body_names(robot: Robot, notes: list[str]) -> dict[str, str]:
    """What the body of every link is called."""
    called = {link: link for link in (*robot.links, *(link.name for link in robot.merged))}
    if "world" in called:
        called["world"] = next(name for name in ("world_link", "world_body", "world_frame") if name not in called)
        notes.append(f"link 'world' is written as '{called['world']}': in MJCF that name is the ground's")
    return called


def _add_inertial(body: Element, phi: Array) -> None:
    from xml.etree.ElementTree import SubElement

    if phi.any():
        SubElement(body, "inertial", body_inertial(phi))


def _add_joint(body: Element, robot: Robot, i: int, notes: list[str]) -> None:
    from xml.etree.ElementTree import SubElement

    joint = robot.joints[i]
    if joint.kind == "floating":
        SubElement(body, "freejoint", name=joint.name)
        if not np.array_equal(joint.placement, np.eye(4)):
            notes.append(f"MuJoCo measures the base '{joint.name}' from the world, not from the placement of its joint")
        return
    element = SubElement(body, "joint", {"name": joint.name} | motion_attributes(joint))
    if joint.kind != "continuous" and np.isfinite([joint.q_min, joint.q_max]).all():
        element.set("range", vector(np.array([joint.q_min, joint.q_max])))
    if np.isfinite(joint.tau_max):
        element.set("actuatorfrcrange", vector(np.array([-joint.tau_max, joint.tau_max])))
    for name, value in joint_dynamics(robot, i, notes).items():
        if value != 0.0:
            element.set(ATTRIBUTE[name], number(value))
