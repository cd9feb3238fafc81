"""The comparison of the server's tables with their copies: what the stream does not say.

The server sends nothing for ALTER TABLE as such, and nothing at all for a table that it rewrites, or for partitions
that are truncated, dropped, detached or attached. A table whose rows the copy cannot have is loaded again; one whose
columns or key changed follows without a load.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from logicalrep.postgres.slots import Connection
from logicalrep.tables.delta.replicated_table import TypePart
from logicalrep.tables.load.definitions import Definition, has_unsent_rows


@dataclass(frozen=True, slots=True)
class Difference:
    """A table that differs from its copy."""

    reason: str
    """The reason in a few words."""
    is_rewritten: bool = False
    """Whether its files are others, as after a truncate, which the stream tells."""
    is_reshaped: bool = False
    """Whether only its columns or its key are others, as rows of the stream tell, or will."""


def difference(connection: Connection, copied: Definition, now: Definition) -> Difference | None:
    """Return how a table differs from its copy; None if the copy can be kept.

    Args:
        connection: a connection to the server.
        copied: the definition with which the copy was loaded, or that was found to do since.
        now: the present one.
    """
    if copied.published != now.published:
        return Difference("its publication changed")
    if not texts_stay(copied.type_parts, now.type_parts):
        return Difference("a label of an enum type, or the attributes of a composite type, changed")
    if copied.protected != now.protected:
        return Difference("a column that is masked or left out changed")
    before_files, after_files = dict(copied.files), dict(now.files)
    if before_files.keys() - after_files.keys():
        return Difference("a partition was dropped or detached")
    new = sorted(after_files.keys() - before_files.keys())
    if new and has_unsent_rows(connection, new):
        return Difference("a partition with rows was attached")
    if _rewritten(copied, now):
        return Difference("the server rewrote it", is_rewritten=True)
    for what, before, after in (
        ("columns", copied.columns, now.columns),
        ("replica identity", copied.replica_identity, now.replica_identity),
        ("key", copied.key, now.key),
    ):
        if before != after:
            return Difference(f"its {what} changed", is_reshaped=True)
    return None


def texts_stay(before: Collection[TypePart], now: Collection[TypePart]) -> bool:
    """Return whether values of types that had these parts have the same texts with those of now."""
    of_both = {part.type_id for part in before} & {part.type_id for part in now}
    earlier, later = ({part for part in parts if part.type_id in of_both} for parts in (before, now))
    # A new label is in no text yet; a new attribute is in the text of each value.
    return earlier <= later and all(part.label is not None for part in later - earlier)


# The transaction that gave a table its file: others that alter a table write the same entry of the catalog.
_WRITERS = "SELECT DISTINCT xmin::text::bigint FROM pg_class WHERE oid = ANY(%s)"


def explains(connection: Connection, copied: Definition, now: Definition, truncates: Collection[int]) -> bool:
    """Return whether truncates, by their transactions' ids, are why a table's files are not those of its copy."""
    writers = {writer for (writer,) in connection.execute(_WRITERS, (_rewritten(copied, now),)).fetchall()}
    return writers <= {xid % (1 << 32) for xid in truncates}


def _rewritten(copied: Definition, now: Definition) -> list[int]:
    """Return the OIDs of a table, or of its partitions, whose files are others than before."""
    before = dict(copied.files)
    # A new partition's first file has the number that is its OID: rows of another one may have been sent before.
    return [oid for oid, file in now.files if before.get(oid, oid) != file]
