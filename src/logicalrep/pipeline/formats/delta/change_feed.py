"""Delta's change data feed: files with the rows that a commit removed, added and updated.

Source: "Add CDC File" and "Change Data Files" in the Delta Transaction Log Protocol.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.pipeline.schema.row_keys import row_keys
from logicalrep.pipeline.schema.row_texts import row_texts
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, open_data_file, read_rows, row_parts, write_parquet
from logicalrep.pipeline.storage.parting import parted
from logicalrep.pipeline.storage.storage import Storage

FOLDER = "_change_data"
"""The folder of the files, within the table's folder."""
_TYPE = pa.field("_change_type", pa.string())
_Ints = NDArray[np.int64]


def write_change_files(
    storage: Storage, folder: str, table: TableSpec, added: Sequence[DataFile], removed: Sequence[DataFile]
) -> list[DataFile]:
    """Write the net changes of a commit; return the files, none if the commit changes no row.

    A key with another row before and after the commit has a pre-image and a post-image. A change of a key, and each
    change without a key, is a delete and an insert. Memory holds a share of the rows at a time.

    Args:
        storage: the destination.
        folder: the table's folder.
        table: the description of the table before and after the commit.
        added: the files that the commit adds.
        removed: the files that the commit removes; a file in both gets more marked rows.

    Raises:
        DamagedError: a data file is missing or damaged.
        StorageError: the destination cannot be read or written.
    """
    marked = {file.path: file for file in added}
    removed_paths = {file.path for file in removed}
    new_files = [file for file in added if file.path not in removed_paths]
    # A file that only gets marks is read at the marked rows.
    size = sum(file.size for file in (*new_files, *(file for file in removed if file.path not in marked)))
    shares = size // storage.limits.matched_bytes + 1
    files: list[DataFile] = []
    for share in range(shares):
        old = [_removed_rows(storage, folder, table, file, marked.get(file.path)) for file in removed]
        new = [read_rows(storage, folder, file, table.stored, table.stored.names) for file in new_files]
        if shares > 1:
            old, new = ([_share(table, rows, share, shares) for rows in tables] for tables in (old, new))
        empty = table.stored.empty_table()
        changes = changed_rows(table, pa.concat_tables([empty, *old]), pa.concat_tables([empty, *new]))
        files += _write(storage, folder, table, changes)
    return files


def changed_rows(table: TableSpec, old: pa.Table, new: pa.Table) -> pa.Table:
    """Return the differences between the rows before and after a commit, with the column `_change_type`."""
    old_ids, new_ids = _numbered(row_texts(old.columns), row_texts(new.columns))
    old_rest, new_rest = _surplus(old_ids, new_ids), _surplus(new_ids, old_ids)
    old, new = old.take(pa.array(old_rest)), new.take(pa.array(new_rest))
    is_updated, is_result = np.zeros(old.num_rows, bool), np.zeros(new.num_rows, bool)
    if table.key is not None:
        old_keys, new_keys = _numbered(row_keys(table, old), row_keys(table, new))
        is_updated[:], is_result[:] = True, True
        is_updated[_surplus(old_keys, new_keys)], is_result[_surplus(new_keys, old_keys)] = False, False
    typed = [
        (old, ~is_updated, "delete"),
        (old, is_updated, "update_preimage"),
        (new, is_result, "update_postimage"),
        (new, ~is_result, "insert"),
    ]
    parts = [rows.filter(pa.array(selected)) for rows, selected, _ in typed]
    types = [pa.repeat(pa.scalar(name), rows.num_rows) for rows, (_, _, name) in zip(parts, typed, strict=True)]
    return pa.concat_tables(parts).append_column(_TYPE, pa.chunked_array(types))


def _removed_rows(storage: Storage, folder: str, table: TableSpec, file: DataFile, marked: DataFile | None) -> pa.Table:
    schema = table.stored
    if marked is None or marked.vector is None:
        return read_rows(storage, folder, file, schema, schema.names)
    # Rows that earlier commits marked stay left out.
    numbers = marked.vector.read(storage, folder)
    with open_data_file(storage, folder, file, len(numbers)) as opened:
        return opened.restricted_to(numbers).read(schema, schema.names)


def _share(table: TableSpec, rows: pa.Table, share: int, shares: int) -> pa.Table:
    """Return the rows whose keys belong to a share."""
    texts = row_texts([row_keys(table, rows)]).to_pylist()
    numbers = np.fromiter(map(crc32, texts), np.int64, len(texts))
    return rows.filter(pa.array(numbers % shares == share))


def _write(storage: Storage, folder: str, table: TableSpec, rows: pa.Table) -> Iterator[DataFile]:
    partitions = table.file_partitions
    for partition, partition_rows in parted(partitions, rows):
        for part in row_parts(partition_rows, storage.limits):
            path = f"{FOLDER}/cdc-{uuid.uuid4().hex}.parquet"
            yield write_parquet(storage, folder, path, rows.schema, part, partitions, partition)


def _numbered(old: pa.Array | pa.ChunkedArray, new: pa.Array | pa.ChunkedArray) -> tuple[_Ints, _Ints]:
    """Return a number for each value, equal for equal values."""
    whole = [values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values for values in (old, new)]
    numbers = pa.concat_arrays(whole).dictionary_encode("encode").indices.to_numpy(zero_copy_only=False)
    return numbers[: len(old)].astype(np.int64), numbers[len(old) :].astype(np.int64)


def _surplus(numbers: _Ints, taken: _Ints) -> _Ints:
    """Return the indexes of the numbers that are left after each of `taken` has removed an equal number."""
    if not len(numbers):
        return np.zeros(0, np.int64)
    counts = np.bincount(taken, minlength=int(numbers.max()) + 1)
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    rank = np.arange(len(ordered)) - np.repeat(starts, np.diff(starts, append=len(ordered)))
    return np.sort(order[rank >= counts[ordered]])
