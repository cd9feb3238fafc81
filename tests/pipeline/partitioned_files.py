"""The files of a table by their partitions."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import mmh3

from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.storage.data_files import read_rows
from logicalrep.pipeline.storage.storage import Storage

EPOCH = date(1970, 1, 1)


def stored_table(storage: Path, folder: str) -> StoredTable:
    name: FormatName = "iceberg" if (storage / folder / "metadata").is_dir() else "delta"
    stored = table_format(Storage(str(storage)), name).open(folder)
    assert stored is not None
    return stored


def files_of(storage: Path, folder: str = "public/orders") -> dict[tuple[Any, ...], int]:
    """Return the numbers of a table's files by their partitions, and prove that all of their rows belong there."""
    stored = stored_table(storage, folder)
    counts: dict[tuple[Any, ...], int] = {}
    for file in stored.files.values():
        rows = read_rows(stored.storage, stored.folder, file, stored.table.stored, stored.table.stored.names)
        assert {belongs(row, stored.table.settings.partition_by) for row in rows.to_pylist()} <= {file.partition}
        assert file.path.startswith("part-")
        counts[file.partition] = counts.get(file.partition, 0) + 1
    return counts


def belongs(row: dict[str, Any], by: tuple[str, ...]) -> tuple[Any, ...]:
    """Return a row's partition, computed in another way than the code does."""
    values: list[Any] = []
    for text in by:
        transform, _, column = text.rstrip(")").rpartition("(")
        value = row[column.rpartition(", ")[2]]
        day = value.date() if isinstance(value, datetime) else value
        if value is None:
            values.append(None)
        elif transform == "day" or (not transform and isinstance(value, date)):
            values.append((day - EPOCH).days)
        elif transform == "month":
            values.append((day.year - 1970) * 12 + day.month - 1)
        elif transform == "bucket":
            data = value.encode() if isinstance(value, str) else int(value).to_bytes(8, "little", signed=True)
            values.append((mmh3.hash(data) & 0x7FFFFFFF) % int(column.partition(",")[0]))
        else:
            values.append(value)
    return tuple(values)
