"""The rewriting of files with changed rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.pipeline.apply.ending import Ending, is_current, read_ending_files
from logicalrep.pipeline.apply.reduction import Reduced
from logicalrep.pipeline.engines.engine import Shared
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.index.key_index import IndexedRows
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.field_ids import ROW_ID
from logicalrep.pipeline.schema.forms import END_COLUMN
from logicalrep.pipeline.schema.row_keys import row_keys
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, OpenedFile, open_data_file, write_rows
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector
from logicalrep.pipeline.storage.parting import split_off
from logicalrep.pipeline.storage.row_lineage import as_new_rows
from logicalrep.pipeline.storage.storage import Storage

_Ints = NDArray[np.int64]

EQUAL_KEYS = "two rows of its copy have the same key"


@dataclass(frozen=True)
class Rewriting:
    """Files to search for removed rows, and rows to write."""

    storage: Storage
    folder: str
    table: TableSpec
    files: Sequence[DataFile]
    reduced: Shared[Reduced]
    writes_new: bool
    """Whether this task writes the new rows too."""
    growing: Sequence[DataFile] = ()
    """Small files, at most one of each file partition, that take in new rows: it bounds the number of small files."""
    returns_rows: bool = False
    """Whether the task may return unwritten rows, so that the rows of several tasks share one file."""
    indexed_rows: Mapping[str, IndexedRows] = field(default_factory=dict)
    """By file, the rows that may be removed; in other files, every row may be."""


@dataclass(frozen=True)
class Rewritten:
    """The files that replace others, and the number of removed rows that were found."""

    added: list[DataFile]
    """New files, and files with more marked rows."""
    removed: list[DataFile]
    found_count: int
    rows: pa.Table | None = None
    """Rows still to be written; None if all are."""
    unfit: Mapping[str, int] = field(default_factory=dict)
    """The number of values of the changes that their column's type cannot hold, by column name."""


def rewrite(work: Rewriting) -> Rewritten:
    """Rewrite the files with removed rows; each gets the replacements of its own rows.

    In a table that marks rows, a large file with few removed rows gets marks instead, and replacements are new rows.
    """
    reduced, table = work.reduced.value, work.table
    moved = table.moved
    missing_counts = reduced.removed_counts.copy()
    ends = np.cumsum(reduced.removed_counts)
    has_origin = reduced.origins >= 0
    # The rows that replace a removed row, in the order of the removed rows.
    stemming = np.flatnonzero(has_origin)
    stemming = stemming[np.argsort(reduced.origins[stemming], kind="stable")]
    origins = reduced.origins[stemming]
    added: list[DataFile] = []
    removed: list[DataFile] = []
    new = as_new_rows(reduced.rows.filter(pa.array(~has_origin & work.writes_new)), moved)
    # Replacements of marked rows go into the files that take in new rows, so these files come last.
    grown = {file.path for file in work.growing}
    for file in sorted(work.files, key=lambda file: file.path in grown):
        growth = new.slice(0, 0)
        if file.path in grown:
            growth, new = split_off(table.file_partitions, new, file.partition)
        indexed = work.indexed_rows.get(file.path)
        row_count = None if indexed is None else len(indexed.numbers)
        with open_data_file(work.storage, work.folder, file, row_count) as opened:
            searched = opened if indexed is None else opened.restricted_to(indexed.numbers)
            key_numbers = _key_numbers(searched, table, reduced, indexed)
            hits, numbers = find_hits(key_numbers, ends, missing_counts)
            if table.key is not None:
                _refuse_equal_keys(reduced, key_numbers[key_numbers >= 0], numbers)
            is_grown = growth.num_rows > 0
            if not len(hits) and not is_grown:
                continue
            first = np.searchsorted(origins, numbers)
            counts = np.searchsorted(origins, numbers, side="right") - first
            replacing = stemming[np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
            order = np.argsort(replacing)
            bases, replacing = np.repeat(hits, counts)[order], replacing[order]
            is_marked = not is_grown and _is_to_be_marked(table, file, len(hits), work.storage.limits)
            if is_marked:
                names = [*_holes(reduced, replacing), *table.lineage_names]
                rows, marked_rows = searched.read(moved, names), searched.deleted_with(hits)
            else:
                rows, marked_rows = opened.read(moved, moved.names), None
                hits, bases = (np.searchsorted(opened.numbers, searched.numbers[indices]) for indices in (hits, bases))
        replacements = [_replacements(reduced, table, rows, bases, replacing)] if len(replacing) else []
        removed.append(file)
        if marked_rows is not None:
            added.append(replace(file, vector=DeletionVector.of(marked_rows)))
            new = pa.concat_tables([new, *replacements])
            continue
        stays = np.ones(rows.num_rows, bool)
        stays[hits] = False
        # Hold the file's rows only once while they are written.
        rows = rows.filter(pa.array(stays))
        parts = [rows, *replacements]
        if is_grown:
            parts.append(growth)
        added += write_versions(work.storage, work.folder, table, pa.concat_tables(parts))
    is_returned = work.returns_rows and new.nbytes <= work.storage.limits.returned_bytes
    if not is_returned:
        added += write_versions(work.storage, work.folder, table, new)
    found_counts = reduced.removed_counts - missing_counts
    count = int((found_counts[~reduced.is_marked] if reduced.are_marked else found_counts).sum())
    return Rewritten(added, removed, count, new if is_returned else None)


def _key_numbers(searched: OpenedFile, table: TableSpec, reduced: Reduced, indexed: IndexedRows | None) -> _Ints:
    """Return for each searched row of a file the number of its key among the removed keys; -1 for other rows."""
    if not len(reduced.removed_keys):
        return np.empty(0, np.int64)
    if indexed is None or indexed.keys is None:
        keys = row_keys(table, searched.read(table.stored, table.key_names))
    else:
        keys = indexed.keys.take(pa.array(np.searchsorted(indexed.numbers, searched.numbers)))
    key_numbers: _Ints = pc.index_in(keys, value_set=reduced.removed_keys).fill_null(-1).to_numpy().astype(np.int64)
    if table.form in END_COLUMN and (key_numbers >= 0).any():
        current = is_current(searched.read(table.stored, [END_COLUMN[table.form]]), table.form)
        key_numbers[current == reduced.is_marked[key_numbers] if reduced.are_marked else ~current] = -1
    return key_numbers


def _refuse_equal_keys(reduced: Reduced, matched: _Ints, hits: _Ints) -> None:
    """Raise NeedsResync if a file has another row with a removed key: nothing shows which one the change is of.

    A table has such rows if a dropped partition's rows were inserted again before replicate removed them.
    """
    if reduced.are_marked:
        # Several rows that are marked as deleted may have the same key.
        matched, hits = (numbers[~reduced.is_marked[numbers]] for numbers in (matched, hits))
    if len(matched) > len(hits):
        raise NeedsResync(EQUAL_KEYS)


def _is_to_be_marked(table: TableSpec, file: DataFile, count: int, limits: Limits) -> bool:
    is_large, stay = file.size > limits.small_file_bytes, file.live_rows - count
    return table.marks_rows and is_large and limits.marked_share * (file.rows - stay) < file.rows


def _holes(reduced: Reduced, replacing: _Ints) -> list[str]:
    return [name for name, holes in reduced.holes.items() if holes[replacing].any()]


def end_files(work: Ending) -> Rewritten:
    """Rewrite the files with current rows: all of these rows end."""
    changed = read_ending_files(work)
    added = [file for _, rows in changed for file in write_versions(work.storage, work.folder, work.table, rows)]
    return Rewritten(added, [file for file, _ in changed], 0)


def write_versions(storage: Storage, folder: str, table: TableSpec, rows: pa.Table) -> list[DataFile]:
    """Write rows; past versions, which never change again, get files of their own."""
    parts = [rows]
    if table.form == "history":
        current = is_current(rows, table.form)
        parts = [rows.filter(pa.array(is_part)) for is_part in (current, ~current)]
    return [file for part in parts for file in write_rows(storage, folder, table.stored, part, table.file_partitions)]


def find_hits(key_numbers: _Ints, ends: _Ints, missing_counts: _Ints) -> tuple[_Ints, _Ints]:
    """Return the removed rows of a file, at most as many as are missing, and their numbers among all removed rows.

    Args:
        key_numbers: for each row of the file, the number of its key among the removed keys; -1 for other rows.
        ends: the cumulated numbers of removed rows by key.
        missing_counts: for each key, the number of removed rows that no file had yet; reduced by the found rows.
    """
    rows = np.flatnonzero(key_numbers >= 0)
    if not len(rows):
        return rows, rows
    rows = rows[np.argsort(key_numbers[rows], kind="stable")]
    hit_keys = key_numbers[rows]
    starts = np.flatnonzero(np.diff(hit_keys, prepend=-1))
    rank = np.arange(len(hit_keys)) - np.repeat(starts, np.diff(starts, append=len(hit_keys)))
    is_hit = rank < missing_counts[hit_keys]
    rows, hit_keys, rank = rows[is_hit], hit_keys[is_hit], rank[is_hit]
    numbers = ends[hit_keys] - missing_counts[hit_keys] + rank
    np.subtract.at(missing_counts, hit_keys, 1)
    return rows, numbers


def _replacements(reduced: Reduced, table: TableSpec, base: pa.Table, bases: _Ints, replacing: _Ints) -> pa.Table:
    """Return the replacements of a file's rows; unsent values, and ids, come from the replaced rows."""
    rows = reduced.rows.take(pa.array(replacing))
    columns: dict[str, pa.ChunkedArray] = {}
    for name in rows.column_names:
        column = rows.column(name)
        holes = reduced.holes.get(name)
        if holes is not None and holes[replacing].any():
            both = pa.chunked_array([*column.chunks, *base.column(name).chunks], column.type)
            own = np.arange(len(replacing))
            column = both.take(pa.array(np.where(holes[replacing], len(replacing) + bases, own)))
        columns[name] = column
    replacements = as_new_rows(pa.table(columns, schema=rows.schema), table.moved)
    if not table.settings.has_row_lineage:
        return replacements
    # If several rows come from one row, as when a version ends, the last one is the row itself: its end follows.
    number = table.moved.get_field_index(ROW_ID)
    is_same_row = np.zeros(len(bases), bool)
    is_same_row[len(bases) - 1 - np.unique(bases[::-1], return_index=True)[1]] = True
    ids = base.column(ROW_ID).take(pa.array(bases, mask=~is_same_row))
    return replacements.set_column(number, table.moved.field(number), ids)
