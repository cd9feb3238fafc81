"""The merging of a table's small files, as far as that gives fewer of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from logicalrep.pipeline.spec.forms import END
from logicalrep.pipeline.spec.table_spec import TableSpec
from logicalrep.pipeline.storage import data_files
from logicalrep.pipeline.storage.data_files import DataFile, read_rows, write_rows
from logicalrep.pipeline.storage.storage import Storage

_SMALL = 16 << 20
"""Files below this size are merged."""
_MERGED = range(8, 17)
"""The least and the most number of files that are merged at once."""


@dataclass(frozen=True)
class Merge:
    """Files that are to become fewer."""

    storage: Storage
    folder: str
    table: TableSpec
    files: tuple[DataFile, ...]


def files_to_merge(table: TableSpec, files: Collection[DataFile]) -> tuple[DataFile, ...]:
    """Return the files of a table that are to be merged at once, neighbours by the first column of the key; or none.

    The smallest stays apart, as it takes in new rows. A file of narrow rows, or of such that compress well, is small on
    the disk and full all the same: merged with others it would become as many files again.
    """
    name = table.key_names[0] if table.key_names else ""
    small = [file for file in files if file.size < _SMALL and not file.is_full]
    small = sorted(small, key=lambda file: file.size)[1:]
    if table.form == "history":
        # Ended versions of rows never change; current ones do. They are kept in different files.
        past = [file for file in small if not file.statistics.nulls.get(END["history"], 1)]
        small = max(past, [file for file in small if file not in past], key=len)
    if len(small) < _MERGED.start:
        return ()
    small.sort(key=lambda file: (name not in file.statistics.least, file.statistics.least.get(name)))
    return tuple(small[: _MERGED.stop - 1])


@dataclass(frozen=True)
class Merged:
    """Files, and those with the same rows in whose place they are."""

    added: list[DataFile]
    removed: tuple[DataFile, ...]


def merge_files(work: Merge) -> Merged:
    """Merge so many of the files that their rows fill one: each merge leaves fewer files that are not full."""
    schema, size = work.table.stored, 0
    rows: list[pa.Table] = []
    for file in work.files:
        rows.append(read_rows(work.storage, work.folder, file, schema, schema.names))
        size += rows[-1].nbytes
        if size >= data_files.MOST_BYTES:
            break
    added = write_rows(work.storage, work.folder, schema, pa.concat_tables(rows))
    return Merged(added, work.files[: len(rows)])
