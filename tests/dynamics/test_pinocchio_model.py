"""Robots rebuilt in Pinocchio: kinematics, positions, frames."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dynid.arrays import Array
from dynid.dynamics.pinocchio_model import (
    inverse_dynamics,
    pinocchio_model,
    to_pinocchio_position,
)
from dynid.errors import InputError
from dynid.model.effects.linear import Armature
from dynid.model.joint import Joint, MergedLink
from dynid.model.robot import Robot, make_robot
from messages import facts
from problems import demo_arm, random_motion, random_tree


def base_pose(q: Array) -> Array:
    pose: Array = pin.SE3(pin.Quaternion(q[3:7]), q[:3]).homogeneous
    return pose


def body_poses(robot: Robot, q: Array) -> list[Array]:
    """Poses of all bodies in the world by the definition ``P exp([S] q)``."""
    poses: list[Array] = []
    positions = list(q[7:] if robot.floating else q)
    for joint in robot.joints:
        local = joint.placement @ base_pose(q) if joint.kind == "floating" else joint.pose(positions.pop(0))
        poses.append((poses[joint.parent] if joint.parent >= 0 else np.eye(4)) @ local)
    return poses


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_body_frames_lie_where_the_screws_put_them(seed: int, floating: bool) -> None:
    robot = random_tree(seed, 7, floating)
    model = pinocchio_model(robot)
    working = model.createData()
    q = random_motion(robot, 1, seed)[0]
    pin.framesForwardKinematics(model, working, to_pinocchio_position(robot, q)[0])
    for link, pose in zip(robot.links, body_poses(robot, q[0]), strict=True):
        placed = working.oMf[model.getFrameId(link, pin.FrameType.BODY)].homogeneous
        np.testing.assert_allclose(placed, pose, atol=1e-13)


def test_joint_pose_is_the_exponential_of_its_screw() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        screw = np.concatenate([rng.normal(size=3), axis])  # any pitch
        joint = Joint("j", "revolute", -1, pin.SE3.Random().homogeneous, screw)
        q = rng.uniform(-3.0, 3.0)
        expected = joint.placement @ pin.exp6(pin.Motion(screw * q)).homogeneous
        np.testing.assert_allclose(joint.pose(q), expected, atol=1e-13)


def test_helical_joints_are_handed_over() -> None:
    screw = np.array([0.1, 0.2, 0.35, 0.0, 0.0, 1.0])
    robot = make_robot("screw", [Joint("j", "continuous", -1, np.eye(4), screw)], [[1, 0, 0, 0.1, 1, 0, 1, 0, 0, 1]])
    model = pinocchio_model(robot)
    working = model.createData()
    pin.framesForwardKinematics(model, working, to_pinocchio_position(robot, [0.7]))
    np.testing.assert_allclose(working.oMf[model.getFrameId("link1")].homogeneous, robot.joints[0].pose(0.7), atol=1e-14)


def test_positions_have_the_shape_that_pinocchio_takes() -> None:
    robot = random_tree(1, 6, True)
    q = random_motion(robot, 9)[0]
    there = to_pinocchio_position(robot, q)
    assert there.shape == (9, pinocchio_model(robot).nq)
    with pytest.raises(InputError, match=facts("(9, 11)", "(any, 12)", "position")):
        to_pinocchio_position(robot, q[:, 1:])


def test_armature_gravity_and_limits_are_handed_over() -> None:
    robot = demo_arm([Armature()])
    model = pinocchio_model(robot)
    np.testing.assert_array_equal(model.armature, [robot.parameters[f"Ia{i}"] for i in range(1, 8)])
    np.testing.assert_array_equal(model.gravity.linear, robot.gravity)
    np.testing.assert_array_equal(model.upperPositionLimit, robot.position_limits[:, 1])
    np.testing.assert_array_equal(model.velocityLimit, robot.limits("dq_max"))
    np.testing.assert_array_equal(model.effortLimit, robot.limits("tau_max"))
    q, v, a = random_motion(robot, 5)
    rotor = inverse_dynamics(model, q, v, a) - inverse_dynamics(pinocchio_model(robot, armature=False), q, v, a)
    np.testing.assert_allclose(rotor, a * model.armature, atol=1e-12)


def test_merged_links_are_frames() -> None:
    placement = np.eye(4)
    placement[:3, 3] = 1.0, 2.0, 3.0
    robot = random_tree(0, 3)
    tip = MergedLink("tip", 2, placement, np.zeros(10))
    robot = make_robot("r", robot.joints, robot.parameters.inertials, merged=[tip])
    model = pinocchio_model(robot)
    working = model.createData()
    q = random_motion(robot, 1)[0]
    pin.framesForwardKinematics(model, working, to_pinocchio_position(robot, q)[0])
    expected = body_poses(robot, q[0])[2] @ placement
    np.testing.assert_allclose(working.oMf[model.getFrameId("tip")].homogeneous, expected, atol=1e-13)


def test_a_body_with_moments_but_no_mass_is_refused() -> None:
    joint = Joint("j", "revolute", -1, np.eye(4), np.array([0, 0, 0, 0, 0, 1.0]))
    robot = make_robot("r", [joint], [[0, 0.1, 0, 0, 1, 0, 1, 0, 0, 1]], links=["ghost"])
    with pytest.raises(InputError, match=facts("ghost", "0.1", "0.0", "link")):
        pinocchio_model(robot)


def test_inconsistent_and_massless_bodies_are_kept_as_they_are() -> None:
    joint = Joint("j", "revolute", -1, np.eye(4), np.array([0, 0, 0, 0, 0, 1.0]))
    for phi in ([-1.0, 0.5, 0, 0, 1, 0, 1, 0, 0, -0.5], [0, 0, 0, 0, 1, 0, 1, 0, 0, 0.7]):
        robot = make_robot("r", [joint], [phi], gravity=(0, 0, 0))
        torque = inverse_dynamics(pinocchio_model(robot), [0.3], [0.0], [2.0])
        np.testing.assert_allclose(torque, [[2.0 * phi[9]]], atol=1e-15)
