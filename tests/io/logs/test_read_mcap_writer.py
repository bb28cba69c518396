"""MCAP files of JSON messages, read back by the package mcap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dynid.errors import InputError
from dynid.io.logs.read import JsonWriter


def test_topics_schemas_and_times_come_back(tmp_path: Path) -> None:
    from mcap.reader import make_reader

    writer = JsonWriter(tmp_path / "a.mcap", "/one", {"title": "T", "type": "object"})
    writer.write(0.5, {"x": 1.0})
    writer.write(1.5, {"x": 2.0}, "/two")
    writer.close()
    with (tmp_path / "a.mcap").open("rb") as file:
        found = [
            (schema.name, channel.topic, message.log_time, json.loads(message.data))
            for schema, channel, message in make_reader(file).iter_messages()
        ]
    assert found == [("T", "/one", 500_000_000, {"x": 1.0}), ("T", "/two", 1_500_000_000, {"x": 2.0})]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        JsonWriter(tmp_path / "no" / "a.mcap", "/one", {})
