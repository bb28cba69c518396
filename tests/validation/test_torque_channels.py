"""Channels that hold no torque or another unit: found on every loaded joint, never on a healthy log; and what a run does with them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cli_program
import dynid
from dynid.errors import InputError
from dynid.io.demo import demo_recording, demo_robot
from dynid.model.robot import Robot
from dynid.pipeline.data import ignoring
from dynid.regression.factor import build_regression
from dynid.signals.recording import Recording
from dynid.validation.data_check import check_recording
from dynid.validation.torque_channels import DEAD, UNIT, foreign_channels

QUICK = {"split": 0.65, "cutoff_hz": 10.0, "friction": "linear"}


@pytest.fixture(scope="module")
def robot() -> Robot:
    return demo_robot()


@pytest.fixture(scope="module")
def recording() -> Recording:
    return demo_recording(seconds=20.0, torque_noise=0.02)


def spoiled(recording: Recording, joint: int, kind: str) -> Recording:
    tau = np.array(recording.torque)
    if kind == "dead":
        tau[:, joint] = 1e-4 * np.random.default_rng(0).normal(size=len(tau))
    elif kind == "zeros":
        tau[np.arange(len(tau)) % 20 != 0, joint] = 0.0
    elif kind == "constant":
        tau[:, joint] = 3.0
    else:
        tau[:, joint] *= float(kind)
    return recording.with_(torque=tau)


def test_a_healthy_log_has_no_such_channel(robot: Robot, recording: Recording) -> None:
    assert foreign_channels(recording, robot) == []
    bare = robot.with_parameters(robot.parameters.with_values(np.zeros(len(robot.parameters))))
    assert foreign_channels(recording, bare) == []
    gain = recording.with_(torque=recording.torque * np.linspace(0.6, 1.6, recording.n_joints))
    assert foreign_channels(gain, robot) == []


@pytest.mark.parametrize("joint", [0, 1, 3, 5])
@pytest.mark.parametrize(
    ("kind", "code"), [("dead", DEAD), ("zeros", DEAD), ("constant", DEAD), ("1000", UNIT), ("0.01", UNIT)]
)
def test_a_channel_is_named(robot: Robot, recording: Recording, joint: int, kind: str, code: str) -> None:
    (found,) = foreign_channels(spoiled(recording, joint, kind), robot)
    assert (found.code, found.where) == (code, (recording.joint_names[joint],))
    if code == UNIT:
        assert found.values["scale"] == pytest.approx(float(kind), rel=0.2)


def test_two_channels_and_a_sign(robot: Robot, recording: Recording) -> None:
    both = foreign_channels(spoiled(spoiled(recording, 1, "1000"), 3, "dead"), robot)
    assert {one.where[0] for one in both} == {recording.joint_names[1], recording.joint_names[3]}
    turned = spoiled(recording, 1, "-1")
    assert foreign_channels(turned, robot) == []
    assert check_recording(turned, robot).find("torque_sign") is not None


@pytest.mark.parametrize("kind", ["dead", "1000", "0.01"])
def test_one_channel_does_not_spoil_the_robot(robot: Robot, recording: Recording, kind: str) -> None:
    """The same as without the channel: bodies, friction of the other joints, errors."""
    name = recording.joint_names[1]
    asked = dynid.identify(robot, recording, dynid.Settings(**QUICK, ignore_torque=(name,)))
    found = dynid.identify(robot, spoiled(recording, 1, kind), dynid.Settings(**QUICK))
    assert found.settings.ignore_torque == (name,)
    np.testing.assert_allclose(found.estimate.base_values, asked.estimate.base_values, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.estimate.sigma, asked.estimate.sigma, rtol=1e-6, atol=1e-12)
    assert found.validation.relative_error == pytest.approx(asked.validation.relative_error)
    assert np.isnan(found.validation.total.relative_error_per_channel[1])
    assert found.validation.relative_error < 0.05
    assert any(name in note and "leaves this torque out" in note for note in found.notes)
    unknown = [
        own for own, origin in zip(found.estimate.base.names, found.estimate.origin, strict=True) if origin == "prior"
    ]
    assert {"fv2", "fc2"} <= set(unknown)


def test_rows_that_are_not_used_are_not_counted(robot: Robot) -> None:
    samples = dynid.demo_samples(robot)
    weight = np.ones_like(samples.torque)
    weight[:, 2], weight[: len(samples) // 2, 4] = 0.0, 0.0
    data, whole = (build_regression(robot, one) for one in (samples.with_weight(weight), samples))
    counts = [factor.n_rows for factor in data.factors]
    assert counts == [1000, 1000, 0, 1000, 500, *counts[5:]]
    np.testing.assert_array_equal(data.factors[2].R, 0.0)
    np.testing.assert_allclose(data.factors[0].R, whole.factors[0].R)


def test_names_are_checked(robot: Robot, recording: Recording) -> None:
    with pytest.raises(InputError, match="elbw"):
        ignoring(recording, ["elbw"], robot)
    with pytest.raises(InputError, match="--rows energy"):
        dynid.identify(robot, recording, dynid.Settings(rows="energy", ignore_torque=recording.joint_names[:1]))
    with pytest.raises(InputError, match="all"):
        ignoring(recording, recording.joint_names, robot)


def test_the_flag(tmp_path: Path, robot: Robot, recording: Recording) -> None:
    dynid.write_urdf(robot, tmp_path / "arm.urdf")
    dynid.write_recording(recording, tmp_path / "log.csv")
    name = recording.joint_names[1]
    words = ("--split", "0.65", "--cutoff-hz", "10", "--friction", "linear", "--ignore-torque", name, "-o", tmp_path / "run")
    done = cli_program.dynid("identify", tmp_path / "arm.urdf", tmp_path / "log.csv", *words, "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert any(name in note and "not used" in note for note in record["notes"])
    assert record["rmse"][1] is None
