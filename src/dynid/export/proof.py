"""The proof of an exported file: load it in another library and compare torques on random states."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.adapters.pinocchio import inverse_dynamics as file_dynamics
from dynid.adapters.pinocchio_urdf import body_frames, load_urdf, set_inertia, with_joints_held
from dynid.adapters.xml import parse_xml
from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.inertia import change_of_frame
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import inverse_dynamics
from dynid.robot.files import read_description
from dynid.robot.model import Robot
from dynid.robot.urdf import link_phi

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

PARITY = 1e-9
"""Largest relative torque difference with which an exported file counts as proven."""

SMALLEST_SHARE = 1e-4
"""Torques of a joint are compared with its own largest, but with no less than this share of the robot's largest."""


def torque_parity(robot: Robot, path: str | os.PathLike[str], n_states: int = 100, seed: int = 0) -> float:
    """Largest relative difference of rigid-body torque between the robot and a URDF file that Pinocchio loads.

    States are random within the robot's limits. Joints of the file that the robot has locked are held where the robot
    holds them. Gravity is the robot's, because URDF has none.
    """
    model, _, where = _loaded(robot, path)
    return _parity(robot, model, where, n_states, seed)


def why_unequal(robot: Robot, path: str | os.PathLike[str], n_states: int = 100, seed: int = 0) -> str:
    """What makes Pinocchio find other torques in a URDF file than the robot's; empty where that is not known.

    Pinocchio adds links in ``(m, c, I_C)``, with ``c = (m_1 c_1 + m_2 c_2) / max(m_1 + m_2, 2e-16)``, which throws away the
    centre of a body whose mass is not positive. With the links added in ``(m, m c, I)`` the file shows what it holds.
    """
    model, root, where = _loaded(robot, path)
    own = {link.get("name", ""): link_phi(link, f"link '{link.get('name')}' in {where}") for link in root.findall("link")}
    whole = np.zeros((model.njoints, 10))
    light: dict[int, list[str]] = {}
    for frame in body_frames(model):
        phi = own.get(frame.link)
        if phi is not None:
            whole[frame.joint] += change_of_frame(frame.rotation, frame.translation) @ phi
            if phi[0] <= 0.0 and phi.any():
                light.setdefault(frame.joint, []).append(f"{frame.link} has {phi[0]:.4g} kg")
    light = {i: names for i, names in light.items() if i > 0 and whole[i, 0] != 0.0}
    for i in light:
        set_inertia(model, i, whole[i])
    gap = _parity(robot, model, where, n_states, seed)
    if not (light and gap <= PARITY):
        return ""
    masses = ", ".join(name for names in light.values() for name in names)
    return (
        f"Pinocchio misplaces the centre of links whose mass is not positive ({masses}); the numbers in the file are those "
        f"identified (torque differs by {gap:.1e} with the links added up exactly), but only programs that can hold such links "
        "can use it"
    )


def _loaded(robot: Robot, path: str | os.PathLike[str]) -> tuple[Any, Element, str]:
    """Pinocchio's model with the robot's joints alone, the file's elements, and what messages call it."""
    robot = robot.opened
    description = read_description(path)
    where = f"robot file '{description.path}'"
    root = parse_xml(description.content, where)
    model = _load(Path(path), robot, where)
    for i in range(robot.n_bodies):
        _model_joint(model, robot, i, where)  # names what is missing before anything is held
    return _reduced(model, robot, root, where), root, where


def _parity(robot: Robot, model: Any, where: str, n_states: int, seed: int) -> float:
    robot = robot.opened  # URDF holds the tree of a closed robot; its closures are in the side file
    model.gravity.linear = np.array(robot.gravity)
    model.armature[:] = 0.0
    order = _velocity_order(model, robot, where)
    q, v, a = random_states_within_limits(robot, n_states, seed)
    ours = inverse_dynamics(robot, q, v, a, effects=False)
    position = _position(model, robot, q)
    permuted_v, permuted_a = np.empty_like(v), np.empty_like(a)
    permuted_v[:, order], permuted_a[:, order] = v, a
    return largest_gap(ours, file_dynamics(model, position, permuted_v, permuted_a)[:, order])


def largest_gap(ours: Array, theirs: Array, reference: Array | None = None) -> float:
    """Largest difference of torques ``(states, joints)`` relative to ``ours`` or a reference; see :data:`SMALLEST_SHARE`."""
    largest = np.abs(ours if reference is None else reference).max(axis=0)
    scale = np.maximum(largest, SMALLEST_SHARE * largest.max())
    if not np.isfinite(theirs).all():
        return math.inf  # numbers that overflowed are as far away as can be, not unknown
    if largest.max() == 0.0:
        return float(np.abs(theirs).max())
    return float((np.abs(theirs - ours) / scale).max())


def _load(path: Path, robot: Robot, where: str) -> Any:
    # from where a floating base is measured is no part of URDF
    unnamed_base = robot.floating and "floating" not in _joint_types(path)
    return load_urdf(path, where, robot.joints[0].placement if unnamed_base else None)


def _joint_types(path: Path) -> set[str]:
    root = parse_xml(path.read_bytes(), f"robot file '{path}'")
    return {joint.get("type", "") for joint in root.findall("joint")}


def _reduced(model: Any, robot: Robot, root: Element, where: str) -> Any:
    """The model with the joints that the robot lacks held in the pose in which the robot merged their links."""
    kept = set(robot.joint_names)
    extra = [i for i in range(1, model.njoints) if model.names[i] not in kept and not _is_base(model, i, robot)]
    if not extra:
        return model
    child = {joint.get("name", ""): _link(joint, "child") for joint in root.findall("joint")}
    poses = {name: (body, np.eye(4)) for body, name in enumerate(robot.links)}
    poses |= {link.name: (link.body, np.array(link.placement)) for link in robot.merged}
    held: dict[int, Array] = {}
    for i in extra:
        name = model.names[i]
        above = model.names[model.parents[i]]
        body, pose = poses.get(child.get(name, ""), (None, np.eye(4)))
        # the ground, or a floating base that the file does not name
        outermost = (0 if model.parents[i] > 0 else -1, np.eye(4))
        above_body, above_pose = poses.get(child[above], (None, np.eye(4))) if above in child else outermost
        if body is None or body != above_body:
            raise InputError(f"joint '{name}' in {where} is neither one of robot '{robot.name}' nor locked in it")
        held[i] = np.asarray(np.linalg.inv(above_pose) @ pose)
    return with_joints_held(model, held)


def _is_base(model: Any, i: int, robot: Robot) -> bool:
    return bool(robot.floating and i == 1 and model.joints[i].nv == 6)


def _link(joint: Element, end: str) -> str:
    element = joint.find(end)
    return "" if element is None else element.get("link", "")


def _velocity_order(model: Any, robot: Robot, where: str) -> Array:
    """Where each of the robot's velocities stands in the model's."""
    order: list[int] = []
    for i, joint in enumerate(robot.joints):
        number = _model_joint(model, robot, i, where)
        start = model.joints[number].idx_v
        order.extend(range(start, start + joint.n_dof))
    if len(order) != model.nv:
        raise InputError(f"{where} has {model.nv} degrees of freedom, robot '{robot.name}' has {len(order)}")
    return np.array(order)


def _model_joint(model: Any, robot: Robot, i: int, where: str) -> int:
    if robot.joints[i].kind == "floating":
        return 1
    name = robot.joints[i].name
    if not model.existJointName(name):
        raise UnknownNameError("joint", name, list(model.names)[1:], where)
    return int(model.getJointId(name))


def _position(model: Any, robot: Robot, q: Array) -> Array:
    """Positions in the model's order and form: cosine and sine where it keeps two numbers."""
    position = np.empty((len(q), model.nq))
    column = 0
    for i, joint in enumerate(robot.joints):
        number = _model_joint(model, robot, i, "the file")
        start, width = model.joints[number].idx_q, model.joints[number].nq
        if joint.kind == "floating":
            position[:, start : start + 7] = q[:, column : column + 7]
            column += 7
            continue
        angle = q[:, column]
        position[:, start : start + width] = (
            angle[:, None] if width == 1 else np.stack([np.cos(angle), np.sin(angle)], axis=1)
        )
        column += 1
    return position
