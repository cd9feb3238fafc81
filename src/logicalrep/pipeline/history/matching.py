"""The comparison of a table's previous rows with the rows of a load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.pipeline.apply.ending import is_current
from logicalrep.pipeline.apply.reshaping import renamed_in_changes
from logicalrep.pipeline.apply.rewriting import find_hits
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.schema.forms import ADDED_COLUMNS, END_COLUMN
from logicalrep.pipeline.schema.row_keys import row_keys
from logicalrep.pipeline.schema.row_texts import row_texts
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, read_rows
from logicalrep.pipeline.storage.storage import Storage

_Ints = NDArray[np.int64]
_ANY = 1 << 40


@dataclass(frozen=True)
class Matching:
    storage: Storage
    old_folder: str
    previous_spec: TableSpec
    old: Sequence[DataFile]
    folder: str
    table: TableSpec
    """The description of the loaded rows, in the form to write."""
    new: Sequence[DataFile]
    by_key: bool = False
    """Whether rows of all forms are compared by keys; then a loaded key matches any number of old rows."""


@dataclass(frozen=True)
class Matched:
    old: list[_Ints]
    new: list[_Ints]


def matched(work: Matching, engine: Engine) -> Matched:
    """Form `marked` compares keys, a history all values. Each of several equal rows matches one equal row."""
    size = sum(file.size for file in (*work.old, *work.new))
    count = size // work.storage.limits.matched_bytes + 1
    parts = engine.run(_match_part, [_MatchTask(work, number, count) for number in range(count)], size)
    return Matched(
        *(
            [np.sort(np.concatenate(of_file)) for of_file in zip(*sides, strict=True)]
            for sides in ([part.old for part in parts], [part.new for part in parts])
        )
    )


def converted(rows: pa.Table, previous_spec: TableSpec, table: TableSpec) -> pa.Table:
    """Return previous rows in the columns of a table, matched by number; NULL in columns that are new or differ."""
    names = _previous_names(previous_spec, table)
    columns = [
        rows.column(names[field.name]) if field.name in names else pa.nulls(rows.num_rows, field.type)
        for field in table.schema
    ]
    for field in ADDED_COLUMNS[table.form]:
        if previous_spec.form == table.form:
            columns.append(rows.column(field.name))
        else:
            columns.append(
                pa.array(np.zeros(rows.num_rows, bool))
                if field.name == "_is_deleted"
                else pa.nulls(rows.num_rows, field.type)
            )
    return renamed_in_changes(pa.Table.from_arrays(columns, schema=table.stored), previous_spec, table)


def are_carried(previous_spec: TableSpec, table: TableSpec, names: Sequence[str]) -> bool:
    return set(names) <= _previous_names(previous_spec, table).keys()


def _previous_names(previous_spec: TableSpec, table: TableSpec) -> dict[str, str]:
    if previous_spec.relation.relation_id == table.relation.relation_id:
        previous_columns = {column: previous_spec.by_number.get(number) for number, column in table.by_number.items()}
    else:
        of_names = {column.name: column for column in previous_spec.written}
        previous_columns = {column: of_names.get(column.name) for column in table.written}
    return {
        column.name: previous.name
        for column, previous in previous_columns.items()
        if previous is not None and previous.type == column.type and previous_spec.mask(previous) == table.mask(column)
    }


@dataclass(frozen=True)
class _MatchTask:
    work: Matching
    number: int
    count: int


def _match_part(part: _MatchTask) -> Matched:
    work = part.work
    # Any differing value makes another version.
    identity = work.table if work.by_key or work.table.form == "marked" else replace(work.table, key=None)
    schema, names = work.table.schema, identity.key_names
    new_keys = [row_keys(identity, read_rows(work.storage, work.folder, file, schema, names)) for file in work.new]
    is_own = [_own(keys, part) for keys in new_keys]
    values = pa.concat_arrays(
        [keys.filter(pa.array(own)) for keys, own in zip(new_keys, is_own, strict=True)] or [pa.array([], pa.null())]
    ).value_counts()
    distinct_keys = values.field("values")
    counts = values.field("counts").to_numpy().astype(np.int64)
    remaining, ends = np.full(len(counts), _ANY, np.int64) if work.by_key else counts.copy(), np.cumsum(counts)
    old = []
    for file in work.old:
        rows = _read(work, file, names)
        is_current_row = (
            is_current(rows, work.table.form) if work.table.form in END_COLUMN else np.ones(rows.num_rows, bool)
        )
        keys = row_keys(identity, rows)
        indices = _indices(keys, distinct_keys)
        hits, _ = find_hits(np.where(is_current_row, indices, -1), ends, remaining)
        is_unmatched = _own(keys, part)
        is_unmatched[hits] = False
        if work.table.form == "history":
            is_unmatched &= is_current_row
        elif identity.key is not None:
            is_unmatched &= is_current_row | (indices < 0)
        old.append(np.flatnonzero(is_unmatched))
    new = []
    for keys, own in zip(new_keys, is_own, strict=True):
        hits, _ = find_hits(np.where(own, _indices(keys, distinct_keys), -1), ends, remaining)
        new.append(np.sort(hits))
    return Matched(old, new)


def _read(work: Matching, file: DataFile, names: Sequence[str]) -> pa.Table:
    if work.by_key:
        end_columns = [END_COLUMN[work.table.form]] if work.table.form in END_COLUMN else []
        return read_rows(work.storage, work.old_folder, file, work.table.stored, [*names, *end_columns])
    whole = read_rows(work.storage, work.old_folder, file, work.previous_spec.stored, work.previous_spec.stored.names)
    return converted(whole, work.previous_spec, work.table)


def _indices(keys: pa.Array, distinct_keys: pa.Array) -> _Ints:
    if not len(distinct_keys):
        return np.full(len(keys), -1, np.int64)
    indices: _Ints = (
        pc.index_in(keys, value_set=distinct_keys.cast(keys.type)).fill_null(-1).to_numpy().astype(np.int64)
    )
    return indices


def _own(keys: pa.Array, part: _MatchTask) -> NDArray[np.bool_]:
    if part.count == 1:
        return np.ones(len(keys), bool)
    # crc32 is equal in all processes, unlike hash().
    texts = row_texts([keys]).to_pylist()
    sums = np.fromiter(map(crc32, texts), np.int64, len(texts))
    is_own: NDArray[np.bool_] = sums % part.count == part.number
    return is_own
