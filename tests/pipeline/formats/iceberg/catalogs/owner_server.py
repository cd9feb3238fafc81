"""A REST catalog on this machine that owns its tables, after the OpenAPI document of Iceberg's REST catalogs.

It chooses the locations of tables, hands out credentials that expire, lowers names, forces properties and refuses
reserved ones, as the profile says. It refuses requests that the document does not allow. Each request may be answered
late, as failed, or not at all.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError
from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import TableMetadata, TableMetadataV3, new_table_metadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertCreate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    UpgradeFormatVersionUpdate,
    update_table_metadata,
)
from pyiceberg.types import NestedField

from logicalrep.pipeline.formats.iceberg.memory_files import StorageFiles
from logicalrep.pipeline.formats.iceberg.metadata import upgrade_to, writable
from logicalrep.pipeline.storage.storage import Storage

_CREATION = {"name", "location", "schema", "partition-spec", "write-order", "stage-create", "properties"}
EXPIRED = "of another time"
"""What stands among tokens once all tokens before have expired."""
_DELEGATION = "X-Iceberg-Access-Delegation"


@dataclass(frozen=True)
class Profile:
    """What a catalog does beyond the OpenAPI document."""

    stages: bool = True
    """Whether the catalog creates tables in two steps."""
    forced: Mapping[str, str] = field(default_factory=dict)
    """The properties of every table."""
    reserved: tuple[str, ...] = ()
    """The beginnings of properties that clients may not set."""
    may_create_namespaces: bool = True
    omitted: tuple[str, ...] = ()
    """The beginnings of properties that the catalog silently leaves out."""
    needs_credentials: bool = False
    """Whether the catalog refuses requests for credentials if it has none."""
    takes_equality_deletes: bool = True
    lowers_columns: bool = False
    """Whether the catalog changes the names of columns to small letters."""
    version: int | None = None
    """The format version of each new table; None for the version that the client asks for."""


@dataclass
class Fault:
    """What happens to the requests of a method whose path ends with a text."""

    method: str
    end: str
    status: int
    is_done: bool = False
    """Whether the catalog does what the request asks, and only the answer is an error."""
    headers: Mapping[str, str] = field(default_factory=dict)
    then: Callable[[], object] = lambda: None
    """Runs before the answer is sent, as another program would."""
    times: int = 1


class Warehouse(Storage):
    """A catalog's own storage, which a kill of replicate in this process leaves as it is."""

    write, create, copy, delete = Storage.write, Storage.create, Storage.copy, Storage.delete


class RefusedError(Exception):
    def __init__(self, status: int, text: str, kind: str = "BadRequestException") -> None:
        super().__init__(text)
        self.status, self.kind = status, kind


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    """The connections that wait, where five would be few: replicate opens many tables at once."""


@dataclass
class _Entry:
    metadata: TableMetadata
    location: str
    """The location of the metadata's file."""
    number: int
    """The number of the metadata's file."""


class OwnerServer:
    """The catalog, with tables below the warehouse; `headers` has the headers of the last request."""

    def __init__(self, warehouse: Storage, profile: Profile | None = None) -> None:
        self.warehouse, self.profile = warehouse, profile or Profile()
        self.vend: Callable[[], dict[str, str]] = dict
        """Returns the configuration of new credentials for a table."""
        self.faults: list[Fault] = []
        self.trouble: Callable[[str, str], Fault | None] = lambda method, path: None
        """Returns the fault of a request, whose method and path it takes, in place of `faults`; None for no fault."""
        self.tokens: list[str] | None = None
        """The tokens that were handed out, of which those since the last EXPIRED are valid; None if no token is needed."""
        self.headers: dict[str, str] = {}
        self.position_deletes = 0
        """The delete files of position deletes in the snapshots that the profile checked."""
        self.namespaces: dict[str, dict[str, str]] = {}
        self.tables: dict[tuple[str, str], _Entry] = {}
        self._staged: dict[tuple[str, str], TableMetadata] = {}
        self._turn = threading.RLock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.uri = f"http://127.0.0.1:{self._server.server_port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server._serve(self)

            def do_HEAD(self) -> None:
                server._serve(self)

            def do_POST(self) -> None:
                server._serve(self)

            def do_DELETE(self) -> None:
                server._serve(self)

            def log_message(self, *arguments: Any) -> None:
                pass

        return Handler

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        method, path = handler.command, urlsplit(handler.path).path
        is_purged = "purgeRequested=true" in handler.path.replace("True", "true")
        with self._turn:
            self.headers = dict(handler.headers)
            fault = next((item for item in self.faults if item.method == method and path.endswith(item.end)), None)
            if fault is None:
                fault = self.trouble(method, path)
            else:
                fault.times -= 1
                if not fault.times:
                    self.faults.remove(fault)
            headers: Mapping[str, str] = {}
            if fault is None or fault.is_done:
                status, content = self._answer(method, path, body, is_purged=is_purged)
        if fault is not None:
            fault.then()
            status, headers = fault.status, fault.headers
            content = _error("ServiceFailureException", "no", status)
        text = b"" if content is None else json.dumps(content).encode()
        with suppress(BrokenPipeError, ConnectionResetError):
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(text)))
            handler.end_headers()
            if method != "HEAD":
                handler.wfile.write(text)

    def _answer(self, method: str, path: str, body: bytes, *, is_purged: bool) -> tuple[int, Any]:
        try:
            parts = [unquote(part) for part in path.removeprefix("/v1/").split("/")]
            if self.tokens is not None:
                if parts == ["oauth", "tokens"]:
                    self.tokens.append(f"token{len(self.tokens)}")
                    return 200, {"access_token": self.tokens[-1], "token_type": "bearer", "expires_in": 3600}
                expired = max((at for at, token in enumerate(self.tokens, 1) if token == EXPIRED), default=0)
                if self.headers.get("Authorization") not in [f"Bearer {token}" for token in self.tokens[expired:]]:
                    raise RefusedError(401, "the token has expired", "NotAuthorizedException")
            return self._route(method, parts, json.loads(body) if body else {}, is_purged=is_purged)
        except RefusedError as error:
            return error.status, _error(error.kind, str(error), error.status)
        except CommitFailedException as error:
            return 409, _error("CommitFailedException", str(error), 409)
        except (ValueError, ValidationError) as error:
            return 400, _error("BadRequestException", str(error), 400)

    def _route(self, method: str, parts: list[str], body: dict[str, Any], *, is_purged: bool) -> tuple[int, Any]:
        match method, parts:
            case "GET", ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case "GET", ["namespaces"]:
                return 200, {"namespaces": [[name] for name in self.namespaces]}
            case "POST", ["namespaces"]:
                return self._create_namespace(body)
            case (("GET" | "HEAD"), ["namespaces", name]):
                properties = self._namespace(name)
                return (204, None) if method == "HEAD" else (200, {"namespace": [name], "properties": properties})
            case "POST", ["namespaces", namespace, "tables"]:
                return self._create(namespace, body)
            case "GET", ["namespaces", namespace, "tables"]:
                names = [name for name in self.tables if name[0] == namespace]
                return 200, {"identifiers": [{"namespace": [space], "name": name} for space, name in names]}
            case _, ["namespaces", namespace, "tables", table, *more]:
                return self._table(method, (namespace, table.lower()), more, body, is_purged=is_purged)
        raise RefusedError(404, "/".join(parts), "NotFoundException")

    def _table(
        self, method: str, name: tuple[str, str], more: list[str], body: dict[str, Any], *, is_purged: bool
    ) -> tuple[int, Any]:
        match method, more:
            case "POST", []:
                return self._commit(name, body)
            case "GET", []:
                return 200, self._loaded(self._entry(name))
            case "GET", ["credentials"]:
                return 200, {"storage-credentials": self._credentials(self._entry(name))}
            case "HEAD", []:
                self._entry(name)
                return 204, None
            case "DELETE", []:
                entry = self._entry(name)
                del self.tables[name]
                if is_purged:
                    self._purge(entry)
                return 204, None
        raise RefusedError(404, "/".join(more), "NotFoundException")

    def _purge(self, entry: _Entry) -> None:
        """Delete the files that a table's metadata names, as Iceberg's CatalogUtil does in Java."""
        files, metadata = StorageFiles(self.warehouse), entry.metadata
        locations = {entry.location, *(logged.metadata_file for logged in metadata.metadata_log)}
        for snapshot in metadata.snapshots:
            manifests = snapshot.manifests(files)
            locations |= {snapshot.manifest_list, *(manifest.manifest_path for manifest in manifests)}
            entries = (entry for manifest in manifests for entry in manifest.fetch_manifest_entry(files))
            locations.update(entry.data_file.file_path for entry in entries)
        for location in locations:
            self.warehouse.delete(self.warehouse.path_of(location))

    def _create_namespace(self, body: dict[str, Any]) -> tuple[int, Any]:
        (name,) = body["namespace"]
        if not self.profile.may_create_namespaces:
            raise RefusedError(403, "namespaces are not yours", "ForbiddenException")
        if name in self.namespaces:
            raise RefusedError(409, name, "AlreadyExistsException")
        self.namespaces[name] = dict(body.get("properties", {}))
        return 200, {"namespace": [name], "properties": self.namespaces[name]}

    def _namespace(self, name: str) -> dict[str, str]:
        if name not in self.namespaces:
            raise RefusedError(404, name, "NoSuchNamespaceException")
        return self.namespaces[name]

    def _entry(self, name: tuple[str, str]) -> _Entry:
        if name not in self.tables:
            raise RefusedError(404, ".".join(name), "NoSuchTableException")
        return self.tables[name]

    def _create(self, namespace: str, body: dict[str, Any]) -> tuple[int, Any]:
        if unknown := body.keys() - _CREATION:
            raise RefusedError(400, f"unknown fields: {unknown}")
        request = CreateTableRequest.model_validate({"location": None, **body})
        name = (namespace, request.name.lower())
        self._namespace(namespace)
        if name in self.tables:
            raise RefusedError(409, ".".join(name), "AlreadyExistsException")
        if request.location is not None:
            raise RefusedError(403, "the catalog chooses the location of a table", "ForbiddenException")
        if request.stage_create and not self.profile.stages:
            raise RefusedError(406, "tables are not staged", "UnsupportedOperationException")
        self._check(request.properties)
        metadata = new_table_metadata(
            location=f"{self.warehouse.uri}/{uuid.uuid4()}",
            schema=request.table_schema,
            partition_spec=request.partition_spec,  # type: ignore[arg-type]
            sort_order=request.write_order,  # type: ignore[arg-type]
            properties=request.properties | self._version(),
        )
        if request.stage_create:
            self._staged[name] = metadata
            return 200, {"metadata": _json(metadata), "config": {}}
        entry = self._write(name, metadata)
        return 200, self._loaded(entry)

    def _version(self) -> dict[str, str]:
        return {} if self.profile.version is None else {"format-version": str(self.profile.version)}

    def _check(self, properties: Mapping[str, str]) -> None:
        for key in properties:
            if key.startswith(self.profile.reserved or ("\0",)):
                raise RefusedError(400, f"the property {key} is reserved")

    def _commit(self, name: tuple[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        if body.keys() - {"identifier", "requirements", "updates"}:
            raise RefusedError(400, f"unknown fields in {sorted(body)}")
        request = CommitTableRequest.model_validate(body)
        if any(isinstance(requirement, AssertCreate) for requirement in request.requirements):
            if name in self.tables:
                raise RefusedError(409, "the table exists", "CommitFailedException")
            metadata, previous = self._staged.pop(name), None
        else:
            previous = self._entry(name)
            metadata = previous.metadata
            for requirement in request.requirements:
                requirement.validate(metadata)
        for update in request.updates:
            if isinstance(update, SetLocationUpdate) and update.location != metadata.location:
                raise RefusedError(403, "the catalog chooses the location of a table", "ForbiddenException")
            if isinstance(update, SetPropertiesUpdate):
                self._check(update.updates)
            if isinstance(update, AddSnapshotUpdate) and not self.profile.takes_equality_deletes:
                self._check_deletes(update.snapshot)
        at = None if previous is None else previous.location
        # pyiceberg refuses to upgrade tables to version 3.
        updates = (
            upgrade_to(update.format_version) if isinstance(update, UpgradeFormatVersionUpdate) else update
            for update in request.updates
        )
        updated = update_table_metadata(metadata, tuple(updates), metadata_location=at)
        # pyiceberg forgets the parents that are removed; other catalogs leave them named.
        parents = {snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in metadata.snapshots}
        snapshots = [
            snapshot.model_copy(update={"parent_snapshot_id": parents[snapshot.snapshot_id]})
            if parents.get(snapshot.snapshot_id) is not None
            else snapshot
            for snapshot in updated.snapshots
        ]
        entry = self._write(name, updated.model_copy(update={"snapshots": snapshots}))
        return 200, {"metadata-location": entry.location, "metadata": _json(entry.metadata)}

    def _check_deletes(self, snapshot: Snapshot) -> None:
        files = StorageFiles(self.warehouse)
        manifests = [manifest for manifest in snapshot.manifests(files) if manifest.content == ManifestContent.DELETES]
        entries = [entry for manifest in manifests for entry in manifest.fetch_manifest_entry(files)]
        self.position_deletes += len(entries)
        if any(entry.data_file.content == DataFileContent.EQUALITY_DELETES for entry in entries):
            raise RefusedError(400, "equality deletes are not supported")

    def _write(self, name: tuple[str, str], metadata: TableMetadata) -> _Entry:
        if isinstance(metadata, TableMetadataV3) and metadata.next_row_id is None:
            metadata = metadata.model_copy(update={"next_row_id": 0})
        metadata = self._as_stored(metadata)
        number = self.tables[name].number + 1 if name in self.tables else 0
        location = f"{metadata.location}/metadata/{number:05}-{uuid.uuid4()}.metadata.json"
        self.warehouse.write(
            location.removeprefix(f"{self.warehouse.uri}/"), writable(metadata).model_dump_json().encode()
        )
        self.tables[name] = _Entry(metadata, location, number)
        return self.tables[name]

    def _as_stored(self, metadata: TableMetadata) -> TableMetadata:
        profile = self.profile
        properties = {
            name: value
            for name, value in metadata.properties.items()
            if not name.startswith(profile.omitted or ("\0",))
        }
        schemas = [
            Schema(*(_lowered(field) for field in schema.fields), schema_id=schema.schema_id)
            if profile.lowers_columns
            else schema
            for schema in metadata.schemas
        ]
        return metadata.model_copy(update={"properties": properties | dict(profile.forced), "schemas": schemas})

    def _loaded(self, entry: _Entry) -> dict[str, Any]:
        answer = {"metadata-location": entry.location, "metadata": _json(entry.metadata), "config": {}}
        if self.headers.get(_DELEGATION) == "vended-credentials" and (credentials := self._credentials(entry)):
            answer["storage-credentials"] = credentials
        return answer

    def _credentials(self, entry: _Entry) -> list[dict[str, Any]]:
        config = self.vend()
        if self.profile.needs_credentials and not config:
            raise RefusedError(400, "Credential vending was requested for the table, but no credentials are available")
        return [{"prefix": f"{entry.metadata.location}/", "config": config}] if config else []

    @contextmanager
    def running(self) -> Iterator[OwnerServer]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


def expiring(config: Mapping[str, str], seconds: float) -> dict[str, str]:
    """Return the configuration of S3 credentials that expire after some seconds."""
    return {**config, "s3.session-token-expires-at-ms": str(int((time.time() + seconds) * 1000))}


def _lowered(field: NestedField) -> NestedField:
    return field.model_copy(update={"name": field.name.lower()})


def _json(metadata: TableMetadata) -> Any:
    return json.loads(writable(metadata).model_dump_json())


def _error(kind: str, text: str, status: int) -> dict[str, Any]:
    return {"error": {"message": text, "type": kind, "code": status}}
