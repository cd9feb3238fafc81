"""Rows that are buffered until they can be applied: in memory, and beyond that in a temporary file."""

from __future__ import annotations

import mmap
import tempfile
from typing import IO

import pyarrow as pa


class RowBuffer:
    """Record batches in memory, and behind them those of a file.

    The rows have values in clear that are masked later. The file has no name, so that nothing stays after a kill.
    """

    def __init__(self) -> None:
        """Begin without rows."""
        self._in_memory: list[pa.RecordBatch] = []
        self._file: IO[bytes] | None = None
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        self.size = 0
        """The bytes in memory and in the file."""

    def add(self, batch: pa.RecordBatch, *, in_memory: bool) -> None:
        """Hold one more, in memory if that is allowed and no file is begun."""
        self.size += batch.nbytes
        if in_memory and self._writer is None:
            self._in_memory.append(batch)
            return
        if self._writer is None:
            self._file = tempfile.TemporaryFile(prefix="logicalrep-")  # noqa: SIM115
            self._writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), batch.schema)
        self._writer.write_batch(batch)

    def append(self, other: RowBuffer) -> None:
        """Take over what another holds; its file is mapped into memory."""
        self._in_memory += other.batches
        self.size += other.size

    @property
    def batches(self) -> list[pa.RecordBatch]:
        """All record batches."""
        if self._writer is not None:
            assert self._file is not None
            self._writer.close()
            self._file.flush()
            mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            self._file.close()
            reader = pa.ipc.open_file(pa.py_buffer(mapped))
            self._in_memory += [reader.get_batch(number) for number in range(reader.num_record_batches)]
            self._writer = self._file = None
        return self._in_memory

    def close(self) -> None:
        """Drop what is in a file that nobody has asked for."""
        if self._file is not None:
            self._file.close()
            self._writer = self._file = None
