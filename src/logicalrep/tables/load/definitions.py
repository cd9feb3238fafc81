"""A table's definition on the server, as far as its copy depends on it."""

from __future__ import annotations

from collections.abc import Sequence

from logicalrep.postgres.publications import published_relation, type_catalog
from logicalrep.postgres.slots import Connection
from logicalrep.tables.delta.replicated_table import ReplicatedTable
from logicalrep.transactions.table_names import TableName

# The key is that of the replica identity. With REPLICA IDENTITY FULL it is the primary key, unless that is deferrable.
_KEY = """
SELECT attribute.attname
FROM pg_class AS class
JOIN pg_index AS index ON index.indrelid = class.oid AND index.indisvalid AND index.indimmediate
    AND CASE class.relreplident WHEN 'i' THEN index.indisreplident WHEN 'n' THEN false ELSE index.indisprimary END
CROSS JOIN LATERAL unnest(index.indkey::int[]) WITH ORDINALITY AS part(attnum, place)
JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum = part.attnum
WHERE class.oid = %s AND part.place <= index.indnkeyatts
ORDER BY part.place
"""
_ATTNUMS = "SELECT attname, attnum FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped"
# The files of a partitioned table are those of its partitions.
_FILES = """
WITH RECURSIVE files AS (
    SELECT oid, oid AS top, relkind, relfilenode FROM pg_class WHERE oid = ANY(%s)
    UNION ALL
    SELECT class.oid, files.top, class.relkind, class.relfilenode
    FROM files JOIN pg_inherits ON files.relkind = 'p' AND inhparent = files.oid
    JOIN pg_class AS class ON class.oid = inhrelid
)
SELECT top, array_agg(relfilenode::bigint ORDER BY oid) FROM files WHERE relkind <> 'p' GROUP BY top
"""


def definition(connection: Connection, table: TableName, publications: tuple[str, ...]) -> ReplicatedTable | None:
    """Return a table as it is, or as it was in the snapshot that the session holds; None if there is none."""
    relation = published_relation(connection, table, publications)
    if relation is None:
        return None
    oid = relation.relation_id
    attnums: dict[str, int] = dict(connection.execute(_ATTNUMS, (oid,)).fetchall())
    key = tuple(row[0] for row in connection.execute(_KEY, (oid,)).fetchall())
    return ReplicatedTable(
        relation=relation,
        catalog=type_catalog(connection, table),
        key=key if key and set(key) <= set(relation.names) else None,
        attnums=tuple(attnums[name] for name in relation.names),
        files=tuple(files_of(connection, [oid]).get(oid, ())),
    )


def files_of(connection: Connection, oids: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Return the numbers of the files of tables by their OIDs."""
    return {oid: tuple(files) for oid, files in connection.execute(_FILES, (list(oids),)).fetchall()}


__all__ = ["definition", "files_of"]
