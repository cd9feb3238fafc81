"""The table must be at the position of the load's snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.pipeline.apply.ending import end_rows, is_current, may_have_current_rows
from logicalrep.pipeline.apply.events import Positions
from logicalrep.pipeline.apply.rewriting import write_versions
from logicalrep.pipeline.catalog.lost_partitions import LostPartitions
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.formats.stored_table import Position, StoredTable
from logicalrep.pipeline.history.after_loads import write_begun_files, write_closed_files
from logicalrep.pipeline.history.companion import damaged, position_of
from logicalrep.pipeline.history.matching import Matching, matched
from logicalrep.pipeline.load.snapshot_copy import CopiedTable
from logicalrep.pipeline.schema.forms import END_COLUMN
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, read_rows
from logicalrep.pipeline.storage.storage import DamagedError
from logicalrep_runtime.scalars import Lsn


def replace_rows_by_key(
    stored: StoredTable, described: TableSpec, loaded: CopiedTable, folder: str, application: str, engine: Engine
) -> None:
    """Replace the rows with keys of loaded rows, and the rows within the bounds of lost partitions, in one commit; no
    version of the table has the loaded rows yet.

    Rows that the server no longer has are removed or marked. In a history, versions that differ end at the load's
    position; `~changes` keeps its rows. Raises DamagedError, CompanionDamagedError or StorageError.
    """
    is_described = stored.table == described
    if is_described and (loaded.part is None or any(file.path in stored.files for file in loaded.files)):
        return  # An earlier attempt succeeded, but its answer was lost, or the process ended after it.
    added: list[DataFile] = []
    removed: list[DataFile] = []
    try:
        if described.form == "history":
            added, removed = _replaced_versions(stored, described, loaded, folder, engine)
        elif described.form != "changes":
            added, removed = _replaced_rows(stored, described, loaded, folder, engine)
    except DamagedError as error:
        if described.companion is None:
            raise
        raise damaged(stored.folder, error) from None
    position = Position(application, Lsn(loaded.position - 1))
    if is_described:
        stored.commit(added, removed, position)
    else:
        stored.describe(described, added, removed, position=position)


def _replaced_rows(
    stored: StoredTable, table: TableSpec, loaded: CopiedTable, folder: str, engine: Engine
) -> tuple[list[DataFile], list[DataFile]]:
    old = _files_to_change(list(stored.files.values()), table, loaded)
    work = Matching(stored.storage, stored.folder, table, old, folder, table, loaded.files, by_key=True)
    unloaded = matched(work, engine).old
    present = unloaded
    if isinstance(loaded.part, LostPartitions):
        present = _rows_beyond(work, loaded.part, engine)
    elif loaded.deleted_keys:
        present = matched(replace(work, new=loaded.deleted_keys), engine).old
    staying = [
        _StayingRows(work, file, rows, np.setdiff1d(rows, present_rows), position_of(loaded))
        for file, rows, present_rows in zip(old, unloaded, present, strict=True)
        if len(np.intersect1d(rows, present_rows)) < file.live_rows
    ]
    size = sum(item.file.size for item in staying)
    written = [file for files in engine.run(_write_staying_rows, staying, size) for file in files]
    return [*written, *loaded.files], [item.file for item in staying]


def _replaced_versions(
    stored: StoredTable, table: TableSpec, loaded: CopiedTable, folder: str, engine: Engine
) -> tuple[list[DataFile], list[DataFile]]:
    current = [file for file in stored.files.values() if may_have_current_rows(file, "history")]
    old = _files_to_change(current, table, loaded)
    work = Matching(stored.storage, stored.folder, table, old, folder, table, loaded.files)
    by_key = replace(work, new=[*loaded.files, *loaded.deleted_keys], by_key=True)
    differing, untouched = matched(work, engine), matched(by_key, engine).old
    if isinstance(loaded.part, LostPartitions):
        beyond = _rows_beyond(work, loaded.part, engine)
        untouched = [np.intersect1d(*rows) for rows in zip(untouched, beyond, strict=True)]
    ending = [np.setdiff1d(rows, untouched_rows) for rows, untouched_rows in zip(differing.old, untouched, strict=True)]
    removed = [file for file, rows in zip(old, ending, strict=True) if len(rows)]
    position = position_of(loaded)
    return [
        *write_closed_files(work, ending, position, engine),
        *write_begun_files(work, differing.new, position, engine),
    ], removed


def _files_to_change(files: Sequence[DataFile], table: TableSpec, loaded: CopiedTable) -> list[DataFile]:
    """Return the files that may have rows to replace or to remove."""
    changed = _files_that_may_share_keys(files, table, [*loaded.files, *loaded.deleted_keys])
    part = loaded.part
    if not isinstance(part, LostPartitions):
        return changed
    paths = {file.path for file in changed}
    return [
        file
        for file in files
        if file.path in paths or part.may_be_in_file(file.statistics.least, file.statistics.greatest, table)
    ]


@dataclass(frozen=True)
class _BoundsTask:
    work: Matching
    lost: LostPartitions
    file: DataFile


def _rows_beyond(work: Matching, lost: LostPartitions, engine: Engine) -> list[NDArray[np.int64]]:
    """Return for each old file the numbers of the rows that are not within the bounds of lost partitions, or ended."""
    tasks = [_BoundsTask(work, lost, file) for file in work.old]
    return engine.run(_read_rows_beyond, tasks, sum(file.size for file in work.old))


def _read_rows_beyond(task: _BoundsTask) -> NDArray[np.int64]:
    work, table = task.work, task.work.table
    end_columns = [END_COLUMN[table.form]] if table.form in END_COLUMN else []
    names = [*task.lost.stored_columns(table), *end_columns]
    rows = read_rows(work.storage, work.old_folder, task.file, table.stored, names)
    within = task.lost.are_within(rows, table)
    if end_columns:
        within &= is_current(rows, table.form)
    return np.flatnonzero(~within)


def _files_that_may_share_keys(
    files: Sequence[DataFile], table: TableSpec, loaded: Sequence[DataFile]
) -> list[DataFile]:
    return [file for file in files if any(_may_share_keys(file, other, table.key_names) for other in loaded)]


def _may_share_keys(file: DataFile, other: DataFile, key: Sequence[str]) -> bool:
    statistics, other_statistics = file.statistics, other.statistics
    return all(
        _bound(statistics.least[name]) <= _bound(other_statistics.greatest[name])
        and _bound(other_statistics.least[name]) <= _bound(statistics.greatest[name])
        for name in key
        if name in statistics.least and name in other_statistics.least
    )


def _bound(value: Any) -> Any:
    # Some programs store bounds of times with fewer digits.
    return value.replace(microsecond=0) if isinstance(value, datetime) else value


@dataclass(frozen=True)
class _StayingRows:
    work: Matching
    file: DataFile
    rows: NDArray[np.int64]
    """The numbers of the rows that stay in the table."""
    removed: NDArray[np.int64]
    """The numbers of the rows that the server no longer has: they are removed, or marked as deleted."""
    position: Positions


def _write_staying_rows(item: _StayingRows) -> list[DataFile]:
    work, moved = item.work, item.work.table.moved
    if work.table.form == "rows" and len(item.removed) == len(item.rows):
        return []
    rows = read_rows(work.storage, work.old_folder, item.file, moved, moved.names).take(pa.array(item.rows))
    is_removed = np.isin(item.rows, item.removed)
    if work.table.form == "marked":
        rows = end_rows(rows, work.table, item.position, is_removed & is_current(rows, "marked"))
    elif is_removed.any():
        rows = rows.filter(pa.array(~is_removed))
    return write_versions(work.storage, work.old_folder, work.table, rows)
