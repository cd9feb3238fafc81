"""The entries of Delta tables in Unity Catalog: their names, locations and columns, and no part of their commits.

Source: `api/delta.yaml` ("UC Delta API") and `api/all.yaml` of the project Unity Catalog.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from http.client import HTTPException, responses
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote
from urllib.request import HTTPRedirectHandler, Request, build_opener

from logicalrep.pipeline.formats.catalog_errors import CatalogError, InvalidCatalogError
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings, catalog_name
from logicalrep.pipeline.formats.delta.actions import protocol, schema_string
from logicalrep.pipeline.formats.stored_table import ForeignTableError
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import Storage, first_line
from logicalrep_runtime.visible import without_secrets

_DEFINITION = "logicalrep.definition"
"""The property with a digest of the definition that replicate registered last."""
_IN_API = {
    "elementType": "element-type",
    "containsNull": "contains-null",
    "keyType": "key-type",
    "valueType": "value-type",
    "valueContainsNull": "value-contains-null",
    "minReaderVersion": "min-reader-version",
    "minWriterVersion": "min-writer-version",
    "readerFeatures": "reader-features",
    "writerFeatures": "writer-features",
}
"""The API's names for parts of Delta's types and protocol."""
_LONGEST_MESSAGE = 500
# The names of errors in the API for Delta tables, and the names that a server's authorization gives to the same errors.
_NO_CATALOG = ("NoSuchCatalogException", "CATALOG_NOT_FOUND")
_NO_SCHEMA = ("NoSuchSchemaException", "SCHEMA_NOT_FOUND")
_NO_TABLE = ("NoSuchTableException", "TABLE_NOT_FOUND", *_NO_SCHEMA)


class UnityCatalog:
    """A catalog of a server of Unity Catalog, with entries for the Delta tables of a destination.

    Every method raises:

    - CatalogError: the server does not answer, or answers with an error that may pass.
    - InvalidCatalogError: the server refuses the request.

    Example:
        >>> catalog = UnityCatalog(CatalogSettings("unity+https://unity.example.org/lake"), Storage("s3://lake/shop"))
        >>> catalog.register("public/orders", stored.table)
    """

    def __init__(self, settings: CatalogSettings, storage: Storage) -> None:
        self._settings, self._storage = settings, storage
        # A redirect would take the token to another server.
        self._opener = build_opener(_NoRedirects)

    def register(self, folder: str, table: TableSpec) -> None:
        """Create the entry of the table in a folder, or bring the entry's columns in line with the table.

        Raises ForeignTableError if the name belongs to a table elsewhere.
        """
        (schema, name), definition = catalog_name(folder), _definition(table)
        entry = self._load(schema, name)
        if entry is None:
            self._create(schema, name, self._location(folder), definition)
        elif not self._is_ours(entry, folder):
            raise ForeignTableError(
                f"the catalog {self._settings.shown} has another table {schema}.{name}, at {entry.get('location')}, "
                f"so that {self._location(folder)} is not registered: rename or drop that entry of the catalog"
            )
        elif entry.get("properties", {}).get(_DEFINITION) != _digest(definition):
            self._update(schema, name, entry, definition)

    def remove(self, folder: str) -> None:
        """Remove the entry of the table in a folder; do nothing if the name belongs to a table elsewhere."""
        schema, name = catalog_name(folder)
        entry = self._load(schema, name)
        # The server deletes the files of a managed table.
        if entry is not None and self._is_ours(entry, folder):
            answer = self._ask("DELETE", self._path(schema, name))
            if answer.type not in _NO_TABLE:
                self._refuse_error(answer, schema, name)

    def _load(self, schema: str, name: str) -> Mapping[str, Any] | None:
        answer = self._ask("GET", self._path(schema, name))
        if answer.type in _NO_TABLE:
            return None
        if answer.type == "UnsupportedTableFormatException":
            raise ForeignTableError(
                f"the catalog {self._settings.shown} has another table {schema}.{name}, which is no Delta table: "
                "rename or drop that entry of the catalog"
            )
        self._refuse_error(answer, schema, name)
        metadata = answer.part("metadata")
        if not isinstance(metadata, dict):
            raise self._not_unity()
        return metadata

    def _create(self, schema: str, name: str, location: str, definition: Mapping[str, Any]) -> None:
        content = {
            "name": name,
            "location": location,
            "table-type": "EXTERNAL",
            "properties": {_DEFINITION: _digest(definition)},
            "last-commit-timestamp-ms": int(time.time() * 1000),
            **definition,
        }
        answer = self._ask("POST", self._path(schema), content)
        if answer.type in _NO_SCHEMA:
            created = self._ask("POST", "schemas", {"name": schema, "catalog_name": self._settings.name_in_unity})
            # Another program may have created the schema meanwhile.
            if created.type != "SCHEMA_ALREADY_EXISTS":
                self._refuse_error(created, schema, name)
            answer = self._ask("POST", self._path(schema), content)
        self._refuse_error(answer, schema, name)

    def _update(self, schema: str, name: str, entry: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
        content = {
            "requirements": [{"type": "assert-table-uuid", "uuid": entry.get("table-uuid")}],
            "updates": [
                {"action": "set-columns", "columns": definition["columns"]},
                {"action": "set-partition-columns", "partition-columns": definition["partition-columns"]},
                {"action": "set-protocol", "protocol": definition["protocol"]},
                {"action": "set-table-comment", "comment": definition["comment"]},
                {"action": "set-properties", "updates": {_DEFINITION: _digest(definition)}},
            ],
        }
        self._refuse_error(self._ask("POST", self._path(schema, name), content), schema, name)

    def _path(self, *names: str) -> str:
        catalog, schema, *table = (quote(name, safe="") for name in (self._settings.name_in_unity, *names))
        return "/".join(["delta/v1/catalogs", catalog, "schemas", schema, "tables", *table])

    def _location(self, folder: str) -> str:
        uri = self._storage.uri_of(folder)
        return Path(uri).as_uri() if self._storage.is_local else re.sub("^s3a:", "s3:", uri)

    def _is_ours(self, entry: Mapping[str, Any], folder: str) -> bool:
        location = entry.get("location")
        is_same = isinstance(location, str) and _comparable(location) == _comparable(self._location(folder))
        return is_same and entry.get("table-type") == "EXTERNAL"

    def _ask(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> _UnityAnswer:
        settings, limits = self._settings, self._storage.limits
        request = Request(f"{settings.server_of_unity}/api/2.1/unity-catalog/{path}", method=method)
        request.add_header("Accept", "application/json")
        if content is not None:
            request.data = json.dumps(content).encode()
            request.add_header("Content-Type", "application/json")
        if token := settings.options.get("token"):
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        try:
            try:
                response = self._opener.open(request, timeout=limits.catalog_answer_seconds)
            except HTTPError as error:
                response = error
            with response:
                return _UnityAnswer(response.status, response.read(limits.json_bytes))
        except (OSError, HTTPException) as error:
            cause = getattr(error, "reason", None)
            raise CatalogError(self._text(first_line(cause if isinstance(cause, Exception) else error))) from None

    def _not_unity(self) -> InvalidCatalogError:
        return InvalidCatalogError(
            self._text(
                "its answer is none of Unity Catalog's API for Delta tables, which Unity Catalog has from 0.5 on"
            )
        )

    def _refuse_error(self, answer: _UnityAnswer, schema: str, name: str) -> None:
        """Raise the error of an answer that reports an error."""
        if 200 <= answer.status < 300:
            return
        if answer.type in _NO_CATALOG:
            raise InvalidCatalogError(self._text("it does not exist at this server: create it, or correct --catalog"))
        if answer.status < 400 or (answer.status == 404 and not answer.type):
            raise self._not_unity()
        text = self._text(f"{answer.message} (HTTP {answer.status})")
        if answer.status in (408, 409, 429) or answer.status >= 500:
            raise CatalogError(text)
        if answer.status == 401:
            raise InvalidCatalogError(f"{text}; correct --catalog-option token=TOKEN")
        raise InvalidCatalogError(f"{text}, for the table {schema}.{name}")

    def _text(self, reason: str) -> str:
        return f"the catalog {self._settings.shown}: {without_secrets(reason, self._settings.secrets)}"


class _UnityAnswer:
    """An answer of the server, or of another program at its address."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        try:
            self._content = json.loads(body)
        except ValueError:
            self._content = None

    def part(self, name: str) -> Any:
        """Return a part of the answer's object; None if the answer has none."""
        return self._content.get(name) if isinstance(self._content, dict) else None

    @property
    def type(self) -> str:
        """The name of the error in the API; empty for another answer."""
        return str(self._of_error("type") or self.part("error_code") or "")

    @property
    def message(self) -> str:
        text = self._of_error("message") or self.part("message") or responses.get(self.status, "")
        return str(text)[:_LONGEST_MESSAGE]

    def _of_error(self, name: str) -> Any:
        error = self.part("error")
        return error.get(name) if isinstance(error, dict) else None


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def _definition(table: TableSpec) -> dict[str, Any]:
    """Return the API's parts of an entry that change with the table."""
    return {
        "columns": _in_api(json.loads(schema_string(table))),
        "partition-columns": [partition.name for partition in table.file_partitions],
        "protocol": _in_api(protocol(table)["protocol"]),
        "comment": table.comment or "",
    }


def _in_api(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_api(item) for item in value]
    if not isinstance(value, dict):
        return value
    # The metadata of a column has names of other programs.
    return {_IN_API.get(name, name): part if name == "metadata" else _in_api(part) for name, part in value.items()}


def _digest(definition: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()[:32]


def _comparable(location: str) -> str:
    """Return a location in one spelling: servers add and remove slashes, and percent codes."""
    return unquote(re.sub("^file:/+", "file:/", location)).rstrip("/")
