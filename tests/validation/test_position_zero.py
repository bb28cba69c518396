"""Zeros of joints that were moved are found again, where weight shows them, and nothing is found where none was."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.io.demo import demo_recording, demo_robot
from dynid.validation.misread_logs import misread_columns
from dynid.validation.model_fit import RigidFit, few_rows, fitted_model, smooth_samples
from dynid.validation.position_zero import find_zeros

ROBOT = demo_robot("viscous,coulomb")
RECORDING = demo_recording(ROBOT, seconds=20.0, torque_noise=0.01, seed=2)


@pytest.mark.parametrize("moved", [{1: 90.0}, {3: -50.0}, {1: 90.0, 3: 60.0}])
def test_zeros_that_were_moved_are_named_with_their_flags(moved: dict[int, float]) -> None:
    zero = np.zeros(ROBOT.n_joints)
    for j, degrees in moved.items():
        zero[j] = np.deg2rad(degrees)
    (finding,) = misread_columns(RECORDING.with_(position=RECORDING.position + zero), ROBOT)
    assert finding.code == "position_zero"
    assert finding.values["zero"] == pytest.approx({ROBOT.joint_names[j]: zero[j] for j in moved}, abs=0.05)
    for j in moved:
        assert f"--zero {ROBOT.joint_names[j]}=" in finding.remedy


def test_a_log_that_is_right_has_none() -> None:
    assert misread_columns(RECORDING, ROBOT) == []
    model = fitted_model(ROBOT)
    motion = few_rows(smooth_samples(RECORDING), model)
    shifts, _ = find_zeros(model, motion, RigidFit.of(model, *motion).unexplained())
    assert not shifts.any()
