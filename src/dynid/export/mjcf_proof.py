"""The proof of an exported MJCF file: MuJoCo compiles it, and its torques are compared on random states."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from dynid.adapters.mujoco import compile_mjcf, compile_mjcf_file, from_mujoco_force, inverse_dynamics, to_mujoco_motion
from dynid.adapters.mujoco_joints import without_outer_forces
from dynid.adapters.xml import parse_xml, serialize_xml
from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.export.loops import equality_names
from dynid.export.proof import largest_gap
from dynid.export.simulator_joint import as_held
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import inverse_dynamics as torque_of
from dynid.robot.files import read_description
from dynid.robot.joint import Joint
from dynid.robot.mjcf import cut_to_dynamics, expand_includes, robot_from_mjcf
from dynid.robot.model import Robot


def mjcf_parity(robot: Robot, path: str | os.PathLike[str], n_states: int = 100, seed: int = 0) -> float:
    """Largest relative torque difference between the robot and a file that MuJoCo compiles, on random states.

    Compared is what MJCF holds: rigid bodies in the file's own gravity, rotor inertia, viscous and Coulomb friction
    (negative ones, which no simulator takes, as zero). Joints of the file that the robot has locked are held where the
    robot holds them.
    """
    description = read_description(path)
    where = f"robot file '{description.path}'"
    model, _ = compiled_file(description.path)
    file = robot_from_mjcf(description)
    closed = bool(robot.loops)
    if closed:  # the tree itself, whose links and joints the closures tie together
        if file.loops.names != equality_names(robot) or set(file.loops.actuated) != set(robot.loops.actuated):
            return math.inf
        robot, file = robot.opened, file.opened
        model.dof_armature[:] = model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    for name in robot.joint_names:
        if name not in file.joint_names:
            raise UnknownNameError("joint", name, file.joint_names, where)
    without_outer_forces(model)
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
    return largest_gap(torque_of(as_held(robot), q, v, a, effects=not closed), theirs)


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


def compiled_file(path: Path) -> tuple[Any, str]:
    """The file as MuJoCo compiles it, and why only without its looks where that is so (meshes that are missing)."""
    model, problem = compile_mjcf_file(path)
    if model is not None:
        return model, ""
    where = f"robot file '{path}'"
    root = parse_xml(read_description(path).content, where)
    folder = path.resolve().parent
    expand_includes(root, folder, folder, {path.resolve()}, where)
    cut_to_dynamics(root, folder, where)
    return compile_mjcf(serialize_xml(root), where), problem
