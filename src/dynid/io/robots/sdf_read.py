"""Robots written as SDF (SDFormat 1.7 and later), one model a file.

A link's pose is given in the model's frame or, with ``relative_to``, in that of another link or joint; a joint's pose in
its child link's frame; its axis in the joint's own frame unless ``expressed_in`` says otherwise. The position of every
joint is zero in the poses of the file. A model without a joint to the world floats. A link that hangs on two joints closes a
loop: the first joint stays in the tree, every other one is a closure there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.io.robots.closures import deduced_joints, frame_on, with_loops
from dynid.io.robots.description import (
    FLOATING_JOINT,
    TENSOR,
    DescribedJoint,
    Description,
    assemble_robot,
    body_parameters,
    limit_notes,
)
from dynid.io.robots.xml import named_elements, one_number, text_numbers
from dynid.model.inertia import skew
from dynid.model.joint import JointKind
from dynid.model.loops import Frame, Loop, Loops
from dynid.model.poses import frame_with_z, inverse_pose, make_pose, rotation_from_quaternion, rotation_from_rpy
from dynid.model.robot import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

UNLIMITED = 1e15
"""Position limits beyond this are none: the format's own default is 1e16."""

_KINDS: dict[str, JointKind] = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "screw": "revolute",
}
_CLOSED: dict[str, tuple[str, ...]] = {
    "revolute": ("x", "y", "z", "rx", "ry"),
    "continuous": ("x", "y", "z", "rx", "ry"),
    "prismatic": ("x", "y", "rx", "ry", "rz"),
    "ball": ("x", "y", "z"),
    "fixed": ("x", "y", "z", "rx", "ry", "rz"),
}
"""What a joint that closes a loop leaves no room for, z along its axis."""
_WORLD = "world"


def robot_from_sdf(description: Description) -> Robot:
    """The robot of an SDF file that was read, with no effects and standard gravity, which SDF keeps in its worlds."""
    where, model = description.where, sdf_model(description)
    links, poses = sdf_frames(model, where)
    if _WORLD in links:
        raise InputError(f"{where} has a link named 'world', which SDF reserves for the ground")
    joints = named_elements(model, "joint", where)
    # The joint above each link of the tree, and the joints that close loops: those to a link that hangs on another
    # already.
    above: dict[str, str] = {}
    closing: dict[str, Element] = {}
    for name, element in joints.items():
        kind, _, child = _ends(name, element, links, where)
        if child in above:
            closing[name] = element
        elif kind == "ball":
            raise InputError(
                f"joint '{name}' of {where} is a ball joint, expected one of {', '.join(_KINDS)} where it closes no loop"
            )
        else:
            above[child] = name
    notes: list[str] = []
    tree = [_joint(name, joints[name], links, poses, notes, where) for name in joints if name not in closing]
    roots = [link for link in links if link not in above]
    if len(roots) > 1 or (roots and any(joint.parent is None for joint in tree)):
        raise InputError(f"{where} has {len(roots)} links that hang on nothing ({', '.join(roots[:5])}), expected one tree")
    tree += [DescribedJoint(FLOATING_JOINT, "floating", None, root, poses[root]) for root in roots]
    phi = {link: link_phi(element, f"link '{link}' in {where}") for link, element in links.items()}
    robot = assemble_robot(model.get("name") or "robot", tree, phi, description.source("sdf"), where)
    robot = robot.with_notes([*notes, *limit_notes(robot.joints), "gravity is standard: SDF keeps it in its worlds"])
    return _closed(robot, closing, links, poses, where) if closing else robot


def _closed(
    robot: Robot, closing: dict[str, Element], links: dict[str, Element], poses: dict[str, Array], where: str
) -> Robot:
    """The robot with the closures of its second joints; their frames have z along the axis, and meet in the poses of the file."""
    loops, notes = [], []
    for name, element in closing.items():
        kind, parent, child = _ends(name, element, links, where)
        at = poses[name]
        if kind == "screw":
            raise InputError(f"joint '{name}' of {where} is a screw that closes a loop, expected {', '.join(_CLOSED)}")
        if kind in _KINDS:
            at = at @ make_pose(frame_with_z(_axis(name, element, poses, at, where)))
        ends = []
        for link in (parent, child):
            body, placement = (-1, np.eye(4)) if link == _WORLD else frame_on(robot, link, where)
            ends.append(Frame(body, placement @ inverse_pose(poses[link]) @ at))
        loops.append(Loop(name, ends[0], ends[1], _CLOSED[kind]))
        notes.append(f"joint '{name}' closes a loop on link '{child}'")
    start = np.zeros(len(robot.joints))
    actuated = deduced_joints(robot.joints, loops, start, where)
    return with_loops(robot, Loops(tuple(loops), actuated, (), start)).with_notes(notes)


# What the elements say ----------------------------------------------------------------------------
def sdf_model(description: Description) -> Element:
    """The one model of an SDF file."""
    where, root = description.where, description.root
    if root.tag != "sdf":
        raise InputError(f"{where} has the outermost element <{root.tag}>, expected <sdf>")
    try:
        version = tuple(int(part) for part in root.get("version", "").split("."))
    except ValueError:
        version = ()
    if version < (1, 7):
        raise InputError(f"{where} is SDF version '{root.get('version', '')}', expected 1.7 or later")
    models = [*root.findall("model"), *(model for world in root.findall("world") for model in world.findall("model"))]
    if len(models) != 1:
        raise InputError(f"{where} has {len(models)} models, expected one")
    for tag in ("include", "model"):
        if models[0].find(tag) is not None:
            raise InputError(f"{where} has a <{tag}> inside its model, expected links and joints written out")
    return models[0]


def sdf_frames(model: Element, where: str) -> tuple[dict[str, Element], dict[str, Array]]:
    """The links of a model, and the pose of every link, joint and frame in the model's frame."""
    links = named_elements(model, "link", where)
    given = {"__model__": (np.eye(4), ""), _WORLD: (np.eye(4), "")}
    for link, element in links.items():
        given[link] = stated_pose(element, f"link '{link}' of {where}", "__model__")
    for name, element in named_elements(model, "joint", where).items():
        _, _, child = _ends(name, element, links, where)
        given.setdefault(name, stated_pose(element, f"joint '{name}' of {where}", child))
    for name, frame in named_elements(model, "frame", where).items():
        given[name] = stated_pose(frame, f"frame '{name}' of {where}", frame.get("attached_to") or "__model__")
    found: dict[str, Array] = {}

    def resolve(name: str, seen: tuple[str, ...]) -> Array:
        if name in seen:
            raise InputError(f"poses in {where} refer to each other in a circle: {' -> '.join((*seen, name))}")
        if name not in given:
            raise UnknownNameError("frame", name, given, where)
        if name not in found:
            pose, relative = given[name]
            found[name] = pose if not relative else resolve(relative, (*seen, name)) @ pose
        return found[name]

    for name in given:
        resolve(name, ())
    return links, found


def stated_pose(element: Element, what: str, otherwise: str) -> tuple[Array, str]:
    """The pose that an element states and the frame it is given in."""
    pose = element.find("pose")
    if pose is None:
        return np.eye(4), otherwise
    form = pose.get("rotation_format", "euler_rpy")
    values = text_numbers(pose.text or "0 0 0 0 0 0", 6 if form == "euler_rpy" else 7, f"pose of {what}")
    if form == "euler_rpy":
        angles = np.deg2rad(values[3:]) if pose.get("degrees") in ("true", "1") else np.array(values[3:])
        rotation = rotation_from_rpy(*angles.tolist())
    elif form == "quat_xyzw":
        if not 1e-6 < np.linalg.norm(values[3:]) < 1e6:
            raise InputError(f"pose of {what} has a quaternion of length {np.linalg.norm(values[3:]):.3g}, expected 1")
        rotation = rotation_from_quaternion([values[6], *values[3:6]])
    else:
        raise UnknownNameError("rotation format", form, ("euler_rpy", "quat_xyzw"), f"pose of {what}")
    return make_pose(rotation, values[:3]), pose.get("relative_to") or otherwise


def _ends(name: str, element: Element, links: dict[str, Element], where: str) -> tuple[str, str, str]:
    """Kind, parent and child of a joint, checked."""
    kind, place = element.get("type", ""), f"joint '{name}' of {where}"
    if kind not in ("fixed", "ball") and kind not in _KINDS:
        raise UnknownNameError("joint type", kind, ("fixed", "ball", *_KINDS), place)
    parent, child = (element.findtext(end, "").strip() for end in ("parent", "child"))
    if parent != _WORLD and parent not in links:
        raise UnknownNameError("parent link", parent, (_WORLD, *links), place)
    if child not in links:
        raise UnknownNameError("child link", child, links, place)
    return kind, parent, child


def _joint(
    name: str, element: Element, links: dict[str, Element], poses: dict[str, Array], notes: list[str], where: str
) -> DescribedJoint:
    """A joint of the tree; springs are noted."""
    kind, parent, child = _ends(name, element, links, where)
    above = None if parent == _WORLD else parent
    placement = inverse_pose(poses[parent]) @ poses[child]
    if kind == "fixed":
        return DescribedJoint(name, "fixed", above, child, placement)
    place = f"joint '{name}' in {where}"
    direction = _axis(name, element, poses, poses[child], where)
    if kind == "prismatic":
        screw = np.concatenate([direction, np.zeros(3)])
    else:
        point = (inverse_pose(poses[child]) @ poses[name])[:3, 3]
        advance = _value(element, "screw_thread_pitch", 0.0, place) / (2.0 * math.pi) if kind == "screw" else 0.0
        screw = np.concatenate([skew(point) @ direction + advance * direction, direction])
    limits: dict[str, float] = {}
    limit = element.find("axis/limit")
    if limit is not None:
        low, high = _value(limit, "lower", -math.inf, place), _value(limit, "upper", math.inf, place)
        if kind != "continuous":
            limits = {
                "q_min": low if abs(low) < UNLIMITED else -math.inf,
                "q_max": high if abs(high) < UNLIMITED else math.inf,
            }
        for tag, key in (("velocity", "dq_max"), ("effort", "tau_max")):
            value = _value(limit, tag, -1.0, place)  # negative and absent mean none
            if 0.0 < value < UNLIMITED:
                limits[key] = value
    nominal: dict[str, float] = {}
    dynamics = element.find("axis/dynamics")
    if dynamics is not None:
        nominal = {
            symbol: _value(dynamics, tag, 0.0, place)
            for tag, symbol in (("damping", "fv"), ("friction", "fc"))
            if dynamics.find(tag) is not None
        }
        if _value(dynamics, "spring_stiffness", 0.0, place) != 0.0:
            notes.append(f"not modelled: spring of joint '{name}'")
    return DescribedJoint(name, _KINDS[kind], above, child, placement, screw, limits, nominal)


def _axis(name: str, element: Element, poses: dict[str, Array], pose: Array, where: str) -> Array:
    """Direction of a joint's axis in a frame at some pose."""
    place = f"joint '{name}' in {where}"
    axis = element.find("axis")
    if axis is None:
        raise InputError(f"{place} has no <axis>")
    xyz = axis.find("xyz")
    direction = np.array(text_numbers("0 0 1" if xyz is None else xyz.text or "", 3, f"axis of {place}"))
    frame = "" if xyz is None else xyz.get("expressed_in", "")
    if frame and frame not in poses:
        raise UnknownNameError("frame", frame, poses, f"axis of {place}")
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        raise InputError(f"axis of {place} is zero, expected a direction")
    return np.asarray(pose[:3, :3].T @ poses[frame or name][:3, :3] @ direction / length)


def link_phi(link: Element, where: str) -> Array:
    """Ten parameters in the link's frame; SDF's own default of 1 kg and unit inertias does not count as stated."""
    inertial = link.find("inertial")
    if inertial is None:
        return np.zeros(10)
    tensor = inertial.find("inertia")
    # the format's own defaults are those of the unit matrix
    moments = [float(i == j) if tensor is None else _value(tensor, key, float(i == j), where) for key, i, j in TENSOR]
    pose, relative = stated_pose(inertial, f"inertial of {where}", "")
    if relative:
        raise InputError(f"inertial pose of {where} is relative to '{relative}', expected its own link")
    return body_parameters(_value(inertial, "mass", 1.0, where), pose, moments)


def _value(element: Element, tag: str, default: float, where: str) -> float:
    text = element.findtext(tag)
    return default if text is None else one_number(text, f"{tag} of {where} is")
