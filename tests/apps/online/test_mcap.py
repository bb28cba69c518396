"""MCAP files that are still being written."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dynid.apps.online.sources import McapFile
from dynid.errors import InputError
from online_streams import facts, reports_of, stream, told


def test_mcap_that_is_still_written(tmp_path: Path) -> None:
    writer_of = pytest.importorskip("mcap.writer").Writer
    given = stream(3.0)
    whole, path = tmp_path / "whole.mcap", tmp_path / "growing.mcap"
    with whole.open("wb") as file:
        writer = writer_of(file, chunk_size=4096)
        writer.start()
        schema = writer.register_schema(name="row", encoding="jsonschema", data=b"{}")
        channel = writer.register_channel(topic="/rows", message_encoding="json", schema_id=schema)
        for k, line in enumerate(given.json_lines()):
            writer.add_message(channel, log_time=k, publish_time=k, data=line.encode())
        writer.finish()
    content = whole.read_bytes()
    rng = np.random.default_rng(0)
    cuts = sorted(rng.integers(20, len(content), size=6).tolist())
    path.write_bytes(content[: cuts[0]])  # ends inside a chunk

    def recorder() -> None:
        for start, stop in zip(cuts, [*cuts[1:], len(content)], strict=True):
            time.sleep(0.05)
            with path.open("ab") as file:
                file.write(content[start:stop])

    thread = threading.Thread(target=recorder)
    thread.start()
    found = reports_of(given, McapFile(path, None, follow=True))  # ends with the file's own end
    thread.join()
    assert facts(found) == facts(told(given))
    path.write_bytes(content[: cuts[3]])
    partial = reports_of(given, McapFile(path, None, follow=False), tmp_path / "watch.npz")
    assert 0 < partial[-1]["rows"] < len(given.json_lines())
    rest = reports_of(given, McapFile(whole, None, follow=False), tmp_path / "watch.npz", resume=True)
    assert facts(rest)[-1] == facts(told(given))[-1]
    (tmp_path / "other.mcap").write_bytes(b"no bag at all")
    with pytest.raises(InputError, match="no MCAP file that can be followed"):
        reports_of(given, McapFile(tmp_path / "other.mcap", None, follow=False))
