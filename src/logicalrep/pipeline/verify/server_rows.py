"""The server's rows of a table, read as a load reads them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from psycopg import sql

from logicalrep.pipeline.catalog.definitions import TEXT
from logicalrep.pipeline.config.mask_key import MaskKey
from logicalrep.pipeline.load.copying import typed
from logicalrep.pipeline.schema.key_texts import key_texts
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.verify.digests import Fingerprints, Hashes, digests_of
from logicalrep.pipeline.verify.progress import end_of_wal
from logicalrep.postgres.copy_stream import receive_rows, send
from logicalrep.postgres.publications import query_row_filter
from logicalrep.postgres.server import Connection
from logicalrep.postgres.table_rows.keys import as_text, is_partitioned, query_key_columns, query_tree, rows_of
from logicalrep.postgres.table_rows.parts import query_columns, query_parts
from logicalrep.postgres.table_rows.reading import FileRows, check_functions, copy_rows, lock_table, readable
from logicalrep_protocol import v1
from logicalrep_runtime.scalars import Lsn

_VERSION = "ctid"
"""The name of the column for the row version: no column of a table can have it."""
_VERSION_OF_ROW = "tableoid::text || ' ' || xmin::text || ' ' || ctid::text || ' ' || xmax::text"


@dataclass(frozen=True, slots=True)
class ServerRowsAt:
    fingerprints: Fingerprints
    lsn: Lsn
    """Every commit that the reading sees begins before this LSN."""
    oldest: int
    """The first transaction that may still run: all earlier ones have ended."""
    next: int
    """The first transaction that had not begun. If it equals `oldest`, no transaction runs."""
    rows: list[pa.RecordBatch]


class ServerRows:
    def __init__(
        self,
        connection: Connection,
        catalog_connection: Connection,
        table: TableSpec,
        publications: tuple[str, ...],
        key: MaskKey | None,
    ) -> None:
        """Both sessions are for this table alone: an error leaves them in any state."""
        self._connection = connection
        self._catalog_connection = catalog_connection
        self._key = key
        self._publications = publications
        self._table = table
        relation = table.relation
        version = v1.Column(flags=0, name=_VERSION, type_id=TEXT, type_modifier=-1)
        described = replace(relation, columns=(*relation.columns, version), types=(*relation.types, None))
        self._with_version = replace(table, relation=described, attnums=(*table.attnums, 0))

    def all(self) -> Iterator[pa.RecordBatch]:
        """Read each part in its own snapshot, so that no lock outlives it; without a key, all in one snapshot."""
        if self._table.key is None:
            with self._take_moment():
                for part in self._parts():
                    yield from self._typed(copy_rows(self._connection, part, self._catalog_connection), self._table)
            return
        for part in self._parts():
            with self._connection.transaction():
                yield from self._typed(copy_rows(self._connection, part, self._catalog_connection), self._table)

    def read_keys(self, hashes: Hashes, keys: pa.Table | None, *, with_rows: bool = False) -> ServerRowsAt:
        """Read in one snapshot. `keys` is None for a table without a key: all rows are read."""
        fingerprints = Fingerprints.none(len(hashes))
        rows: list[pa.RecordBatch] = []
        with self._take_moment() as (lsn, oldest, following):
            for batch in self._with_versions(keys):
                versions = batch.column(_VERSION).to_pylist()
                is_wanted = fingerprints.add(hashes, digests_of(self._table, batch), versions)
                if with_rows:
                    rows.append(batch.select(self._table.names).filter(pa.array(is_wanted)))
        return ServerRowsAt(fingerprints, lsn, oldest, following, rows)

    def _with_versions(self, keys: pa.Table | None) -> Iterator[pa.RecordBatch]:
        # The server cannot compute the hashes.
        if keys is not None and self._table.hashed.isdisjoint(self._table.key or ()):
            yield from self._typed(self._copy_by_key(keys), self._with_version)
            return
        for part in self._parts(more=[_VERSION_OF_ROW]):
            yield from self._typed(copy_rows(self._connection, part, self._catalog_connection), self._with_version)

    def _parts(self, more: Sequence[str] = ()) -> list[FileRows]:
        table = self._table
        return query_parts(self._connection, table.relation, self._publications, nulled=table.nulled, more=more)

    def _copy_by_key(self, keys: pa.Table) -> Generator[memoryview | bytes, None, None]:
        relation = self._table.relation
        with readable(self._connection, relation.table):
            lock_table(self._connection, relation.relation_id, relation.table)
            query = self._query_by_key(keys)
            tree = query_tree(self._catalog_connection, relation.relation_id)
            check_functions(self._catalog_connection, relation.table, tree)
            send(self._connection, sql.SQL("COPY ({}) TO STDOUT").format(query))
            with closing(receive_rows(self._connection)) as data:
                yield from data

    def _query_by_key(self, keys: pa.Table) -> sql.Composed:
        table = self._table
        relation = table.relation
        key_values: list[sql.Composable] = []
        key_columns: list[sql.Composable] = []
        arrays: list[sql.Composable] = []
        texts = key_texts(table, keys)
        for number, column in enumerate(query_key_columns(self._connection, relation.relation_id, list(texts))):
            text = sql.Identifier(f"key{number}")
            if column.own_type is None:
                key_columns.append(as_text(sql.Identifier(column.name)))
                key_values.append(text)
            else:
                key_columns.append(sql.Identifier(column.name))
                key_values.append(sql.SQL("{}::{}").format(text, sql.SQL(column.own_type)) + column.collated)
            arrays.append(sql.SQL("{}::text[]").format(sql.Literal(texts[column.name])))
        published = query_row_filter(self._connection, relation.table, self._publications)
        return sql.SQL(
            "SELECT {columns}, {version} FROM {rows} WHERE ({published}) AND ({these}) IN "
            "(SELECT {wanted} FROM unnest({arrays}) AS wanted({names}))"
        ).format(
            columns=sql.SQL(", ".join(query_columns(self._connection, relation, table.nulled))),
            version=sql.SQL(_VERSION_OF_ROW),
            rows=rows_of(relation.table, is_partitioned=is_partitioned(self._connection, relation.relation_id)),
            published=sql.SQL("true" if published is None else published),
            these=sql.SQL(", ").join(key_columns),
            wanted=sql.SQL(", ").join(key_values),
            arrays=sql.SQL(", ").join(arrays),
            names=sql.SQL(", ").join(sql.Identifier(f"key{number}") for number in range(len(arrays))),
        )

    @contextmanager
    def _take_moment(self) -> Iterator[tuple[Lsn, int, int]]:
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        # The first statement takes the snapshot, before end_of_wal() reads the WAL's end.
        row = self._connection.execute(
            "SELECT txid_snapshot_xmin(now), txid_snapshot_xmax(now) FROM txid_current_snapshot() AS now"
        ).fetchone()
        assert row is not None
        yield end_of_wal(self._connection), *row
        self._connection.execute("ROLLBACK")

    def _typed(self, data: Generator[memoryview | bytes, None, None], table: TableSpec) -> Iterator[pa.RecordBatch]:
        with closing(data):
            yield from typed(data, table, self._key)
