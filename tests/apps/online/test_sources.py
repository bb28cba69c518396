"""Where lines come from: nothing is lost between a sender and the backlog, whatever either of them does."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from dynid.apps.online import sources
from dynid.apps.online.sources import LONGEST_LINE, Backlog, Batch, Lines, Listener, StandardInput, address_of, source_of
from dynid.errors import InputError


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


def test_with_once_the_first_sender_ends_it_and_a_visitor_does_not() -> None:
    source, backlog = Listener("127.0.0.1", 0, once=True), Backlog()
    source.start(backlog, 0, None)
    connected(source).close()
    connected(source, b"GET / HTTP/1.1\r\n\r\n").close()
    connected(source, b"one\ntwo").close()  # the last line has no end
    assert [*taken(backlog), *taken(backlog)] == [b"one", b"two"]
    assert backlog.get(5.0) is None
    assert backlog.ended


def test_a_silent_sender_gives_way_to_nobody_while_nobody_waits(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "SILENT_S", 0.05)
    backlog = Backlog()
    listener.start(backlog, 0, None)
    with connected(listener, b"a\n") as sender:
        assert taken(backlog) == [b"a"]
        time.sleep(0.3)
        sender.sendall(b"b\n" * 20_000)
        found: list[bytes] = []
        while len(found) < 20_000:
            found += taken(backlog)
        assert set(found) == {b"b"}
    assert listener.connections == 1


def test_a_sender_that_speaks_keeps_its_place(listener: Listener) -> None:
    backlog = Backlog()
    listener.start(backlog, 0, None)
    with connected(listener, b"a\n") as sender, connected(listener) as other:
        assert taken(backlog) == [b"a"]
        other.sendall(b"x\n")
        for _ in range(3):
            sender.sendall(b"a\n")
            assert taken(backlog) == [b"a"]
            time.sleep(0.15)
        sender.close()
        assert taken(backlog) == [b"x"]


def test_places_are_counted_over_pieces_and_to_the_end() -> None:
    lines = Lines(10)
    assert lines.cut(b"ab\nc") == ([b"ab"], [13])
    assert lines.cut(b"d\n\n") == ([b"cd", b""], [16, 17])
    assert lines.cut(b"ef") == ([], [])
    assert lines.end() == ([b"ef"], [19])
    assert lines.end() == ([], [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9000", ("127.0.0.1", 9000)),
        ("localhost:1", ("127.0.0.1", 1)),
        ("[::1]:65535", ("::1", 65535)),
        ("127.0.0.2:0", ("127.0.0.2", 0)),
    ],
)
def test_addresses_of_this_machine(text: str, expected: tuple[str, int]) -> None:
    assert address_of(text, "--page", allow_remote=False) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("65536", "expected a port from 0 to 65535"),
        ("-1", "expected a port"),
        ("127.0.0.1:x", "expected a port"),
        ("robot:80", "expected an address in numbers"),
        ("10.0.0.1:80", "which other machines can reach"),
    ],
)
def test_addresses_that_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        address_of(text, "--page", allow_remote=False)
    if "reach" in sentence:
        assert address_of(text, "--page", allow_remote=True) == ("10.0.0.1", 80)


def test_what_source_names(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+b") as stream:
        stream.write(b"t,q\n0,1\n")
        stream.flush()

        def named(text: str, **changes: bool) -> sources.Source:
            options = {"follow": False, "once": False, "allow_remote": False} | changes
            return source_of(text, stream, topic=None, **options)

        found = named("stdin")
        assert isinstance(found, StandardInput)
        assert (found.seekable, found.first_line()) == (True, "t,q")
        listening = named("tcp://127.0.0.1:0", once=True)
        assert isinstance(listening, Listener)
        listening.stop()
        for text, changes, sentence in (
            ("stdin", {"follow": True}, "--follow belongs to"),
            ("mcap:x", {"once": True}, "--once belongs to"),
            ("mcap:none.mcap", {"follow": True}, "there is no file 'none.mcap'"),
            ("mcap:", {}, "expected stdin, tcp"),
            ("tcp:127.0.0.1:0", {}, "expected stdin, tcp"),
        ):
            with pytest.raises(InputError, match=sentence):
                named(text, **changes)


def test_a_backlog_counts_sizes_and_says_when_all_is_dealt_with() -> None:
    backlog = Backlog[str](most=5)
    assert backlog.get(0.01) is None  # nothing came in time
    assert backlog.put("ab", 2)
    assert backlog.put("cde", 3)
    assert (backlog.waiting, backlog.longest, backlog.stalls) == (5, 5, 0)
    settled = threading.Thread(target=backlog.settle)
    settled.start()
    assert [backlog.get(1.0), backlog.get(1.0)] == ["ab", "cde"]
    assert backlog.waiting == 0
    assert not backlog.ended  # more may come
    backlog.done()
    settled.join(0.1)
    assert settled.is_alive()  # one is not dealt with yet
    backlog.done()
    settled.join(5.0)
    assert not settled.is_alive()
    assert backlog.put("f")
    first = InputError("first")
    backlog.close(first)
    backlog.close(InputError("second"))
    assert backlog.error is first
    assert not backlog.put("g")
    assert not backlog.ended  # what waits can still be taken
    assert backlog.get(0.0) == "f"
    assert backlog.ended
    assert (backlog.longest, backlog.stalls) == (5, 0)


def test_who_waits_for_room_is_let_go_when_the_backlog_closes() -> None:
    backlog, answers = Backlog[int](most=1), list[bool]()
    assert backlog.put(0)
    blocked = threading.Thread(target=lambda: answers.append(backlog.put(1)))
    blocked.start()
    blocked.join(0.1)
    assert blocked.is_alive()
    backlog.close()
    blocked.join(5.0)
    assert answers == [False]
    assert backlog.stalls == 1


def read_to_the_end(backlog: Backlog) -> list[Batch]:
    found = []
    while not backlog.ended:
        batch = backlog.get(5.0)
        found += [] if batch is None else [batch]
    return found


def test_a_file_on_standard_input_goes_on_behind_what_was_taken(tmp_path: Path) -> None:
    rows = [b"t,q", *(b"%d,1" % k for k in range(40_000)), b"last without an end"]
    (tmp_path / "log").write_bytes(b"\n".join(rows))
    with (tmp_path / "log").open("rb") as stream:
        source, whole, rest = StandardInput(stream), Backlog(most=10**6), Backlog(most=10**6)
        assert source.name == "standard input"
        source.start(whole, 0, None)
        parts = read_to_the_end(whole)
        assert [line for part in parts for line in part.lines] == rows
        places = [place for part in parts for place in part.positions]
        assert places == np.cumsum([len(row) + 1 for row in rows[:-1]] + [len(rows[-1])]).tolist()
        assert all(part.arrived_s <= time.perf_counter() for part in parts)
        source.start(rest, places[100], None)
        again = read_to_the_end(rest)
        assert [line for part in again for line in part.lines] == rows[101:]
        assert [place for part in again for place in part.positions] == places[101:]
        assert rest.error is None


def test_a_pipe_cannot_go_back_and_a_stopped_source_reads_no_more() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as sender:
        source, backlog = StandardInput(stream), Backlog()
        assert (source.seekable, source.first_line()) == (False, None)
        source.start(backlog, 7, None)  # there is no place to go to
        sender.write(b"one\ntw")
        assert taken(backlog) == [b"one"]
        sender.write(b"o\n")
        assert taken(backlog) == [b"two"]
        source.stop()
        begun = time.monotonic()
        while not backlog.closed and time.monotonic() - begun < 10.0:
            time.sleep(0.01)
        assert backlog.ended


def test_an_error_while_reading_is_one_sentence() -> None:
    backlog = Backlog()
    sources.Source("x", seekable=False)._run(backlog, lambda: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    while not backlog.closed:
        time.sleep(0.01)
    assert str(backlog.error) == "reading stopped: Input/output error"
    with pytest.raises(NotImplementedError):
        sources.Source("x", seekable=False).start(backlog, 0, None)


def test_much_that_waits_is_read_without_a_pause() -> None:
    lines, backlog = Lines(), Backlog()
    for size, wait_s in ((1 << 15, 0.0), ((1 << 15) - 1, sources.GATHER_S)):  # half of what is read at once
        other = Lines()
        assert other.wait_s == sources.GATHER_S
        assert sources.hand_over(lambda size=size: b"x" * size, other, backlog)
        assert other.wait_s == wait_s
    assert sources.hand_over(lambda: b"x" * (1 << 15), lines, backlog)
    assert lines.wait_s == 0.0
    assert sources.hand_over(lambda: b"y\nz", lines, backlog)
    assert lines.wait_s == sources.GATHER_S
    assert not sources.hand_over(lambda: b"", lines, backlog)
    assert [taken(backlog), taken(backlog)] == [[b"x" * (1 << 15) + b"y"], [b"z"]]
    backlog.close()
    assert not sources.hand_over(lambda: b"more\n", lines, backlog)  # nobody takes lines any more


def test_senders_are_told_where_to_go_on_until_the_first_has_begun(listener: Listener) -> None:
    backlog = Backlog()
    listener.start(backlog, 0, 1.25)
    with connected(listener) as first:
        assert first.recv(100) == b'{"resume_from": 1.25}\n'
        first.sendall(b"row\n")
        assert taken(backlog) == [b"row"]
        with connected(listener) as second:
            second.settimeout(0.3)
            with pytest.raises(TimeoutError):
                second.recv(1)
    assert listener.name == "tcp://127.0.0.1:0"


def test_a_line_that_does_not_end_and_a_port_that_is_taken(listener: Listener) -> None:
    backlog = Backlog()
    listener.start(backlog, 0, None)
    with connected(listener) as endless, suppress(ConnectionError):
        for _ in range(2 * LONGEST_LINE // 2**16):
            endless.sendall(b"x" * 2**16)
        assert endless.recv(1) == b""
    assert listener.connections == listener.turned_away == 0
    with pytest.raises(InputError, match=rf"cannot listen on tcp://127\.0\.0\.1:{listener.port}: "):
        Listener("127.0.0.1", listener.port, once=False)


def test_a_sender_that_leaves_without_ending_its_line_has_said_it(listener: Listener) -> None:
    backlog = Backlog()
    listener.start(backlog, 0, None)
    connected(listener, b"whole\nhalf").close()
    assert taken(backlog) + taken(backlog) == [b"whole", b"half"]
    connected(listener, b"only half").close()
    assert taken(backlog) == [b"only half"]
    assert listener.connections == 2


def test_a_line_of_a_mebibyte_is_whole_and_a_longer_one_is_cut() -> None:
    assert Lines().cut(b"a\nb\n") == ([b"a", b"b"], [2, 4])
    assert Lines().cut(b"x" * 2**20 + b"\n") == ([b"x" * 2**20], [2**20 + 1])
    longer = Lines(10)
    assert longer.cut(b"x" * 2**20) == ([], [])
    assert longer.cut(b"y") == ([b"x" * 2**20], [10 + 2**20])
    assert longer.cut(b"z\n") == ([b"yz"], [10 + 2**20 + 3])
    assert longer.end() == ([], [])


def test_messages_of_a_file_go_on_behind_those_that_were_taken(tmp_path: Path) -> None:
    writer_of = pytest.importorskip("mcap.writer").Writer
    rows = [b'{"t": %d, "q": [0]}' % k for k in range(60)]
    with (tmp_path / "log.mcap").open("wb") as file:
        writer = writer_of(file, chunk_size=200)  # some messages in each chunk
        writer.start()
        schema = writer.register_schema(name="row", encoding="jsonschema", data=b"{}")
        channel = writer.register_channel(topic="/rows", message_encoding="json", schema_id=schema)
        for k, row in enumerate(rows):
            writer.add_message(channel, log_time=k, publish_time=k, data=row)
        writer.finish()
    source = source_of(
        f"mcap:{tmp_path}/log.mcap", sys.stdin.buffer, topic=None, follow=False, once=False, allow_remote=False
    )
    assert source.seekable
    assert source.first_line() == rows[0].decode()
    for position in (0, 1, 31, 59, 60):
        backlog = Backlog()
        source.start(backlog, position, None)
        parts = read_to_the_end(backlog)
        assert [line for part in parts for line in part.lines] == rows[position:]
        assert [place for part in parts for place in part.positions] == [*range(position + 1, 61)]
        assert backlog.error is None
    closed = Backlog()
    closed.close()
    source.start(closed, 0, None)
    assert closed.get(0.1) is None


def test_just_so_many_connections_may_wait(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_CONNECTIONS", 3)
    listener.start(Backlog(), 0, None)
    silent = [connected(listener) for _ in range(3)]
    silent[0].settimeout(0.5)
    with pytest.raises(TimeoutError):
        silent[0].recv(1)
    silent.append(connected(listener))
    silent[0].settimeout(5.0)
    assert silent[0].recv(1) == b""
    for connection in silent:
        connection.close()


def test_a_sender_that_was_silent_is_not_the_one_that_makes_room(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MOST_CONNECTIONS", 3)
    backlog = Backlog()
    listener.start(backlog, 0, None)
    with connected(listener, b"first\n") as sender:
        assert taken(backlog) == [b"first"]
        later = [connected(listener) for _ in range(8)]  # all of them were heard after the sender
        assert later[0].recv(1) == b""  # there was no room for it
        sender.sendall(b"second\n")
        assert taken(backlog) == [b"second"]
    for connection in later:
        connection.close()


def test_just_so_many_senders_may_wait_for_their_turn(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_CONNECTIONS", 2)
    backlog = Backlog()
    listener.start(backlog, 0, None)
    with connected(listener, b"sender\n"):
        assert taken(backlog) == [b"sender"]
        waiting = []
        for text in (b"a\n", b"b\n", b"c\n"):
            waiting.append(connected(listener, text))
            time.sleep(0.2)  # heard one after the other
        assert waiting[2].recv(1) == b""
    assert [taken(backlog), waiting[0].close(), taken(backlog)] == [[b"a"], None, [b"b"]]
    waiting[1].close()
    waiting[2].close()


def test_a_reader_keeps_no_program_alive(listener: Listener) -> None:
    listener.start(Backlog(), 0, None)
    readers = [thread for thread in threading.enumerate() if thread.name == "reader"]
    assert readers
    assert all(thread.daemon for thread in readers)


def test_a_file_without_messages_has_no_first_line(tmp_path: Path) -> None:
    writer_of = pytest.importorskip("mcap.writer").Writer
    with (tmp_path / "log.mcap").open("wb") as file:
        writer_of(file).start()  # the writer goes on later
    source = source_of(
        f"mcap:{tmp_path}/log.mcap", sys.stdin.buffer, topic=None, follow=True, once=False, allow_remote=False
    )
    found: list[str | None] = []
    thread = threading.Thread(target=lambda: found.append(source.first_line()), daemon=True)
    thread.start()
    thread.join(5.0)
    assert found == [None]


def test_a_source_that_is_stopped_at_once_ends_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    source, backlog = Listener("127.0.0.1", 0, once=False), Backlog()
    begun: list[threading.Thread] = []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: begun.append(thread))
    source.start(backlog, 0, None)
    source.stop()
    monkeypatch.undo()
    begun[0].run()  # the thread comes to life only now
    assert backlog.ended
    assert backlog.error is None
