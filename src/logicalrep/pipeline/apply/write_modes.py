"""The change of a stored table's write mode, which leaves its rows as they are."""

from __future__ import annotations

from dataclasses import dataclass, replace

from logicalrep.pipeline.apply.rewriting import write_versions
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.spec.table_settings import WriteMode
from logicalrep.pipeline.spec.table_spec import TableSpec
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
    work = [_RowsThere(stored.storage, stored.folder, table, file) for file in marked]
    done = engine.run(_write_rows_there, work, sum(file.size for file in marked))
    stored.describe(table, [file for files in done for file in files], marked)
    return len(marked)


@dataclass(frozen=True)
class _RowsThere:
    storage: Storage
    folder: str
    table: TableSpec
    file: DataFile


def _write_rows_there(work: _RowsThere) -> list[DataFile]:
    schema = work.table.stored
    rows = read_rows(work.storage, work.folder, work.file, schema, schema.names)
    return write_versions(work.storage, work.folder, work.table, rows)
