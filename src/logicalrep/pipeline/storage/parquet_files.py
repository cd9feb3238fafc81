"""Parquet files, written in one form, and read without passing Python objects to threads of Arrow.

If such a thread drops the last reference while Python exits, the process aborts or hangs:
https://github.com/apache/arrow/issues/34314 and https://github.com/apache/arrow/issues/50482.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_LEAST_THREADED = 1 << 20
"""The least bytes of a file whose columns Arrow's threads read."""
_DICTIONARY = 256 << 10
"""Limit of a column's dictionary, in bytes: a larger dictionary of distinct values takes half of the writing time."""
_PAGE = 16 << 10
"""Approximate page size in bytes: to read a few rows, replicate reads their pages alone."""
_SAMPLE = 4 << 10
"""Number of first values that decide whether all values of a column differ, as keys do."""


def is_content_error(error: Exception) -> bool:
    """Return whether damaged bytes of a Parquet file caused an error, and not the storage or a lack of memory.

    Arrow raises OSError without errno if it cannot decompress a page or read a footer.
    """
    if isinstance(error, OSError):
        return type(error) is OSError and error.errno is None
    return not isinstance(error, MemoryError)


class ParquetFile:
    """A Parquet file: Arrow opens a file on a disk itself; the calling thread alone reads any other file.

    Example:
        >>> ParquetFile(io.BytesIO(data)).read(["id"])
    """

    def __init__(self, source: IO[bytes] | pa.NativeFile) -> None:
        """Open the file. Raises pyarrow.ArrowInvalid if it is no Parquet file."""
        # Files of stores are buffered too: only the raw file shows the difference.
        raw = getattr(source, "raw", None)
        self._is_of_disk = isinstance(raw, io.FileIO)
        # Of a small file, the threads cost more than what they save.
        self._uses_threads = isinstance(raw, io.FileIO) and os.fstat(raw.fileno()).st_size >= _LEAST_THREADED
        # Spark writes times as int96, which Arrow reads as nanoseconds by default: they cover only 1677 to 2262.
        self._file = pq.ParquetFile(
            source.name if self._is_of_disk else source,
            pre_buffer=self._is_of_disk,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )

    @property
    def rows(self) -> int:
        return int(self._file.metadata.num_rows)

    @property
    def schema(self) -> pa.Schema:
        return self._file.schema_arrow

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows of the given columns, None for all columns. Raises pyarrow.ArrowInvalid for damaged data."""
        return self._file.read(columns, use_threads=self._uses_threads)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the given columns, few at a time. Raises pyarrow.ArrowInvalid for damaged data."""
        yield from self._file.iter_batches(columns=columns, use_threads=self._uses_threads)


def parquet_bytes(rows: pa.Table) -> pa.Buffer:
    """Return the bytes of a Parquet file with the rows."""
    sink = pa.BufferOutputStream()
    # Files are rewritten often: the fastest compression costs least.
    pq.write_table(
        rows,
        sink,
        compression="snappy",
        use_dictionary=_with_dictionaries(rows),
        dictionary_pagesize_limit=_DICTIONARY,
        data_page_size=_PAGE,
        write_page_index=True,
        write_page_checksum=True,
        write_statistics=_with_bounds(rows),
    )
    return sink.getvalue()


def _with_bounds(rows: pa.Table) -> bool | list[str]:
    """Return the columns to write with bounds: bounds leave out NaN, and some readers skip its rows by them."""
    with_nan = {
        field.name
        for field in rows.schema
        if pa.types.is_floating(field.type) and pc.any(pc.is_nan(rows[field.name])).as_py()
    }
    if not with_nan:
        return True
    return [field.name for field in rows.schema if field.name not in with_nan and not pa.types.is_nested(field.type)]


def _with_dictionaries(rows: pa.Table) -> bool | list[str]:
    """Return the columns to write with a dictionary: a dictionary of distinct values is read for nothing."""
    if any(pa.types.is_nested(field.type) for field in rows.schema):
        return True
    first = rows.slice(0, _SAMPLE)
    return [name for name in first.column_names if pc.count_distinct(first[name], mode="all").as_py() < first.num_rows]
