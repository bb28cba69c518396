"""ROS bags."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.errors import InputError, MissingPackageError, UnknownNameError
from dynid.recording.readers.joints import MissingJointsError
from dynid.recording.readers.read import open_recording, read_recording
from dynid.recording.recording import WrenchRecording
from log_files import ARM, DQ, RNG, TAU, N, Q, T, check
from messages import facts

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
    with pytest.raises(UnknownNameError, match=facts("/arm", "joint_states", "sensor_msgs", "topic")):
        read_recording(file, ARM, topic="/arm")
    twice = write_bag(tmp_path / "two", {"/a": shuffled_states(), "/b": shuffled_states()}, "db3")
    with pytest.raises(InputError, match=facts("2", "JointState", "topic")):
        read_recording(twice, ARM)
    check(read_recording(twice, ARM, topic="/b"))
    alone = write_bag(tmp_path / "three", {"/ft": sensor}, "bag")
    assert read_recording(alone, ARM).position is None


def test_a_message_with_wrong_lengths_is_refused(tmp_path):
    messages = [(START, joint_state(START, ARM, [0.0, 1.0]))]
    with pytest.raises(InputError, match=facts("/js", "0", "2", "3", "position")):
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
