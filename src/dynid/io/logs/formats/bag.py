"""ROS bags without a ROS installation: MCAP, ROS 2 sqlite (``.db3``) and ROS 1 ``.bag``.

``sensor_msgs/JointState`` becomes columns ``position.<joint>``, ``velocity.<joint>``, ``effort.<joint>``; the
order of names may change from message to message. ``geometry_msgs/WrenchStamped`` becomes ``force.x`` to
``torque.z``. ``sensor_msgs/Imu`` and ``nav_msgs/Odometry`` beside joint states become ``imu.linear_acceleration.x`` and so on,
``pose.position.x``, ``twist.linear.x``: motion of a floating base, at the stamps of the joint states.

Messages of ros2_control hold commands beside states. ``control_msgs/JointTrajectoryControllerState`` has ``reference`` (older:
``desired``) and ``feedback`` (older: ``actual``) per joint; ``control_msgs/DynamicJointState`` has named interfaces per joint, of which
``position`` and ``velocity`` are states.

Records of MCAP and of ROS 1 bags are walked through by their lengths before a library unpacks them; since a header need not be true, every
chunk is unpacked piece by piece and counted.
"""

from __future__ import annotations

import bz2
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InputError, MissingPackageError, UnknownNameError
from dynid.files import check_memory, foreign_errors
from dynid.io.logs.log_file import LogFile, local_copy
from dynid.io.logs.table import OpenOptions, Table, array_table, refuse_tight_packing

_JOINT_STATE = ("sensor_msgs/msg/JointState", "sensor_msgs/JointState")
_WRENCH = ("geometry_msgs/msg/WrenchStamped", "geometry_msgs/WrenchStamped")
_BASE = ("sensor_msgs/msg/Imu", "sensor_msgs/Imu", "nav_msgs/msg/Odometry", "nav_msgs/Odometry")
_CONTROLLER_STATE = ("control_msgs/msg/JointTrajectoryControllerState", "control_msgs/JointTrajectoryControllerState")
_INTERFACE_STATE = ("control_msgs/msg/DynamicJointState", "control_msgs/DynamicJointState")
_CONTROLLER = {
    "position": (("feedback", "actual"), "positions"),
    "velocity": (("feedback", "actual"), "velocities"),
    "effort": (("feedback", "actual"), "effort"),
    "q_cmd": (("reference", "desired"), "positions"),
}
"""Columns of a controller's state: the points that may hold them, newer names first, and the field."""
_INTERFACES = {
    "position": "position",
    "velocity": "velocity",
    "effort": "effort",
    "position_command": "q_cmd",
    "command": "q_cmd",
}
_Messages: TypeAlias = Iterator[tuple[int, Any]]
"""Stamps of the recorder, ns, and messages."""
_Bag: TypeAlias = tuple[Mapping[str, str], Callable[[str], _Messages]]
"""Topics with their message types, and a way to walk through the messages of one topic."""
_Columns: TypeAlias = dict[str, NDArray[Any]]
Chunk: TypeAlias = tuple[str, int, int, int]
"""A packed part of a bag: how it is packed, what its header says it unpacks to, where it starts, and its length."""
MOST_PART = 2**29
"""Bytes of one packed part of a bag; writers close one after a few megabytes."""
_PACKINGS = ("bz2", "lz4", "zstd")
_PIECE = 2**20
_MCAP_HEAD = struct.Struct("<BQ")
_MCAP_CHUNK = struct.Struct("<QQQII")
_MCAP_MAGIC = 8
_CHUNK = 0x06


class BagFormat:
    """ROS bags: MCAP, ROS 2 sqlite, ROS 1; also the folder of a ROS 2 bag."""

    name = "bag"
    suffixes = (".mcap", ".db3", ".bag")

    def recognises(self, path: Path, head: bytes) -> bool:
        """The first bytes of the three kinds of file, or a folder with ``metadata.yaml``."""
        if not head:
            return (path / "metadata.yaml").is_file()
        return head.startswith((b"\x89MCAP", b"SQLite format 3", b"#ROSBAG"))

    def open(self, path: Path, options: OpenOptions) -> Table:
        """Joint states of the only such topic, or of ``options.topic``; a wrench topic brings the joint motion along."""
        log, where = options.log_at(path), str(path)
        mcap = log.path.suffix.lower() == ".mcap"
        with (
            foreign_errors(where, "cannot be read as a ROS bag (the file may be truncated)"),
            _open_mcap(log) if mcap else _open_rosbags(local_copy(log.path)) as (topics, messages),
        ):
            chosen = _choose(where, topics, options.topic)
            columns, notes = _read_topic(where, chosen, topics[chosen], messages(chosen))
            joints = [name for name, kind in topics.items() if kind in _JOINT_STATE]
            if topics[chosen] in _WRENCH and len(joints) == 1:
                states, more = _read_topic(where, joints[0], topics[joints[0]], messages(joints[0]))
                columns, joined = _join_motion(where, columns, states, ("position.", "velocity."))
                notes += (*more, joined)
            for kinds in (_BASE[:2], _BASE[2:]) if topics[chosen] in _JOINT_STATE else ():
                for name in [name for name, kind in topics.items() if kind in kinds][:1]:
                    states, more = _read_topic(where, name, topics[name], messages(name))
                    columns, joined = _join_motion(where, columns, states, ("imu.", "pose.", "twist."))
                    notes += (*more, joined)
        form = log.path.suffix.lower().lstrip(".") or "rosbag2"
        return array_table(form, columns, units={"stamp_ns": "ns"}, notes=notes)


def _choose(where: str, topics: Mapping[str, str], topic: str | None) -> str:
    listed = [f"{name} ({kind})" for name, kind in topics.items()]
    if topic is not None:
        if topic not in topics:
            raise UnknownNameError("topic", topic, listed, where)
        if topics[topic] not in _ROW_OF:
            raise InputError(
                f"{where}: topic '{topic}' is {topics[topic]}, expected JointState, WrenchStamped, JointTrajectoryControllerState or "
                "DynamicJointState"
            )
        return topic
    control = (*_CONTROLLER_STATE, *_INTERFACE_STATE)
    for word, kinds in (("JointState", _JOINT_STATE), ("WrenchStamped", _WRENCH), ("ros2_control state", control)):
        found = [name for name, kind in topics.items() if kind in kinds]
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(f"{where}: {len(found)} {word} topics ({', '.join(found)}); choose one with topic")
    raise InputError(
        f"{where}: no topic of type sensor_msgs/JointState or geometry_msgs/WrenchStamped; "
        f"available: {', '.join(listed) or 'none'}"
    )


@contextmanager
def _open_mcap(log: LogFile) -> Iterator[_Bag]:
    try:
        from mcap.reader import make_reader
        from mcap_ros2.decoder import DecoderFactory
    except ImportError as error:
        raise MissingPackageError("mcap-ros2-support", "reading MCAP files", "ros") from error
    with log.reading() as file:
        refuse_large_chunks(str(log.path), file, mcap_chunks)
        within: Any = WithinFile(file)
        reader = make_reader(within, validate_crcs=True, decoder_factories=[DecoderFactory()])
        summary = reader.get_summary()
        if summary is None or not summary.channels:
            kinds = {}
            for schema, channel, _ in reader.iter_messages():
                kinds[channel.topic] = schema.name if schema is not None else "unknown"
        else:
            kinds = {
                channel.topic: summary.schemas[channel.schema_id].name if channel.schema_id in summary.schemas else "unknown"
                for channel in summary.channels.values()
            }

        def messages(topic: str) -> _Messages:
            for _, _, message, decoded in reader.iter_decoded_messages(topics=[topic]):
                yield message.log_time, decoded

        yield kinds, messages


@contextmanager
def _open_rosbags(path: Path) -> Iterator[_Bag]:
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise MissingPackageError("rosbags", "reading ROS .db3 and .bag files", "ros") from error
    for part in sorted(path.glob("*.mcap")) if path.is_dir() else [path] if path.suffix.lower() == ".bag" else []:
        with part.open("rb") as file:
            refuse_large_chunks(str(part), file, bag_chunks if part == path else mcap_chunks)
    # sqlite bags before ROS 2 Iron carry no message definitions; these two messages have not changed since.
    with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        kinds = {connection.topic: connection.msgtype for connection in reader.connections}

        def messages(topic: str) -> _Messages:
            wanted = [connection for connection in reader.connections if connection.topic == topic]
            for connection, stamp, raw in reader.messages(connections=wanted):
                yield stamp, reader.deserialize(raw, connection.msgtype)

        yield kinds, messages


def _clock(where: str, topic: str, stamps_ns: list[tuple[int, int]]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Stamps of the messages, or of the recorder where the publisher left them zero; a topic without messages is refused."""
    if not stamps_ns:
        raise InputError(f"{where}: topic '{topic}' holds no messages")
    stamps = np.array([header for header, _ in stamps_ns], dtype=np.int64)
    if np.any(stamps):
        return stamps, ()
    logged = np.array([logged for _, logged in stamps_ns], dtype=np.int64)
    return logged, ("header stamps are zero: the recorder's clock is used",)


def _read_topic(where: str, topic: str, kind: str, messages: _Messages) -> tuple[_Columns, tuple[str, ...]]:
    """Columns of a topic, NaN where a message has no value."""
    stamps_ns: list[tuple[int, int]] = []
    frames: set[str] = set()
    # Messages with the same columns are filled in together: their rows, and their values.
    groups: dict[tuple[str, ...], tuple[list[int], list[Any]]] = {}
    for row, (logged, message) in enumerate(messages):
        names, values = _ROW_OF[kind](f"{where}: message {row} of '{topic}'", message)
        stamp = message.header.stamp
        nanoseconds = stamp.nanosec if hasattr(stamp, "nanosec") else stamp.nsec
        stamps_ns.append((int(stamp.sec) * 1_000_000_000 + int(nanoseconds), logged))
        frames.add(str(message.header.frame_id))
        rows, held = groups.setdefault(names, ([], []))
        rows.append(row)
        held.append(values)
    stamps, notes = _clock(where, topic, stamps_ns)
    for names in groups:
        if len(set(names)) != len(names):
            raise InputError(f"{where}: a message of '{topic}' names a joint twice: {', '.join(names)}")
    place = {name: k for k, name in enumerate(dict.fromkeys(name for names in groups for name in names))}
    check_memory(
        f"{where}: topic '{topic}' of {len(stamps)} messages and {len(place)} columns", 8 * len(stamps) * len(place)
    )
    whole = np.full((len(stamps), len(place)), np.nan)
    for names, (rows, held) in groups.items():
        whole[np.ix_(rows, [place[name] for name in names])] = np.asarray(held, dtype=np.float64)
    if len(groups) > 1:
        notes += (f"joint names come in {len(groups)} orders or sets; matched by name in each message",)
    frame = f" in frame {', '.join(sorted(frames))}" if kind in _WRENCH else ""
    known = {name.partition(".")[0] for name, k in place.items() if not np.isnan(whole[:, k]).all()}
    columns = {name: whole[:, k] for name, k in place.items() if name.partition(".")[0] in known}
    return {"stamp_ns": stamps, **columns}, (f"topic '{topic}'{frame}", *notes)


@lru_cache(maxsize=256)
def _columns_of(quantities: tuple[str, ...], joints: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the columns of some quantities of some joints; a log names the same joints in most of its messages."""
    return tuple(f"{quantity}.{joint}" for quantity in quantities for joint in joints)


def _joined_row(
    where: str, joints: Sequence[Any], found: Mapping[str, Sequence[float]]
) -> tuple[tuple[str, ...], list[float]]:
    """Columns and values of a message that has lists over its joints; a list may be left empty."""
    for name, values in found.items():
        if len(values) not in (0, len(joints)):
            raise InputError(f"{where} has {len(values)} values of {name} for {len(joints)} joints")
    given = tuple(name for name, values in found.items() if len(values))
    return _columns_of(given, tuple(map(str, joints))), [float(x) for name in given for x in found[name]]


def _joint_state(where: str, message: Any) -> tuple[tuple[str, ...], list[float]]:
    return _joined_row(where, message.name, {name: getattr(message, name) for name in ("position", "velocity", "effort")})


def _controller_state(where: str, message: Any) -> tuple[tuple[str, ...], list[float]]:
    found = {}
    for column, (points, part) in _CONTROLLER.items():
        given = [getattr(getattr(message, point, None), part, ()) for point in points]
        found[column] = next((values for values in given if len(values)), ())
    return _joined_row(where, message.joint_names, found)


def _interface_state(where: str, message: Any) -> tuple[tuple[str, ...], list[float]]:
    found = [
        (f"{_INTERFACES[str(interface)]}.{name}", float(value))
        for name, interfaces in zip(message.joint_names, message.interface_values, strict=True)
        for interface, value in zip(interfaces.interface_names, interfaces.values, strict=True)
        if str(interface) in _INTERFACES
    ]
    return tuple(name for name, _ in found), [value for _, value in found]


def _wrench(where: str, message: Any) -> tuple[tuple[str, ...], list[float]]:
    parts = (message.wrench.force, message.wrench.torque)
    return _columns_of(("force", "torque"), tuple("xyz")), [getattr(part, axis) for part in parts for axis in "xyz"]


def _base(_where: str, message: Any) -> tuple[tuple[str, ...], list[float]]:
    """What an IMU reads, or pose and twist of an odometry, whose twist is in the axes of the base."""
    if hasattr(message, "pose"):
        found = {"pose.position.": message.pose.pose.position, "pose.orientation.": message.pose.pose.orientation}
        found |= {"twist.linear.": message.twist.twist.linear, "twist.angular.": message.twist.twist.angular}
    else:
        found = {f"imu.{name}.": getattr(message, name) for name in ("linear_acceleration", "angular_velocity")}
    named = {f"{stem}{axis}": part for stem, part in found.items() for axis in ("xyzw" if "orient" in stem else "xyz")}
    return tuple(named), [float(getattr(part, name[-1])) for name, part in named.items()]


_ROW_OF: Mapping[str, Callable[[str, Any], tuple[tuple[str, ...], list[float]]]] = {
    **dict.fromkeys(_JOINT_STATE, _joint_state),
    **dict.fromkeys(_WRENCH, _wrench),
    **dict.fromkeys(_BASE, _base),
    **dict.fromkeys(_CONTROLLER_STATE, _controller_state),
    **dict.fromkeys(_INTERFACE_STATE, _interface_state),
}
"""Columns and values of one message, by its type."""


def _join_motion(where: str, columns: _Columns, states: _Columns, stems: tuple[str, ...]) -> tuple[_Columns, str]:
    """Motion of another topic at the stamps of a first one, by linear interpolation inside the time both topics cover."""
    stamps, first = np.unique(states["stamp_ns"], return_index=True)
    clock = columns["stamp_ns"]
    inside = (clock >= stamps[0]) & (clock <= stamps[-1])
    if not inside.any():
        raise InputError(f"{where}: two topics share no time, expected topics of the same run")
    joined = {name: values[inside] for name, values in columns.items()}
    # Relative to the first stamp nanoseconds are exact in floating point.
    at = (clock[inside] - stamps[0]).astype(np.float64)
    known = (stamps - stamps[0]).astype(np.float64)
    for name in states:
        finite = np.isfinite(values := states[name][first])
        if name.startswith(stems) and finite.sum() >= 2:
            joined[name] = np.interp(at, known[finite], values[finite])
    return (
        joined,
        f"{stems[0].rstrip('.')} was interpolated to the clock of the others; {int((~inside).sum())} stamps outside it",
    )


# What chunks unpack to ------------------------------------------------------------------------
def refuse_large_chunks(where: str, file: BinaryIO, chunks: Callable[[str, BinaryIO], Iterator[Chunk]]) -> None:
    """Refuse a bag whose chunks would not fit in memory, or unpack to more than they declare; each is unpacked piece by piece."""
    packed = unpacked = 0
    for packing, declared, start, length in chunks(where, file):
        size = length
        if packing in _PACKINGS:
            if max(declared, length) > MOST_PART:
                most = max(declared, length)
                raise InputError(f"{where}: a chunk at byte {start} declares {most} bytes, expected at most {MOST_PART}")
            file.seek(start)
            content, size = file.read(length), 0
            with suppress(
                Exception
            ):  # damage, which the library tells of when it reads the chunk; or the library is missing
                for got in takewhile(bool, _piece_sizes(packing, content)):
                    size += got
                    if size > declared:
                        break
            if size > declared:
                raise InputError(f"{where}: a chunk at byte {start} unpacks to more than the {declared} bytes it declares")
        packed += length
        unpacked += size
        refuse_tight_packing(where, packed, unpacked, "more than ")


def mcap_chunks(where: str, file: BinaryIO) -> Iterator[Chunk]:
    """Chunks of an MCAP file; reading on behind a damaged record is left to the library."""
    end = file.seek(0, 2)
    place = _MCAP_MAGIC
    while place + _MCAP_HEAD.size <= end:
        file.seek(place)
        opcode, length = _MCAP_HEAD.unpack(file.read(_MCAP_HEAD.size))
        place += _MCAP_HEAD.size
        if length > end - place:
            raise InputError(
                f"{where}: a record at byte {place} declares {length} bytes where {end - place} are left; the file may be truncated"
            )
        if opcode == _CHUNK and length >= _MCAP_CHUNK.size:
            *_, declared, _, name = _MCAP_CHUNK.unpack(file.read(_MCAP_CHUNK.size))
            if name <= length - _MCAP_CHUNK.size - 8:
                packing = file.read(name).decode("ascii", "replace")
                (size,) = struct.unpack("<Q", file.read(8))
                left = place + length - file.tell()
                yield packing, declared, file.tell(), min(size, left)
        place += length


def bag_chunks(_where: str, file: BinaryIO) -> Iterator[Chunk]:
    """Chunks of a ROS 1 bag, as far as its records follow one another."""
    end = file.seek(0, 2)
    file.seek(0)
    file.readline(64)
    while file.tell() + 8 <= end:
        (length,) = struct.unpack("<L", file.read(4))
        if length > end - file.tell() - 4:
            return
        header, at, fields = file.read(length), 0, dict[bytes, bytes]()
        while at + 4 <= length:  # fields name=value, each behind its length
            n = int.from_bytes(header[at : at + 4], "little")
            name, _, value = header[at + 4 : at + 4 + n].partition(b"=")
            fields[name] = value
            at += 4 + n
        (size,) = struct.unpack("<L", file.read(4))
        start = file.tell()
        if size > end - start:
            return
        if fields.get(b"op") == b"\x05":
            declared = int.from_bytes(fields.get(b"size", b""), "little")
            yield fields.get(b"compression", b"none").decode("ascii", "replace"), declared, start, size
        file.seek(start + size)


def _piece_sizes(packing: str, packed: bytes) -> Iterator[int]:
    """Sizes of the pieces that packed bytes unpack to."""
    if packing == "zstd":
        import zstandard

        stream = zstandard.ZstdDecompressor(max_window_size=MOST_PART).stream_reader(packed)
        while got := stream.read(_PIECE):
            yield len(got)
        return
    if packing == "lz4":
        import lz4.frame

        decompressor = lz4.frame.LZ4FrameDecompressor()
    else:
        decompressor = bz2.BZ2Decompressor()
    yield len(decompressor.decompress(packed, _PIECE))
    while not (decompressor.needs_input or decompressor.eof):
        yield len(decompressor.decompress(b"", _PIECE))


class WithinFile:
    """A file that is never asked for more bytes than it has left: Python makes room for all that is asked before it reads.

    An index may point anywhere in a file, and a length read there may be any number.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = file.seek(0, 2)
        file.seek(0)

    def read(self, size: int = -1) -> bytes:
        """At most as many bytes as are left."""
        left = max(0, self._end - self._file.tell())
        return self._file.read(left if size < 0 else min(size, left))

    def seek(self, place: int, whence: int = 0) -> int:
        """As of the file."""
        return self._file.seek(place, whence)

    def tell(self) -> int:
        """As of the file."""
        return self._file.tell()

    def seekable(self) -> bool:
        """As of the file."""
        return self._file.seekable()
