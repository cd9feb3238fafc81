"""`spark.read` with a snapshot: a table's rows at the start of a slot, in as many tasks as its size needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from psycopg import sql
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from logicalrep.arrow.copy_rows import inserts
from logicalrep.arrow.reading import committed_batches
from logicalrep.arrow.synthetic_messages import inserted
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.publications import query_definitions, query_published_relation
from logicalrep.postgres.retries import LOCKED
from logicalrep.postgres.server import Connection
from logicalrep.postgres.snapshots import Snapshot, SnapshotError, blocked, hold, hold_tables
from logicalrep.postgres.table_rows.parts import query_parts
from logicalrep.postgres.table_rows.reading import FileRows, copy_rows, readable
from logicalrep.spark.options import OptionError, SourceOptions
from logicalrep.spark.schemas import row_form
from logicalrep.spark.server_connection import log_to_standard_error
from logicalrep.spark.typed_tables.table_schema import with_catalog
from logicalrep.spark.worker import PromptReader, collect_garbage_once
from logicalrep.transactions.relations import TableDescription
from logicalrep_protocol.decoder import Decoder
from logicalrep_runtime.scalars import Lsn

PATIENCE = "10s"


@dataclass
class TablePart(InputPartition):
    relation: TableDescription
    rows: FileRows
    commit_lsn: Lsn
    """The rows' commit_lsn, which differs between parts: each row has a unique position."""


class SnapshotReader(PromptReader, DataSourceReader):
    """Reader of a table's rows, as if transactions right before the slot's position had inserted them."""

    def __init__(self, options: SourceOptions, snapshot: Snapshot, schema: StructType) -> None:
        super().__init__()
        self._options = options
        assert options.table is not None
        self._table = options.table
        self._snapshot = snapshot
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        log_to_standard_error()
        options = self._options
        if self._snapshot.slot != options.the_slot:
            raise OptionError(f"option 'snapshot' belongs to the slot {self._snapshot.slot!r}, not {options.slot!r}")
        names = ", ".join(options.publications)
        with options.connection.connect() as connection, options.connection.connect() as current:
            # A query about a publication locks all of its tables.
            for session in (connection, current):
                session.execute(sql.SQL("SET lock_timeout = {}").format(PATIENCE))
            self._hold(connection)
            try:
                # Making the snapshot has logged the warnings.
                check(current, options.needs)
                relation = query_published_relation(connection, self._table, options.publications)
                if relation is None:
                    raise OptionError(
                        f"option 'table' is {self._table}, which did not exist when the snapshot was made"
                    )
                parts = query_parts(connection, relation, options.publications)
            except LOCKED as error:
                raise blocked(f"a table of {names}") from error
            if query_definitions(connection, options.publications) != query_definitions(current, options.publications):
                raise SnapshotError(
                    f"{names} was altered since the snapshot was made: recreate the snapshot", code="SNAPSHOT_STALE"
                )
        # The first change may be at the slot's position, so the parts' positions lie before it.
        first = self._snapshot.lsn - len(parts)
        return [TablePart(relation, rows, Lsn(first + number)) for number, rows in enumerate(parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return collect_garbage_once(self._read(partition)) if isinstance(partition, TablePart) else iter(())

    def _read(self, part: TablePart) -> Iterator[pa.RecordBatch]:
        settings = self._options.connection
        with settings.connect() as connection, settings.connect() as current:
            self._hold(connection, part.rows)
            options = with_catalog(connection, self._options)
            with closing(copy_rows(connection, part.rows, current)) as data:
                rows = inserts(data, part.relation, part.commit_lsn)
                messages = inserted(part.relation, rows, part.commit_lsn, self._snapshot.taken)
                yield from committed_batches(messages, Decoder(1), row_form(options, self._schema))

    def _hold(self, connection: Connection, rows: FileRows | None = None) -> None:
        """Begin a transaction with the snapshot, and lock the table: with all partitions, or with one of its files."""
        tables = [self._table] if rows is None else list(dict.fromkeys((self._table, rows.name)))
        hold(connection, self._snapshot)
        with readable(connection, self._table):
            hold_tables(connection, tables, patience=0, with_partitions=rows is None)
