"""Changes of a stored table's write mode, change data feed, file partitions or format version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from logicalrep.pipeline.apply.rewriting import write_versions
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.schema.table_settings import TableSettings, WriteMode
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, read_rows
from logicalrep.pipeline.storage.storage import Storage


def change_write_mode(stored: StoredTable, engine: Engine, mode: WriteMode) -> int:
    """Change the write mode of a table or companion table in one commit; return the number of rewritten files.

    Files with marked rows are rewritten before readers may ignore marks.

    Raises:
        DamagedError: a data file of the table is missing.
            StorageError: the destination cannot be read or written.
    """
    table = replace(stored.table, settings=replace(stored.table.settings, write_mode=mode))
    marked = [] if table.marks_rows else [file for file in stored.files.values() if file.vector is not None]
    return _write_as(stored, engine, table, marked)


def change_feed(stored: StoredTable, engine: Engine, *, is_wanted: bool) -> int:
    """Begin or end the change data feed of a table in one commit; return 0, as no file is rewritten.

    Raises:
        ReservedColumnError: a column has the name of a column of the feed.
        StorageError: the destination cannot be written.
    """
    settings = replace(stored.table.settings, change_data_feed=is_wanted)
    return _write_as(stored, engine, replace(stored.table, settings=settings), [])


def change_partitions(stored: StoredTable, engine: Engine, wanted: TableSpec) -> int:
    """Change the file partitions of a table or companion table in one commit; return the number of rewritten files.

    All files are rewritten, so that no file has rows of two partitions.

    Args:
        stored: the table.
        engine: the engine that rewrites files.
        wanted: a description of the table with the new partitions and their settings.

    Raises:
        PartitionValueError: the table's format cannot store a value as a partition.
        PartitionColumnError: there would be too many files.
        DamagedError: a data file of the table is missing.
        StorageError: the destination cannot be read or written.
    """
    settings = replace(stored.table.settings, partition_by=wanted.settings.partition_by)
    table = replace(stored.table, settings=settings, partitions=wanted.partitions)
    files = [] if stored.table.partitions == table.partitions else list(stored.files.values())
    return _write_as(stored, engine, table, files)


def upgrade(stored: StoredTable, engine: Engine, settings: TableSettings) -> int:
    """Give a table or companion table the format version of the settings in one commit, unless its version is later.

    No file is rewritten, so the result is 0. Raises StorageError if the destination cannot be read or written.
    """
    table = replace(stored.table, settings=stored.table.settings.with_later_version(settings))
    return _write_as(stored, engine, table, ())


def _write_as(stored: StoredTable, engine: Engine, table: TableSpec, files: Sequence[DataFile]) -> int:
    if stored.table == table:
        return 0  # An earlier try succeeded, but its answer was lost or the process ended after it.
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
    schema = work.table.moved
    rows = read_rows(work.storage, work.folder, work.file, schema, schema.names)
    return write_versions(work.storage, work.folder, work.table, rows)
