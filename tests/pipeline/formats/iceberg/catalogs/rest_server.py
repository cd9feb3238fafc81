"""A REST catalog on this machine, over an SQL catalog, which loses answers and falls silent on request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from pyiceberg.table import CommitTableRequest, Table

Fault = Literal["500 after", "503 before", "409 before", "silent after", None]


class RestServer:
    """The catalog; `fault` is what happens to the next commit, and `seen` has the headers of the last request."""

    def __init__(self, catalog: SqlCatalog) -> None:
        self.catalog = catalog
        self.fault: Fault = None
        self.seen: dict[str, str] = {}
        self.released = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(lambda: server.get(self.path.partition("?")[0].split("/")[2:]))

            def do_HEAD(self) -> None:
                self._answer(lambda: (204 if server.catalog.namespace_exists(self.path.split("/")[3]) else 404, ""))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(lambda: server.post(self.path.split("/")[2:], body))

            def do_DELETE(self) -> None:
                self._answer(lambda: server.delete(self.path.partition("?")[0].split("/")[2:]))

            def _answer(self, action: Callable[[], tuple[int, str]]) -> None:
                server.seen = dict(self.headers)
                try:
                    status, text = action()
                except (NoSuchTableError, NoSuchNamespaceError) as error:
                    status, text = _error(404, error)
                except (CommitFailedException, NamespaceAlreadyExistsError) as error:
                    status, text = _error(409, error)
                # Who has waited for long enough is gone.
                with suppress(BrokenPipeError, ConnectionResetError):
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(text.encode())))
                    self.end_headers()
                    self.wfile.write(text.encode())

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.uri = f"http://127.0.0.1:{self._server.server_port}"

    def get(self, parts: list[str]) -> tuple[int, str]:
        if parts == ["config"]:
            return 200, '{"defaults": {}, "overrides": {}}'
        if parts[0] == "namespaces" and len(parts) == 2:
            return 200, json.dumps({"namespace": parts[1:], "properties": self._properties(parts[1])})
        return 200, self.answer_table(parts)

    def _properties(self, namespace: str) -> dict[str, str]:
        return dict(self.catalog.load_namespace_properties(namespace))

    def answer_table(self, parts: list[str]) -> str:
        table = self.catalog.load_table((parts[1], parts[3]))
        # pyiceberg cannot write all metadata that it reads.
        with table.io.new_input(table.metadata_location).open() as file:
            metadata = json.loads(file.read())
        return json.dumps({"metadata-location": table.metadata_location, "metadata": metadata, "config": {}})

    def post(self, parts: list[str], body: dict[str, Any]) -> tuple[int, str]:
        if parts == ["namespaces"]:
            self.catalog.create_namespace(tuple(body["namespace"]))
            return 200, json.dumps({"namespace": body["namespace"], "properties": {}})
        fault, self.fault = self.fault, None
        if fault == "503 before":
            return _error(503, RuntimeError("busy"))
        if fault == "409 before":
            return _error(409, RuntimeError("busy"))
        identifier = {"namespace": [parts[1]], "name": parts[3]}
        request = CommitTableRequest.model_validate({"identifier": identifier, **body})
        table = Table((parts[1], parts[3]), None, "", None, self.catalog)  # type: ignore[arg-type]
        response = self.catalog.commit_table(table, request.requirements, request.updates)
        if fault == "500 after":
            return _error(500, RuntimeError("lost"))
        if fault == "silent after":
            self.released.wait(60)
        return 200, response.model_dump_json()

    def delete(self, parts: list[str]) -> tuple[int, str]:
        self.catalog.drop_table((parts[1], parts[3]))
        return 204, ""

    @contextmanager
    def running(self) -> Iterator[RestServer]:
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self.released.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()


def _error(status: int, error: Exception) -> tuple[int, str]:
    return status, json.dumps({"error": {"message": str(error), "type": type(error).__name__, "code": status}})
