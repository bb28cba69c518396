"""Sources, backlog and checkpoints: nothing is lost between a sender and the state, whatever either of them does."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynid.apps.online.session import Session
from dynid.apps.online.sources import Backlog, Listener, StandardInput
from dynid.apps.online.watcher import Watcher
from dynid.errors import InputError
from online_streams import facts, reports_of, stream, told


def send(port: int, data: bytes, pieces: int = 7) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for start in range(0, len(data), len(data) // pieces):
            connection.sendall(data[start : start + len(data) // pieces])


def test_socket_with_a_sender_that_comes_back() -> None:
    given = stream(4.0)
    lines = [line + "\n" for line in given.csv_lines()]
    source = Listener("127.0.0.1", 0, once=False)
    watcher = Watcher(given.robot)
    session = Session(watcher, source, lambda text: None)
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
    options = tmp_path / "watch.npz"
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
    found = reports_of(given, again, tmp_path / "watch.npz", resume=True, said=said)
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
        reports_of(given, StandardInput(file), checkpoint)
    log.write_text("\n".join(lines) + "\n")
    with log.open("rb") as file:
        found = reports_of(given, StandardInput(file), checkpoint, resume=True)
    assert facts(found)[-1] == facts(told(given))[-1]
    with log.open("rb") as file, pytest.raises(InputError, match="--checkpoint FILE"):
        reports_of(given, StandardInput(file), None, resume=True)


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


def test_slow_use_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    given = stream(3.0)
    monkeypatch.setattr("dynid.apps.online.sources.Backlog.__init__.__defaults__", (50,))
    source = Listener("127.0.0.1", 0, once=True)
    thread = threading.Thread(target=send, args=(source.port, "\n".join(given.json_lines()).encode(), 100))
    thread.start()
    said: list[str] = []
    found = reports_of(given, source, said=said)
    thread.join()
    assert found[-1]["rows"] == len(given.json_lines())
    assert (found[-1]["stalls"] > 0) == any("faster than they are used" in text for text in said)


# the queue between the thread of the rows and the one that answers
LONG_S, SHORT_S = 20.0, 0.05


def begun(work: Callable[[], object]) -> threading.Thread:
    """A thread that does this."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def still_waits(thread: threading.Thread) -> bool:
    thread.join(SHORT_S)
    return thread.is_alive()


def ends(thread: threading.Thread) -> bool:
    thread.join(LONG_S)
    return not thread.is_alive()


def test_items_come_in_their_order_and_none_in_time_is_none() -> None:
    due: Backlog[int] = Backlog()
    for item in range(5):
        due.put(item)
    assert [due.get(LONG_S) for _ in range(5)] == [0, 1, 2, 3, 4]
    assert due.get(SHORT_S) is None


def test_who_puts_waits_for_room() -> None:
    due: Backlog[int] = Backlog(most=2)
    writer = begun(lambda: [due.put(item) for item in range(3)])
    assert still_waits(writer)
    assert due.get(LONG_S) == 0
    assert ends(writer)
    assert [due.get(LONG_S), due.get(LONG_S)] == [1, 2]


def test_settled_is_what_was_dealt_with_not_what_was_taken() -> None:
    due: Backlog[int] = Backlog()
    due.put(1)
    waiting = begun(due.settle)
    assert due.get(LONG_S) == 1
    assert still_waits(waiting)
    due.done()
    assert ends(waiting)


def test_nobody_waits_for_one_who_does_not_answer_any_more() -> None:
    due: Backlog[int] = Backlog(most=1)
    due.put(1)
    threads = [begun(lambda: due.put(2)), begun(due.settle)]
    assert all(still_waits(thread) for thread in threads)
    due.close()
    assert all(ends(thread) for thread in threads)
    assert due.closed
