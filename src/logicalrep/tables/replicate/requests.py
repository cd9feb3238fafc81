"""Requests that other commands leave at a place for the process that replicates there."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from logicalrep.tables.delta.place import Place
from logicalrep.tables.follow.state import FOLDER
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError

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


def request_resync(place: Place, tables: Sequence[TableName]) -> None:
    """Ask for tables to be loaded again."""
    content = {"resync": [list(table) for table in tables]}
    place.write(f"{_REQUESTS}/{secrets.token_hex(8)}.json", json.dumps(content).encode())


def take_requests(place: Place) -> list[tuple[str, list[TableName]]]:
    """Return the requests with their paths, to be deleted once their tables are marked."""
    found = []
    for path in sorted(place.list(_REQUESTS)):
        names = place.parse(path, _requested) if path.endswith(".json") else None
        if names is not None:
            found.append((path, names))
    return found


def _requested(content: Any) -> list[TableName]:
    names = [TableName(schema, name) for schema, name in content["resync"]]
    if not all(isinstance(part, str) for name in names for part in name):
        raise ValueError("a table's name is no text")
    return names
