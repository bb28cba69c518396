"""Readings of a log that are wrong: torque columns exchanged, a joint mirrored, the base tilted. Truth is made by hand."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.finding import Finding
from dynid.model.inertia import rotation_exponential
from dynid.model.robot import Robot
from dynid.signals.recording import Recording
from dynid.validation.data_check import check_against_model

CODES = ("tilted_base", "exchanged_torque", "mirrored_joint", "torque_sign", "exchanged_motion", "exchanged_joints")


@pytest.fixture(scope="module")
def robot() -> Robot:
    return dynid.demo_robot()


@pytest.fixture(scope="module")
def log(robot: Robot) -> Recording:
    return dynid.demo_recording(robot, torque_noise=0.05)


def findings(log: Recording, robot: Robot) -> list[Finding]:
    return [finding for finding in check_against_model(log, robot).findings if finding.code in CODES]


def only(log: Recording, robot: Robot) -> Finding:
    (finding,) = findings(log, robot)
    return finding


def wrong_masses(robot: Robot, seed: int = 0) -> Robot:
    """The robot with every mass and first moment up to 30 % off, as descriptions are."""
    rng = np.random.default_rng(seed)
    body = robot.parameters.inertials * (1.0 + 0.3 * rng.uniform(-1.0, 1.0, (robot.n_bodies, 1)))
    values = robot.parameters.values.copy()
    values[: body.size] = body.ravel()
    return robot.with_parameters(robot.parameters.with_values(values))


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_log_that_is_right_has_none_of_these(robot: Robot, log: Recording, seed: int | None) -> None:
    assert findings(log, robot if seed is None else wrong_masses(robot, seed)) == []


@pytest.mark.parametrize("pair", [(0, 1), (1, 3), (5, 6)])
def test_exchanged_torque_columns_are_named(robot: Robot, log: Recording, pair: tuple[int, int]) -> None:
    order = list(range(7))
    i, j = pair
    order[i], order[j] = j, i
    finding = only(log.with_(torque=log.torque[:, order]), wrong_masses(robot))
    assert finding.code == "exchanged_torque"
    assert finding.where == (robot.joint_names[i], robot.joint_names[j])


@pytest.mark.parametrize("joint", [0, 1, 3, 5])
def test_a_mirrored_joint_is_named(robot: Robot, log: Recording, joint: int) -> None:
    sign = np.where(np.arange(7) == joint, -1.0, 1.0)
    turned = log.with_(position=sign * log.position, velocity=sign * log.velocity, torque=sign * log.torque)
    finding = only(turned, wrong_masses(robot))
    assert (finding.code, finding.where) == ("mirrored_joint", (robot.joint_names[joint],))


@pytest.mark.parametrize(
    ("degrees", "axis"),
    [
        (5.0, (1.0, 0.0, 0.0)),
        (-4.0, (0.0, 1.0, 0.0)),
        (30.0, (1.0, 0.0, 0.0)),
        (-30.0, (1.0, 0.0, 0.0)),
        (90.0, (0.0, 1.0, 0.0)),
    ],
)
def test_a_tilted_base_is_measured(robot: Robot, degrees: float, axis: tuple[float, ...]) -> None:
    """The base is turned by R, so gravity in its frame is R^T g; the description knows nothing of it."""
    R = rotation_exponential(np.deg2rad(degrees) * np.array(axis))
    gravity = R.T @ np.asarray(robot.gravity)
    tilted = dynid.demo_recording(robot.with_gravity(gravity), torque_noise=0.02)
    finding = only(tilted, wrong_masses(robot))
    assert finding.code == "tilted_base"
    assert finding.values["degrees"] == pytest.approx(abs(degrees), abs=0.7)
    np.testing.assert_allclose(finding.values["gravity"], gravity, atol=0.12)
    letter = "-" * (degrees < 0.0) + "xyz"[int(np.argmax(axis))]
    assert f"about {letter} of the base frame" in finding.what
    told = [float(text) for text in finding.remedy.split("--gravity ")[1].split(", or")[0].split(",")]
    np.testing.assert_allclose(told, gravity, atol=0.12)
    # what the remedy says takes the finding away
    assert findings(tilted, wrong_masses(robot).with_gravity(told)) == []


def test_a_robot_that_hangs_has_no_wrong_sign(robot: Robot) -> None:
    """Gravity is turned round in every joint and inertia in none."""
    hanging = dynid.demo_recording(robot.with_gravity((0.0, 0.0, 9.81)), torque_noise=0.02)
    finding = only(hanging, wrong_masses(robot))
    assert finding.code == "tilted_base"
    assert finding.values["degrees"] == pytest.approx(180.0, abs=1.0)
    np.testing.assert_allclose(finding.values["gravity"], (0.0, 0.0, 9.81), atol=0.15)


def test_torque_of_the_other_sign_is_no_other_mounting(robot: Robot, log: Recording) -> None:
    assert log.torque is not None
    assert only(log.with_(torque=-log.torque), wrong_masses(robot)).code == "torque_sign"


@pytest.mark.parametrize("pair", [(0, 1), (1, 3), (2, 4)])
def test_exchanged_motion_is_named_under_wrong_masses(robot: Robot, log: Recording, pair: tuple[int, int]) -> None:
    order = list(range(log.n_joints))
    order[pair[0]], order[pair[1]] = pair[1], pair[0]
    moved = log.with_(position=log.position[:, order], velocity=np.asarray(log.velocity)[:, order])
    finding = only(moved, wrong_masses(robot))
    assert finding.code == "exchanged_motion"
    assert finding.where == tuple(robot.joint_names[j] for j in pair)
    assert "position = [..], velocity = [..]" in finding.remedy
