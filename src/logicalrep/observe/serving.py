"""The HTTP server for metrics and pages, in daemon threads."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from logicalrep.observe.figures import Figures
from logicalrep.observe.metrics import registry
from logicalrep.options.listen_address import ListenError, listen_address

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_TIMEOUT = 10.0
"""The seconds that a client has to send its request, and to receive each part of the answer."""
_MOST_FIELDS = 20
_MOST_POSTED_BYTES = 1 << 16

TEXT, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
Answer = Callable[[Mapping[str, str]], tuple[int, str, bytes]]
"""A function of a query's parameters that returns status, content type and content."""


@contextmanager
def serve(
    listen: str,
    read: Callable[[], Iterable[Figures]],
    pages: Mapping[str, Callable[[Mapping[str, str]], str]] | None = None,
    posts: Mapping[str, Callable[[bytes], None]] | None = None,
    checks: Mapping[str, Callable[[], tuple[bool, str]]] | None = None,
    answers: Mapping[str, Answer] | None = None,
) -> Iterator[str]:
    """Serve metrics at `/metrics`, and pages; yield the server's URL.

    Args:
        listen: `HOST:PORT`, or a port of 127.0.0.1; port 0 means any free port.
        pages: functions that return HTML for a query's parameters, by path, such as `/`.
        posts: functions that handle the body of a POST, by path; they refuse it with ValueError, TypeError or
            KeyError.
        checks: functions that return whether a check passes (status 200, else 503), and a line of text, by path.
        answers: functions that return a whole answer, by path; they override the arguments above.

    Raises:
        ListenError: `listen` is not an address, or the address is not available.
    """
    host, port = listen_address(listen)

    by_path = {path: _html(render) for path, render in (pages or {}).items()} | {"/metrics": _metrics(read)}
    by_path |= {path: _checked(query) for path, query in (checks or {}).items()} | dict(answers or {})

    class Handler(_RequestHandler):
        answers_by_path = by_path
        posts_by_path = posts or {}

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def server_bind(self) -> None:
            # HTTPServer would query the name service for the host's name.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(self.server_address)
            self.server_address = self.socket.getsockname()

        def handle_error(self, request: object, client_address: object) -> None:
            """Print nothing about a client that closed its connection."""

    try:
        server = Server((host, port), Handler)
    except (OSError, UnicodeError) as error:
        text = f"cannot listen at {host}:{port}: {error}"
        raise ListenError(f"{text}; choose another address", code="LISTEN_REFUSED") from None
    thread = threading.Thread(target=server.serve_forever, name="logicalrep-page", daemon=True)
    thread.start()
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _html(render: Callable[[Mapping[str, str]], str]) -> Answer:
    return lambda query: (200, HTML, render(query).encode())


def _checked(query: Callable[[], tuple[bool, str]]) -> Answer:
    def answer(_: Mapping[str, str]) -> tuple[int, str, bytes]:
        is_well, line = query()
        return 200 if is_well else 503, TEXT, f"{line}\n".encode()

    return answer


def _metrics(read: Callable[[], Iterable[Figures]]) -> Answer:
    return lambda _: metrics_answer(registry(read))


def metrics_answer(metrics: CollectorRegistry) -> tuple[int, str, bytes]:
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

    return 200, CONTENT_TYPE_LATEST, generate_latest(metrics)


class _RequestHandler(BaseHTTPRequestHandler):
    timeout = _TIMEOUT
    answers_by_path: Mapping[str, Answer]
    posts_by_path: Mapping[str, Callable[[bytes], None]]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        answer = self.answers_by_path.get(path)
        if answer is None:
            paths = " and ".join(sorted(self.answers_by_path))
            self._send_answer(404, TEXT, f"Paths: {paths}.\n".encode())
        else:
            self._send_answer(*answer(dict(parse_qsl(query, max_num_fields=_MOST_FIELDS))))

    def do_POST(self) -> None:
        post, size = self.posts_by_path.get(self.path), self.headers.get("Content-Length", "")
        if post is None or not size.isdecimal() or int(size) > _MOST_POSTED_BYTES:
            self._send_answer(404, TEXT, b"This path takes no POST of this size.\n")
            return
        try:
            post(self.rfile.read(int(size)))
        except (ValueError, TypeError, KeyError):
            self._send_answer(400, TEXT, b"The content is invalid.\n")
        else:
            self._send_answer(204, TEXT, b"")

    def _send_answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: requests come every few seconds."""
