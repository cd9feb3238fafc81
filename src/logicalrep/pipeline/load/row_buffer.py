"""Changes that are buffered until they can be applied: in memory, and beyond that in a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import IO

import pyarrow as pa

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.arrow.mapped_files import map_file
from logicalrep.transactions.relations import TableDescription

_ALIGNED = 64
"""The bytes at whose multiples Arrow expects arrays in memory."""


@dataclass(frozen=True, slots=True)
class _BufferedChanges:
    """Changes whose rows are in the file."""

    changes: TableChanges
    """The Relation messages alone."""
    batches: Sequence[tuple[TableDescription, int, int]]
    """The relation of each batch, and its start and end in the file."""


@dataclass(slots=True)
class _BufferFile:
    file: IO[bytes]
    written: list[_BufferedChanges] = field(default_factory=list)


class RowBuffer:
    """Changes in memory, and behind them those of a file.

    The rows have values in clear that are masked later. The file has no name, so that nothing stays after a kill.
    """

    def __init__(self) -> None:
        """Begin without changes."""
        self._in_memory: list[TableChanges] = []
        self._file: _BufferFile | None = None
        self.size = 0
        """The bytes in memory and in the file."""

    @property
    def has_changes(self) -> bool:
        """Whether there are any."""
        return bool(self._in_memory) or self._file is not None

    def add(self, changes: TableChanges, *, in_memory: bool) -> None:
        """Hold more, in memory if that is allowed and no file is begun."""
        self.size += changes.nbytes
        if in_memory and self._file is None:
            self._in_memory.append(changes)
            return
        if self._file is None:
            self._file = _BufferFile(tempfile.TemporaryFile(prefix="logicalrep-"))  # noqa: SIM115
        batches = [(batch.relation, *_write(self._file.file, batch.rows)) for batch in changes.batches]
        self._file.written.append(_BufferedChanges(replace(changes, batches=()), batches))

    def append(self, other: RowBuffer) -> None:
        """Take over what another holds; its file is mapped into memory."""
        self._in_memory += other.parts
        self.size += other.size

    @property
    def parts(self) -> list[TableChanges]:
        """All changes, in their order."""
        if self._file is not None:
            file, written = self._file.file, self._file.written
            file.flush()
            data = map_file(file, file.tell())
            file.close()
            self._in_memory += [_read(each, data) for each in written]
            self._file = None
        return self._in_memory

    def close(self) -> None:
        """Drop what is in a file that nobody has asked for."""
        if self._file is not None:
            self._file.file.close()
            self._file = None


def _write(file: IO[bytes], rows: pa.RecordBatch) -> tuple[int, int]:
    """Write rows behind what a file has; return where they begin and end."""
    start = -(-file.tell() // _ALIGNED) * _ALIGNED
    file.seek(start)
    with pa.ipc.new_stream(pa.PythonFile(file, "w"), rows.schema) as writer:
        writer.write_batch(rows)
    return start, file.tell()


def _read(written: _BufferedChanges, data: pa.Buffer) -> TableChanges:
    batches = [
        ChangeBatch(relation, pa.ipc.open_stream(data.slice(start, end - start)).read_next_batch())
        for relation, start, end in written.batches
    ]
    return replace(written.changes, batches=batches)
