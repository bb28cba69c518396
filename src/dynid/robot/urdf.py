"""Robots written as URDF, and as xacro where the package ``xacro`` is installed.

The text is vetted first; Pinocchio then parses the tree of a copy that holds what dynamics needs (no visual
and no collision elements, so no mesh is ever looked for). Body frames are the URDF link frames, which are
Pinocchio's joint frames. Links that fixed joints hold to another are merged into it and remembered; a mimic
joint is a joint of its own.
"""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.adapters.xml import numbers, parse_xml, serialize_xml
from dynid.arrays import Array
from dynid.errors import InputError, MissingPackageError, UnknownNameError
from dynid.inertia import change_of_frame, phi_from_mass_com_inertia
from dynid.robot.checks import limit_notes
from dynid.robot.files import Description, read_description
from dynid.robot.joint import Joint, JointKind
from dynid.robot.mimics import with_mimics
from dynid.robot.model import MergedLink, Robot, make_robot
from dynid.robot.transmissions import coupling_from_transmissions
from dynid.robot.xacro_child import PACKAGES, SECONDS

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

FLOATING_JOINT = "root_joint"
"""Name of the floating joint that ``floating=True`` puts under the outermost link."""

_XACRO_NAMESPACES = (
    "{http://www.ros.org/wiki/xacro}",
    "{http://ros.org/wiki/xacro}",
    "{http://wiki.ros.org/xacro}",
)
_MOVING_KINDS: dict[str, JointKind] = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "floating": "floating",
}
_TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


@dataclass(frozen=True)
class _UrdfJoint:
    """One ``<joint>`` element, checked."""

    name: str
    kind: str
    parent: str
    child: str
    element: Element


def read_urdf(path: str | PathLike[str], *, floating: bool = False) -> Robot:
    """The robot of a URDF or xacro file, with no effects; ``floating`` puts it on a floating joint."""
    return robot_from_urdf(read_description(path), floating=floating)


def robot_from_urdf(description: Description, *, floating: bool = False) -> Robot:
    """The robot of a URDF or xacro file that was read, with no effects."""
    where = f"robot file '{description.path}'"
    root = parse_xml(description.content, where)
    if root.tag != "robot":
        raise InputError(f"{where} has the outermost element <{root.tag}>, expected <robot>")
    notes: list[str] = []
    if description.path.suffix.lower() == ".xacro" or uses_xacro(root):
        root = parse_xml(expanded_xacro(description.path), f"{where} expanded by xacro")
        notes.append("expanded by xacro")
    name = root.get("name") or description.path.stem
    elements = _links(root, where)
    joints = _joints(root, tuple(elements), where)
    outermost = _check_tree(tuple(elements), joints, where)
    if floating and any(joint.kind == "floating" for joint in joints):
        raise InputError(f"{where} already has a floating joint; do not ask for another")
    phi = {link: link_phi(element, f"link '{link}' in {where}") for link, element in elements.items()}
    robot = _assemble(name, joints, phi, outermost, floating, description, [], where)
    notes += robot.source.notes
    robot = with_mimics(robot, {joint.name: joint.element.find("mimic") for joint in joints}, notes, where)
    coupling = coupling_from_transmissions(root, [joint.name for joint in robot.driven_joints], where, notes)
    return replace(robot, coupling=coupling, source=replace(robot.source, notes=tuple(notes)))


def _assemble(
    name: str,
    joints: list[_UrdfJoint],
    phi: dict[str, Array],
    outermost: str,
    floating: bool,
    description: Description,
    notes: list[str],
    where: str,
) -> Robot:
    """Pinocchio's tree with this file's inertials, limits and friction."""
    from dynid.adapters.pinocchio import joint_screws, parse_urdf

    model = parse_urdf(_tree_text(name, joints, tuple(phi), where), where, floating=floating)
    by_name = {joint.name: joint for joint in joints}
    moving = _moving_joints(model, joint_screws(model), by_name, floating, notes, where)
    if not moving:
        raise InputError(f"{where} has no moving joint")
    carried = [outermost if joint.name == FLOATING_JOINT else by_name[joint.name].child for joint in moving]
    inertials = np.array([phi[link] for link in carried])
    merged = [
        MergedLink(frame.name, int(frame.parentJoint) - 1, frame.placement.homogeneous, phi[frame.name])
        for frame in model.frames
        if frame.name in phi and str(frame.type) == "BODY" and frame.name not in carried
    ]
    for link in merged:
        if link.body >= 0:
            inertials[link.body] += change_of_frame(link.placement[:3, :3], link.placement[:3, 3]) @ link.phi
    notes.extend(limit_notes(moving))
    massless = [link for link, row in zip(carried, inertials, strict=True) if not np.any(row)]
    if massless:
        notes.append(f"moving links without mass: {', '.join(massless)}")
    return make_robot(name, moving, inertials, links=carried, merged=merged, source=description.source("urdf", tuple(notes)))


def _moving_joints(
    model: Any, screws: Iterable[Array], by_name: Mapping[str, _UrdfJoint], floating: bool, notes: list[str], where: str
) -> list[Joint]:
    """The joints of Pinocchio's tree, the first of which is that of a floating base."""
    moving: list[Joint] = []
    for number, screw in enumerate(screws, start=1):
        placement = model.jointPlacements[number].homogeneous
        parent = int(model.parents[number]) - 1
        if floating and number == 1:
            moving.append(Joint(FLOATING_JOINT, "floating", -1, placement, np.zeros(6)))
        else:
            moving.append(_moving_joint(by_name[model.names[number]], parent, placement, screw, notes, where))
    return moving


# What the elements say ----------------------------------------------------------------------------


def _links(root: Element, where: str) -> dict[str, Element]:
    links = root.findall("link")
    names = [_named(link, "link", where) for link in links]
    _refuse_twice("link", names, where)
    if not names:
        raise InputError(f"{where} has no <link>")
    return dict(zip(names, links, strict=True))


def _joints(root: Element, links: tuple[str, ...], where: str) -> list[_UrdfJoint]:
    elements = root.findall("joint")
    names = [_named(element, "joint", where) for element in elements]
    _refuse_twice("joint", names, where)
    joints = []
    for name, element in zip(names, elements, strict=True):
        kind = element.get("type", "")
        if kind != "fixed" and kind not in _MOVING_KINDS:
            raise UnknownNameError("joint type", kind, ("fixed", *_MOVING_KINDS), f"joint '{name}' of {where}")
        ends = []
        for end in ("parent", "child"):
            child = element.find(end)
            link = None if child is None else child.get("link")
            if link is None:
                raise InputError(f"joint '{name}' in {where} has no <{end} link=...>")
            if link not in links:
                raise UnknownNameError(f"{end} link", link, links, f"joint '{name}' of {where}")
            ends.append(link)
        joints.append(_UrdfJoint(name, kind, ends[0], ends[1], element))
    return joints


def _check_tree(links: tuple[str, ...], joints: list[_UrdfJoint], where: str) -> str:
    """The outermost link; refuses loops, second parents and separate pieces."""
    parents: dict[str, _UrdfJoint] = {}
    for joint in joints:
        if joint.child in parents:
            raise InputError(
                f"link '{joint.child}' in {where} hangs on two joints, '{parents[joint.child].name}' and "
                f"'{joint.name}'; expected a tree"
            )
        parents[joint.child] = joint
    roots = [link for link in links if link not in parents]
    if len(roots) > 1:
        raise InputError(f"{where} has {len(roots)} links without a parent ({', '.join(roots[:5])}), expected one")
    reached = set(roots)
    frontier = list(roots)
    children: dict[str, list[str]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint.child)
    while frontier:
        below = children.get(frontier.pop(), [])
        reached.update(below)
        frontier.extend(below)
    left = [link for link in links if link not in reached]
    if left:
        raise InputError(f"{where} is cyclic: links {', '.join(left[:5])} are each other's parents")
    return roots[0]


def link_phi(link: Element, where: str) -> Array:
    """Ten parameters in the link's frame; zero without ``<inertial>``."""
    inertial = link.find("inertial")
    if inertial is None:
        return np.zeros(10)
    mass, tensor, origin = inertial.find("mass"), inertial.find("inertia"), inertial.find("origin")
    for element, tag in ((mass, "mass"), (tensor, "inertia")):
        if element is None:
            raise InputError(f"inertial of {where} has no <{tag}>")
    assert mass is not None
    assert tensor is not None
    (m,) = numbers(mass, "value", 1, "", f"mass of {where}")
    ixx, ixy, ixz, iyy, iyz, izz = (numbers(tensor, key, 1, "", f"inertia of {where}")[0] for key in _TENSOR)
    inertia = np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
    if origin is None:
        return phi_from_mass_com_inertia(m, np.zeros(3), inertia)
    com = np.array(numbers(origin, "xyz", 3, "0 0 0", f"inertial origin of {where}"))
    R = rotation_from_rpy(*numbers(origin, "rpy", 3, "0 0 0", f"inertial origin of {where}"))
    return phi_from_mass_com_inertia(m, com, R @ inertia @ R.T)


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """``Rz(yaw) Ry(pitch) Rx(roll)``, the URDF reading of three angles."""
    (cr, sr), (cp, sp), (cy, sy) = ((math.cos(angle), math.sin(angle)) for angle in (roll, pitch, yaw))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _moving_joint(joint: _UrdfJoint, parent: int, placement: Array, screw: Array, notes: list[str], where: str) -> Joint:
    kind = _MOVING_KINDS[joint.kind]
    if kind == "floating":
        return Joint(joint.name, kind, parent, placement, np.zeros(6))
    place = f"joint '{joint.name}' in {where}"
    limits = _limits(joint, place)
    nominal: dict[str, float] = {}
    dynamics = joint.element.find("dynamics")
    if dynamics is not None:
        for attribute, symbol in (("damping", "fv"), ("friction", "fc"), ("armature", "Ia")):
            if attribute in dynamics.attrib:
                (nominal[symbol],) = numbers(dynamics, attribute, 1, "", f"dynamics of {place}")
    return Joint(joint.name, kind, parent, placement, screw, nominal=nominal, **limits)


def _limits(joint: _UrdfJoint, place: str) -> dict[str, float]:
    """Limits the file states. Zero velocity or effort means unknown: exporters write it for want of one."""
    element = joint.element.find("limit")
    if element is None:
        return {}
    limits: dict[str, float] = {}
    if joint.kind != "continuous" and ("lower" in element.attrib or "upper" in element.attrib):
        for attribute, key in (("lower", "q_min"), ("upper", "q_max")):
            limits[key] = _bound(element, attribute, f"limit of {place}")
        if limits["q_min"] > limits["q_max"]:
            raise InputError(f"limit of {place} has lower {limits['q_min']:g} above upper {limits['q_max']:g}")
    for attribute, key in (("velocity", "dq_max"), ("effort", "tau_max")):
        value = _bound(element, attribute, f"limit of {place}")
        if value < 0.0:
            raise InputError(f"limit of {place} has {attribute} {value:g}, expected a positive number")
        if 0.0 < value < math.inf:
            limits[key] = value
    return limits


def _bound(element: Element, attribute: str, what: str) -> float:
    """A limit, which may be infinite; zero where the attribute is absent, as URDF has it."""
    text = element.get(attribute, "0")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InputError(f"{what} has {attribute} '{text}', expected a number")
    return value


def _tree_text(name: str, joints: list[_UrdfJoint], links: tuple[str, ...], where: str) -> str:
    """URDF of the bare tree: links, joints, origins, axes."""
    from xml.etree.ElementTree import Element, SubElement

    root = Element("robot", name=name)
    for link in links:
        SubElement(root, "link", name=link)
    for joint in joints:
        place = f"joint '{joint.name}' in {where}"
        copy = SubElement(root, "joint", name=joint.name, type=joint.kind)
        SubElement(copy, "parent", link=joint.parent)
        SubElement(copy, "child", link=joint.child)
        origin, axis = joint.element.find("origin"), joint.element.find("axis")
        if origin is not None:
            for attribute in ("xyz", "rpy"):
                numbers(origin, attribute, 3, "0 0 0", f"origin of {place}")
            SubElement(copy, "origin", xyz=origin.get("xyz", "0 0 0"), rpy=origin.get("rpy", "0 0 0"))
        if axis is not None and joint.kind not in ("fixed", "floating"):
            direction = numbers(axis, "xyz", 3, "1 0 0", f"axis of {place}")
            if not any(direction):
                raise InputError(f"axis of {place} is zero, expected a direction")
            SubElement(copy, "axis", xyz=" ".join(repr(part) for part in direction))
        if joint.kind in ("revolute", "prismatic"):  # required by the parser; the real ones are kept apart
            SubElement(copy, "limit", lower="-1", upper="1", effort="1", velocity="1")
    return serialize_xml(root)


def _named(element: Element, what: str, where: str) -> str:
    name = element.get("name", "")
    if not name:
        raise InputError(f"{where} has a <{what}> without a name")
    return name


def _refuse_twice(what: str, names: list[str], where: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{what} name '{name}' appears {count} times in {where}")


# Xacro --------------------------------------------------------------------------------------------


def uses_xacro(root: Element) -> bool:
    """Whether an element of the file is xacro's."""
    return any(element.tag.startswith(_XACRO_NAMESPACES) for element in root.iter())


def expanded_xacro(path: Path) -> bytes:
    """The URDF that xacro makes of the file, its arguments at their defaults."""
    if importlib.util.find_spec("xacro") is None:
        raise MissingPackageError("xacro", f"robot file '{path}'")
    known = {name: os.environ[name] for name in (*PACKAGES, "PATH", "PYTHONPATH") if name in os.environ}
    command = [sys.executable, "-m", "dynid.robot.xacro_child", str(path.resolve())]
    try:
        ended = subprocess.run(
            command, capture_output=True, check=False, env=known, timeout=10 * SECONDS, cwd=path.resolve().parent
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"robot file '{path}' cannot be expanded by xacro: it takes more than {10 * SECONDS} s") from None
    if ended.returncode:
        reason = ended.stderr.decode(errors="replace").strip().splitlines()
        why = reason[-1][:300] if reason and ended.returncode > 0 else f"it takes more than {SECONDS} s or too much memory"
        raise InputError(f"robot file '{path}' cannot be expanded by xacro: {why}")
    return ended.stdout
