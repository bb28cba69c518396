"""Limits of a robot and the margins that motions leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.excitation.gradient import point_speeds
from dynid.excitation.limits import _BY_NAME, excluded_joints, limits_of, margins_of, without_excluded_joints
from dynid.excitation.pose_limits import tool_place
from dynid.excitation.ramps import rest_to_rest
from dynid.excitation.shapes import random_fourier
from dynid.excitation.trajectories import FourierTrajectory, PolynomialTrajectory, SequenceTrajectory
from dynid.io.robots.read import read_robot
from messages import facts
from problems import arm_with_hand_urdf, demo_arm, planar_2r, random_tree


def swing(robot, amplitude=0.3):
    return FourierTrajectory(
        4.0, np.full((robot.n_joints, 1), amplitude), np.zeros((robot.n_joints, 1)), np.zeros(robot.n_joints)
    )


def test_margins_are_the_smallest_fraction_left():
    robot = planar_2r()
    limits = limits_of(robot, jerk=10.0)
    motion = swing(robot, 1.0)
    w = np.pi / 2.0
    margins = margins_of(robot, motion, limits, 4000)
    assert margins.position == pytest.approx(1.0 - (1.0 / w) / 2.5, abs=1e-6)
    assert margins.places["position"][0] == "elbow"
    assert margins.velocity == pytest.approx(1.0 - 1.0 / 4.0, abs=1e-9)
    assert margins.acceleration == pytest.approx(1.0 - w / 30.0, abs=1e-6)
    assert margins.jerk == pytest.approx(1.0 - w**2 / 10.0, abs=1e-6)
    assert margins.torque is None
    assert margins.smallest == margins.position
    assert margins.as_json()["torque"] is None
    assert margins_of(robot, swing(robot, 5.0), limits).velocity < 0.0


def test_torque_margin_counts_the_model_uncertainty():
    robot = demo_arm()
    motion = swing(robot)
    limits = limits_of(robot, torque_uncertainty=0.25)
    tau = inverse_dynamics(robot, *motion.evaluate(motion.grid(2000)))
    expected = 1.0 - 1.25 * (np.abs(tau) / robot.limits("tau_max")).max()
    assert margins_of(robot, motion, limits, 2000).torque == pytest.approx(expected)


def test_tool_speed_margin():
    robot = demo_arm()
    limits = limits_of(robot, tool_speed=1.0, tool_point=[0.0, 0.0, 0.1])
    motion = swing(robot)
    q, v, _ = motion.evaluate(motion.grid(500))
    body, point = tool_place(robot, None, [0.0, 0.0, 0.1])
    squared, _ = point_speeds(robot, q, v, body, point)
    assert margins_of(robot, motion, limits, 500).tool_speed == pytest.approx(1.0 - np.sqrt(squared.max()))


def test_fraction_and_overrides():
    robot = planar_2r()
    half = limits_of(robot, fraction=0.5, acceleration=[1.0, 2.0])
    np.testing.assert_allclose(half.position, [[-1.5, 1.5], [-1.25, 1.25]])
    np.testing.assert_allclose(half.velocity, 2.0)
    np.testing.assert_allclose(half.acceleration, [0.5, 1.0])
    turning = random_tree(1, 6)
    limits = limits_of(turning)
    unlimited = [joint.kind == "continuous" for joint in turning.joints]
    np.testing.assert_allclose(limits.range[unlimited], [[-np.pi, np.pi]] * sum(unlimited))
    assert margins_of(turning, swing(turning), limits, 100).places["position"][0] != "joint3"


def test_limits_that_the_description_lacks_can_be_given():
    robot = planar_2r()
    bare = replace(robot, joints=tuple(replace(j, q_min=-np.inf, q_max=np.inf, dq_max=np.inf) for j in robot.joints))
    with pytest.raises(InputError, match=facts("q_min", "q_max", "--position")):
        limits_of(bare, velocity=1.0)
    with pytest.raises(InputError, match=facts("dq_max", "--velocity")):
        limits_of(bare, position=[-1.0, 1.0])
    limits = limits_of(bare, fraction=0.5, position=[[-1.0, 1.0], [0.0, 2.0]], velocity=[1.0, 2.0], torque=10.0)
    np.testing.assert_allclose(limits.position, [[-0.5, 0.5], [0.5, 1.5]])
    np.testing.assert_allclose(limits.velocity, [0.5, 1.0])
    np.testing.assert_allclose(limits.torque, 5.0)
    assert limits.notes == ()


def test_the_tighter_of_two_limits_holds_and_is_said():
    robot = planar_2r()  # ranges 3 and 2.5, velocity 4
    limits = limits_of(robot, position=[-2.8, 2.8], velocity=[3.0, 5.0])
    np.testing.assert_allclose(limits.position, [[-2.8, 2.8], [-2.5, 2.5]])
    np.testing.assert_allclose(limits.velocity, [3.0, 4.0])
    elbow = robot.joint_names[1]
    assert sum(note.endswith(f"is used for {elbow}") for note in limits.notes) == 2
    with pytest.raises(InputError, match=facts("3.5", "4", "-2.5", "2.5")):
        limits_of(robot, position=[3.5, 4.0])
    with pytest.raises(InputError, match=facts("3", "2", "position")):
        limits_of(robot, position=[1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=facts("3", "2", "velocity")):
        limits_of(robot, velocity=[1.0, 2.0, 3.0])


def test_notes_and_refusals():
    robot = demo_arm()
    bare = robot.with_parameters(robot.parameters.with_values(np.zeros(len(robot.parameters))))
    assert any("no inertial parameters" in note for note in limits_of(bare).notes)
    assert margins_of(bare, swing(bare), limits_of(bare), 50).torque is None
    free = replace(robot, joints=tuple(replace(joint, ddq_max=np.inf) for joint in robot.joints))
    assert any("no acceleration limit" in note for note in limits_of(free).notes)
    with pytest.raises(InputError, match="fraction of the limits is 0"):
        limits_of(robot, fraction=0.0)
    with pytest.raises(InputError, match=facts("2", "7", "limit")):
        limits_of(robot, jerk=[1.0, 2.0])
    with pytest.raises(InputError, match="acceleration limit is -1"):
        limits_of(robot, acceleration=-1.0)
    with pytest.raises(InputError, match="tool's speed is 0"):
        limits_of(robot, tool_speed=0.0)
    with pytest.raises(InputError, match=r"uncertainty of the torque is -0\.1"):
        limits_of(robot, torque_uncertainty=-0.1)
    unlimited = replace(robot, joints=(replace(robot.joints[0], dq_max=np.inf), *robot.joints[1:]))
    with pytest.raises(InputError, match="no velocity limit"):
        limits_of(unlimited)


def test_margins_look_once_at_what_repeats_and_say_when():
    robot = planar_2r()
    motion = random_fourier(robot, 4.0, 3, fraction=0.8)
    limits = limits_of(robot)
    whole = rest_to_rest(robot, motion, limits, periods=5)
    found = margins_of(robot, whole, limits, 8000)
    assert found.n_times < 2500
    every = np.linspace(0.0, whole.duration_s, 40_001)
    v = whole.derivative(every, 1)
    assert found.velocity == pytest.approx((1.0 - np.abs(v) / limits.velocity).min(), abs=1e-4)
    joint = robot.joint_index(found.places["velocity"][0])
    there = np.abs(whole.derivative(found.places["velocity"][1], 1))[0, joint]
    assert found.velocity == pytest.approx(1.0 - there / limits.velocity[joint], abs=1e-9)
    last = SequenceTrajectory((whole.pieces[1], whole.pieces[1], half_ramp(whole)))
    found = margins_of(robot, last, replace(limits, acceleration=np.full(2, 1e-3)), 4000)
    there = np.abs(last.derivative(found.places["acceleration"][1], 2)).max()
    assert found.acceleration == pytest.approx(1.0 - there / 1e-3, rel=1e-6)
    assert found.places["acceleration"][1] > 2.0 * motion.duration_s


def half_ramp(whole):
    """The way out of a motion, in so short a time that its acceleration is the largest of all."""
    q, v, a = (part[0] for part in whole.pieces[1].evaluate([0.0]))
    return PolynomialTrajectory.between(0.05, (q, v, a), (q, 0.0 * q, 0.0 * q))


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(arm_with_hand_urdf())
    return path


def test_fingers_wheels_and_followers_are_held(urdf: Path) -> None:
    robot = read_robot(urdf, "none")
    idle = excluded_joints(robot)
    assert set(idle) == {"finger_1", "left_wheel"}  # claw follows finger_1 and stands still with it
    held, told = without_excluded_joints(robot)
    assert held.joint_names == ("pan_joint", "lift_joint")
    assert held.locked["claw"] == held.locked["finger_1"]
    assert not held.loops
    assert "--move" in told
    assert "left_wheel (by name: wheel); finger_1 (by name: finger)" in told
    asked = without_excluded_joints(robot, ["finger_1"])[0]
    assert set(asked.joint_names) == {"pan_joint", "lift_joint", "finger_1"}
    assert without_excluded_joints(robot, ["all"]) == (robot, "")


def test_fingers_of_a_hand_are_told_from_joints_of_an_arm():
    """As TIAGo and other hands call them; a ring or an index alone is no finger."""
    fingers = (
        "hand_index_flex_1_joint",
        "hand_mrl_joint",
        "left_hand_little_abd_joint",
        "hand_ring_joint",
        "r_thumb_1",
        "finger1",
    )
    assert [name for name in fingers if not _BY_NAME.search(name)] == []
    arm_with_hand = (
        "arm_7_joint",
        "wrist_index",
        "ring_axis",
        "hand_joint",
        "panda_hand_joint",
        "middle_joint",
        "spring_1",
        "hand_ringer",
    )
    assert [name for name in arm_with_hand if _BY_NAME.search(name)] == []
