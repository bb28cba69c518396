"""Written files against the robot: proven where they hold it, and not where a number in them is another."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import InputError, UnknownNameError
from dynid.io.robots.proof import PARITY, file_parity, held_poses, largest_gap

FORMATS = [
    ("arm.urdf", dynid.write_urdf, "urdf", 'mass value="'),
    ("arm.sdf", dynid.write_sdf, "sdf", "<mass>"),
    ("arm.xml", dynid.write_mjcf, "mjcf", 'mass="'),
]


def test_gaps_are_relative_to_each_joint_and_never_unknown() -> None:
    ours = np.array([[10.0, 0.1], [-5.0, 0.05]])
    assert largest_gap(ours, ours) == 0.0
    assert largest_gap(ours, ours + np.array([0.0, 0.01])) == pytest.approx(0.1)
    assert largest_gap(ours, ours + np.array([0.1, 0.0])) == pytest.approx(0.01)
    assert largest_gap(ours, ours * np.nan) == math.inf
    assert largest_gap(np.zeros((2, 1)), np.full((2, 1), 0.5)) == 0.5


@pytest.mark.parametrize(("name", "write", "format", "mark"), FORMATS, ids=["urdf", "sdf", "mjcf"])
def test_a_file_is_proven_until_a_mass_in_it_changes(name, write, format, mark, tmp_path: Path) -> None:
    robot = dynid.demo_robot()
    path = write(robot, tmp_path / name).path
    assert file_parity(format, robot, path, n_states=20) < PARITY
    text = path.read_text("utf-8")
    place = text.rindex(mark) + len(mark)
    path.write_text(text[:place] + "1" + text[place:], "utf-8")
    assert file_parity(format, robot, path, n_states=20) > 1e-3


@pytest.mark.parametrize(("name", "write", "format", "mark"), FORMATS, ids=["urdf", "sdf", "mjcf"])
def test_a_joint_that_the_file_lacks_is_named(name, write, format, mark, tmp_path: Path) -> None:
    robot = dynid.demo_robot()
    path = write(robot, tmp_path / name).path
    path.write_text(path.read_text("utf-8").replace("shoulder_yaw", "other"), "utf-8")
    with pytest.raises(UnknownNameError, match="joint 'shoulder_yaw'"):
        file_parity(format, robot, path)


def test_joints_that_the_robot_has_locked_are_held_where_it_holds_them() -> None:
    robot = dynid.demo_robot()
    joint = robot.joint_names[-1]
    held = robot.lock({joint: 0.7})
    (pose,) = held_poses(held, {joint: (robot.links[-1], robot.links[-2])}, "file").values()
    np.testing.assert_allclose(pose, robot.joints[-1].pose(0.7), atol=1e-14)
    with pytest.raises(InputError, match=f"joint '{joint}' in file is neither one of robot 'demo_arm' nor locked in it"):
        held_poses(robot, {joint: (robot.links[-1], robot.links[-2])}, "file")
