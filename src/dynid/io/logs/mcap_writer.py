"""MCAP files of JSON messages with their schemas, which Foxglove, rerun and PlotJuggler open."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynid.errors import InputError, MissingPackageError


class JsonWriter:
    """An MCAP file of JSON messages of one schema.

    Args:
        path: file to write.
        topic: of the messages, where :meth:`write` names no other.
        schema: JSON schema of a message.
    """

    def __init__(self, path: Path, topic: str, schema: Mapping[str, Any]) -> None:
        try:
            from mcap.writer import Writer
        except ImportError as error:
            raise MissingPackageError("mcap", "writing MCAP files", "ros") from error
        try:
            self._file = path.open("wb")
        except OSError as error:
            raise InputError(f"cannot write '{path}': {error.strerror or error}") from None
        self._writer = Writer(self._file, chunk_size=64 * 1024)
        self._writer.start(profile="", library="dynid")
        self._schema = self._writer.register_schema(
            name=str(schema.get("title", topic)), encoding="jsonschema", data=json.dumps(schema).encode()
        )
        self._topic, self._channels, self._n = topic, dict[str, int](), 0

    def write(self, time_s: float, record: Mapping[str, Any], topic: str = "") -> None:
        """One message."""
        name = topic or self._topic
        if name not in self._channels:
            self._channels[name] = self._writer.register_channel(topic=name, message_encoding="json", schema_id=self._schema)
        stamp = max(round(time_s * 1e9), 0)
        data = json.dumps(record, allow_nan=False).encode()
        self._writer.add_message(
            self._channels[name], log_time=stamp, publish_time=stamp, sequence=self._n & 0xFFFFFFFF, data=data
        )
        self._n += 1

    def close(self) -> None:
        """Finish the file."""
        self._writer.finish()  # type: ignore[no-untyped-call]
        self._file.close()
