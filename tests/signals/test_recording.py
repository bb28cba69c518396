from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.io.logs.read import open_recording, write_recording
from dynid.signals.recording import Recording, RecordingSource, StaticRecording, WrenchRecording, beyond
from dynid.signals.stream import RecordingStream
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
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_chunks_tile_the_log(tmp_path, suffix, rows):
    whole = make(50)
    path = write_recording(whole, tmp_path / f"log{suffix}")
    stream = open_recording(path, NAMES, chunk_rows=rows)
    chunks = list(stream)
    assert [chunk.n_samples for chunk in chunks[:-1]] == [rows] * (-(-50 // rows) - 1)
    for name in whole.quantities:
        np.testing.assert_array_equal(np.concatenate([getattr(c, name) for c in chunks]), getattr(whole, name))
    # A second walk starts at the head again.
    np.testing.assert_array_equal(stream.read().time, whole.time)
    assert stream.quantities == whole.quantities
    assert stream.n_rows_in_file == (None if suffix == ".csv" else 50)


def test_source_notes_accumulate():
    source = RecordingSource(path="a.csv", notes=("one",)).noting("two")
    assert source.notes == ("one", "two")
