"""The page answers to its own address only, to nobody else's script, and shows what it is told."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator

import pytest

from dynid.apps.online.page import HEADERS, MOST_BROWSERS, Page
from dynid.apps.online.sources import address_of, source_of
from dynid.errors import InputError

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def page() -> Iterator[Page]:
    made = Page("127.0.0.1", 0, HOSTILE)
    yield made
    made.close()


def ask(page: Page, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def test_serves_itself_with_a_strict_policy(page: Page) -> None:
    for path in ("/", "/page.js", "/page.css"):
        status, headers, content = ask(page, path)
        assert status == 200
        assert content
        assert {name: headers[name] for name in HEADERS} == HEADERS
        assert HOSTILE.encode() not in content  # the name comes as data and is set as text
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert b"innerHTML" not in ask(page, "/page.js")[2]
    assert ask(page, "/../pyproject.toml")[0] == 404
    assert ask(page, "/page.html")[0] == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/events", "/page.js"])
def test_refuses_other_sites(page: Page, path: str, headers: dict[str, str]) -> None:
    status, found, content = ask(page, path, **headers)
    assert status == 403
    assert "Access-Control-Allow-Origin" not in found
    assert b"script" not in content


def test_own_names_are_welcome(page: Page) -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST"):
        assert ask(page, Host=f"{host}:{page.port}")[0] == 200
    own = f"http://127.0.0.1:{page.port}"
    assert ask(page, Origin=own, Sec_Fetch_Site="same-origin")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_changes_nothing(page: Page, method: str) -> None:
    assert ask(page, method=method)[0] == 405


def events(page: Page) -> tuple[socket.socket, Iterator[str]]:
    connection = socket.create_connection(("127.0.0.1", page.port), timeout=10)
    connection.sendall(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode())
    return connection, iter(connection.makefile("r", encoding="utf-8"))


def test_events(page: Page) -> None:
    page.publish({"t": 1.0, "name": "\n\nevent: forged"})
    connection, lines = events(page)
    found: list[str] = []
    while len(found) < 4:
        line = next(lines).strip()
        if line.startswith(("event", "data")):
            found.append(line)
    assert found[0] == "event: robot"
    assert json.loads(found[1].removeprefix("data: ")) == {"robot": HOSTILE}
    assert found[2] == "event: report"  # a line end inside a name cannot begin another event
    assert json.loads(found[3].removeprefix("data: "))["t"] == 1.0
    page.publish({"t": 2.0})
    while not (line := next(lines)).startswith("data"):
        pass
    assert json.loads(line.removeprefix("data: ")) == {"t": 2.0}
    connection.close()


def test_slow_browsers_miss_reports_and_too_many_are_refused(page: Page) -> None:
    clients = [page.join() for _ in range(MOST_BROWSERS)]
    assert None not in clients
    assert page.join() is None
    for k in range(100):
        page.publish({"t": float(k)})
    assert page.missed > 0


def test_loopback_unless_allowed() -> None:
    assert address_of("8000", "--page", allow_remote=False) == ("127.0.0.1", 8000)
    assert address_of("localhost:8000", "--page", allow_remote=False) == ("127.0.0.1", 8000)
    assert address_of("[::1]:8000", "--page", allow_remote=False) == ("::1", 8000)
    assert address_of("0.0.0.0:8000", "--page", allow_remote=True) == ("0.0.0.0", 8000)
    for text in ("0.0.0.0:8000", "192.168.1.5:8000", "[::]:8000"):
        with pytest.raises(InputError, match="--allow-remote"):
            address_of(text, "--page", allow_remote=False)
    for text in ("x", "70000", "example.org:80", "127.0.0.1:"):
        with pytest.raises(InputError, match="--page is"):
            address_of(text, "--page", allow_remote=True)
    with pytest.raises(InputError, match="--allow-remote"):
        source_of("tcp://0.0.0.0:0", None, topic=None, follow=False, once=False, allow_remote=False)  # type: ignore[arg-type]


def test_every_address_still_refuses_names() -> None:
    made = Page("0.0.0.0", 0, "arm")
    try:
        assert ask(made, Host=f"evil.example:{made.port}")[0] == 403
        assert ask(made, Host=f"127.0.0.1:{made.port}")[0] == 200
    finally:
        made.close()


def test_a_page_that_is_opened_late_gets_what_was_before() -> None:
    page = Page("127.0.0.1", 0, "arm")
    try:
        for k in range(20):
            page.publish({"t": float(k)})
        client = page.join()
        assert client is not None
        page.publish({"t": 20.0})
        assert [json.loads(str(client.get_nowait()))["t"] for _ in range(21)] == [float(k) for k in range(21)]
        assert page.missed == 0
    finally:
        page.close()
