"""Limits, margins, and slacks of limits that depend on the pose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.excitation.fourier import FourierTrajectory
from dynid.excitation.gradient import point_speeds
from dynid.excitation.limits import ToolSpeedLimit, TorqueLimit, limits_of, margins_of, pose_limits
from dynid.excitation.tool import tool_place
from dynid.regression.torque import inverse_dynamics
from dynid.robot.read import read_robot
from messages import facts
from problems import ARM_URDF, demo_arm, planar_2r, random_motion, random_tree


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
    assert margins.position.value == pytest.approx(1.0 - (1.0 / w) / 2.5, abs=1e-6)
    assert margins.position.where == "elbow"
    assert margins.velocity.value == pytest.approx(1.0 - 1.0 / 4.0, abs=1e-9)
    assert margins.acceleration.value == pytest.approx(1.0 - w / 30.0, abs=1e-6)
    assert margins.jerk.value == pytest.approx(1.0 - w**2 / 10.0, abs=1e-6)
    assert margins.torque is None
    assert margins.smallest == margins.position.value
    assert margins.as_json()["torque"] is None
    assert margins_of(robot, swing(robot, 5.0), limits).velocity.value < 0.0


def test_torque_margin_counts_the_model_uncertainty():
    robot = demo_arm()
    motion = swing(robot)
    limits = limits_of(robot, torque_uncertainty=0.25)
    tau = inverse_dynamics(robot, *motion.evaluate(motion.grid(2000)))
    expected = 1.0 - 1.25 * (np.abs(tau) / robot.limits("tau_max")).max()
    assert margins_of(robot, motion, limits, 2000).torque.value == pytest.approx(expected)


def test_tool_speed_margin():
    robot = demo_arm()
    limits = limits_of(robot, tool_speed=1.0, tool_point=[0.0, 0.0, 0.1])
    motion = swing(robot)
    q, v, _ = motion.evaluate(motion.grid(500))
    body, point = tool_place(robot, None, [0.0, 0.0, 0.1])
    squared, _ = point_speeds(robot, q, v, body, point)
    assert margins_of(robot, motion, limits, 500).tool_speed.value == pytest.approx(1.0 - np.sqrt(squared.max()))


@pytest.mark.parametrize("kind", ["torque", "tool_speed"])
def test_slacks_and_their_gradients(kind):
    robot = demo_arm("viscous,armature")
    limits = limits_of(robot, tool_speed=2.0)
    limit = pose_limits(robot, limits)[kind]
    q, v, a = random_motion(robot, 3, 1)
    s, pullback = limit.slacks(q, v, a)
    assert (s <= 1.0).all()
    bar = np.random.default_rng(0).normal(size=s.shape)
    bars, h = pullback(bar), 1e-6
    for which, array in enumerate((q, v, a)):
        for place in np.ndindex(array.shape):
            moved = [np.array(part) for part in (q, v, a)]
            moved[which][place] += h
            up, _ = limit.slacks(*moved)
            moved[which][place] -= 2.0 * h
            down, _ = limit.slacks(*moved)
            expected = float((bar * (up - down)).sum()) / (2.0 * h)
            assert bars[which][place] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert (limit.tightened(0.1).slacks(q, v, a)[0] <= s).all()


def test_slack_is_zero_at_the_limit():
    robot = planar_2r()
    q, v, a = random_motion(robot, 1, 2)
    tau = inverse_dynamics(robot, q, v, a)
    slack, _ = TorqueLimit(robot, np.abs(tau[0]), 1.0).slacks(q, v, a)
    np.testing.assert_allclose(slack, 0.0, atol=1e-12)
    squared, _ = point_speeds(robot, q, v, 1, np.zeros(3))
    slack, _ = ToolSpeedLimit(robot, float(np.sqrt(squared[0])), 1, np.zeros(3)).slacks(q, v, a)
    np.testing.assert_allclose(slack, 0.0, atol=1e-12)


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
    assert margins_of(turning, swing(turning), limits, 100).position.where != "joint3"


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


def test_tool_is_the_farthest_fixed_link_or_what_is_named(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM_URDF)
    robot = read_robot(path)
    body, point = tool_place(robot, "camera", [0.0, 0.0, 1.0])
    link = next(link for link in robot.merged if link.name == "camera")
    assert body == link.body
    np.testing.assert_allclose(point, link.placement[:3, :3] @ [0.0, 0.0, 1.0] + link.placement[:3, 3])
    assert tool_place(robot, "upper")[0] == robot.links.index("upper")
    assert tool_place(robot, None)[0] == robot.n_joints - 1
    with pytest.raises(InputError, match=facts("upper", "hand", "link")):
        tool_place(robot, "hand")
    with pytest.raises(InputError, match="2 numbers, expected 3"):
        tool_place(robot, None, [0.0, 1.0])


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


def test_obstacles_are_told_with_flags_that_move_them():
    from dynid.excitation.problem import _remedies

    assert _remedies(["clearance of 'hand' and 'elbow' in 90 %"]) == ""
    assert "--ground none or --ground HEIGHT" in _remedies(["clearance of 'hand' and 'ground' in 52 %"])
    both = _remedies(["clearance of 'ground' and 'hand' in 52 %", "torque of joint 'a' (22, ..) in 24 %"])
    assert both.startswith("; try --ground none")
    assert "--position LOW:HIGH,.." in both
    assert "--torque" in both
