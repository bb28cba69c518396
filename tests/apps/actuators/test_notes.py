"""Sentences on joints that do not move and on names that have two sides."""

from __future__ import annotations

from dynid.apps.actuators.notes import still_notes, symmetry_notes
from dynid.io.demo import demo_robot
from position_logs import small_arm


def test_joints_that_stand_still_are_named() -> None:
    robot = small_arm()
    (said,) = still_notes(robot, {1})
    assert robot.joint_names[1] in said
    assert "--lock" in said


def test_two_sides_are_proposed_only_where_names_have_them() -> None:
    assert symmetry_notes(demo_robot()) == ()
