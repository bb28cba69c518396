from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.recording.readers.read import open_recording, read_recording
from dynid.recording.recording import (
    Recording,
    RecordingSource,
    RecordingStream,
    StaticRecording,
    WrenchRecording,
    beyond,
    write_recording,
)
from messages import facts

NAMES = ("shoulder", "elbow")


def make(n: int = 50, **more) -> Recording:
    rng = np.random.default_rng(3)
    time = np.arange(n) * 0.004
    return Recording(time=time, position=rng.normal(size=(n, 2)), torque=rng.normal(size=(n, 2)), joint_names=NAMES, **more)


def test_arrays_are_read_only_and_apart_from_the_callers():
    time, position = np.arange(3.0), np.zeros((3, 2))
    recording = Recording(time=time, position=position, joint_names=NAMES)
    position[0, 0] = 5.0
    assert recording.position[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        recording.position[0, 0] = 1.0
    with pytest.raises(AttributeError):
        recording.time = time  # type: ignore[misc]


def test_rate_and_duration():
    recording = make(26)
    assert recording.duration_s == pytest.approx(0.1)
    assert recording.rate_hz == pytest.approx(250.0)
    assert recording.n_samples == 26
    assert recording.n_joints == 2
    assert recording.quantities == ("position", "torque")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"time": [0.0, 0.0, 1.0]}, "time does not increase from row 0"),
        ({"time": [0.0, np.nan, 1.0]}, "time holds 1 values that are NaN"),
        ({"position": np.zeros((3, 1))}, facts("(3, 1)", "(3, 2)", "position")),
        ({"torque": np.full((3, 2), np.inf)}, "torque holds 6 values"),
        ({"joint_names": ("a", "a")}, "joint name 'a' appears more than once"),
        ({"joint_names": "ab"}, "expected a sequence of names"),
        ({"time": [], "position": np.zeros((0, 2))}, "no rows"),
    ],
)
def test_refusals_at_construction(changes, message):
    good = {"time": [0.0, 1.0, 2.0], "position": np.zeros((3, 2)), "joint_names": NAMES}
    with pytest.raises(InputError, match=message):
        Recording(**(good | changes))


def test_between_includes_both_ends():
    part = make().between(0.02, 0.04)
    np.testing.assert_allclose(part.time, np.arange(5, 11) * 0.004)
    np.testing.assert_array_equal(part.torque, make().torque[5:11])
    assert make().between(from_s=0.19).n_samples == 2
    with pytest.raises(InputError, match=facts("5", "6", "0", "0.196", "sample")):
        make().between(5.0, 6.0)
    with pytest.raises(InputError, match=facts("100", "0", "0.196", "sample")):
        make().between(from_s=100.0)
    log = make().with_(source=RecordingSource(path="a.csv"))
    with pytest.raises(InputError, match=facts("a.csv", "-1", "sample")):
        log.between(to_s=-1.0)


def test_a_part_knows_its_place_in_the_log():
    log = make().with_(source=RecordingSource(path="a.csv"))
    assert log.place == "a.csv"
    assert log.rows(0, 50).place == "a.csv"
    assert log.rows(0, 35).place == "a.csv (50 rows, 0.196 s), the first 35 of its 50 rows"
    assert log.rows(-3).place == "a.csv (50 rows, 0.196 s), the last 3 of its 50 rows"
    rest = log.rows(20, part="validation part")
    assert rest.place == "a.csv (50 rows, 0.196 s), validation part, the last 30 of its 50 rows"
    inner = rest.rows(5, 10)
    assert inner.place == "a.csv (50 rows, 0.196 s), validation part, rows 26 to 30 of its 50"
    np.testing.assert_array_equal(inner.time, log.time[25:30])
    assert rest.rows(0, 3, part="held-out part").place.endswith("held-out part, rows 21 to 23 of its 50")
    with pytest.raises(InputError, match=facts("a.csv", "30", "sample")):
        rest.rows(30)
    joined = Recording.concatenate([log.rows(0, 10), log.rows(10, 30)])
    assert joined.place == "a.csv"


def test_chunks_of_a_stream_claim_no_place():
    log = make().with_(source=RecordingSource(path="a.csv"))

    def pieces(rows):
        yield log, 0

    stream = RecordingStream(log.joint_names, log.quantities, log.source, 20, pieces)
    assert [chunk.place for chunk in stream] == ["a.csv"] * 3


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ([[1.0, 2.0], [3.0, 4.0]], None),
        ([[1.0, 2.0], [3.0, -2e6]], (1, 1)),
        ([[np.nan, 2.0], [3.0, 1e200]], (1, 1)),
        ([[np.nan, np.inf], [3.0, 4.0]], None),
        ([[1e300, 2.0], [1e300, 4.0]], (0, 0)),
        (np.zeros((0, 2)), None),
    ],
)
def test_the_first_number_that_no_robot_has(values, place):
    assert beyond("position", np.asarray(values)) == place


def test_select_orders_the_joints():
    turned = make().select(["elbow", "shoulder"])
    np.testing.assert_array_equal(turned.torque, make().torque[:, ::-1])
    assert turned.joint_names == ("elbow", "shoulder")
    with pytest.raises(UnknownNameError, match=facts("shoulder", "elbow", "wrist", "joint")):
        make().select(["wrist"])


def test_drive_gains_make_torque_of_current():
    current = np.arange(100.0).reshape(50, 2)
    recording = make(current=current)
    for gains in ([10.0, -2.0], {"elbow": -2.0, "shoulder": 10.0}, np.array([10.0, -2.0])):
        np.testing.assert_allclose(recording.with_drive_gains(gains).torque, current * [10.0, -2.0])
    with pytest.raises(InputError, match="3 drive gains given, robot has 2 joints"):
        recording.with_drive_gains([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="drive gains lack joint 'elbow'"):
        recording.with_drive_gains({"shoulder": 1.0})
    with pytest.raises(InputError, match="neither current nor torque"):
        make().with_(torque=None).with_drive_gains([1.0, 1.0])


def test_with_replaces_named_fields_only():
    assert make().with_(torque=None).torque is None
    with pytest.raises(UnknownNameError, match="unknown field of a recording 'effort'"):
        make().with_(effort=None)


def test_concatenate_is_the_inverse_of_cutting():
    whole = make()
    again = Recording.concatenate([whole.rows(0, 7), whole.rows(7, 30), whole.rows(30)])
    np.testing.assert_array_equal(again.time, whole.time)
    np.testing.assert_array_equal(again.torque, whole.torque)
    with pytest.raises(InputError, match="parts differ"):
        Recording.concatenate([whole.rows(0, 7), whole.rows(7).with_(torque=None)])


def test_pose_table_must_be_symmetric_and_hold_something():
    position = np.zeros((4, 2))
    inertia = np.broadcast_to(np.array([[2.0, 0.5], [0.5, 1.0]]), (4, 2, 2))
    assert StaticRecording(position=position, joint_names=NAMES, inertia=inertia).n_samples == 4
    with pytest.raises(InputError, match="not symmetric"):
        StaticRecording(position=position, joint_names=NAMES, inertia=inertia + np.array([[0.0, 0.1], [0.0, 0.0]]))
    with pytest.raises(InputError, match="neither inertia nor gravity"):
        StaticRecording(position=position, joint_names=NAMES)


def test_wrench_splits_into_force_and_moment():
    wrench = np.arange(18.0).reshape(3, 6)
    recording = WrenchRecording(time=[0.0, 0.1, 0.2], wrench=wrench, angular_velocity=np.zeros((3, 3)))
    np.testing.assert_array_equal(recording.force, wrench[:, :3])
    np.testing.assert_array_equal(recording.moment, wrench[:, 3:])
    assert recording.rate_hz == pytest.approx(10.0)
    with pytest.raises(InputError, match=facts("(3, 3)", "(3, 6)", "wrench")):
        WrenchRecording(time=[0.0, 0.1, 0.2], wrench=wrench[:, :3])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("by_name", [False, True])
def test_written_recordings_read_back_to_the_last_bit(tmp_path, suffix, by_name):
    rng = np.random.default_rng(1)
    full = make(
        velocity=rng.normal(size=(50, 2)),
        acceleration=rng.normal(size=(50, 2)),
        current=rng.normal(size=(50, 2)),
        reference_position=rng.normal(size=(50, 2)),
        external_torque=rng.normal(size=(50, 2)),
    )
    path = write_recording(full, tmp_path / f"log{suffix}", by_name=by_name)
    again = read_recording(path, NAMES)
    assert again.quantities == full.quantities
    for name in ("time", *full.quantities):
        np.testing.assert_array_equal(getattr(again, name), getattr(full, name))
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("n_joints", [2, 12])
def test_written_pose_tables_read_back(tmp_path, suffix, n_joints):
    rng = np.random.default_rng(2)
    root = rng.normal(size=(6, n_joints, n_joints))
    names = tuple(f"axis_{chr(97 + k)}" for k in range(n_joints))
    table = StaticRecording(
        position=rng.normal(size=(6, n_joints)),
        joint_names=names,
        inertia=root @ root.transpose(0, 2, 1),
        gravity=rng.normal(size=(6, n_joints)),
    )
    again = read_recording(write_recording(table, tmp_path / f"poses{suffix}"), names)
    assert isinstance(again, StaticRecording)
    # Only the lower triangle is written.
    np.testing.assert_allclose(again.inertia, table.inertia, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(again.gravity, table.gravity)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_written_wrenches_read_back(tmp_path, suffix):
    rng = np.random.default_rng(2)
    sensor = WrenchRecording(
        time=np.arange(9) * 0.002,
        wrench=rng.normal(size=(9, 6)),
        linear_acceleration=rng.normal(size=(9, 3)),
        angular_velocity=rng.normal(size=(9, 3)),
        angular_acceleration=rng.normal(size=(9, 3)),
        linear_velocity=rng.normal(size=(9, 3)),
        joint_names=NAMES,
        position=rng.normal(size=(9, 2)),
    )
    again = read_recording(write_recording(sensor, tmp_path / f"sensor{suffix}"), NAMES)
    assert isinstance(again, WrenchRecording)
    for name in ("time", "wrench", "linear_acceleration", "angular_velocity", "angular_acceleration", "position"):
        np.testing.assert_array_equal(getattr(again, name), getattr(sensor, name))


def test_writing_refuses_what_it_cannot_do(tmp_path):
    with pytest.raises(InputError, match=r"expected the suffix .csv, .parquet or .npz"):
        write_recording(make(), tmp_path / "log.xlsx")
    with pytest.raises(InputError, match="there is no folder"):
        write_recording(make(), tmp_path / "nowhere" / "log.csv")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_recording(make(), tmp_path / "log.npz")
    before = path.read_bytes()

    def full_disk(*_args, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(InputError, match="No space left on device"):
        write_recording(make(80), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["log.npz"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize(("rows", "before", "after"), [(7, 0, 0), (7, 3, 2), (7, 20, 30), (1, 1, 1), (1000, 5, 5)])
def test_chunks_tile_the_log_and_overlap_as_asked(tmp_path, suffix, rows, before, after):
    whole = make(50)
    path = write_recording(whole, tmp_path / f"log{suffix}")
    stream = open_recording(path, NAMES, chunk_rows=rows)
    chunks = list(stream.chunks(before, after))
    starts = [chunk.first_row for chunk in chunks]
    assert starts == list(range(0, 50, rows))
    np.testing.assert_array_equal(np.concatenate([c.recording.torque[c.own] for c in chunks]), whole.torque)
    for chunk in chunks:
        stop = chunk.first_row + chunk.n_own
        assert chunk.n_before == min(before, chunk.first_row)
        assert chunk.n_after == min(after, 50 - stop)
        np.testing.assert_array_equal(
            chunk.recording.position, whole.position[chunk.first_row - chunk.n_before : stop + chunk.n_after]
        )
    # A second walk starts at the head again.
    np.testing.assert_array_equal(stream.read().time, whole.time)
    assert stream.quantities == whole.quantities
    assert stream.n_rows_in_file == (None if suffix == ".csv" else 50)


def test_source_notes_accumulate():
    source = RecordingSource(path="a.csv", notes=("one",)).noting("two")
    assert source.notes == ("one", "two")
