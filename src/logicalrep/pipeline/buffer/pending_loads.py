"""The pending loads of tables whose changes are buffered: what has to be done before such a table follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from logicalrep.pipeline.schema.stored_keys import StoredKeys, typed
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


@dataclass(frozen=True, slots=True)
class PartitionsLoad:
    """A load of the rows of partitions, which are put in by key: the table has all other rows."""

    folder: str
    reason: str
    partitions: tuple[int, ...]
    """The OIDs of the partitions."""
    begin: float | None = None
    """As in `TableLoad`."""


@dataclass(frozen=True, slots=True)
class BufferedChanges:
    """Changes that are buffered, with no row to be copied for them, except what a request of a part names."""

    folder: str
    reason: str


@dataclass(frozen=True, slots=True)
class HeldCommit:
    """A commit that a table refused: changes are buffered from it on."""

    folder: str
    refused: str
    """The LSN of the commit."""
    since: float
    """The time at which the commit was refused, in seconds since 1970."""


PendingLoad = TableLoad | PartitionsLoad | BufferedChanges | HeldCommit

_KINDS: dict[str, tuple[type[PendingLoad], StoredKeys]] = {
    "table": (TableLoad, StoredKeys("folder reason replaces begin")),
    "partitions": (PartitionsLoad, StoredKeys("folder reason partitions begin")),
    "buffered": (BufferedChanges, StoredKeys("folder reason")),
    "held": (HeldCommit, StoredKeys("folder refused since")),
}


def to_json(pending: PendingLoad) -> dict[str, Any]:
    """Return a pending load as plain values."""
    name, keys = next((name, keys) for name, (kind, keys) in _KINDS.items() if kind is type(pending))
    return {"kind": name, **keys.content(pending)}


def from_json(content: Mapping[str, Any]) -> PendingLoad:
    """Return the pending load that `to_json` returned. Raises ValueError or KeyError for any other content."""
    fields = dict(content)
    kind, keys = _KINDS[fields.pop("kind")]
    arguments = keys.arguments({**fields, "folder": below(fields["folder"])})
    if "partitions" in arguments:
        arguments["partitions"] = tuple(arguments["partitions"])
    pending: PendingLoad = typed(kind(**arguments))
    if isinstance(pending, HeldCommit):
        Lsn(pending.refused)
    return pending
