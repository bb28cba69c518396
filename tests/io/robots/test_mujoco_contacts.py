"""A robot on its feet in MuJoCo: its rows hold with the forces that it feels, and its log can be identified."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynid
from dynid.dynamics.simulate import with_effect
from dynid.errors import InputError
from dynid.io.robots.mujoco_contacts import World, floating_columns, simulate_on_feet
from dynid.model.frames import frame_named, frame_poses
from dynid.regression.floating_rows import Contacts, Foot, base_states, contact_torque
from dynid.signals.base_motion import BaseMotion
from legged_robots import QUADRUPED_FEET
from legged_simulation import quadruped, quadruped_gait

PHASE = np.linspace(0.0, 6.0, 64)


def gait(t: float, _model: Any, _data: Any) -> Any:
    return quadruped_gait(t, PHASE)


def test_rows_of_a_walk_hold_with_the_forces_on_its_feet() -> None:
    robot = with_effect(quadruped("viscous,armature"), "viscous", 0.01)
    made = simulate_on_feet(robot, gait, 1.0, QUADRUPED_FEET, stiffness=6.0, damping=0.15)
    assert 0.2 < made["contact"].mean() < 0.9
    columns = floating_columns(made, robot, QUADRUPED_FEET)
    proper = np.column_stack([columns[f"imu_a{axis}"] for axis in "xyz"])
    base = BaseMotion(made["twist"][:, 3:], proper, made["rate"][:, 3:], quaternion=made["pose"][:, 3:])
    q, v, a = base_states(robot, base, made["q"], made["dq"], made["ddq"])
    feet = tuple(Foot(frame_named(robot, name), flat=True) for name in QUADRUPED_FEET)
    level = np.array(q)
    level[:, :7] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    turns = [frame_poses(robot, level, foot.frame.body, foot.frame.placement)[0] for foot in feet]
    forces = [
        np.hstack([np.einsum("nij,nj->ni", turn, made["force"][:, k, part]) for part in (slice(0, 3), slice(3, 6))])
        for k, turn in enumerate(turns)
    ]
    pushed = contact_torque(Contacts(robot, feet), q, forces)
    torque = np.hstack([np.zeros((len(q), 6)), made["tau"]])
    np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), torque + pushed, atol=1e-6)


def test_flat_feet_carry_a_robot_that_stands() -> None:
    robot = quadruped()
    stand = np.repeat([1.0, -1.0], 6) * np.tile([0.0, 0.75, -1.5], 4)
    made = simulate_on_feet(robot, lambda *_: stand, 0.5, QUADRUPED_FEET, world=World(sole=(0.02, 0.02, 0.01)))
    np.testing.assert_allclose(made["q"], np.tile(stand, (len(made["q"]), 1)), atol=0.1)
    assert made["contact"].all()
    weight = 9.81 * float(robot.parameters.inertials[:, 0].sum())
    assert np.linalg.norm(made["force"][-1, :, :3], axis=1).sum() == pytest.approx(weight, rel=0.15)


def test_a_robot_that_falls_over_is_told() -> None:
    with pytest.raises(InputError, match=r"robot 'solo' falls over after [0-9.]+ s: its base has tilted by 60 degrees"):
        simulate_on_feet(quadruped(), gait, 4.0, QUADRUPED_FEET[:2])


def test_noise_is_in_the_columns_and_accelerations_only_without_it() -> None:
    robot = quadruped()
    made = simulate_on_feet(robot, gait, 0.5, QUADRUPED_FEET, stiffness=6.0, damping=0.15)
    clean, noisy = (floating_columns(made, robot, QUADRUPED_FEET, motion_noise=x, torque_noise=x) for x in (0.0, 1.0))
    assert {"ddq1", "base_ax", "base_alz"} <= set(clean)
    assert not {"ddq1", "base_ax"} & set(noisy)
    assert np.std(noisy["imu_ax"] - clean["imu_ax"]) == pytest.approx(0.05, rel=0.4)
    named = floating_columns(made, robot, QUADRUPED_FEET, by_name=True)
    assert {"q_FL_HAA", "tau_HR_KFE", "contact_FL_FOOT", "FL_FOOT_fz"} <= set(named)
