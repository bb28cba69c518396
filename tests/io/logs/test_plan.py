"""Pose tables and force/torque-sensor logs in text; columns that are missing, misspelt or too many."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.io.logs.columns import MissingJointsError
from dynid.io.logs.read import read_recording
from dynid.signals.recording import StaticRecording, WrenchRecording
from log_files import ARM, RNG, TAU, Held, N, Q, T, by_name, check, numbered, plain, write_csv
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


def test_missing_joints_are_named(tmp_path):
    path = write_csv(tmp_path / "log.csv", by_name("{joint}.{x}"))
    with pytest.raises(MissingJointsError, match=facts("3", "5", "position")) as caught:
        read_recording(path, ("finger_1", *ARM, "finger_2"))
    assert caught.value.present == ARM
    assert caught.value.missing == ("finger_1", "finger_2")


def test_extra_joints_are_ignored_and_said(tmp_path):
    columns = by_name("{joint}.{x}") | {"finger.q": T, "finger.tau": T}
    recording = read_recording(write_csv(tmp_path / "log.csv", columns), ARM)
    check(recording)
    assert any("not the robot's are ignored: finger" in note for note in recording.source.notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("tau3"), facts("2", "3", "torque")),
        (lambda c: c.pop("dq3"), facts("2", "3", "velocity")),
        (lambda c: c.pop("q2"), facts("q1", "q3", "position")),
        (lambda c: c.update({"qq2": c.pop("q2")}), "no column 'q2': did you mean column 'qq2'"),
        (lambda c: c.update({"q1 [furlong]": c.pop("q1")}), r"unit in the brackets of column 'q1 \[furlong\]' is not known"),
        (lambda c: c.update(q4=T), facts("4", "3", "position", "another robot", "mapping file")),
        (lambda c: c.pop("t"), "no time column, expected t, time or timestamp"),
        (lambda c: [c.pop(f"q{k}") for k in (1, 2, 3)], r"no position columns .* found t, dq1"),
        (lambda c: c.update({"q_1": T}), "columns 'q1' and 'q_1' mean the same"),
        (lambda c: c.update(tau2=np.full(N, np.nan)), facts("tau2", "40", "column")),
        (lambda c: c.update(q1=np.where(T > 0.1, np.inf, 0.0)), facts("q1", "column", "position")),
        (lambda c: c.update(t=np.zeros(N)), facts("1", "40", "0", "NaN", "39", "row")),
        (lambda c: c.update(t=np.full(N, np.nan)), "time column 't' holds no number"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_wrong_logs_are_refused_in_a_sentence(tmp_path, change, message, suffix):
    columns = plain()
    change(columns)
    path = tmp_path / f"log{suffix}"
    if suffix == ".csv":
        write_csv(path, columns)
    else:
        pq.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=message) as caught:
        read_recording(path, ARM)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (("A1", "A2", "A3", "M1", "M2", "M3"), '"A{number}"'),
        (("run_0_x", "run_1_x", "run_2_x"), '"run_{index}_x"'),
        (("run7", "A1", "B1", "A2", "B2", "B3"), '"B{number}"'),  # of as many as the robot has joints
        (("left", "right", "up"), '"A{number}" for columns A1, A2, ..'),
    ],
)
def test_a_refusal_suggests_the_mapping_that_names_the_columns(tmp_path, names, pattern):
    path = write_csv(tmp_path / "log.csv", {"t": T} | dict.fromkeys(names, T))
    with pytest.raises(InputError) as caught:
        read_recording(path, ARM)
    assert str(caught.value).endswith(f"(--mapping FILE): position = {pattern}")
    if "for" not in pattern:
        assert read_recording(path, ARM, mapping={"position": pattern.strip('"')}).n_joints == 3


def test_a_partial_torque_by_name_tells_the_joint(tmp_path):
    columns = by_name("{joint}.{x}")
    del columns["elbow_joint.tau"]
    path = write_csv(tmp_path / "log.csv", columns)
    with pytest.raises(InputError, match=facts("elbow", "2", "3", "torque")):
        read_recording(path, ARM)
    assert read_recording(path, ARM, ignore=("torque",)).torque is None
    with pytest.raises(UnknownNameError, match="unknown quantity to ignore 'position'"):
        read_recording(path, ARM, ignore=("position",))


def test_counts_name_the_locked_joints(tmp_path):
    robot = Held({"shoulder_lift_joint": 0.5})
    path = tmp_path / "log.csv"
    write_csv(path, plain() | {"q4": T})
    with pytest.raises(InputError, match=facts("4", "2", "shoulder_lift_joint", "position")):
        read_recording(path, robot)
    write_csv(path, {name: values for name, values in plain().items() if name != "tau3"})
    with pytest.raises(InputError, match=facts("2", "_lift_joint", "3", "torque")):
        read_recording(path, robot)
    write_csv(path, {"t": T, "q1": T, "tau1": T})
    with pytest.raises(InputError, match=facts("1", "2", "shoulder_lift", "position")) as caught:
        read_recording(path, robot)
    assert not isinstance(caught.value, MissingJointsError)


def _table(path: Path, names: Sequence[str]) -> Path:
    rows = np.sin(np.outer(np.arange(40), np.arange(1.0, len(names) + 1.0)))
    rows[:, 0] = 0.01 * np.arange(40)
    np.savetxt(path, rows, delimiter=",", header=",".join(names), comments="")
    return path


SIX = tuple(f"j{k}" for k in range(6))
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")


@pytest.mark.parametrize(
    ("names", "joints", "missing"),
    [
        (
            ("t", *(f"actual_q_{k}" for k in range(6)), *(f"actual_qd_{k}" for k in range(5))),
            SIX,
            "no column 'actual_qd_5' for joint 'j5'",
        ),
        (("t", *(f"q_{name}" for name in SIX), *(f"tau_{name}" for name in SIX if name != "j3")), SIX, "no column 'tau_j3' for joint 'j3'"),
        (("t", *(f"q{k}" for k in range(1, 7)), *WRENCH), (*SIX, "j6"), "no column 'q7' for joint 'j6'"),
    ],
    ids=["velocity", "torque", "sensor"],
)  # fmt: skip
def test_a_missing_column_is_called_by_its_name(
    tmp_path: Path, names: tuple[str, ...], joints: tuple[str, ...], missing: str
) -> None:
    with pytest.raises(InputError) as refused:
        read_recording(_table(tmp_path / "log.csv", names), joints)
    assert missing in str(refused.value)


def test_a_missing_axis_of_a_sensor_is_called_by_its_name(tmp_path: Path) -> None:
    log = _table(tmp_path / "log.csv", ("t", *(f"q{k}" for k in range(1, 7)), *(name for name in WRENCH if name != "fy")))
    with pytest.raises(InputError, match=r"no column 'fy' of the force and moment"):
        read_recording(log, SIX, kind="wrench")


def test_a_missing_command_is_named_in_the_note(tmp_path: Path) -> None:
    names = ("t", *(f"q_{name}" for name in SIX), *(f"q_cmd_{name}" for name in SIX if name != "j2"))
    (note,) = read_recording(_table(tmp_path / "log.csv", names), SIX).source.notes
    assert note.endswith("no column 'q_cmd_j2' for joint 'j2'")
