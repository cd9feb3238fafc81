"""Data files: Parquet with the statistics by which readers, and we, leave files out."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logicalrep.tables.delta.place import DamagedError, Place

MOST_ROWS = 1 << 20
"""The most rows of a data file."""
MOST_BYTES = 128 << 20
"""About the most bytes of a data file's rows in memory."""
_LONGEST_TEXT = 64
"""The length up to which a text is a statistic."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table."""

    path: str
    """The path within the table's folder."""
    size: int
    """Its bytes."""
    rows: int
    least: dict[str, Any]
    """The least value of each column that has one here."""
    greatest: dict[str, Any]
    """The greatest value of these columns."""
    nulls: dict[str, int]
    """The number of nulls of each column that is not nested."""

    @property
    def stats(self) -> str:
        """The statistics as Delta's log has them."""
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": {name: _logged(value) for name, value in self.least.items()},
                "maxValues": {name: _logged(value) for name, value in self.greatest.items()},
                "nullCount": self.nulls,
            }
        )


def write_rows(place: Place, folder: str, rows: pa.Table) -> list[DataFile]:
    """Write rows as data files of a table's folder; no file for no rows."""
    return [_written(place, folder, part) for part in _parts(rows)]


def write_batches(place: Place, folder: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> list[DataFile]:
    """Write record batches as data files, as soon as there are enough for one."""
    files: list[DataFile] = []
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= MOST_ROWS or sum(each.nbytes for each in held) >= MOST_BYTES:
            files += write_rows(place, folder, pa.Table.from_batches(held, schema))
            held = []
    return files + write_rows(place, folder, pa.Table.from_batches(held, schema))


class OpenedFile:
    """A data file that is read column by column.

    Example:
        >>> with opened(place, "public/orders", file) as rows:
        ...     rows.read(schema, ["id"])
    """

    def __init__(self, file: pq.ParquetFile) -> None:
        """Take the open file."""
        self._file = file

    def read(self, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
        """Return columns, in the types of the table's schema."""
        table = self._file.read(columns=list(columns))
        return table.select(list(columns)).cast(pa.schema([schema.field(name) for name in columns]))


@contextmanager
def opened(place: Place, folder: str, file: DataFile) -> Iterator[OpenedFile]:
    """Open a data file of a table's folder.

    Raises:
        DamagedError: it is not there, or it is no Parquet file: the table is damaged.
        PlaceError: the place cannot be read.
    """
    with place.open(f"{folder}/{file.path}", file.size) as source:
        try:
            yield OpenedFile(pq.ParquetFile(source))
        except pa.ArrowInvalid as error:
            raise DamagedError(f"{place.uri_of(folder)}/{file.path} is damaged: {error}") from None


def read_rows(place: Place, folder: str, file: DataFile, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """Return columns of a data file. Raises what `opened` does."""
    with opened(place, folder, file) as there:
        return there.read(schema, columns)


def _parts(rows: pa.Table) -> Iterable[pa.Table]:
    count = max(-(-rows.num_rows // MOST_ROWS), -(-rows.nbytes // MOST_BYTES), 1)
    size = max(-(-rows.num_rows // count), 1)
    return (rows.slice(start, size) for start in range(0, rows.num_rows, size))


def _written(place: Place, folder: str, rows: pa.Table) -> DataFile:
    sink = pa.BufferOutputStream()
    # A table rewritten again and again costs less with the fastest compression.
    pq.write_table(rows, sink, compression="snappy", write_statistics=True)
    data = sink.getvalue()
    path = f"part-{uuid.uuid4().hex}.parquet"
    place.write(f"{folder}/{path}", data.to_pybytes())
    least, greatest, nulls = {}, {}, {}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if not pa.types.is_nested(field.type):
            # The log has those of a struct's fields, not of the struct.
            nulls[field.name] = column.null_count
        if _has_statistics(field.type) and column.null_count < len(column):
            bounds = pc.min_max(column)
            # A day before the year 1 or after 9999 has no form in the log.
            with suppress(OverflowError, ValueError):
                low, high = bounds["min"].as_py(), bounds["max"].as_py()
                if _can_be_logged(low) and _can_be_logged(high):
                    least[field.name], greatest[field.name] = low, high
    return DataFile(path, data.size, rows.num_rows, least, greatest, nulls)


def _has_statistics(type_: pa.DataType) -> bool:
    is_ordered = pa.types.is_integer(type_) or pa.types.is_decimal(type_) or pa.types.is_string(type_)
    return bool(is_ordered or pa.types.is_date(type_) or pa.types.is_timestamp(type_))


def _can_be_logged(value: Any) -> bool:
    """Return whether a statistic is exact in JSON, where decimals are floats to most readers, and short enough."""
    if isinstance(value, Decimal):
        return Decimal(repr(float(value))) == value
    return not isinstance(value, str) or len(value) <= _LONGEST_TEXT


def _logged(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


__all__ = ["DataFile", "OpenedFile", "opened", "read_rows", "write_batches", "write_rows"]
