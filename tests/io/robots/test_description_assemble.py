"""Links and joints of a file become a robot: numbering, merged links, refusals, limits that are lacking."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.io.robots.description import DescribedJoint, assemble_robot, limit_notes, require_limits, walk_tree
from dynid.model.inertia import change_of_frame
from dynid.model.poses import make_pose, rotation_from_rpy
from dynid.model.robot import Source

ABOUT_Z = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
BODY = np.array([2.0, 0.1, 0.2, 0.3, 1.0, 0.0, 1.1, 0.0, 0.0, 1.2])
SHIFT = make_pose(rotation_from_rpy(0.1, 0.2, 0.3), [0.1, 0.2, 0.3])


def hinge(name: str, parent: str | None, child: str, **limits: float) -> DescribedJoint:
    return DescribedJoint(name, "revolute", parent, child, SHIFT, ABOUT_Z, limits)


def fixed(parent: str | None, child: str) -> DescribedJoint:
    return DescribedJoint("", "fixed", parent, child, SHIFT)


def test_a_branch_is_numbered_to_its_end_before_the_next_one() -> None:
    joints = [hinge("b", "base", "B"), hinge("a", "base", "A"), fixed(None, "base"), hinge("c", "B", "C")]
    assert [joint.child for joint in walk_tree(joints)] == ["base", "B", "C", "A"]
    robot = assemble_robot("r", joints, dict.fromkeys(("base", "A", "B", "C"), BODY), Source(), "file 'r'")
    assert robot.joint_names == ("b", "c", "a")
    assert [joint.parent for joint in robot.joints] == [-1, 0, -1]
    np.testing.assert_allclose(robot.joints[0].placement, SHIFT @ SHIFT)
    np.testing.assert_allclose(robot.joints[1].placement, SHIFT)


def test_links_on_fixed_joints_are_added_to_what_carries_them() -> None:
    joints = [hinge("a", None, "A"), fixed("A", "tool"), fixed("tool", "tip"), hinge("b", "tip", "B")]
    robot = assemble_robot("r", joints, dict.fromkeys(("A", "tool", "tip", "B"), BODY), Source(), "file 'r'")
    assert [(link.name, link.body) for link in robot.merged] == [("tool", 0), ("tip", 0)]
    twice = SHIFT @ SHIFT
    expected = BODY + sum(change_of_frame(pose[:3, :3], pose[:3, 3]) @ BODY for pose in (SHIFT, twice))
    np.testing.assert_allclose(robot.parameters.inertials[0], expected)
    np.testing.assert_allclose(robot.joints[1].placement, twice @ SHIFT)
    np.testing.assert_array_equal(robot.parameters.inertials[1], BODY)


def test_what_is_no_tree_or_does_not_move_is_refused() -> None:
    circle = [hinge("a", None, "A"), hinge("b", "C", "B"), hinge("c", "B", "C")]
    with pytest.raises(InputError, match="file 'r' is cyclic: links B, C are each other's parents"):
        assemble_robot("r", circle, dict.fromkeys("ABC", BODY), Source(), "file 'r'")
    with pytest.raises(InputError, match="file 'r' has no moving joint"):
        assemble_robot("r", [fixed(None, "A")], {"A": BODY}, Source(), "file 'r'")


def test_limits_that_are_lacking_are_noted_or_refused() -> None:
    joints = [hinge("a", None, "A", q_min=-1.0, q_max=1.0, dq_max=2.0), hinge("b", "A", "B", dq_max=2.0)]
    robot = assemble_robot("r", joints, dict.fromkeys("AB", BODY), Source(), "file 'r'")
    assert limit_notes(robot.joints) == ["no position limit: b", "no torque limit: every joint"]
    require_limits(robot, ["velocity"])
    with pytest.raises(InputError, match=r"no torque limit \(tau_max\) on joints a, b; expected a finite one"):
        require_limits(robot, ["torque"])
    with pytest.raises(InputError, match=r"no position limit \(q_min and q_max\) on joint b;"):
        require_limits(robot)
