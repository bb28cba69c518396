"""The proof of an SDF file: its torque, read again and rebuilt in Pinocchio, against that of the robot."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from dynid.adapters.pinocchio import inverse_dynamics, pinocchio_model, to_pinocchio_position
from dynid.errors import InputError, UnknownNameError
from dynid.export.proof import largest_gap
from dynid.export.sdf import closed_position
from dynid.export.simulator_joint import as_held
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import inverse_dynamics as torque_of
from dynid.robot.effects import Coulomb, Viscous
from dynid.robot.model import Robot
from dynid.robot.sdf import read_sdf


def sdf_parity(robot: Robot, path: str | os.PathLike[str], n_states: int = 100, seed: int = 0) -> float:
    """Largest relative torque difference between the robot and the file, read again and rebuilt in Pinocchio.

    Compared is what SDF holds: rigid bodies, in the robot's gravity, viscous and Coulomb friction.
    """
    if robot.loops:
        return _closed_parity(robot, path, n_states, seed)
    again = read_sdf(path).with_gravity(robot.gravity).with_effects((Viscous(), Coulomb()))
    for name in robot.joint_names:
        if name not in again.joint_names and not (robot.floating and name == robot.joint_names[0]):
            raise UnknownNameError("joint", name, again.joint_names, f"robot file '{path}'")
    if again.n_dof != robot.n_dof:
        raise InputError(f"robot file '{path}' has {again.n_dof} degrees of freedom, robot '{robot.name}' has {robot.n_dof}")
    q, v, a = random_states_within_limits(robot, n_states, seed)
    shift = 1 if robot.floating else 0
    order = np.array([robot.joint_index(name) for name in again.joint_names[shift:]])
    dof = np.concatenate([np.arange(6 * shift), order + 5 * shift]).astype(int)
    place = np.concatenate([np.arange(7 * shift), order + 6 * shift]).astype(int)
    model = pinocchio_model(again, armature=False)
    theirs = np.empty_like(v)
    theirs[:, dof] = inverse_dynamics(model, to_pinocchio_position(again, q[:, place]), v[:, dof], a[:, dof])
    signals = np.hstack([v[:, robot.driven], np.sign(v[:, robot.driven])])
    own = as_held(robot)
    ours = torque_of(own, q, v, a, effects=False)
    for robot_like, total in ((own, ours), (again, theirs)):
        values = robot_like.parameters.as_dict()
        gains = np.array(
            [
                max(values[f"{symbol}{robot_like.joint_index(joint.name) + 1}"], 0.0)
                for symbol in ("fv", "fc")
                for joint in robot.driven_joints
            ]
        )
        products = signals * gains
        total[:, robot.driven] += products[:, : len(robot.driven)] + products[:, len(robot.driven) :]
    return largest_gap(ours, theirs)


def _closed_parity(robot: Robot, path: str | os.PathLike[str], n_states: int, seed: int) -> float:
    """The same of a closed robot, by its own projection: the file's joints count from the closed position."""
    again = read_sdf(path).with_gravity(robot.gravity)
    if set(again.loops.names) != set(robot.loops.names):
        raise InputError(
            f"robot file '{path}' closes {', '.join(again.loops.names)}, expected {', '.join(robot.loops.names)}"
        )
    names = [joint.name for joint in again.joints]
    for joint in robot.joints:
        if joint.name not in names:
            raise UnknownNameError("joint", joint.name, names, f"robot file '{path}'")
    again = replace(again, loops=replace(again.loops, actuated=robot.loops.actuated), described_joints=())
    again = again.with_effects((Viscous(), Coulomb()))
    q, v, a = random_states_within_limits(robot, n_states, seed)
    shift = closed_position(robot)[[robot.body_index(name) for name in robot.joint_names]]
    own = as_held(robot)
    ours, theirs = torque_of(own, q, v, a, effects=False), torque_of(again, q - shift, v, a, effects=False)
    for robot_like, total in ((own, ours), (again, theirs)):
        values = robot_like.parameters.as_dict()
        for k, name in enumerate(robot.joint_names):
            number_of = robot_like.body_index(name) + 1
            for symbol, signal in (("fv", v[:, k]), ("fc", np.sign(v[:, k]))):
                total[:, k] += max(values.get(f"{symbol}{number_of}", 0.0), 0.0) * signal
    return largest_gap(ours, theirs)
