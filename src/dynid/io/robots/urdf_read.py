"""Robots written as URDF, and as xacro.

Body frames are the URDF link frames. Joints are numbered outward from the base, those of one link in the order of their names, as
Pinocchio and other readers of URDF number them. Links that fixed joints hold to another are merged into it and remembered. Shapes are
never looked at, so no mesh is needed.

``<transmission>`` elements, ROS's and ros2_control's, state couplings and gear ratios. With ``n_a`` the reduction of an actuator and
``n_j`` that of a joint (1 where not stated),

    Simple              x_a = n_a n_j x_j
    Differential        x_a1 = n_a1 (n_j1 x_j1 + n_j2 x_j2),    x_a2 = n_a2 (n_j1 x_j1 - n_j2 x_j2)
    FourBarLinkage      x_a1 = n_a1 n_j1 x_j1,                  x_a2 = n_a2 (x_j1 + n_j2 x_j2)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError, listed
from dynid.files import check_memory
from dynid.io.robots.closures import with_mimics
from dynid.io.robots.description import (
    FLOATING_JOINT,
    TENSOR,
    DescribedJoint,
    Description,
    assemble_robot,
    body_parameters,
    limit_notes,
)
from dynid.io.robots.xacro import expand_xacro, uses_xacro
from dynid.io.robots.xml import attribute_numbers, named_elements, one_number, parse_xml, read_numbers
from dynid.model.coupling import Coupling
from dynid.model.joint import JointKind
from dynid.model.poses import make_pose, rotation_from_rpy
from dynid.model.robot import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MOVING_KINDS: dict[str, JointKind] = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "floating": "floating",
}


def robot_from_urdf(description: Description, *, floating: bool = False) -> Robot:
    """The robot of a URDF or xacro file that was read, with no effects; ``floating`` puts it on a floating joint."""
    where, notes = description.where, list[str]()
    root = urdf_root(description, notes)
    links = named_elements(root, "link", where)
    joints = urdf_joints(root, links, where, floating=floating)
    phi = {link: link_phi(element, f"link '{link}' in {where}") for link, element in links.items()}
    name = root.get("name") or description.path.stem
    robot = assemble_robot(name, joints, phi, description.source("urdf"), where)
    notes += limit_notes(robot.joints)
    massless = [link for link, row in zip(robot.links, robot.parameters.inertials, strict=True) if not np.any(row)]
    if massless:
        notes.append(f"moving links without mass: {', '.join(massless)}")
    mimics = {element.get("name", ""): element.find("mimic") for element in root.findall("joint")}
    robot = with_mimics(robot, mimics, notes, where)
    coupling = coupling_from_transmissions(root, [joint.name for joint in robot.driven_joints], where, notes)
    return replace(robot, coupling=coupling, source=replace(robot.source, notes=tuple(notes)))


def urdf_root(description: Description, notes: list[str] | None = None) -> Element:
    """The outermost element of a URDF file, macros of xacro expanded, which is noted."""
    where, root = description.where, description.root
    if root.tag != "robot":
        raise InputError(f"{where} has the outermost element <{root.tag}>, expected <robot>")
    if description.path.suffix.lower() == ".xacro" or uses_xacro(root):
        root = parse_xml(expand_xacro(description.path), f"{where} with its macros expanded")
        if notes is not None:
            notes.append("macros of xacro were expanded, with arguments at their defaults")
    return root


# What the elements say ----------------------------------------------------------------------------
def urdf_joints(root: Element, links: Collection[str], where: str, *, floating: bool = False) -> list[DescribedJoint]:
    """All joints in the order of their names, before them the one that holds the outermost link to the ground."""
    if not links:
        raise InputError(f"{where} has no <link>")
    joints = [_joint(name, element, links, where) for name, element in named_elements(root, "joint", where).items()]
    above: dict[str, str] = {}
    for joint in joints:
        if joint.child in above:
            raise InputError(
                f"link '{joint.child}' in {where} hangs on two joints, '{above[joint.child]}' and '{joint.name}'; expected a tree"
            )
        above[joint.child] = joint.name
    roots = [link for link in links if link not in above]
    if len(roots) > 1:
        raise InputError(f"{where} has {len(roots)} links without a parent ({', '.join(roots[:5])}), expected one")
    if floating and any(joint.kind == "floating" for joint in joints):
        raise InputError(f"{where} already has a floating joint; do not ask for another")
    kind: JointKind | Literal["fixed"] = "floating" if floating else "fixed"
    ground = [DescribedJoint(FLOATING_JOINT, kind, None, link, np.eye(4)) for link in roots]
    return [*ground, *sorted(joints, key=lambda joint: joint.name)]


def _joint(name: str, element: Element, links: Collection[str], where: str) -> DescribedJoint:
    kind = element.get("type", "")
    if kind != "fixed" and kind not in _MOVING_KINDS:
        raise UnknownNameError("joint type", kind, ("fixed", *_MOVING_KINDS), f"joint '{name}' of {where}")
    place = f"joint '{name}' in {where}"
    ends = []
    for tag in ("parent", "child"):
        end = element.find(tag)
        link = None if end is None else end.get("link")
        if link is None:
            raise InputError(f"{place} has no <{tag} link=...>")
        if link not in links:
            raise UnknownNameError(f"{tag} link", link, links, f"joint '{name}' of {where}")
        ends.append(link)
    placement = origin_pose(element, f"origin of {place}")
    if kind in ("fixed", "floating"):
        return DescribedJoint(name, "fixed" if kind == "fixed" else "floating", ends[0], ends[1], placement)
    axis, direction = element.find("axis"), np.array([1.0, 0.0, 0.0])
    if axis is not None:
        direction = np.array(attribute_numbers(axis, "xyz", 3, "1 0 0", f"axis of {place}"))
        if not direction.any():
            raise InputError(f"axis of {place} is zero, expected a direction")
        direction /= np.abs(direction).max()  # the square of a tiny number is zero
        direction /= np.linalg.norm(direction)
    screw = np.concatenate([direction, np.zeros(3)] if kind == "prismatic" else [np.zeros(3), direction])
    dynamics, nominal = element.find("dynamics"), dict[str, float]()
    if dynamics is not None:
        for attribute, symbol in (("damping", "fv"), ("friction", "fc"), ("armature", "Ia")):
            if attribute in dynamics.attrib:
                (nominal[symbol],) = attribute_numbers(dynamics, attribute, 1, "", f"dynamics of {place}")
    limits = _limits(element, kind, f"limit of {place}")
    return DescribedJoint(name, _MOVING_KINDS[kind], ends[0], ends[1], placement, screw, limits, nominal)


def origin_pose(element: Element, what: str) -> Array:
    """The pose of an element's ``<origin>``."""
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    xyz, rpy = (attribute_numbers(origin, key, 3, "0 0 0", what) for key in ("xyz", "rpy"))
    return make_pose(rotation_from_rpy(*rpy), xyz)


def _limits(element: Element, kind: str, what: str) -> dict[str, float]:
    """Limits the file states. Zero velocity or effort means unknown: exporters write it for want of one."""
    limit = element.find("limit")
    if limit is None:
        return {}

    def bound(attribute: str) -> float:  # zero where it is absent, as URDF has it
        return one_number(limit.get(attribute, "0"), f"{what} has {attribute}")

    limits: dict[str, float] = {}
    if kind != "continuous" and ("lower" in limit.attrib or "upper" in limit.attrib):
        limits = {"q_min": bound("lower"), "q_max": bound("upper")}
        if limits["q_min"] > limits["q_max"]:
            raise InputError(f"{what} has lower {limits['q_min']:g} above upper {limits['q_max']:g}")
    for attribute, key in (("velocity", "dq_max"), ("effort", "tau_max")):
        value = bound(attribute)
        if value < 0.0:
            raise InputError(f"{what} has {attribute} {value:g}, expected a positive number")
        if 0.0 < value < math.inf:
            limits[key] = value
    return limits


def link_phi(link: Element, where: str) -> Array:
    """Ten parameters in the link's frame; zero without ``<inertial>``."""
    inertial = link.find("inertial")
    if inertial is None:
        return np.zeros(10)
    mass, tensor = inertial.find("mass"), inertial.find("inertia")
    if mass is None or tensor is None:
        raise InputError(f"inertial of {where} has no <{'mass' if mass is None else 'inertia'}>")
    (m,) = attribute_numbers(mass, "value", 1, "", f"mass of {where}")
    moments = [attribute_numbers(tensor, key, 1, "", f"inertia of {where}")[0] for key, _, _ in TENSOR]
    return body_parameters(m, origin_pose(inertial, f"inertial origin of {where}"), moments)


_REDUCTIONS = ("mechanicalReduction", "mechanical_reduction")
_KINDS = ("SimpleTransmission", "DifferentialTransmission", "FourBarLinkageTransmission")


def coupling_from_transmissions(root: Element, joint_names: Sequence[str], where: str, notes: list[str]) -> Coupling | None:
    """The coupling that the transmissions of a description state; None where every motor turns its own joint one to one."""
    if root.find(".//transmission") is None:
        return None
    n = len(joint_names)
    check_memory(f"the coupling of the {n} joints in {where}", 64.0 * n * n)  # the matrix, and its rows as numbers
    B, ratios = np.eye(n), np.full(n, np.nan)
    unknown: dict[str, list[str]] = {}
    for element in root.iter("transmission"):
        name, kind = element.get("name", "?"), _kind(element)
        joints = [one.get("name", "") for one in element.findall("joint")]
        if not joints or not all(joint in joint_names for joint in joints):
            continue  # one of them does not move
        places = [joint_names.index(joint) for joint in joints]
        if kind not in _KINDS:
            unknown.setdefault(kind, []).append(name)
            continue
        place, actuators = f"transmission '{name}' in {where}", element.findall("actuator")
        expected = 1 if kind == "SimpleTransmission" else 2
        if len(joints) != expected or len(actuators) != expected:
            raise InputError(
                f"{place} has {len(joints)} joints and {len(actuators)} actuators, a {kind} has {expected} of each"
            )
        a, b = ([_reduction(one, place) for one in element.findall("joint")] * 2)[:2]
        of_actuator = [_reduction(one, place) for one in actuators]
        if kind == "SimpleTransmission":
            ratios[places] = of_actuator[0] * a * _reduction(element, place)
        else:
            ratios[places] = of_actuator
            B[np.ix_(places, places)] = [[a, b], [a, -b]] if kind == "DifferentialTransmission" else [[a, 0.0], [1.0, b]]
    for kind, names in unknown.items():
        notes.append(f"transmissions of the type '{kind}', which is not known, are left out: {listed(names)}")
    plain = bool((np.eye(n) == B).all())
    if plain and np.all(np.isnan(ratios) | (ratios == 1.0)):
        return None
    lacking = [joint for joint, ratio in zip(joint_names, ratios, strict=True) if math.isnan(ratio)]
    if lacking:
        notes.append(f"no transmission states the gear ratio of {listed(lacking)}: a log of the motors needs --gear-ratios")
        if plain:
            return None
    return Coupling(tuple(map(tuple, B.tolist())), None if lacking else tuple(ratios.tolist()))


def _kind(element: Element) -> str:
    """Type of a transmission without the package that defines it."""
    texts = [element.get("type"), *(one.text for tag in ("type", "plugin") for one in element.findall(tag))]
    stated = next((text.strip() for text in texts if text and text.strip()), "SimpleTransmission")
    return stated.replace("::", "/").rsplit("/", maxsplit=1)[-1]


def _reduction(element: Element, place: str) -> float:
    for tag in _REDUCTIONS:
        found = element.find(tag)
        if found is None:
            continue
        values = read_numbers(found.text or "")
        if len(values) != 1 or not math.isfinite(values[0]) or values[0] == 0.0:
            raise InputError(f"{place} has a mechanical reduction of '{found.text}', expected a number that is not zero")
        return values[0]
    return 1.0
