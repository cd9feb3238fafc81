"""The rewriting of the files that have changed rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.pipeline.apply.ending import Ending, are_there, changed_files
from logicalrep.pipeline.apply.reduction import Reduced
from logicalrep.pipeline.engines.engine import Shared
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.forms import END
from logicalrep.pipeline.schema.row_keys import row_keys
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, OpenedFile, open_data_file, write_rows
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector
from logicalrep.pipeline.storage.parting import split_off
from logicalrep.pipeline.storage.storage import Storage

_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Rewriting:
    """Files to be searched for rows that are gone, and the rows to be written."""

    storage: Storage
    folder: str
    table: TableSpec
    files: Sequence[DataFile]
    reduced: Shared[Reduced]
    writes_new: bool
    """Whether the new rows are written too."""
    grown: Sequence[DataFile] = ()
    """Small files, one of a file partition, that take in its new rows: so there are not ever more small files."""
    returns_rows: bool = False
    """Whether rows that are in no file yet may be returned, so that those of several tasks get one file."""
    found: Mapping[str, _Ints] = field(default_factory=dict)
    """The rows of some files that may be gone, by their numbers in the file, in order; all rows of others may be."""


@dataclass(frozen=True)
class Rewritten:
    """The files that take the place of others, and how many of the gone rows were found."""

    added: list[DataFile]
    """New files, and files of which more rows are marked."""
    removed: list[DataFile]
    found: int
    rows: pa.Table | None = None
    """Rows that are to be written; None if all are."""
    unfit: Mapping[str, int] = field(default_factory=dict)
    """The number of values of the changes that their column's type cannot hold, by the names of columns."""


def rewrite(work: Rewriting) -> Rewritten:
    """Write the files anew that have rows which are gone, each with the rows that replace them.

    A table that marks rows has those of large files marked if not too many go; what replaces them is a new row.
    """
    reduced, table = work.reduced.value, work.table
    stored = table.stored
    left = reduced.gone_counts.copy()
    ends = np.cumsum(reduced.gone_counts)
    has_origin = reduced.origins >= 0
    # The rows that stem from one that is gone, in the order of these.
    stemming = np.flatnonzero(has_origin)
    stemming = stemming[np.argsort(reduced.origins[stemming], kind="stable")]
    origins = reduced.origins[stemming]
    added: list[DataFile] = []
    removed: list[DataFile] = []
    new = reduced.rows.filter(pa.array(~has_origin)) if work.writes_new else reduced.rows.slice(0, 0)
    # Rows that replace marked ones come into the files that take in new rows.
    grown = {file.path for file in work.grown}
    for file in sorted(work.files, key=lambda file: file.path in grown):
        growth = new.slice(0, 0)
        if file.path in grown:
            growth, new = split_off(table.file_partitions, new, file.partition)
        numbers_found = work.found.get(file.path)
        few = None if numbers_found is None else len(numbers_found)
        with open_data_file(work.storage, work.folder, file, few) as there:
            some = there if numbers_found is None else there.restricted_to(numbers_found)
            of_gone = _gone_rows(some, table, reduced)
            hits, numbers = hits_of(of_gone, ends, left)
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
                rows, numbers_gone = some.read(stored, _holes(reduced, replacing)), some.deleted_with(hits)
            else:
                rows, numbers_gone = there.read(stored, stored.names), None
                hits, bases = (np.searchsorted(there.numbers, some.numbers[each]) for each in (hits, bases))
        replacements = [_replacements(reduced, rows, bases, replacing)] if len(replacing) else []
        removed.append(file)
        if numbers_gone is not None:
            added.append(replace(file, vector=DeletionVector.of(numbers_gone)))
            new = pa.concat_tables([new, *replacements])
            continue
        is_kept = np.ones(rows.num_rows, bool)
        is_kept[hits] = False
        # The file's rows are there once while they are written.
        rows = rows.filter(pa.array(is_kept))
        parts = [rows, *replacements]
        if is_grown:
            parts.append(growth)
        added += write_versions(work.storage, work.folder, table, pa.concat_tables(parts))
    is_returned = work.returns_rows and new.nbytes <= work.storage.limits.returned_bytes
    if not is_returned:
        added += write_versions(work.storage, work.folder, table, new)
    found = reduced.gone_counts - left
    count = int((found[~reduced.is_marked] if reduced.are_marked else found).sum())
    return Rewritten(added, removed, count, new if is_returned else None)


def _gone_rows(some: OpenedFile, table: TableSpec, reduced: Reduced) -> _Ints:
    """Return for each row of a file the number of its key among those that are gone; -1 for others."""
    if not len(reduced.gone):
        return np.empty(0, np.int64)
    keys = row_keys(table, some.read(table.stored, table.key_names))
    of_gone: _Ints = pc.index_in(keys, value_set=reduced.gone).fill_null(-1).to_numpy().astype(np.int64)
    if table.form in END and (of_gone >= 0).any():
        is_there = are_there(some.read(table.stored, [END[table.form]]), table.form)
        of_gone[is_there == reduced.is_marked[of_gone] if reduced.are_marked else ~is_there] = -1
    return of_gone


def _is_to_be_marked(table: TableSpec, file: DataFile, count: int, limits: Limits) -> bool:
    """Return whether so many rows of a file that go are marked."""
    is_large, stay = file.size > limits.small_file_bytes, file.live_rows - count
    return table.marks_rows and is_large and limits.marked_share * (file.rows - stay) < file.rows


def _holes(reduced: Reduced, replacing: _Ints) -> list[str]:
    """Return the columns of which some of these rows take the value of the row that they replace."""
    return [name for name, holes in reduced.holes.items() if holes[replacing].any()]


def end_all(work: Ending) -> Rewritten:
    """Write the files anew that have rows which are there now: all of these end."""
    changed = changed_files(work)
    added = [each for _, rows in changed for each in write_versions(work.storage, work.folder, work.table, rows)]
    return Rewritten(added, [file for file, _ in changed], 0)


def write_versions(storage: Storage, folder: str, table: TableSpec, rows: pa.Table) -> list[DataFile]:
    """Write rows; versions of the past apart from those that change again."""
    parts = [rows]
    if table.form == "history":
        is_there = are_there(rows, table.form)
        parts = [rows.filter(pa.array(which)) for which in (is_there, ~is_there)]
    return [file for part in parts for file in write_rows(storage, folder, table.stored, part, table.file_partitions)]


def hits_of(of_gone: _Ints, ends: _Ints, left: _Ints) -> tuple[_Ints, _Ints]:
    """Return the rows of a file that are gone, and their numbers among all that are gone; no more than are left.

    Args:
        of_gone: for each row of the file the number of its key among those that are gone; -1 for others.
        ends: for each of these keys the number of rows that are gone, of this key and those before it.
        left: for each of these keys the number of rows that no file had yet; the found ones are taken off.
    """
    rows = np.flatnonzero(of_gone >= 0)
    if not len(rows):
        return rows, rows
    rows = rows[np.argsort(of_gone[rows], kind="stable")]
    gone = of_gone[rows]
    starts = np.flatnonzero(np.diff(gone, prepend=-1))
    rank = np.arange(len(gone)) - np.repeat(starts, np.diff(starts, append=len(gone)))
    is_hit = rank < left[gone]
    rows, gone, rank = rows[is_hit], gone[is_hit], rank[is_hit]
    numbers = ends[gone] - left[gone] + rank
    np.subtract.at(left, gone, 1)
    return rows, numbers


def _replacements(reduced: Reduced, base: pa.Table, bases: _Ints, replacing: _Ints) -> pa.Table:
    """Return the rows that replace rows of a file, with the values that these keep."""
    rows = reduced.rows.take(pa.array(replacing))
    columns: dict[str, pa.ChunkedArray] = {}
    for name in rows.column_names:
        column = rows.column(name)
        holes = reduced.holes.get(name)
        if holes is not None and holes[replacing].any():
            both = pa.chunked_array([*column.chunks, *base.column(name).chunks], column.type)
            here = np.arange(len(replacing))
            column = both.take(pa.array(np.where(holes[replacing], len(replacing) + bases, here)))
        columns[name] = column
    return pa.table(columns, schema=rows.schema)
