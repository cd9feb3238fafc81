"""Parquet files, read without passing Python objects to threads of Arrow.

If such a thread drops the last reference while Python exits, the process aborts or hangs:
https://github.com/apache/arrow/issues/34314 and https://github.com/apache/arrow/issues/50482.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

_LEAST_THREADED = 1 << 20
"""The least bytes of a file whose columns Arrow's threads read."""


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
