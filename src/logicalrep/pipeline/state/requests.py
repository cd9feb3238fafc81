"""Requests that other commands leave at a destination for the process that replicates there."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from logicalrep.pipeline.spec.stored_keys import StoredKeys
from logicalrep.pipeline.state.state import FOLDER
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

_REQUESTS = f"{FOLDER}/requests"
_PAUSED = f"{FOLDER}/paused.json"


class PausedError(LogicalRepError, RuntimeError):
    """A destination at which nothing is applied until somebody lets it go on."""

    code = "DESTINATION_PAUSED"


def pause(storage: Storage) -> bool:
    """Ask for nothing to be applied until `resume`, also by later processes; return False if that was asked before."""
    return storage.create(_PAUSED, json.dumps({"since": datetime.now(UTC).isoformat(timespec="seconds")}).encode())


def resume(storage: Storage) -> bool:
    """Take back `pause`; return False if the destination was not paused."""
    was_paused = read_paused_since(storage) is not None
    storage.delete(_PAUSED)
    return was_paused


def read_paused_since(storage: Storage) -> str | None:
    """Return the time since when a destination is paused, ISO 8601 in UTC; None if it is not."""
    return storage.parse(_PAUSED, lambda content: str(content["since"]))


def refuse_paused(storage: Storage) -> None:
    """Raise PausedError if a destination is paused."""
    since = read_paused_since(storage)
    if since is not None:
        raise PausedError(
            f"{storage.uri} has been paused since {since}, so that nothing is applied: run logicalrep resume with the "
            "same --dsn and --to"
        )


class PartError(LogicalRepError, RuntimeError):
    """A part of a table that was not loaded again; the table is as it was, and goes on."""

    code = "PART_NOT_LOADED"


@dataclass(frozen=True, slots=True)
class RequestedPart:
    """A part of a table that is to be loaded again."""

    table: TableName
    where: str
    """The condition of its rows, in SQL, on columns of the key alone."""
    partition: int | None
    """The OID of the partition that has these rows on the server; None for all partitions."""
    shown: str
    """The part in words, such as `the rows where id < 100`."""
    path: str = ""
    """The path of its request, which is deleted once the part is loaded; until then each process loads it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of another command."""

    resync: tuple[TableName, ...] = ()
    """The tables to be loaded again."""
    skip: tuple[TableName, Lsn] | None = None
    """A table that is stopped, and the commit to leave out."""
    part: RequestedPart | None = None
    """A part of a table to be loaded again."""


def request_resync(storage: Storage, tables: Sequence[TableName]) -> None:
    """Ask for tables to be loaded again."""
    _request(storage, {"resync": [list(table) for table in tables]})


def request_part(storage: Storage, part: RequestedPart) -> None:
    """Ask for a part of a table to be loaded again."""
    _request(storage, {"part": {"table": [*part.table], **_PART.content(part)}})


def request_skip(storage: Storage, table: TableName, lsn: Lsn) -> None:
    """Ask for a commit to be left out of a table that is stopped at it."""
    _request(storage, {"skip": [*table, str(lsn)]})


def _request(storage: Storage, content: Mapping[str, object]) -> None:
    storage.write(f"{_REQUESTS}/{secrets.token_hex(8)}.json", json.dumps(content).encode())


def take_requests(storage: Storage) -> list[tuple[str, Request]]:
    """Return the requests with their paths, to be deleted once a checkpoint has what they ask for."""
    found = []
    for path in sorted(storage.list(_REQUESTS)):
        request = storage.parse(path, partial(_requested, path)) if path.endswith(".json") else None
        if request is not None:
            found.append((path, request))
    return found


def _requested(path: str, content: Any) -> Request:
    if "part" in content:
        table, rest = _name(*content["part"].pop("table")), content["part"]
        return Request(part=RequestedPart(table=table, path=path, **_PART.arguments(rest)))
    if "skip" in content:
        schema, name, lsn = content["skip"]
        return Request(skip=(_name(schema, name), Lsn(lsn)))
    return Request(resync=tuple(_name(schema, name) for schema, name in content["resync"]))


_PART = StoredKeys("where partition shown")


def _name(schema: object, name: object) -> TableName:
    if not (isinstance(schema, str) and isinstance(name, str)):
        raise ValueError("a table's name is no text")
    return TableName(schema, name)
