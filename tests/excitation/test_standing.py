"""Motions on feet: Pinocchio finds the feet where they were, and MuJoCo that the robot stands."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from dynid.errors import InputError
from dynid.excitation.standing import MOTIONS, Stance, design_on_feet, in_sequence, standing_motion, support
from dynid.io.robots.mujoco_contacts import simulate_on_feet
from dynid.model.frames import frame_named
from dynid.regression.floating_rows import Foot
from legged_robots import HUMANOID_FEET, QUADRUPED, QUADRUPED_FEET, robot_file
from legged_simulation import humanoid, quadruped


def feet_of(robot: Any, names: Any, flat: bool = False) -> list[Foot]:
    return [Foot(frame_named(robot, name), flat) for name in names]


@cache
def stance() -> Stance:
    robot = quadruped("viscous,armature")
    return Stance.of(robot, feet_of(robot, QUADRUPED_FEET))


@cache
def designed() -> list[Any]:
    return design_on_feet(stance().robot, stance().feet, seconds=6.0)


@pytest.mark.parametrize("name", MOTIONS)
def test_feet_on_the_ground_stay_in_place(name: str) -> None:
    samples, moved, turn = standing_motion(stance(), name, 6.0, 0.5)
    model = pin.buildModelFromUrdf(str(robot_file(QUADRUPED)), pin.JointModelFreeFlyer())
    data = model.createData()
    assert samples.contact is not None
    for k in range(0, len(samples), 20):
        pin.framesForwardKinematics(model, data, np.concatenate([moved[k], turn[k], samples.position[k]]))
        for f, foot in enumerate(QUADRUPED_FEET):
            place = data.oMf[model.getFrameId(foot)].translation
            if samples.contact[k, f]:
                np.testing.assert_allclose(place, stance().places[f], atol=1e-4)
            else:
                assert place[2] >= stance().places[f][2] - 1e-4
    np.testing.assert_allclose(samples.position[[0, -1]], np.tile(stance().joints, (2, 1)), atol=1e-6)
    assert np.ptp(samples.position, axis=0).max() > 0.05


def test_motions_stay_over_the_feet_and_swings_tell_most() -> None:
    found = {one.name: one for one in designed()}
    assert set(found) == set(MOTIONS)
    assert all(one.inside > 0.0 and one.slope < 0.35 for one in found.values())
    assert found["swing"].information == max(one.information for one in found.values())
    samples, moved, turn = standing_motion(stance(), "shift", 6.0, 4.0)
    assert support(stance(), samples, moved, turn)[0] < 0.0  # four times as far is over the edge


def test_a_simulated_robot_follows_them_and_stands() -> None:
    one = in_sequence(designed()[:1], 100.0)
    made = simulate_on_feet(
        stance().robot,
        lambda t, *_: np.array([np.interp(t - 1.0, one.time, column) for column in one.position.T]),
        float(one.time[-1]),
        QUADRUPED_FEET,
    )
    assert made["contact"].mean() > 0.95
    assert np.abs(made["q"] - one.position[: len(made["q"])]).max() < 0.1
    assert np.abs(made["pose"][:, 2] - made["pose"][0, 2]).max() < 0.03


def test_motions_follow_one_another_without_a_jump() -> None:
    made = in_sequence(designed(), 250.0)
    assert made.time[-1] == pytest.approx(len(MOTIONS) * 6.01 - 0.01, abs=0.004)
    assert np.abs(np.diff(made.position, axis=0)).max() < 0.05


def test_flat_feet_of_a_humanoid_keep_their_rotation() -> None:
    robot = humanoid()
    own = Stance.of(robot, feet_of(robot, HUMANOID_FEET, flat=True))
    assert own.height > 0.8
    found = design_on_feet(robot, own.feet, ("turn", "squat"), 4.0)
    assert [one.name for one in found] == ["turn", "squat"]
    joints = robot.driven_joints
    for one in found:
        assert all((one.samples.position[:, k] <= joint.q_max).all() for k, joint in enumerate(joints))


def test_what_cannot_be_done_is_refused() -> None:
    robot = quadruped()
    with pytest.raises(InputError, match="makes none of the motions"):
        design_on_feet(robot, feet_of(robot, QUADRUPED_FEET[:2]), ("shift",), 3.0)
    with pytest.raises(InputError, match="'jump' is not known, expected shift"):
        design_on_feet(robot, feet_of(robot, QUADRUPED_FEET), ("jump",), 3.0)
    with pytest.raises(InputError, match="not below its base"):
        Stance.of(robot, [Foot(frame_named(robot, robot.links[0]))])
