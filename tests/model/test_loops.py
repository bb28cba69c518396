"""Closures in description files: what is read, what is deduced, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from closed_robots import FOLDER, closed_robot
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.io.robots.read import read_robot
from dynid.regression.base import reduce_to_base

TEXT = (FOLDER / "five_bar.toml").read_text()


def read(tmp_path, text):
    path = tmp_path / "robot.toml"
    path.write_text(text)
    return read_robot(path, "none")


def test_a_closed_robot_moves_by_its_actuated_joints():
    robot = closed_robot("delta_rl5", "viscous,coulomb")
    assert robot.joint_names == robot.dof_names == ("arm_1", "arm_2", "arm_3")
    assert (robot.n_joints, robot.n_dof, robot.n_bodies, len(robot.loops)) == (3, 3, 18, 6)
    assert robot.loops[0].closed == ("x", "y", "z")
    assert robot.limits("tau_max").shape == (3,)
    assert robot.opened.n_joints == 18


def test_the_lumped_delta_has_thirteen_base_parameters():
    robot = closed_robot("delta_rl5_lumped", "viscous,coulomb")
    base = reduce_to_base(robot)
    assert base.n_base == 13
    assert set(base.names) == {f"{s}{i}" for s in ("Izz", "mx", "fv", "fc") for i in (1, 2, 3)} | {"m12"}
    assert all(" " not in expression for expression in base.expressions())


def test_actuated_joints_are_deduced(tmp_path):
    assert read(tmp_path, TEXT.replace('actuated = ["left", "right"]', "")).joint_names == ("left", "right")
    weak = "\n".join(line for line in TEXT.splitlines() if not line.startswith(("tau_max", "actuated")))
    assert read(tmp_path, weak).joint_names == ("left", "right")


def test_links_may_state_what_they_have(tmp_path):
    text = TEXT.replace('name = "left_elbow"', 'name = "left_elbow"\nparameters = ["m", "mx"]')
    robot = read(tmp_path, text)
    assert "Izz2" in robot.absent
    assert "mx2" not in robot.absent
    heavier = robot.with_parameters({"Izz2": 5.0})
    q, still = np.array([[2.2, 0.94]]), np.zeros((1, 2))
    np.testing.assert_array_equal(
        inverse_dynamics(robot, q, still, still + 1.0), inverse_dynamics(heavier, q, still, still + 1.0)
    )


def test_a_locked_arm_leaves_the_others_moving():
    robot = closed_robot("delta_rl5")
    held = robot.lock({"arm_2": -0.2})
    assert held.joint_names == ("arm_1", "arm_3")
    q, v, a = np.array([[0.1, -0.1]]), np.array([[0.5, -0.7]]), np.array([[1.0, 2.0]])
    whole = [np.insert(part, 1, value, axis=1) for part, value in ((q, -0.2), (v, 0.0), (a, 0.0))]
    np.testing.assert_allclose(inverse_dynamics(held, q, v, a), inverse_dynamics(robot, *whole)[:, [0, 2]], rtol=1e-9)


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ('closed = ["x", "y", "z", "rx", "ry"]', "closed = []", ("tool", "closes nothing")),
        ('closed = ["x", "y", "z", "rx", "ry"]', 'closed = ["q"]', ("'q'", "tool")),
        ('link = "left_forearm", position', 'link = "forearm", position', ("'forearm'", "left_forearm")),
        ('actuated = ["left", "right"]', 'actuated = ["left", "middle"]', ("'middle'", "left")),
        ('actuated = ["left", "right"]', 'actuated = "left"', ("actuated", "list")),
        ("start = -1.5", 'start = "up"', ("left_elbow", "number")),
        ("[[loop]]", "[[loops]]", ("'loops'", "loop")),
        ('second = { link = "right_forearm"', 'second = { link = "left_forearm"', ("tool", "itself")),
    ],
)
def test_what_a_file_cannot_say(tmp_path, old, new, facts):
    assert old in TEXT
    with pytest.raises(InputError) as refusal:
        read(tmp_path, TEXT.replace(old, new))
    for fact in facts:
        assert fact in str(refusal.value)


def test_loops_that_do_not_close_are_refused_with_their_name(tmp_path):
    far = TEXT.replace("position = [0.1, 0.0, 0.0]", "position = [3.1, 0.0, 0.0]")
    robot = read(tmp_path, far)
    with pytest.raises(InputError, match=r"loop 'tool'.*does not close"):
        inverse_dynamics(robot, [[2.2, 0.94]], [[0.0, 0.0]], [[0.0, 0.0]])


def test_a_passive_joint_cannot_be_locked():
    with pytest.raises(InputError, match=r"'left_elbow'.*passive"):
        closed_robot("five_bar").lock({"left_elbow": 0.0})
