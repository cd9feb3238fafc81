"""Copies a part of a table into data files, under a snapshot."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from logicalrep.arrow.copy_rows import inserts
from logicalrep.arrow.message_batch import message_batches_of
from logicalrep.arrow.synthetic_messages import preamble
from logicalrep.arrow.table.columns import Rows
from logicalrep.arrow.table.table_decoder import TableDecoder
from logicalrep.pipeline.config.mask_key import MaskKey
from logicalrep.pipeline.schema.forms import with_live_markers
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.schema.written_values import unfit_counts, written_values
from logicalrep.pipeline.storage.data_files import DataFile, write_batches
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.server import Connection
from logicalrep.postgres.sessions.reused_sessions import ReusedSessions
from logicalrep.postgres.snapshots import Snapshot, SnapshotError, check_columns, hold, hold_tables
from logicalrep.postgres.table_rows.reading import FileRows, UnsafeTableError, copy_rows, readable
from logicalrep_protocol.columnar import Session
from logicalrep_runtime.scalars import Lsn

_Data = TypeVar("_Data")


@dataclass(frozen=True)
class CopyTask:
    sessions: ReusedSessions
    snapshot: Snapshot
    table: TableSpec
    ranges: tuple[FileRows, ...]
    """The ranges of rows: the table is locked only while one range is read."""
    storage: Storage
    folder: str
    rate: float | None
    """The most bytes a second; None for no bound."""
    key: MaskKey | None


@dataclass(frozen=True)
class CopiedPart:
    files: list[DataFile]
    unfit: Counter[str]
    """The number of values that their column's type cannot hold, by column name."""
    deleted_keys: Sequence[DataFile] = ()


def copy(part: CopyTask) -> CopiedPart:
    """Copy a part's rows into data files. Raises SnapshotError, ColumnValueError, PartitionValueError, StorageError or
    NotReadableError."""
    with part.sessions.pair() as (connection, second_connection):
        connection.execute(f"SET lock_timeout = '{part.storage.limits.lock_seconds}s'")
        with closing(limit_rate(_copy_ranges(part, connection, second_connection), part.rate)) as rows:
            unfit: Counter[str] = Counter()
            form, has_ids = part.table.form, part.table.settings.abilities.has_field_ids
            typed_rows = typed(rows, part.table, part.key, unfit)
            batches = (with_live_markers(batch, form, has_field_ids=has_ids) for batch in typed_rows)
            files = write_batches(part.storage, part.folder, batches, part.table.file_partitions)
            return CopiedPart(files, unfit)


def _copy_ranges(
    part: CopyTask, connection: Connection, second_connection: Connection
) -> Generator[memoryview | bytes, None, None]:
    name = part.table.relation.table
    for rows in part.ranges:
        hold(connection, part.snapshot)
        with readable(connection, name):
            # Locking and comparing all partitions for each of their files would cost the square of their number.
            tables = dict.fromkeys((name, rows.name))
            hold_tables(connection, list(tables), patience=part.storage.limits.lock_seconds, with_partitions=False)
        check_columns(connection, second_connection)
        try:
            with closing(copy_rows(connection, rows, second_connection)) as data:
                yield from data
        except UnsafeTableError as error:
            # The query was safe when the load was planned; a newly planned load may not need it.
            raise SnapshotError(error.description, code="SNAPSHOT_STALE") from error
        connection.execute("COMMIT")


def typed(
    data: Iterator[memoryview | bytes], table: TableSpec, key: MaskKey | None, unfit: Counter[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield copied rows in the stored table's columns, with columns of texts from the first batch that needs them.
    Raises ColumnValueError."""
    decoder = TableDecoder(Session(version=1), for_spark=True, catalog=table.catalog, own_type=table.own_type)
    for batch in message_batches_of(preamble([table.relation])):
        decoder.decode(batch.array)
    batches = inserts(data, table.relation, Lsn(1))
    yield from _written(
        (table_rows.new for batch in batches for table_rows in decoder.decode(batch.array)), table, key, unfit
    )


def _written(
    batches: Iterable[Rows], table: TableSpec, key: MaskKey | None, unfit: Counter[str] | None
) -> Iterator[pa.RecordBatch]:
    for rows in batches:
        all_ = np.arange(rows.values.num_rows)
        counts = unfit_counts(table, rows, all_)
        table = table.with_texts_of(counts)
        arrays = [written_values(table, column, rows, all_) for column in table.written]
        if unfit is not None:
            unfit.update(counts)
        if key is not None:
            hashed = [table.columns[column.ordinal].name in table.hashed for column in table.written]
            arrays = [key.hashed(array) if is_it else array for array, is_it in zip(arrays, hashed, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=table.schema)


_SHORTEST_SLEEP = 0.01
"""The least seconds that a session sleeps when it is ahead of its rate."""


def limit_rate(
    rows: Generator[_Data, None, None], rate: float | None, size_of: Callable[[Any], int] = len
) -> Generator[_Data, None, None]:
    began, size = time.monotonic(), 0
    with closing(rows):
        for data in rows:
            yield data
            size += size_of(data)
            ahead = 0.0 if rate is None else began + size / rate - time.monotonic()
            # Each sleep lasts slightly too long; a sleep for every row would slow the copy down.
            if ahead > _SHORTEST_SLEEP:
                time.sleep(ahead)
