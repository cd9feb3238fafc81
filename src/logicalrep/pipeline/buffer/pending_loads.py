"""The pending loads of tables whose changes are buffered: what has to be done before such a table follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from logicalrep.pipeline.schema.stored_json import decode
from logicalrep.pipeline.storage.storage import below
from logicalrep_runtime.scalars import Lsn

ASKED_FOR = "asked for"
"""The reason of a load that somebody asked for."""


@dataclass(frozen=True, slots=True)
class TableLoad:
    """A load of all rows of a table."""

    folder: str
    reason: str
    """The reason in a few words, such as `new table`."""
    replaces: str | None = None
    """The load whose rows the table had before; None for a new table. Once it has another load's, the copy is whole."""
    begin: float | None = None
    """The time before which the load does not begin, in seconds since 1970; None for a load that begins at once."""
    kind: Literal["table"] = "table"


@dataclass(frozen=True, slots=True)
class PartitionsLoad:
    """A load of the rows of partitions, which are put in by key: the table has all other rows."""

    folder: str
    reason: str
    partitions: tuple[int, ...]
    """The OIDs of the partitions."""
    begin: float | None = None
    """As in `TableLoad`."""
    kind: Literal["partitions"] = "partitions"


@dataclass(frozen=True, slots=True)
class BufferedChanges:
    """Changes that are buffered, with no row to be copied for them, except what a request of a part names."""

    folder: str
    reason: str
    kind: Literal["buffered"] = "buffered"


@dataclass(frozen=True, slots=True)
class HeldCommit:
    """A commit that a table refused: changes are buffered from it on."""

    folder: str
    refused: str
    """The LSN of the commit."""
    since: float
    """The time at which the commit was refused, in seconds since 1970."""
    kind: Literal["held"] = "held"


PendingLoad = TableLoad | PartitionsLoad | BufferedChanges | HeldCommit


_KINDS: dict[str, type[PendingLoad]] = {
    "table": TableLoad,
    "partitions": PartitionsLoad,
    "buffered": BufferedChanges,
    "held": HeldCommit,
}


def pending_load(content: Any) -> PendingLoad:
    """Return the pending load of a file's content. Raises ValueError, KeyError or TypeError for other content."""
    load = decode(content, _KINDS[content["kind"]])
    below(load.folder)
    if isinstance(load, HeldCommit):
        Lsn(load.refused)
    return load
