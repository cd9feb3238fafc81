"""The change of a stored table's file partitions, which leaves its rows as they are."""

from __future__ import annotations

from dataclasses import dataclass, replace

from logicalrep.pipeline.apply.rewriting import write_versions
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.spec.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, read_rows
from logicalrep.pipeline.storage.storage import Storage


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
    if stored.table == table:
        return 0  # The earlier try had succeeded, though its answer was lost, or the process ended after it.
    files = [] if stored.table.partitions == table.partitions else list(stored.files.values())
    work = [_Divided(stored.storage, stored.folder, stored.table, table, file) for file in files]
    done = engine.run(_divide, work, sum(file.size for file in files))
    stored.describe(table, [file for each in done for file in each], files)
    return len(files)


@dataclass(frozen=True)
class _Divided:
    storage: Storage
    folder: str
    before: TableSpec
    after: TableSpec
    file: DataFile


def _divide(work: _Divided) -> list[DataFile]:
    schema = work.before.stored
    rows = read_rows(work.storage, work.folder, work.file, schema, schema.names)
    return write_versions(work.storage, work.folder, work.after, rows)
