"""Changes that are buffered until they can be applied: in memory, and beyond that in a temporary file."""

from __future__ import annotations

import shutil
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
_COPIED = 16 << 20
"""The most bytes of a file that is copied behind another one: each file that is mapped is an open one."""


@dataclass(frozen=True, slots=True)
class _WrittenChanges:
    """Changes whose rows are in the file."""

    changes: TableChanges
    """The Relation messages alone."""
    batches: Sequence[tuple[TableDescription, int, int]]
    """The relation of each batch, and its start and end in the file."""


@dataclass(slots=True)
class _BufferFile:
    file: IO[bytes]
    written: list[_WrittenChanges] = field(default_factory=list)

    def copy(self, other: _BufferFile) -> None:
        """Take in what another file has."""
        start = _next_start(self.file)
        self.file.seek(start)
        other.file.seek(0)
        shutil.copyfileobj(other.file, self.file)
        for written_changes in other.written:
            batches = [(relation, start + first, start + end) for relation, first, end in written_changes.batches]
            self.written.append(replace(written_changes, batches=batches))


class RowBuffer:
    """Changes in memory, and behind them those of a file.

    The rows have values in clear that are masked later. The file has no name, so that nothing stays after a kill.
    """

    def __init__(self) -> None:
        """Begin without changes."""
        self._in_memory: list[TableChanges] = []
        self._files: list[_BufferFile] = []
        self.size = 0
        """The bytes in memory and in files."""

    @property
    def has_changes(self) -> bool:
        """Whether there are any."""
        return bool(self._in_memory or self._files)

    def add(self, changes: TableChanges, *, in_memory: bool) -> None:
        """Hold more, in memory if that is allowed and no file is begun."""
        self.size += changes.nbytes
        if in_memory and not self._files:
            self._in_memory.append(changes)
            return
        if not self._files:
            self._files.append(_BufferFile(tempfile.TemporaryFile(prefix="logicalrep-")))  # noqa: SIM115
        last = self._files[-1]
        batches = [(batch.relation, *_write(last.file, batch.rows)) for batch in changes.batches]
        last.written.append(_WrittenChanges(replace(changes, batches=()), batches))

    def append(self, other: RowBuffer) -> None:
        """Take over what another holds, which holds nothing then."""
        size = self.size + other.size
        for changes in other._in_memory:
            self.add(changes, in_memory=True)
        for file in other._files:
            if self._files and file.file.tell() <= _COPIED:
                self._files[-1].copy(file)
                file.file.close()
            else:
                self._files.append(file)
        self.size = size
        other._in_memory, other._files, other.size = [], [], 0

    @property
    def parts(self) -> list[TableChanges]:
        """All changes, in their order; files are mapped into memory."""
        for file in self._files:
            file.file.flush()
            data = map_file(file.file, file.file.tell())
            file.file.close()
            self._in_memory += [_read(changes, data) for changes in file.written]
        self._files = []
        return self._in_memory

    def close(self) -> None:
        """Drop what is in files that nobody has asked for."""
        for file in self._files:
            file.file.close()
        self._files = []


def _write(file: IO[bytes], rows: pa.RecordBatch) -> tuple[int, int]:
    """Write rows behind what a file has; return where they begin and end."""
    start = _next_start(file)
    file.seek(start)
    with pa.ipc.new_stream(pa.PythonFile(file, "w"), rows.schema) as writer:
        writer.write_batch(rows)
    return start, file.tell()


def _next_start(file: IO[bytes]) -> int:
    return -(-file.tell() // _ALIGNED) * _ALIGNED


def _read(written: _WrittenChanges, data: pa.Buffer) -> TableChanges:
    batches = [
        ChangeBatch(relation, pa.ipc.open_stream(data.slice(start, end - start)).read_next_batch())
        for relation, start, end in written.batches
    ]
    return replace(written.changes, batches=batches)
