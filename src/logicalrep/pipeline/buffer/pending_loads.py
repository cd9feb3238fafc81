"""The pending loads of tables whose changes are buffered: the work before such a table follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from logicalrep.pipeline.schema.stored_json import decode
from logicalrep.pipeline.storage.storage import below
from logicalrep_runtime.scalars import Lsn

ASKED_FOR = "asked for"


@dataclass(frozen=True, slots=True)
class TableLoad:
    folder: str
    reason: str
    replaces: str | None = None
    """The load whose rows it replaces; None for a new table. Once the table has another load, the copy is whole."""
    begin: float | None = None
    """The earliest start, in seconds since 1970; None for a load that begins at once."""
    kind: Literal["table"] = "table"


@dataclass(frozen=True, slots=True)
class PartitionsLoad:
    """A load of the rows of partitions, which replace rows by key: the table has all other rows."""

    folder: str
    reason: str
    partitions: tuple[int, ...]
    begin: float | None = None
    kind: Literal["partitions"] = "partitions"


@dataclass(frozen=True, slots=True)
class BufferedChanges:
    """Buffered changes to apply; no rows are copied, except for a requested part."""

    folder: str
    reason: str
    kind: Literal["buffered"] = "buffered"


@dataclass(frozen=True, slots=True)
class HeldCommit:
    """A commit that a table refused: changes from that commit on are buffered."""

    folder: str
    refused: str
    since: float
    """The time of the refusal, in seconds since 1970."""
    kind: Literal["held"] = "held"


PendingLoad = TableLoad | PartitionsLoad | BufferedChanges | HeldCommit


_KINDS: dict[str, type[PendingLoad]] = {
    "table": TableLoad,
    "partitions": PartitionsLoad,
    "buffered": BufferedChanges,
    "held": HeldCommit,
}


def pending_load(content: Any) -> PendingLoad:
    """Return the pending load in a file's content. Raises ValueError, KeyError or TypeError for invalid content."""
    load = decode(content, _KINDS[content["kind"]])
    below(load.folder)
    if isinstance(load, HeldCommit):
        Lsn(load.refused)
    return load
