"""Column changes of a stored table without a reload.

An added column that is NULL in old rows, and a dropped column, need no new files: readers take NULL for a column that a
file lacks, and ignore a column that the table lacks. With field ids, a renamed column needs no new files either, unless
rows of changes name it. Every other change rewrites the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.pipeline.apply.ending import is_current
from logicalrep.pipeline.catalog.evolution import Evolution, fitted
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.schema.forms import ADDED_COLUMNS, END_COLUMN
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, read_rows, with_columns, write_rows
from logicalrep.pipeline.storage.storage import Storage


def reshape(stored: StoredTable, evolution: Evolution, engine: Engine) -> None:
    """Change the columns or the key of a table, or of its companion table, in one commit.

    A new column is NULL in rows marked as deleted, in past versions and in earlier changes: they never had it.

    Raises:
        NeedsResync: the column's type cannot hold a default.
        ReservedColumnError: a column has the name of a column that the settings add.
        DamagedError: a data file of the table is missing.
        StorageError: the destination cannot be read or written.
    """
    if stored.table in (evolution.table, replace(evolution.table, dropped_columns=())):
        return  # An earlier try succeeded, but its answer was lost.
    defaults = {} if evolution.table.form == "changes" else _defaults(evolution)
    if _needs_files(stored.table, evolution, defaults):
        reshape_file, table = _reshape_file, replace(evolution.table, dropped_columns=())
    elif stored.table.settings.abilities.has_field_ids and _renamed_changes(stored.table, evolution.table):
        reshape_file, table = _rename_in_file, evolution.table
    else:
        stored.describe(evolution.table, list(_restated(stored, evolution)))
        return
    files = list(stored.files.values())
    work = [
        _Reshaping(stored.storage, stored.folder, stored.table, table, evolution.sources, defaults, file)
        for file in files
    ]
    reshaped_files = engine.run(reshape_file, work, sum(file.size for file in files))
    changed = [(new, old) for new, old in zip(reshaped_files, files, strict=True) if new != [old]]
    stored.describe(table, [file for new, _ in changed for file in new], [old for _, old in changed])


def _needs_files(old_table: TableSpec, evolution: Evolution, defaults: Mapping[str, pa.Scalar]) -> bool:
    new = set(evolution.table.names) - evolution.sources.keys()
    if old_table.settings.abilities.has_field_ids:
        fields = [(evolution.table.schema.field(name), source) for name, source in evolution.sources.items()]
        has_other_types = any(field.type != old_table.schema.field(source).type for field, source in fields)
        return bool(defaults) or has_other_types
    return (
        bool(defaults)
        or not new.isdisjoint({*old_table.dropped_columns, *old_table.names})
        or any(
            name != source or evolution.table.schema.field(name).type != old_table.schema.field(source).type
            for name, source in evolution.sources.items()
        )
    )


def _renamed_changes(old_table: TableSpec, new_table: TableSpec) -> list[str]:
    """Return the old names of renamed columns if the table stores changes, whose rows name columns."""
    new_names = dict(zip(new_table.attnums, new_table.relation.names, strict=True))
    names = zip(old_table.attnums, old_table.relation.names, strict=True)
    return (
        [name for number, name in names if new_names.get(number, name) != name] if new_table.form == "changes" else []
    )


def _restated(stored: StoredTable, evolution: Evolution) -> Sequence[DataFile]:
    """Return the files whose statistics name other columns, with statistics of the new columns.

    With field ids none need it: readers ignore a missing bound.
    """
    if stored.table.settings.abilities.has_field_ids:
        return []
    new = set(evolution.table.names) - evolution.sources.keys()
    restated = [(file, with_columns(file, evolution.table.stored, new)) for file in stored.files.values()]
    return [restated_file for file, restated_file in restated if restated_file is not file]


def _defaults(evolution: Evolution) -> dict[str, pa.Scalar]:
    """Return the defaults of new columns, and of their text columns, for old rows."""
    table, values = evolution.table, {}
    for written in table.written:
        number = table.attnums[written.ordinal]
        default = evolution.defaults.get(number)
        if default is None or written.name in evolution.sources:
            continue
        array, text = fitted(table, number, default)
        if text is not None and written.refuses:
            name = table.columns[written.ordinal].name
            raise NeedsResync(f"the column {name} cannot hold its default {default!r}")
        scalar = pa.scalar(text, written.type) if written.has_texts else array.cast(written.type)[0]
        if scalar.is_valid:
            values[written.name] = scalar
    return values


@dataclass(frozen=True)
class _Reshaping:
    storage: Storage
    folder: str
    old_table: TableSpec
    new_table: TableSpec
    sources: Mapping[str, str]
    defaults: Mapping[str, pa.Scalar]
    file: DataFile


def _reshape_file(work: _Reshaping) -> list[DataFile]:
    form, added_columns = work.new_table.form, [field.name for field in ADDED_COLUMNS[work.new_table.form]]
    carried = [*added_columns, *work.old_table.lineage_names]
    names = [*work.sources.values(), *carried]
    rows = read_rows(work.storage, work.folder, work.file, work.old_table.moved, names)
    current = pa.array(is_current(rows, form)) if form in END_COLUMN else pa.scalar(True)

    def values(name: str, type_: pa.DataType) -> pa.Array | pa.ChunkedArray:
        if name in work.sources:
            return _cast(rows.column(work.sources[name]), type_)
        if name in work.defaults:
            missing = pa.repeat(work.defaults[name], rows.num_rows)
            return pc.if_else(current, missing, pa.scalar(None, type_))
        return rows.column(name) if name in carried else pa.nulls(rows.num_rows, type_)

    columns = [values(field.name, field.type) for field in work.new_table.moved]
    reshaped = renamed_in_changes(pa.table(columns, schema=work.new_table.moved), work.old_table, work.new_table)
    return write_rows(work.storage, work.folder, work.new_table.stored, reshaped, work.new_table.file_partitions)


def _rename_in_file(work: _Reshaping) -> list[DataFile]:
    unchanged = read_rows(work.storage, work.folder, work.file, work.old_table.stored, ["_unchanged"]).column(0)
    renamed = pa.array(_renamed_changes(work.old_table, work.new_table), pa.string())
    is_named = pc.any(pc.is_in(pc.list_flatten(unchanged), renamed)).as_py()
    return _reshape_file(work) if is_named else [work.file]


def _cast(values: pa.ChunkedArray, type_: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_decimal(values.type) and pa.types.is_string(type_):
        # Arrow writes 0.00000001 as 1E-8.
        return pa.array([None if value is None else format(value, "f") for value in values.to_pylist()], type_)
    return values.cast(type_)


def renamed_in_changes(rows: pa.Table, old_table: TableSpec, new_table: TableSpec) -> pa.Table:
    """Return rows of changes with renamed columns in the lists of columns that were not sent; other rows unchanged."""
    new_names = dict(zip(new_table.attnums, new_table.relation.names, strict=True))
    old_names = zip(old_table.attnums, old_table.relation.names, strict=True)
    names = {name: new_names.get(attnum) for attnum, name in old_names}
    is_same_table = old_table.relation.relation_id == new_table.relation.relation_id
    if new_table.form != "changes" or not is_same_table or all(name == new_name for name, new_name in names.items()):
        return rows
    index = rows.schema.get_field_index("_unchanged")
    lists = [
        [names.get(name) for name in unchanged if names.get(name) is not None]
        for unchanged in rows.column(index).to_pylist()
    ]
    return rows.set_column(index, rows.schema.field(index), pa.array(lists, rows.schema.field(index).type))
