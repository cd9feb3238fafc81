"""The spool: Arrow segment files of received rows that Spark has not committed yet, for the executors.

A segment has the rows of whole or split transactions, each with the position that decides its batch. The files need
not survive the process: the server sends lost rows again, as they were not acknowledged.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition

from logicalrep.spark.walsender.spool_folders import SpoolError, add_folder, open_own_folder, open_shared_folder
from logicalrep_runtime.scalars import Lsn

_POSITION = "_position"
"""The name of the positions' column: a segment's first column, which is not passed to Spark."""
_SUFFIX = ".arrow"
_UNFINISHED = ".part"


@dataclass(slots=True)
class Segment:
    path: Path
    first: int
    last: int
    size: int


@dataclass
class SegmentRange(InputPartition):
    path: Path
    start: Lsn
    end: Lsn

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield rows at or after `start` and before `end`. Raises SpoolError if the spool is unsafe or absent here."""
        with _open_segment(self.path) as source, pa.ipc.open_stream(source) as reader:
            for batch in reader:
                positions = batch.column(0).to_numpy()
                first, last = positions.searchsorted([int(self.start), int(self.end)])
                if first < last:
                    yield _without_positions(batch.slice(first, last - first))


class Spool:
    def __init__(self, folder: Path, slot: str, schema: pa.Schema, segment_bytes: int) -> None:
        """Create a spool for a schema's rows within `folder`, which several spools may share."""
        self._schema = pa.schema([pa.field(_POSITION, pa.int64()), *schema])
        self._segment_bytes = segment_bytes
        self._shared = open_shared_folder(folder)
        try:
            name, self._own = add_folder(self._shared, slot)
        except BaseException:
            os.close(self._shared)
            raise
        self.folder = folder / name
        self._number = 0
        self._writer: pa.RecordBatchStreamWriter | None = None
        self._file: IO[bytes] | None = None
        self._name = ""
        self._first = self._last = 0
        self._written = 0
        self.segments: list[Segment] = []

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    def write(self, batch: pa.RecordBatch, positions: NDArray[np.int64]) -> None:
        """Write rows with their positions, which do not decrease within a record batch."""
        if self._writer is None:
            self._number += 1
            self._name = f"{self._number:08d}{_SUFFIX}"
            self._file = _open_file(f"{self._name}{_UNFINISHED}", "xb", self._own)
            self._writer = pa.ipc.new_stream(self._file, self._schema)
            self._first = self._last = int(positions[0])
            self._written = 0
        arrays = [pa.array(positions, pa.int64()), *batch.columns]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        # Each batch of a typed table has one description of it, so a batch may begin before the end of the last one.
        self._first = min(self._first, int(positions[0]))
        self._last = max(self._last, int(positions[-1]))
        self._written += batch.nbytes
        if self._written >= self._segment_bytes:
            self.seal()

    def seal(self) -> None:
        if self._end():
            os.rename(f"{self._name}{_UNFINISHED}", self._name, src_dir_fd=self._own, dst_dir_fd=self._own)
            size = os.stat(self._name, dir_fd=self._own).st_size
            self.segments.append(Segment(self.folder / self._name, self._first, self._last, size))

    def partitions(self, start: Lsn, end: Lsn) -> list[InputPartition]:
        """Return a partition for each segment with rows whose position is at or after `start` and before `end`."""
        self.seal()
        segments = [segment for segment in self.segments if segment.last >= start and segment.first < end]
        return [SegmentRange(segment.path, start, end) for segment in segments]

    def remove_before(self, lsn: Lsn) -> None:
        while self.segments and self.segments[0].last < lsn:
            with suppress(FileNotFoundError):
                os.unlink(self.segments.pop(0).path.name, dir_fd=self._own)

    def close(self) -> None:
        if self._own < 0:
            return
        self._end()
        self.segments.clear()
        shutil.rmtree(self.folder.name, ignore_errors=True, dir_fd=self._shared)
        os.close(self._own)
        os.close(self._shared)
        self._own = self._shared = -1

    def _end(self) -> bool:
        """Write the end of the segment being written; return False if there is none."""
        if self._file is None or self._writer is None:
            return False
        self._writer.close()
        self._file.close()
        self._writer = self._file = None
        return True


@contextmanager
def _open_segment(path: Path) -> Iterator[IO[bytes]]:
    try:
        folder = open_own_folder(path.parent)
    except FileNotFoundError:
        raise SpoolError(
            f"the executor on {socket.gethostname()} does not see the driver's spool folder {path.parent}: "
            "name a folder that the driver and all executors share in the option 'spool', or use mode = peek",
            code="SPOOL_NOT_SEEN",
        ) from None
    try:
        with _open_file(path.name, "rb", folder) as file:
            yield file
    except FileNotFoundError:
        raise SpoolError(f"{path} was removed when its stream ended: restart the query", code="SEGMENT_GONE") from None
    finally:
        os.close(folder)


def _open_file(name: str, mode: str, folder: int) -> IO[bytes]:
    return cast(
        IO[bytes],
        open(name, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600, dir_fd=folder)),
    )


def _without_positions(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(batch.columns[1:], schema=pa.schema(list(batch.schema)[1:]))
