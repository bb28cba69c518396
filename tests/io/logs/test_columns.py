"""Which joints the columns of a log belong to."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.io.logs.columns import MissingJointsError, joints_of
from dynid.io.logs.read import open_recording, read_recording
from dynid.signals.recording import StaticRecording
from log_files import ARM, CURRENT, TAU, Held, N, Q, T, by_name, held_log, numbered, plain, write_csv
from messages import facts
from problems import demo_arm, random_tree


def poses() -> dict[str, np.ndarray]:
    entries = {f"M{i}{j}": np.full(N, 10.0 * i + j) for i in (1, 2, 3) for j in range(1, i + 1)}
    return numbered("q", Q) | entries | numbered("g", TAU)


@pytest.mark.parametrize("columns", [plain(), poses()], ids=["motion", "poses"])
def test_numbered_columns_are_never_guessed_to_be_the_first_joints(tmp_path, columns):
    path = write_csv(tmp_path / "log.csv", columns)
    with pytest.raises(InputError, match=facts("3", "4", "shoulder_pan_joint", "position")) as caught:
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
        (ARM[:2], facts("3", "2", "shoulder_pan_joint", "shoulder_lift_joint", "position")),
        ((*ARM, "finger"), facts("3", "4", "position")),
        ((*ARM[:2], "elbov"), facts("shoulder_pan_joint", "elbov")),
        ((*ARM, ARM[0]), "'shoulder_pan_joint' appears more than once"),
        ((), "joints names no joint"),
        ("elbow_joint", "is the text 'elbow_joint', expected a sequence of names"),
    ],
)
def test_wrong_joints_are_refused(tmp_path, joints, message):
    with pytest.raises(InputError, match=message):
        read_recording(write_csv(tmp_path / "log.csv", plain()), (*ARM, "finger"), joints=joints)


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


def test_gains_of_all_joints_serve_those_that_move(tmp_path):
    columns = {"t": T} | numbered("q", Q) | numbered("i", CURRENT)
    path = write_csv(tmp_path / "log.csv", columns)
    recording = read_recording(path, Held({"shoulder_lift_joint": 0.0}), drive_gains=[2.0, 3.0, 4.0])
    np.testing.assert_allclose(recording.torque, CURRENT[:, [0, 2]] * [2.0, 4.0])


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


def test_values_per_joint_for_the_joints_to_read():
    joints = joints_of(Held({"shoulder_lift_joint": 0.5}), None)
    assert joints.names == (ARM[0], ARM[2])
    assert joints.in_order([1, 2, 3]) == [1, 3]
    assert joints.in_order([1, 2]) == [1, 2]
    assert joints.in_order(dict(zip(ARM, "abc", strict=True))) == {ARM[0]: "a", ARM[2]: "c"}
    assert joints.in_order({"wrist": 1}) == {"wrist": 1}  # for the caller to refuse
    assert joints.in_order("deg") == "deg"
    with pytest.raises(InputError, match=facts("shoulder_lift_joint", "shoulder_pan")):
        joints_of(Held({"shoulder_lift_joint": 0.5}), ["shoulder_lift_joint"])
    with pytest.raises(UnknownNameError, match="unknown joint 'wrist'"):
        joints_of(ARM, ["wrist"])
