"""Pose tables and force/torque-sensor logs in text."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.recording.readers.read import read_recording
from dynid.recording.recording import StaticRecording, WrenchRecording
from log_files import ARM, RNG, TAU, N, Q, T, check, numbered, plain, write_csv
from messages import facts


def test_pose_table_by_columns(tmp_path):
    root = RNG.normal(size=(N, 3, 3))
    inertia = root @ root.transpose(0, 2, 1)
    entries = {f"M{i + 1}{j + 1}": inertia[:, i, j] for i in range(3) for j in range(i + 1)}
    table = read_recording(write_csv(tmp_path / "a.csv", numbered("q", Q) | entries | numbered("g", TAU)), ARM)
    assert isinstance(table, StaticRecording)
    np.testing.assert_array_equal(np.tril(table.inertia), np.tril(inertia))
    np.testing.assert_array_equal(table.inertia, table.inertia.transpose(0, 2, 1))
    gravity_only = read_recording(write_csv(tmp_path / "b.csv", numbered("q", Q) | numbered("g", TAU)), ARM)
    assert gravity_only.inertia is None
    del entries["M32"]
    with pytest.raises(InputError, match=facts("5", "3", "6", "M32", "inertia")):
        read_recording(write_csv(tmp_path / "c.csv", numbered("q", Q) | entries), ARM)
    nan = numbered("q", Q) | {"g1": np.full(N, np.nan), "g2": T, "g3": T}
    with pytest.raises(InputError, match="column 'g1' holds no number"):
        read_recording(write_csv(tmp_path / "d.csv", nan), ARM)


def test_motor_numbers_are_no_inertia(tmp_path):
    columns = plain() | {f"M{k}": T for k in range(1, 14)}
    check(read_recording(write_csv(tmp_path / "log.csv", columns), ARM))


def test_sensor_by_columns(tmp_path):
    wrench = RNG.normal(size=(N, 6))
    gyro = RNG.normal(size=(N, 3))
    columns = {"t": T} | {f"wrench.force.{axis}": wrench[:, k] for k, axis in enumerate("xyz")}
    columns |= {f"wrench.torque.{axis}": wrench[:, 3 + k] for k, axis in enumerate("xyz")}
    columns |= {f"gyro_{axis}": gyro[:, k] for k, axis in enumerate("xyz")}
    sensor = read_recording(write_csv(tmp_path / "log.csv", columns), ARM)
    assert isinstance(sensor, WrenchRecording)
    np.testing.assert_array_equal(sensor.wrench, wrench)
    np.testing.assert_array_equal(sensor.angular_velocity, gyro)
    assert sensor.position is None
    mapped = {"t": T} | {f"c{k}": wrench[:, k] for k in range(6)}
    mapping = {"wrench": [f"c{k}" for k in range(6)]}
    sensor = read_recording(write_csv(tmp_path / "mapped.csv", mapped), ARM, mapping=mapping)
    np.testing.assert_array_equal(sensor.wrench, wrench)
