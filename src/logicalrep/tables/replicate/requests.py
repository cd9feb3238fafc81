"""Requests that other commands leave at a place for the process that replicates there."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence

from logicalrep.tables.delta.place import Place
from logicalrep.tables.replicate.state import FOLDER
from logicalrep.transactions.table_names import TableName

_REQUESTS = f"{FOLDER}/requests"


def request_resync(place: Place, tables: Sequence[TableName]) -> None:
    """Ask for tables to be loaded again."""
    content = {"resync": [list(table) for table in tables]}
    place.write(f"{_REQUESTS}/{secrets.token_hex(8)}.json", json.dumps(content).encode())


def take_requests(place: Place) -> list[tuple[str, list[TableName]]]:
    """Return the requests with their paths; `done` removes one, once its tables are marked."""
    found = []
    for path in sorted(place.list(_REQUESTS)):
        data = place.read(path)
        if data is not None and path.endswith(".json"):
            found.append((path, [TableName(*table) for table in json.loads(data)["resync"]]))
    return found


__all__ = ["request_resync", "take_requests"]
