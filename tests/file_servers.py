"""Servers of files on this machine: one that gives ranges of bytes, one that gives whole files only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any


@dataclass
class Served:
    """What was asked of a server."""

    url: str
    requests: list[tuple[str, int]] = field(default_factory=list)
    """Path with its query, and bytes that were sent."""
    users: set[str] = field(default_factory=set)


class _Whole(SimpleHTTPRequestHandler):
    """Python's own handler, which knows no ranges."""

    served: Served
    fails_after: int | None = None

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.served.users.add(self.headers.get("Authorization", ""))
        self.served.requests.append((self.path, -1))
        super().do_GET()


class _Ranges(_Whole):
    """One range of bytes per request."""

    def send_head(self) -> Any:
        path = Path(self.translate_path(self.path))
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not path.is_file() or (wanted is None and self.command == "GET"):
            return super().send_head()
        data = path.read_bytes()
        if wanted is None:
            self.send_response(200)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            return None
        if self.fails_after is not None and len(self.served.requests) > self.fails_after:
            self.send_error(503, f"no longer there: {self.path}")
            return None
        start = int(wanted[1])
        stop = min(int(wanted[2] or len(data) - 1) + 1, len(data))
        self.served.requests[-1] = (self.path, stop - start)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
        self.send_header("Content-Length", str(stop - start))
        self.end_headers()
        self.wfile.write(data[start:stop])
        return None


@contextmanager
def serving(folder: Path, *, ranges: bool = True, fails_after: int | None = None) -> Iterator[Served]:
    """The files of a folder over HTTP, on loopback."""
    kind = _Ranges if ranges else _Whole
    served = Served("")
    handler = type("Handler", (kind,), {"served": served, "fails_after": fails_after})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        served.url = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield served
        finally:
            server.shutdown()
