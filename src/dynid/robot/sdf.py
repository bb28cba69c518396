"""Robots written as SDF (SDFormat 1.7 and later), one model a file.

A link's pose is given in the model's frame or, with ``relative_to``, in that of another link or joint; a joint's pose in
its child link's frame; its axis in the joint's own frame unless ``expressed_in`` says otherwise. The position of every
joint is zero in the poses of the file. A model without a joint to the world floats. A link that hangs on two joints closes a
loop: the first joint stays in the tree, every other one is a closure there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from dynid.adapters.xml import parse_xml
from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.inertia import change_of_frame, phi_from_mass_com_inertia, skew
from dynid.robot.checks import limit_notes
from dynid.robot.files import Description, read_description
from dynid.robot.joint import Joint, JointKind
from dynid.robot.loop_file import deduced_joints, frame_on, with_loops
from dynid.robot.loops import Frame, Loop, Loops
from dynid.robot.model import MergedLink, Robot, make_robot
from dynid.robot.urdf import rotation_from_rpy

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

FLOATING_JOINT = "root_joint"
"""Name of the floating joint under a model that nothing holds to the world."""

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


def read_sdf(path: str | PathLike[str]) -> Robot:
    """The robot of an SDF file, with no effects and standard gravity, which SDF keeps in its worlds."""
    return robot_from_sdf(read_description(path))


@dataclass(frozen=True)
class SdfJoint:
    """One ``<joint>``, checked."""

    name: str
    kind: str
    parent: str
    child: str
    element: Element


def robot_from_sdf(description: Description) -> Robot:
    """The robot of an SDF file that was read, with no effects."""
    where = f"robot file '{description.path}'"
    model = sdf_model(parse_xml(description.content, where), where)
    links = {stated_name(element, "link", where): element for element in model.findall("link")}
    joints = [joint_element(element, links, where) for element in model.findall("joint")]
    if "world" in links:
        raise InputError(f"{where} has a link named 'world', which SDF reserves for the ground")
    above: dict[str, SdfJoint] = {}
    closing: list[SdfJoint] = []
    for joint in joints:
        if joint.child in above:
            closing.append(joint)
        elif joint.kind == "ball":
            raise InputError(
                f"joint '{joint.name}' of {where} is a ball joint, expected one of {', '.join(_KINDS)} where it closes no loop"
            )
        else:
            above[joint.child] = joint
    roots = [link for link in links if link not in above]
    tree = [joint for joint in joints if joint not in closing]
    if len(roots) > 1 or (roots and any(joint.parent == "world" for joint in tree)):
        raise InputError(f"{where} has {len(roots)} links that hang on nothing ({', '.join(roots[:5])}), expected one tree")
    poses = link_poses(model, links, joints, where)
    phi = {link: _link_phi(element, f"link '{link}' in {where}") for link, element in links.items()}
    robot = _assemble(model.get("name") or "robot", tree, phi, poses, roots, description, where)
    return _closed(robot, closing, poses, where) if closing else robot


def _closed(robot: Robot, closing: list[SdfJoint], poses: dict[str, Array], where: str) -> Robot:
    """The robot with the closures of its second joints; their frames have z along the axis, and meet in the poses of the file."""
    loops = []
    for joint in closing:
        at = poses[joint.name]
        if joint.kind in ("revolute", "continuous", "prismatic"):
            at = at @ _z_along(_axis_in(joint, poses, poses[joint.name], where))
        elif joint.kind == "screw":
            raise InputError(f"joint '{joint.name}' of {where} is a screw that closes a loop, expected {', '.join(_CLOSED)}")
        ends = []
        for link in (joint.parent, joint.child):
            body, placement = (-1, np.eye(4)) if link == "world" else frame_on(robot, link, where)
            ends.append(Frame(body, placement @ np.linalg.inv(poses[link]) @ at))
        loops.append(Loop(joint.name, ends[0], ends[1], _CLOSED[joint.kind]))
    start = np.zeros(len(robot.joints))
    actuated = deduced_joints(robot.joints, loops, start, where)
    closed = with_loops(robot, Loops(tuple(loops), actuated, (), start))
    return closed.with_notes([f"joint '{joint.name}' closes a loop on link '{joint.child}'" for joint in closing])


def _z_along(axis: Array) -> Array:
    """A pose that turns z into a direction."""
    side = np.eye(3)[int(np.argmin(np.abs(axis)))]
    x = np.cross(side, axis)
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([x, np.cross(axis, x), axis])
    return pose


def _assemble(
    name: str,
    joints: list[SdfJoint],
    phi: dict[str, Array],
    poses: dict[str, Array],
    roots: list[str],
    description: Description,
    where: str,
) -> Robot:
    """Walk from the ground (or the floating link) outward; links on fixed joints are merged into what carries them."""
    below: dict[str, list[SdfJoint]] = {}
    for joint in joints:
        below.setdefault(joint.parent, []).append(joint)
    moving: list[Joint] = []
    carried: list[str] = []
    inertials: list[Array] = []
    merged: list[MergedLink] = []
    notes: list[str] = []
    waiting: list[tuple[SdfJoint, int, Array]] = []  # joint, the body that carries its parent, that body's pose
    if roots:
        moving.append(Joint(FLOATING_JOINT, "floating", -1, poses[roots[0]], np.zeros(6)))
        carried.append(roots[0])
        inertials.append(phi[roots[0]])
        waiting = [(joint, 0, poses[roots[0]]) for joint in reversed(below.get(roots[0], []))]
    else:
        waiting = [(joint, -1, np.eye(4)) for joint in reversed(below.get("world", []))]
    while waiting:
        joint, body, pose = waiting.pop()
        placement = np.linalg.inv(pose) @ poses[joint.child]
        if joint.kind == "fixed":
            merged.append(MergedLink(joint.child, body, placement, phi[joint.child]))
            if body >= 0:
                inertials[body] = inertials[body] + (change_of_frame(placement[:3, :3], placement[:3, 3]) @ phi[joint.child])
        else:
            moving.append(_moving_joint(joint, body, placement, poses, notes, where))
            carried.append(joint.child)
            inertials.append(phi[joint.child])
            body, pose = len(moving) - 1, poses[joint.child]
        waiting.extend((other, body, pose) for other in reversed(below.get(joint.child, [])))
    if len(carried) + len(merged) != len(phi):
        raise InputError(f"{where} is cyclic: {len(phi) - len(carried) - len(merged)} links are each other's parents")
    if not moving:
        raise InputError(f"{where} has no moving joint")
    notes.extend(limit_notes(moving))
    notes.append("gravity is standard: SDF keeps it in its worlds")
    return make_robot(
        name, moving, np.array(inertials), links=carried, merged=merged, source=description.source("sdf", tuple(notes))
    )


# What the elements say ----------------------------------------------------------------------------


def sdf_model(root: Element, where: str) -> Element:
    """The one model of an SDF file."""
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


def joint_element(element: Element, links: dict[str, Element], where: str) -> SdfJoint:
    """One joint, checked."""
    name = stated_name(element, "joint", where)
    kind = element.get("type", "")
    if kind not in ("fixed", "ball") and kind not in _KINDS:
        raise UnknownNameError("joint type", kind, ("fixed", "ball", *_KINDS), f"joint '{name}' of {where}")
    parent, child = (element.findtext(end, "").strip() for end in ("parent", "child"))
    if parent != "world" and parent not in links:
        raise UnknownNameError("parent link", parent, ("world", *links), f"joint '{name}' of {where}")
    if child not in links:
        raise UnknownNameError("child link", child, links, f"joint '{name}' of {where}")
    return SdfJoint(name, kind, parent, child, element)


def link_poses(model: Element, links: dict[str, Element], joints: list[SdfJoint], where: str) -> dict[str, Array]:
    """Pose of every link in the model's frame; frames that poses refer to are resolved first."""
    given = {"__model__": (np.eye(4), ""), "world": (np.eye(4), "")}
    for link, element in links.items():
        given[link] = stated_pose(element, f"link '{link}' of {where}", "__model__")
    for joint in joints:
        given.setdefault(joint.name, stated_pose(joint.element, f"joint '{joint.name}' of {where}", joint.child))
    for frame in model.findall("frame"):
        name = stated_name(frame, "frame", where)
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
    return found


def stated_pose(element: Element, what: str, otherwise: str) -> tuple[Array, str]:
    """The pose that an element states and the frame it is given in."""
    pose = element.find("pose")
    if pose is None:
        return np.eye(4), otherwise
    form = pose.get("rotation_format", "euler_rpy")
    values = stated_numbers(pose.text or "0 0 0 0 0 0", 6 if form == "euler_rpy" else 7, f"pose of {what}")
    matrix = np.eye(4)
    matrix[:3, 3] = values[:3]
    if form == "euler_rpy":
        angles = np.deg2rad(values[3:]) if pose.get("degrees") in ("true", "1") else np.array(values[3:])
        matrix[:3, :3] = rotation_from_rpy(*angles.tolist())
    elif form == "quat_xyzw":
        from scipy.spatial.transform import Rotation

        if not 1e-6 < np.linalg.norm(values[3:]) < 1e6:
            raise InputError(f"pose of {what} has a quaternion of length {np.linalg.norm(values[3:]):.3g}, expected 1")
        matrix[:3, :3] = Rotation.from_quat(values[3:]).as_matrix()
    else:
        raise UnknownNameError("rotation format", form, ("euler_rpy", "quat_xyzw"), f"pose of {what}")
    return matrix, pose.get("relative_to") or otherwise


def _link_phi(link: Element, where: str) -> Array:
    """Ten parameters in the link's frame; SDF's own default of 1 kg and unit inertias does not count as stated."""
    inertial = link.find("inertial")
    if inertial is None:
        return np.zeros(10)
    mass = _value(inertial, "mass", 1.0, where)
    tensor = inertial.find("inertia")
    keys = (("ixx", 1.0), ("ixy", 0.0), ("ixz", 0.0), ("iyy", 1.0), ("iyz", 0.0), ("izz", 1.0))
    xx, xy, xz, yy, yz, zz = (default if tensor is None else _value(tensor, key, default, where) for key, default in keys)
    pose, relative = stated_pose(inertial, f"inertial of {where}", "")
    if relative:
        raise InputError(f"inertial pose of {where} is relative to '{relative}', expected its own link")
    R = pose[:3, :3]
    inertia = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    return phi_from_mass_com_inertia(mass, pose[:3, 3], inertia)


def _moving_joint(
    joint: SdfJoint, parent: int, placement: Array, poses: dict[str, Array], notes: list[str], where: str
) -> Joint:
    place = f"joint '{joint.name}' in {where}"
    direction = _axis_in(joint, poses, poses[joint.child], where)
    axis = joint.element.find("axis")
    assert axis is not None
    in_child = np.linalg.inv(poses[joint.child]) @ poses[joint.name]
    if joint.kind == "prismatic":
        screw = np.concatenate([direction, np.zeros(3)])
    else:
        advance = _value(joint.element, "screw_thread_pitch", 0.0, place) / (2.0 * math.pi) if joint.kind == "screw" else 0.0
        screw = np.concatenate([skew(in_child[:3, 3]) @ direction + advance * direction, direction])
    kind = _KINDS[joint.kind]
    limits: dict[str, float] = {}
    limit = axis.find("limit")
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
    dynamics = axis.find("dynamics")
    if dynamics is not None:
        nominal = {
            symbol: _value(dynamics, tag, 0.0, place)
            for tag, symbol in (("damping", "fv"), ("friction", "fc"))
            if dynamics.find(tag) is not None
        }
        if _value(dynamics, "spring_stiffness", 0.0, place) != 0.0:
            notes.append(f"not modelled: spring of joint '{joint.name}'")
    return Joint(joint.name, kind, parent, placement, screw, nominal=nominal, **limits)


def _axis_in(joint: SdfJoint, poses: dict[str, Array], pose: Array, where: str) -> Array:
    """Direction of a joint's axis in a frame at some pose."""
    place = f"joint '{joint.name}' in {where}"
    axis = joint.element.find("axis")
    if axis is None:
        raise InputError(f"{place} has no <axis>")
    xyz = axis.find("xyz")
    direction = np.array(stated_numbers("0 0 1" if xyz is None else xyz.text or "", 3, f"axis of {place}"))
    frame = "" if xyz is None else xyz.get("expressed_in", "")
    if frame and frame not in poses:
        raise UnknownNameError("frame", frame, poses, f"axis of {place}")
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        raise InputError(f"axis of {place} is zero, expected a direction")
    rotation = np.linalg.inv(pose)[:3, :3] @ poses[frame or joint.name][:3, :3]
    return np.asarray(rotation @ direction / length)


def stated_name(element: Element, what: str, where: str) -> str:
    """The name that an element must have."""
    name = element.get("name", "")
    if not name:
        raise InputError(f"{where} has a <{what}> without a name")
    return name


def _value(element: Element, tag: str, default: float, where: str) -> float:
    text = element.findtext(tag)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InputError(f"{tag} of {where} is '{text}', expected a number")
    return value


def stated_numbers(text: str, count: int, what: str) -> list[float]:
    """So many finite numbers."""
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        values = []
    if len(values) != count or not all(math.isfinite(value) for value in values):
        raise InputError(f"{what} is '{text.strip()}', expected {count} finite numbers")
    return values
