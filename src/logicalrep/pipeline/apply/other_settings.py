"""The change of a stored table's write mode, or of its file partitions, which leaves its rows as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from logicalrep.pipeline.apply.rewriting import write_versions
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.schema.table_settings import WriteMode
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, read_rows
from logicalrep.pipeline.storage.storage import Storage


def change_write_mode(stored: StoredTable, engine: Engine, mode: WriteMode) -> int:
    """Let a table, or a companion table of it, mark rows from now on, or not any more, in one commit.

    Files with marked rows are written anew before readers may do without the marks. Returns their number.

    Raises:
        DamagedError: a data file of the table is gone.
        StorageError: the destination cannot be read or written.
    """
    table = replace(stored.table, settings=replace(stored.table.settings, write_mode=mode))
    marked = [] if table.marks_rows else [file for file in stored.files.values() if file.vector is not None]
    return _write_as(stored, engine, table, marked)


def change_partitions(stored: StoredTable, engine: Engine, wanted: TableSpec) -> int:
    """Give a table, or a companion table of it, the file partitions of another description, in one commit.

    All files are written anew, so that none has rows of two partitions. Returns their number.

    Args:
        stored: the table.
        engine: the runner of the work.
        wanted: a description of the table with the partitions, and with the settings that ask for them.

    Raises:
        PartitionValueError: the table's format cannot have a value as a partition.
        PartitionColumnError: there would be too many files.
        DamagedError: a data file of the table is gone.
        StorageError: the destination cannot be read or written.
    """
    settings = replace(stored.table.settings, partition_by=wanted.settings.partition_by)
    table = replace(stored.table, settings=settings, partitions=wanted.partitions)
    files = [] if stored.table.partitions == table.partitions else list(stored.files.values())
    return _write_as(stored, engine, table, files)


def _write_as(stored: StoredTable, engine: Engine, table: TableSpec, files: Sequence[DataFile]) -> int:
    """Store another description of the same columns, with some files written anew for it; return their number."""
    if stored.table == table:
        return 0  # The earlier try had succeeded, though its answer was lost, or the process ended after it.
    work = [_FileToWrite(stored.storage, stored.folder, table, file) for file in files]
    file_lists = engine.run(_write_file_as, work, sum(file.size for file in files))
    stored.describe(table, [file for file_list in file_lists for file in file_list], files)
    return len(files)


@dataclass(frozen=True)
class _FileToWrite:
    storage: Storage
    folder: str
    table: TableSpec
    file: DataFile


def _write_file_as(work: _FileToWrite) -> list[DataFile]:
    schema = work.table.stored
    rows = read_rows(work.storage, work.folder, work.file, schema, schema.names)
    return write_versions(work.storage, work.folder, work.table, rows)
