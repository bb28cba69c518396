"""Limits that depend on the pose: slacks, their gradients, and where the tool is."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.pinocchio_model import pinocchio_model, to_pinocchio_position
from dynid.errors import InputError
from dynid.excitation.gradient import point_speeds
from dynid.excitation.limits import limits_of, pose_limits
from dynid.excitation.pose_limits import ToolSpeedLimit, TorqueLimit, tool_path, tool_place
from dynid.io.robots.read import read_robot
from messages import facts
from problems import ARM_URDF, demo_arm, planar_2r, random_motion


def test_tool_path_is_that_of_pinocchio():
    robot = demo_arm()
    q, _, _ = random_motion(robot, 3, 5)
    model = pinocchio_model(robot)
    working = model.createData()
    place = model.frames[model.getFrameId(robot.links[-1])]
    expected = []
    for position in to_pinocchio_position(robot, q):
        pin.forwardKinematics(model, working, position)
        expected.append((working.oMi[place.parentJoint] * place.placement).act(np.array([0.0, 0.1, 0.2])))
    np.testing.assert_allclose(tool_path(robot, q, robot.n_joints - 1, [0.0, 0.1, 0.2]), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["torque", "tool_speed", "tool_room"])
def test_slacks_and_their_gradients(kind):
    robot = demo_arm("viscous,armature")
    limits = limits_of(robot, tool_speed=2.0, tool_room=[[-2.0, 1.5], [-1.5, 2.0], [-1.0, 2.0]])
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
