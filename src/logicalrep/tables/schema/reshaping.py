"""A Delta table's rows in later columns, without another load.

A column that old rows have NULL in, and one that is dropped, need no new files: readers take NULL for a column that a
file does not have, and leave out one that the table does not have. Other changes write the files anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from logicalrep.tables.apply.reduction import NeedsResync
from logicalrep.tables.delta.data_files import DataFile, opened, write_rows
from logicalrep.tables.delta.delta_log import DeltaLog
from logicalrep.tables.delta.place import Place
from logicalrep.tables.delta.replicated_table import ReplicatedTable
from logicalrep.tables.delta.statistics import Statistics, statistics_columns
from logicalrep.tables.schema.evolution import Evolution
from logicalrep.tables.tasks import Tasks
from logicalrep.values import arrow_array_or_text


def reshape(log: DeltaLog, evolution: Evolution, tasks: Tasks) -> None:
    """Give a table other columns, or another key, in one commit.

    Raises:
        NeedsResync: the column's type cannot hold a default.
        DamagedError: a data file of the table is gone.
        PlaceError: the place cannot be read or written.
    """
    if not _needs_files(log.table, evolution):
        log.describe(evolution.table, list(_restated(log, evolution)))
        return
    table = replace(evolution.table, left=())
    files = list(log.files.values())
    defaults = _defaults(evolution)
    work = [_Reshaping(log.place, log.folder, log.table, table, evolution.sources, defaults, file) for file in files]
    log.describe(table, [file for done in tasks.run(_reshaped, work) for file in done], files)


def _needs_files(before: ReplicatedTable, evolution: Evolution) -> bool:
    new = set(evolution.table.names) - evolution.sources.keys()
    return (
        bool(evolution.defaults)
        or not new.isdisjoint({*before.left, *before.names})
        or any(
            name != source or evolution.table.schema.field(name).type != before.schema.field(source).type
            for name, source in evolution.sources.items()
        )
    )


def _restated(log: DeltaLog, evolution: Evolution) -> Sequence[DataFile]:
    """Return the files whose statistics lack a column, with statistics that have it."""
    wanted = statistics_columns(evolution.table.schema)
    restated = []
    for file in log.files.values():
        known = file.statistics.nulls
        new = {name: file.rows for name in wanted if name not in evolution.sources}
        if not known or not set(wanted) - known.keys():
            continue
        has_all = set(wanted) <= known.keys() | new.keys()
        statistics = replace(file.statistics, nulls={**known, **new}) if has_all else Statistics()
        restated.append(replace(file, statistics=statistics))
    return restated


def _defaults(evolution: Evolution) -> dict[str, pa.Scalar]:
    """Return the values that old rows have in new columns."""
    table, found = evolution.table, {}
    for name, field, column in zip(table.names, table.schema, table.columns, strict=True):
        if name in evolution.defaults:
            value, text = column.load_or_text(ord("t"), evolution.defaults[name].encode())
            array, refused = arrow_array_or_text(column, [value], for_spark=True)
            if text is not None or refused:
                raise NeedsResync(f"the column {column.name} cannot hold its default {evolution.defaults[name]!r}")
            found[name] = array.cast(field.type)[0]
    return found


@dataclass(frozen=True)
class _Reshaping:
    place: Place
    folder: str
    before: ReplicatedTable
    after: ReplicatedTable
    sources: Mapping[str, str]
    defaults: Mapping[str, pa.Scalar]
    file: DataFile


def _reshaped(work: _Reshaping) -> list[DataFile]:
    with opened(work.place, work.folder, work.file) as there:
        rows = there.read(work.before.schema, list(work.sources.values()))

    def values(name: str, type_: pa.DataType) -> pa.Array | pa.ChunkedArray:
        if name in work.sources:
            return rows.column(work.sources[name]).cast(type_)
        if name in work.defaults:
            return pa.repeat(work.defaults[name], work.file.rows)
        return pa.nulls(work.file.rows, type_)

    columns = [values(field.name, field.type) for field in work.after.schema]
    return write_rows(work.place, work.folder, pa.table(columns, schema=work.after.schema))


__all__ = ["reshape"]
