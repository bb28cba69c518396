"""MJCF: the robot's own file with its numbers replaced, or a new file where there is none.

MuJoCo holds rotor inertia, viscous and Coulomb friction (``armature``, ``damping``, ``frictionloss``) and gravity. An
actuator adds its own rotor inertia and damping times its gear squared,

    Ia = armature + sum gear^2 armature_actuator,        fv = damping + sum gear^2 damping_actuator,

so the joint gets the rest, or all where the actuators alone would have more. Inertias are written along their principal
axes, found here, because MuJoCo's compiler finds them to fewer digits. Bodies that were merged of several are taken
apart again, see :mod:`dynid.export.links`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.adapters.mujoco import (
    compile_mjcf,
    from_mujoco_force,
    inertial_attributes,
    inverse_dynamics,
    motion_attributes,
    pose_attributes,
    to_mujoco_motion,
)
from dynid.adapters.xml import parse_xml, serialize_xml
from dynid.arrays import Array
from dynid.errors import InconsistentModelError, InputError, UnknownNameError
from dynid.export.links import LinkInertial, links_taken_apart, own_inertials
from dynid.export.proof import largest_gap
from dynid.export.written import (
    WrittenModel,
    inconsistent_links,
    joint_dynamics,
    left_out,
    number,
    those_of,
    untied,
    vector,
)
from dynid.export.xml_text import ElementSpan, XmlText
from dynid.files import write_atomically
from dynid.inertia import change_of_frame, mass_com_inertia, phi_from_mass_com_inertia
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import inverse_dynamics as torque_of
from dynid.robot.effects import Armature, Coulomb, Viscous
from dynid.robot.files import Description, read_description
from dynid.robot.links import links_of
from dynid.robot.mjcf import CompiledRobot, compiled_robot, cut_to_dynamics, expand_includes, robot_from_mjcf
from dynid.robot.model import Joint, Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

NEARLY_MASSLESS = 1e-14
"""kg and kg m^2 of a moving body that has none: MuJoCo demands more than 1e-15."""

_SYMBOL = {"damping": "fv", "friction": "fc", "armature": "Ia"}
_ATTRIBUTE = {"damping": "damping", "friction": "frictionloss", "armature": "armature"}
_ORIENTATIONS = ("fullinertia", "euler", "axisangle", "xyaxes", "zaxis")
_MASS_OPTIONS = {"settotalmass": "-1", "boundmass": "0", "boundinertia": "0", "balanceinertia": "false"}
"""Options that change masses while compiling, and the values with which they do not."""


def write_mjcf(
    robot: Robot,
    path: str | os.PathLike[str],
    source: str | os.PathLike[str] | None = None,
    allow_inconsistent: bool = False,
    described: Robot | None = None,
) -> WrittenModel:
    """Write the robot with its present parameters.

    A robot that came from an MJCF file, or one for which ``source`` names such a file, is written as that file with
    inertials, joint friction, rotor inertias and gravity replaced and everything else as it was. Other robots are written
    anew, with a motor on every joint; ``described``, the same robot with the parameters of its description, helps then where
    bodies must be taken apart. MuJoCo compiles no inconsistent links, so these are refused even where
    ``allow_inconsistent``.
    """
    bad = inconsistent_links(robot)
    if bad:
        raise InconsistentModelError(
            f"{those_of(robot, bad)}; MuJoCo compiles no such bodies, allowed or not: choose a method that keeps links "
            "consistent, or 'dynid repair' the model"
        )
    notes = left_out(robot, "MJCF", _SYMBOL.values(), gravity=False)
    target, text, patched = Path(path), None, False
    description = _source_description(robot, source, notes)
    if description is not None:
        try:
            text = _patched(robot, description, target, notes)
            patched = True
        except _UnpatchableError as reason:
            notes.append(f"robot file '{description.path}' {reason}: written anew, without its looks")
    if text is None:
        text = _new_text(robot, notes, described).encode()
    content, problems = text, []

    def write_and_compile(temporary: Path) -> None:  # so that no file is left which MuJoCo does not compile
        temporary.write_bytes(content)
        problems.append(_compiled(temporary)[1])

    written = write_atomically(target, write_and_compile)
    notes.extend(f"MuJoCo compiles the file only without its looks: {problem}" for problem in problems if problem)
    return WrittenModel(written, "mjcf", patched, tuple(notes))


class _UnpatchableError(Exception):
    """Why the robot's own file cannot hold the robot."""


def _source_description(robot: Robot, source: str | os.PathLike[str] | None, notes: list[str]) -> Description | None:
    """The MJCF file to patch; None where there is none."""
    if source is not None:
        return read_description(source)
    if robot.source.format != "mjcf" or not robot.source.path:
        return None
    if not Path(robot.source.path).is_file():
        notes.append(f"robot file '{robot.source.path}' is no longer there: written anew, without its looks")
        return None
    description = read_description(robot.source.path)
    if description.source("mjcf").sha256 != robot.source.sha256:
        raise InputError(
            f"robot file '{description.path}' has changed since the robot was read from it; "
            "name the file to patch as the source"
        )
    return description


# The robot's own file -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Elements:
    """Bodies and joints of a text by the names that MuJoCo's compiler knows them under."""

    bodies: dict[str, ElementSpan]
    joints: dict[str, ElementSpan]


def _patched(robot: Robot, description: Description, target: Path, notes: list[str]) -> bytes:
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
            raise _UnpatchableError(f"does not show the body '{wanted.link}' in its text")
        if all_stated or wanted.link in source.refused or not wanted.is_like(own[wanted.link]):
            phi = _solid(wanted.link, wanted.phi, notes) if wanted.link in moving else wanted.phi
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
            raise _UnpatchableError(f"has no body of its own for link '{name}' between two joints of one body")
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
            raise _UnpatchableError("uses <replicate>, which stands for several bodies")
        if child.tag in tags:
            yield child
        elif child.tag == "frame":
            if {"scale", "massscale"} & child.attributes.keys():
                raise _UnpatchableError("has a frame that scales what is in it")
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


def _solid(link: str, phi: Array, notes: list[str]) -> Array:
    """A moving body as MuJoCo takes it: some mass, and some inertia about every axis, which points and rods lack."""
    mass, com, inertia = mass_com_inertia(phi)
    if mass == 0.0:
        notes.append(f"link '{link}' has no mass; MuJoCo demands some, written as {NEARLY_MASSLESS:g} kg")
        return phi + NEARLY_MASSLESS * np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    smallest = float(np.linalg.eigvalsh(inertia)[0])
    if smallest >= NEARLY_MASSLESS:
        return phi
    notes.append(f"link '{link}' has no inertia about an axis; MuJoCo demands some, written as {NEARLY_MASSLESS:g} kg m^2")
    return phi_from_mass_com_inertia(mass, com, inertia + (NEARLY_MASSLESS - smallest) * np.eye(3))


def _patch_inertial(text: XmlText, body: ElementSpan, phi: Array) -> None:
    values = _inertial(phi)
    direct = body.child("inertial")
    if direct is not None:
        text.set_attributes(direct, values, drop=_ORIENTATIONS)
        return
    for framed in _inside(body, ("inertial",)):  # its numbers are the frame's; written in the body itself instead
        text.remove(framed)
    text.insert_child(body, [f"<inertial {_attributes(values)}/>"])


def _inertial(phi: Array) -> dict[str, str]:
    mass, com, inertia = mass_com_inertia(phi)
    return inertial_attributes(float(mass), com, inertia)


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
        shares = _actuator_shares(source.model, present.joint_index(joint.name))
        values: dict[str, str] = {}
        for name, value in joint_dynamics(robot, i, notes).items():
            if value == before[joint.name].nominal.get(_SYMBOL[name], 0.0):
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
            values[_ATTRIBUTE[name]] = number(rest)
        text.set_attributes(elements.joints[joint.name], values)


def _actuator_shares(model: Any, joint: int) -> dict[str, float]:
    """Rotor inertia and damping that a joint has from its actuators, in the joint's units."""
    import mujoco

    on_joint = (model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT) & (model.actuator_trnid[:, 0] == joint)
    gear = model.actuator_gear[on_joint, 0] ** 2
    return {
        "armature": float(gear @ model.actuator_armature[on_joint]),
        "damping": float(gear @ model.actuator_damping[on_joint]),
    }


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
        text.insert_child(text.root, [f"<compiler {_attributes(folders)}/>"])
    notes.append(f"meshes and textures are looked for in '{folders['meshdir']}', from where the source has them")


def _attributes(values: Mapping[str, str]) -> str:
    from xml.sax.saxutils import quoteattr

    return " ".join(f"{name}={quoteattr(value)}" for name, value in values.items())


# A new file ---------------------------------------------------------------------------------------


def _new_text(robot: Robot, notes: list[str], described: Robot | None) -> str:
    """One body per link, merged links as bodies without joints, a motor on every joint, no shapes."""
    from xml.etree.ElementTree import Element, SubElement, indent

    notes.extend(untied(robot))
    apart = {wanted.link: wanted.phi for wanted in links_taken_apart(robot, notes, own_inertials(described), physical=True)}
    links = (*robot.links, *(link.name for link in robot.merged))
    called = {link: link for link in links}
    if "world" in called:
        called["world"] = next(name for name in ("world_link", "world_body", "world_frame") if name not in called)
        notes.append(f"link 'world' is written as '{called['world']}': in MJCF that name is the ground's")
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
            phi = _solid(robot.links[i], phi, notes)
        if phi.any():
            SubElement(body, "inertial", _inertial(phi))
    for link in robot.merged:
        above = bodies[link.body] if link.body >= 0 else world
        body = SubElement(above, "body", {"name": called[link.name]} | pose_attributes(link.placement))
        if apart[link.name].any():
            SubElement(body, "inertial", _inertial(apart[link.name]))
    if robot.driven_joints:
        motors = SubElement(root, "actuator")
        for joint in robot.driven_joints:
            SubElement(motors, "motor", name=joint.name, joint=joint.name)
    indent(root)
    return serialize_xml(root) + "\n"


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
            element.set(_ATTRIBUTE[name], number(value))


# The proof ----------------------------------------------------------------------------------------


def mjcf_parity(robot: Robot, path: str | os.PathLike[str], n_states: int = 100, seed: int = 0) -> float:
    """Largest relative torque difference between the robot and a file that MuJoCo compiles, on random states.

    Compared is what MJCF holds: rigid bodies in the file's own gravity, rotor inertia, viscous and Coulomb friction
    (negative ones, which no simulator takes, as zero). Joints of the file that the robot has locked are held where the
    robot holds them.
    """
    import mujoco

    description = read_description(path)
    where = f"robot file '{description.path}'"
    model, _ = _compiled(description.path)
    file = robot_from_mjcf(description)
    for name in robot.joint_names:
        if name not in file.joint_names:
            raise UnknownNameError("joint", name, file.joint_names, where)
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= off.mjDSBL_CONSTRAINT | off.mjDSBL_SPRING | off.mjDSBL_CONTACT
    model.opt.density = model.opt.viscosity = 0.0
    model.body_gravcomp[:] = 0.0
    q, v, a = random_states_within_limits(robot, n_states, seed)
    base_q, base_v, base_a = to_mujoco_motion(robot, q, v, a)
    qpos = np.tile(model.qpos0, (n_states, 1))
    qvel, qacc = np.zeros((2, n_states, model.nv))
    held = _held_positions(robot, file, where)
    dof = np.empty(robot.n_dof, dtype=int)
    first_q = first_v = 0
    for j, joint in enumerate(file.joints):
        at_q, at_v = int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
        if joint.name in held:
            qpos[:, at_q] = held[joint.name]
            continue
        index = robot.joint_index(joint.name)
        if joint.kind == "floating":
            qpos[:, at_q : at_q + 7] = base_q[:, :7]
            qvel[:, at_v : at_v + 6], qacc[:, at_v : at_v + 6] = base_v[:, :6], base_a[:, :6]
            dof[:6] = np.arange(at_v, at_v + 6)
            continue
        first_v = index + (5 if robot.floating else 0)
        first_q = index + (6 if robot.floating else 0)
        qpos[:, at_q], qvel[:, at_v], qacc[:, at_v] = q[:, first_q], v[:, first_v], a[:, first_v]
        dof[first_v] = at_v
    force = inverse_dynamics(model, qpos, qvel, qacc)[:, dof]
    theirs = force + model.dof_frictionloss[dof] * np.sign(v)
    if robot.floating:
        theirs[:, :6] = from_mujoco_force(robot, q, np.pad(force[:, :6], ((0, 0), (0, robot.n_dof - 6))))[:, :6]
    return largest_gap(torque_of(_as_held(robot), q, v, a), theirs)


def _as_held(robot: Robot) -> Robot:
    """The robot with what MJCF holds of it: friction that it identified or that its description states, none negative."""
    simple = robot.with_effects((Viscous(), Coulomb(), Armature()))
    values = simple.parameters.values.copy()
    values[simple.parameters.n_inertial :] = np.maximum(values[simple.parameters.n_inertial :], 0.0)
    return simple.with_parameters(simple.parameters.with_values(values))


def _held_positions(robot: Robot, file: Robot, where: str) -> dict[str, float]:
    """Positions of the joints that the robot lacks, from the poses in which it merged their links."""
    poses: dict[str, tuple[int, Array]] = {name: (body, np.eye(4)) for body, name in enumerate(robot.links)}
    poses |= {link.name: (link.body, np.array(link.placement)) for link in robot.merged}
    held: dict[str, float] = {}
    for i, joint in enumerate(file.joints):
        if joint.name in robot.joint_names:
            continue
        body, pose = poses.get(file.links[i], (None, np.eye(4)))
        above_body, above = poses.get(file.links[joint.parent], (None, np.eye(4))) if joint.parent >= 0 else (-1, np.eye(4))
        if body is None or body != above_body:
            raise InputError(f"joint '{joint.name}' in {where} is neither one of robot '{robot.name}' nor locked in it")
        held[joint.name] = _position_of(joint, np.linalg.inv(above @ joint.placement) @ pose)
    return held


def _position_of(joint: Joint, motion: Array) -> float:
    """``q`` of ``motion = exp([S] q)``."""
    if joint.kind == "prismatic":
        return float(joint.screw[:3] @ motion[:3, 3])
    R = motion[:3, :3]
    turn = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return float(np.arctan2(joint.screw[3:] @ turn, 0.5 * (np.trace(R) - 1.0)))


def _compiled(path: Path) -> tuple[Any, str]:
    """The file as MuJoCo compiles it, and why only without its looks where that is so (meshes that are missing)."""
    import mujoco

    try:
        return mujoco.MjModel.from_xml_path(str(path)), ""
    except (ValueError, mujoco.FatalError) as error:
        problem = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
    where = f"robot file '{path}'"
    root = parse_xml(read_description(path).content, where)
    folder = path.resolve().parent
    expand_includes(root, folder, folder, {path.resolve()}, where)
    cut_to_dynamics(root, folder, where)
    return compile_mjcf(serialize_xml(root), where), problem
