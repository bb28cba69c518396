"""MCAP files that are still being written: messages as they come, and a file of JSON messages that others can follow."""

from __future__ import annotations

import io
import json
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from dynid.errors import InputError, MissingPackageError

_MAGIC = b"\x89MCAP0\r\n"
_HEAD = struct.Struct("<BQ")
_LARGEST = 1 << 32
_POLL_S = 0.02
_JOINT_STATE = ("sensor_msgs/msg/JointState", "sensor_msgs/JointState")
_JSON_TIMES = ("t", "time", "timestamp", "stamp", "header", "timestamp_ns")

REPORT_TOPIC = "/dynid/estimate"
_NUMBERS = {"type": "object", "additionalProperties": {"type": ["number", "null"]}}
REPORT_SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dynid.Estimate",
    "type": "object",
    "properties": {
        "t": {"type": "number", "description": "stamp of the newest row, s"},
        "values": _NUMBERS,
        "sigma": _NUMBERS,
        "flags": {"type": "object", "additionalProperties": {"type": "integer"}},
        "residual": {"type": "number", "description": "root mean square torque that the values leave, N m or N"},
        "residual_of_joints": _NUMBERS,
        "alarm": {"type": ["object", "null"]},
        "drift": {"type": "string"},
    },
    "required": ["t", "values", "sigma", "flags", "residual", "alarm"],
}
"""Of a report, whose time in the file is the stamp of the newest row."""


def follow(path: Path, topic: str | None, *, wait: bool, stopped: Callable[[], bool]) -> Iterator[list[bytes]]:
    """Messages of a topic as lines of JSON, chunk by chunk.

    Args:
        path: the file; it may be written while it is read, and may end in the middle of a chunk.
        topic: None for the only topic of joint states or of JSON objects.
        wait: go on waiting at the end of a file that its writer has not finished.
        stopped: whether to stop waiting.
    """
    try:
        from mcap.exceptions import McapError
    except ImportError as error:
        raise MissingPackageError("mcap", "reading MCAP files", "ros") from error
    try:
        with path.open("rb") as file:
            reader = _Reader(str(path), topic)
            for opcode, content in _records(path, file, wait, stopped):
                lines = reader.lines(opcode, content)
                if lines:
                    yield lines
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (McapError, struct.error, ValueError) as error:
        raise InputError(f"{path} is no MCAP file that can be followed: {error}") from None


def _records(path: Path, file: BinaryIO, wait: bool, stopped: Callable[[], bool]) -> Iterator[tuple[int, bytes]]:
    """Whole records; one that is not complete yet is waited for, or left."""

    def exactly(n: int) -> bytes | None:
        start = file.tell()
        while True:
            found = file.read(n)
            if len(found) == n:
                return found
            file.seek(start)
            if not wait or stopped():
                return None
            time.sleep(_POLL_S)

    magic = exactly(len(_MAGIC))
    if magic is None:
        return
    if magic != _MAGIC:
        raise InputError(f"{path} does not begin as an MCAP file does")
    while (head := exactly(_HEAD.size)) is not None:
        opcode, length = _HEAD.unpack(head)
        if length > _LARGEST:
            raise InputError(f"{path} holds a record of {length} bytes at byte {file.tell()}, which no MCAP writer makes")
        content = exactly(length)
        if content is None:
            return
        yield opcode, content
        if opcode in (0x02, 0x0F):  # footer, end of data: the writer has finished
            return


class _Reader:
    """Schemas and channels met so far, and the messages of one topic."""

    def __init__(self, where: str, topic: str | None) -> None:
        self._where, self._topic = where, topic
        self._schemas: dict[int, Any] = {}
        self._channels: dict[int, Any] = {}
        self._decoders: dict[int, Any] = {}
        self._chosen: str | None = topic

    def lines(self, opcode: int, content: bytes) -> list[bytes]:
        from mcap.data_stream import ReadDataStream
        from mcap.opcode import Opcode
        from mcap.records import Channel, Chunk, Schema
        from mcap.records import Message as Record
        from mcap.stream_reader import breakup_chunk

        stream = ReadDataStream(io.BytesIO(content))
        records: list[Any] = []
        if opcode == Opcode.CHUNK:
            records = list(breakup_chunk(Chunk.read(stream), validate_crc=True))
        elif opcode == Opcode.SCHEMA:
            records = [Schema.read(stream)]
        elif opcode == Opcode.CHANNEL:
            records = [Channel.read(stream)]
        elif opcode == Opcode.MESSAGE:
            records = [Record.read(stream, len(content))]
        lines = []
        for record in records:
            if isinstance(record, Schema):
                self._schemas[record.id] = record
            elif isinstance(record, Channel):
                self._channels[record.id] = record
            elif isinstance(record, Record) and self._wanted(record.channel_id):
                lines.append(self._line(record))
        return lines

    def _wanted(self, channel_id: int) -> bool:
        channel = self._channels.get(channel_id)
        if channel is None:
            return False
        if self._topic is not None:
            return bool(channel.topic == self._topic)
        schema = self._schemas.get(channel.schema_id)
        if channel.message_encoding != "json" and (schema is None or schema.name not in _JOINT_STATE):
            return False
        if self._chosen is None:
            self._chosen = channel.topic
        elif channel.topic != self._chosen:
            raise InputError(
                f"{self._where}: topics {self._chosen} and {channel.topic} both hold joint states; choose one with --topic"
            )
        return True

    def _line(self, record: Any) -> bytes:
        channel = self._channels[record.channel_id]
        if channel.message_encoding == "json":
            return _with_time(record.data, record.log_time)
        decode = self._decoders.get(record.channel_id)
        if decode is None:
            try:
                from mcap_ros2.decoder import DecoderFactory
            except ImportError as error:
                raise MissingPackageError("mcap-ros2-support", "reading ROS messages of MCAP files", "ros") from error
            decode = DecoderFactory().decoder_for(channel.message_encoding, self._schemas.get(channel.schema_id))
            if decode is None:
                raise InputError(
                    f"{self._where}: messages of {channel.topic} are encoded as '{channel.message_encoding}', expected cdr or json"
                )
            self._decoders[record.channel_id] = decode
        message = decode(record.data)
        stamp = message.header.stamp
        seconds = {"sec": int(stamp.sec), "nanosec": int(stamp.nanosec)}
        if not any(seconds.values()):  # publishers that leave the stamp empty: the recorder's clock
            seconds = {"sec": record.log_time // 1_000_000_000, "nanosec": record.log_time % 1_000_000_000}
        values = {name: [float(x) for x in getattr(message, name)] for name in ("position", "velocity", "effort")}
        line = {"header": {"stamp": seconds}, "name": [str(name) for name in message.name]}
        return json.dumps(line | {name: found for name, found in values.items() if found}).encode()


def _with_time(data: bytes, log_time: int) -> bytes:
    """A JSON message with the recorder's clock where it has none of its own; what is no JSON object stays as it is."""
    try:
        record = json.loads(data)
    except ValueError:
        return data.replace(b"\n", b" ")
    if isinstance(record, dict) and not any(name in record for name in _JSON_TIMES):
        record["timestamp_ns"] = log_time
    return json.dumps(record).encode()
