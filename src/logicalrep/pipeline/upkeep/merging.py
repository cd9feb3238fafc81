"""The merging of a table's files: the task, and the commit of its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, read_rows, write_rows
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector
from logicalrep.pipeline.storage.storage import Storage, below
from logicalrep.pipeline.upkeep.policy import due_files

_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Merge:
    """Files to rewrite without their marked rows, into as few files as possible."""

    storage: Storage
    folder: str
    table: TableSpec
    files: tuple[DataFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class Merged:
    """New files, and the files with the same rows in the same order that they replace."""

    added: list[DataFile]
    removed: tuple[DataFile, ...]


def due_merge(stored: StoredTable) -> Merge | None:
    """Return the next merge of a table; None if none is due."""
    if not stored.does_upkeep:
        return None
    files = due_files(stored.table, stored.files.values(), stored.storage.limits)
    return Merge(stored.storage, stored.folder, stored.table, files) if files else None


def merge_files(work: Merge) -> Merged:
    """Merge as many of the files as fill one file: each merge leaves fewer files that are not full.

    Raises:
        DamagedError: a file is missing or damaged.
        StorageError: the destination cannot be read or written.
    """
    schema, size = work.table.moved, 0
    rows: list[pa.Table] = []
    for file in work.files:
        rows.append(read_rows(work.storage, work.folder, file, schema, schema.names))
        size += rows[-1].nbytes
        if size >= work.storage.limits.file_bytes:
            break
    added = write_rows(work.storage, work.folder, work.table.stored, pa.concat_tables(rows), work.table.file_partitions)
    return Merged(added, work.files[: len(rows)])


def commit_merged(stored: StoredTable, work: Merge, merged: Merged) -> bool:
    """Replace the merged files in one commit; return False if a batch has rewritten one of them.

    Rows that batches have marked since are marked in the new files. If a batch has rewritten one of the files, or the
    table has another description, the new files are deleted. Raises the errors of a commit.
    """
    added, removed = merged.added, [stored.files.get(file.path) for file in merged.removed]
    replaced_files = [file for file in removed if file is not None]
    if len(replaced_files) < len(removed) or stored.table != work.table:
        delete_merged(stored, merged)
        return False
    marked_rows = _newly_marked_rows(stored, merged.removed, replaced_files)
    if len(marked_rows):
        bounds = np.cumsum([0, *(file.rows for file in added)])
        parts = [marked_rows[(marked_rows >= first) & (marked_rows < end)] - first for first, end in pairwise(bounds)]
        added = [
            replace(file, vector=DeletionVector.of(rows)) if len(rows) else file
            for file, rows in zip(added, parts, strict=True)
        ]
    stored.exchange(added, replaced_files)
    return True


def _newly_marked_rows(stored: StoredTable, old_files: Sequence[DataFile], new_files: Sequence[DataFile]) -> _Ints:
    """Return the newly marked rows, by their numbers among the old files' unmarked rows."""
    parts, first = [np.zeros(0, np.int64)], 0
    for old, new in zip(old_files, new_files, strict=True):
        if new.vector is not None and not new.is_same(old):
            marked = [
                np.zeros(0, np.int64) if vector is None else vector.read(stored.storage, stored.folder)
                for vector in (old.vector, new.vector)
            ]
            new_marks = np.setdiff1d(marked[1], marked[0])
            parts.append(first + new_marks - np.searchsorted(marked[0], new_marks))
        first += old.live_rows
    return np.concatenate(parts)


def delete_merged(stored: StoredTable, merged: Merged) -> None:
    """Delete the new files of a merge, except files that a commit whose answer was lost put into the table."""
    for file in merged.added:
        if file.path not in stored.files:
            stored.storage.delete(below(stored.folder, file.path))


def merge_next(stored: StoredTable, engine: Engine) -> bool:
    """Run and commit the next merge of a table; return False if none is due. Raises the errors of both."""
    work = due_merge(stored)
    if work is None:
        return False
    (merged,) = engine.run(merge_files, [work], work.size)
    commit_merged(stored, work, merged)
    return True
