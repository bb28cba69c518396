"""ROS bags: joint states, wrenches and states of ros2_control."""

from __future__ import annotations

import bz2
import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.errors import InputError, MissingPackageError, UnknownNameError
from dynid.io.logs.columns import MissingJointsError
from dynid.io.logs.formats.bag import WithinFile, bag_chunks, mcap_chunks, refuse_large_chunks
from dynid.io.logs.read import open_recording, read_recording
from dynid.signals.recording import Recording, WrenchRecording
from fuzz.targets import TARGETS
from log_files import ARM, DQ, RNG, TAU, N, Q, T, check
from messages import facts

rosbags = pytest.importorskip("rosbags")
lz4 = pytest.importorskip("lz4.frame")
zstandard = pytest.importorskip("zstandard")


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


LEG = ("hip", "thigh", "calf")
LEG_T = np.arange(50) / 50.0
LEG_Q = np.outer(np.sin(LEG_T), [1.0, 0.5, -0.3])
COMMANDS = LEG_Q + 0.1


def leg_motion(path: Path, **options: Any) -> Recording:
    found = read_recording(path, list(LEG), **options)
    assert isinstance(found, Recording)
    return found


def test_ros2_control_states_hold_reference_and_feedback(tmp_path: Path) -> None:
    pytest.importorskip("mcap_ros2")
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    kind = "control_msgs/msg/JointTrajectoryControllerState"
    point = "trajectory_msgs/JointTrajectoryPoint"
    text = f"std_msgs/Header header\nstring[] joint_names\n{point} desired\n{point} actual\n{point} error\n"
    store.register(get_types_from_msg(text, kind))
    made = store.types
    nothing = np.zeros(0)

    def state(q: np.ndarray) -> Any:
        return made["trajectory_msgs/msg/JointTrajectoryPoint"](
            positions=q,
            velocities=nothing,
            accelerations=nothing,
            effort=nothing,
            time_from_start=made["builtin_interfaces/msg/Duration"](sec=0, nanosec=0),
        )

    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection("/arm_controller/state", kind, typestore=store)
        for t, q, u in zip(LEG_T, LEG_Q, COMMANDS, strict=True):
            ns = 10**18 + int(t * 1e9)
            time = made["builtin_interfaces/msg/Time"](sec=ns // 10**9, nanosec=ns % 10**9)
            header = made["std_msgs/msg/Header"](stamp=time, frame_id="")
            message = made[kind](header=header, joint_names=list(LEG), desired=state(u), actual=state(q), error=state(u - q))
            writer.write(connection, ns, store.serialize_cdr(message, kind))
    log = leg_motion(tmp_path / "bag" / "bag.mcap")
    assert np.allclose(log.position, LEG_Q)
    assert log.reference_position is not None
    assert np.allclose(log.reference_position, COMMANDS)


PACK = {"zstd": zstandard.compress, "lz4": lz4.compress, "bz2": bz2.compress, "": bytes, "none": bytes}
ZEROS = bytes(3_000_000)


def mcap(packing: str, data: bytes, declared: int, more: int = 0) -> io.BytesIO:
    packed = PACK[packing](data)
    chunk = (
        struct.pack("<QQQII", 0, 1, declared, 0, len(packing)) + packing.encode() + struct.pack("<Q", len(packed)) + packed
    )
    return io.BytesIO(b"\x89MCAP0\r\n" + struct.pack("<BQ", 6, len(chunk) + more) + chunk)


def bag(packing: str, data: bytes, declared: int) -> io.BytesIO:
    packed = PACK[packing](data)
    fields = [b"op=\x05", b"compression=" + packing.encode(), b"size=" + struct.pack("<L", declared)]
    header = b"".join(struct.pack("<L", len(field)) + field for field in fields)
    return io.BytesIO(b"#ROSBAG V2.0\n" + struct.pack("<L", len(header)) + header + struct.pack("<L", len(packed)) + packed)


CASES = [
    (mcap_chunks, mcap, "zstd"),
    (mcap_chunks, mcap, "lz4"),
    (bag_chunks, bag, "lz4"),
    (bag_chunks, bag, "bz2"),
]


@pytest.mark.parametrize(("chunks", "make", "packing"), CASES)
def test_parts_that_are_larger_than_they_say_or_than_memory_are_refused(chunks, make, packing, monkeypatch):
    refuse_large_chunks("log", make(packing, ZEROS, len(ZEROS)), chunks)  # three megabytes harm nobody
    with pytest.raises(InputError, match=r"log: a chunk at byte \d+ unpacks to more than the 1000 bytes it declares"):
        refuse_large_chunks("log", make(packing, ZEROS, 1000), chunks)
    with pytest.raises(InputError, match="declares 4000000000 bytes, expected at most 536870912"):
        refuse_large_chunks("log", make(packing, ZEROS, 4_000_000_000), chunks)
    monkeypatch.setattr("dynid.io.logs.table.HARMLESS_BYTES", 1_000_000)
    with pytest.raises(
        InputError, match=r"log: unpacks from \d+ to more than 3000000 bytes \(\d+ times\), expected at most 200"
    ):
        refuse_large_chunks("log", make(packing, ZEROS, len(ZEROS)), chunks)


@pytest.mark.parametrize(("chunks", "make", "packing"), [(mcap_chunks, mcap, ""), (bag_chunks, bag, "none")])
def test_parts_that_are_not_packed_are_left_alone(chunks, make, packing, monkeypatch):
    monkeypatch.setattr("dynid.io.logs.table.HARMLESS_BYTES", 1000)
    refuse_large_chunks("log", make(packing, ZEROS, len(ZEROS)), chunks)


def test_damage_is_left_to_the_library_and_lengths_must_fit_in_the_file():
    for chunks, make, packing in CASES:
        damaged = make(packing, bytes(range(256)) * 40, 256 * 40).getvalue()
        refuse_large_chunks("log", io.BytesIO(damaged[:-30] + bytes(range(30))), chunks)
    with pytest.raises(InputError, match=r"declares \d+ bytes where \d+ are left; the file may be truncated"):
        refuse_large_chunks("log", mcap("zstd", ZEROS, len(ZEROS), more=2**40), mcap_chunks)


def test_the_reader_asks_first(tmp_path):
    pytest.importorskip("mcap")
    pytest.importorskip("rosbags")
    (tmp_path / "log.mcap").write_bytes(mcap("zstd", ZEROS, 2**40).getvalue())
    (tmp_path / "log.bag").write_bytes(bag("bz2", ZEROS, 1000).getvalue())
    with pytest.raises(InputError, match=r"log\.mcap: a chunk .* declares 1099511627776 bytes"):
        read_recording(tmp_path / "log.mcap", ["a"])
    with pytest.raises(InputError, match=r"log\.bag: a chunk .* unpacks to more than"):
        read_recording(tmp_path / "log.bag", ["a"])


def test_a_file_is_never_asked_for_more_than_it_has():
    """A length of 2**52 behind an index would make Python look for that much memory before it reads."""
    file = WithinFile(io.BytesIO(b"abcdef"))
    assert file.seekable()
    file.seek(2)
    assert file.read(2**52) == b"cdef"
    assert file.read(2**52) == b""
    assert file.tell() == 6
    file.seek(0)
    assert file.read() == b"abcdef"


def test_a_length_inside_a_chunk_is_not_believed(tmp_path):
    pytest.importorskip("mcap")
    path = TARGETS["mcap"].make(tmp_path)
    content, place = bytearray(path.read_bytes()), 8
    while content[place] != 6:
        place += 9 + struct.unpack_from("<Q", content, place + 1)[0]
    (name,) = struct.unpack_from("<L", content, place + 9 + 28)
    struct.pack_into("<Q", content, place + 9 + 32 + name, 2**52)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"log\.mcap"):
        read_recording(path, ["shoulder", "elbow"])


def imu(stamp, acceleration, angular):
    kind = "sensor_msgs/msg/Imu"

    def build(store, form):
        vector, turn = store.types["geometry_msgs/msg/Vector3"], store.types["geometry_msgs/msg/Quaternion"]
        nine = np.zeros(9)
        return store.types[kind](
            header=_header(store, form, stamp, "imu"),
            orientation=turn(0.0, 0.0, 0.0, 1.0),
            orientation_covariance=nine,
            angular_velocity=vector(*map(float, angular)),
            angular_velocity_covariance=nine,
            linear_acceleration=vector(*map(float, acceleration)),
            linear_acceleration_covariance=nine,
        )

    return kind, build


def odometry(stamp, place, turn, linear, angular):
    kind = "nav_msgs/msg/Odometry"

    def build(store, form):
        vector, types = store.types["geometry_msgs/msg/Vector3"], store.types
        pose = types["geometry_msgs/msg/Pose"](
            position=types["geometry_msgs/msg/Point"](*map(float, place)),
            orientation=types["geometry_msgs/msg/Quaternion"](*map(float, turn)),
        )
        twist = types["geometry_msgs/msg/Twist"](linear=vector(*map(float, linear)), angular=vector(*map(float, angular)))
        return types[kind](
            header=_header(store, form, stamp, "odom"),
            child_frame_id="base",
            pose=types["geometry_msgs/msg/PoseWithCovariance"](pose=pose, covariance=np.zeros(36)),
            twist=types["geometry_msgs/msg/TwistWithCovariance"](twist=twist, covariance=np.zeros(36)),
        )

    return kind, build


@pytest.mark.parametrize("form", ["mcap", "db3"])
def test_a_bag_of_a_floating_robot_has_joints_imu_and_odometry_at_their_own_rates(tmp_path: Path, form: str) -> None:
    from dynid.io.logs.base_columns import base_columns, log_columns, read_columns
    from dynid.io.logs.layout import ReadOptions
    from dynid.io.logs.log_file import LogFile

    def stamps(hz: float) -> list[int]:
        return [round(1e9 * (1.0 + k / hz)) for k in range(int(2.0 * hz))]

    def wave(stamp: int, k: int) -> float:
        return float(np.sin(1e-9 * stamp + k))

    topics = {
        "/joint_states": [(t, joint_state(t, ["a"], [wave(t, 0)], [0.0], [1.0])) for t in stamps(100.0)],
        "/imu": [(t, imu(t, [wave(t, 1), 0, 9.81], [0, wave(t, 2), 0])) for t in stamps(200.0)],
        "/odom": [
            (t, odometry(t, [wave(t, 3), 0, 0], [0, 0, 0, 1], [wave(t, 4), 0, 0], [0, 0, wave(t, 5)])) for t in stamps(50.0)
        ],
    }
    file = LogFile(write_bag(tmp_path / "run", topics, form))
    found = base_columns(log_columns(file, ReadOptions()))
    assert set(found) == {
        "position",
        "orientation",
        "velocity",
        "angular_velocity",
        "imu_acceleration",
        "imu_angular_velocity",
    }
    wanted = [
        found[name][k]
        for name, k in (("imu_acceleration", 0), ("imu_angular_velocity", 1), ("position", 0), ("velocity", 0))
    ]
    read = read_columns(file, wanted, ReadOptions())
    assert read.rate_hz == pytest.approx(100.0, rel=0.02)
    time = read.time - read.time[0] + 1.0
    np.testing.assert_allclose(read.position, np.sin(time[:, None] + [1.0, 2.0, 3.0, 4.0]), atol=2e-3)
