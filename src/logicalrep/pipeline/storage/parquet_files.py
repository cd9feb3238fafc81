"""Parquet files, read without leaving objects of Python to threads of Arrow.

Such a thread may let go of the last reference while Python ends. Then the process aborts, or hangs:
https://github.com/apache/arrow/issues/34314 and https://github.com/apache/arrow/issues/50482.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq


def is_content_error(error: Exception) -> bool:
    """Return whether an error of reading a Parquet file is of its bytes, and not of the way to them, or of the memory.

    Arrow raises OSError, without a number, where it cannot decompress a page or read a footer.
    """
    if isinstance(error, OSError):
        return type(error) is OSError and error.errno is None
    return not isinstance(error, MemoryError)


class ParquetFile:
    """A Parquet file: one of a disk is opened by Arrow itself, and any other is read by the calling thread alone.

    Example:
        >>> ParquetFile(io.BytesIO(data)).read(["id"])
    """

    def __init__(self, source: IO[bytes] | pa.NativeFile) -> None:
        """Open it. Raises pyarrow.ArrowInvalid if it is none."""
        # Files of stores are buffered too: what is below the buffer tells.
        self._is_of_disk = isinstance(getattr(source, "raw", None), io.FileIO)
        # Spark writes times as int96, which is read in nanoseconds by default; which hold 1677 to 2262 alone.
        self._file = pq.ParquetFile(
            source.name if self._is_of_disk else source,
            pre_buffer=self._is_of_disk,
            coerce_int96_timestamp_unit="us",
        )

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._file.metadata.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._file.schema_arrow

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows, in some columns or in all. Raises pyarrow.ArrowInvalid if the file is damaged."""
        return self._file.read(columns, use_threads=self._is_of_disk)
