"""Where lines come from: standard input, a socket on which dynid listens, an MCAP file. Each is read by a thread of its own.

A source says whether it can go on after what was taken (``seekable``): a regular file on standard input and an MCAP file can, a pipe and
a socket cannot, and their sender sends again from the stamp that dynid names.
"""

from __future__ import annotations

import ipaddress
import json
import os
import select
import socket
import stat
import threading
import time
from pathlib import Path
from typing import BinaryIO, Protocol

from dynid.errors import DynidError, InputError
from dynid.watch.backlog import Backlog, Batch

LONGEST_LINE = 1 << 20
"""Bytes after which a line without an end is cut; what is left of it is malformed and counted."""
_READ = 1 << 16
_POLL_S = 0.1


class Source(Protocol):
    """Where lines come from."""

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def seekable(self) -> bool:
        """Whether it can go on after what was taken."""

    def first_line(self) -> str | None:
        """The first line of a source that goes on later, where the form of the others follows from it."""

    def start(self, backlog: Backlog, position: int, resume_from_s: float | None) -> None:
        """Begin to fill the backlog, after ``position`` where the source can seek."""

    def stop(self) -> None:
        """Stop reading."""


class Lines:
    """Bytes cut into lines, whatever pieces they come in."""

    def __init__(self, position: int = 0) -> None:
        self._rest = b""
        self._position = position

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


class _Threaded:
    """A source that a thread reads."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def _run(self, backlog: Backlog, work: object) -> None:
        def body() -> None:
            try:
                work()  # type: ignore[operator]
            except DynidError as error:
                backlog.close(error)
            except OSError as error:
                backlog.close(InputError(f"reading stopped: {error.strerror or error}"))
            finally:
                backlog.close()

        threading.Thread(target=body, name="reader", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()


class StandardInput(_Threaded):
    """Lines from standard input: a pipe, or a file that can be continued."""

    name = "standard input"

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._file = stream.fileno()
        self.seekable = stat.S_ISREG(os.fstat(self._file).st_mode)

    def first_line(self) -> str | None:
        if not self.seekable:
            return None
        head = os.pread(self._file, LONGEST_LINE, 0)
        return head.split(b"\n", 1)[0].decode("utf-8", "replace") if head else None

    def start(self, backlog: Backlog, position: int, resume_from_s: float | None) -> None:
        if self.seekable:
            os.lseek(self._file, position, os.SEEK_SET)
        lines = Lines(position)

        def work() -> None:
            while not self._stopped.is_set():
                if not self.seekable and not select.select([self._file], [], [], _POLL_S)[0]:
                    continue
                data = os.read(self._file, _READ)
                made = lines.cut(data) if data else lines.end()
                if made[0] and not backlog.put(Batch(time.perf_counter(), *made)):
                    return
                if not data:
                    return

        self._run(backlog, work)


class Listener(_Threaded):
    """Lines from one sender at a time that connects to a socket; when it leaves, the next one is waited for.

    After a resume the sender is told ``{"resume_from": t}`` when it connects: rows up to that stamp were taken.
    """

    seekable = False

    def __init__(self, host: str, port: int, *, once: bool) -> None:
        super().__init__()
        self.name = f"tcp://{host}:{port}"
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise InputError(f"cannot listen on {self.name}: {error.strerror or error}") from None
        self._socket.listen(4)
        self._socket.settimeout(_POLL_S)
        self.port = int(self._socket.getsockname()[1])
        self._once = once
        self.connections = 0

    def first_line(self) -> str | None:
        return None

    def start(self, backlog: Backlog, position: int, resume_from_s: float | None) -> None:
        def work() -> None:
            while not self._stopped.is_set():
                try:
                    connection, _ = self._socket.accept()
                except TimeoutError:
                    continue
                self.connections += 1
                with connection:
                    if resume_from_s is not None and self.connections == 1:
                        connection.sendall(json.dumps({"resume_from": resume_from_s}).encode() + b"\n")
                    if not self._serve(connection, backlog) or self._once:
                        return

        self._run(backlog, work)

    def _serve(self, connection: socket.socket, backlog: Backlog) -> bool:
        """Read one sender to its end; False when nobody takes lines any more."""
        lines = Lines()
        connection.settimeout(_POLL_S)
        while not self._stopped.is_set():
            try:
                data = connection.recv(_READ)
            except TimeoutError:
                continue
            except ConnectionError:
                data = b""
            made = lines.cut(data) if data else lines.end()
            if made[0] and not backlog.put(Batch(time.perf_counter(), *made)):
                return False
            if not data:
                return True
        return False

    def stop(self) -> None:
        super().stop()
        self._socket.close()


class McapFile(_Threaded):
    """Messages of an MCAP file, which may still be written; its position counts messages."""

    seekable = True

    def __init__(self, path: Path, topic: str | None, *, follow: bool) -> None:
        super().__init__()
        if not path.is_file():
            raise InputError(f"there is no file '{path}' to read from")
        self.name, self._path, self._topic, self._follow = str(path), path, topic, follow

    def first_line(self) -> str | None:
        from dynid.adapters.mcap_stream import follow

        for lines in follow(self._path, self._topic, wait=False, stopped=lambda: False):
            return lines[0].decode("utf-8", "replace")
        return None

    def start(self, backlog: Backlog, position: int, resume_from_s: float | None) -> None:
        from dynid.adapters.mcap_stream import follow

        def work() -> None:
            taken = 0
            for lines in follow(self._path, self._topic, wait=self._follow, stopped=self._stopped.is_set):
                fresh = [(line, taken + k + 1) for k, line in enumerate(lines) if taken + k >= position]
                taken += len(lines)
                if fresh and not backlog.put(Batch(time.perf_counter(), *map(list, zip(*fresh, strict=True)))):
                    return

        self._run(backlog, work)


def source_of(text: str, stream: BinaryIO, *, topic: str | None, follow: bool, once: bool, allow_remote: bool) -> Source:
    """The source that ``--from`` names."""
    kind, _, rest = text.partition(":")
    if follow and kind != "mcap":
        raise InputError(f"--follow belongs to --from mcap:FILE, '{text}' was given")
    if once and kind != "tcp":
        raise InputError(f"--once belongs to --from tcp://ADDRESS:PORT, '{text}' was given")
    if text == "stdin":
        return StandardInput(stream)
    if kind == "mcap" and rest:
        return McapFile(Path(rest), topic, follow=follow)
    if kind == "tcp" and rest.startswith("//"):
        host, port = address_of(rest[2:], "--from", allow_remote=allow_remote)
        return Listener(host, port, once=once)
    raise InputError(f"--from is '{text}', expected stdin, tcp://127.0.0.1:PORT or mcap:FILE")


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
