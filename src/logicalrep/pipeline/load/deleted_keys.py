"""Finds keys of a part of a table that the destination has and the server, at a load's snapshot, does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.pipeline.apply.ending import is_current
from logicalrep.pipeline.catalog.lost_partitions import LostPartitions
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.load.copying import CopiedPart, limit_rate
from logicalrep.pipeline.schema.forms import END_COLUMN
from logicalrep.pipeline.schema.key_texts import key_texts
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.state.requests import RequestedPart, RequestedPartition
from logicalrep.pipeline.storage.data_files import DataFile, read_rows, write_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.publications import query_row_filter
from logicalrep.postgres.server import Connection
from logicalrep.postgres.snapshots import Snapshot, check_columns, hold, hold_tables
from logicalrep.postgres.table_rows.conditions import ConditionError
from logicalrep.postgres.table_rows.keys import (
    KeyCondition,
    is_partitioned,
    query_key_columns,
    query_tree,
)
from logicalrep.postgres.table_rows.reading import check_functions, locked_for_query, readable


@dataclass(frozen=True, slots=True)
class StoredFiles:
    folder: str
    table: TableSpec
    files: tuple[DataFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class WantedPart:
    """A requested part of a table, and the table's files at the destination."""

    part: RequestedPart
    stored: tuple[StoredFiles, ...]
    """The files of the table itself, and of its history if it has one."""

    @classmethod
    def of(cls, part: RequestedPart, stored: Sequence[StoredTable]) -> WantedPart:
        """Return a part with the current files of its stored tables; the table's changes are buffered from now on."""
        stored = [table for table in stored if table.table.form != "changes"]
        return cls(part, tuple(StoredFiles(table.folder, table.table, tuple(table.files.values())) for table in stored))

    def is_keyed_like(self, table: TableSpec) -> bool:
        return all(_key(files.table) == _key(table) for files in self.stored)


def _key(table: TableSpec) -> list[tuple[int, str, pa.DataType]]:
    numbers = {column.name: table.attnums[column.ordinal] for column in table.written if not column.has_texts}
    return [(numbers[name], name, table.schema.field(name).type) for name in table.key_names]


def check_condition(
    connection: Connection, table: TableSpec, publications: tuple[str, ...], part: RequestedPart
) -> KeyCondition:
    """Return the condition of a part of a table, for rows and for keys. Raises ConditionError, SnapshotError,
    UnsafeTableError or NotReadableError."""
    if table.key is None:
        raise ConditionError("it has no key that identifies the rows to replace")
    if not table.hashed.isdisjoint(table.key):
        raise ConditionError("a column of its key is hashed, so that the server cannot find these rows")
    relation = table.relation
    condition = KeyCondition(
        part.condition,
        relation.table,
        is_partitioned(connection, relation.relation_id),
        query_key_columns(connection, relation.relation_id, table.key),
        query_row_filter(connection, relation.table, publications),
    )
    partition = part.partition
    if partition is not None and not _is_partition(connection, relation.relation_id, partition):
        raise ConditionError(f"{partition.name} is no longer a partition of it")
    with locked_for_query(connection, relation.relation_id, relation.table, with_partitions=True):
        condition.check(connection)
    return condition


def check_bounds(
    connection: Connection, table: TableSpec, publications: tuple[str, ...], lost: LostPartitions
) -> KeyCondition:
    """Return the condition of the rows within the bounds of lost partitions. Raises the errors of `check_condition`."""
    oid, name = table.relation.relation_id, table.relation.table
    condition = KeyCondition(
        lost.condition(table),
        name,
        is_partitioned(connection, oid),
        query_key_columns(connection, oid, lost.columns(table)),
        query_row_filter(connection, name, publications),
    )
    with locked_for_query(connection, oid, name, with_partitions=True):
        condition.check(connection)
    return condition


_NAME = """
SELECT nspname, relname FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
WHERE class.oid = %s
"""


def _is_partition(connection: Connection, oid: int, partition: RequestedPartition) -> bool:
    name = connection.execute(_NAME, (partition.oid,)).fetchone()
    return name == tuple(partition.name) and partition.oid in query_tree(connection, oid)[1:]


@dataclass(frozen=True, slots=True)
class KeysTask:
    settings: ConnectionSettings
    snapshot: Snapshot
    table: TableSpec
    """The table at the snapshot."""
    condition: KeyCondition
    stored: StoredFiles
    storage: Storage
    folder: str
    rate: float | None
    """The most bytes a second; None for no bound."""


def split_files(wanted: WantedPart, most_bytes: int) -> list[StoredFiles]:
    groups = []
    for stored in wanted.stored:
        group: list[DataFile] = []
        for file in stored.files:
            group.append(file)
            if sum(held_file.size for held_file in group) >= most_bytes:
                groups.append(StoredFiles(stored.folder, stored.table, tuple(group)))
                group = []
        if group:
            groups.append(StoredFiles(stored.folder, stored.table, tuple(group)))
    return groups


def find_deleted_keys(task: KeysTask) -> CopiedPart:
    """Write the keys of a part that the destination has and the server, at the snapshot, does not. Raises
    SnapshotError, DamagedError, StorageError, UnsafeTableError or NotReadableError."""
    name, oid = task.table.relation.table, task.table.relation.relation_id
    deleted_keys: list[pa.Table] = []
    with task.settings.connect() as connection, task.settings.connect() as second_connection:
        connection.execute(f"SET lock_timeout = '{task.storage.limits.lock_seconds}s'")
        for keys in limit_rate(_read_keys(task), task.rate, lambda keys: int(keys.nbytes)):
            hold(connection, task.snapshot)
            with readable(connection, name):
                hold_tables(connection, [name], patience=task.storage.limits.lock_seconds)
                check_columns(connection, second_connection)
                check_functions(second_connection, name, query_tree(second_connection, oid))
                absent = task.condition.query_absent(connection, key_texts(task.table, keys))
            connection.execute("COMMIT")
            deleted_keys.append(keys.take(pa.array(absent, pa.int64())))
    schema = pa.schema([task.table.schema.field(key) for key in task.table.key_names])
    files = write_rows(task.storage, task.folder, schema, pa.concat_tables([schema.empty_table(), *deleted_keys]))
    return CopiedPart([], Counter(), files)


def _read_keys(task: KeysTask) -> Generator[pa.Table, None, None]:
    stored, table = task.stored, task.stored.table
    end_columns = [END_COLUMN[table.form]] if table.form in END_COLUMN else []
    schema = pa.schema([task.table.schema.field(key) for key in task.table.key_names])
    for file in stored.files:
        rows = read_rows(task.storage, stored.folder, file, table.stored, [*table.key_names, *end_columns])
        if end_columns:
            rows = rows.filter(pa.array(is_current(rows, table.form)))
        keys = rows.select(schema.names).cast(schema)
        for key in schema.names:
            # No key finds a row with a null in its key.
            keys = keys.filter(pc.is_valid(keys[key]))
        step = task.storage.limits.statement_keys
        yield from (keys.slice(start, step) for start in range(0, keys.num_rows, step))
