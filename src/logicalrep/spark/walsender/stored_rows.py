"""The committed rows that a receiver holds for Spark in memory; a Spool stores them in files instead."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition

from logicalrep_runtime.scalars import Lsn

MOST_IN_MEMORY = 64 << 20
"""Most bytes of rows in a receiver's memory, and in the tasks of a batch.

A batch of 256 MiB exhausted a driver's heap of 1 GiB at the third batch.
"""
_GATHERED = 4 << 20
"""Bytes of rows that are compressed together."""
TASK = 900 << 10
"""Bytes of a task's compressed rows: Spark warns of tasks of more than 1000 KiB."""
LARGEST_TASK = 4 << 20
"""The largest compressed row that a task carries, in bytes."""
_ZSTD = pa.ipc.IpcWriteOptions(compression="zstd")


@dataclass
class CarriedRows(InputPartition):
    data: bytes
    """An Arrow stream, compressed."""

    def read(self) -> Iterator[pa.RecordBatch]:
        with pa.ipc.open_stream(self.data) as reader:
            yield from reader


class RowsInMemory:
    """Rows in the driver's memory until Spark has committed them, for which no folder is needed."""

    def __init__(self) -> None:
        self._batches: deque[tuple[pa.RecordBatch, NDArray[np.int64]]] = deque()
        self.size = 0

    def write(self, batch: pa.RecordBatch, positions: NDArray[np.int64]) -> None:
        self._batches.append((batch, positions))
        self.size += batch.nbytes

    def partitions(self, start: Lsn, end: Lsn) -> list[InputPartition] | None:
        """Return the partitions with the rows from `start` to before `end`; None if tasks cannot carry them."""
        tasks: list[InputPartition] = []
        size = 0
        for data in _tasks(self._between(start, end)):
            size += len(data)
            if len(data) > LARGEST_TASK or size > MOST_IN_MEMORY:
                return None
            tasks.append(CarriedRows(data))
        return tasks

    def remove_before(self, lsn: Lsn) -> None:
        while self._batches and self._batches[0][1][-1] < lsn:
            self.size -= self._batches.popleft()[0].nbytes

    def close(self) -> None:
        self._batches.clear()
        self.size = 0

    def _between(self, start: Lsn, end: Lsn) -> Iterator[pa.RecordBatch]:
        for batch, positions in self._batches:
            first, last = positions.searchsorted([int(start), int(end)])
            if first < last:
                yield batch.slice(first, last - first)


def _tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Yield Arrow streams of the rows, each small enough for a task unless it is a single row."""
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if size and size + batch.nbytes > _GATHERED:
            yield from _compressed(_joined(gathered))
            gathered, size = [], 0
        gathered.append(batch)
        size += batch.nbytes
    if gathered:
        yield from _compressed(_joined(gathered))


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows in one batch: many small batches take half as long again to compress and to read."""
    [batch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch


def _compressed(batch: pa.RecordBatch) -> Iterator[bytes]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_ZSTD) as writer:
        writer.write_batch(batch)
    data = sink.getvalue().to_pybytes()
    if len(data) <= TASK or batch.num_rows == 1:
        yield data
    else:
        half = batch.num_rows // 2
        yield from _compressed(batch.slice(0, half))
        yield from _compressed(batch.slice(half))
