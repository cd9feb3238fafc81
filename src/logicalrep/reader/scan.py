"""A scan of a stored table: the columns and the files that a query needs, a few files at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.storage.data_files import DataFile, read_rows
from logicalrep.pipeline.storage.storage import DamagedError

_AHEAD = 4
"""The most files that are read in parallel and held in memory."""


@dataclass(frozen=True)
class Scan:
    """Rows of a stored table, read on request: the scanner of Arrow's dataset protocol.

    The files have no rows of their deletion vectors, and every column has the table's name and type.

    Source: https://arrow.apache.org/docs/python/integration/dataset.html

    Example:
        >>> version.scanner(["id"], pc.field("price") > 10).to_reader()
    """

    stored: StoredTable
    projected_schema: pa.Schema
    """The columns to read."""
    condition: pc.Expression | None
    """The condition that all rows satisfy; it may name any column of the table."""
    damaged: Callable[[str], Exception]
    """Returns the error to raise if a file is missing or changed, for the reason."""

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of record batches. Reading it raises ReadError and StorageError."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """Return all rows in memory. Raises the errors of `to_reader`."""
        return self.to_reader().read_all()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Raises the errors of `to_reader`."""
        for rows in self._tables():
            yield from rows.select(self.projected_schema.names).to_batches()

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows. Raises the errors of `to_reader`."""
        tables, missing = [], num_rows
        for rows in self._tables():
            tables.append(rows.select(self.projected_schema.names).slice(0, missing))
            missing -= tables[-1].num_rows
            if missing <= 0:
                break
        return pa.concat_tables(tables) if tables else self.projected_schema.empty_table()

    def count_rows(self) -> int:
        """Return the number of rows; without a condition, no file is opened. Raises the errors of `to_reader`."""
        if self.condition is None:
            return sum(file.live_rows for file in self.stored.files.values())
        return sum(rows.num_rows for rows in self._tables())

    def take(self, indices: pa.Array | Sequence[int]) -> pa.Table:
        """Return the rows at positions of the scan. Raises the errors of `to_reader`."""
        return self.to_table().take(indices)

    def _tables(self) -> Iterator[pa.Table]:
        schema = self.stored.table.stored
        names = [] if self.condition is None else columns_of(self.condition, schema)
        # Without a column, a table of Arrow has no number of rows.
        columns = list(dict.fromkeys([*self.projected_schema.names, *names])) or schema.names[:1]
        pool = ThreadPoolExecutor(_AHEAD, thread_name_prefix="logicalrep-read")
        try:
            waiting = iter(matching_files(self.stored, self.condition))
            reading = deque(pool.submit(self._read, file, columns) for file in islice(waiting, _AHEAD))
            while reading:
                rows = reading.popleft().result()
                reading.extend(pool.submit(self._read, file, columns) for file in islice(waiting, 1))
                yield rows
        finally:
            pool.shutdown(cancel_futures=True)

    def _read(self, file: DataFile, columns: Sequence[str]) -> pa.Table:
        try:
            rows = read_rows(self.stored.storage, self.stored.folder, file, self.stored.table.stored, columns)
        except DamagedError as error:
            raise self.damaged(error.description) from None
        return rows if self.condition is None else rows.filter(self.condition)


def columns_of(condition: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return the names of the columns of a condition. Raises pyarrow.ArrowInvalid if one does not exist."""
    _bind(condition, schema)
    return _columns_among(schema.names, condition, schema)


def _columns_among(names: list[str], condition: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return the names among these that the condition has. Halving spares a wide table an attempt for each column."""
    excluded = set(names)
    if _binds(condition, pa.schema([field for field in schema if field.name not in excluded])):
        return []
    if len(names) == 1:
        return names
    middle = len(names) // 2
    halves = names[:middle], names[middle:]
    return [name for half in halves for name in _columns_among(half, condition, schema)]


def matching_files(stored: StoredTable, condition: pc.Expression | None) -> list[DataFile]:
    """Return the files that may have matching rows, by their statistics; None matches all rows."""
    files, schema = list(stored.files.values()), stored.table.stored
    if condition is None:
        return files
    columns, file_system, parquet = columns_of(condition, schema), LocalFileSystem(), ds.ParquetFileFormat()
    # Arrow knows which bounds exclude a condition; the fragments have the files' numbers as paths, and are not opened.
    fragments = [
        parquet.make_fragment(str(number), file_system, partition_expression=_bounds(file, schema, columns))
        for number, file in enumerate(files)
    ]
    dataset = ds.FileSystemDataset(fragments, schema, parquet, file_system)
    return [files[int(fragment.path)] for fragment in dataset.get_fragments(condition)]


def _bounds(file: DataFile, schema: pa.Schema, columns: Sequence[str]) -> pc.Expression:
    """Return an expression that is true for all rows of a file."""
    bounds, statistics = [pc.scalar(True)], file.statistics
    for name in columns:
        column, type_, nulls = pc.field(name), schema.field(name).type, statistics.nulls.get(name)
        null = column.is_null()
        if nulls == file.rows:
            bounds.append(null)
            continue
        parts = []
        if name in statistics.least:
            parts.append(column >= pa.scalar(statistics.least[name], type_))
        if name in statistics.greatest:
            parts.append(column <= pa.scalar(statistics.greatest[name], type_))
        bounds += parts if nulls == 0 else [part | null for part in parts]
    return reduce(and_, bounds)


def _bind(condition: pc.Expression, schema: pa.Schema) -> None:
    schema.empty_table().filter(condition)


def _binds(condition: pc.Expression, schema: pa.Schema) -> bool:
    try:
        _bind(condition, schema)
    except pa.ArrowInvalid:
        return False
    return True
