"""Laws of robots: what must hold for any tree, whatever its joints and frames."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dynid.arrays import Array
from dynid.dynamics.pinocchio_model import inverse_dynamics, pinocchio_model, to_pinocchio_position
from dynid.io.robots.description import Description
from dynid.io.robots.mjcf_new import mjcf_text
from dynid.io.robots.mjcf_read import robot_from_mjcf
from dynid.model.inertia import change_of_frame
from dynid.model.robot import Robot, make_robot
from problems import random_motion, random_phi, random_pose, random_tree

seeds = st.integers(0, 2**16)


def torque(robot: Robot, q: Array, v: Array, a: Array) -> Array:
    return inverse_dynamics(pinocchio_model(robot), to_pinocchio_position(robot, q), v, a)


def inverse(pose: Array) -> Array:
    return np.linalg.inv(pose)


def adjoint(pose: Array, screw: Array) -> Array:
    """Screw (linear, angular) seen from a frame in which its own frame has this pose."""
    R, p = pose[:3, :3], pose[:3, 3]
    return np.concatenate([R @ screw[:3] + np.cross(p, R @ screw[3:]), R @ screw[3:]])


@given(seeds)
def test_torques_do_not_depend_on_the_choice_of_body_frames(seed: int) -> None:
    """T_i -> A_parent^-1 T_i A_i with phi_i -> X(A_i^-1) phi_i is the same robot."""
    robot = random_tree(seed, 5)
    rng = np.random.default_rng(seed + 1)
    frames = [random_pose(rng) for _ in robot.joints]
    joints, inertials = [], []
    for i, joint in enumerate(robot.joints):
        above = inverse(frames[joint.parent]) if joint.parent >= 0 else np.eye(4)
        back = inverse(frames[i])
        joints.append(replace(joint, placement=above @ joint.placement @ frames[i], screw=adjoint(back, joint.screw)))
        inertials.append(change_of_frame(back[:3, :3], back[:3, 3]) @ robot.parameters.inertials[i])
    moved = make_robot("moved", joints, inertials, gravity=robot.gravity)
    motion = random_motion(robot, 3, seed)
    expected = torque(robot, *motion)
    np.testing.assert_allclose(torque(moved, *motion), expected, atol=1e-10 * np.abs(expected).max())


@given(seeds)
def test_turning_the_world_turns_nothing(seed: int) -> None:
    """Gravity and the roots turned together: the same torques."""
    robot = random_tree(seed, 4)
    turn = random_pose(np.random.default_rng(seed + 1))
    joints = [replace(j, placement=turn @ j.placement) if j.parent < 0 else j for j in robot.joints]
    turned = make_robot("turned", joints, robot.parameters.inertials, gravity=turn[:3, :3] @ robot.gravity)
    motion = random_motion(robot, 3, seed)
    expected = torque(robot, *motion)
    np.testing.assert_allclose(torque(turned, *motion), expected, atol=1e-10 * np.abs(expected).max())


@given(seeds, st.floats(-2.0, 2.0))
def test_locking_is_rigid_merging(seed: int, position: float) -> None:
    """A joint held still carries the same torque as its link merged into its parent."""
    robot = random_tree(seed, 5)
    name = robot.joint_names[seed % 4 + 1]
    i = robot.joint_index(name)
    q, v, a = random_motion(robot, 3, seed)
    q[:, i], v[:, i], a[:, i] = position, 0.0, 0.0
    rest = [j for j in range(5) if j != i]
    expected = torque(robot, q, v, a)[:, rest]
    cut = torque(robot.lock({name: position}), q[:, rest], v[:, rest], a[:, rest])
    np.testing.assert_allclose(cut, expected, atol=1e-10 * np.abs(expected).max())


@given(seeds)
def test_torque_is_linear_in_the_inertial_parameters(seed: int) -> None:
    robot = random_tree(seed, 4)
    rng = np.random.default_rng(seed + 1)
    other = make_robot("other", robot.joints, [random_phi(rng) for _ in robot.joints], gravity=robot.gravity)
    both = make_robot("both", robot.joints, robot.parameters.inertials + other.parameters.inertials, gravity=robot.gravity)
    motion = random_motion(robot, 3, seed)
    together = torque(both, *motion)
    np.testing.assert_allclose(
        torque(robot, *motion) + torque(other, *motion), together, atol=1e-10 * np.abs(together).max()
    )


@given(seeds)
def test_mjcf_written_and_read_is_the_same_robot(seed: int) -> None:
    robot = random_tree(seed, 5)
    again = robot_from_mjcf(Description(Path("tree.xml"), mjcf_text(robot).encode()))
    # bodies are numbered depth first by MuJoCo, so joints may stand in another order
    order = [robot.joint_index(name) for name in again.joint_names]
    q, v, a = random_motion(robot, 3, seed)
    expected = torque(robot, q, v, a)[:, order]
    np.testing.assert_allclose(
        torque(again, q[:, order], v[:, order], a[:, order]), expected, atol=1e-10 * np.abs(expected).max()
    )
