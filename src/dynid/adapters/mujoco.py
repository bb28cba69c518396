"""MuJoCo: it compiles MJCF, and any robot can be rebuilt in it as an independent reference.

A MuJoCo hinge turns about ``axis`` through ``pos`` in the body's frame, which is the motion of dynid's screw,
so body frames are kept. A free joint differs: MuJoCo's position is the pose in the world (quaternion
``w x y z``), its linear velocity is in world axes,

    qpos = P T(q),   qvel = (R v, w),   qacc = (R (a + w x v), alpha),   force = (R^T f, m)

with ``R`` the rotation of ``qpos`` and ``(v, w)`` dynid's twist in the body's own frame. MuJoCo numbers bodies
depth first, so its joints may stand in another order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.adapters.mujoco_warnings import mujoco_warnings
from dynid.adapters.tree import JointLike, RobotLike, axis_point, effect_value, mass_parts, pitch
from dynid.adapters.xml import serialize_xml
from dynid.arrays import Array, check_shape
from dynid.errors import InputError
from dynid.inertia import ROUNDOFF

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_NEGATIVE = re.compile(r'<inertial\b[^>]*\b(?:mass|diaginertia)="[^"]*-')
"""An inertial that may have a negative mass or moment; the exponent of a small one looks the same."""


def compile_mjcf(text: str, where: str) -> Any:
    """The ``mujoco.MjModel`` of a vetted MJCF text."""
    import mujoco

    try:
        with mujoco_warnings():  # what is wrong with the model is in the error; the rest is for whoever draws it
            return mujoco.MjModel.from_xml_string(text)
    except (ValueError, mujoco.FatalError) as error:
        raise _not_compiled(error, where) from error


def compile_mjcf_file(path: Path) -> tuple[Any | None, str]:
    """The ``mujoco.MjModel`` of a file with everything it refers to, or None and why MuJoCo cannot compile it."""
    import mujoco

    try:
        with mujoco_warnings():
            return mujoco.MjModel.from_xml_path(str(path)), ""
    except (ValueError, mujoco.FatalError) as error:
        return None, _reason(error)


def _reason(error: Exception) -> str:
    return "; ".join(line.strip() for line in str(error).splitlines() if line.strip())


def _not_compiled(error: Exception, where: str) -> InputError:
    return InputError(f"MuJoCo cannot compile {where}: {_reason(error)}")


@dataclass(frozen=True, eq=False)
class StatedInertia:
    """Mass and inertia that a text states for a body, along the axes that the compiled model has in ``body_iquat``."""

    mass: float
    inertia: Array
    """3x3, about the centre of mass."""


def compile_stated(text: str, where: str) -> tuple[Any, dict[int, StatedInertia]]:
    """The model of a vetted MJCF text, and by body number what the text states where MuJoCo takes no such body.

    MuJoCo compiles no inertia that breaks the triangle inequality and no moving body without mass, and takes negative numbers
    of other bodies for zero. Such bodies have other numbers in the model, in place of their own; everything else in it,
    their centres and the axes of their inertias included, is as MuJoCo reads it.
    """
    with mujoco_warnings():  # what is wrong with the model is in the error; the rest is for whoever draws it
        return _compile_stated(text, where)


def _compile_stated(text: str, where: str) -> tuple[Any, dict[int, StatedInertia]]:
    import mujoco

    try:
        model = compile_mjcf(text, where)
        if not _NEGATIVE.search(text):
            return model, {}
        spec = mujoco.MjSpec.from_string(text)
        refused = _put_stand_ins(spec)
        if not refused:
            return model, {}
    except InputError as refusal:
        try:
            spec = mujoco.MjSpec.from_string(text)
        except (ValueError, mujoco.FatalError):
            raise refusal from None
        refused = _put_stand_ins(spec)
        if not refused:
            raise
    total = float(spec.compiler.settotalmass)
    spec.compiler.settotalmass = -1.0
    try:
        model = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise _not_compiled(error, where) from error
    stated = {}
    one_mass, one_inertia = _stand_in(spec.compiler)
    for body, own in refused:
        # a frame may scale the bodies in it, and does so with the stand-in too
        mass_scale = float(model.body_mass[body.id]) / one_mass
        inertia_scale = float(model.body_inertia[body.id].mean()) / one_inertia
        stated[int(body.id)] = StatedInertia(own.mass * mass_scale, own.inertia * inertia_scale)
    if total > 0.0:
        others = np.delete(model.body_mass, list(stated)).sum()
        whole = float(others) + sum(own.mass for own in stated.values())
        if not whole > 0.0:
            raise InputError(f"{where} asks for a total mass of {total:g} kg, but its bodies have {whole:g} kg together")
        model.body_mass *= total / whole
        model.body_inertia *= total / whole
        stated = {b: StatedInertia(own.mass * total / whole, own.inertia * total / whole) for b, own in stated.items()}
    return model, stated


def _stand_in(compiler: Any) -> tuple[float, float]:
    """Mass and moment of inertia that these options leave as they are."""
    return max(1.0, float(compiler.boundmass)), max(1.0, float(compiler.boundinertia))


def _put_stand_ins(spec: Any) -> list[tuple[Any, StatedInertia]]:
    """Give the bodies that MuJoCo refuses another mass and inertia; returns them with their own."""
    import mujoco

    always_geoms = spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    refused = []
    for body in spec.bodies[1:]:
        if body.geoms and (always_geoms or not body.explicitinertial):
            continue  # it weighs what its geometry does
        mass, moments, full = float(body.mass), np.array(body.inertia), np.array(body.fullinertia)
        own = StatedInertia(mass, np.diag(moments))
        if np.isfinite(full[0]):
            xx, yy, zz, xy, xz, yz = full
            own = StatedInertia(mass, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        clamped = (mass < 0.0 and not spec.compiler.boundmass) or (moments.min() < 0.0 and not spec.compiler.boundinertia)
        if not np.isfinite([mass, *own.inertia.flat]).all() or (not clamped and _compiles_alone(body, spec.compiler)):
            continue
        if not body.explicitinertial:
            body.ipos = np.zeros(3)
        body.mass, moment = _stand_in(spec.compiler)
        body.inertia, body.fullinertia, body.explicitinertial = np.full(3, moment), [np.nan, *np.zeros(5)], True
        refused.append((body, own))
    return refused


def _compiles_alone(body: Any, compiler: Any) -> bool:
    """Whether MuJoCo takes the inertia of a body, moving if it has joints, with the bounds of these options."""
    import mujoco

    alone = mujoco.MjSpec()
    for option in ("boundmass", "boundinertia", "balanceinertia"):
        setattr(alone.compiler, option, getattr(compiler, option))
    copy = alone.worldbody.add_body(mass=body.mass, ipos=np.zeros(3), inertia=body.inertia, fullinertia=body.fullinertia)
    copy.explicitinertial = True
    if body.joints:
        copy.add_joint()
    try:
        alone.compile()
    except (ValueError, mujoco.FatalError):
        return False
    return True


def mujoco_model(robot: RobotLike, *, armature: bool = True, friction: bool = True, limits: bool = True) -> Any:
    """The same robot as a ``mujoco.MjModel``; see :func:`mjcf_text`."""
    text = mjcf_text(robot, armature=armature, friction=friction, limits=limits)
    return compile_mjcf(text, f"robot '{robot.name}'")


def mjcf_text(robot: RobotLike, *, armature: bool = True, friction: bool = True, limits: bool = True) -> str:
    """The robot as MJCF: bodies, joints, inertials, and sites where merged links sat.

    ``armature`` writes the rotor inertias, ``friction`` viscous and Coulomb friction as ``damping`` and
    ``frictionloss``, ``limits`` the ranges of motion. MuJoCo has no constant joint torque, so offsets are
    left out. Bodies that MuJoCo's compiler does not take (massless, inconsistent) are refused by it.
    """
    from xml.etree.ElementTree import Element, SubElement, indent

    root = Element("mujoco", model=robot.name)
    SubElement(root, "compiler", angle="radian", autolimits="true")
    SubElement(root, "option", gravity=_join(robot.gravity))
    world = SubElement(root, "worldbody")
    bodies: list[Element] = []
    for i, joint in enumerate(robot.joints):
        above = bodies[joint.parent] if joint.parent >= 0 else world
        body = SubElement(above, "body", {"name": robot.links[i]} | pose_attributes(joint.placement))
        bodies.append(body)
        _add_joint(body, robot, i, armature=armature, friction=friction, limits=limits)
        _add_inertial(body, robot, i)
    for link in robot.merged:
        above = bodies[link.body] if link.body >= 0 else world
        SubElement(above, "site", {"name": link.name} | pose_attributes(link.placement))
    indent(root)
    return serialize_xml(root)


def to_mujoco_motion(robot: RobotLike, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]:
    """``(qpos, qvel, qacc)`` of samples ``(samples, n)`` for :func:`mujoco_model`."""
    position, velocity, acceleration = (np.array(part, dtype=np.float64, ndmin=2) for part in (q, v, a))
    if robot.joints[0].kind == "floating":
        R, p = _base_pose(robot, position)
        linear, angular = velocity[:, :3].copy(), velocity[:, 3:6]
        position[:, :3] = p
        position[:, 3:7] = [_quaternion(one) for one in R]
        velocity[:, :3] = _turn(R, linear)
        acceleration[:, :3] = _turn(R, acceleration[:, :3] + np.cross(angular, linear))
    positions, dofs = mujoco_order(robot)
    return position[:, positions], velocity[:, dofs], acceleration[:, dofs]


def from_mujoco_force(robot: RobotLike, q: ArrayLike, force: ArrayLike) -> Array:
    """Generalised forces ``(samples, n)`` of MuJoCo in dynid's coordinates, at dynid's positions ``q``."""
    given = np.atleast_2d(np.asarray(force, dtype=np.float64))
    forces = np.empty_like(given)
    forces[:, mujoco_order(robot)[1]] = given
    if robot.joints[0].kind == "floating":
        R, _ = _base_pose(robot, np.atleast_2d(np.asarray(q, dtype=np.float64)))
        forces[:, :3] = _turn(np.swapaxes(R, -1, -2), forces[:, :3])
    return forces


def inverse_dynamics(model: Any, qpos: ArrayLike, qvel: ArrayLike, qacc: ArrayLike) -> Array:
    """``(samples, dof)`` forces of MuJoCo's inverse dynamics, one by one: a reference, not a fast path."""
    import mujoco

    state = mujoco.MjData(model)
    positions, velocities, accelerations = (np.atleast_2d(np.asarray(part)) for part in (qpos, qvel, qacc))
    check_shape("qpos", positions, (None, model.nq))
    check_shape("qvel", velocities, (len(positions), model.nv))
    check_shape("qacc", accelerations, (len(positions), model.nv))
    forces = np.empty((len(positions), model.nv))
    for sample, (state.qpos[:], state.qvel[:], state.qacc[:]) in enumerate(
        zip(positions, velocities, accelerations, strict=True)
    ):
        mujoco.mj_inverse(model, state)
        forces[sample] = state.qfrc_inverse
    return forces


def mujoco_order(robot: RobotLike) -> tuple[list[int], list[int]]:
    """Position and velocity indices of dynid in MuJoCo's order: MuJoCo numbers bodies depth first."""
    order: list[int] = []
    waiting = [i for i, joint in enumerate(robot.joints) if joint.parent < 0][::-1]
    while waiting:
        body = waiting.pop()
        order.append(body)
        waiting.extend([i for i, joint in enumerate(robot.joints) if joint.parent == body][::-1])
    if robot.joints[0].kind != "floating":
        return order, order
    driven = [i for i in order if i != 0]
    return [*range(7), *(i + 6 for i in driven)], [*range(6), *(i + 5 for i in driven)]


def _add_joint(body: Element, robot: RobotLike, index: int, *, armature: bool, friction: bool, limits: bool) -> None:
    from xml.etree.ElementTree import SubElement

    joint = robot.joints[index]
    if joint.kind == "floating":
        SubElement(body, "freejoint", name=joint.name)
        return
    element = SubElement(body, "joint", {"name": joint.name} | motion_attributes(joint))
    if limits and joint.kind != "continuous" and np.isfinite([joint.q_min, joint.q_max]).all():
        element.set("range", _join([joint.q_min, joint.q_max]))
    if limits and np.isfinite(joint.tau_max):
        element.set("actuatorfrcrange", _join([-joint.tau_max, joint.tau_max]))
    values = {"armature": "Ia"} if armature else {}
    values |= {"damping": "fv", "frictionloss": "fc"} if friction else {}
    for attribute, symbol in values.items():
        value = effect_value(robot, symbol, index)
        if value < 0.0:
            raise InputError(f"{symbol} of joint '{joint.name}' is {value:g}; MuJoCo takes no negative {attribute}")
        if value > 0.0:
            element.set(attribute, repr(value))


def motion_attributes(joint: JointLike) -> dict[str, str]:
    """Type, axis and point of a joint with one degree of freedom."""
    if pitch(joint) != 0.0:
        raise InputError(f"joint '{joint.name}' is a helical joint, which MuJoCo does not have")
    if joint.kind == "prismatic":
        return {"type": "slide", "axis": _join(joint.screw[:3])}
    return {"type": "hinge", "axis": _join(joint.screw[3:]), "pos": _join(axis_point(joint))}


def _add_inertial(body: Element, robot: RobotLike, index: int) -> None:
    from xml.etree.ElementTree import SubElement

    mass, com, inertia = mass_parts(robot, index)
    if mass != 0.0 or np.any(inertia):
        SubElement(body, "inertial", inertial_attributes(mass, com, inertia))


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
        "mass": repr(mass),
        "pos": _join(com),
        "quat": _join(_quaternion(axes)),
        "diaginertia": _join(moments),
    }


def _base_pose(robot: RobotLike, q: Array) -> tuple[Array, Array]:
    """Rotation and position of the floating body in the world; ``x y z w`` need not be of length one."""
    x, y, z, w = (q[:, 3:7] / np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)).T
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
        [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
    ]
    R = np.moveaxis(np.array(rows), -1, 0)
    placement = robot.joints[0].placement
    return placement[:3, :3] @ R, q[:, :3] @ placement[:3, :3].T + placement[:3, 3]


def _turn(R: Array, vectors: Array) -> Array:
    turned: Array = np.einsum("nij,nj->ni", R, vectors)
    return turned


def _quaternion(R: Array) -> Array:
    """``w x y z`` of a rotation matrix, by way of its largest component (Shepperd 1978)."""
    trace = float(np.trace(R))
    twist = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    largest = int(np.argmax([trace, R[0, 0], R[1, 1], R[2, 2]]))
    if largest == 0:
        found = np.array([1.0 + trace, *twist])
    else:
        i = largest - 1
        j, k = (i + 1) % 3, (i + 2) % 3
        found = np.empty(4)
        found[1 + i] = 1.0 - trace + 2.0 * R[i, i]
        found[1 + j] = R[j, i] + R[i, j]
        found[1 + k] = R[k, i] + R[i, k]
        found[0] = twist[i]
    return np.asarray(found / np.linalg.norm(found))


def pose_attributes(placement: Array) -> dict[str, str]:
    """Position, and quaternion where there is a rotation."""
    pose = {"pos": _join(placement[:3, 3])}
    if not np.array_equal(placement[:3, :3], np.eye(3)):
        pose["quat"] = _join(_quaternion(placement[:3, :3]))
    return pose


def _join(values: ArrayLike) -> str:
    return " ".join(repr(float(value)) for value in np.asarray(values, dtype=np.float64))
