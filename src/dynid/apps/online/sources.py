"""Where lines come from, and the bounded queue in which they wait: standard input, a socket on which dynid listens, an MCAP file.

Each source is read by a thread of its own. It says whether it can go on after what was taken (``seekable``): a regular file on standard
input and an MCAP file can, a pipe and a socket cannot, and their sender sends again from the stamp that dynid names. Where lines come
faster than they are used, the reader waits, and with it the sender (a pipe and a TCP connection both hold the sender back). That is counted
and said; no line is dropped.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import select
import selectors
import socket
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Generic, NamedTuple, TypeAlias, TypeVar

from dynid.apps.online.mcap import follow
from dynid.errors import DynidError, InputError

LONGEST_LINE = 1 << 20
"""Bytes after which a line without an end is cut; what is left of it is malformed and counted."""
GATHER_S = 0.005
"""Lines of so many seconds are handed over together: waking two threads for each line costs more than the work on it, and samples wait for
a block of them anyway."""
_READ = 1 << 16
_POLL_S = 0.1


class Lines:
    """Bytes cut into lines, whatever pieces they come in."""

    def __init__(self, position: int = 0) -> None:
        self._rest = b""
        self._position = position
        self.wait_s = GATHER_S
        """How long to wait for more before the next bytes are read."""

    def cut(self, data: bytes) -> tuple[list[bytes], list[int]]:
        """Lines that these bytes complete, and where the source is behind each."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        positions = []
        for line in lines:
            self._position += len(line) + 1
            positions.append(self._position)
        while len(self._rest) > LONGEST_LINE:
            lines.append(self._rest[:LONGEST_LINE])
            self._rest = self._rest[LONGEST_LINE:]
            self._position += LONGEST_LINE
            positions.append(self._position)
        return lines, positions

    def end(self) -> tuple[list[bytes], list[int]]:
        """The last line, where the source ended without ending it."""
        rest, self._rest = self._rest, b""
        self._position += len(rest)
        return ([rest], [self._position]) if rest else ([], [])


def hand_over(read: Callable[[], bytes], lines: Lines, backlog: LineQueue) -> bool:
    """Put the lines that a source has now into the backlog; False at its end, or when nobody takes lines any more."""
    arrived_s = time.perf_counter()
    time.sleep(lines.wait_s)
    data = read()
    lines.wait_s = GATHER_S if len(data) < _READ // 2 else 0.0  # more waits already
    made = lines.cut(data) if data else lines.end()
    return (not made[0] or backlog.put(Batch(arrived_s, *made), len(made[0]))) and bool(data)


class Source:
    """Where lines come from; a thread of its own reads it.

    Args:
        name: for messages.
        seekable: whether it can go on after what was taken.
    """

    def __init__(self, name: str, *, seekable: bool) -> None:
        self.name, self.seekable = name, seekable
        self._stopped = threading.Event()

    def first_line(self) -> str | None:
        """The first line of a source that goes on later, where the form of the others follows from it."""
        return None

    def start(self, backlog: LineQueue, position: int, resume_from_s: float | None) -> None:
        """Begin to fill the backlog, after ``position`` where the source can seek."""
        raise NotImplementedError

    def _run(self, backlog: LineQueue, work: Callable[[], object]) -> None:
        def body() -> None:
            try:
                work()
            except DynidError as error:
                backlog.close(error)
            except OSError as error:
                backlog.close(InputError(f"reading stopped: {error.strerror or error}"))
            finally:
                backlog.close()

        threading.Thread(target=body, name="reader", daemon=True).start()

    def stop(self) -> None:
        """Stop reading."""
        self._stopped.set()


class StandardInput(Source):
    """Lines from standard input: a pipe, or a file that can be continued."""

    def __init__(self, stream: BinaryIO) -> None:
        self._file = stream.fileno()
        super().__init__("standard input", seekable=stat.S_ISREG(os.fstat(self._file).st_mode))

    def first_line(self) -> str | None:
        if not self.seekable:
            return None
        head = os.pread(self._file, LONGEST_LINE, 0)
        return head.split(b"\n", 1)[0].decode("utf-8", "replace") if head else None

    def start(self, backlog: LineQueue, position: int, resume_from_s: float | None) -> None:
        def work() -> None:
            if self.seekable:
                os.lseek(self._file, position, os.SEEK_SET)
            lines, read = Lines(position), partial(os.read, self._file, _READ)
            while not self._stopped.is_set():
                if select.select([self._file], [], [], _POLL_S)[0] and not hand_over(read, lines, backlog):
                    return

        self._run(backlog, work)


SILENT_S = 10.0
"""A sender that is silent for so long gives way to one that has lines."""
MOST_CONNECTIONS = 256
"""Connections that may wait; the one that has said nothing for the longest goes first."""
_NO_SENDER = re.compile(rb"(?:GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH|PRI) |[^\t\n\r -~\x80-\xff]")
"""How a request of a browser or a handshake begins: a page that the user has open can send one, with lines of its own inside."""


@dataclass(eq=False)
class _Peer:
    """A connection, and what it said before it became the sender."""

    connection: socket.socket
    heard_s: float
    """When it last said something."""
    said: bytes = b""
    lines: Lines = field(default_factory=Lines)
    chosen: bool = False
    """Whether it is the sender."""

    def receive(self) -> bytes:
        """What it says now; nothing where it has left."""
        try:
            data = self.connection.recv(_READ)
        except OSError:
            return b""
        self.heard_s = time.monotonic()
        return data


class Listener(Source):
    """Lines from one sender at a time that connects to a socket; when it leaves or falls silent, the next one is taken.

    The sender is the first connection that completes a line: those that say nothing, or slowly, keep nobody waiting. One that speaks
    HTTP or TLS is closed. After a resume senders are told ``{"resume_from": t}`` when they connect: rows up to that stamp were taken.
    """

    def __init__(self, host: str, port: int, *, once: bool) -> None:
        super().__init__(f"tcp://{host}:{port}", seekable=False)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise InputError(f"cannot listen on {self.name}: {error.strerror or error}") from None
        self._socket.listen(64)
        self._socket.setblocking(False)
        self.port = int(self._socket.getsockname()[1])
        self._once = once
        self.connections = 0
        """Senders so far."""
        self.turned_away = 0
        """Connections closed because they spoke HTTP or TLS."""
        self._due: list[_Peer] = []
        """Those that have a line and wait for their turn."""

    def start(self, backlog: LineQueue, position: int, resume_from_s: float | None) -> None:
        greeting = b"" if resume_from_s is None else json.dumps({"resume_from": resume_from_s}).encode() + b"\n"

        ready = selectors.DefaultSelector()
        ready.register(self._socket, selectors.EVENT_READ)  # here: the thread may begin when the source was stopped already

        def work() -> None:
            with ready:
                try:
                    self._listen(ready, backlog, greeting)
                finally:
                    for key in [*ready.get_map().values()]:
                        _close(ready, key.fileobj)
                    for peer in self._due:
                        peer.connection.close()

        self._run(backlog, work)

    def _listen(self, ready: selectors.BaseSelector, backlog: LineQueue, greeting: bytes) -> None:
        sender: _Peer | None = None
        while not self._stopped.is_set():
            for key, _ in ready.select(_POLL_S):
                if key.data is not None and key.data.connection.fileno() < 0:
                    continue  # it had to make room in this very round
                if key.data is None:
                    self._accept(ready, greeting if not self.connections else b"")
                elif key.data is not sender:
                    self._hear(ready, key.data)
                elif not hand_over(sender.receive, sender.lines, backlog):
                    _close(ready, sender.connection)
                    sender = None
                    if self._once or backlog.closed:
                        return
            if self._due and (sender is None or time.monotonic() - sender.heard_s > SILENT_S):
                if sender is not None:
                    _close(ready, sender.connection)
                sender = self._due.pop(0)
                sender.chosen = True
                self.connections += 1
                ready.register(sender.connection, selectors.EVENT_READ, sender)
                made = sender.lines.cut(sender.said)
                if made[0] and not backlog.put(Batch(time.perf_counter(), *made), len(made[0])):
                    return

    def _accept(self, ready: selectors.BaseSelector, greeting: bytes) -> None:
        try:
            connection, _ = self._socket.accept()
            connection.setblocking(False)
            connection.send(greeting)
        except OSError:  # it has left already
            return
        ready.register(connection, selectors.EVENT_READ, _Peer(connection, time.monotonic()))
        quiet = [key.data for key in ready.get_map().values() if key.data is not None and not key.data.chosen]
        if len(quiet) > MOST_CONNECTIONS:
            _close(ready, min(quiet, key=lambda peer: peer.heard_s).connection)

    def _hear(self, ready: selectors.BaseSelector, peer: _Peer) -> None:
        """What a connection says before it is the sender: up to its first line, and no request of a browser."""
        data = peer.receive()
        peer.said += data
        foreign = _NO_SENDER.match(peer.said) is not None
        self.turned_away += foreign
        if foreign or not peer.said or len(peer.said) > LONGEST_LINE or len(self._due) >= MOST_CONNECTIONS:
            _close(ready, peer.connection)
        elif b"\n" in peer.said or not data:  # the rest waits with it
            ready.unregister(peer.connection)
            self._due.append(peer)

    def stop(self) -> None:
        super().stop()
        self._socket.close()


def _close(ready: selectors.BaseSelector, connection: Any) -> None:
    ready.unregister(connection)
    connection.close()


class McapFile(Source):
    """Messages of an MCAP file, which may still be written; its position counts messages."""

    def __init__(self, path: Path, topic: str | None, *, follow: bool) -> None:
        super().__init__(str(path), seekable=True)
        if not path.is_file():
            raise InputError(f"there is no file '{path}' to read from")
        self._path, self._topic, self._follow = path, topic, follow

    def first_line(self) -> str | None:
        for lines in follow(self._path, self._topic, wait=False, stopped=lambda: False):
            return lines[0].decode("utf-8", "replace")
        return None

    def start(self, backlog: LineQueue, position: int, resume_from_s: float | None) -> None:
        def work() -> None:
            taken = 0
            for lines in follow(self._path, self._topic, wait=self._follow, stopped=self._stopped.is_set):
                fresh = [(line, taken + k + 1) for k, line in enumerate(lines) if taken + k >= position]
                taken += len(lines)
                batch = Batch(time.perf_counter(), *map(list, zip(*fresh, strict=True))) if fresh else None
                if batch is not None and not backlog.put(batch, len(fresh)):
                    return

        self._run(backlog, work)


def source_of(text: str, stream: BinaryIO, *, topic: str | None, follow: bool, once: bool, allow_remote: bool) -> Source:
    """The source that ``--source`` names."""
    kind, _, rest = text.partition(":")
    if follow and kind != "mcap":
        raise InputError(f"--follow belongs to --source mcap:FILE, '{text}' was given")
    if once and kind != "tcp":
        raise InputError(f"--once belongs to --source tcp://ADDRESS:PORT, '{text}' was given")
    if text == "stdin":
        return StandardInput(stream)
    if kind == "mcap" and rest:
        return McapFile(Path(rest), topic, follow=follow)
    if kind == "tcp" and rest.startswith("//"):
        host, port = address_of(rest[2:], "--source", allow_remote=allow_remote)
        return Listener(host, port, once=once)
    raise InputError(f"--source is '{text}', expected stdin, tcp://127.0.0.1:PORT or mcap:FILE")


def address_of(text: str, flag: str, *, allow_remote: bool) -> tuple[str, int]:
    """``PORT`` or ``ADDRESS:PORT``; an address that others can reach needs to be allowed."""
    host, _, number = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    try:
        port = int(number)
        if not 0 <= port <= 65535:
            raise ValueError
    except ValueError:
        raise InputError(f"{flag} is '{text}', expected a port from 0 to 65535, such as 127.0.0.1:9000") from None
    host = "127.0.0.1" if host == "localhost" else host
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise InputError(f"{flag} is '{text}', expected an address in numbers, such as 127.0.0.1:{port}") from None
    if not loopback and not allow_remote:
        raise InputError(
            f"{flag} names {host}, which other machines can reach, and there is no password: give --allow-remote as well if that is meant"
        )
    return host, port


MOST_LINES = 20_000
"""Lines that may wait."""


Item = TypeVar("Item")


class Batch(NamedTuple):
    """Lines that arrived together, when they did, and where the source was behind each of them (0 where it cannot seek)."""

    arrived_s: float
    lines: Sequence[bytes]
    positions: Sequence[int]


class Backlog(Generic[Item]):
    """Items that wait between two threads, at most so many; who puts in more waits for room.

    Args:
        most: sum of the sizes of what may wait.
    """

    def __init__(self, most: int = MOST_LINES) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._items: deque[tuple[Item, int]] = deque()
        self._unfinished = 0
        self.closed = False
        """Whether nothing more is taken in."""
        self.error: Exception | None = None
        self.waiting = 0
        """Sizes of what waits now."""
        self.stalls = 0
        """How often there was no room."""
        self.longest = 0
        """Most that ever waited."""

    def put(self, item: Item, size: int = 1) -> bool:
        """Add one, after waiting for room; False once the backlog is closed."""
        with self._changed:
            if self.waiting >= self._most and not self.closed:
                self.stalls += 1
                self._changed.wait_for(lambda: self.waiting < self._most or self.closed)
            if self.closed:
                return False
            self._items.append((item, size))
            self._unfinished += 1
            self.waiting += size
            self.longest = max(self.longest, self.waiting)
            self._changed.notify_all()
        return True

    def get(self, timeout_s: float) -> Item | None:
        """The next one, None where none came in time or none will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self.closed, timeout_s)
            if not self._items:
                return None
            item, size = self._items.popleft()
            self.waiting -= size
            self._changed.notify_all()
            return item

    def done(self) -> None:
        """What :meth:`get` gave is dealt with."""
        with self._changed:
            self._unfinished -= 1
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait until all that was put in is dealt with, or the backlog is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._unfinished == 0 or self.closed)

    def close(self, error: Exception | None = None) -> None:
        """Nothing more will come; what waits can still be taken."""
        with self._changed:
            self.closed = True
            self.error = self.error or error
            self._changed.notify_all()

    @property
    def ended(self) -> bool:
        """Whether nothing waits and nothing will come."""
        return self.closed and not self.waiting


LineQueue: TypeAlias = Backlog[Batch]
"""Lines that wait, counted one by one."""
