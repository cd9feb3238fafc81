"""Requests that other commands leave at a place for the process that replicates there."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from logicalrep.tables.delta.place import Place
from logicalrep.tables.follow.state import FOLDER
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

_REQUESTS = f"{FOLDER}/requests"
_PAUSED = f"{FOLDER}/paused.json"


class PausedError(LogicalRepError, RuntimeError):
    """A place at which nothing is applied until somebody lets it go on."""

    code = "PLACE_PAUSED"


def pause(place: Place) -> bool:
    """Ask for nothing to be applied until `resume`, also by later processes; return False if that was asked before."""
    return place.create(_PAUSED, json.dumps({"since": datetime.now(UTC).isoformat(timespec="seconds")}).encode())


def resume(place: Place) -> bool:
    """Take back `pause`; return False if the place was not paused."""
    was_paused = paused_since(place) is not None
    place.delete(_PAUSED)
    return was_paused


def paused_since(place: Place) -> str | None:
    """Return the time since when a place is paused, ISO 8601 in UTC; None if it is not."""
    return place.parse(_PAUSED, lambda content: str(content["since"]))


def refuse_paused(place: Place) -> None:
    """Raise PausedError if a place is paused."""
    since = paused_since(place)
    if since is not None:
        raise PausedError(
            f"{place.uri} has been paused since {since}, so that nothing is applied: run logicalrep resume with the "
            "same --dsn and --to"
        )


@dataclass(frozen=True, slots=True)
class Request:
    """What another command asks for."""

    resync: tuple[TableName, ...] = ()
    """The tables to be loaded again."""
    skip: tuple[TableName, Lsn] | None = None
    """A table that stands still, and the commit to leave out."""


def request_resync(place: Place, tables: Sequence[TableName]) -> None:
    """Ask for tables to be loaded again."""
    _request(place, {"resync": [list(table) for table in tables]})


def request_skip(place: Place, table: TableName, lsn: Lsn) -> None:
    """Ask for a commit to be left out of a table that stands still at it."""
    _request(place, {"skip": [*table, str(lsn)]})


def _request(place: Place, content: Mapping[str, object]) -> None:
    place.write(f"{_REQUESTS}/{secrets.token_hex(8)}.json", json.dumps(content).encode())


def take_requests(place: Place) -> list[tuple[str, Request]]:
    """Return the requests with their paths, to be deleted once what they ask for is noted at the place."""
    found = []
    for path in sorted(place.list(_REQUESTS)):
        request = place.parse(path, _requested) if path.endswith(".json") else None
        if request is not None:
            found.append((path, request))
    return found


def _requested(content: Any) -> Request:
    if "skip" in content:
        schema, name, lsn = content["skip"]
        return Request(skip=(_name(schema, name), Lsn(lsn)))
    return Request(resync=tuple(_name(schema, name) for schema, name in content["resync"]))


def _name(schema: object, name: object) -> TableName:
    if not (isinstance(schema, str) and isinstance(name, str)):
        raise ValueError("a table's name is no text")
    return TableName(schema, name)
