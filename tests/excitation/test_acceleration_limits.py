"""Limits that a description lacks: files of limits, well-known arms, and what drives can give by Pinocchio's mass matrix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import dynid
from dynid.dynamics.pinocchio_model import pinocchio_model, to_pinocchio_position
from dynid.errors import InputError
from dynid.excitation.acceleration_limits import RISE_S, derived_acceleration, known_arm, random_poses, read_robot_limits
from messages import facts
from problems import demo_arm

MOVEIT = """
/**:
  ros__parameters:
    joint_limits:
      {first}: {{has_velocity_limits: true, max_velocity: 1.5, has_acceleration_limits: false, max_acceleration: 9.0}}
      {second}: {{max_acceleration: 3.75, max_jerk: 100, max_effort: 40, min_position: -1.0, max_position: 0.5}}
"""


def test_derived_accelerations_are_those_of_the_drive_in_the_heaviest_pose():
    robot = demo_arm(effects="none")
    speed, torque = np.full(robot.n_joints, 50.0), np.full(robot.n_joints, 60.0)
    found = derived_acceleration(robot, speed, torque)
    model = pinocchio_model(robot)
    working = model.createData()
    inertia, gravity = [], []
    for q in to_pinocchio_position(robot, random_poses(robot, 100)):
        inertia.append(np.diag(pin.crba(model, working, q)).copy())
        gravity.append(np.abs(pin.computeGeneralizedGravity(model, working, q)))
    left = np.maximum(60.0 - np.max(gravity, axis=0), 0.2 * 60.0)
    np.testing.assert_allclose(found, np.minimum(left / np.max(inertia, axis=0), 50.0 / RISE_S), rtol=1e-9)


def test_what_is_not_known_stays_unlimited():
    robot = demo_arm(effects="none")
    torque = np.full(robot.n_joints, 60.0)
    torque[2] = np.inf
    assert np.flatnonzero(np.isinf(derived_acceleration(robot, np.ones(robot.n_joints), torque))).tolist() == [2]
    bare = robot.with_parameters(dict.fromkeys(robot.parameters.names, 0.0))
    assert np.isinf(derived_acceleration(bare, np.ones(robot.n_joints), np.full(robot.n_joints, 60.0))).all()


@pytest.mark.parametrize(
    ("name", "found"), [("panda", "Panda"), ("franka_emika_panda", "Panda"), ("fr3", "Research 3"), ("pandas_box", "Panda")]
)
def test_well_known_arms_are_told_by_name_and_number_of_joints(name, found):
    robot = replace(demo_arm(effects="none"), name=name)
    assert robot.n_joints == 7
    assert found in known_arm(robot).name
    assert known_arm(robot.only(robot.joint_names[:6])) is None
    assert known_arm(replace(robot, name="arm")) is None


def test_a_limits_file_of_moveit_or_ros2_control(tmp_path: Path):
    robot = demo_arm(effects="none")
    file = tmp_path / "joint_limits.yaml"
    file.write_text(MOVEIT.format(first=robot.joint_names[0], second=robot.joint_names[1]))
    limits = read_robot_limits(file, robot)
    assert limits["velocity"].tolist() == [1.5] + [np.inf] * 6
    assert limits["acceleration"].tolist() == [np.inf, 3.75] + [np.inf] * 5  # the first is switched off
    assert limits["position"][1].tolist() == [-1.0, 0.5]
    assert (limits["jerk"][1], limits["torque"][1]) == (100.0, 40.0)
    found = dynid.design_excitation(robot, robot_limits=str(file), shape="sinusoids", period=5.0, collision=False)
    q, v, a = found.playable.evaluate(found.playable.grid(4000))
    assert -1.0 <= q[:, 1].min() < q[:, 1].max() <= 0.5
    assert np.abs(v[:, 0]).max() <= 0.7 * 1.5 + 1e-9
    assert np.abs(a[:, 1]).max() <= 0.7 * 3.75 + 1e-9


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("l.yaml", "joint_limits: {other: {max_velocity: 1}}", ("other", "names no joint")),
        ("l.yaml", "a: [", ("not valid YAML",)),
        ("l.yaml", "nothing: 1", ("joint_limits",)),
        ("l.toml", "[joint_limits.shoulder_yaw]\nmax_velocity = -1", ("shoulder_yaw", "max_velocity", "-1", "positive")),
        ("l.txt", "", (".yaml", ".toml")),
    ],
)
def test_a_bad_limits_file_is_one_sentence(tmp_path: Path, name, text, told):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InputError, match=facts(*told)):
        read_robot_limits(file, demo_arm(effects="none"))


def test_a_robot_without_any_acceleration_limit_is_told_the_flag(tmp_path: Path):
    robot = demo_arm(effects="none")
    joints = tuple(replace(joint, ddq_max=np.inf, tau_max=np.inf) for joint in robot.joints)
    with pytest.raises(InputError, match=facts("shoulder_yaw", "--acceleration", "--robot-limits")):
        dynid.design_excitation(replace(robot, joints=joints))
