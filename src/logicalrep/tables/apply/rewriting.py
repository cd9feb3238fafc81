"""The rewriting of the files that have changed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.tables.apply.keys import row_keys
from logicalrep.tables.apply.reduction import Reduced
from logicalrep.tables.delta.data_files import DataFile, opened, write_rows
from logicalrep.tables.delta.place import Place
from logicalrep.tables.delta.replicated_table import ReplicatedTable
from logicalrep.tables.tasks import Shared

_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Rewriting:
    """Files to be searched for rows that are gone, and the rows to be written."""

    place: Place
    folder: str
    table: ReplicatedTable
    files: Sequence[DataFile]
    reduced: Shared[Reduced]
    writes_new: bool
    """Whether the new rows are written too."""
    grown: DataFile | None = None
    """A small file that takes in the new rows, so that there are not ever more small files."""


@dataclass(frozen=True)
class Rewritten:
    """The files that take the place of others, and how many of the gone rows were found."""

    added: list[DataFile]
    removed: list[DataFile]
    found: int


def rewrite(work: Rewriting) -> Rewritten:
    """Write the files anew that have rows which are gone, each with the rows that replace them."""
    reduced, table = work.reduced.value, work.table
    left = reduced.gone_counts.copy()
    # The row that replaces each gone one; -1: none.
    replacing = np.full(len(reduced.gone), -1, np.int64)
    has_origin = reduced.origins >= 0
    replacing[reduced.origins[has_origin]] = np.flatnonzero(has_origin)
    added: list[DataFile] = []
    removed: list[DataFile] = []
    new = reduced.rows.filter(pa.array(~has_origin)) if work.writes_new else reduced.rows.slice(0, 0)
    for file in work.files:
        with opened(work.place, work.folder, file) as there:
            keys = row_keys(table, there.read(table.schema, table.key_names))
            of_gone = pc.index_in(keys, value_set=reduced.gone).fill_null(-1).to_numpy().astype(np.int64)
            hits = _hits(of_gone, left)
            is_grown = file == work.grown and new.num_rows > 0
            if not len(hits) and not is_grown:
                continue
            rows = there.read(table.schema, table.names)
        is_kept = np.ones(rows.num_rows, bool)
        is_kept[hits] = False
        parts = [rows.filter(pa.array(is_kept))]
        replaced = replacing[of_gone[hits]]
        if (replaced >= 0).any():
            parts.append(_replacements(reduced, rows, hits[replaced >= 0], replaced[replaced >= 0]))
        if is_grown:
            parts.append(new)
            new = new.slice(0, 0)
        removed.append(file)
        added += write_rows(work.place, work.folder, pa.concat_tables(parts))
    if new.num_rows:
        added += write_rows(work.place, work.folder, new)
    return Rewritten(added, removed, int((reduced.gone_counts - left).sum()))


def _hits(of_gone: _Ints, left: _Ints) -> _Ints:
    """Return the rows of a file that are gone, and count them; of equal rows no more than are gone."""
    rows = np.flatnonzero(of_gone >= 0)
    if not len(rows):
        return rows
    rows = rows[np.argsort(of_gone[rows], kind="stable")]
    gone = of_gone[rows]
    starts = np.flatnonzero(np.diff(gone, prepend=-1))
    rank = np.arange(len(gone)) - np.repeat(starts, np.diff(starts, append=len(gone)))
    rows = rows[rank < left[gone]]
    np.subtract.at(left, of_gone[rows], 1)
    return rows


def _replacements(reduced: Reduced, base: pa.Table, hits: _Ints, replaced: _Ints) -> pa.Table:
    """Return the rows that replace rows of a file, with the values that these keep."""
    rows = reduced.rows.take(pa.array(replaced))
    columns: dict[str, Any] = {}
    for name in rows.column_names:
        column = rows.column(name)
        holes = reduced.holes.get(name)
        if holes is not None and holes[replaced].any():
            both = pa.chunked_array([*column.chunks, *base.column(name).chunks], column.type)
            here = np.arange(len(replaced))
            column = both.take(pa.array(np.where(holes[replaced], len(replaced) + hits, here)))
        columns[name] = column
    return pa.table(columns, schema=rows.schema)


__all__ = ["Rewriting", "Rewritten", "rewrite"]
