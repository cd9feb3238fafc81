from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from logicalrep.postgres.server import Connection
from logicalrep_protocol.v1 import ReplicaIdentity

# The result includes the index of the replica identity. REINDEX CONCURRENTLY gives a constraint another index.
_UNIQUE = b"""
SELECT indrelid::bigint, coalesce(pg_constraint.oid, indexrelid)::bigint,
    CASE WHEN pg_constraint.oid IS NULL THEN index.xmin::text::bigint ELSE 0 END,
    indisprimary, indisreplident, columns.names
FROM pg_index AS index
LEFT JOIN pg_constraint ON conrelid = indrelid AND conindid = indexrelid AND contype IN ('p', 'u')
CROSS JOIN LATERAL (
    SELECT array_agg(attname::text ORDER BY ordinal) AS names, bool_and(attnotnull) AS are_values
    FROM unnest(indkey::int[]) WITH ORDINALITY AS part(number, ordinal)
    JOIN pg_attribute ON attrelid = indrelid AND attnum = number
    WHERE ordinal <= indnkeyatts
) AS columns
WHERE indrelid = ANY(%s) AND indisunique AND indisvalid AND indimmediate
    AND indpred IS NULL AND indexprs IS NULL AND are_values
ORDER BY 1, 2
"""


class UniqueIndex(NamedTuple):
    """A unique index over columns that are NOT NULL."""

    oid: int
    """The OID of its constraint; the index's own OID if it has none."""
    written: int
    """The `xmin` of its catalog row; 0 for a constraint, whose columns never change."""
    is_primary: bool
    is_identity: bool
    """Whether `REPLICA IDENTITY USING INDEX` names it."""
    columns: list[str]

    def has_just(self, columns: Collection[str]) -> bool:
        return set(self.columns) == set(columns)


def query_unique_indexes(connection: Connection, oids: list[int]) -> dict[int, list[UniqueIndex]]:
    indexes: dict[int, list[UniqueIndex]] = {oid: [] for oid in oids}
    for oid, *index in connection.execute(_UNIQUE, (oids,)).fetchall():
        indexes[oid].append(UniqueIndex(*index))
    return indexes


def key_columns(identity: ReplicaIdentity, indexes: Collection[UniqueIndex], own: tuple[str, ...]) -> tuple[str, ...]:
    """Return the key's columns; empty if it has no key. `own`, the key in the settings, is used only with FULL."""
    if identity == ReplicaIdentity.NOTHING:
        return ()
    if identity == ReplicaIdentity.FULL and own and any(index.has_just(own) for index in indexes):
        return own
    is_by_index = identity == ReplicaIdentity.INDEX
    named = (index for index in indexes if (index.is_identity if is_by_index else index.is_primary))
    return next((tuple(index.columns) for index in named), ())
