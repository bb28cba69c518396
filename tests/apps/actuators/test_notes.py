"""Sentences on joints that do not move, on names that have two sides, and on bodies that are lighter or heavier than held."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.apps.actuators.comparison import Rollout
from dynid.apps.actuators.identify import ActuatorRun, identify_actuators
from dynid.apps.actuators.notes import heavier_bodies, lost_joints, still_notes, symmetry_notes
from dynid.apps.actuators.options import ActuatorSettings
from dynid.dynamics.position_loop import simulate_commands
from dynid.io.demo import demo_robot
from dynid.io.logs.read import write_recording
from dynid.io.robots.urdf_write import write_urdf
from dynid.signals.commands import Command, PositionControl
from dynid.signals.recording import Recording
from position_logs import KD, KP, commands, small_arm, true_model


def test_joints_that_stand_still_are_named() -> None:
    robot = small_arm()
    (said,) = still_notes(robot, {1})
    assert robot.joint_names[1] in said
    assert "--lock" in said


def test_two_sides_are_proposed_only_where_names_have_them() -> None:
    assert symmetry_notes(demo_robot()) == ()


def test_a_joint_whose_rollout_misses_its_own_log_is_an_error() -> None:
    robot = small_arm()
    t = np.linspace(0.0, 5.0, 500)
    measured = np.outer(np.sin(t), [0.4, 0.4, 1e-4])  # the last one hardly moves
    near = Rollout(t, measured, measured, measured + 0.05)
    assert lost_joints(robot, [near]) == ()
    far = Rollout(t, measured, measured, measured + np.array([0.0, 0.9, 0.03]))
    (found,) = lost_joints(robot, [near, far])
    assert found.level == "error"
    assert f"joint {robot.joint_names[1]} is 900 mrad RMS from a log in which it moves" in found.what


def identified(folder: Path, weight: float) -> ActuatorRun:
    """A run whose description has so many times the weight of the bodies that moved."""
    robot, n = small_arm(), 3
    model, (t, u) = true_model(robot), commands(n, 4.0, 200.0, 0)
    control = PositionControl(KP, KD)
    motion = simulate_commands(model.robot, model.drives(control), Command(t, u), t, (u[0], np.zeros(n)), step_s=2.5e-4)
    count = 2.0 * np.pi / 2**14
    q = np.round((motion.at_stamps + 0.5 * count * np.random.default_rng(0).normal(size=u.shape)) / count) * count
    bare = robot.with_effects(())
    write_urdf(bare.with_parameters(bare.parameters.with_values(weight * bare.parameters.values)), folder / "arm.urdf")
    write_recording(Recording(t, q, bare.joint_names, reference_position=u), folder / "log.csv")
    settings = ActuatorSettings(kp=tuple(KP), kd=tuple(KD), limit=(1e6,))
    return identify_actuators(folder / "arm.urdf", folder / "log.csv", settings)


@pytest.mark.parametrize("weight", [0.9, 1.1])
def test_bodies_of_another_weight_are_told(tmp_path: Path, weight: float) -> None:
    run = identified(tmp_path, weight)
    (note,) = [one for one in run.notes if "strays" in one]
    assert ("heavier" if weight < 1.0 else "lighter") in note
    found = heavier_bodies(run.problem, run.model, run.rollouts[0])
    assert found is not None
    assert found[0] == pytest.approx(1.0 / weight - 1.0, abs=0.03)
    assert found[1] > 0.5


def test_right_bodies_are_not_blamed(tmp_path: Path) -> None:
    run = identified(tmp_path, 1.0)
    assert not [one for one in run.notes if "strays" in one]
