"""Motions without a search: sinusoids, those of Gaz and others 2019 as printed, and commands for actuators."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cli_program import app
from dynid.errors import InputError
from dynid.excitation.command import design_excitation
from dynid.excitation.excitation_result import base_regressor
from dynid.excitation.fixed_motions import actuator_excitation, sinusoid_excitation, sinusoids
from dynid.excitation.limits import limits_of, margins_of
from dynid.excitation.trajectories import FourierTrajectory
from dynid.io.demo import demo_robot
from dynid.io.robots.dh import robot_from_table
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Offset, Viscous
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from messages import facts
from problems import arm_with_hand_urdf, demo_arm
from published import robot_file, tables


def test_sinusoids_of_gaz():
    """The motion of Table I: velocities as printed, positions around the centre."""
    A = np.array([2.21, -2.21, 1.2, -2.1, -2.3, 2.1, -2.5])
    T = np.array([3.68, 2.04, 2.98, 1.75, 4.43, 2.749, 1.06])
    motion = sinusoids(A, T, np.zeros(7), 10.0)
    t = np.array([0.4, 3.3])
    np.testing.assert_allclose(motion.evaluate(t)[1], A * np.sin(2.0 * np.pi / T * t[:, None]), atol=1e-14)


@pytest.mark.parametrize("jerk", [None, 40.0])
def test_friction_sinusoids_use_the_limits_and_keep_them(jerk):
    robot = demo_arm()
    limits = limits_of(robot, jerk=jerk)
    together = sinusoid_excitation(robot, limits, 20.0).trajectory
    margins = margins_of(robot, together, limits)
    assert margins.smallest >= 0.0
    if jerk is None:
        np.testing.assert_allclose(np.abs(together.b[:, 0]), 0.98 * limits.velocity, rtol=1e-9)
    assert len(np.unique(together.period_s.round(6))) == robot.n_joints
    alone = sinusoid_excitation(robot, limits, joint="elbow", centre=np.full(robot.n_joints, 0.1)).trajectory
    elbow = robot.joint_index("elbow")
    assert np.flatnonzero(alone.b).tolist() == [elbow]
    others = np.arange(robot.n_joints) != elbow
    assert (alone.evaluate([1.0, 2.0])[0][:, others] == 0.1).all()


@pytest.fixture(scope="module")
def three_joints() -> Robot:
    robot = demo_robot()
    return robot.only(robot.joint_names[:3])


def test_every_joint_moves_alone_both_ways_within_limits(three_joints: Robot) -> None:
    limits = limits_of(three_joints)
    found = actuator_excitation(three_joints, limits)
    assert all(margin >= 0.0 for _, margin in found.margins.items())
    t = np.arange(0.0, found.playable.duration_s, 0.01)
    q, v, _ = found.playable.evaluate(t)
    moving = np.abs(v) > 1e-4
    for j in range(3):
        alone = moving[:, j] & ~np.delete(moving, j, axis=1).any(axis=1)
        assert alone.sum() > 500
        assert v[alone, j].max() > 0.0 > v[alone, j].min()
        slow = np.abs(v[alone, j])
        assert np.quantile(slow, 0.3) < 0.15 * slow.max()  # slow ramps beside fast moves
    assert moving.all(axis=1).any()
    assert np.allclose(q[0], q[-1], atol=1e-6)


def test_chirps_reach_the_frequency_asked_for(three_joints: Robot) -> None:
    found = actuator_excitation(three_joints, limits_of(three_joints, acceleration=[500.0] * 3), top_hz=6.0)
    t = np.arange(0.0, found.playable.duration_s, 0.01)
    power = np.abs(np.fft.rfft(found.playable.derivative(t, 2)[:, 0])) ** 2
    share = np.cumsum(power) / power.sum()
    frequency = np.fft.rfftfreq(len(t), 0.01)
    assert 4.0 < frequency[np.searchsorted(share, 0.9)] < 8.0
    with pytest.raises(InputError, match="top-hz is 50"):
        actuator_excitation(three_joints, limits_of(three_joints), top_hz=50.0)


def test_the_verb_writes_commands(three_joints: Robot, tmp_path: Path) -> None:
    write_urdf(three_joints, tmp_path / "arm.urdf")
    done = CliRunner().invoke(
        app,
        [
            "excite",
            str(tmp_path / "arm.urdf"),
            "--for",
            "actuators",
            "--rate",
            "200",
            "-o",
            str(tmp_path / "u.csv"),
            "--json",
        ],
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert min(margin for margin in found["margins"].values() if margin is not None) >= 0.0
    header, *rows = (tmp_path / "u.csv").read_text().splitlines()
    assert header.replace('"', "").startswith("t,q1")
    assert len(rows) > 200 * 60


# Table I of the paper: amplitudes (rad/s) and periods (s) of (31).
A = [2.21, -2.21, 1.2, -2.1, -2.3, 2.1, -2.5]


T = [3.68, 2.04, 2.98, 1.75, 4.43, 2.749, 1.06]


def panda(speed: float | None = None):
    """The arm of the paper, or one whose joints all turn at up to another speed."""
    table = tomllib.loads(robot_file("panda").read_text("utf-8"))
    for joint in table["joint"]:
        del joint["tau_max"]  # the table has no inertials
        joint["dq_max"] = joint["dq_max"] if speed is None else speed
    return robot_from_table(table).with_effects([Viscous(), Coulomb(), Offset()])


def test_the_motion_of_table_2_has_a_condition_number_of_95_without_noise():
    """One period of 13.33 s; the printed 121.88 is that of the recorded motion with its noise."""
    robot = panda()
    base = reduce_to_base(robot)
    assert base.n_base == 43 + 21
    printed = tables("gaz2019")["table_2"]
    motion = FourierTrajectory(2.0 * math.pi / printed["rate_rad_s"], printed["a"], printed["b"], printed["q0"])
    assert np.linalg.cond(base_regressor(robot, base, motion)) == pytest.approx(95.4, abs=0.1)
    assert margins_of(robot, motion, limits_of(robot)).smallest > 0.0


def test_the_motion_of_table_1_exceeds_the_data_sheet_and_fits_a_faster_arm():
    """2.21 rad/s are printed for joints 1 and 2, whose data sheet has 2.175."""
    robot = panda()
    with pytest.raises(InputError, match=facts("1.61", "joint", "velocity", "limit")):
        sinusoid_excitation(robot, limits_of(robot), amplitude=A, period=T)
    fast = panda(2.5)
    limits = limits_of(fast)
    found = sinusoid_excitation(fast, limits, 5.458, amplitude=A, period=T, rest=False)
    motion = found.trajectory
    t = motion.grid(5458)
    np.testing.assert_allclose(motion.derivative(t, 1), np.array(A) * np.sin(2.0 * np.pi * t[:, None] / T), atol=1e-13)
    assert found.margins.smallest > 0.0
    assert json.dumps(found.as_json())
    assert found.condition_number > 95.4  # made for friction, not for the parameters of links


def test_sinusoids_are_about_a_free_pose_where_bodies_are_too_near_in_the_middle_of_the_ranges(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(arm_with_hand_urdf(shapes=True))
    middle = design_excitation(path, shape="sinusoids", position=((-2.5, 2.5), (-2.0, 0.6)))
    below = design_excitation(path, shape="sinusoids", position=((-2.5, 2.5), (-0.5, 2.2)))
    said = [any("a pose with more room" in note for note in found.notes) for found in (middle, below)]
    assert said == [False, True]
    assert below.margins.clearance >= 0.0
    assert below.trajectory.offset[1] < 0.5  # above the mounting plane
