"""Motion of frames from that of the joints, against Pinocchio and against finite differences."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import dynid
from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.dynamics.regressors import body_regressor
from dynid.errors import InputError
from dynid.model.frames import (
    Frame,
    ProperAcceleration,
    SpatialAcceleration,
    frame_named,
    frame_poses,
    frames_of,
    link_motion,
)
from dynid.model.joint import axis_point
from dynid.model.poses import pose_from_numbers
from messages import facts
from problems import random_motion, random_pose, random_tree


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("body", [0, 3, 5])
def test_is_pinocchios(floating, body):
    robot = random_tree(body + 3, 6, floating, kinds=("revolute", "prismatic"))
    q, v, a = random_motion(robot, 4, body)
    frame = Frame("sensor", body, random_pose(np.random.default_rng(body)))
    motion = link_motion(robot, q, v, a, frame)
    model = pinocchio_model(robot)
    # Pinocchio's joint frame sits on the axis, the body's need not
    pose = pin.SE3(frame.placement[:3, :3], frame.placement[:3, 3] - axis_point(robot.joints[body]))
    place = model.addFrame(
        pin.Frame("sensor", model.getJointId(robot.joint_names[body]), 0, pose, pin.FrameType.OP_FRAME), False
    )
    for k in range(4):
        data = model.createData()
        pin.forwardKinematics(model, data, q[k], v[k], a[k])
        pin.updateFramePlacements(model, data)
        R = data.oMf[place].rotation
        classical = pin.getFrameClassicalAcceleration(model, data, place, pin.LOCAL)
        spatial = pin.getFrameAcceleration(model, data, place, pin.LOCAL)
        fall = R.T @ robot.gravity
        np.testing.assert_allclose(motion.rotation[k], R, atol=1e-12)
        np.testing.assert_allclose(motion.position[k], data.oMf[place].translation, atol=1e-12)
        np.testing.assert_allclose(motion.twist[k], pin.getFrameVelocity(model, data, place, pin.LOCAL).vector, atol=1e-11)
        np.testing.assert_allclose(motion.proper.linear[k], classical.linear - fall, atol=1e-10)
        np.testing.assert_allclose(motion.spatial.linear[k], spatial.linear - fall, atol=1e-10)
        np.testing.assert_allclose(motion.proper.angular[k], spatial.angular, atol=1e-10)


def test_the_two_accelerations_give_one_wrench_and_cannot_be_mistaken():
    robot = random_tree(4, 5)
    motion = link_motion(robot, *random_motion(robot, 20), robot.links[-1])
    by_type = body_regressor(motion.spatial, motion.twist)
    np.testing.assert_allclose(by_type, body_regressor(motion.proper, motion.twist), atol=1e-11)
    plain = np.hstack([motion.spatial.linear, motion.spatial.angular])
    np.testing.assert_allclose(by_type, body_regressor(plain, motion.twist), atol=1e-11)
    # what the types prevent: an accelerometer's reading taken as spatial is another wrench
    mistaken = body_regressor(SpatialAcceleration(motion.proper.linear, motion.proper.angular), motion.twist)
    assert np.abs(mistaken - by_type).max() > 0.1 * np.abs(by_type).max()


def test_there_and_back():
    robot = random_tree(1, 3)
    motion = link_motion(robot, *random_motion(robot, 5), "link3")
    back = motion.proper.spatial(motion.twist).proper(motion.twist)
    np.testing.assert_allclose(back.linear, motion.proper.linear, atol=1e-12)
    assert isinstance(back, ProperAcceleration)


def test_frames_of_a_description_are_its_links_and_what_is_fixed_to_them(tmp_path):
    robot = dynid.demo_robot()
    locked = robot.lock({robot.joint_names[-1]: 0.3})
    assert robot.links[-1] in frames_of(locked)
    frame = frame_named(locked, robot.links[-1])
    assert frame.body == locked.n_joints - 1
    q = np.full((1, 7), 0.3)
    zero = np.zeros((1, 7))
    whole = link_motion(robot, q, zero, zero)
    cut = link_motion(locked, q[:, :6], zero[:, :6], zero[:, :6], robot.links[-1])
    np.testing.assert_allclose(cut.rotation, whole.rotation, atol=1e-12)
    np.testing.assert_allclose(cut.position, whole.position, atol=1e-12)


def test_poses_are_those_of_a_urdf():
    pose = pose_from_numbers([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    np.testing.assert_allclose(pose[:3, :3], pin.rpy.rpyToMatrix(0.4, 0.5, 0.6), atol=1e-12)
    np.testing.assert_array_equal(pose[:3, 3], [0.1, 0.2, 0.3])


def test_bad_frames_and_motion_are_refused():
    robot = random_tree(2, 4)
    with pytest.raises(InputError, match=facts("frame", "hand", "link1")):
        frame_named(robot, "hand")
    with pytest.raises(InputError, match=facts("q", "(1, 3)", "4")):
        link_motion(robot, np.zeros((1, 3)), np.zeros((1, 4)), np.zeros((1, 4)), "link1")
    with pytest.raises(InputError, match=facts("5", "expected 3")):
        pose_from_numbers(np.zeros(5))


def test_a_robot_with_two_ends_has_no_last_link():
    robot = dynid.demo_robot()
    finger = dynid.Joint("finger", "prismatic", robot.n_joints - 2, np.eye(4), [1, 0, 0, 0, 0, 0])
    forked = dynid.make_robot(
        "forked",
        [*robot.joints, finger],
        np.vstack([robot.parameters.inertials, np.zeros(10)]),
        links=[*robot.links, "right_finger"],
    )
    with pytest.raises(InputError, match=facts("2 links", "right_finger", "--frame")):
        frame_named(forked)


@pytest.mark.parametrize("floating", [False, True])
def test_poses_alone_are_those_of_the_motion(floating: bool) -> None:
    robot = random_tree(5, 6, floating=floating)
    q, v, a = random_motion(robot, 4)
    frame = Frame("tool", 5, pose_from_numbers([0.1, -0.2, 0.3, 0.4, 0.5, -0.6]))
    whole = link_motion(robot, q, v, a, frame)
    rotation, position = frame_poses(robot, q, frame.body, frame.placement)
    np.testing.assert_allclose(rotation, whole.rotation, atol=1e-13)
    np.testing.assert_allclose(position, whole.position, atol=1e-13)
