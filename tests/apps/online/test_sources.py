"""Where lines come from: nothing is lost between a sender and the backlog, whatever either of them does."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from dynid.apps.online import sources
from dynid.apps.online.sources import LONGEST_LINE, Backlog, Batch, Lines, Listener


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


@pytest.fixture
def listener() -> Iterator[Listener]:
    source = Listener("127.0.0.1", 0, once=False)
    yield source
    source.stop()


def taken(backlog: Backlog, most_s: float = 5.0) -> list[bytes]:
    """The next lines, those of a few seconds at most."""
    batch = backlog.get(most_s)
    return [] if batch is None else [*batch.lines]


def connected(source: Listener, data: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", source.port), timeout=5.0)
    connection.sendall(data)
    return connection


@pytest.mark.parametrize(
    "request_of",
    [
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\n",
        b"OPTIONS /x HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\n",
    ],
)
def test_a_page_in_a_browser_feeds_nothing(request_of: bytes, listener: Listener) -> None:
    backlog = Backlog()
    listener.start(backlog, 0, None)
    rows = b'{"t": 0.0, "q": [0], "tau": [0]}\n' * 3
    for pieces in ((request_of + rows,), (request_of[:2], request_of[2:], rows)):  # also split, as networks do
        with connected(listener) as page, suppress(ConnectionError):  # closed with lines unread, or between two pieces
            for piece in pieces:
                page.sendall(piece)
                time.sleep(0.02)
            assert page.recv(1) == b""
    with connected(listener, b"t,q\n"):
        assert taken(backlog) == [b"t,q"]
    assert (listener.turned_away, listener.connections) == (2, 1)


def test_silent_and_slow_connections_keep_no_sender_waiting(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "SILENT_S", 0.3)
    threads, backlog = threading.active_count(), Backlog()
    listener.start(backlog, 0, None)
    slow = [connected(listener, b"{" if k % 2 else b"") for k in range(40)]
    with connected(listener, b"first\n"):
        assert taken(backlog) == [b"first"]
        with connected(listener, b"second\nthird") as second:  # the first says no more
            begun = time.monotonic()
            assert taken(backlog) == [b"second"]
            assert time.monotonic() - begun > 0.1
            second.sendall(b" line\n")
            assert taken(backlog) == [b"third line"]
    assert threading.active_count() <= threads + 1
    for connection in slow:
        connection.close()


def test_of_too_many_connections_the_longest_silent_goes(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_CONNECTIONS", 5)
    backlog = Backlog()
    listener.start(backlog, 0, None)
    silent = [connected(listener) for _ in range(12)]
    with connected(listener, b"line\n") as sender:
        assert taken(backlog) == [b"line"]
        silent += [connected(listener, b"{") for _ in range(12)]  # heard later than the sender, which stays
        sender.sendall(b"another\n")
        assert taken(backlog) == [b"another"]
    assert silent[0].recv(1) == b""
    for connection in silent:
        connection.close()
