"""`spark.read` with a snapshot: the rows that a table had where a slot begins, as many tasks as it is large."""

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
"""In bytes: so much of a table is a task."""
_PATIENCE = "10s"
"""How long to wait for who alters a table."""


@dataclass
class TablePart(InputPartition):
    """A table or partition, or a part of it."""

    relation: TableDescription
    """The table as it is published."""
    query: str
    """What gives the rows."""
    commit_lsn: Lsn
    """That of its rows: no two parts have the same, so that each row has a position of its own."""


class SnapshotReader(PromptReader, DataSourceReader):
    """Reads the rows of a table, as if transactions right before the slot's position had inserted them."""

    def __init__(self, options: SourceOptions, snapshot: Snapshot, schema: StructType) -> None:
        super().__init__()
        self._options = options
        assert options.table is not None
        self._table = options.table
        self._snapshot = snapshot
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Parts of the table, or of each of its partitions."""
        log_to_standard_error()
        options = self._options
        if self._snapshot.slot != options.the_slot:
            raise OptionError(f"option 'snapshot' is one of the slot {self._snapshot.slot!r}, not {options.slot!r}")
        names = ", ".join(options.publications)
        with options.connection.connect() as connection, options.connection.connect() as now:
            # What is asked of a publication looks at all of its tables.
            for session in (connection, now):
                session.execute(sql.SQL("SET lock_timeout = {}").format(_PATIENCE))
            self._hold(connection)
            try:
                # Who made the snapshot has said its warnings.
                check(now, options.needs)
                relation = self._relation(connection)
                queries = self._queries(connection, relation)
            except psycopg.errors.LockNotAvailable as error:
                raise blocked(f"a table of {names}") from error
            if definitions(connection, options.publications) != definitions(now, options.publications):
                raise SnapshotError(
                    f"{names} was altered since the snapshot was made: make it again", code="SNAPSHOT_STALE"
                )
        # The first row that a change can follow is at the slot's position.
        first = self._snapshot.lsn - len(queries)
        return [TablePart(relation, query, Lsn(first + number)) for number, query in enumerate(queries)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The record batches of a part; of a table without one Spark reads a partition that is none."""
        return collected_once(self._read(partition)) if isinstance(partition, TablePart) else iter(())

    def _read(self, part: TablePart) -> Iterator[Any]:
        with self._options.connection.connect() as connection:
            self._hold(connection)
            options = with_catalog(connection, self._options)
            # Policies would leave out rows, of which all changes come.
            connection.execute("SET row_security = off")
            # The names and the conditions in it are the server's own words.
            send(connection, sql.SQL("COPY ({}) TO STDOUT").format(sql.SQL(part.query)))
            with closing(received(connection)) as copied:
                rows = inserts(copied, part.relation, part.commit_lsn)
                messages = inserted(part.relation, rows, part.commit_lsn, self._snapshot.taken)
                yield from committed_batches(messages, Decoder(1), row_form(options, self._schema))

    def _hold(self, connection: Connection) -> None:
        """Have the snapshot, and the table as it was then."""
        hold(connection, self._snapshot)
        hold_tables(connection, [self._table], wait=False)

    def _relation(self, connection: Connection) -> TableDescription:
        relation = published_relation(connection, self._table, self._options.publications)
        if relation is None:
            raise OptionError(f"option 'table' is {self._table}, which was not there when the snapshot was made")
        return relation

    def _queries(self, connection: Connection, relation: TableDescription) -> list[str]:
        """What gives the published rows of each part."""
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
    """The table, or each of its partitions: its name, its pages, its size in bytes, and whether parts can be read.

    The partitions are those of the snapshot: a function of the server would tell those of now.
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
    """The conditions for parts of a file, of even size with what is stored out of line.

    The last one has what was written since it was looked at as well.
    """
    count = min(pages, -(-size // _PART))
    if not has_ranges or count < 2:
        return [[]]
    firsts = [pages * number // count for number in range(count)]
    after = [[f"ctid >= '({first},0)'::tid"] for first in firsts]
    before = [[f"ctid < '({stop},0)'::tid"] for stop in firsts[1:]]
    return [a + b for a, b in zip(after, [*before, []], strict=True)]
