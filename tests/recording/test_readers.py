from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynid.errors import InputError, MissingPackageError, UnknownNameError
from dynid.recording.readers.joints import HasJoints, MissingJointsError
from dynid.recording.readers.names import near_name
from dynid.recording.readers.presets import PRESETS
from dynid.recording.readers.read import open_recording, read_recording
from dynid.recording.recording import Recording, StaticRecording, WrenchRecording, write_recording
from problems import demo_arm, random_tree
from shared_data import shared

ARM = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint")
N = 40
RNG = np.random.default_rng(7)
T = np.arange(N) * 0.008
Q, DQ, TAU, CURRENT = RNG.normal(size=(4, N, 3))


@dataclass(frozen=True)
class Arm:
    joint_names: tuple[str, ...] = ARM


def write_csv(path: Path, columns: dict[str, np.ndarray], delimiter: str = ",", decimal: str = ".") -> Path:
    rows = [delimiter.join(columns)]
    rows += [
        delimiter.join(repr(value.item()).replace(".", decimal) for value in row)
        for row in zip(*columns.values(), strict=True)
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def numbered(prefix: str, values: np.ndarray, start: int = 1, form: str = "{prefix}{k}") -> dict[str, np.ndarray]:
    return {form.format(prefix=prefix, k=start + j): values[:, j] for j in range(values.shape[1])}


def plain() -> dict[str, np.ndarray]:
    return {"t": T} | numbered("q", Q) | numbered("dq", DQ) | numbered("tau", TAU)


def check(recording, velocity=True, torque=True):
    assert isinstance(recording, Recording)
    np.testing.assert_allclose(recording.time - recording.time[0], T, atol=2e-7)
    np.testing.assert_array_equal(recording.position, Q)
    if velocity:
        np.testing.assert_array_equal(recording.velocity, DQ)
    if torque:
        np.testing.assert_array_equal(recording.torque, TAU)


# -- names of columns ----


def by_name(form: str) -> dict[str, np.ndarray]:
    words = {"q": Q, "dq": DQ, "tau": TAU}
    return {"t": T} | {
        form.format(x=word, joint=joint, short=joint.removesuffix("_joint")): values[:, k]
        for word, values in words.items()
        for k, joint in enumerate(ARM)
    }


NAMINGS = {
    "numbers from 1": plain(),
    "numbers from 0": {"time": T} | numbered("q", Q, 0) | numbered("qd", DQ, 0) | numbered("effort", TAU, 0),
    "underscores": {"timestamp": T}
    | numbered("pos", Q, 1, "{prefix}_{k}")
    | numbered("vel", DQ, 1, "{prefix}_{k}")
    | numbered("torque", TAU, 1, "{prefix}_{k}"),
    "brackets": {"stamp": T}
    | numbered("q", Q, 0, "{prefix}[{k}]")
    | numbered("dq", DQ, 0, "{prefix}[{k}]")
    | numbered("tau_J", TAU, 0, "{prefix}[{k}]"),
    "joint numbers": {"t": T}
    | numbered("position", Q, 1, "joint{k}_{prefix}")
    | numbered("velocity", DQ, 1, "joint{k}_{prefix}")
    | numbered("effort", TAU, 1, "joint{k}_{prefix}"),
    "axis numbers": {"t": T}
    | numbered("q", Q, 1, "A{k}.{prefix}")
    | numbered("dq", DQ, 1, "A{k}.{prefix}")
    | numbered("torque", TAU, 1, "A{k}.{prefix}"),
    "quantity_joint": by_name("{x}_{short}"),
    "joint.quantity": by_name("{joint}.{x}"),
    "quantity.joint": by_name("{x}.{joint}"),
    "capitals": {name.upper(): values for name, values in by_name("{joint}/{x}").items()},
    "measured": {"t": T}
    | numbered("actual_q", Q, 0, "{prefix}_{k}")
    | numbered("actual_qd", DQ, 0, "{prefix}_{k}")
    | numbered("measured_torque", TAU, 0, "{prefix}_{k}"),
    "zero padded": {"t": T}
    | numbered("q", Q, 1, "{prefix}0{k}")
    | numbered("dq", DQ, 1, "{prefix}0{k}")
    | numbered("tau", TAU, 1, "{prefix}0{k}"),
}


@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_usual_names_are_understood(tmp_path, naming, suffix):
    columns = NAMINGS[naming]
    path = tmp_path / f"log{suffix}"
    if suffix == ".csv":
        write_csv(path, columns)
    elif suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        np.savez(path, **columns)
    check(read_recording(path, ARM))


def test_a_robot_is_as_good_as_its_joint_names(tmp_path):
    assert isinstance(Arm(), HasJoints)
    check(read_recording(write_csv(tmp_path / "log.csv", plain()), Arm()))
    with pytest.raises(InputError, match="expected a robot with joints"):
        read_recording(tmp_path / "log.csv", "elbow")


def test_robots_whose_names_are_numbers_keep_their_place(tmp_path):
    """Columns counted from 0 are not mistaken for joints named from 1."""
    columns = {"t": T} | numbered("q", Q, 0, "{prefix}_joint{k}") | numbered("tau", TAU, 0, "{prefix}_joint{k}")
    path = write_csv(tmp_path / "log.csv", columns)
    check(read_recording(path, ("joint1", "joint2", "joint3")), velocity=False)
    check(read_recording(path, ("panda_joint0", "panda_joint1", "panda_joint2")), velocity=False)


def test_one_joint_needs_no_number(tmp_path):
    path = write_csv(tmp_path / "log.csv", {"t": T, "q": Q[:, 0], "dq": DQ[:, 0], "tau": TAU[:, 0]})
    np.testing.assert_array_equal(read_recording(path, ["hinge"]).torque, TAU[:, :1])


def test_commanded_and_external_quantities_are_kept_apart(tmp_path):
    other = RNG.normal(size=(3, N, 3))
    columns = plain() | numbered("q_d", other[0], 0, "{prefix}[{k}]") | numbered("tau_des", other[1])
    columns |= numbered("tau_ext_hat_filtered", other[2], 0, "{prefix}[{k}]")
    recording = read_recording(write_csv(tmp_path / "log.csv", columns), ARM)
    check(recording)
    np.testing.assert_array_equal(recording.reference_position, other[0])
    np.testing.assert_array_equal(recording.external_torque, other[2])


def test_current_becomes_torque_by_drive_gains(tmp_path):
    path = write_csv(tmp_path / "log.csv", {"t": T} | numbered("q", Q) | numbered("i", CURRENT))
    assert read_recording(path, ARM).torque is None
    driven = read_recording(path, ARM, drive_gains=[10.0, 9.0, 8.0])
    np.testing.assert_allclose(driven.torque, CURRENT * [10.0, 9.0, 8.0])
    assert "torque is drive gain times motor current" in driven.source.notes
    stream = open_recording(path, ARM, drive_gains=[10.0, 9.0, 8.0])
    assert stream.quantities == ("position", "torque", "current")
    np.testing.assert_array_equal(stream.read().torque, driven.torque)


def test_effort_that_is_current(tmp_path):
    path = write_csv(tmp_path / "log.csv", {"t": T} | numbered("q", Q) | numbered("effort", CURRENT * 1e3))
    recording = read_recording(path, ARM, units={"torque": "mA"}, drive_gains=[2.0, 2.0, 2.0])
    np.testing.assert_allclose(recording.torque, 2.0 * CURRENT)
    np.testing.assert_allclose(recording.current, CURRENT)


def test_units_and_gear_ratios(tmp_path):
    columns = {"t": T} | numbered("q", Q) | numbered("dq", DQ) | numbered("tau", TAU)
    path = write_csv(tmp_path / "log.csv", columns)
    side = {"side": {"position": "motor", "velocity": "motor", "torque": "motor"}, "gear_ratios": [100, 50, 10]}
    recording = read_recording(
        path, ARM, mapping=side, units={"position": "deg", "velocity": "rpm", "torque": ["Nm", "mNm", "N"]}
    )
    gear = np.array([100.0, 50.0, 10.0])
    np.testing.assert_allclose(recording.position, np.deg2rad(Q) / gear)
    np.testing.assert_allclose(recording.velocity, DQ * 2.0 * np.pi / 60.0 / gear)
    np.testing.assert_allclose(recording.torque, TAU * [1.0, 1e-3, 1.0] * gear)
    with pytest.raises(InputError, match="position is measured at the motor, expected gear ratios"):
        read_recording(path, ARM, mapping={"side": {"position": "motor"}})
    with pytest.raises(UnknownNameError, match="unknown unit of position 'grad'; available: rad, deg"):
        read_recording(path, ARM, units={"position": "grad"})


# -- joints missing, extra, miscounted ----


def test_missing_joints_are_named(tmp_path):
    path = write_csv(tmp_path / "log.csv", by_name("{joint}.{x}"))
    with pytest.raises(MissingJointsError, match="log has 3 position columns, robot has 5 joints") as caught:
        read_recording(path, ("finger_1", *ARM, "finger_2"))
    assert caught.value.present == ARM
    assert caught.value.missing == ("finger_1", "finger_2")


def poses() -> dict[str, np.ndarray]:
    entries = {f"M{i}{j}": np.full(N, 10.0 * i + j) for i in (1, 2, 3) for j in range(1, i + 1)}
    return numbered("q", Q) | entries | numbered("g", TAU)


@pytest.mark.parametrize("columns", [plain(), poses()], ids=["motion", "poses"])
def test_numbered_columns_are_never_guessed_to_be_the_first_joints(tmp_path, columns):
    path = write_csv(tmp_path / "log.csv", columns)
    with pytest.raises(InputError, match=r"3 position columns, robot has 4 joints \(torso, shoulder_pan_joint, ") as caught:
        read_recording(path, ("torso", *ARM))
    assert not isinstance(caught.value, MissingJointsError)  # which a run takes as leave to lock the rest
    assert all(word in str(caught.value) for word in (str(path), *ARM, "--joints", "--lock"))


def test_the_joints_of_numbered_columns_can_be_named(tmp_path):
    path = write_csv(tmp_path / "log.csv", plain())
    for joints in (ARM, (ARM[2], ARM[0], ARM[1])):
        recording = read_recording(path, ("torso", *ARM, "finger"), joints=joints)
        assert recording.joint_names == ARM  # in the robot's order, whatever that of the columns
        order = [joints.index(name) for name in ARM]
        np.testing.assert_array_equal(recording.position, Q[:, order])
        np.testing.assert_array_equal(recording.torque, TAU[:, order])
        assert any(f"in this order: {', '.join(joints)}" in note for note in recording.source.notes)
        stream = open_recording(path, ("torso", *ARM, "finger"), joints=joints, chunk_rows=9)
        np.testing.assert_array_equal(stream.read().torque, TAU[:, order])


def test_named_joints_of_a_pose_table_order_its_matrix(tmp_path):
    path = write_csv(tmp_path / "poses.csv", poses())
    table = read_recording(path, ("torso", *ARM), joints=(ARM[2], ARM[0], ARM[1]))
    assert isinstance(table, StaticRecording)
    np.testing.assert_array_equal(table.gravity, TAU[:, [1, 2, 0]])
    np.testing.assert_array_equal(table.inertia[0], [[22.0, 32.0, 21.0], [32.0, 33.0, 31.0], [21.0, 31.0, 11.0]])


def test_values_per_joint_follow_the_named_joints(tmp_path):
    path = write_csv(tmp_path / "log.csv", {"t": T} | numbered("q", Q) | numbered("i", CURRENT))
    joints = (ARM[2], ARM[0], ARM[1])
    expected = CURRENT[:, [1, 2, 0]] * [3.0, 4.0, 2.0]
    robot = ("torso", *ARM)
    by_joint = dict(zip(joints, (2.0, 3.0, 4.0), strict=True))
    for gains in ((2.0, 3.0, 4.0), (9.0, 3.0, 4.0, 2.0), by_joint, by_joint | {"torso": 9.0}):
        np.testing.assert_allclose(read_recording(path, robot, joints=joints, drive_gains=gains).torque, expected)
    recording = read_recording(path, robot, joints=joints, units={"position": ["deg", "rad", "rad"]})
    np.testing.assert_allclose(recording.position, Q[:, [1, 2, 0]] * [1.0, 1.0, np.pi / 180.0])


def test_named_joints_may_be_locked_ones(tmp_path):
    robot = Held({"shoulder_lift_joint": 0.5})
    recording = read_recording(write_csv(tmp_path / "log.csv", held_log()), robot, joints=ARM)
    assert recording.joint_names == (ARM[0], ARM[2])
    np.testing.assert_array_equal(recording.torque, TAU[:, [0, 2]])
    assert "the columns of locked joints are left out: shoulder_lift_joint ('q2')" in recording.source.notes


def test_columns_by_name_are_read_for_the_named_joints_alone(tmp_path):
    path = write_csv(tmp_path / "log.csv", by_name("{joint}.{x}"))
    recording = read_recording(path, ARM, joints=ARM[1:])
    assert recording.joint_names == ARM[1:]
    np.testing.assert_array_equal(recording.torque, TAU[:, 1:])
    assert any("not asked for are ignored: shoulder_pan_joint" in note for note in recording.source.notes)


@pytest.mark.parametrize(
    ("joints", "message"),
    [
        (ARM[:2], "log has 3 position columns, joints names 2: shoulder_pan_joint, shoulder_lift_joint"),
        ((*ARM, "finger"), "log has 3 position columns, joints names 4: "),
        ((*ARM[:2], "elbov"), "unknown joint 'elbov' in the joints of the columns; available: shoulder_pan_joint"),
        ((*ARM, ARM[0]), "'shoulder_pan_joint' appears more than once"),
        ((), "joints names no joint"),
        ("elbow_joint", "is the text 'elbow_joint', expected a sequence of names"),
    ],
)
def test_wrong_joints_are_refused(tmp_path, joints, message):
    with pytest.raises(InputError, match=message):
        read_recording(write_csv(tmp_path / "log.csv", plain()), (*ARM, "finger"), joints=joints)


def test_extra_joints_are_ignored_and_said(tmp_path):
    columns = by_name("{joint}.{x}") | {"finger.q": T, "finger.tau": T}
    recording = read_recording(write_csv(tmp_path / "log.csv", columns), ARM)
    check(recording)
    assert any("not the robot's are ignored: finger" in note for note in recording.source.notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("tau3"), "log has 2 torque columns, robot has 3 joints"),
        (lambda c: c.pop("dq3"), "log has 2 velocity columns, robot has 3 joints"),
        (lambda c: c.pop("q2"), r"numbers are missing among the position columns \(q1, q3\)"),
        (lambda c: c.update(q4=T), "log has 4 position columns, robot has 3 joints"),
        (lambda c: c.pop("t"), "no time column, expected t, time or timestamp"),
        (lambda c: [c.pop(f"q{k}") for k in (1, 2, 3)], r"no position columns .* found t, dq1"),
        (lambda c: c.update({"q_1": T}), "columns 'q1' and 'q_1' mean the same"),
        (lambda c: c.update(tau2=np.full(N, np.nan)), r"column 'tau2' \(torque\) holds no number in 40 rows"),
        (lambda c: c.update(q1=np.where(T > 0.1, np.inf, 0.0)), r"column 'q1' \(position\) holds \d+ infinite"),
        (lambda c: c.update(t=np.zeros(N)), "1 of 40 rows left without 0 rows with NaN and 39 with a repeated"),
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


def test_a_partial_torque_by_name_tells_the_joint(tmp_path):
    columns = by_name("{joint}.{x}")
    del columns["elbow_joint.tau"]
    path = write_csv(tmp_path / "log.csv", columns)
    with pytest.raises(InputError, match="log has 2 torque columns, robot has 3 joints; no torque column for joint 'elbow"):
        read_recording(path, ARM)
    assert read_recording(path, ARM, ignore=("torque",)).torque is None
    with pytest.raises(UnknownNameError, match="unknown quantity to ignore 'position'"):
        read_recording(path, ARM, ignore=("position",))


# -- clocks ----


@pytest.mark.parametrize(
    ("name", "scale"), [("t_ms", 1e3), ("time_us", 1e6), ("timestamp_ns", 1e9), ("t", 1e3), ("t", 1e6), ("t", 1e9)]
)
def test_units_of_time_are_found_and_said(tmp_path, name, scale):
    path = write_csv(tmp_path / "log.csv", {name: T * scale} | numbered("q", Q))
    recording = read_recording(path, ARM)
    np.testing.assert_allclose(recording.time, T, atol=1e-12)
    assert any("is read as" in note for note in recording.source.notes)
    np.testing.assert_allclose(read_recording(path, ARM, units={"time": "s"}).time, T * scale)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_dates_in_nanoseconds_keep_every_digit(tmp_path, suffix):
    stamps = 1_700_000_000_123_456_789 + np.arange(N, dtype=np.int64) * 8_000_001
    columns = {"stamp": stamps} | numbered("q", Q)
    path = tmp_path / f"log{suffix}"
    if suffix == ".csv":
        write_csv(path, columns)
    elif suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        np.savez(path, **columns)
    recording = read_recording(path, ARM)
    np.testing.assert_allclose(recording.time, np.arange(N) * 0.008000001, rtol=0, atol=1e-15)
    assert any("counts from the first stamp" in note for note in recording.source.notes)
    np.testing.assert_array_equal(open_recording(path, ARM, chunk_rows=9).read().time, recording.time)


def test_timestamp_columns_of_parquet_carry_their_unit(tmp_path):
    stamps = pa.array((np.arange(N) * 8000 + 1_700_000_000_000_000), pa.timestamp("us"))
    pq.write_table(pa.table({"time": stamps} | numbered("q", Q)), tmp_path / "log.parquet")
    np.testing.assert_allclose(read_recording(tmp_path / "log.parquet", ARM).time, T, atol=1e-12)


def test_seconds_and_nanoseconds_apart(tmp_path):
    ns = (np.arange(N, dtype=np.int64) * 8_000_000) + 999_000_000
    columns = {"header.stamp.sec": 1_700_000_000 + ns // 10**9, "header.stamp.nanosec": ns % 10**9}
    path = write_csv(tmp_path / "log.csv", columns | numbered("q", Q))
    np.testing.assert_allclose(read_recording(path, ARM).time, T, atol=1e-12)


def test_a_rate_replaces_the_clock(tmp_path):
    path = write_csv(tmp_path / "log.csv", numbered("q", Q) | numbered("tau", TAU))
    recording = read_recording(path, ARM, rate_hz=125.0)
    np.testing.assert_allclose(recording.time, T)
    np.testing.assert_allclose(open_recording(path, ARM, rate_hz=125.0, chunk_rows=7).read().time, T)
    with pytest.raises(InputError, match="rate_hz is -1"):
        read_recording(path, ARM, rate_hz=-1.0)


def test_hygiene_is_done_and_counted(tmp_path):
    columns = plain()
    order = np.r_[0:10, 20:30, 10:20, 30:40, 5, 6]
    columns = {name: values[order].copy() for name, values in columns.items()}
    columns["tau2"][3] = np.nan
    columns["dq1"][3:5] = np.nan
    recording = read_recording(write_csv(tmp_path / "log.csv", columns), ARM)
    kept = np.r_[0:3, 5:40]
    np.testing.assert_array_equal(recording.torque, TAU[kept])
    assert recording.source.n_rows_in_file == 42
    assert recording.source.n_dropped == 4
    text = " ".join(recording.source.notes)
    assert "2 rows with NaN" in text
    assert "sorted by their stamps" in text
    assert "2 rows with a repeated stamp" in text


def test_a_clock_that_starts_over_is_refused(tmp_path):
    twice = {name: np.r_[values, values] for name, values in plain().items()}
    twice["t"][N:] += 0.003
    with pytest.raises(InputError, match=r"the clock starts over at row 40 \(0.312 s to 0.003 s\), expected one run"):
        read_recording(write_csv(tmp_path / "log.csv", twice), ARM)


def test_a_quantity_without_numbers_is_left_out(tmp_path):
    columns = plain() | numbered("tau", np.full((N, 3), np.nan))
    recording = read_recording(write_csv(tmp_path / "log.csv", columns), ARM)
    assert recording.torque is None
    assert any("torque holds no numbers" in note for note in recording.source.notes)


def test_streams_sort_late_rows_and_refuse_wild_ones(tmp_path):
    n = 5000
    time = np.arange(n) * 1e-3
    values = RNG.normal(size=(n, 3))
    order = np.arange(n)
    order[[2399, 2400]] = [2400, 2399]
    table = pa.table({"t": time[order]} | numbered("q", values[order]))
    pq.write_table(table, tmp_path / "log.parquet")
    whole = read_recording(tmp_path / "log.parquet", ARM)
    np.testing.assert_array_equal(whole.position, values)
    stream = open_recording(tmp_path / "log.parquet", ARM, chunk_rows=1200)
    np.testing.assert_array_equal(stream.read().position, values)
    wild = np.r_[3000:5000, 0:3000]
    pq.write_table(pa.table({"t": time[wild]} | numbered("q", values[wild])), tmp_path / "wild.parquet")
    np.testing.assert_array_equal(read_recording(tmp_path / "wild.parquet", ARM).position, values)
    with pytest.raises(InputError, match="stamps go back"):
        open_recording(tmp_path / "wild.parquet", ARM, chunk_rows=1200).read()


def test_streams_count_what_they_drop(tmp_path):
    columns = {name: values.copy() for name, values in plain().items()}
    columns["q1"][[0, 11, 39]] = np.nan
    stream = open_recording(write_csv(tmp_path / "log.csv", columns), ARM, chunk_rows=10)
    assert sum(chunk.n_dropped for chunk in stream.chunks()) == 3
    columns["q1"][:] = np.nan
    empty = open_recording(write_csv(tmp_path / "nan.csv", columns), ARM, chunk_rows=10)
    with pytest.raises(InputError, match="no row is left of the log; 40 rows have NaN"):
        list(empty)


# -- mappings and presets ----


def test_mapping_in_its_forms(tmp_path):
    columns = {"clock": T * 1e3, "first": Q[:, 0], "second": Q[:, 1], "third": Q[:, 2]}
    columns |= numbered("load", TAU, 1, "drive{k}.{prefix}") | {"a": DQ[:, 0], "b": DQ[:, 1], "c": DQ[:, 2]}
    path = write_csv(tmp_path / "log.csv", columns)
    mapping = {
        "time": "clock",
        "position": ["first", "second", "third"],
        "velocity": {"elbow_joint": "c", "shoulder_pan_joint": "a", "shoulder_lift_joint": "b"},
        "torque": "drive{number}.load",
        "units": {"time": "ms"},
    }
    check(read_recording(path, ARM, mapping=mapping))
    (tmp_path / "map.json").write_text(json.dumps(mapping))
    check(read_recording(path, ARM, mapping=tmp_path / "map.json"))
    (tmp_path / "map.toml").write_text(
        'time = "clock"\ntorque = "drive{number}.load"\n[units]\ntime = "ms"\n'
        '[rename]\nfirst = "q1"\nsecond = "q2"\nthird = "q3"\na = "dq1"\nb = "dq2"\nc = "dq3"\n'
    )
    check(read_recording(path, ARM, mapping=tmp_path / "map.toml"))


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"positions": "q"}, "unknown key 'positions' in mapping; available: time, position"),
        ({"position": ["q1", "q2"]}, "log has 2 position columns, robot has 3 joints"),
        ({"position": ["q1", "q2", "q9"]}, "unknown position column 'q9'"),
        ({"torque": {"wrist": "tau1"}}, "unknown joint 'wrist'"),
        ({"torque": "load{number}"}, "no column fits the mapping 'load{number}' of torque"),
        ({"time": "clock"}, "unknown time column 'clock'"),
        ({"time": 3}, "'time' is 3, expected one to 2 column names"),
        ({"units": "deg"}, "'units' is 'deg', expected a table"),
        ({"rename": {"x": "q1"}}, "unknown column 'x'"),
        ({"rename": {"q1": "q2"}}, "renames two columns to the same name"),
        ({"side": {"torque": "gear"}}, "unknown side of the gearbox 'gear'"),
        ({"gear_ratios": [1.0]}, "1 gear ratios given, robot has 3 joints"),
        ({"preset": "fanuc"}, "unknown preset 'fanuc'; available: libfranka, rtde, fri, joint_states"),
        ("missing.toml", "missing.toml: cannot be read as a mapping"),
        ("mapping.yaml", "a mapping file ends in .toml or .json"),
    ],
)
def test_wrong_mappings_are_refused(tmp_path, mapping, message):
    with pytest.raises(InputError, match=message):
        read_recording(write_csv(tmp_path / "log.csv", plain()), ARM, mapping=mapping)


def test_preset_libfranka(tmp_path):
    arm = tuple(f"fr3_joint{k}" for k in range(1, 8))
    q, q_d, dq, dq_d, tau, tau_ext, commanded = np.random.default_rng(0).normal(size=(7, 20, 7))
    columns = {"time": np.arange(20) + 7731, "success_rate": np.ones(20)}
    for name, values in {
        "state.q": q, "state.q_d": q_d, "state.dq": dq, "state.dq_d": dq_d, "state.tau_J": tau,
        "state.tau_ext_hat_filtered": tau_ext, "cmd.q_d": commanded, "cmd.tau_J_d": commanded,
    }.items():  # fmt: skip
        columns |= numbered(name, values, 0, "{prefix}[{k}]")
    path = write_csv(tmp_path / "log.csv", columns)
    for preset in ("libfranka", None):
        recording = read_recording(path, arm, preset=preset)
        np.testing.assert_allclose(recording.time, 7.731 + np.arange(20) * 1e-3)
        np.testing.assert_array_equal(recording.position, q)
        np.testing.assert_array_equal(recording.velocity, dq)
        np.testing.assert_array_equal(recording.torque, tau)
        np.testing.assert_array_equal(recording.external_torque, tau_ext)
        np.testing.assert_array_equal(recording.reference_position, q_d)
    assert recording.source.preset is None
    # The older header has blanks after its commas and other names for the first two columns.
    text = path.read_text().replace("time,success_rate,", "duration, success rate, ", 1).replace("state.", "")
    path.write_text(text.replace("],", "], "))
    old = read_recording(path, arm, preset="libfranka")
    np.testing.assert_array_equal(old.torque, tau)
    assert old.source.preset == "libfranka"


def test_preset_rtde_with_blanks_between(tmp_path):
    columns = {"timestamp": 532.0 + T} | numbered("actual_q", Q, 0, "{prefix}_{k}")
    columns |= numbered("actual_qd", DQ, 0, "{prefix}_{k}") | numbered("actual_current", CURRENT, 0, "{prefix}_{k}")
    columns |= numbered("target_q", Q + 1, 0, "{prefix}_{k}") | numbered("target_moment", TAU, 0, "{prefix}_{k}")
    columns |= {f"actual_TCP_force_{k}": T for k in range(6)}
    path = write_csv(tmp_path / "log.csv", columns, delimiter=" ")
    for preset in ("rtde", None):
        recording = read_recording(path, ARM, preset=preset, drive_gains=[2.0, 3.0, 4.0])
        np.testing.assert_array_equal(recording.velocity, DQ)
        np.testing.assert_allclose(recording.torque, CURRENT * [2.0, 3.0, 4.0])
        np.testing.assert_array_equal(recording.reference_position, Q + 1)
    sensor = read_recording(path, ARM, kind="wrench")
    assert isinstance(sensor, WrenchRecording)
    np.testing.assert_array_equal(sensor.position, Q)


def test_preset_fri(tmp_path):
    ns = np.arange(N, dtype=np.int64) * 8_000_000
    columns = {"time_stamp_sec": 1_700_000_000 + ns // 10**9, "time_stamp_nano_sec": ns % 10**9}
    columns |= numbered("measured_joint_position", Q, 0, "{prefix}_{k}")
    columns |= numbered("measured_torque", TAU, 0, "{prefix}_{k}")
    columns |= numbered("external_torque", TAU - 1, 0, "{prefix}_{k}")
    path = write_csv(tmp_path / "log.csv", columns)
    for preset in ("fri", None):
        recording = read_recording(path, ARM, preset=preset)
        check(recording, velocity=False)
        np.testing.assert_array_equal(recording.external_torque, TAU - 1)


def test_a_preset_that_does_not_fit_says_what_it_expects(tmp_path):
    path = write_csv(tmp_path / "log.csv", plain())
    with pytest.raises(InputError, match=r"expected those of preset 'rtde' \(actual_q\[\{index\}\] ..\), found t, q1"):
        read_recording(path, ARM, preset="rtde")
    with pytest.raises(UnknownNameError, match="unknown preset 'abb'"):
        read_recording(path, ARM, preset="abb")


def test_every_preset_names_units_and_sides():
    for preset in PRESETS.values():
        assert "position" in preset.columns
        assert set(preset.units) - {"time"} <= set(preset.columns)
        assert set(preset.side) <= set(preset.columns)


# -- text tables ----


@pytest.mark.parametrize(
    ("delimiter", "decimal"), [(",", "."), (";", "."), (";", ","), ("\t", "."), ("\t", ","), (" ", "."), ("   ", ".")]
)
def test_separators_and_decimal_signs(tmp_path, delimiter, decimal):
    check(read_recording(write_csv(tmp_path / "log.csv", plain(), delimiter, decimal), ARM))


def test_quoted_names_byte_order_mark_windows_lines_and_comments(tmp_path):
    text = write_csv(tmp_path / "log.csv", plain()).read_text()
    header, rows = text.split("\n", 1)
    quoted = ",".join(f'"{name}"' for name in header.split(","))
    (tmp_path / "a.csv").write_bytes(("\ufeff" + quoted + "\n" + rows).replace("\n", "\r\n").encode())
    check(read_recording(tmp_path / "a.csv", ARM))
    (tmp_path / "b.csv").write_text("# made by a logger\n# on a Tuesday\n" + text)
    check(read_recording(tmp_path / "b.csv", ARM))
    (tmp_path / "c.csv").write_text("% " + text)
    check(read_recording(tmp_path / "c.csv", ARM))
    (tmp_path / "d.csv").write_bytes(("temp \u00b0C," + header + "\n").encode("latin-1") + b"".join(
        b"20.5," + line.encode() + b"\n" for line in rows.splitlines()
    ))  # fmt: skip
    check(read_recording(tmp_path / "d.csv", ARM))
    trailing = "\n".join(line + "," for line in text.splitlines())
    (tmp_path / "e.csv").write_text(trailing)
    check(read_recording(tmp_path / "e.csv", ARM))


def test_a_header_can_be_given(tmp_path):
    header, rows = write_csv(tmp_path / "log.csv", plain()).read_text().split("\n", 1)
    (tmp_path / "bare.csv").write_text(rows)
    with pytest.raises(InputError, match="the first line holds 10 numbers, expected column names"):
        read_recording(tmp_path / "bare.csv", ARM)
    check(read_recording(tmp_path / "bare.csv", ARM, mapping={"header": header.split(",")}))
    with pytest.raises(InputError, match="names 1 columns in 'header', the file has 10"):
        read_recording(tmp_path / "bare.csv", ARM, mapping={"header": ["t"]})


def test_a_last_line_cut_short_is_left_out(tmp_path):
    path = write_csv(tmp_path / "log.csv", plain())
    path.write_text(path.read_text() + "0.5,1.0,2")
    recording = read_recording(path, ARM)
    check(recording)
    assert (recording.source.n_dropped, recording.source.n_rows_in_file) == (1, N + 1)
    (finding,) = recording.source.findings
    assert (finding.code, finding.severity) == ("cut_off", "warning")
    assert finding.sentence == "the last line of the file is cut off (it has 3 of 10 fields) and was left out"


@pytest.mark.parametrize("delimiter", [",", " ", "\t"])
def test_a_last_number_cut_short_is_left_out(tmp_path, delimiter):
    path = write_csv(tmp_path / "log.csv", plain(), delimiter)
    text = path.read_text()
    path.write_text(text[:-1])  # a whole last line may have no end
    check(whole := read_recording(path, ARM))
    assert whole.source.findings == ()
    path.write_text(text[:-9])
    recording = read_recording(path, ARM)
    assert recording.n_samples == N - 1
    np.testing.assert_array_equal(recording.torque, TAU[:-1])
    (finding,) = recording.source.findings
    cut = repr(TAU[-1, -1].item())[:-8]
    assert f"cut off (its last number is '{cut}' and the line has no end)" in finding.sentence
    stream = open_recording(path, ARM, chunk_rows=7)
    np.testing.assert_array_equal(stream.read().torque, TAU[:-1])
    assert stream.source.findings == recording.source.findings


def test_a_short_last_number_among_short_ones_is_no_cut(tmp_path):
    columns = plain() | {"flag": np.arange(N) % 12}
    path = write_csv(tmp_path / "log.csv", columns)
    path.write_text(path.read_text()[:-1])
    assert read_recording(path, ARM).n_samples == N


# -- numbers that no robot has ----


@pytest.mark.parametrize(
    ("column", "row", "value", "message"),
    [
        ("q2", 7, -4e200, r"column 'q2' \(position\) holds -4e\+200 in row 8, .* at most 1e\+06 in SI units"),
        ("q1", 0, 2e6, r"column 'q1' \(position\) holds 2e\+06 in row 1, "),
        ("dq3", N - 1, 1e155, rf"column 'dq3' \(velocity\) holds 1e\+155 in row {N}, "),
        ("tau1", 12, 2e9, r"column 'tau1' \(torque\) holds 2e\+09 in row 13, .* at most 1e\+09"),
        ("t", 20, 1e200, r"column 't' \(time\) holds 1e\+200 in row 21, "),
        ("t", 20, 1.7e308, r"column 't' \(time\) holds 1.7e\+308 in row 21, "),
    ],
)
@pytest.mark.parametrize("absent", [False, True])
def test_numbers_that_no_robot_has(tmp_path, column, row, value, message, absent):
    columns = {name: values.copy() for name, values in plain().items()}
    columns[column][row] = value
    if absent:  # beside numbers that are not there
        columns["q3"][5] = np.nan
    path = write_csv(tmp_path / "log.csv", columns)
    with pytest.raises(InputError, match=message):
        read_recording(path, ARM)
    with pytest.raises(InputError, match=message):
        open_recording(path, ARM, chunk_rows=3).read()


def test_a_unit_that_overflows_is_refused_without_a_warning(tmp_path):
    columns = plain() | {"q1": np.full(N, 1.5e308)}
    with pytest.raises(InputError, match="column 'q1'"):
        read_recording(write_csv(tmp_path / "log.csv", columns), ARM, units={"position": "rev"})


# -- locked joints ----


@dataclass(frozen=True)
class Held:
    """An arm with a locked joint, as a robot tells it."""

    locked: dict[str, float]
    described_joints: tuple[str, ...] = ARM

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.described_joints if name not in self.locked)


def held_log(at: float = 0.5) -> dict[str, np.ndarray]:
    return plain() | {"q2": np.full(N, at), "dq2": np.zeros(N)}


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_numbered_columns_of_locked_joints_are_left_out(tmp_path, suffix):
    robot = Held({"shoulder_lift_joint": 0.5})
    columns = held_log()
    path = tmp_path / f"log{suffix}"
    if suffix == ".csv":
        write_csv(path, columns)
    else:
        matrices = {name: np.stack([columns[f"{name}{k}"] for k in (1, 2, 3)], axis=1) for name in ("q", "dq", "tau")}
        np.savez(path, t=T, **matrices)
    recording = read_recording(path, robot, drive_gains=None)
    assert recording.joint_names == ("shoulder_pan_joint", "elbow_joint")
    np.testing.assert_array_equal(recording.position, Q[:, [0, 2]])
    np.testing.assert_array_equal(recording.torque, TAU[:, [0, 2]])
    name = "q2" if suffix == ".csv" else "q[1]"
    note = f"the columns of locked joints are left out: shoulder_lift_joint ('{name}')"
    assert note in recording.source.notes
    assert recording.source.findings == ()


def test_a_locked_joint_that_the_log_shows_elsewhere(tmp_path):
    robot = Held({"shoulder_lift_joint": 0.5})
    path = write_csv(tmp_path / "log.csv", held_log(0.511))
    (finding,) = read_recording(path, robot).source.findings
    assert (finding.code, finding.severity, finding.joints) == ("lock_position", "warning", ("shoulder_lift_joint",))
    assert finding.sentence == "joint shoulder_lift_joint is locked at 0.5, in the log its column 'q2' is 0.511"
    assert read_recording(write_csv(path, held_log(0.509)), robot).source.findings == ()
    in_degrees = plain() | {f"q{k + 1}": np.rad2deg(Q[:, k]) for k in range(3)} | {"q2": np.full(N, np.rad2deg(0.5))}
    assert read_recording(write_csv(path, in_degrees), robot, units={"position": "deg"}).source.findings == ()
    moving = read_recording(write_csv(path, plain()), robot).source.findings
    assert f"runs from {Q[:, 1].min():.4g} to {Q[:, 1].max():.4g}" in moving[0].sentence


def test_a_named_column_of_a_locked_joint(tmp_path):
    robot = Held({"shoulder_lift_joint": 0.5})
    recording = read_recording(write_csv(tmp_path / "log.csv", by_name("{x}_{joint}")), robot)
    np.testing.assert_array_equal(recording.position, Q[:, [0, 2]])
    assert (
        "the columns of locked joints are left out: shoulder_lift_joint ('q_shoulder_lift_joint')" in recording.source.notes
    )
    assert [finding.code for finding in recording.source.findings] == ["lock_position"]


def test_numbers_of_a_log_without_the_locked_joint(tmp_path):
    robot = Held({"shoulder_lift_joint": 0.5})
    without = {name: values for name, values in plain().items() if not name.endswith("2")}
    recording = read_recording(write_csv(tmp_path / "log.csv", without), robot)
    np.testing.assert_array_equal(recording.torque, TAU[:, [0, 2]])
    # numbers of the joints that are left
    renumbered = {"t": T} | numbered("q", Q[:, :2]) | numbered("tau", TAU[:, :2])
    recording = read_recording(write_csv(tmp_path / "log.csv", renumbered), robot)
    np.testing.assert_array_equal(recording.torque, TAU[:, :2])


def test_counts_name_the_locked_joints(tmp_path):
    robot = Held({"shoulder_lift_joint": 0.5})
    path = tmp_path / "log.csv"
    write_csv(path, plain() | {"q4": T})
    with pytest.raises(InputError, match="4 position columns, robot has 2 joints besides the locked shoulder_lift_joint"):
        read_recording(path, robot)
    write_csv(path, {name: values for name, values in plain().items() if name != "tau3"})
    with pytest.raises(InputError, match=r"2 torque columns, robot has 2 joints besides the .*_lift_joint, but 3 positions"):
        read_recording(path, robot)
    write_csv(path, {"t": T, "q1": T, "tau1": T})
    with pytest.raises(
        InputError, match="1 position columns, robot has 2 joints besides the locked shoulder_lift"
    ) as caught:
        read_recording(path, robot)
    assert not isinstance(caught.value, MissingJointsError)


def test_gains_of_all_joints_serve_those_that_move(tmp_path):
    columns = {"t": T} | numbered("q", Q) | numbered("i", CURRENT)
    path = write_csv(tmp_path / "log.csv", columns)
    recording = read_recording(path, Held({"shoulder_lift_joint": 0.0}), drive_gains=[2.0, 3.0, 4.0])
    np.testing.assert_allclose(recording.torque, CURRENT[:, [0, 2]] * [2.0, 4.0])


# -- names that are nearly right ----


def misspelt() -> dict[str, np.ndarray]:
    return {name.replace("elbow", "ellbow"): values for name, values in by_name("{x}_{joint}").items()}


def test_a_misspelt_joint_is_named(tmp_path):
    path = write_csv(tmp_path / "log.csv", misspelt())
    with pytest.raises(
        MissingJointsError, match=r"column 'q_ellbow_joint' is not used: did you mean 'elbow_joint'\?"
    ) as caught:
        read_recording(path, ARM)
    assert caught.value.misspelt == {"q_ellbow_joint": "elbow_joint"}
    recording = read_recording(path, Held({"elbow_joint": 0.0}))
    (finding,) = recording.source.findings
    assert (finding.code, finding.severity, finding.joints) == ("misspelt_joint", "warning", ("elbow_joint",))
    assert "column 'q_ellbow_joint' is not used; did you mean joint 'elbow_joint', which has no column" in finding.sentence
    assert not any("ellbow" in note for note in recording.source.notes)


def test_a_misspelt_torque_is_named(tmp_path):
    columns = {name.replace("tau_elbow", "tau_elbo"): values for name, values in by_name("{x}_{joint}").items()}
    with pytest.raises(InputError, match="for joint 'elbow_joint': did you mean column 'tau_elbo_joint'"):
        read_recording(write_csv(tmp_path / "log.csv", columns), ARM)


@pytest.mark.parametrize(
    ("name", "joints", "near"),
    [
        ("ellbow_joint", ("shoulder", "elbow_joint"), "elbow_joint"),
        ("sholder_pan", ("shoulder_pan_joint", "shoulder_lift_joint"), "shoulder_pan_joint"),
        ("gripper", ("elbow_joint",), None),
        ("joint_a2", ("joint_a1", "joint_a3"), None),
        ("finger_joint1", ("finger_joint2",), None),
        ("left_elbow", ("right_elbow",), None),
    ],
)
def test_near_names(name, joints, near):
    assert near_name(name, joints) == near


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n\n  \n", "the file is empty"),
        (b"t,q1,q2,q3\n", "holds a header of 4 columns and no rows"),
        (b"t,q1,q2,q3\n\n\n", "holds a header of 4 columns and no rows"),
        (b"t,q1,q2,q3\n0,1,2,3\n1,2,high,4\n", "column 'q2' holds 'high', expected numbers"),
        (b"t,q1,q2,q3\n0,1,2,3\n1,2,12:30,4\n", "column 'q2' holds '12:30', expected numbers"),
        (b"t,q1,q2,q3,q1\n0,1,2,3,4\n1,2,3,4,5\n", "column 'q1' appears 2 times"),
        ("t,q1\n0,1\n".encode("utf-16"), "UTF-16"),
        (b"t,q1\x00,\n0,1\n", "zero bytes"),
        (b"t,q1,q2,q3\n0,1,2,3\n", "1 of 1 rows left"),
    ],
)
def test_damaged_text_is_refused(tmp_path, content, message):
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_recording(tmp_path / "log.csv", ARM)


# -- files in general ----


def test_files_that_are_no_logs(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_recording(tmp_path / "log.csv", ARM)
    with pytest.raises(InputError, match=r"is a folder without metadata.yaml"):
        read_recording(tmp_path, ARM)
    (tmp_path / "log.docx").write_text("hello")
    with pytest.raises(InputError, match=r"the suffix '.docx' is not that of a log"):
        read_recording(tmp_path / "log.docx", ARM)


def test_content_wins_over_the_suffix_and_the_hash_knows_the_file(tmp_path):
    pq.write_table(pa.table(plain()), tmp_path / "log.csv")
    first = read_recording(tmp_path / "log.csv", ARM)
    assert first.source.format == "parquet"
    (tmp_path / "copy.parquet").write_bytes((tmp_path / "log.csv").read_bytes())
    assert read_recording(tmp_path / "copy.parquet", ARM).source.sha256 == first.source.sha256


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_truncated_files_are_refused(tmp_path, suffix, share):
    recording = Recording(time=T, position=Q, torque=TAU, joint_names=ARM)
    content = write_recording(recording, tmp_path / f"log{suffix}").read_bytes()
    (tmp_path / f"cut{suffix}").write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match="may be truncated") as caught:
        read_recording(tmp_path / f"cut{suffix}", ARM)
    assert "\n" not in str(caught.value)


# -- parquet ----


def lerobot(tmp_path: Path, names: object, state: np.ndarray, episodes: np.ndarray | None = None) -> Path:
    file = tmp_path / "data" / "chunk-000" / "episode_000000.parquet"
    file.parent.mkdir(parents=True)
    (tmp_path / "meta").mkdir()
    info = {"features": {"observation.state": {"dtype": "float32", "names": names}, "video": {"names": None}}}
    (tmp_path / "meta" / "info.json").write_text(json.dumps(info))
    columns = {
        "observation.state": pa.array(state.tolist(), pa.list_(pa.float64())),
        "observation.effort": pa.array(TAU.tolist(), pa.list_(pa.float64(), 3)),
        "action": pa.array((Q + 1).tolist()),
        "timestamp": T,
        "frame_index": np.arange(N),
        "episode_index": np.zeros(N, dtype=np.int64) if episodes is None else episodes,
        "task": ["pick"] * N,
    }
    pq.write_table(pa.table(columns), file)
    return file


def test_lerobot_lists(tmp_path):
    recording = read_recording(lerobot(tmp_path, None, Q), ARM)
    check(recording, velocity=False)
    np.testing.assert_array_equal(recording.reference_position, Q + 1)


@pytest.mark.parametrize("wrap", [False, True])
def test_lerobot_names_order_the_joints(tmp_path, wrap):
    names = ["elbow_joint.pos", "gripper.pos", "shoulder_pan_joint.pos", "shoulder_lift_joint.pos"]
    state = np.column_stack([Q[:, 2], T, Q[:, 0], Q[:, 1]])
    recording = read_recording(lerobot(tmp_path, {"motors": names} if wrap else names, state), ARM)
    check(recording, velocity=False)
    assert any("ignored: gripper.pos" in note for note in recording.source.notes)


def test_lerobot_without_names_must_count_right(tmp_path):
    with pytest.raises(InputError, match="log has 4 position columns, robot has 3 joints"):
        read_recording(lerobot(tmp_path, None, np.column_stack([Q, T])), ARM)


def test_lerobot_episodes(tmp_path):
    path = lerobot(tmp_path, None, Q, np.repeat([4, 5], N // 2))
    with pytest.raises(InputError, match=r"holds several episodes .* choose it with episode"):
        read_recording(path, ARM)
    recording = read_recording(path, ARM, episode=5)
    np.testing.assert_array_equal(recording.position, Q[N // 2 :])
    with pytest.raises(InputError, match="there is no episode 9; available: 4 to 5"):
        read_recording(path, ARM, episode=9)


def test_parquet_refusals(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(plain() | {"q2": ["high"] * N}), path)
    with pytest.raises(InputError, match=r"'q2' holds .* values, expected numbers|cannot be read as parquet: .*high"):
        read_recording(path, ARM)
    pq.write_table(pa.table(plain()).slice(0, 0), path)
    with pytest.raises(InputError, match="holds 10 columns and no rows"):
        read_recording(path, ARM)
    ragged = pa.array([row[: 3 - (k == 20)].tolist() for k, row in enumerate(Q)])
    pq.write_table(pa.table({"t": T, "q": ragged}), path)
    with pytest.raises(InputError, match=r"lists of column 'q' have \[2, 3\] entries, expected 3 in each row"):
        read_recording(path, ARM)


def test_parquet_nulls_are_rows_without_a_number(tmp_path):
    q1 = [None if k in (3, 4) else float(v) for k, v in enumerate(Q[:, 0])]
    pq.write_table(pa.table(plain() | {"q1": q1}), tmp_path / "log.parquet")
    recording = read_recording(tmp_path / "log.parquet", ARM)
    assert recording.n_samples == N - 2
    lists = pa.array([None if k == 2 else row.tolist() for k, row in enumerate(Q)])
    pq.write_table(pa.table({"t": T, "q": lists}), tmp_path / "log.parquet")
    np.testing.assert_array_equal(read_recording(tmp_path / "log.parquet", ARM).position, np.delete(Q, 2, axis=0))


# -- npz ----


@pytest.mark.parametrize(
    "names",
    [("t", "q", "dq", "tau"), ("time", "position", "velocity", "torque"), ("timestamp", "pos", "vel", "effort")],
)
def test_npz_arrays(tmp_path, names):
    np.savez(tmp_path / "log.npz", **dict(zip(names, (T, Q, DQ, TAU), strict=True)))
    check(read_recording(tmp_path / "log.npz", ARM))


def test_npz_by_joint_names_and_turned_arrays(tmp_path):
    order = [2, 0, 1]
    np.savez(tmp_path / "log.npz", t=T[:, None], q=Q[:, order].T, tau=TAU[:, order], joint_names=np.array(ARM)[order])
    recording = read_recording(tmp_path / "log.npz", ARM)
    check(recording, velocity=False)
    assert any("turned to rows by joints" in note for note in recording.source.notes)


def test_npz_arrays_of_different_lengths(tmp_path):
    np.savez(tmp_path / "log.npz", t=T, q=Q[:-5], tau=TAU)
    with pytest.raises(InputError, match=f"array 'q' has {N - 5} rows and 't' has {N}, expected as many"):
        read_recording(tmp_path / "log.npz", ARM)
    np.savez(tmp_path / "log.npz", t=T, q=Q, tau=TAU[:-1].T)
    with pytest.raises(InputError, match=f"array 'tau' has {N - 1} rows and 't' has {N}"):
        read_recording(tmp_path / "log.npz", ARM)
    np.savez(tmp_path / "log.npz", q1=Q[:, 0], q2=Q[:, 1], q3=Q[:-1, 2], tau=TAU)
    with pytest.raises(InputError, match=f"array 'q3' has {N - 1} rows and 'q1' has {N}"):
        read_recording(tmp_path / "log.npz", ARM, rate_hz=125.0)
    # what is no motion, or too small to be one, may have any length
    np.savez(tmp_path / "log.npz", t=T, q=Q, dq=DQ, tau=TAU, gravity=np.zeros(3), v=np.ones(3), extra=np.zeros((N - 1, 2)))
    recording = read_recording(tmp_path / "log.npz", ARM)
    check(recording)
    assert "array 'v' has 3 rows where 't' has 40 and is ignored" in recording.source.notes


def test_npz_pose_table(tmp_path):
    root = RNG.normal(size=(N, 3, 3))
    inertia = root @ root.transpose(0, 2, 1)
    np.savez(tmp_path / "poses.npz", q=Q, M=inertia, g=TAU)
    table = read_recording(tmp_path / "poses.npz", ARM)
    assert isinstance(table, StaticRecording)
    np.testing.assert_array_equal(table.inertia, inertia)
    with pytest.raises(InputError, match="log has 3 position columns, robot has 2 joints"):
        read_recording(tmp_path / "poses.npz", ARM[:2])


def test_npz_never_unpickles(tmp_path):
    np.savez(tmp_path / "log.npz", t=T, q=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match=r"'q.npy' holds Python objects, expected numbers"):
        read_recording(tmp_path / "log.npz", ARM)


def test_npz_bombs_are_refused_before_they_unpack(tmp_path, monkeypatch):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 3)})
    with zipfile.ZipFile(tmp_path / "liar.npz", "w") as archive:
        archive.writestr("t.npy", header.getvalue())
    with pytest.raises(InputError, match=r"declares shape \(1000000000000, 3\) but holds \d+ bytes"):
        read_recording(tmp_path / "liar.npz", ARM)
    np.savez_compressed(tmp_path / "zeros.npz", t=np.zeros(300_000), q=np.zeros((300_000, 3)))
    monkeypatch.setattr("dynid.recording.readers.formats.npz._HARMLESS_BYTES", 1000)
    with pytest.raises(InputError, match=r"unpacks from \d+ to \d+ bytes \(\d+ times\), expected at most 200 times"):
        read_recording(tmp_path / "zeros.npz", ARM)
    monkeypatch.setattr("dynid.recording.readers.formats.npz.MOST_BYTES", 2**20)
    with pytest.raises(InputError, match="write longer logs as parquet"):
        read_recording(tmp_path / "zeros.npz", ARM)


# -- pose tables and sensors in text ----


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
    with pytest.raises(InputError, match="log has 5 inertia columns, robot with 3 joints needs 6; M32 is missing"):
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


# -- ROS bags ----

rosbags = pytest.importorskip("rosbags")


def write_bag(path: Path, topics: dict[str, list[tuple[int, object]]], form: str) -> Path:
    """Topics of (stamp, message) with messages built from the type store."""
    from rosbags.rosbag1 import Writer as Writer1
    from rosbags.rosbag2 import StoragePlugin
    from rosbags.rosbag2 import Writer as Writer2
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC if form == "bag" else Stores.ROS2_HUMBLE)
    if form == "bag":
        file, writer = path.with_suffix(".bag"), Writer1(path.with_suffix(".bag"))
    else:
        plugin = StoragePlugin.MCAP if form == "mcap" else StoragePlugin.SQLITE3
        writer = Writer2(path, version=9, storage_plugin=plugin)
        file = path / f"{path.name}.{form}"
    with writer:
        for topic, messages in topics.items():
            kind, builders = messages[0][1][0], [(stamp, build) for stamp, (_, build) in messages]
            connection = writer.add_connection(topic, kind, typestore=store)
            for stamp, build in builders:
                message = build(store, form)
                raw = store.serialize_ros1(message, kind) if form == "bag" else store.serialize_cdr(message, kind)
                writer.write(connection, stamp, raw)
    return file


def _header(store, form: str, stamp: int, frame: str):
    time = store.types["builtin_interfaces/msg/Time"](sec=stamp // 10**9, nanosec=stamp % 10**9)
    more = {"seq": 0} if form == "bag" else {}
    return store.types["std_msgs/msg/Header"](stamp=time, frame_id=frame, **more)


def joint_state(stamp, names, position, velocity=(), effort=()):
    kind = "sensor_msgs/msg/JointState"

    def build(store, form):
        return store.types[kind](
            header=_header(store, form, stamp, ""),
            name=list(names),
            position=np.asarray(position, dtype=float),
            velocity=np.asarray(velocity, dtype=float),
            effort=np.asarray(effort, dtype=float),
        )

    return kind, build


def wrench_stamped(stamp, values):
    kind = "geometry_msgs/msg/WrenchStamped"

    def build(store, form):
        vector, wrench = store.types["geometry_msgs/msg/Vector3"], store.types["geometry_msgs/msg/Wrench"]
        inner = wrench(force=vector(*map(float, values[:3])), torque=vector(*map(float, values[3:])))
        return store.types[kind](header=_header(store, form, stamp, "sensor"), wrench=inner)

    return kind, build


START = 1_700_000_000_000_000_000


def shuffled_states(velocity=True, effort=True, stamped=True):
    rng = np.random.default_rng(5)
    messages = []
    for k in range(N):
        order = rng.permutation(3)
        stamp = START + k * 8_000_000
        messages.append((
            stamp,
            joint_state(
                stamp if stamped else 0, np.array(ARM)[order], Q[k, order],
                DQ[k, order] if velocity else (), TAU[k, order] if effort else np.full(3, np.nan),
            ),
        ))  # fmt: skip
    return messages


@pytest.mark.parametrize("form", ["mcap", "db3", "bag"])
def test_bags_with_names_in_any_order(tmp_path, form):
    file = write_bag(tmp_path / "run", {"/joint_states": shuffled_states()}, form)
    for preset in (None, "joint_states"):
        recording = read_recording(file, ARM, preset=preset)
        check(recording)
        np.testing.assert_allclose(recording.time, T, atol=1e-12)
    assert recording.source.format == form
    assert any("matched by name in each message" in note for note in recording.source.notes)
    with pytest.raises(MissingJointsError) as caught:
        read_recording(file, (*ARM, "finger"))
    assert caught.value.missing == ("finger",)
    np.testing.assert_array_equal(open_recording(file, ARM, chunk_rows=7).read().torque, TAU)


def test_a_bag_folder_is_a_log_too(tmp_path):
    write_bag(tmp_path / "run", {"/joint_states": shuffled_states()}, "db3")
    check(read_recording(tmp_path / "run", ARM))


@pytest.mark.parametrize("form", ["mcap", "db3", "bag"])
def test_absent_velocity_and_effort_of_nan(tmp_path, form):
    file = write_bag(tmp_path / "run", {"/joint_states": shuffled_states(False, False, False)}, form)
    recording = read_recording(file, ARM)
    check(recording, velocity=False, torque=False)
    assert recording.quantities == ("position",)
    assert any("recorder's clock" in note for note in recording.source.notes)


def test_two_publishers_on_one_topic(tmp_path):
    messages = shuffled_states()
    for k in range(0, N, 4):
        stamp = START + k * 8_000_000 + 3_000_000
        messages.append((stamp, joint_state(stamp, ["finger"], [0.04], [0.0], [1.0])))
    recording = read_recording(write_bag(tmp_path / "run", {"/joint_states": messages}, "mcap"), ARM)
    check(recording)
    assert recording.source.n_dropped == N // 4


def test_topics_are_chosen_or_listed(tmp_path):
    wrench = RNG.normal(size=(N, 6))
    # The sensor runs at half the rate, between the joint stamps.
    sensor = [
        (START + k * 16_000_000 + 4_000_000, wrench_stamped(START + k * 16_000_000 + 4_000_000, wrench[k]))
        for k in range(N // 2)
    ]
    topics = {"/joint_states": shuffled_states(), "/ft": sensor}
    file = write_bag(tmp_path / "run", topics, "mcap")
    check(read_recording(file, ARM))
    recording = read_recording(file, ARM, topic="/ft")
    assert isinstance(recording, WrenchRecording)
    np.testing.assert_array_equal(recording.wrench, wrench[: N // 2])
    expected = 0.5 * (Q[0::2] + Q[1::2])
    np.testing.assert_allclose(recording.position, expected, atol=1e-12)
    with pytest.raises(UnknownNameError, match=r"unknown topic '/arm' .*available: /joint_states \(sensor_msgs"):
        read_recording(file, ARM, topic="/arm")
    twice = write_bag(tmp_path / "two", {"/a": shuffled_states(), "/b": shuffled_states()}, "db3")
    with pytest.raises(InputError, match=r"2 JointState topics \(/a, /b\); choose one with topic"):
        read_recording(twice, ARM)
    check(read_recording(twice, ARM, topic="/b"))
    alone = write_bag(tmp_path / "three", {"/ft": sensor}, "bag")
    assert read_recording(alone, ARM).position is None


def test_a_message_with_wrong_lengths_is_refused(tmp_path):
    messages = [(START, joint_state(START, ARM, [0.0, 1.0]))]
    with pytest.raises(InputError, match="message 0 of '/js' has 2 values of position for 3 joints"):
        read_recording(write_bag(tmp_path / "run", {"/js": messages}, "mcap"), ARM)


@pytest.mark.parametrize("form", ["mcap", "db3", "bag"])
@pytest.mark.parametrize("share", [0.01, 0.4, 0.95])
def test_truncated_bags_are_refused(tmp_path, form, share):
    file = write_bag(tmp_path / "run", {"/joint_states": shuffled_states()}, form)
    content = file.read_bytes()
    cut = tmp_path / f"cut.{form}"
    cut.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError) as caught:
        read_recording(cut, ARM)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("form", "package"), [("mcap", "mcap_ros2.decoder"), ("bag", "rosbags.highlevel")])
def test_without_the_packages_the_extra_is_named(tmp_path, monkeypatch, form, package):
    file = write_bag(tmp_path / "run", {"/joint_states": shuffled_states()}, form)
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingPackageError, match=r"pip install 'dynid\[ros\]'") as caught:
        read_recording(file, ARM)
    assert caught.value.extra == "ros"


# -- public recordings ----

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
    with pytest.raises(InputError, match=r"7 position columns, robot has 9 joints .* --joints"):
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


def test_numbered_columns_of_a_tree_are_told(tmp_path):
    """Depth-first order is not the file's: q3 may be another joint than the reader thinks."""
    tree = random_tree(3, 5)
    chain = demo_arm("none")
    for robot, told in ((tree, any(j.parent != k - 1 for k, j in enumerate(tree.joints))), (chain, False)):
        n = robot.n_joints
        names = ["t", *(f"q{k + 1}" for k in range(n)), *(f"tau{k + 1}" for k in range(n))]
        rows = [[0.01 * i, *(0.1 * i + k for k in range(2 * n))] for i in range(5)]
        path = tmp_path / f"{robot.name}.csv"
        path.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]) + "\n", encoding="utf-8")
        notes = read_recording(path, robot).source.notes
        assert any("taken for the joints in this order" in note for note in notes) == told
