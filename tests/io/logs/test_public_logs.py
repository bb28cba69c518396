"""Public recordings."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.io.logs.read import open_recording, read_recording
from dynid.signals.recording import StaticRecording
from messages import facts
from shared_data import need, shared

need("panda_gaz/exciting_traj_1.parquet", "ur10e_mamedov/index.csv", "wam7/reference_traj1.parquet")

PANDA = tuple(f"joint{k}" for k in range(1, 8))
UR10E = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")


def test_panda_log():
    path = shared("panda_gaz/exciting_traj_1.parquet")
    recording = read_recording(path, PANDA)
    assert recording.n_samples == 20544
    assert recording.quantities == ("position", "velocity", "torque")
    assert 1e3 / recording.rate_hz == pytest.approx(1.022, abs=5e-4)
    steps = np.diff(recording.time)
    assert steps.min() == pytest.approx(0.70e-3, abs=0.01e-3)
    assert steps.max() == pytest.approx(8.8e-3, abs=0.05e-3)
    stream = open_recording(path, PANDA, chunk_rows=3000)
    np.testing.assert_array_equal(stream.read().torque, recording.torque)
    with pytest.raises(InputError, match=facts("7", "9", "--joints", "position")):
        read_recording(path, (*PANDA, "finger1", "finger2"))
    named = read_recording(path, (*PANDA, "finger1", "finger2"), joints=PANDA)
    np.testing.assert_array_equal(named.torque, recording.torque)
    with pytest.raises(InputError, match="no position columns"):
        read_recording(shared("panda_gaz/exciting_traj_1_command.parquet"), PANDA)


def test_panda_pose_table():
    table = read_recording(shared("panda_gaz/static_mg.parquet"), PANDA)
    assert isinstance(table, StaticRecording)
    assert table.inertia.shape == (1010, 7, 7)
    assert np.linalg.eigvalsh(table.inertia).min() > 0.0
    np.testing.assert_array_equal(table.gravity[:, 0], 0.0)


def test_ur10e_logs_hold_current():
    path = shared("ur10e_mamedov/traj/20_02_10_30sec_12harm.parquet")
    recording = read_recording(path, UR10E)
    assert recording.quantities == ("position", "velocity", "current")
    assert recording.rate_hz == pytest.approx(94.0, abs=0.5)
    gains = [10.0, 10.6956, 8.4566, 9.0029, 9.48, 10.1232]
    driven = read_recording(path, UR10E, drive_gains=gains)
    np.testing.assert_allclose(driven.torque, recording.current * gains)


def test_wam_reference_is_position_alone():
    recording = read_recording(shared("wam7/reference_traj1.parquet"), PANDA)
    assert recording.quantities == ("position",)
    assert recording.rate_hz == pytest.approx(1000.0, rel=1e-6)
