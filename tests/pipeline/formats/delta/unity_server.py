"""Servers of Unity Catalog: one of the tests, which keeps to the API's rules and fails on request, and a real one.

The answers of the server of the tests are the answers of Unity Catalog 0.6. With `UNITY_SERVER`, the URL of a server
without authorization, the tests of both use that server too.
"""

from __future__ import annotations

import json
import os
import re
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.parse import unquote
from urllib.request import Request, urlopen

from logicalrep.pipeline.formats.catalog_settings import CatalogSettings

REAL = os.environ.get("UNITY_SERVER", "")
_API = "/api/2.1/unity-catalog/"
_NAME = re.compile("[a-zA-Z0-9_@-]+")

Fault = Literal["503", "503 after", "html", "redirect", None]


@dataclass(frozen=True)
class Unity:
    """A catalog of a server, as another client sees it."""

    url: str
    name: str

    @property
    def uri(self) -> str:
        return f"unity+{self.url}/{self.name}"

    def settings(self, **options: str) -> CatalogSettings:
        return CatalogSettings(self.uri, options)

    def ask(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> Any:
        data = None if content is None else json.dumps(content).encode()
        request = Request(f"{self.url}{_API}{path}", data, {"Content-Type": "application/json"}, method=method)
        with urlopen(request, timeout=60) as answer:
            body = answer.read()
        return json.loads(body) if body.startswith(b"{") else None

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return the entries of all tables, by `schema.name`."""
        schemas = self.ask("GET", f"schemas?catalog_name={self.name}")["schemas"]
        return {
            f"{schema['name']}.{table['name']}": table
            for schema in schemas
            for table in self.ask("GET", f"tables?catalog_name={self.name}&schema_name={schema['name']}")["tables"]
        }

    def create(self, table: str, **content: Any) -> None:
        """Create the entry of a table in the schema `public`, as another program does."""
        with suppress(HTTPError):
            self.ask("POST", "schemas", {"name": "public", "catalog_name": self.name})
        described = {
            "name": table, "catalog_name": self.name, "schema_name": "public", "table_type": "EXTERNAL",
            "data_source_format": "DELTA", "columns": [], **content,
        }  # fmt: skip
        self.ask("POST", "tables", described)

    def remove(self, table: str) -> None:
        self.ask("DELETE", f"tables/{self.name}.{table}")


@dataclass
class UnityServer:
    """The server of the tests; `fault` is the answer to each request, and `requests` has all requests."""

    fault: Fault = None
    token: str | None = None
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    """The method, the path, and the header `Authorization`."""
    catalogs: dict[str, dict[str, dict[str, dict[str, Any]]]] = field(default_factory=lambda: {"lake": {}})
    """The entries of tables by the names of the catalog, the schema and the table."""
    redirect: str = ""
    url: str = ""

    def answer(self, method: str, path: str, content: Any) -> tuple[int, Any]:
        match method, [unquote(part) for part in path.removeprefix(_API).partition("?")[0].split("/")]:
            case "POST", ["schemas"]:
                schemas = self.catalogs[content["catalog_name"]]
                if content["name"] in schemas:
                    return 400, {"error_code": "SCHEMA_ALREADY_EXISTS", "message": "Schema already exists"}
                schemas[content["name"]] = {}
                return 200, content
            case "GET", ["schemas"]:
                (catalog,) = self._query(path)
                return 200, {"schemas": [{"name": name} for name in self.catalogs[catalog]]}
            case "GET", ["tables"]:
                catalog, schema = self._query(path)
                return 200, {"tables": list(self.catalogs[catalog][schema].values())}
            case "POST", ["tables"]:
                table = content | {"table_id": str(uuid.uuid4())}
                self.catalogs[content["catalog_name"]][content["schema_name"]][content["name"]] = table
                return 200, table
            case "DELETE", ["tables", full_name]:
                catalog, schema, name = full_name.split(".")
                del self.catalogs[catalog][schema][name]
                return 200, None
            case _, ["delta", "v1", "catalogs", catalog, "schemas", schema, "tables", *names]:
                return self._answer_delta(method, catalog, schema, names, content)
        return 404, None

    @staticmethod
    def _query(path: str) -> list[str]:
        return [part.partition("=")[2] for part in path.partition("?")[2].split("&")]

    def _missing(self, kind: str, name: str) -> tuple[int, Any]:
        message = f"{kind} not found: {name}"
        if self.token is not None:
            # The server's authorization looks for the table first, and names the error as the other APIs do.
            return 404, {"error_code": f"{kind.upper()}_NOT_FOUND", "message": message}
        return _error(404, f"NoSuch{kind}Exception", message)

    def _answer_delta(self, method: str, catalog: str, schema: str, names: list[str], content: Any) -> tuple[int, Any]:
        full_name = ".".join([catalog, schema, *names])
        if catalog not in self.catalogs:
            return self._missing("Catalog", catalog)
        if schema not in self.catalogs[catalog]:
            return self._missing("Schema", f"{catalog}.{schema}")
        tables = self.catalogs[catalog][schema]
        if not names:
            if not _NAME.fullmatch(content["name"]):
                return _error(400, "InvalidParameterValueException", "Name cannot contain a period, space, …")
            if content["name"] in tables:
                return _error(409, "AlreadyExistsException", f"Table already exists: {content['name']}")
            tables[content["name"]] = table = {
                "name": content["name"], "table_id": str(uuid.uuid4()), "data_source_format": "DELTA",
                "storage_location": content["location"].rstrip("/"), "table_type": content["table-type"],
                "columns": [], "properties": dict(content["properties"]), "comment": content["comment"],
            }  # fmt: skip
            _set_columns(table, content["columns"], content["partition-columns"])
            _set_protocol(table, content["protocol"])
            return 200, _loaded(table)
        if names[0] not in tables:
            return self._missing("Table", full_name)
        table = tables[names[0]]
        if table["data_source_format"] != "DELTA":
            return _error(400, "UnsupportedTableFormatException", f"Table is not a Delta table: {full_name}")
        if method == "DELETE":
            del tables[names[0]]
            return 204, None
        if method == "POST":
            if content["requirements"] != [{"type": "assert-table-uuid", "uuid": table["table_id"]}]:
                return _error(409, "UpdateRequirementConflictException", "assert-table-uuid failed")
            updates = {update["action"]: update for update in content["updates"]}
            assert len(updates) == len(content["updates"]), "at most one of each action"
            _set_columns(
                table, updates["set-columns"]["columns"], updates["set-partition-columns"]["partition-columns"]
            )
            _set_protocol(table, updates["set-protocol"]["protocol"])
            table["properties"] |= updates["set-properties"]["updates"]
            table["comment"] = updates["set-table-comment"]["comment"]
        return 200, _loaded(table)


def _error(status: int, type_: str, message: str) -> tuple[int, Any]:
    return status, {"error": {"message": message, "type": type_, "code": status, "stack": None}}


def _set_columns(table: dict[str, Any], columns: dict[str, Any], partitions: list[str]) -> None:
    table["delta_columns"] = columns
    assert {*partitions} <= {column["name"] for column in columns["fields"]}
    table["columns"] = [
        {
            "name": column["name"], "comment": column["metadata"].get("comment"), "position": position,
            "type_json": json.dumps(column), "nullable": column["nullable"],
            "partition_index": partitions.index(column["name"]) if column["name"] in partitions else None,
        }
        for position, column in enumerate(columns["fields"])
    ]  # fmt: skip


def _set_protocol(table: dict[str, Any], protocol: dict[str, Any]) -> None:
    features = protocol.get("writer-features", [])
    other_properties = {
        name: value for name, value in table["properties"].items() if not name.startswith("delta.feature.")
    }
    table["properties"] = {
        **other_properties,
        "delta.minReaderVersion": str(protocol["min-reader-version"]),
        "delta.minWriterVersion": str(protocol["min-writer-version"]),
        **{f"delta.feature.{feature}": "supported" for feature in features},
    }


def _loaded(table: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        "table-type": table["table_type"], "table-uuid": table["table_id"], "location": table["storage_location"],
        "columns": table.get("delta_columns"), "properties": table.get("properties", {}),
    }  # fmt: skip
    return {"metadata": metadata, "commits": []}


@contextmanager
def start_unity_server() -> Iterator[UnityServer]:
    server = UnityServer()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            content = json.loads(self.rfile.read(length)) if length else None
            authorization = self.headers.get("Authorization")
            server.requests.append((self.command, self.path, authorization))
            if server.fault == "redirect":
                self._send(307, b"", location=f"{server.redirect}{self.path}")
            elif server.fault == "html":
                self._send(200, b"<html>Welcome</html>")
            elif server.fault == "503":
                self._send(503, b"busy")
            elif server.token is not None and authorization != f"Bearer {server.token}":
                self._send(401, json.dumps({"error_code": "UNAUTHENTICATED", "message": authorization}).encode())
            else:
                status, body = server.answer(self.command, self.path, content)
                if server.fault == "503 after":
                    status, body = 503, None
                self._send(status, b"" if body is None else json.dumps(body).encode())

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def do_DELETE(self) -> None:
            self._answer()

        def _send(self, status: int, body: bytes, location: str | None = None) -> None:
            self.send_response(status)
            if location is not None:
                self.send_header("Location", location)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


@contextmanager
def start_unity(kind: str) -> Iterator[Unity]:
    """Yield a new catalog of a server: `ours` of the tests, or `real` of UNITY_SERVER."""
    if kind == "real":
        unity = Unity(REAL.rstrip("/"), f"logicalrep_{uuid.uuid4().hex}")
        unity.ask("POST", "catalogs", {"name": unity.name})
        yield unity
        unity.ask("DELETE", f"catalogs/{unity.name}?force=true")
        return
    with start_unity_server() as server:
        yield Unity(server.url, "lake")
