"""Requests that other commands store at a destination for the process that replicates there."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from logicalrep.pipeline.state.state import FOLDER
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage
from logicalrep.postgres.table_rows.conditions import Condition, condition_of
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

_REQUESTS = f"{FOLDER}/requests"
_PAUSED = f"{FOLDER}/paused.json"


class PausedError(LogicalRepError, RuntimeError):
    """A paused destination: replicate applies nothing until `logicalrep resume`."""

    code = "DESTINATION_PAUSED"


def pause(storage: Storage) -> bool:
    """Pause this and later processes until `resume`; return False if the destination was already paused."""
    return storage.create(_PAUSED, json.dumps({"since": datetime.now(UTC).isoformat(timespec="seconds")}).encode())


def resume(storage: Storage) -> bool:
    """End a pause; return False if the destination was not paused."""
    was_paused = read_paused_since(storage) is not None
    storage.delete(_PAUSED)
    return was_paused


def read_paused_since(storage: Storage) -> str | None:
    """Return the start time of a destination's pause, ISO 8601 in UTC; None if it is not paused."""
    return storage.parse(_PAUSED, lambda content: str(content["since"]))


def refuse_paused(storage: Storage) -> None:
    since = read_paused_since(storage)
    if since is not None:
        raise PausedError(
            f"{storage.uri} has been paused since {since}, and replicate applies nothing: run logicalrep resume with "
            "the same --dsn and --to"
        )


class PartError(LogicalRepError, RuntimeError):
    """A part of a table that was not reloaded; the table is unchanged, and keeps following."""

    code = "PART_NOT_LOADED"


@dataclass(frozen=True, slots=True)
class RequestedPartition:
    oid: int
    name: TableName


@dataclass(frozen=True, slots=True)
class RequestedPart:
    table: TableName
    condition: Condition | None = None
    """The condition of its rows, only on key columns; None for all rows."""
    partition: RequestedPartition | None = None
    """The partition with these rows on the server; None for all partitions."""
    path: str = ""
    """The path of its request, which is deleted once the part is loaded; until then every process retries it."""

    @property
    def shown(self) -> str:
        rows = "the rows" if self.partition is None else f"the rows of its partition {self.partition.name}"
        return rows if self.condition is None else f"{rows} where {shortened(str(self.condition))}"


@dataclass(frozen=True, slots=True)
class Request:
    resync: tuple[TableName, ...] = ()
    skip: tuple[TableName, Lsn] | None = None
    part: RequestedPart | None = None


def request_resync(storage: Storage, tables: Sequence[TableName]) -> None:
    _request(storage, {"resync": [list(table) for table in tables]})


def request_part(storage: Storage, part: RequestedPart) -> None:
    content: dict[str, object] = {"table": [*part.table]}
    if part.condition is not None:
        content["condition"] = part.condition.to_json()
    if part.partition is not None:
        content["partition"] = {"oid": part.partition.oid, "name": [*part.partition.name]}
    _request(storage, {"part": content})


def request_skip(storage: Storage, table: TableName, lsn: Lsn) -> None:
    _request(storage, {"skip": [*table, str(lsn)]})


def _request(storage: Storage, content: Mapping[str, object]) -> None:
    storage.write(f"{_REQUESTS}/{secrets.token_hex(8)}.json", json.dumps(content).encode())


def take_requests(storage: Storage, refuse: Callable[[str], object]) -> list[tuple[str, Request]]:
    """Return the requests with their paths, to be deleted once a checkpoint has their results; invalid files are
    refused and deleted."""
    requests = []
    for path in sorted(storage.list(_REQUESTS)):
        if not path.endswith(".json"):
            continue
        try:
            request = storage.parse(path, partial(_requested, path), most_bytes=storage.limits.request_bytes)
        except MalformedFileError as error:
            refuse(f"a request was invalid, and was deleted: {error.description}")
            storage.delete(path)
            continue
        if request is not None:
            requests.append((path, request))
    return requests


def _requested(path: str, content: Any) -> Request:
    if not isinstance(content, dict) or len(content) != 1:
        raise ValueError("it is no object with one of the keys resync, skip and part")
    ((kind, value),) = content.items()
    if kind == "resync" and isinstance(value, list):
        return Request(resync=tuple(map(_name, value)))
    if kind == "skip" and isinstance(value, list) and len(value) == 3:
        if not isinstance(value[2], str):
            raise ValueError("the LSN of its commit is no text")
        return Request(skip=(_name(value[:2]), Lsn(value[2])))
    if kind == "part" and isinstance(value, dict):
        return Request(part=_part(path, value))
    raise ValueError(f"its {kind!r} is unknown, or not what a command writes")


def _part(path: str, content: dict[str, Any]) -> RequestedPart:
    if not {"table"} <= content.keys() <= {"table", "condition", "partition"}:
        raise ValueError("its part has another key than table, condition and partition, or no table")
    condition = condition_of(content["condition"]) if "condition" in content else None
    partition = _partition(content["partition"]) if "partition" in content else None
    return RequestedPart(_name(content["table"]), condition, partition, path)


def _partition(content: Any) -> RequestedPartition:
    if not isinstance(content, dict) or content.keys() != {"oid", "name"}:
        raise ValueError("its partition is no object with the keys oid and name")
    oid = content["oid"]
    if type(oid) is not int or not 0 < oid < 1 << 32:
        raise ValueError("its partition has no OID")
    return RequestedPartition(oid, _name(content["name"]))


def _name(content: Any) -> TableName:
    if not isinstance(content, list) or len(content) != 2 or not all(isinstance(text, str) for text in content):
        raise ValueError("a table's name is not a pair of texts")
    return TableName(*content)


def shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"
