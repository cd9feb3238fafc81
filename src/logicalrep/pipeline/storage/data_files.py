"""Data files: Parquet files with statistics that let readers and replicate skip them."""

from __future__ import annotations

import functools
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap64

from logicalrep.arrow.slices import sliced
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.field_ids import file_schema, names_in_file
from logicalrep.pipeline.schema.file_partitions import FilePartition, PartitionValue
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector, bitmap_of, numbers_of
from logicalrep.pipeline.storage.pages import PagedSource, Pages
from logicalrep.pipeline.storage.parquet_files import ParquetFile, is_content_error, parquet_bytes
from logicalrep.pipeline.storage.parting import parted
from logicalrep.pipeline.storage.row_lineage import RowLineage, split_lineage, with_inherited
from logicalrep.pipeline.storage.statistics import Statistics, statistics_columns, statistics_of
from logicalrep.pipeline.storage.storage import DamagedError, Storage, below, first_line

DATA_FILE = re.compile(r"part-[0-9a-f]{32}\.parquet")
_CACHED_FILES = 512
"""Number of files whose layouts this process caches, some tens of kilobytes per file."""
_FULL_SUFFIX = "-full.parquet"
"""Suffix of files with more than half of the row or byte limit: replicate does not merge them."""
_OWN_NAME = re.compile("part-[0-9a-f]{32}(-full)?\\.parquet")


def is_own_name(path: str) -> bool:
    """Return whether replicate named a data file; other programs write merged files under other names."""
    return _OWN_NAME.fullmatch(path.rpartition("/")[2]) is not None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table."""

    path: str
    """The path within the table's folder."""
    size: int
    """The size in bytes."""
    rows: int
    """The number of rows, including deleted rows."""
    statistics: Statistics
    """The bounds of all rows, including deleted rows."""
    vector: DeletionVector | None = None
    """The deleted rows; None without deleted rows."""
    partition: tuple[PartitionValue, ...] = ()
    """The partition of all rows: one value per file partition of the table."""
    constants: tuple[tuple[str, pa.Scalar], ...] = ()
    """Columns that another program omitted from the file, with the value that all rows have."""
    lineage: RowLineage | None = None
    """The lineage of the rows; None before the file's first commit, and in tables without row lineage."""
    logged_path: str | None = None
    """The path as a Delta log spells it; None if it equals `path`."""

    @property
    def live_rows(self) -> int:
        """The number of rows that are not deleted."""
        return self.rows - (0 if self.vector is None else self.vector.count)

    def is_same(self, other: DataFile | None) -> bool:
        """Return whether the other file has the same path and the same deleted rows."""
        return other is not None and (self.path, self.vector) == (other.path, other.vector)

    def is_full(self, limits: Limits) -> bool:
        """Return whether a merge of this file would not reduce the number of files."""
        return self.path.endswith(_FULL_SUFFIX) or 2 * self.rows >= limits.file_rows


def file_sizes(files: Iterable[DataFile]) -> dict[str, int]:
    """Return the sizes in bytes of data files and of the files with their vectors, by path."""
    sizes: dict[str, int] = {}
    for file in files:
        sizes[file.path] = file.size
        if file.vector is not None and file.vector.location is not None:
            location = file.vector.location
            sizes[location.path] = max(sizes.get(location.path, 0), location.end)
    return sizes


def with_columns(file: DataFile, schema: pa.Schema, new: Collection[str]) -> DataFile:
    """Return a file with the statistics of a table's current columns; the `new` columns are NULL in all rows.

    Return the file itself if its statistics have these columns already.
    """
    statistics, columns = file.statistics, statistics_columns(schema)
    # Nobody reads the statistics of a dropped column.
    if not statistics.nulls or statistics.nulls.keys() & set(schema.names) == set(columns):
        return file
    counts = dict.fromkeys(new, file.rows) | statistics.nulls | statistics.other_nulls
    nulls = {name: counts[name] for name in columns if name in statistics.nulls or name in new}
    if len(nulls) < len(columns):
        return replace(
            file, statistics=Statistics(other_nulls={name: counts[name] for name in schema.names if name in counts})
        )
    other_nulls = {name: counts[name] for name in schema.names if name in counts and name not in nulls}
    least, greatest = (
        {name: bounds[name] for name in columns if name in bounds} for bounds in (statistics.least, statistics.greatest)
    )
    return replace(file, statistics=Statistics(least, greatest, nulls, other_nulls))


def write_rows(
    storage: Storage, folder: str, schema: pa.Schema, rows: pa.Table, partitions: Sequence[FilePartition] = ()
) -> list[DataFile]:
    """Write rows in the table's schema as data files of the table's folder, one or more files per file partition.

    Rows of other files have the columns of `LINEAGE` too. Without rows there is no file. Raises the errors of `parted`.
    """
    return [
        _write_file(storage, folder, schema, part, partitions, partition)
        for partition, partition_rows in parted(partitions, rows)
        for part in row_parts(partition_rows, storage.limits)
    ]


def write_batches(
    storage: Storage, folder: str, batches: Iterable[pa.RecordBatch], partitions: Sequence[FilePartition] = ()
) -> list[DataFile]:
    """Write record batches as data files, each time the pending batches reach the row or byte limit of a file.

    A batch may add columns, which are NULL in the rows of earlier batches.
    """
    files: list[DataFile] = []
    pending: list[pa.RecordBatch] = []
    most_rows, most_bytes = storage.limits.file_rows, storage.limits.file_bytes
    for batch in batches:
        pending.append(batch)
        if sum(rows.num_rows for rows in pending) >= most_rows or sum(rows.nbytes for rows in pending) >= most_bytes:
            files += _write_batches(storage, folder, pending, partitions)
            pending = []
    return files + _write_batches(storage, folder, pending, partitions)


def _write_batches(
    storage: Storage, folder: str, batches: Sequence[pa.RecordBatch], partitions: Sequence[FilePartition]
) -> list[DataFile]:
    if not batches:
        return []
    schema = batches[-1].schema
    whole = [
        batch
        if len(batch.schema) == len(schema)
        else pa.RecordBatch.from_arrays(
            [
                batch.column(field.name) if field.name in batch.schema.names else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ],
            schema=schema,
        )
        for batch in batches
    ]
    return write_rows(storage, folder, schema, pa.Table.from_batches(whole, schema), partitions)


@dataclass
class _Layout:
    """The parts of a data file's footer that were read; a data file never changes."""

    rows: int = 0
    schema: pa.Schema | None = None
    """None before the footer is read."""
    pages: dict[str, Pages] = field(default_factory=dict)


@functools.lru_cache(maxsize=_CACHED_FILES)
def _cached_layout(uri: str, path: str, size: int) -> _Layout:
    return _Layout()


class OpenedFile:
    """A data file that is read column by column, without its deleted rows.

    Example:
        >>> with open_data_file(storage, "public/orders", file) as rows:
        ...     rows.read(schema, ["id"])
    """

    def __init__(
        self,
        source: IO[bytes],
        layout: _Layout,
        deleted: BitMap64,
        paged: PagedSource | None = None,
        row_numbers: NDArray[np.int64] | None = None,
        constants: Sequence[tuple[str, pa.Scalar]] = (),
        lineage: RowLineage | None = None,
        *,
        is_small: bool = False,
    ) -> None:
        """Take the open file.

        Args:
            source: the file.
            layout: the cached layout, which is completed from the file.
            deleted: the numbers of the deleted rows.
            paged: the same file, if many small reads cost little.
            row_numbers: the numbers of the rows to be read; None for all rows.
            constants: the values of columns that the file lacks.
            lineage: the lineage of the file's rows.
            is_small: whether the first read reads all columns: for a small file it costs as much as a read of one.
        """
        self._source, self._layout, self._paged = source, layout, paged
        self._deleted, self._is_small = deleted, is_small
        self._row_numbers = row_numbers
        self._constants, self._lineage = dict(constants), lineage
        if layout.schema is None:
            layout.rows, layout.schema = self._file.rows, self._file.schema

    @cached_property
    def _file(self) -> ParquetFile:
        return ParquetFile(self._source)

    @cached_property
    def _all_columns(self) -> pa.Table:
        return self._file.read()

    def restricted_to(self, row_numbers: NDArray[np.int64]) -> OpenedFile:
        """Return this file limited to rows, by ascending numbers in the file; deleted rows stay left out."""
        constants = [*self._constants.items()]
        return OpenedFile(
            self._source,
            self._layout,
            self._deleted,
            self._paged,
            row_numbers,
            constants,
            self._lineage,
            is_small=self._is_small,
        )

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers in the file of the rows that are not deleted."""
        if self._row_numbers is not None:
            return numbers_of(bitmap_of(self._row_numbers) - self._deleted)
        is_live = np.ones(self._layout.rows, bool)
        is_live[numbers_of(self._deleted)] = False
        return np.flatnonzero(is_live)

    @property
    def rows(self) -> int:
        """The number of rows that are not deleted."""
        return len(self.numbers)

    def deleted_with(self, rows: NDArray[np.int64]) -> BitMap64:
        """Return the numbers in the file of the deleted rows and of further rows, which are indexes into `numbers`."""
        return self._deleted | bitmap_of(self.numbers[rows])

    def read(self, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
        """Return columns in the types of the table's schema; a column is NULL if the file and the constants lack it.

        Columns are found by their field ids, and without field ids by their names.
        """
        try:
            names_by_column = names_in_file(self._layout.schema, schema, columns)
        except ValueError as error:
            raise pa.ArrowInvalid(str(error)) from None
        names = [names_by_column[name] for name in columns if name in names_by_column]
        table = None if names else pa.table({})
        if names and self._row_numbers is not None and self._paged is not None:
            table = self._paged.read_rows(names, self.numbers)
        if table is None:
            table = self._all_columns.select(names) if self._is_small else self._file.read(names)
            if len(self._deleted) or self._row_numbers is not None:
                table = table.take(pa.array(self.numbers))
        fields = [schema.field(name) for name in columns]
        rows = pa.table(
            [
                table[names_by_column[field.name]].cast(field.type)
                if field.name in names_by_column
                else pa.repeat(self._constants[field.name].cast(field.type), self.rows)
                if field.name in self._constants
                else pa.nulls(self.rows, field.type)
                for field in fields
            ],
            schema=pa.schema(fields),
        )
        return rows if self._lineage is None else with_inherited(rows, self._lineage, self.numbers)


@contextmanager
def open_data_file(storage: Storage, folder: str, file: DataFile, few: int | None = None) -> Iterator[OpenedFile]:
    """Open a data file of a table's folder; `few` is the number of rows to be read, None for an unknown number.

    Raises:
        DamagedError: the file is missing or no Parquet file, or its deletion vector is damaged.
        StorageError: the destination cannot be read.
    """
    deleted = BitMap64() if file.vector is None else file.vector.read_bitmap(storage, folder)
    path = below(folder, file.path)
    # A file of which a few rows are read was often read before: its layout is cached.
    layout = _Layout() if few is None else _cached_layout(storage.uri, path, file.size)
    is_little = few is not None and storage.limits.row_read_bytes * few < file.size
    with storage.open(path, file.size, few=is_little) as source:
        try:
            paged = PagedSource(source, file.size, layout.pages) if storage.is_local or is_little else None
            is_small = file.size <= storage.limits.small_file_bytes
            opened = OpenedFile(
                source, layout, deleted, paged, constants=file.constants, lineage=file.lineage, is_small=is_small
            )
            if deleted and deleted.max() >= layout.rows:
                raise DamagedError(f"{storage.uri_of(folder)}/{file.path} has fewer rows than its deletion vector")
            yield opened
        except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
            if not is_content_error(error):
                raise
            raise DamagedError(f"{storage.uri_of(folder)}/{file.path} is damaged: {first_line(error)}") from None


def count_rows(storage: Storage, folder: str, file: DataFile) -> int:
    """Return the number of a data file's rows, including deleted rows. Raises the errors of `open_data_file`."""
    with open_data_file(storage, folder, replace(file, vector=None)) as opened:
        return opened.rows


def read_rows(storage: Storage, folder: str, file: DataFile, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """Return columns of a data file. Raises the errors of `open_data_file`."""
    with open_data_file(storage, folder, file) as opened:
        return opened.read(schema, columns)


def row_parts(rows: pa.Table, limits: Limits) -> Iterator[pa.Table]:
    """Yield parts of about equally many rows, none of which has more than twice the byte limit of a file."""
    count = max(-(-rows.num_rows // limits.file_rows), -(-rows.nbytes // limits.file_bytes), 1)
    size = max(-(-rows.num_rows // count), 1)
    for start in range(0, rows.num_rows, size):
        yield from sliced(rows.slice(start, size), 2 * limits.file_bytes)


def _write_file(
    storage: Storage,
    folder: str,
    schema: pa.Schema,
    rows: pa.Table,
    partitions: Sequence[FilePartition],
    partition: tuple[PartitionValue, ...],
) -> DataFile:
    limits = storage.limits
    is_full = 2 * rows.num_rows >= limits.file_rows or 2 * rows.nbytes >= limits.file_bytes
    path = storage.layout(folder).of_rows(f"part-{uuid.uuid4().hex}{_FULL_SUFFIX if is_full else '.parquet'}")
    return write_parquet(storage, folder, path, schema, rows, partitions, partition)


def write_parquet(
    storage: Storage,
    folder: str,
    path: str,
    schema: pa.Schema,
    rows: pa.Table,
    partitions: Sequence[FilePartition],
    partition: tuple[PartitionValue, ...],
) -> DataFile:
    """Write rows of one file partition to a path in the table's folder."""
    rows, lineage = split_lineage(rows, schema)
    whole = rows.cast(file_schema(schema))
    for name in lineage.column_names:
        whole = whole.append_column(lineage.field(name), lineage.column(name))
    for file_partition, value in zip(partitions, partition, strict=True):
        # Some readers take partition values only from the file or its path, and the path has no values.
        if file_partition.own_field is not None:
            whole = whole.append_column(
                file_partition.own_field, pa.repeat(file_partition.scalar(value), rows.num_rows)
            )
    data = parquet_bytes(whole)
    storage.write(f"{folder}/{path}", memoryview(data).cast("B"))
    return DataFile(path, data.size, rows.num_rows, statistics_of(rows), partition=partition)
