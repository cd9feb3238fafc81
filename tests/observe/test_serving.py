"""The server of the metrics and of the page: who is answered, and for how long a client may hold a connection."""

from __future__ import annotations

import http.client
import select
import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from logicalrep.observe import serving as module
from logicalrep.observe.serving import serving
from tests.waiting import eventually


def connected(url: str) -> socket.socket:
    return socket.create_connection((str(urlsplit(url).hostname), urlsplit(url).port or 0), timeout=30)


def is_over(connection: socket.socket) -> bool:
    """Whether the server has ended a connection, on which it never answered."""
    readable, _, _ = select.select([connection], [], [], 0)
    try:
        return bool(readable) and not connection.recv(1)
    except OSError:
        return True


def status(url: str, *hosts: str, path: str = "/", method: str = "GET") -> tuple[int, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    for host in hosts:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", 200), ("127.0.0.1:9400", 200), ("192.0.2.7", 200), ("[::1]", 200), ("[2001:db8::1]:80", 200),
        ("localhost:8080", 200), ("LOCALHOST", 200), ("a.localhost", 200), ("replicate:8080", 200), (socket.gethostname(), 200),
        ("evil.example", 421), ("evil.example:8080", 421), ("127.0.0.1.evil.example", 421), ("localhost.evil.example", 421),
        ("evil.example.", 421), ("127.0.0.1@evil.example", 421), ("1.2.3", 421), ("", 200),
    ],
)  # fmt: skip
def test_a_web_page_elsewhere_cannot_read_by_a_name_of_its_own(host: str, expected: int) -> None:
    with serving("0", list, {"/": lambda: "page"}, {"/taken": lambda data: None}) as url:
        assert status(url, host)[0] == expected
        if expected == 421:
            assert status(url, host, path="/metrics")[0] == expected
            assert status(url, host, path="/taken", method="POST")[0] == expected
            assert status(url, "localhost", host)[0] == expected
        assert status(url)[0] == 200


def test_the_name_that_is_listened_at_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module._is_own("driver.example.org:9400", "driver.example.org")
    assert not module._is_own("driver.example.org:9400", "0.0.0.0")


def test_no_page_is_shown_in_a_frame() -> None:
    with serving("0", list, {"/": lambda: "page"}) as url:
        assert "frame-ancestors 'none'" in status(url, "localhost")[1]["Content-Security-Policy"]


def test_a_client_that_sends_byte_by_byte_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 1.0)
    with serving("0", list, {"/": lambda: "page"}) as url, connected(url) as slow:
        began = time.monotonic()

        def is_ended() -> bool:
            if not is_over(slow):
                slow.send(b"G")
                return False
            return True

        eventually(is_ended)
        assert time.monotonic() - began >= 1
        assert status(url, "localhost")[0] == 200


def test_the_oldest_connection_ends_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CONNECTIONS", 5)
    monkeypatch.setattr(module, "_PATIENCE", 600.0)
    with serving("0", list, {"/": lambda: "page"}) as url, ExitStack() as stack:
        idle = [stack.enter_context(connected(url)) for _ in range(20)]
        assert status(url, "localhost")[0] == 200
        eventually(lambda: [is_over(each) for each in idle] == [True] * 16 + [False] * 4)
