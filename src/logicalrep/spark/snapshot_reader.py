"""`spark.read` with a snapshot: a table's rows at the start of a slot, in as many tasks as its size needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from logicalrep.arrow.copy_rows import inserts
from logicalrep.arrow.reading import committed_batches
from logicalrep.arrow.synthetic_messages import inserted
from logicalrep.postgres.copy_stream import received, send
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.publications import definitions, published_relation, row_filter
from logicalrep.postgres.slots import Connection, server_major
from logicalrep.postgres.snapshots import Snapshot, SnapshotError, blocked, hold, hold_tables
from logicalrep.spark.options import OptionError, SourceOptions
from logicalrep.spark.row_form import row_form
from logicalrep.spark.server_connection import log_to_standard_error
from logicalrep.spark.typed_tables.table_schema import with_catalog
from logicalrep.spark.worker import PromptReader, collected_once
from logicalrep.transactions.relations import TableDescription
from logicalrep_protocol.decoder import Decoder
from logicalrep_runtime.scalars import Lsn

_PART = 64 << 20
"""The size of the part of a table that one task reads, in bytes."""
_PATIENCE = "10s"
"""The longest wait for a lock on a table."""


@dataclass
class TablePart(InputPartition):
    """A table or partition, or a part of it."""

    relation: TableDescription
    """The table with its published columns."""
    query: str
    """The query for the rows."""
    commit_lsn: Lsn
    """The commit_lsn of its rows, which differs between parts, so that each row has a position of its own."""


class SnapshotReader(PromptReader, DataSourceReader):
    """A reader of a table's rows, as if transactions right before the slot's position had inserted them."""

    def __init__(self, options: SourceOptions, snapshot: Snapshot, schema: StructType) -> None:
        super().__init__()
        self._options = options
        assert options.table is not None
        self._table = options.table
        self._snapshot = snapshot
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts of the table, or of each of its partitions."""
        log_to_standard_error()
        options = self._options
        if self._snapshot.slot != options.the_slot:
            raise OptionError(f"option 'snapshot' belongs to the slot {self._snapshot.slot!r}, not {options.slot!r}")
        names = ", ".join(options.publications)
        with options.connection.connect() as connection, options.connection.connect() as now:
            # A query about a publication locks all of its tables.
            for session in (connection, now):
                session.execute(sql.SQL("SET lock_timeout = {}").format(_PATIENCE))
            self._hold(connection)
            try:
                # Making the snapshot has logged the warnings.
                check(now, options.needs)
                relation = self._relation(connection)
                queries = self._queries(connection, relation)
            except psycopg.errors.LockNotAvailable as error:
                raise blocked(f"a table of {names}") from error
            if definitions(connection, options.publications) != definitions(now, options.publications):
                raise SnapshotError(
                    f"{names} was altered since the snapshot was made: make it again", code="SNAPSHOT_STALE"
                )
        # The first change may be at the slot's position, so the parts' positions lie before it.
        first = self._snapshot.lsn - len(queries)
        return [TablePart(relation, query, Lsn(first + number)) for number, query in enumerate(queries)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return the record batches of a part; without parts, Spark reads an empty partition of its own."""
        return collected_once(self._read(partition)) if isinstance(partition, TablePart) else iter(())

    def _read(self, part: TablePart) -> Iterator[Any]:
        with self._options.connection.connect() as connection:
            self._hold(connection)
            options = with_catalog(connection, self._options)
            # Row security would leave out rows whose changes the slot sends.
            connection.execute("SET row_security = off")
            # The names and conditions in the query come from the server.
            send(connection, sql.SQL("COPY ({}) TO STDOUT").format(sql.SQL(part.query)))
            with closing(received(connection)) as copied:
                rows = inserts(copied, part.relation, part.commit_lsn)
                messages = inserted(part.relation, rows, part.commit_lsn, self._snapshot.taken)
                yield from committed_batches(messages, Decoder(1), row_form(options, self._schema))

    def _hold(self, connection: Connection) -> None:
        """Set the snapshot, and lock the table."""
        hold(connection, self._snapshot)
        hold_tables(connection, [self._table], wait=False)

    def _relation(self, connection: Connection) -> TableDescription:
        relation = published_relation(connection, self._table, self._options.publications)
        if relation is None:
            raise OptionError(f"option 'table' is {self._table}, which did not exist when the snapshot was made")
        return relation

    def _queries(self, connection: Connection, relation: TableDescription) -> list[str]:
        """Return the query for the published rows of each part."""
        published = row_filter(connection, relation.table, self._options.publications)
        columns = sql.SQL(", ").join(map(sql.Identifier, relation.names)).as_string(connection)
        queries = []
        for name, pages, size, has_ranges in _files(connection, relation):
            for part in _parts(pages, size, has_ranges):
                conditions = [] if published is None else [f"({published})"]
                conditions += part
                where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
                queries.append(f"SELECT {columns} FROM ONLY {name}{where}")
        return queries


def _files(connection: Connection, relation: TableDescription) -> list[tuple[str, int, int, bool]]:
    """Return the table, or its partitions: name, pages, size in bytes, and whether parts of it can be read.

    The partitions are those of the snapshot; pg_partition_tree would return the current ones.
    """
    has_ranges = "method.amname = 'heap'" if server_major(connection) >= 14 else "false"
    return connection.execute(
        f"WITH RECURSIVE files AS (SELECT {int(relation.relation_id)}::oid AS oid UNION ALL "
        "SELECT inhrelid FROM files JOIN pg_inherits ON inhparent = files.oid "
        "JOIN pg_class AS parent ON parent.oid = files.oid AND parent.relkind = 'p') "
        "SELECT format('%I.%I', namespace.nspname, class.relname), "
        "pg_relation_size(class.oid) / current_setting('block_size')::int, pg_table_size(class.oid), "
        f"{has_ranges} FROM files JOIN pg_class AS class ON class.oid = files.oid AND class.relkind <> 'p' "
        "JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace "
        "LEFT JOIN pg_am AS method ON method.oid = class.relam ORDER BY class.oid"
    ).fetchall()


def _parts(pages: int, size: int, has_ranges: bool) -> list[list[str]]:
    """Return the conditions for parts of a file with equal numbers of pages; the size includes out-of-line values.

    The last part has no end, so that it includes rows written since the size was read.
    """
    count = min(pages, -(-size // _PART))
    if not has_ranges or count < 2:
        return [[]]
    firsts = [pages * number // count for number in range(count)]
    after = [[f"ctid >= '({first},0)'::tid"] for first in firsts]
    before = [[f"ctid < '({stop},0)'::tid"] for stop in firsts[1:]]
    return [a + b for a, b in zip(after, [*before, []], strict=True)]
