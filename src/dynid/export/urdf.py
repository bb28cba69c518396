"""URDF: the robot's own file with its numbers replaced, or a new file where there is none.

A URDF link frame sits on its joint's axis. With ``A`` the translation from a body's frame to the nearest point of its
axis,

    P exp([S] q) = (P A) exp([S_A] q) A^-1,      phi_link = X(A^-1) phi_body,

so a robot described by other frames (standard DH, MJCF) is written with shifted link frames and the same dynamics.

A body that was merged of several links is taken apart again: links that hang on it keep the inertials of their
description and the moving link gets the rest, ``P = P_body - sum_k P_k``. Where that rest is no physical body, the
others are scaled by one factor ``s``, the half of the largest for which ``P_body - s sum_k P_k >= 0``; those that are
no physical bodies themselves are put into the moving link altogether.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from dynid.adapters.tree import axis_point, effect_value, pitch
from dynid.adapters.xml import parse_xml
from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.export.written import WrittenModel, refuse_inconsistent, write_whole
from dynid.export.xml_text import ElementSpan, XmlText
from dynid.inertia import change_of_frame, is_consistent, mass_com_inertia, pseudo_inertia
from dynid.robot.files import read_description
from dynid.robot.model import Joint, Robot
from dynid.robot.urdf import _expanded_xacro, _link_phi, _uses_xacro

_TENSOR = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
UNBOUNDED = 1e9
"""What stands for no position limit where URDF demands one."""


def write_urdf(
    robot: Robot,
    path: str | os.PathLike[str],
    source: str | os.PathLike[str] | None = None,
    allow_inconsistent: bool = False,
) -> WrittenModel:
    """Write the robot with its present parameters.

    A robot that came from a URDF (or xacro) file, or one for which ``source`` names such a file, is written as that
    file with inertials and friction replaced and everything else, comments and meshes included, as it was. Other
    robots are written anew.

    URDF holds no rotor inertia, no torque offset, no gravity: the notes of the result say what was left out.
    """
    bad = refuse_inconsistent(robot, allow_inconsistent)
    _refuse_unwritable(robot)
    notes = [f"links {', '.join(bad)} are not physically consistent"] if bad else []
    notes.extend(_left_out(robot))
    content = _source_content(robot, source, notes)
    if content is None:
        text = _new_text(robot, notes).encode()
    else:
        original, where = content
        text = _patched(robot, original, where, notes)
        _note_relative_meshes(original, where, Path(path), source or robot.source.path, notes)
    return WrittenModel(write_whole(path, text), "urdf", content is not None, tuple(notes))


def _refuse_unwritable(robot: Robot) -> None:
    """A mass of zero cannot carry first moments in URDF, whatever is allowed."""
    for link, phi in zip(robot.links, robot.parameters.inertials, strict=True):
        if phi[0] == 0.0 and np.any(phi[1:4]):
            raise InputError(f"link '{link}' has first moments {phi[1:4].tolist()} but no mass; URDF cannot hold that")


def _left_out(robot: Robot) -> list[str]:
    """What the robot has and URDF has no place for."""
    notes = []
    columns = {column.symbol for column in robot.parameters.columns if column.kind != "inertial"}
    for symbol in sorted(columns - {"fv", "fc"}):
        if any(
            value != 0.0
            for column, value in zip(robot.parameters.columns, robot.parameters.values.tolist(), strict=True)
            if column.symbol == symbol
        ):
            what = {"Ia": "rotor inertia", "fo": "torque offset"}.get(symbol, f"parameter {symbol}")
            notes.append(f"URDF has no place for {what} ({symbol}1 ..)")
    if not np.array_equal(robot.gravity, [0.0, 0.0, -9.81]):
        notes.append(f"URDF has no gravity; this robot's is {' '.join(map(repr, robot.gravity.tolist()))} m/s^2")
    return notes


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
    if description.path.suffix.lower() == ".xacro" or _uses_xacro(parse_xml(content, where)):
        content = _expanded_xacro(description.path)
        notes.append("written as the text that xacro expands to")
    return content, where


# Bodies taken apart -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _LinkInertial:
    """Ten parameters of one link in its own frame, as they shall be written.

    ``size`` is that of the numbers which cancelled in them, which sets what in them is rounding.
    """

    link: str
    phi: Array
    size: Array


def _links_taken_apart(robot: Robot, notes: list[str]) -> list[_LinkInertial]:
    """Moving links first, then the merged ones, in the frames of the robot."""
    apart: list[_LinkInertial] = []
    scale = {link.name: 1.0 for link in robot.merged}
    for body, (name, whole) in enumerate(zip(robot.links, robot.parameters.inertials, strict=True)):
        parts = {
            link.name: change_of_frame(link.placement[:3, :3], link.placement[:3, 3]) @ link.phi
            for link in robot.merged
            if link.body == body and link.phi.any()
        }
        own = _difference(whole, sum(parts.values(), np.zeros(10)))
        if parts and is_consistent(whole, allow_empty=True) and not is_consistent(own, allow_empty=True):
            share, taken = _shared_out(whole, parts)
            scale |= {part: share if part not in taken else 0.0 for part in parts}
            own = _difference(whole, sum((scale[part] * phi for part, phi in parts.items()), np.zeros(10)))
            told = [f"put into it from {', '.join(taken)}"] if taken else []
            if len(taken) < len(parts) and share < 1.0:
                told.append(f"multiplied by {share:.4g} in {', '.join(part for part in parts if part not in taken)}")
            notes.append(
                f"link '{name}' without {', '.join(parts)} would be no physical body: inertials were {' and '.join(told)}"
            )
        apart.append(_LinkInertial(name, own, np.abs(whole) + sum((np.abs(p) for p in parts.values()), np.zeros(10))))
    apart.extend(_LinkInertial(link.name, scale[link.name] * link.phi, np.abs(link.phi)) for link in robot.merged)
    return apart


def _difference(whole: Array, part: Array) -> Array:
    """What is left of numbers that cancel is no link."""
    rest = whole - part
    return np.where(np.abs(rest) <= 1e-13 * (np.abs(whole) + np.abs(part)), 0.0, rest)


def _shared_out(whole: Array, parts: Mapping[str, Array]) -> tuple[float, tuple[str, ...]]:
    """The factor for what hangs on a body, and the links whose inertials it must take over altogether.

    Those are the ones that no physical body could be themselves, or all where the body has nothing to give.
    """
    bad = tuple(name for name, phi in parts.items() if not is_consistent(phi))
    good = sum((phi for name, phi in parts.items() if name not in bad), np.zeros(10))
    if not good.any() or is_consistent(_difference(whole, good), allow_empty=True):
        return 1.0, bad
    share = 0.5 * _largest_share(whole, good)
    return (share, bad) if share > 0.0 else (0.0, tuple(parts))


def _largest_share(whole: Array, part: Array) -> float:
    """Largest ``s`` with ``P_whole - s P_part >= 0``, one over the largest eigenvalue of ``P_whole^-1 P_part``."""
    values, vectors = np.linalg.eigh(pseudo_inertia(whole))
    if values[0] <= 1e-12 * values[-1]:
        return 0.0  # a flat body has nothing to give in some direction
    root = vectors / np.sqrt(values)
    return float(1.0 / np.linalg.eigvalsh(root.T @ pseudo_inertia(part) @ root)[-1])


# The robot's own file -----------------------------------------------------------------------------


def _patched(robot: Robot, content: bytes, where: str, notes: list[str]) -> bytes:
    """The source with the start tags of its inertials and dynamics edited; untouched links keep every byte."""
    root = parse_xml(content, where)
    present = {
        link.get("name", ""): _link_phi(link, f"link '{link.get('name')}' in {where}") for link in root.findall("link")
    }
    text = XmlText(content, where)
    links = {span.attributes["name"]: span for span in text.root.children if span.tag == "link"}
    joints = {span.attributes["name"]: span for span in text.root.children if span.tag == "joint"}
    for wanted in _links_taken_apart(robot, notes):
        if wanted.link not in links:
            raise UnknownNameError("link", wanted.link, links, where)
        if not _same(wanted, present[wanted.link]):
            _patch_inertial(text, links[wanted.link], wanted.phi)
    for i, joint in enumerate(robot.joints):
        if joint.kind == "floating":
            continue
        if joint.name not in joints:
            raise UnknownNameError("joint", joint.name, joints, where)
        _patch_dynamics(text, joints[joint.name], _dynamics(robot, i, notes))
    return text.edited()


def _same(wanted: _LinkInertial, present: Array) -> bool:
    """Equal up to what merging and taking apart rounds off: mass, first moments and inertias each by their size."""
    groups = (slice(0, 1), slice(1, 4), slice(4, 10))
    difference = np.abs(wanted.phi - present)
    return all(difference[group].max() <= 1e-14 * wanted.size[group].max() for group in groups)


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
    pose = {"xyz": _vector(com), "rpy": "0 0 0"}
    if origin is None:
        text.insert_child(inertial, [f'<origin xyz="{pose["xyz"]}" rpy="{pose["rpy"]}"/>'])
    else:
        text.set_attributes(origin, pose)
    text.set_attributes(_required(inertial, "mass", text), {"value": _number(float(mass))})
    text.set_attributes(_required(inertial, "inertia", text), _tensor_attributes(tensor))


def _patch_dynamics(text: XmlText, joint: ElementSpan, values: Mapping[str, float]) -> None:
    dynamics = joint.child("dynamics")
    if dynamics is None:
        given = {name: value for name, value in values.items() if value != 0.0 and name != "armature"}
        if given:
            attributes = " ".join(f'{name}="{_number(value)}"' for name, value in given.items())
            text.insert_child(joint, [f"<dynamics {attributes}/>"], at_end=True)
        return
    # rotor inertia is no part of URDF, but where a file states it, it must not contradict the rest
    changed = {
        name: _number(value)
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


def _new_text(robot: Robot, notes: list[str]) -> str:
    """A URDF of the tree: one link per body, fixed joints for the links merged into them, no shapes."""
    shift = [_to_axis(joint) for joint in robot.joints]
    if any(pose[:3, 3].any() for pose in shift):
        notes.append("link frames were shifted onto their joint axes, as URDF wants them")
    apart = {wanted.link: wanted.phi for wanted in _links_taken_apart(robot, notes)}
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
                notes.append(f"the base is measured from xyz {_vector(xyz)}, rpy {_vector(rpy)}: URDF cannot say so")
            continue
        above = _inverse(shift[joint.parent]) if joint.parent >= 0 else np.eye(4)
        parent = robot.links[joint.parent] if joint.parent >= 0 else root
        origin = above @ joint.placement @ shift[i]
        lines.extend(_joint_lines(robot, i, parent, origin, notes))
    for link in robot.merged:
        if link.name == grounded:
            continue
        pose = (_inverse(shift[link.body]) if link.body >= 0 else np.eye(4)) @ link.placement
        parent = robot.links[link.body] if link.body >= 0 else root
        lines.extend(_link_lines(link.name, apart[link.name]))
        lines.append(f'  <joint name={quoteattr(_unused_joint(robot, link.name))} type="fixed">')
        lines.extend(_ends_and_origin(parent, link.name, pose))
        lines.append("  </joint>")
    return "\n".join([*lines, "</robot>", ""])


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
        f'{step}<origin xyz="{_vector(com)}" rpy="0 0 0"/>',
        f'{step}<mass value="{_number(float(mass))}"/>',
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
    lines.append(f'    <axis xyz="{_vector(axis)}"/>')
    known = math.isfinite(joint.tau_max) or math.isfinite(joint.dq_max)
    if kind != "continuous" or known:
        limits: dict[str, float] = {}
        if kind != "continuous":
            limits = {"lower": max(joint.q_min, -UNBOUNDED), "upper": min(joint.q_max, UNBOUNDED)}
        for name, value in (("effort", joint.tau_max), ("velocity", joint.dq_max)):
            limits[name] = value if math.isfinite(value) else 0.0
            if not math.isfinite(value):
                notes.append(f"joint '{joint.name}' has no {name} limit; URDF demands one, written as 0 (unknown)")
        if kind == "prismatic" and not bounded:
            notes.append(f"joint '{joint.name}' has no position limits; URDF demands some, written as {UNBOUNDED:g}")
        lines.append("    <limit " + " ".join(f'{name}="{_number(value)}"' for name, value in limits.items()) + "/>")
    friction = {name: value for name, value in _dynamics(robot, i, notes).items() if name != "armature"}
    if any(friction.values()):
        attributes = " ".join(f'{name}="{_number(value)}"' for name, value in friction.items())
        lines.append(f"    <dynamics {attributes}/>")
    return [*lines, "  </joint>"]


def _ends_and_origin(parent: str, child: str, pose: Array) -> list[str]:
    return [
        f"    <parent link={quoteattr(parent)}/>",
        f"    <child link={quoteattr(child)}/>",
        f'    <origin xyz="{_vector(pose[:3, 3])}" rpy="{_vector(rpy_from_rotation(pose[:3, :3]))}"/>',
    ]


# Numbers ------------------------------------------------------------------------------------------


def _dynamics(robot: Robot, i: int, notes: list[str]) -> dict[str, float]:
    """Attributes of ``<dynamics>`` for the effects the robot has; simulators want friction that is not negative."""
    joint = robot.joints[i]
    symbols = {column.symbol for column in robot.parameters.columns if column.number == i + 1}
    values: dict[str, float] = {}
    for name, symbol in (("damping", "fv"), ("friction", "fc"), ("armature", "Ia")):
        if symbol in symbols:
            value = effect_value(robot, symbol, i)
        elif symbol in joint.nominal:
            value = joint.nominal[symbol]
        else:
            continue
        if value < 0.0:
            notes.append(f"{symbol}{i + 1} = {value:.4g} of joint '{joint.name}' is negative and was written as 0")
        values[name] = max(value, 0.0)
    return values


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
    return {name: _number(float(tensor[row, column])) for name, row, column in _TENSOR}


def _number(value: float) -> str:
    """Shortest text that reads back as the same double; no negative zero."""
    return repr(value + 0.0)


def _vector(values: Array) -> str:
    return " ".join(_number(float(value)) for value in values)
