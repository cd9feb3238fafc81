"""The server's rows of a table, as the loader reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace

import pyarrow as pa
from psycopg import sql

from logicalrep.postgres.copy_stream import received, send
from logicalrep.postgres.publications import row_filter
from logicalrep.postgres.slots import Connection, scalar
from logicalrep.postgres.table_parts import columns_read, part_queries
from logicalrep.tables.delta.replicated_table import ReplicatedTable
from logicalrep.tables.load.copying import typed
from logicalrep.tables.masks.mask_key import MaskKey
from logicalrep.tables.verify.digests import Fingerprints, Hashes, digests_of
from logicalrep.tables.verify.key_texts import key_texts
from logicalrep.tables.verify.passing import end_of_wal
from logicalrep_protocol import v1
from logicalrep_runtime.scalars import Lsn, Oid

_TEXT = Oid(25)
_VERSION = "ctid"
"""The name of a column for the version of a row: no column of a table can have it."""
_VERSION_OF_ROW = "tableoid::text || ' ' || xmin::text || ' ' || ctid::text || ' ' || xmax::text"
# The operators of an extension's type are in no schema of the search path.
_KEY_COLUMNS = """
SELECT attribute.attname, format_type(attribute.atttypid, -1),
    CASE WHEN sorting.oid IS NOT NULL THEN format('%%I.%%I', sorting_schema.nspname, sorting.collname) END,
    type.typtype IN ('e', 'd', 'r', 'm') OR type_schema.nspname = 'pg_catalog'
FROM pg_attribute AS attribute
JOIN pg_type AS type ON type.oid = attribute.atttypid
JOIN pg_namespace AS type_schema ON type_schema.oid = type.typnamespace
LEFT JOIN pg_collation AS sorting ON sorting.oid = attribute.attcollation
LEFT JOIN pg_namespace AS sorting_schema ON sorting_schema.oid = sorting.collnamespace
WHERE attribute.attrelid = %s AND attribute.attname = %s
"""


@dataclass(frozen=True, slots=True)
class Look:
    """The server's rows of some keys at one moment."""

    found: Fingerprints
    lsn: Lsn
    """Every commit that it has begins before this LSN."""
    oldest: int
    """The first transaction that may still run: all before it have ended."""
    next: int
    """The first transaction that had not begun. If it is the oldest too, none runs."""
    rows: list[pa.RecordBatch]
    """The rows, if they were wanted."""


class ServerRows:
    """A session that reads the published rows of a table."""

    def __init__(
        self, connection: Connection, table: ReplicatedTable, publications: tuple[str, ...], key: MaskKey | None
    ) -> None:
        """Take the table as both sides have it, and a session for it alone: an error leaves it in any state.

        `key` is the one that hashes, if columns are hashed.
        """
        self._connection = connection
        self._key = key
        # Rows that row-level security hides would seem to be too many at the place: it is an error so.
        connection.execute("SET row_security = off")
        self._publications = publications
        self._table = table
        relation = table.relation
        version = v1.Column(flags=0, name=_VERSION, type_id=_TEXT, type_modifier=-1)
        described = replace(relation, columns=(*relation.columns, version), types=(*relation.types, None))
        self._with_version = replace(table, relation=described, attnums=(*table.attnums, 0))

    def all(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows.

        Those of each part of the table's files are as at a moment of its own, so that no lock outlives the reading of a
        part. Without a key, rows that move between parts could not be told: there it is one moment.
        """
        with self._moment() if self._table.key is None else nullcontext():
            for query in self._parts():
                yield from self._copied(sql.SQL(query), self._table)

    def look(self, hashes: Hashes, keys: pa.Table | None, *, with_rows: bool = False) -> Look:
        """Look at rows again, at one moment.

        Args:
            hashes: the hashes of the keys, sorted.
            keys: the keys themselves; None for a table without a key, of which all rows are read.
            with_rows: whether to return the rows.
        """
        found = Fingerprints.none(len(hashes))
        rows: list[pa.RecordBatch] = []
        with self._moment() as (lsn, oldest, following):
            for query in self._queries(keys):
                for batch in self._copied(query, self._with_version):
                    versions = batch.column(_VERSION).to_pylist()
                    is_wanted = found.add(hashes, digests_of(self._table, batch), versions)
                    if with_rows:
                        rows.append(batch.select(self._table.names).filter(pa.array(is_wanted)))
        return Look(found, lsn, oldest, following, rows)

    def _queries(self, keys: pa.Table | None) -> list[sql.Composed]:
        # The server does not know hashes.
        if keys is not None and self._table.hashed.isdisjoint(self._table.key or ()):
            return [self._by_key(keys)]
        return [sql.SQL("{}").format(sql.SQL(query)) for query in self._parts(more=[_VERSION_OF_ROW])]

    def _parts(self, more: Sequence[str] = ()) -> list[str]:
        table = self._table
        return part_queries(self._connection, table.relation, self._publications, nulled=table.nulled, more=more)

    def _by_key(self, keys: pa.Table) -> sql.Composed:
        table = self._table
        relation = table.relation
        wanted, these, arrays = [], [], []
        for number, (name, texts) in enumerate(key_texts(table, keys).items()):
            row = self._connection.execute(_KEY_COLUMNS, (relation.relation_id, name)).fetchone()
            assert row is not None
            _, type_, collation, has_operators = row
            place = sql.Identifier(f"key{number}")
            these.append(sql.Identifier(name) if has_operators else sql.SQL("{}::text").format(sql.Identifier(name)))
            cast = sql.SQL("{}::" + type_).format(place) if has_operators else place
            wanted.append(cast + sql.SQL(f" COLLATE {collation}") if collation and has_operators else cast)
            arrays.append(sql.SQL("{}::text[]").format(sql.Literal(texts)))
        published = row_filter(self._connection, relation.table, self._publications)
        return sql.SQL(
            "SELECT {columns}, {version} FROM {only} {table} WHERE ({published}) AND ({these}) IN "
            "(SELECT {wanted} FROM unnest({arrays}) AS wanted({names}))"
        ).format(
            columns=sql.SQL(columns_read(self._connection, relation, table.nulled)),
            version=sql.SQL(_VERSION_OF_ROW),
            # The rows of tables that inherit from it are not its own; those of partitions are.
            only=sql.SQL("" if self._is_partitioned else "ONLY"),
            table=sql.Identifier(relation.schema, relation.name),
            published=sql.SQL("true" if published is None else published),
            these=sql.SQL(", ").join(these),
            wanted=sql.SQL(", ").join(wanted),
            arrays=sql.SQL(", ").join(arrays),
            names=sql.SQL(", ").join(sql.Identifier(f"key{number}") for number in range(len(arrays))),
        )

    @property
    def _is_partitioned(self) -> bool:
        oid = self._table.relation.relation_id
        return bool(scalar(self._connection, "SELECT relkind = 'p' FROM pg_class WHERE oid = %s", oid))

    @contextmanager
    def _moment(self) -> Iterator[tuple[Lsn, int, int]]:
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        # The first statement takes the snapshot, before it reads the WAL's end.
        row = self._connection.execute(
            "SELECT txid_snapshot_xmin(now), txid_snapshot_xmax(now) FROM txid_current_snapshot() AS now"
        ).fetchone()
        assert row is not None
        yield end_of_wal(self._connection), *row
        self._connection.execute("ROLLBACK")

    def _copied(self, query: sql.Composable, table: ReplicatedTable) -> Iterator[pa.RecordBatch]:
        send(self._connection, sql.SQL("COPY ({}) TO STDOUT").format(query))
        with closing(received(self._connection)) as copied:
            yield from typed(copied, table, self._key)
