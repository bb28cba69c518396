"""A robot as new MJCF: a file for robots that have none, and MuJoCo's model of any robot as an independent reference.

A hinge of MuJoCo turns about ``axis`` through ``pos`` in the body's frame, which is the motion of dynid's screw, so body frames are
kept. Inertias are written along their principal axes, found here, because MuJoCo's compiler finds them to fewer digits. Closures are
equality constraints: ``joint``, ``connect`` and ``weld`` between sites.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.io.robots.mujoco_model import compile_mjcf, mujoco_order
from dynid.io.robots.simulator_joint import SYMBOL, closed_position, joint_dynamics, number, untied, vector
from dynid.io.robots.xml import serialize_xml
from dynid.model.effects.effect import Place
from dynid.model.inertia import ROUNDOFF, mass_com_inertia, phi_from_mass_com_inertia
from dynid.model.joint import Joint, axis_point, pitch
from dynid.model.links import links_taken_apart, own_inertials
from dynid.model.loops import Loop
from dynid.model.poses import quaternion_from_rotation
from dynid.model.robot import Robot, effect_value, mass_parts

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

NEARLY_MASSLESS = 1e-14
"""kg and kg m^2 of a moving body that has none: MuJoCo demands more than 1e-15."""
ATTRIBUTE: dict[Place, str] = {"damping": "damping", "friction": "frictionloss", "armature": "armature"}
"""What a joint of MJCF calls the place of friction and rotor inertia."""
_BALL, _FIXED = ("x", "y", "z"), ("x", "y", "z", "rx", "ry", "rz")
_ARM = 0.1
"""m between the two points that stand for a hinge in MJCF."""


def mujoco_model(robot: Robot, *, armature: bool = True, friction: bool = True, limits: bool = True) -> Any:
    """The same robot as a ``mujoco.MjModel``; see :func:`mjcf_text`."""
    text = mjcf_text(robot, armature=armature, friction=friction, limits=limits)
    return compile_mjcf(text, f"robot '{robot.name}'")


def mjcf_text(robot: Robot, *, armature: bool = True, friction: bool = True, limits: bool = True) -> str:
    """The robot as MJCF with its own numbers alone: bodies, joints, inertials, and sites where merged links sat.

    ``armature`` writes the rotor inertias, ``friction`` viscous and Coulomb friction as ``damping`` and
    ``frictionloss``, ``limits`` the ranges of motion. MuJoCo has no constant joint torque, so offsets are
    left out. Bodies that MuJoCo's compiler does not take (massless, inconsistent) are refused by it.
    """
    from xml.etree.ElementTree import indent

    places: tuple[Place, ...] = (*(("armature",) if armature else ()), *(("damping", "friction") if friction else ()))
    dynamics = [{place: effect_value(robot, SYMBOL[place], i) for place in places} for i in range(robot.n_bodies)]
    for joint, values in zip(robot.joints, dynamics, strict=True):
        for place, value in values.items():
            if value < 0.0:
                raise InputError(
                    f"{SYMBOL[place]} of joint '{joint.name}' is {value:g}; MuJoCo takes no negative {ATTRIBUTE[place]}"
                )
    masses = {link: mass_parts(robot, i) for i, link in enumerate(robot.links)}
    root, _, _ = _bodies(robot, {}, masses, dynamics, limits=limits)
    indent(root)
    return serialize_xml(root)


def new_mjcf(robot: Robot, notes: list[str], described: Robot | None, target: Path) -> str:
    """One body per link, merged links as bodies without joints, a motor on every driven joint; closures as equalities.

    The shapes are those of the URDF or SDF file that the robot came from; ``target`` is where the new one will lie.
    """
    from xml.etree.ElementTree import SubElement, indent

    from dynid.io.robots.written_shapes import add_shapes

    notes.extend(untied(robot))
    apart = {wanted.name: wanted.phi for wanted in links_taken_apart(robot, notes, own_inertials(described), physical=True)}
    called = {}
    if "world" in apart:
        called["world"] = next(name for name in ("world_link", "world_body", "world_frame") if name not in apart)
        notes.append(f"link 'world' is written as '{called['world']}': in MJCF that name is the ground's")
    dynamics = []
    for i, (joint, link) in enumerate(zip(robot.joints, robot.links, strict=True)):
        dynamics.append({} if joint.kind == "floating" else joint_dynamics(robot, i, notes))
        if joint.kind == "floating" and not np.array_equal(joint.placement, np.eye(4)):
            notes.append(f"MuJoCo measures the base '{joint.name}' from the world, not from the placement of its joint")
        if apart[link][0] != 0.0 or robot.parameters.inertials[i, 0] == 0.0:
            apart[link] = solid_body(link, apart[link], notes)
    masses = {link: mass_com_inertia(phi) for link, phi in apart.items()}
    root, world, bodies = _bodies(robot, called, masses, dynamics, limits=True)
    named = {body.get("name", ""): body for body in root.iter("body")}
    add_shapes(root, {link: named[called.get(link, link)] for link in apart}, robot, target, notes)
    root.find("option").set("integrator", "implicitfast")  # type: ignore[union-attr]
    if robot.loops:
        _add_equalities(root, robot, [*bodies, world], notes)
    if robot.driven_joints:
        motors = SubElement(root, "actuator")
        for joint in robot.driven_joints:
            SubElement(motors, "motor", name=joint.name, joint=joint.name)
    indent(root)
    return serialize_xml(root) + "\n"


def _bodies(
    robot: Robot,
    called: Mapping[str, str],
    masses: Mapping[str, tuple[Any, Array, Array]],
    dynamics: Sequence[Mapping[Place, float]],
    *,
    limits: bool,
) -> tuple[Element, Element, list[Element]]:
    """The file with the tree of bodies; its world, and the elements of the moving bodies.

    Args:
        robot: the robot.
        called: other names of bodies by link.
        masses: mass, centre of mass and inertia about it by link; merged links that have none become sites.
        dynamics: friction and rotor inertia of every joint.
        limits: whether ranges of motion and of torque are written.
    """
    from xml.etree.ElementTree import Element, SubElement

    root = Element("mujoco", model=robot.name)
    SubElement(root, "compiler", angle="radian", autolimits="true")
    SubElement(root, "option", gravity=vector(robot.gravity))
    world = SubElement(root, "worldbody")
    bodies: list[Element] = []

    def add(tag: str, link: str, carrier: int, placement: Array) -> Element:
        above = bodies[carrier] if carrier >= 0 else world
        return SubElement(above, tag, {"name": called.get(link, link)} | _pose_attributes(placement))

    def add_inertial(body: Element, link: str) -> None:
        mass, com, inertia = masses[link]
        if mass != 0.0 or np.any(inertia):
            SubElement(body, "inertial", inertial_attributes(float(mass), com, inertia))

    for joint, link, values in zip(robot.joints, robot.links, dynamics, strict=True):
        body = add("body", link, joint.parent, joint.placement)
        bodies.append(body)
        if joint.kind == "floating":
            SubElement(body, "freejoint", name=joint.name)
        else:
            written = {ATTRIBUTE[place]: number(value) for place, value in values.items() if value != 0.0}
            SubElement(body, "joint", {"name": joint.name} | _joint_attributes(joint, limits=limits) | written)
        add_inertial(body, link)
    for merged in robot.merged:
        if merged.name in masses:
            add_inertial(add("body", merged.name, merged.body, merged.placement), merged.name)
        else:
            add("site", merged.name, merged.body, merged.placement)
    return root, world, bodies


def _joint_attributes(joint: Joint, *, limits: bool) -> dict[str, str]:
    """Type, axis and point of a joint with one degree of freedom, and its limits."""
    if pitch(joint) != 0.0:
        raise InputError(f"joint '{joint.name}' is a helical joint, which MuJoCo does not have")
    if joint.kind == "prismatic":
        found = {"type": "slide", "axis": vector(joint.screw[:3])}
    else:
        found = {"type": "hinge", "axis": vector(joint.screw[3:]), "pos": vector(axis_point(joint))}
    if limits and joint.kind != "continuous" and np.isfinite([joint.q_min, joint.q_max]).all():
        found["range"] = vector(np.array([joint.q_min, joint.q_max]))
    if limits and np.isfinite(joint.tau_max):
        found["actuatorfrcrange"] = vector(np.array([-joint.tau_max, joint.tau_max]))
    return found


def _pose_attributes(placement: Array) -> dict[str, str]:
    """Position, and quaternion where there is a rotation."""
    pose = {"pos": vector(placement[:3, 3])}
    if not np.array_equal(placement[:3, :3], np.eye(3)):
        pose["quat"] = vector(quaternion_from_rotation(placement[:3, :3]))
    return pose


# Bodies ---------------------------------------------------------------------------------------
def solid_body(link: str, phi: Array, notes: list[str]) -> Array:
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


def inertial_attributes(mass: float, com: Array, inertia: Array) -> dict[str, str]:
    """Mass, centre, principal axes and moments of a body; ``inertia`` is about the centre of mass."""
    # diagonalised here and not by MuJoCo's compiler, whose iteration stops at fewer digits
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    rounding = 2.0 * ROUNDOFF * (moments[2] + 2.0 * mass * float(com @ com) + mass)  # what counts as consistent
    # points and rods that rounding pushed below zero
    moments = np.where((-rounding <= moments) & (moments < 0.0), 0.0, moments)
    flat = moments[0] + moments[1]
    if flat < moments[2] <= flat + rounding:  # a flat body that rounding pushed over the triangle inequality
        moments[2] = flat
    return {
        "mass": number(mass),
        "pos": vector(com),
        "quat": vector(quaternion_from_rotation(axes)),
        "diaginertia": vector(moments),
    }


# Closures -------------------------------------------------------------------------------------
def _add_equalities(root: Element, robot: Robot, bodies: list[Element], notes: list[str]) -> None:
    """Closures as ``connect`` and ``weld`` between sites or ``joint``, and a keyframe ``closed`` at which they hold.

    ``bodies`` are the elements of the moving bodies, the world's last.
    """
    from xml.etree.ElementTree import SubElement

    equality = SubElement(root, "equality")
    for tie in robot.loops.ties:
        joints = {"joint1": robot.joints[tie.follower].name}
        joints |= {"joint2": robot.joints[tie.leader].name} if tie.leader >= 0 else {}
        coefficients = [*tie.coefficients, 0.0, 0.0, 0.0, 0.0][:5]
        SubElement(equality, "joint", {"name": tie.name} | joints, polycoef=vector(np.array(coefficients)))
    for loop in robot.loops.framed:
        for k, shift in enumerate(_points(loop)):
            sites = []
            for end, frame in (("first", loop.first), ("second", loop.second)):
                name = f"{loop.name}_{end}{k + 1 if k else ''}"
                placement = np.array(frame.placement)
                placement[:3, 3] += placement[:3, :3] @ shift
                SubElement(bodies[frame.body], "site", {"name": name, "size": "0.005"} | _pose_attributes(placement))
                sites.append(name)
            kind = "weld" if loop.closed == _FIXED else "connect"
            SubElement(equality, kind, name=f"{loop.name}{k + 1 if k else ''}", site1=sites[0], site2=sites[1])
        if len(_points(loop)) == 2:
            notes.append(f"hinge '{loop.name}' is written as two connected points, {_ARM:g} m apart on its axis")
    position = closed_position(robot)
    SubElement(SubElement(root, "keyframe"), "key", name="closed", qpos=vector(position[mujoco_order(robot)[0]]))


def equality_names(robot: Robot) -> tuple[str, ...]:
    """Names of the constraints that a new MJCF file has."""
    framed = [f"{loop.name}{k + 1 if k else ''}" for loop in robot.loops.framed for k in range(len(_points(loop)))]
    return (*(tie.name for tie in robot.loops.ties), *framed)


def _points(loop: Loop) -> list[Array]:
    """Points of the two frames that coincide: one for a ball joint or a weld, two on the axis for a hinge."""
    if loop.closed in (_BALL, _FIXED):
        return [np.zeros(3)]
    turns = [c for c in loop.closed if c.startswith("r")]
    if loop.closed[:3] == _BALL and len(turns) == 2:
        axis = next(i for i, c in enumerate(("rx", "ry", "rz")) if c not in turns)
        return [np.zeros(3), _ARM * np.eye(3)[axis]]
    raise InputError(
        f"loop '{loop.name}' closes {', '.join(loop.closed)}, for which MJCF has no constraint; it holds ball joints (x, y, z), hinges "
        "(x, y, z and two turns) and rigid ties (all six)"
    )
