"""Positions of passive joints, their derivatives, the branch that is kept, and poses that are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from closed_robots import FOLDER, MECHANISMS, closed_robot, feasible_motion
from dynid.dynamics.closed_chains import closures_of, feasible_positions, gain_rate, tree_motion, tree_positions
from dynid.errors import InputError
from dynid.io.robots.closures import residual_of
from dynid.io.robots.read import read_robot

ALL = (*MECHANISMS, "delta_rl5_lumped")


def platform_point(q):
    """The delta's platform by the closed form: the lower point at one bar's length from three elbows."""
    r0, l1, l2, r3, q0 = 0.330, 0.420, 1.055, 0.125, np.deg2rad(5.327998)
    azimuth = np.deg2rad([0.0, 120.0, 240.0])
    radius, height = r0 - r3 + l1 * np.cos(q0 - q), -l1 * np.sin(q0 - q)
    c1, c2, c3 = np.stack([radius * np.cos(azimuth), radius * np.sin(azimuth), height], -1).swapaxes(0, 1)
    ex = (c2 - c1) / np.linalg.norm(c2 - c1, axis=1, keepdims=True)
    d, i = np.linalg.norm(c2 - c1, axis=1, keepdims=True), (ex * (c3 - c1)).sum(1, keepdims=True)
    ey = c3 - c1 - i * ex
    ey /= np.linalg.norm(ey, axis=1, keepdims=True)
    j = (ey * (c3 - c1)).sum(1, keepdims=True)
    x, y = d / 2.0, (i**2 + j**2 - i * d) / (2.0 * j)
    z = np.sqrt(l2**2 - x**2 - y**2)
    foot, up = c1 + x * ex + y * ey, np.cross(ex, ey)
    return np.where((up * z)[:, 2:] < 0.0, foot + up * z, foot - up * z)


@pytest.mark.parametrize("name", ALL)
def test_passive_joints_close_the_loops(name):
    robot = closed_robot(name)
    q, _, _ = feasible_motion(robot, 40)
    whole = tree_positions(robot, q)
    np.testing.assert_array_equal(whole[:, closures_of(robot).actuated], q)
    assert max(np.abs(residual_of(robot.joints, robot.loops.closures, one)).max() for one in whole) < 1e-12


@pytest.mark.parametrize("name", ALL)
def test_velocities_and_accelerations_are_derivatives_of_positions(name):
    robot = closed_robot(name)
    q, v, a = feasible_motion(robot, 30)
    motion, h = tree_motion(robot, q, v, a), 1e-4
    closures = closures_of(robot)
    ahead, behind = (closures.positions(q + s * h * v + 0.5 * h**2 * a) for s in (1.0, -1.0))
    np.testing.assert_allclose((ahead - behind) / (2.0 * h), motion.velocity, atol=1e-5 * np.abs(motion.velocity).max())
    second = (ahead - 2.0 * motion.position + behind) / h**2
    np.testing.assert_allclose(second, motion.acceleration, atol=1e-5 * np.abs(motion.acceleration).max())


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "delta_rl5"])
def test_the_rate_of_the_gains_is_their_derivative(name):
    robot = closed_robot(name)
    q, v, a = feasible_motion(robot, 30)
    closures, h = closures_of(robot), 1e-5
    ahead, behind = (closures.follow(closures.positions(q + s * h * v)).G for s in (1.0, -1.0))
    rate = gain_rate(robot, closures.positions(q), v)
    np.testing.assert_allclose((ahead - behind) / (2.0 * h), rate, atol=1e-7 * np.abs(rate).max())
    drift = tree_motion(robot, q, v, 0.0 * a).acceleration
    np.testing.assert_allclose(np.einsum("sij,sj->si", rate, v), drift, atol=1e-9 * np.abs(drift).max())


def test_ten_thousand_poses_of_the_delta_are_all_on_the_lower_branch():
    robot = closed_robot("delta_rl5")
    q = feasible_positions(robot, 10_000, np.random.default_rng(3))
    platform = tree_positions(robot, q)[:, -3:]
    assert np.abs(platform - platform_point(q)).max() < 1e-12


def test_the_assembly_mode_is_that_of_the_start(tmp_path):
    """The same four-bar with its rocker started below stays below."""
    text = (FOLDER / "four_bar.toml").read_text()
    below = text.replace("start = 1.5", "start = -1.5").replace("start = -0.5", "start = -1.9")
    path = tmp_path / "below.toml"
    path.write_text(below)
    q = np.linspace(-3.0, 3.0, 200)[:, None]
    upper, lower = closed_robot("four_bar"), read_robot(path, "none")
    rocker = 2
    assert np.sin(tree_positions(upper, q)[:, rocker]).min() > 0.0
    assert np.sin(tree_positions(lower, q)[:, rocker]).max() < 0.0


def test_a_crank_may_turn_on_and_on():
    robot = closed_robot("four_bar")
    q = np.linspace(0.0, 40.0, 500)[:, None]
    once = tree_positions(robot, np.remainder(q, 2.0 * np.pi))
    np.testing.assert_allclose(np.sin(tree_positions(robot, q)), np.sin(once), atol=1e-10)


@pytest.fixture
def short_five_bar(tmp_path):
    """The five-bar with forearms of 0.3 m: its arms can spread farther than they reach."""
    path = tmp_path / "short.toml"
    path.write_text(
        (FOLDER / "five_bar.toml").read_text().replace("position = [0.4, 0.0, 0.0]", "position = [0.3, 0.0, 0.0]")
    )
    return read_robot(path, "none")


def test_a_pose_out_of_reach_is_refused_with_its_sample_and_loop(short_five_bar):
    robot = short_five_bar
    q = np.tile(robot.loops.start[[0, 2]], (5, 1))
    q[3] = 2.8, 0.34  # elbows 0.67 m apart
    with pytest.raises(InputError, match=r"sample 3.*loop 'tool'"):
        tree_positions(robot, q)


def test_a_singular_pose_is_refused_with_its_sample_and_loop(short_five_bar):
    """Both forearms of the five-bar in one line: the tool can leave it to either side."""
    wide = np.arccos(0.8)  # elbows 0.6 m apart, on one height
    with pytest.raises(InputError, match=r"singular at sample 1.*loop 'tool'"):
        tree_positions(short_five_bar, [[2.2, 0.94], [np.pi - wide, wide]])


def test_no_more_and_no_fewer_passive_joints_than_the_loops_determine():
    robot = closed_robot("five_bar")
    few = replace(robot, loops=replace(robot.loops, actuated=("left",)))
    with pytest.raises(InputError, match="singular"):
        closures_of(few)
