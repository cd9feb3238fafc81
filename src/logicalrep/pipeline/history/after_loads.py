"""The rows that stay after a reload: marked rows, past versions, and changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.pipeline.apply.ending import end_rows, first_versions, is_current
from logicalrep.pipeline.apply.events import Positions
from logicalrep.pipeline.apply.rewriting import write_versions
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.history.matching import Matching, are_carried, converted, matched
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, read_rows
from logicalrep.pipeline.storage.storage import Storage

_Ints = NDArray[np.int64]


def write_marked_files(
    previous: StoredTable, table: TableSpec, loaded: Sequence[DataFile], position: Positions, engine: Engine
) -> list[DataFile]:
    """Return files with the previous rows that the load lacks, marked as deleted; none if the key changed."""
    if previous.table.key != table.key or not are_carried(previous.table, table, table.key_names):
        return []
    old = list(previous.files.values())
    work = Matching(previous.storage, previous.folder, previous.table, old, previous.folder, table, loaded)
    rows = matched(work, engine).old
    items = [_FileTask(work, file, numbers, position) for file, numbers in zip(old, rows, strict=True) if len(numbers)]
    return _write_all(_write_marked, items, engine)


def write_version_files(
    storage: Storage,
    folder: str,
    previous: StoredTable | None,
    loaded_folder: str,
    table: TableSpec,
    loaded: Sequence[DataFile],
    position: Positions,
    engine: Engine,
) -> list[DataFile]:
    """Return the files of a history after a load: at its position differing versions end, and new versions begin."""
    old = [] if previous is None else list(previous.files.values())
    previous_spec = table if previous is None else previous.table
    work = Matching(storage, folder, previous_spec, old, loaded_folder, table, loaded)
    unmatched = matched(work, engine)
    # If the table no longer marks rows, its files must not have deletion vectors.
    is_other = not _has_same_files(previous_spec, table) or previous_spec.marks_rows > table.marks_rows
    changed = {file.path for file, rows in zip(old, unmatched.old, strict=True) if len(rows) or is_other}
    return [
        *(file for file in old if file.path not in changed),
        *write_closed_files(work, unmatched.old, position, engine, writes_all=is_other),
        *write_begun_files(work, unmatched.new, position, engine),
    ]


def write_closed_files(
    work: Matching, rows: Sequence[_Ints], position: Positions, engine: Engine, *, writes_all: bool = False
) -> list[DataFile]:
    """Rewrite the old files with rows that end at a position; `rows` has their numbers for each old file."""
    items = [
        _FileTask(work, file, numbers, position)
        for file, numbers in zip(work.old, rows, strict=True)
        if len(numbers) or writes_all
    ]
    return _write_all(_write_closed, items, engine)


def write_begun_files(work: Matching, rows: Sequence[_Ints], position: Positions, engine: Engine) -> list[DataFile]:
    """Write loaded rows as versions that begin at a position; `rows` has their numbers for each loaded file."""
    items = [
        _FileTask(work, file, numbers, position) for file, numbers in zip(work.new, rows, strict=True) if len(numbers)
    ]
    return _write_all(_write_begun, items, engine)


def write_change_files(previous: StoredTable, table: TableSpec, engine: Engine) -> list[DataFile]:
    old = list(previous.files.values())
    if _has_same_files(previous.table, table):
        return old
    work = Matching(previous.storage, previous.folder, previous.table, old, previous.folder, table, ())
    nowhere = Positions(*(np.zeros(1, np.int64) for _ in range(3)))
    items = [_FileTask(work, file, np.zeros(0, np.int64), nowhere) for file in old]
    return _write_all(_write_converted, items, engine)


@dataclass(frozen=True)
class _FileTask:
    work: Matching
    file: DataFile
    rows: _Ints
    position: Positions


def _write_all(
    write: Callable[[_FileTask], list[DataFile]], items: Sequence[_FileTask], engine: Engine
) -> list[DataFile]:
    file_lists = engine.run(write, items, sum(item.file.size for item in items))
    return [file for files in file_lists for file in files]


def _read(item: _FileTask) -> pa.Table:
    work = item.work
    stored = work.previous_spec.stored
    rows = read_rows(work.storage, work.old_folder, item.file, stored, stored.names)
    return converted(rows, work.previous_spec, work.table)


def _write_marked(item: _FileTask) -> list[DataFile]:
    work, rows = item.work, _read(item).take(pa.array(item.rows))
    rows = end_rows(rows, work.table, item.position, is_current(rows, "marked"))
    return write_versions(work.storage, work.folder, work.table, rows)


def _write_closed(item: _FileTask) -> list[DataFile]:
    work, rows = item.work, _read(item)
    is_ended = np.zeros(rows.num_rows, bool)
    is_ended[item.rows] = True
    return write_versions(
        work.storage, work.old_folder, work.table, end_rows(rows, work.table, item.position, is_ended)
    )


def _write_begun(item: _FileTask) -> list[DataFile]:
    work, schema = item.work, item.work.table.schema
    rows = read_rows(work.storage, work.folder, item.file, schema, schema.names).take(pa.array(item.rows))
    return write_versions(
        work.storage, work.old_folder, work.table, first_versions(rows, work.table.stored, item.position)
    )


def _write_converted(item: _FileTask) -> list[DataFile]:
    return write_versions(item.work.storage, item.work.folder, item.work.table, _read(item))


def _has_same_files(previous_spec: TableSpec, table: TableSpec) -> bool:
    is_same = previous_spec.stored == table.stored and previous_spec.partitions == table.partitions
    return is_same and previous_spec.attnums == table.attnums and are_carried(previous_spec, table, table.names)
