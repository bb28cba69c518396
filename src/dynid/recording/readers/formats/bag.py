"""ROS bags without a ROS installation: MCAP, ROS 2 sqlite (``.db3``) and ROS 1 ``.bag``.

``sensor_msgs/JointState`` becomes columns ``position.<joint>``, ``velocity.<joint>``, ``effort.<joint>``; the
order of names may change from message to message. ``geometry_msgs/WrenchStamped`` becomes ``force.x`` to
``torque.z``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynid.adapters.urls import local_copy
from dynid.arrays import Array
from dynid.errors import InputError, MissingPackageError, UnknownNameError
from dynid.recording.readers.foreign import foreign_errors
from dynid.recording.readers.formats.bag_sizes import WithinFile, check_bag_sizes, check_mcap_sizes
from dynid.recording.readers.formats.format import OpenOptions
from dynid.recording.readers.formats.ros2_control import CONTROLLER_STATE, DYNAMIC_STATE, controller_columns, dynamic_columns
from dynid.recording.readers.formats.table import ArrayTable
from dynid.recording.readers.log_file import LogFile

_JOINT_STATE = ("sensor_msgs/msg/JointState", "sensor_msgs/JointState")
_WRENCH = ("geometry_msgs/msg/WrenchStamped", "geometry_msgs/WrenchStamped")


class BagFormat:
    """ROS bags: MCAP, ROS 2 sqlite, ROS 1; also the folder of a ROS 2 bag."""

    name = "bag"
    suffixes = (".mcap", ".db3", ".bag")

    def recognises(self, path: Path, head: bytes) -> bool:
        """The first bytes of the three kinds of file, or a folder with ``metadata.yaml``."""
        if not head:
            return (path / "metadata.yaml").is_file()
        return head.startswith((b"\x89MCAP", b"SQLite format 3", b"#ROSBAG"))

    def open(self, path: Path, options: OpenOptions) -> ArrayTable:
        """Joint states or wrenches of one topic."""
        return open_bag(options.log_at(path), options.topic)


@dataclass(frozen=True)
class _Bag:
    """Topics with their message types, and a way to walk through the messages of one topic."""

    topics: Mapping[str, str]
    reader: Any

    def messages(self, topic: str) -> Iterator[tuple[int, Any]]:
        return self.reader(topic)  # type: ignore[no-any-return]


def open_bag(log: LogFile, topic: str | None = None) -> ArrayTable:
    """Joint states of the only such topic, or of ``topic``; a wrench topic brings the joint motion along."""
    path, where = log.path, str(log.path)
    mcap = path.suffix.lower() == ".mcap"
    with (
        foreign_errors(where, "cannot be read as a ROS bag (the file may be truncated)"),
        _open_mcap(log) if mcap else _open_rosbags(local_copy(path)) as bag,
    ):
        joints = [name for name, kind in bag.topics.items() if kind in _JOINT_STATE]
        wrenches = [name for name, kind in bag.topics.items() if kind in _WRENCH]
        controls = [name for name, kind in bag.topics.items() if kind in (*CONTROLLER_STATE, *DYNAMIC_STATE)]
        chosen = _choose(where, bag.topics, joints, wrenches, controls, topic)
        form = path.suffix.lower().lstrip(".") or "rosbag2"
        if chosen in joints:
            states = _JointStates.read(where, chosen, bag.messages(chosen))
            return ArrayTable(form, states.columns(), units={"stamp_ns": "ns"}, notes=states.notes)
        if chosen in controls:
            read = controller_columns if bag.topics[chosen] in CONTROLLER_STATE else dynamic_columns
            made, stamps_ns = read(where, chosen, bag.messages(chosen))
            clock, notes = _clock([header for header, _ in stamps_ns], [logged for _, logged in stamps_ns])
            return ArrayTable(
                form, {"stamp_ns": clock, **made}, units={"stamp_ns": "ns"}, notes=(f"topic '{chosen}'", *notes)
            )
        columns, notes = _read_wrench(where, chosen, bag.messages(chosen))
        if len(joints) == 1:
            states = _JointStates.read(where, joints[0], bag.messages(joints[0]))
            columns, joined = _join_motion(where, columns, states)
            notes += (*states.notes, joined)
        return ArrayTable(form, columns, units={"stamp_ns": "ns"}, notes=notes)


def _choose(
    where: str, topics: Mapping[str, str], joints: list[str], wrenches: list[str], controls: list[str], topic: str | None
) -> str:
    listed = [f"{name} ({kind})" for name, kind in topics.items()]
    if topic is not None:
        if topic not in topics:
            raise UnknownNameError("topic", topic, listed, where)
        if topic not in (*joints, *wrenches, *controls):
            raise InputError(
                f"{where}: topic '{topic}' is {topics[topic]}, expected JointState, WrenchStamped, JointTrajectoryControllerState or "
                "DynamicJointState"
            )
        return topic
    for kind, found in (("JointState", joints), ("WrenchStamped", wrenches), ("ros2_control state", controls)):
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(f"{where}: {len(found)} {kind} topics ({', '.join(found)}); choose one with topic")
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
        check_mcap_sizes(str(log.path), file)
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

        def messages(topic: str) -> Iterator[tuple[int, Any]]:
            for _, _, message, decoded in reader.iter_decoded_messages(topics=[topic]):
                yield message.log_time, decoded

        yield _Bag(kinds, messages)


@contextmanager
def _open_rosbags(path: Path) -> Iterator[_Bag]:
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise MissingPackageError("rosbags", "reading ROS .db3 and .bag files", "ros") from error
    for part in sorted(path.glob("*.mcap")) if path.is_dir() else [path] if path.suffix.lower() == ".bag" else []:
        with part.open("rb") as file:
            (check_bag_sizes if part == path else check_mcap_sizes)(str(part), file)
    # sqlite bags before ROS 2 Iron carry no message definitions; these two messages have not changed since.
    with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        kinds = {connection.topic: connection.msgtype for connection in reader.connections}

        def messages(topic: str) -> Iterator[tuple[int, Any]]:
            wanted = [connection for connection in reader.connections if connection.topic == topic]
            for connection, stamp, raw in reader.messages(connections=wanted):
                yield stamp, reader.deserialize(raw, connection.msgtype)

        yield _Bag(kinds, messages)


def _field(where: str, message: Any, name: str, n_joints: int) -> Any:
    """A list of a joint state, NaN where the message leaves it empty."""
    given = getattr(message, name)
    if len(given) not in (0, n_joints):
        raise InputError(f"{where} has {len(given)} values of {name} for {n_joints} joints")
    return given if len(given) else np.full(n_joints, np.nan)


def _stamp_ns(header: Any) -> int:
    stamp = header.stamp
    nanoseconds = stamp.nanosec if hasattr(stamp, "nanosec") else stamp.nsec
    return int(stamp.sec) * 1_000_000_000 + int(nanoseconds)


def _clock(header_ns: list[int], logged_ns: list[int]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Stamps of the messages, or of the recorder where the publisher left them zero."""
    stamps = np.array(header_ns, dtype=np.int64)
    if np.any(stamps):
        return stamps, ()
    return np.array(logged_ns, dtype=np.int64), ("header stamps are zero: the recorder's clock is used",)


_Group: TypeAlias = tuple[list[int], dict[str, list[Any]]]
"""Rows of messages with the same list of joint names, and their values by field."""


def _filled(
    groups: Mapping[tuple[str, ...], _Group], n_rows: int, fields: Sequence[str]
) -> tuple[list[str], dict[str, Array]]:
    """All joint names, and the values of every field by row and joint."""
    every = list(dict.fromkeys(name for names in groups for name in names))
    place = {name: k for k, name in enumerate(every)}
    values = {name: np.full((n_rows, len(every)), np.nan) for name in fields}
    for names, (rows, columns) in groups.items():
        if names:
            target = np.ix_(rows, [place[name] for name in names])
            for name in fields:
                values[name][target] = np.asarray(columns[name], dtype=np.float64)
    return every, values


@dataclass
class _JointStates:
    """Joint states of a topic as (messages, joints) arrays, NaN where a message has no value."""

    stamps: NDArray[np.int64]
    names: list[str]
    values: dict[str, Array]
    notes: tuple[str, ...] = field(default_factory=tuple)

    @classmethod
    def read(cls, where: str, topic: str, messages: Iterator[tuple[int, Any]]) -> _JointStates:
        fields = ("position", "velocity", "effort")
        header_ns: list[int] = []
        logged_ns: list[int] = []
        # Messages with the same list of names are filled in together.
        groups: dict[tuple[str, ...], _Group] = {}
        for row, (logged, message) in enumerate(messages):
            names = tuple(str(name) for name in message.name)
            header_ns.append(_stamp_ns(message.header))
            logged_ns.append(logged)
            rows, columns = groups.setdefault(names, ([], {name: [] for name in fields}))
            rows.append(row)
            for name in fields:
                columns[name].append(_field(f"{where}: message {row} of '{topic}'", message, name, len(names)))
        if not header_ns:
            raise InputError(f"{where}: topic '{topic}' holds no messages")
        for names in groups:
            if len(set(names)) != len(names):
                raise InputError(f"{where}: a message of '{topic}' names a joint twice: {', '.join(names)}")
        every, values = _filled(groups, len(header_ns), fields)
        stamps, notes = _clock(header_ns, logged_ns)
        notes = (f"topic '{topic}'", *notes)
        if len(groups) > 1:
            notes += (f"joint names come in {len(groups)} orders or sets; matched by name in each message",)
        return cls(stamps, every, values, notes)

    def columns(self) -> dict[str, NDArray[Any]]:
        columns: dict[str, NDArray[Any]] = {"stamp_ns": self.stamps}
        for name, values in self.values.items():
            if not np.isnan(values).all():
                columns |= {f"{name}.{joint}": values[:, k] for k, joint in enumerate(self.names)}
        return columns


def _read_wrench(
    where: str, topic: str, messages: Iterator[tuple[int, Any]]
) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    header_ns: list[int] = []
    logged_ns: list[int] = []
    rows: list[tuple[float, ...]] = []
    frames: set[str] = set()
    for logged, message in messages:
        header_ns.append(_stamp_ns(message.header))
        logged_ns.append(logged)
        frames.add(str(message.header.frame_id))
        force, torque = message.wrench.force, message.wrench.torque
        rows.append((force.x, force.y, force.z, torque.x, torque.y, torque.z))
    if not rows:
        raise InputError(f"{where}: topic '{topic}' holds no messages")
    stamps, notes = _clock(header_ns, logged_ns)
    values = np.array(rows, dtype=np.float64)
    columns: dict[str, NDArray[Any]] = {"stamp_ns": stamps}
    columns |= {f"force.{axis}": values[:, k] for k, axis in enumerate("xyz")}
    columns |= {f"torque.{axis}": values[:, 3 + k] for k, axis in enumerate("xyz")}
    return columns, (f"topic '{topic}' in frame {', '.join(sorted(frames))}", *notes)


def _join_motion(where: str, columns: dict[str, NDArray[Any]], states: _JointStates) -> tuple[dict[str, NDArray[Any]], str]:
    """Joint motion at the stamps of the sensor, by linear interpolation inside the time both topics cover."""
    stamps, first = np.unique(states.stamps, return_index=True)
    clock = columns["stamp_ns"]
    inside = (clock >= stamps[0]) & (clock <= stamps[-1])
    if not inside.any():
        raise InputError(f"{where}: the wrench and the joint states share no time, expected topics of the same run")
    joined = {name: values[inside] for name, values in columns.items()}
    # Relative to the first stamp nanoseconds are exact in floating point.
    at = (clock[inside] - stamps[0]).astype(np.float64)
    known = (stamps - stamps[0]).astype(np.float64)
    for name in ("position", "velocity"):
        for k, joint in enumerate(states.names):
            values = states.values[name][first, k]
            finite = np.isfinite(values)
            if finite.sum() >= 2:
                joined[f"{name}.{joint}"] = np.interp(at, known[finite], values[finite])
    return (
        joined,
        f"joint motion was interpolated to the sensor's clock; {int((~inside).sum())} stamps outside it",
    )
