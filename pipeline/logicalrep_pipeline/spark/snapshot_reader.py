"""`spark.read` with a snapshot: the rows that a table had where a slot begins, as many tasks as it is large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from psycopg import sql
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from logicalrep import Decoder, Lsn, TimestampTz
from logicalrep_pipeline.blocks import blocks_of
from logicalrep_pipeline.copied_rows import inserts
from logicalrep_pipeline.copy_out import received, send
from logicalrep_pipeline.preflight import check
from logicalrep_pipeline.published import published_relation, row_filter
from logicalrep_pipeline.relations import Relation
from logicalrep_pipeline.resending import inserted
from logicalrep_pipeline.slots import Connection, server_major
from logicalrep_pipeline.snapshots import Snapshot, hold
from logicalrep_pipeline.spark.driver import log, log_to_standard_error
from logicalrep_pipeline.spark.feed import EPOCH
from logicalrep_pipeline.spark.options import OptionError, SourceOptions
from logicalrep_pipeline.spark.reading import record_batches
from logicalrep_pipeline.spark.worker import PromptReader, collected_once

_PART = 64 << 20
"""In bytes: so much of a table is a task."""


@dataclass
class TablePart(InputPartition):
    """A table or partition, or a part of it."""

    name: str
    """As it is written in SQL."""
    pages: tuple[int, int | None] | None
    """The first page, and the one at which to stop, if not at the end; None for all rows."""
    commit_lsn: Lsn
    """That of its rows: no two parts have the same, so that each row has a position of its own."""
    commit_timestamp: int
    """That of all rows, in PostgreSQL's microseconds."""


class SnapshotReader(PromptReader, DataSourceReader):
    """Reads the rows of a table, as if transactions right before the slot's position had inserted them."""

    def __init__(self, options: SourceOptions, snapshot: Snapshot, schema: StructType) -> None:
        super().__init__()
        self._options = options
        self._snapshot = snapshot
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Parts of the table, or of each of its partitions."""
        log_to_standard_error()
        with self._options.connection.connect() as connection:
            for warning in check(connection, self._options.needs):
                log.warning("%s", warning)
            hold(connection, self._snapshot)
            moment = _now(connection)
            relation = self._relation(connection)
            parts = [
                (name, pages)
                for name, size, has_ranges in _files(connection, relation)
                for pages in _pages(connection, size, has_ranges)
            ]
            # The first row that a change can follow is at the slot's position.
            first = self._snapshot.lsn - len(parts)
            return [TablePart(*part, Lsn(first + number), moment) for number, part in enumerate(parts)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The record batches of a part."""
        assert isinstance(partition, TablePart)
        return collected_once(self._read(partition))

    def _read(self, part: TablePart) -> Iterator[Any]:
        with self._options.connection.connect() as connection:
            hold(connection, self._snapshot)
            # Policies would leave out rows, of which all changes come.
            connection.execute("SET row_security = off")
            relation = self._relation(connection)
            send(connection, self._copy(connection, relation, part))
            with closing(received(connection)) as copied:
                rows = inserts(copied, relation, part.commit_lsn)
                messages = inserted(relation, rows, part.commit_lsn, TimestampTz(part.commit_timestamp))
                yield from record_batches(blocks_of(messages), Decoder(1), self._options, self._schema)

    def _relation(self, connection: Connection) -> Relation:
        table = self._options.table
        assert table is not None
        relation = published_relation(connection, table, self._options.publications)
        if relation is None:
            raise OptionError(f"option 'table' is {table!r}, which was not there when the snapshot was made")
        return relation

    def _copy(self, connection: Connection, relation: Relation, part: TablePart) -> sql.Composed:
        conditions = []
        published = row_filter(connection, str(relation), self._options.publications)
        if published is not None:
            conditions.append(f"({published})")
        if part.pages is not None:
            first, stop = part.pages
            conditions.append(f"ctid >= '({first},0)'::tid")
            if stop is not None:
                conditions.append(f"ctid < '({stop},0)'::tid")
        columns = sql.SQL(", ").join(map(sql.Identifier, relation.names))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        # The name and the conditions are the server's own words.
        query = sql.SQL("COPY (SELECT {} FROM ONLY {}{}) TO STDOUT")
        return query.format(columns, sql.SQL(part.name), sql.SQL(where))


def _now(connection: Connection) -> int:
    """The server's time in microseconds, as PostgreSQL counts them."""
    row = connection.execute("SELECT (extract(epoch FROM now()) * 1000000)::bigint").fetchone()
    assert row is not None
    return int(row[0]) - EPOCH


def _files(connection: Connection, relation: Relation) -> list[tuple[str, int, bool]]:
    """The table, or each of its partitions: its name, its size in bytes, and whether parts of it can be read."""
    oid, major = int(relation.relation_id), server_major(connection)
    of = f"SELECT {oid}::oid AS oid"
    if major >= 12:
        of = (
            f"SELECT relid AS oid FROM pg_partition_tree({oid}) WHERE isleaf "
            f"UNION SELECT oid FROM pg_class WHERE oid = {oid} AND relkind <> 'p'"
        )
    has_ranges = "method.amname = 'heap'" if major >= 14 else "false"
    return connection.execute(
        f"SELECT format('%I.%I', namespace.nspname, class.relname), pg_relation_size(class.oid), {has_ranges} "
        f"FROM ({of}) AS files JOIN pg_class AS class ON class.oid = files.oid "
        "JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace "
        "LEFT JOIN pg_am AS method ON method.oid = class.relam ORDER BY class.oid"
    ).fetchall()


def _pages(connection: Connection, size: int, has_ranges: bool) -> list[tuple[int, int | None] | None]:
    """Parts of a file; the last one has what was written since it was looked at as well."""
    row = connection.execute("SELECT current_setting('block_size')::int").fetchone()
    assert row is not None
    step = _PART // row[0]
    firsts = list(range(0, size // row[0], step))
    if not has_ranges or len(firsts) < 2:
        return [None]
    return [(first, stop) for first, stop in zip(firsts, [*firsts[1:], None], strict=True)]
