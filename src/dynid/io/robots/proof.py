"""The proof of an exported file: another library loads it, and torques are compared on random states.

URDF files are loaded by Pinocchio's own reader, MJCF files compiled by MuJoCo, SDF files read again here. Joints of a file that the
robot has locked are held where the robot holds them. What was loaded also predicts logs, which the verdict on a run is made of
(:class:`LoadedFile`). Compared is what the format holds: rigid bodies, viscous and Coulomb friction (negative ones, which no simulator
takes, as zero), in MJCF rotor inertia; gravity is the robot's, but in MJCF the file's own. Of closed robots URDF and MJCF files are
compared by their trees, whose closures are constraints beside them, without friction.

What a written file changed of the robot's own: attribute by attribute, as a list to read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics import pinocchio_model as pinocchio_adapter
from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits
from dynid.errors import InputError, UnknownNameError
from dynid.io.robots import mujoco_model as mujoco_adapter
from dynid.io.robots.description import Description, link_places, read_description
from dynid.io.robots.mjcf_new import equality_names
from dynid.io.robots.mjcf_read import robot_from_mjcf
from dynid.io.robots.mujoco_model import whole_mjcf
from dynid.io.robots.sdf_read import robot_from_sdf, sdf_model
from dynid.io.robots.simulator_joint import URDF_PLACES, as_held, closed_position
from dynid.io.robots.urdf_read import link_phi, urdf_root
from dynid.io.robots.xml import read_numbers
from dynid.model.effects.effect import PLACES, Place
from dynid.model.inertia import change_of_frame
from dynid.model.joint import Joint
from dynid.model.poses import inverse_pose
from dynid.model.robot import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

PARITY = 1e-9
"""Largest relative torque difference with which an exported file counts as proven."""
SMALLEST_SHARE = 1e-4
"""Torques of a joint are compared with its own largest, but with no less than this share of the robot's largest."""
_MARK = " (link)"
"""Behind the names of links while joints are held: Pinocchio looks for a joint's frame by name alone, and a link may have that name."""


def largest_gap(ours: Array, theirs: Array, reference: Array | None = None) -> float:
    """Largest difference of torques ``(states, joints)`` relative to ``ours`` or a reference; see :data:`SMALLEST_SHARE`."""
    largest = np.abs(ours if reference is None else reference).max(axis=0)
    scale = np.maximum(largest, SMALLEST_SHARE * largest.max())
    if not np.isfinite(theirs).all():
        return math.inf  # numbers that overflowed are as far away as can be, not unknown
    if largest.max() == 0.0:
        return float(np.abs(theirs).max())
    return float((np.abs(theirs - ours) / scale).max())


def held_poses(robot: Robot, joints: Mapping[str, tuple[str, str | None]], where: str) -> dict[str, Array]:
    """Poses in which the robot holds joints of a file that it lacks: of the link below each in the link above it.

    ``joints`` has both links by the joint's name, None above for the ground.
    """
    places = dict[str | None, tuple[int, Array]](link_places(robot).items())
    places[None] = -1, np.eye(4)
    held = {}
    for name, (below, above) in joints.items():
        if below not in places or above not in places or places[below][0] != places[above][0]:
            raise InputError(f"joint '{name}' in {where} is neither one of robot '{robot.name}' nor locked in it")
        held[name] = inverse_pose(places[above][1]) @ places[below][1]
    return held


def _joints_beside(robot: Robot, file: Robot) -> dict[str, tuple[str, str | None]]:
    """Joints of a file that the robot lacks, each with the links below and above it."""
    return {
        joint.name: (link, file.links[joint.parent] if joint.parent >= 0 else None)
        for joint, link in zip(file.joints, file.links, strict=True)
        if joint.kind != "floating" and joint.name not in robot.joint_names
    }


@dataclass(frozen=True, eq=False)
class LoadedFile:
    """A written file as its own library has it, over the degrees of freedom of the robot, in their order."""

    robot: Robot
    """The robot as the file holds it: both must have the same torque."""
    rigid: Callable[[Array, Array, Array], Array]
    """Torque of bodies and rotors at states ``(states, ..)``."""
    damping: Array
    friction: Array

    def torque(self, q: Array, v: Array, a: Array, sign: Array | None = None) -> Array:
        """All that the file holds; ``sign`` is that of the speed where it was measured with noise."""
        return np.asarray(self.rigid(q, v, a) + self.damping * v + self.friction * (np.sign(v) if sign is None else sign))

    def gap(self, n_states: int = 100, seed: int = 0) -> float:
        """Largest relative difference of torque between the file and the robot on random states within the robot's limits."""
        states = random_states_within_limits(self.robot, n_states, seed)
        return largest_gap(inverse_dynamics(self.robot, *states), self.torque(*states))


def load_file(format: str, robot: Robot, path: str | os.PathLike[str]) -> LoadedFile:
    """A simulator file of a robot by its own library: ``urdf``, ``mjcf`` or ``sdf``."""
    return {"urdf": load_urdf, "mjcf": load_mjcf, "sdf": load_sdf}[format](robot, path)


def file_parity(format: str, robot: Robot, path: str | os.PathLike[str], n_states: int = 100, seed: int = 0) -> float:
    """Largest relative difference of torque between the robot and a file of it that was loaded, on random states."""
    return load_file(format, robot, path).gap(n_states, seed)


def _require_joints(robot: Robot, known: Collection[str], where: str) -> None:
    for joint in robot.joints:
        if joint.kind != "floating" and joint.name not in known:
            raise UnknownNameError("joint", joint.name, known, where)


def _tree(robot: Robot, places: Collection[Place]) -> Robot:
    """The robot as a file of its tree holds it."""
    return robot.opened if robot.loops else as_held(robot, places)


# URDF in Pinocchio --------------------------------------------------------------------------------
def why_unequal(robot: Robot, path: str | os.PathLike[str]) -> str:
    """What makes Pinocchio find other torques in a URDF file than the robot's; empty where that is not known.

    Pinocchio adds links in ``(m, c, I_C)``, with ``c = (m_1 c_1 + m_2 c_2) / max(m_1 + m_2, 2e-16)``, which throws away the
    centre of a body whose mass is not positive. With the links added in ``(m, m c, I)`` the file shows what it holds.
    """
    import pinocchio as pin

    model, root, where = _load_urdf(robot, path)
    own = {link.get("name", ""): link_phi(link, f"link '{link.get('name')}' in {where}") for link in root.findall("link")}
    whole = np.zeros((model.njoints, 10))
    light: dict[int, list[str]] = {}
    for frame in model.frames:
        phi = own.get(frame.name)
        if frame.type == pin.FrameType.BODY and phi is not None:
            joint = int(frame.parentJoint)
            whole[joint] += change_of_frame(frame.placement.rotation, frame.placement.translation) @ phi
            if phi[0] <= 0.0 and phi.any():
                light.setdefault(joint, []).append(f"{frame.name} has {phi[0]:.4g} kg")
    light = {i: names for i, names in light.items() if i > 0 and whole[i, 0] != 0.0}
    for i in light:
        model.inertias[i] = pin.Inertia.FromDynamicParameters(whole[i])
    gap = _urdf_file(robot, model, where).gap()
    if not (light and gap <= PARITY):
        return ""
    masses = ", ".join(name for names in light.values() for name in names)
    return (
        f"Pinocchio misplaces the centre of links whose mass is not positive ({masses}); the numbers in the file are those "
        f"identified (torque differs by {gap:.1e} with the links added up exactly), but only programs that can hold such links "
        "can use it"
    )


def _load_urdf(robot: Robot, path: str | os.PathLike[str]) -> tuple[Any, Element, str]:
    """Pinocchio's model with the robot's joints alone, the file's elements, and what messages call it."""
    import pinocchio as pin

    robot = robot.opened  # URDF holds the tree of a closed robot; its closures are in the side file
    description = read_description(path)
    where, root = description.where, description.root
    # from where a floating base is measured is no part of URDF
    unnamed_base = robot.floating and all(joint.get("type") != "floating" for joint in root.findall("joint"))
    try:
        model = pin.buildModelFromUrdf(str(path), *([pin.JointModelFreeFlyer()] if unnamed_base else []))
    except (ValueError, RuntimeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InputError(f"{where} cannot be loaded by Pinocchio: {reason}") from error
    if unnamed_base:
        model.jointPlacements[1] = pin.SE3(np.array(robot.joints[0].placement))
    kept = set(robot.joint_names)
    _require_joints(robot, list(model.names)[1:], where)
    base = robot.floating and model.joints[1].nv == 6
    child = {joint.get("name", ""): joint.find("child") for joint in root.findall("joint")}
    links: dict[str, str | None] = {name: None if end is None else end.get("link") for name, end in child.items()}
    if unnamed_base:
        links[model.names[1]] = robot.links[0]
    extra = {
        model.names[i]: (links.get(model.names[i]) or "", links.get(model.names[model.parents[i]]))
        for i in range(2 if base else 1, model.njoints)
        if model.names[i] not in kept
    }
    return (_with_joints_held(model, held_poses(robot, extra, where)) if extra else model), root, where


def _with_joints_held(model: Any, poses: Mapping[str, Array]) -> Any:
    """The model with joints held in the given poses (4x4) in their parents."""
    import pinocchio as pin

    held = pin.neutral(model)
    working = model.createData()
    pin.forwardKinematics(model, working, held)
    numbers = {int(model.getJointId(name)): pose for name, pose in poses.items()}
    for i, pose in numbers.items():
        motion = pin.log6(model.jointPlacements[i].inverse() * pin.SE3(pose))
        angle = float(np.asarray(working.joints[i].S).ravel() @ motion.vector)
        start, width = model.joints[i].idx_q, model.joints[i].nq
        held[start : start + width] = [angle] if width == 1 else [np.cos(angle), np.sin(angle)]
    marked = model.copy()
    for frame in marked.frames:
        if frame.type == pin.FrameType.BODY:
            frame.name = f"{frame.name}{_MARK}"
    reduced = pin.buildReducedModel(marked, list(numbers), held)
    for frame in reduced.frames:
        frame.name = frame.name.removesuffix(_MARK)
    return reduced


def load_urdf(robot: Robot, path: str | os.PathLike[str]) -> LoadedFile:
    """A URDF file by Pinocchio, with the robot's gravity, because URDF has none."""
    model, _, where = _load_urdf(robot, path)
    return _urdf_file(robot, model, where)


def _urdf_file(robot: Robot, model: Any, where: str) -> LoadedFile:
    robot = _tree(robot, URDF_PLACES)
    model.gravity.linear = np.array(robot.gravity)
    model.armature[:] = 0.0
    joints = [model.joints[1 if one.kind == "floating" else int(model.getJointId(one.name))] for one in robot.joints]
    order = [k for here in joints for k in range(here.idx_v, here.idx_v + here.nv)]  # of each of the robot's velocities
    if len(order) != model.nv:
        raise InputError(f"{where} has {model.nv} degrees of freedom, robot '{robot.name}' has {len(order)}")

    def rigid(q: Array, v: Array, a: Array) -> Array:
        position, column = np.empty((len(q), model.nq)), 0
        for joint, here in zip(robot.joints, joints, strict=True):
            width = 7 if joint.kind == "floating" else 1
            own = q[:, column : column + width]
            column += width
            turned = own if here.nq == width else np.hstack([np.cos(own), np.sin(own)])
            position[:, here.idx_q : here.idx_q + here.nq] = turned
        permuted_v, permuted_a = np.empty_like(v), np.empty_like(a)
        permuted_v[:, order], permuted_a[:, order] = v, a
        return pinocchio_adapter.inverse_dynamics(model, position, permuted_v, permuted_a)[:, order]

    rubs = float(bool(robot.effects))
    return LoadedFile(robot, rigid, rubs * np.asarray(model.damping)[order], rubs * np.asarray(model.friction)[order])


# SDF read again -----------------------------------------------------------------------------------
def load_sdf(robot: Robot, path: str | os.PathLike[str]) -> LoadedFile:
    """An SDF file read again, with the robot's gravity; joints of a closed robot's file count from its closed position."""
    description = read_description(path)
    where, again = description.where, robot_from_sdf(description).with_gravity(robot.gravity)
    if set(again.loops.names) != set(robot.loops.names):
        raise InputError(f"{where} closes {', '.join(again.loops.names)}, expected {', '.join(robot.loops.names)}")
    stated = {joint.name: joint.nominal for joint in again.joints}
    _require_joints(robot, stated, where)
    if robot.loops:
        again = replace(again, loops=replace(again.loops, actuated=robot.loops.actuated), described_joints=())
    else:
        held = held_poses(robot, _joints_beside(robot, again), where)
        again = again.lock(
            {joint.name: _position_of(joint, held[joint.name]) for joint in again.joints if joint.name in held}
        )
    if again.n_dof != robot.n_dof:
        raise InputError(f"{where} has {again.n_dof} degrees of freedom, robot '{robot.name}' has {robot.n_dof}")
    damping, friction = np.zeros((2, robot.n_dof))
    for values, symbol in ((damping, "fv"), (friction, "fc")):
        values[robot.driven] = [stated[joint.name].get(symbol, 0.0) for joint in robot.driven_joints]
    # velocities and positions of the robot in the order of the joints of its file
    base = int(robot.floating)
    order = np.array([robot.joint_index(name) for name in again.joint_names[base:]])
    dof = np.concatenate([np.arange(6 * base), order + 5 * base]).astype(int)
    place = np.concatenate([np.arange(7 * base), order + 6 * base]).astype(int)
    closed = closed_position(robot)[[robot.body_index(name) for name in robot.joint_names]] if robot.loops else 0.0

    def rigid(q: Array, v: Array, a: Array) -> Array:
        theirs = np.empty_like(v)
        theirs[:, dof] = inverse_dynamics(again, (q - closed)[:, place], v[:, dof], a[:, dof], effects=False)
        return theirs

    return LoadedFile(as_held(robot, URDF_PLACES), rigid, damping, friction)


# MJCF in MuJoCo -----------------------------------------------------------------------------------
def _position_of(joint: Joint, pose: Array) -> float:
    """Position of a joint with one degree of freedom that holds its link in a pose."""
    motion = inverse_pose(joint.placement) @ pose  # exp([S] q)
    R = motion[:3, :3]
    turn = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    angle = np.arctan2(joint.screw[3:] @ turn, 0.5 * (np.trace(R) - 1.0))
    return float(joint.screw[:3] @ motion[:3, 3] if joint.kind == "prismatic" else angle)


def load_mjcf(robot: Robot, path: str | os.PathLike[str]) -> LoadedFile:
    """An MJCF file as MuJoCo compiles it; of a closed robot the tree alone."""
    import mujoco

    description = read_description(path)
    where = description.where
    model, _ = mujoco_adapter.compiled_file(description.path)
    file = robot_from_mjcf(description)
    if robot.loops:  # the tree itself, whose links and joints the closures tie together
        if file.loops.names != equality_names(robot) or set(file.loops.actuated) != set(robot.loops.actuated):
            raise InputError(f"{where} closes other loops than robot '{robot.name}'")
        file = file.opened
        model.dof_armature[:] = model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    robot = _tree(robot, PLACES)
    _require_joints(robot, file.joint_names, where)
    # what an identified model has: rigid bodies, joint friction, rotors and gravity
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= off.mjDSBL_CONSTRAINT | off.mjDSBL_SPRING | off.mjDSBL_CONTACT
    model.opt.density = model.opt.viscosity = model.body_gravcomp[:] = 0.0
    held = held_poses(robot, _joints_beside(robot, file), where)
    dof, start = np.empty(robot.n_dof, dtype=int), np.array(model.qpos0)
    places: list[
        tuple[int, int, int, int]
    ] = []  # of joints with one degree of freedom: position and velocity here and there
    base = 0
    for j, joint in enumerate(file.joints):
        at_q, at_v = int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
        if joint.name in held:
            start[at_q] = _position_of(joint, held[joint.name])
        elif joint.kind == "floating":
            dof[:6], base = np.arange(at_v, at_v + 6), at_q
        else:
            index = robot.joint_index(joint.name)
            first_q, first_v = (index + 6, index + 5) if robot.floating else (index, index)
            places.append((at_q, at_v, first_q, first_v))
            dof[first_v] = at_v
    damping, loss = np.array(model.dof_damping)[dof], np.array(model.dof_frictionloss)[dof]
    model.dof_damping[:] = 0.0
    there_q, there_v, here_q, here_v = np.array(places, dtype=int).reshape(-1, 4).T

    def rigid(q: Array, v: Array, a: Array) -> Array:
        qpos = np.tile(start, (len(q), 1))
        qvel, qacc = np.zeros((2, len(q), model.nv))
        if robot.floating:
            base_q, base_v, base_a = mujoco_adapter.to_mujoco_motion(robot, q, v, a)
            qpos[:, base : base + 7] = base_q[:, :7]
            qvel[:, dof[:6]], qacc[:, dof[:6]] = base_v[:, :6], base_a[:, :6]
        qpos[:, there_q], qvel[:, there_v], qacc[:, there_v] = q[:, here_q], v[:, here_v], a[:, here_v]
        force = mujoco_adapter.inverse_dynamics(model, qpos, qvel, qacc)[:, dof]
        if robot.floating:
            padded = np.pad(force[:, :6], ((0, 0), (0, robot.n_dof - 6)))
            force[:, :6] = mujoco_adapter.from_mujoco_force(robot, q, padded)[:, :6]
        return force

    return LoadedFile(robot, rigid, damping, loss)


def free_mjcf(path: Path, robot: Robot) -> Any:
    """MuJoCo's model of a file for free runs, without limits of motion; None where other joints than the robot's move, or closures hold."""
    import mujoco

    model, _ = mujoco_adapter.compiled_file(path)
    names = [model.joint(j).name for j in range(model.njnt)]
    if robot.loops or model.nq != model.nv or names != [robot.joint_names[k] for k in mujoco_adapter.mujoco_order(robot)[1]]:
        return None
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    return model


ZERO = 1e-15
"""Numbers of a description below which they are zero: no length, angle, mass or inertia is so small."""


@dataclass(frozen=True)
class Change:
    """One attribute of one element; None where it was not there before, or is not there any more."""

    element: str
    """The nearest named element around it, and its own tag: ``body 'link1' inertial``."""
    attribute: str
    before: str | None
    after: str | None

    @property
    def size(self) -> float:
        """The change of numbers relative to what they were, as it is where they were zero; infinite of other texts, zero of a turn."""
        if self.attribute in ("quat", "rpy"):  # of principal axes, which turn far when moments are nearly equal
            return 0.0
        before, after = (np.array(read_numbers(text or "")) for text in (self.before, self.after))
        if not before.any() and len(after):
            return float(np.linalg.norm(after))
        if before.shape != after.shape or not len(before):
            return math.inf
        return float(np.linalg.norm(after - before) / np.linalg.norm(before))

    def __str__(self) -> str:
        return f"{self.element} {self.attribute}: {_short(self.before)} -> {_short(self.after)}"


def changes_of(robot: Robot, path: Path) -> tuple[Change, ...]:
    """Attributes and texts of elements in which a MJCF, URDF or SDF file differs from the one that the robot was read from.

    Args:
        robot: the robot, which remembers its file.
        path: the file that was written.

    Returns:
        the changes in the order of the file; none where the robot's own file has another format, or is gone.
    """
    if not robot.source.path or not Path(robot.source.path).is_file():
        return ()
    suffix, read = _READERS.get(robot.source.format, ("", None))
    if read is None or suffix != path.suffix:
        return ()
    return tuple(_between(read(read_description(robot.source.path)), read(read_description(path)), ""))


_READERS: Mapping[str, tuple[str, Callable[[Description], Element]]] = {
    "mjcf": (".xml", whole_mjcf),
    "urdf": (".urdf", urdf_root),
    "sdf": (".sdf", sdf_model),
}


def _between(before: Element, after: Element, around: str) -> Iterator[Change]:
    """Changes of two elements of one tag and of what is in them."""
    named = after.get("name")
    place = f"{after.tag} '{named}'" if named else f"{around} {after.tag}".strip()
    nearest = place if named else around
    for attribute in dict.fromkeys((*before.attrib, *after.attrib)):
        old, new = before.get(attribute), after.get(attribute)
        if _differ(old, new):
            yield Change(place, attribute, old, new)
    old, new = ((one.text or "").strip() or None for one in (before, after))
    if _differ(old, new):
        yield Change(nearest, after.tag, old, new)
    left = list(before)
    for child in after:
        twin = next((one for one in left if (one.tag, one.get("name")) == (child.tag, child.get("name"))), None)
        if twin is not None:
            left.remove(twin)
        yield from _between(_empty(child) if twin is None else twin, child, nearest)
    for child in left:
        yield from _between(child, _empty(child), nearest)


def _empty(element: Element) -> Element:
    """The element without what is in it: what it is compared with where only one of the files has it."""
    from xml.etree.ElementTree import Element

    return Element(element.tag, {"name": element.attrib["name"]} if "name" in element.attrib else {})


def _differ(old: str | None, new: str | None) -> bool:
    """Whether two texts are not the same, nor the same numbers; what arithmetic leaves of zero is zero."""
    before, after = ([0.0 if abs(x) < ZERO else x for x in read_numbers(text or "")] for text in (old, new))
    return old != new and not (before and before == after)


def _short(text: str | None) -> str:
    """Numbers with four digits, other text as it is."""
    if text is None:
        return "none"
    values = read_numbers(text)
    return " ".join(f"{value:.4g}" for value in values) if values else text
