"""One local page with live plots: it shows the reports of a watch and can change nothing.

Any program on the machine can open a port of the machine, and so can any web site that a browser has open. So the page answers only
to requests that name it (``Host``) and that no other site made (``Origin``, ``Sec-Fetch-Site``), only to ``GET``, and lets a browser run no
script but its own. A browser that reads too slowly misses reports; the watch never waits for one.
"""

from __future__ import annotations

import collections
import ipaddress
import json
import queue
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from socket import AF_INET6
from typing import Any

from dynid.errors import InputError

MOST_BROWSERS = 8
"""Streams of events at a time."""
_WAITING = 8
_HISTORY = 300
"""Reports that a browser gets when it opens the page."""
_KEEP_ALIVE_S = 5.0
_FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Page:
    """Serves the page from threads of its own.

    Args:
        host: address to bind to.
        port: 0 for any free one.
        robot: name shown at the top.
    """

    def __init__(self, host: str, port: int, robot: str) -> None:
        self._about = json.dumps({"robot": robot})
        self._lock = threading.Lock()
        self._clients: set[queue.Queue[str | None]] = set()
        self._history: collections.deque[str] = collections.deque(maxlen=_HISTORY)
        self.missed = 0
        """Reports that slow browsers did not get."""
        try:
            self._server = _Server((host, port), _Handler)
        except OSError as error:
            raise InputError(f"cannot serve the page on {host}:{port}: {error.strerror or error}") from None
        self._server.page = self
        self.port = int(self._server.server_address[1])
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.port}/"
        names = {shown, "localhost", "127.0.0.1", "[::1]"}
        if host in ("0.0.0.0", "::"):  # every address of the machine, but no name: a name can be another site's
            names = set()
        self.hosts = frozenset(f"{name}:{self.port}" for name in names)
        threading.Thread(target=self._server.serve_forever, name="page", daemon=True).start()

    def publish(self, report: Mapping[str, Any]) -> None:
        """Show a report in every browser; never waits."""
        text = json.dumps(report, allow_nan=False)
        with self._lock:
            self._history.append(text)
            for client in self._clients:
                try:
                    client.put_nowait(text)
                except queue.Full:
                    self.missed += 1

    def close(self) -> None:
        """Stop serving."""
        with self._lock:
            for client in self._clients:
                if client.full():
                    client.get_nowait()
                client.put_nowait(None)
        self._server.shutdown()
        self._server.server_close()

    def join(self) -> queue.Queue[str | None] | None:
        """A browser wants events; None where there are too many."""
        with self._lock:
            if len(self._clients) >= MOST_BROWSERS:
                return None
            client: queue.Queue[str | None] = queue.Queue(_WAITING + len(self._history))
            for report in self._history:  # a page that is opened late shows what was
                client.put_nowait(report)
            self._clients.add(client)
            return client

    def leave(self, client: queue.Queue[str | None]) -> None:
        """A browser has gone."""
        with self._lock:
            self._clients.discard(client)

    @property
    def about(self) -> str:
        """What does not change, as JSON."""
        return self._about


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    page: Page

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = AF_INET6
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that leaves in the middle of an answer is no event."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "dynid"
    sys_version = ""
    timeout = 30.0

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: stderr is for messages to the user."""

    def do_GET(self) -> None:
        if not self._welcome():
            self._answer(HTTPStatus.FORBIDDEN, "text/plain; charset=utf-8", b"this page answers to its own address only\n")
        elif self.path == "/events":
            self._events()
        elif self.path in _FILES:
            name, kind = _FILES[self.path]
            self._answer(HTTPStatus.OK, kind, (files("dynid.apps.online") / "assets" / name).read_bytes())
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"there is no such page\n")

    def _refused(self) -> None:
        self.close_connection = True
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", b"only GET is answered\n")

    def do_POST(self) -> None:
        self._refused()

    def do_PUT(self) -> None:
        self._refused()

    def do_DELETE(self) -> None:
        self._refused()

    def do_OPTIONS(self) -> None:
        self._refused()

    def _welcome(self) -> bool:
        """Whether a request names this page and comes from no other site."""
        hosts = self._page.hosts
        host = self.headers.get("Host", "").lower()
        if not (host in hosts if hosts else _is_address(host)):
            return False
        origin = self.headers.get("Origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return False
        return self.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")

    @property
    def _page(self) -> Page:
        server = self.server
        assert isinstance(server, _Server)
        return server.page

    def _answer(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _events(self) -> None:
        client = self._page.join()
        if client is None:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", b"too many browsers watch already\n")
            return
        try:
            self.close_connection = True
            self.send_response(HTTPStatus.OK)
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Connection", "close")
            self.end_headers()
            self._event("robot", self._page.about)
            while True:
                try:
                    report = client.get(timeout=_KEEP_ALIVE_S)
                except queue.Empty:
                    self.wfile.write(b": still here\n\n")
                    continue
                if report is None:
                    return
                self._event("report", report)
        except OSError:
            return  # the browser has gone
        finally:
            self._page.leave(client)

    def _event(self, name: str, data: str) -> None:
        self.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())


def _is_address(host: str) -> bool:
    """Whether a Host header is an address in numbers or localhost."""
    name = host.rpartition(":")[0].strip("[]")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost"
    return True
