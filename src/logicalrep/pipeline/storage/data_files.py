"""Data files: Parquet with the statistics by which readers, and we, leave files out."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from logicalrep.arrow.slices import sliced
from logicalrep.pipeline.storage.statistics import Statistics, statistics_of
from logicalrep.pipeline.storage.storage import DamagedError, Storage, below

MOST_ROWS = 1 << 20
"""The most rows of a data file."""
MOST_BYTES = 128 << 20
"""About the most bytes of a data file's rows in memory."""
DATA_FILE = re.compile(r"part-[0-9a-f]{32}\.parquet")
"""The names of data files."""
_DICTIONARY = 256 << 10
"""The most bytes of a column's dictionary: of keys, which all differ, a larger one is half of the time of writing."""


_FULL = "-full.parquet"
"""The end of the names of files with more than half of the most rows or bytes, which are not merged with others."""
_OWN_NAME = re.compile("part-[0-9a-f]{32}(-full)?\\.parquet")


def is_own_name(path: str) -> bool:
    """Return whether a data file has a name that is given here; other programs merge files too."""
    return _OWN_NAME.fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table."""

    path: str
    """The path within the table's folder."""
    size: int
    """The size in bytes."""
    rows: int
    statistics: Statistics

    @property
    def is_full(self) -> bool:
        """Whether merging it with others would give as many files as before."""
        return self.path.endswith(_FULL) or 2 * self.rows >= MOST_ROWS


def write_rows(storage: Storage, folder: str, rows: pa.Table) -> list[DataFile]:
    """Write rows as data files of a table's folder; no file for no rows."""
    return [_write_file(storage, folder, part) for part in _parts(rows)]


def write_batches(
    storage: Storage, folder: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> list[DataFile]:
    """Write record batches as data files, as soon as there are enough for one."""
    files: list[DataFile] = []
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= MOST_ROWS or sum(each.nbytes for each in held) >= MOST_BYTES:
            files += write_rows(storage, folder, pa.Table.from_batches(held, schema))
            held = []
    return files + write_rows(storage, folder, pa.Table.from_batches(held, schema))


class OpenedFile:
    """A data file that is read column by column.

    Example:
        >>> with opened(storage, "public/orders", file) as rows:
        ...     rows.read(schema, ["id"])
    """

    def __init__(self, file: pq.ParquetFile) -> None:
        """Take the open file."""
        self._file = file

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return int(self._file.metadata.num_rows)

    def read(self, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
        """Return columns, in the types of the table's schema; NULL in one that the file does not have."""
        there = set(self._file.schema_arrow.names).intersection(columns)
        table = self._file.read(columns=[name for name in columns if name in there])
        fields = [schema.field(name) for name in columns]
        return pa.table(
            [
                table[each.name].cast(each.type) if each.name in there else pa.nulls(self.rows, each.type)
                for each in fields
            ],
            schema=pa.schema(fields),
        )


@contextmanager
def open_data_file(storage: Storage, folder: str, file: DataFile) -> Iterator[OpenedFile]:
    """Open a data file of a table's folder.

    Raises:
        DamagedError: it is not there, or it is no Parquet file: the table is damaged.
        StorageError: the destination cannot be read.
    """
    with storage.open(below(folder, file.path), file.size) as source:
        try:
            # Spark writes times as int96, which is read in nanoseconds by default; which hold 1677 to 2262 alone.
            yield OpenedFile(pq.ParquetFile(source, coerce_int96_timestamp_unit="us"))
        except pa.ArrowInvalid as error:
            raise DamagedError(f"{storage.uri_of(folder)}/{file.path} is damaged: {error}") from None


def count_rows(storage: Storage, folder: str, file: DataFile) -> int:
    """Return the number of a data file's rows. Raises what `open_data_file` does."""
    with open_data_file(storage, folder, file) as there:
        return there.rows


def read_rows(storage: Storage, folder: str, file: DataFile, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """Return columns of a data file. Raises what `open_data_file` does."""
    with open_data_file(storage, folder, file) as there:
        return there.read(schema, columns)


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield rows in parts of about the same number; where rows are of very different sizes, none is much too large."""
    count = max(-(-rows.num_rows // MOST_ROWS), -(-rows.nbytes // MOST_BYTES), 1)
    size = max(-(-rows.num_rows // count), 1)
    for start in range(0, rows.num_rows, size):
        yield from sliced(rows.slice(start, size), 2 * MOST_BYTES)


def _write_file(storage: Storage, folder: str, rows: pa.Table) -> DataFile:
    sink = pa.BufferOutputStream()
    # Files are rewritten often, so that the fastest compression costs least.
    pq.write_table(rows, sink, compression="snappy", dictionary_pagesize_limit=_DICTIONARY, write_statistics=True)
    data = sink.getvalue()
    is_full = 2 * rows.num_rows >= MOST_ROWS or 2 * rows.nbytes >= MOST_BYTES
    path = f"part-{uuid.uuid4().hex}{_FULL if is_full else '.parquet'}"
    storage.write(f"{folder}/{path}", data.to_pybytes())
    return DataFile(path, data.size, rows.num_rows, statistics_of(rows))
