"""Sources, backlog and checkpoints: nothing is lost between a sender and the state, whatever either of them does."""

from __future__ import annotations

import gc
import json
import os
import socket
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.watch.backlog import Backlog, Batch
from dynid.watch.checkpoint import packed, read_checkpoint, unpacked, write_checkpoint
from dynid.watch.session import Session, SessionOptions
from dynid.watch.sources import LONGEST_LINE, Lines, Listener, McapFile, Source, StandardInput
from dynid.watch.watcher import Watcher
from watch.streams import Stream, stream


def reports_of(
    given: Stream, source: Source, options: SessionOptions | None = None, said: list[str] | None = None
) -> list[dict[str, Any]]:
    said = [] if said is None else said
    return [dict(one) for one in Session(Watcher(given.robot), source, options or SessionOptions(), said.append).run()]


def told(given: Stream) -> list[dict[str, Any]]:
    watcher = Watcher(given.robot)
    found = [report for line in given.json_lines() for report in watcher.feed(line)]
    last = watcher.finish()
    assert last is not None
    return [report.as_dict() for report in [*found, last]]


def facts(reports: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Reports without what depends on the machine."""
    return [
        {k: v for k, v in one.items() if k not in ("final", "waiting", "stalls", "latency_ms", "cpu_ms")} for one in reports
    ]


def send(port: int, data: bytes, pieces: int = 7) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for start in range(0, len(data), len(data) // pieces):
            connection.sendall(data[start : start + len(data) // pieces])


def test_socket_with_a_sender_that_comes_back() -> None:
    given = stream(4.0)
    lines = [line + "\n" for line in given.csv_lines()]
    source = Listener("127.0.0.1", 0, once=False)
    watcher = Watcher(given.robot)
    session = Session(watcher, source, SessionOptions(), lambda text: None)
    found: list[dict[str, Any]] = []

    def sender() -> None:
        send(source.port, "".join(lines[:300]).encode())
        send(source.port, "".join([lines[0], *lines[300:]]).encode())  # header again, then the rest
        deadline = time.monotonic() + 60.0
        while watcher.counts.rows < len(lines) - 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        session.stop()

    thread = threading.Thread(target=sender)
    thread.start()
    found = [dict(one) for one in session.run()]
    thread.join()
    assert source.connections == 2
    assert found[-1]["final"]
    assert found[-1]["malformed"] == 0
    assert facts(found) == facts(told(given))


def test_socket_tells_a_sender_where_to_go_on(tmp_path: Path) -> None:
    given = stream(4.0)
    lines = [line + "\n" for line in given.json_lines()]
    options = SessionOptions(tmp_path / "watch.npz", resume=False)
    source = Listener("127.0.0.1", 0, once=True)
    thread = threading.Thread(target=send, args=(source.port, "".join(lines[:500]).encode()))
    thread.start()
    reports_of(given, source, options)
    thread.join()
    again = Listener("127.0.0.1", 0, once=True)
    heard: list[dict[str, Any]] = []

    def sender() -> None:
        with socket.create_connection(("127.0.0.1", again.port)) as connection:
            heard.append(json.loads(connection.makefile("r").readline()))
            first = next(k for k, line in enumerate(lines) if json.loads(line)["t"] >= heard[0]["resume_from"])
            connection.sendall("".join(lines[first:]).encode())

    thread = threading.Thread(target=sender)
    thread.start()
    said: list[str] = []
    found = reports_of(given, again, SessionOptions(tmp_path / "watch.npz", resume=True), said)
    thread.join()
    assert heard == [{"resume_from": given.recording.time[499]}]
    assert any("were taken before" in text for text in said)
    assert facts(found)[-1] == facts(told(given))[-1]


def test_file_on_standard_input_goes_on_where_it_was(tmp_path: Path) -> None:
    given = stream(4.0)
    log = tmp_path / "log.csv"
    lines = given.csv_lines()
    checkpoint = tmp_path / "watch.npz"
    log.write_text("\n".join(lines[:450]) + "\n")
    with log.open("rb") as file:
        reports_of(given, StandardInput(file), SessionOptions(checkpoint))
    log.write_text("\n".join(lines) + "\n")
    with log.open("rb") as file:
        found = reports_of(given, StandardInput(file), SessionOptions(checkpoint, resume=True))
    assert facts(found)[-1] == facts(told(given))[-1]
    with log.open("rb") as file, pytest.raises(InputError, match="--checkpoint FILE"):
        reports_of(given, StandardInput(file), SessionOptions(None, resume=True))


def test_pipe() -> None:
    given = stream(3.0)
    read, write = os.pipe()

    def sender() -> None:
        with os.fdopen(write, "wb") as out:
            out.write("\n".join(given.json_lines()).encode())  # the last line has no end

    thread = threading.Thread(target=sender)
    thread.start()
    with os.fdopen(read, "rb") as file:
        source = StandardInput(file)
        assert not source.seekable
        found = reports_of(given, source)
    thread.join()
    assert facts(found) == facts(told(given))


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
    partial = reports_of(given, McapFile(path, None, follow=False), SessionOptions(tmp_path / "watch.npz"))
    assert 0 < partial[-1]["rows"] < len(given.json_lines())
    rest = reports_of(given, McapFile(whole, None, follow=False), SessionOptions(tmp_path / "watch.npz", resume=True))
    assert facts(rest)[-1] == facts(told(given))[-1]
    (tmp_path / "other.mcap").write_bytes(b"no bag at all")
    with pytest.raises(InputError, match="does not begin as an MCAP"):
        reports_of(given, McapFile(tmp_path / "other.mcap", None, follow=False))


def test_backlog_holds_the_reader_back_and_loses_nothing() -> None:
    backlog = Backlog(most=10)
    sent = [b"%d" % k for k in range(200)]

    def reader() -> None:
        for line in sent:
            backlog.put(Batch(0.0, [line], [0]))
        backlog.close()

    thread = threading.Thread(target=reader)
    thread.start()
    time.sleep(0.1)
    taken: list[bytes] = []
    while not backlog.ended:
        batch = backlog.get(1.0)
        taken += [] if batch is None else batch.lines
    thread.join()
    assert taken == sent
    assert backlog.stalls > 0
    assert backlog.longest == 10


def test_slow_use_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    given = stream(3.0)
    monkeypatch.setattr("dynid.watch.backlog.Backlog.__init__.__defaults__", (50,))
    source = Listener("127.0.0.1", 0, once=True)
    thread = threading.Thread(target=send, args=(source.port, "\n".join(given.json_lines()).encode(), 100))
    thread.start()
    said: list[str] = []
    found = reports_of(given, source, said=said)
    thread.join()
    assert found[-1]["rows"] == len(given.json_lines())
    assert (found[-1]["stalls"] > 0) == any("faster than they are used" in text for text in said)


def test_lines_in_any_pieces() -> None:
    data, rng = b"one\ntwo\r\n\nthree", np.random.default_rng(0)
    for _ in range(20):
        cuts = sorted(rng.integers(len(data) + 1, size=4).tolist())
        lines = Lines(100)
        made = [lines.cut(data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        found = [line for part, _ in made for line in part] + lines.end()[0]
        assert found == [b"one", b"two\r", b"", b"three"]
        assert [at for _, part in made for at in part] == [104, 109, 110]
    endless = Lines()
    assert len(endless.cut(b"x" * (3 * LONGEST_LINE))[0]) == 2


def test_a_checkpoint_leaves_nothing_behind_in_memory(tmp_path: Path) -> None:
    """The collector hardly runs in a watch: what a checkpoint copies has to go when it is written."""
    state = {"rows": [np.zeros(1000)], "block": {"R": np.ones(1000)}}
    gone = weakref.ref(state["rows"][0])
    gc.disable()
    try:
        write_checkpoint(tmp_path / "watch.npz", state)
        del state
        assert gone() is None
    finally:
        gc.enable()


def test_checkpoint_is_numbers_alone(tmp_path: Path) -> None:
    state = {
        "a": np.arange(3.0),
        "b": [1, None, {"c": np.zeros((2, 0)), "d": float("nan")}],
        "e": "text",
        "f": np.float64(0.1),
    }
    path = tmp_path / "watch.npz"
    write_checkpoint(path, state)
    found = read_checkpoint(path)
    np.testing.assert_array_equal(found["a"], state["a"])
    assert found["b"][2]["c"].shape == (2, 0)
    assert found["f"] == 0.1
    assert repr(unpacked(packed(found))) == repr(found)
    for content in (b"", b"PK\x03\x04 broken", np.zeros(3).tobytes()):
        path.write_bytes(content)
        with pytest.raises(InputError, match="no checkpoint of a watch"):
            read_checkpoint(path)
    np.savez(path, tree=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match="no checkpoint of a watch"):
        read_checkpoint(path)
    with pytest.raises(InputError, match="there is no checkpoint"):
        read_checkpoint(tmp_path / "absent.npz")
