"""MCAP files that are still being written: messages as they come, and a file of JSON messages that others can follow."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

from dynid.errors import InputError, MissingPackageError
from dynid.io.logs.formats.bag import refuse_large_chunks

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
        from mcap.records import Chunk, DataEnd
        from mcap.stream_reader import StreamReader, breakup_chunk
    except ImportError as error:
        raise MissingPackageError("mcap", "reading MCAP files", "ros") from error
    try:
        with path.open("rb") as file:
            growing, reader = cast(BinaryIO, _GrowingFile(file, wait, stopped)), _Reader(str(path), topic)
            for record in StreamReader(growing, emit_chunks=True).records:
                parts = [record]
                if isinstance(record, Chunk):
                    whole = (record.compression, record.uncompressed_size, 0, len(record.data))
                    refuse_large_chunks(str(path), BytesIO(record.data), lambda *_, whole=whole: iter([whole]))
                    parts = breakup_chunk(record, validate_crc=True)
                if lines := reader.lines(parts):
                    yield lines
                if isinstance(record, DataEnd):  # the writer has finished
                    return
    except EOFError:  # the file ends inside a record
        return
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (McapError, struct.error, ValueError) as error:
        raise InputError(f"{path} is no MCAP file that can be followed: {error}") from None


class _GrowingFile:
    """A file that may still be written: bytes that are not there yet are waited for."""

    def __init__(self, file: BinaryIO, wait: bool, stopped: Callable[[], bool]) -> None:
        self._file, self._wait, self._stopped = file, wait, stopped

    def read(self, n: int) -> bytes:
        """So many bytes; an ``EOFError`` where nobody waits for them any more."""
        if n > _LARGEST:
            raise ValueError(f"it holds a record of {n} bytes, which no MCAP writer makes")
        found = self._file.read(n)
        while len(found) < n and self._wait and not self._stopped():
            time.sleep(_POLL_S)
            found += self._file.read(n - len(found))
        if len(found) < n:
            raise EOFError
        return found


class _Reader:
    """Schemas and channels met so far, and the messages of one topic."""

    def __init__(self, where: str, topic: str | None) -> None:
        self._where, self._topic = where, topic
        self._schemas: dict[int, Any] = {}
        self._channels: dict[int, Any] = {}
        self._decoders: dict[int, Any] = {}
        self._chosen: str | None = topic

    def lines(self, records: Iterable[Any]) -> list[bytes]:
        """Messages among some records, as lines of JSON."""
        from mcap.records import Channel, Message, Schema

        lines = []
        for record in records:
            if isinstance(record, Schema):
                self._schemas[record.id] = record
            elif isinstance(record, Channel):
                self._channels[record.id] = record
            elif isinstance(record, Message) and self._wanted(record.channel_id):
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
