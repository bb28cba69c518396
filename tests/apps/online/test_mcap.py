"""MCAP files that are still being written."""

from __future__ import annotations

import struct
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dynid.apps.online.mcap import follow
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


@pytest.mark.parametrize("packing", ["zstd", "lz4"])
@pytest.mark.parametrize("honest", [True, False])
def test_a_chunk_that_unpacks_to_gigabytes_is_refused(packing: str, honest: bool, tmp_path: Path) -> None:
    pytest.importorskip("mcap.writer")
    zeros = bytes(2**26)
    if packing == "zstd":
        packed = pytest.importorskip("zstandard").ZstdCompressor(write_content_size=False).compress(zeros)
    else:
        packed = pytest.importorskip("lz4.frame").compress(zeros)
    name, size = packing.encode(), 2**40 if honest else 100
    chunk = struct.pack("<QQQII", 0, 0, size, 0, len(name)) + name + struct.pack("<Q", len(packed)) + packed
    path = tmp_path / "bomb.mcap"
    path.write_bytes(b"\x89MCAP0\r\n" + struct.pack("<BQII", 1, 8, 0, 0) + struct.pack("<BQ", 6, len(chunk)) + chunk)
    said = f"declares {2**40} bytes, expected at most" if honest else "unpacks to more than the 100 bytes it declares"
    with pytest.raises(InputError, match=said):
        list(follow(path, None, wait=False, stopped=lambda: False))
