"""Arrow segment files between the receiver and the executors: what has arrived and is not committed by Spark yet.

A segment has the rows of whole or split transactions, each with the position that says which batch it belongs to.
Nothing here has to survive the process: what is lost is sent again, as it was not acknowledged.
"""

from __future__ import annotations

import fcntl
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep import LogicalRepError, Lsn
from logicalrep_pipeline.table_names import TableName

POSITION = "_position"
"""The name of the column of positions, which comes first in a segment and is not given to Spark."""
SUFFIX = ".arrow"
"""Of the names of finished segments."""
_UNFINISHED = ".part"
_END = b"\xff\xff\xff\xff\0\0\0\0"
"""What Arrow's streams end with."""
_TABLE = b"table"


class SegmentError(LogicalRepError, ValueError):
    """A file that is no segment, a damaged one, or one with other rows than are asked for; says where and why."""

    code = "SEGMENT_DAMAGED"


@dataclass(slots=True)
class Segment:
    """A finished file."""

    path: Path
    first: int
    """The lowest position of a row."""
    last: int
    """The highest position of a row."""
    size: int


class Spool:
    """Writes segments into a folder of its own, and removes them."""

    def __init__(
        self, folder: Path, slot: str, schema: Any, segment_bytes: int, table: TableName | None = None
    ) -> None:
        """For rows with such a schema, of the change feed or of one table."""
        self._schema = _schema_of_segments(schema, table)
        self._segment_bytes = segment_bytes
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_abandoned(folder, slot)
        self.folder = folder / f"{slot}-{uuid.uuid4().hex}"
        self.folder.mkdir(mode=0o700)
        self._lock = _locked(self.folder)
        self._number = 0
        self._writer: Any = None
        self._path = self.folder
        self._first = self._last = 0
        self._written = 0
        self.segments: list[Segment] = []
        """The finished ones, in order."""

    @property
    def size(self) -> int:
        """How many bytes lie in finished segments."""
        return sum(segment.size for segment in self.segments)

    def write(self, batch: Any, positions: NDArray[np.int64]) -> None:
        """Rows, each with its position; within a batch positions do not go down."""
        if self._writer is None:
            self._number += 1
            self._path = self.folder / f"{self._number:08d}{SUFFIX}"
            self._writer = pa.ipc.new_stream(f"{self._path}{_UNFINISHED}", self._schema)
            self._first = self._last = int(positions[0])
            self._written = 0
        arrays = [pa.array(positions, pa.int64()), *batch.columns]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        # A typed table's batches are of one form of the table each, so a batch may begin before the last one ended.
        self._first = min(self._first, int(positions[0]))
        self._last = max(self._last, int(positions[-1]))
        self._written += batch.nbytes
        if self._written >= self._segment_bytes:
            self.seal()

    def seal(self) -> None:
        """Finish the segment that is being written, if there is one."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            Path(f"{self._path}{_UNFINISHED}").rename(self._path)
            self.segments.append(Segment(self._path, self._first, self._last, self._path.stat().st_size))

    def overlapping(self, start: Lsn, end: Lsn) -> list[Segment]:
        """The finished segments with rows whose position is at or after `start` and before `end`."""
        return [segment for segment in self.segments if segment.last >= start and segment.first < end]

    def remove_before(self, lsn: Lsn) -> None:
        """Remove the segments of which all rows lie before a position."""
        while self.segments and self.segments[0].last < lsn:
            self.segments.pop(0).path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove everything."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self.segments.clear()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


def read_segment(path: Path, start: Lsn, end: Lsn) -> Iterator[Any]:
    """The record batches of a segment, of the rows that lie at or after `start` and before `end`."""
    with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as reader:
        for batch in reader:
            positions = batch.column(0).to_numpy()
            first, last = positions.searchsorted([int(start), int(end)])
            if first < last:
                yield _without_positions(batch.slice(first, last - first))


def read_whole_segment(path: Path, schema: Any, table: TableName | None) -> Iterator[Any]:
    """The record batches of a segment that may be anybody's: SegmentError unless it is one of such rows."""
    expected = _schema_of_segments(schema, table)
    try:
        with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as reader:
            difference = _difference(reader.schema, expected)
            if difference is not None:
                raise SegmentError(f"{path}: {difference}")
            for batch in reader:
                batch.validate(full=True)
                yield _without_positions(batch)
            source.seek(max(source.size() - len(_END), 0))
            if source.read() != _END:
                raise SegmentError(f"{path}: is damaged: it ends without the mark of its end")
    except FileNotFoundError:
        raise SegmentError(
            f"{path}: is gone, as segments are once Spark has committed what is in them", code="SEGMENT_GONE"
        ) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SegmentError(f"{path}: is no segment, or a damaged one: {error}") from None


def _schema_of_segments(schema: Any, table: TableName | None) -> Any:
    fields = [pa.field(POSITION, pa.int64()), *schema]
    return pa.schema(fields, metadata=None if table is None else {_TABLE: str(table).encode()})


def _without_positions(batch: Any) -> Any:
    return pa.RecordBatch.from_arrays(batch.columns[1:], schema=pa.schema(list(batch.schema)[1:]))


def _difference(found: Any, expected: Any) -> str | None:
    """Why a file with such a schema is not what is asked for; None if it is."""
    if found.names[:1] != [POSITION]:
        return "is no segment"
    has, wants = _rows_of(found), _rows_of(expected)
    if has != wants:
        return f"has rows of {has}, and {wants} is asked for"
    for field, wanted in zip_longest(found, expected):
        if field != wanted:
            other = wanted if field is None else field
            return f"has other columns than are asked for: {other.name} {other.type}"
    return None


def _rows_of(schema: Any) -> str:
    table = (schema.metadata or {}).get(_TABLE)
    return "the change feed" if table is None else f"the table {table.decode(errors='replace')}"


def _locked(folder: Path) -> IO[str]:
    """A file that is locked as long as this process lives, so that others see whether the folder is in use."""
    lock = (folder / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


def _remove_abandoned(folder: Path, slot: str) -> None:
    for other in folder.glob(f"{slot}-*"):
        with suppress(OSError), (other / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(other, ignore_errors=True)
