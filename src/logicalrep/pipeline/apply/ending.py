"""Rows that the table stores after their end: marked as deleted, or as past versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.pipeline.apply.events import Events, Positions
from logicalrep.pipeline.apply.reduction import Reduced, chains_of, fill_values, reduced_by_count
from logicalrep.pipeline.schema.forms import ADDED_COLUMNS, END_COLUMN, Form
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, open_data_file
from logicalrep.pipeline.storage.row_lineage import as_updated
from logicalrep.pipeline.storage.storage import Storage

_Ints = NDArray[np.int64]
_Bools = NDArray[np.bool_]
_NOWHERE = -1
_Values = dict[str, pa.Array | pa.Scalar]


@dataclass(frozen=True)
class _RowGroup:
    """Rows, each with its first and last position; `ended` is None for current rows."""

    rows: pa.Table
    origins: _Ints
    holes: dict[str, _Bools]
    began: Positions | None
    ended: Positions | None


def reduced_with_ended_rows(form: Form, events: Events, schema: pa.Schema) -> Reduced:
    """Return the effect of changes on a table that stores ended rows.

    Args:
        form: the form of the table's rows.
        events: the changes, in commit order.
        schema: all of the table's columns.

    Raises NeedsResync for changes that contradict each other.
    """
    return _versions(events, schema) if form == "history" else _marked(events, schema)


def _marked(events: Events, schema: pa.Schema) -> Reduced:
    if not events.has_key:
        # Equal rows cannot be distinguished when one is inserted again: marks stay, and updates leave none.
        effect = reduced_by_count(events)
        deletes = np.flatnonzero(events.is_delete)
        rows = events.old_rows.select(effect.rows.column_names).take(pa.array(events.old_of[deletes]))
        nowhere = np.full(len(deletes), _NOWHERE, np.int64)
        return _join_groups(
            "marked",
            schema,
            [
                _RowGroup(effect.rows, effect.origins, {}, None, None),
                _RowGroup(rows, nowhere, {}, None, events.positions.take(deletes)),
            ],
            effect.removed_keys,
            effect.removed_counts,
        )
    chains = chains_of(events)
    ends = np.flatnonzero((events.new_of >= 0) & (chains.taken_by < 0))
    last = np.flatnonzero(chains.is_last)
    last_of_put, last_of_stored = last[chains.put_by[last] >= 0], last[chains.put_by[last] < 0]
    groups = [
        _RowGroup(*fill_values(events, chains, ends), None, None),
        _RowGroup(*fill_values(events, chains, chains.put_by[last_of_put]), None, events.positions.take(last_of_put)),
        _RowGroup(
            *_copies_of_stored(events, chains.removed_of[last_of_stored]), None, events.positions.take(last_of_stored)
        ),
    ]
    removed_keys = pa.concat_arrays([chains.removed_keys, chains.new])
    is_marked = np.arange(len(removed_keys)) >= len(chains.removed_keys)
    return _join_groups("marked", schema, groups, removed_keys, np.ones(len(removed_keys), np.int64), is_marked)


def _versions(events: Events, schema: pa.Schema) -> Reduced:
    chains, positions = chains_of(events), events.positions
    puts = np.flatnonzero(events.new_of >= 0)
    ends = chains.taken_by[puts]
    past, current = puts[ends >= 0], puts[ends < 0]
    takes_of_stored = np.flatnonzero(chains.removed_of >= 0)
    groups = [
        _RowGroup(*fill_values(events, chains, current), positions.take(current), None),
        _RowGroup(*fill_values(events, chains, past), positions.take(past), positions.take(chains.taken_by[past])),
        _RowGroup(
            *_copies_of_stored(events, chains.removed_of[takes_of_stored]), None, positions.take(takes_of_stored)
        ),
    ]
    return _join_groups("history", schema, groups, chains.removed_keys, chains.removed_counts)


def _copies_of_stored(events: Events, origins: _Ints) -> tuple[pa.Table, _Ints, dict[str, _Bools]]:
    schema = events.new_rows.schema
    rows = pa.table([pa.nulls(len(origins), field.type) for field in schema], schema=schema)
    return rows, origins, {name: np.ones(len(origins), bool) for name in schema.names}


def _join_groups(
    form: Form,
    schema: pa.Schema,
    groups: Sequence[_RowGroup],
    removed_keys: pa.Array,
    removed_counts: _Ints,
    is_marked: _Bools | None = None,
) -> Reduced:
    groups = [group for group in groups if group.rows.num_rows] or list(groups[:1])
    complete_groups = [
        _RowGroup(
            pa.Table.from_arrays([*group.rows.columns, *_extra_columns(form, group)], schema=schema),
            group.origins,
            group.holes | _inherited_beginnings(form, group),
            None,
            None,
        )
        for group in groups
    ]
    nothing: _Bools = np.zeros(0, bool)
    names = dict.fromkeys(name for group in complete_groups for name in group.holes)
    holes = {
        name: np.concatenate([group.holes.get(name, np.zeros(group.rows.num_rows, bool)) for group in complete_groups])
        for name in names
    }
    return Reduced(
        replaces_all=False,
        removed_keys=removed_keys,
        removed_counts=removed_counts,
        rows=pa.concat_tables([group.rows for group in complete_groups]),
        origins=np.concatenate([group.origins for group in complete_groups]),
        holes={name: holes_ for name, holes_ in holes.items() if holes_.any()},
        are_marked=is_marked is not None,
        is_marked=nothing if is_marked is None else is_marked,
    )


def _inherited_beginnings(form: Form, group: _RowGroup) -> dict[str, _Bools]:
    """Return the beginning columns that versions take from the stored row."""
    if form != "history" or group.began is not None:
        return {}
    is_hole = np.ones(group.rows.num_rows, bool)
    return {field.name: is_hole for field in ADDED_COLUMNS[form] if field.name.startswith("_valid_from")}


def _extra_columns(form: Form, group: _RowGroup) -> list[pa.Array]:
    count = group.rows.num_rows
    filled: _Values = {}
    if group.began is not None:
        filled |= _beginnings(group.began)
    filled |= _endings(form, group.ended)
    return [
        pa.nulls(count, field.type)
        if field.name not in filled
        else pa.repeat(filled[field.name], count)
        if isinstance(filled[field.name], pa.Scalar)
        else filled[field.name].cast(field.type)
        for field in ADDED_COLUMNS[form]
    ]


def _beginnings(began: Positions) -> _Values:
    return {
        "_valid_from": pa.array(began.timestamps),
        "_valid_from_lsn": pa.array(began.lsns),
        "_valid_from_ordinal": pa.array(began.ordinals),
    }


def _endings(form: Form, ended: Positions | None) -> _Values:
    if ended is None:
        return {"_is_deleted": pa.scalar(False)} if form == "marked" else {"_is_current": pa.scalar(True)}
    if form == "marked":
        return {"_is_deleted": pa.scalar(True), "_deleted_at": pa.array(ended.timestamps)}
    return {
        "_is_current": pa.scalar(False),
        "_valid_to": pa.array(ended.timestamps),
        "_valid_to_lsn": pa.array(ended.lsns),
        "_valid_to_ordinal": pa.array(ended.ordinals),
    }


def is_current(rows: pa.Table, form: Form) -> _Bools:
    """Return for each row of a file whether it is current: neither deleted nor a past version."""
    current: _Bools = rows.column(END_COLUMN[form]).is_null().to_numpy()
    return current


def may_have_current_rows(file: DataFile, form: Form) -> bool:
    return form not in END_COLUMN or file.statistics.nulls.get(END_COLUMN[form], 1) > 0


def first_versions(rows: pa.Table, schema: pa.Schema, position: Positions) -> pa.Table:
    """Return loaded rows as versions that begin at the first of the positions."""
    indices = np.zeros(rows.num_rows, np.int64)
    group = _RowGroup(rows, indices, {}, position.take(indices), None)
    return pa.Table.from_arrays([*rows.columns, *_extra_columns("history", group)], schema=schema)


@dataclass(frozen=True)
class Ending:
    """Files whose current rows all end at one position."""

    storage: Storage
    folder: str
    table: TableSpec
    files: Sequence[DataFile]
    position: Positions


def end_rows(rows: pa.Table, table: TableSpec, position: Positions, is_ended: _Bools) -> pa.Table:
    """Return the rows of a file with the chosen ones ended at the first of the positions."""
    form = table.form
    endings = _endings(form, position)
    for field in ADDED_COLUMNS[form]:
        if field.name not in endings:
            continue
        value = endings[field.name]
        value = value if isinstance(value, pa.Scalar) else value.cast(field.type)[0]
        index = rows.schema.get_field_index(field.name)
        column = pc.if_else(pa.array(is_ended), value, rows.column(field.name))
        rows = rows.set_column(index, field, column)
    return as_updated(rows, is_ended)


def read_ending_files(work: Ending) -> list[tuple[DataFile, pa.Table]]:
    """Return the files with current rows, each with its rows after their end."""
    changed = []
    for file in work.files:
        if not may_have_current_rows(file, work.table.form):
            continue
        with open_data_file(work.storage, work.folder, file) as opened:
            rows = opened.read(work.table.moved, work.table.moved.names)
        current = is_current(rows, work.table.form)
        if current.any():
            changed.append((file, end_rows(rows, work.table, work.position, current)))
    return changed
