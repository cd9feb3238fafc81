"""Changes buffered until they can be applied, in memory and, beyond a limit, in a temporary file."""

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
"""The alignment that Arrow expects of arrays in memory, in bytes."""
_COPIED = 16 << 20
"""The most bytes of a file that is appended to another one: each mapped file stays open."""


@dataclass(frozen=True, slots=True)
class _WrittenChanges:
    changes: TableChanges
    batches: Sequence[tuple[TableDescription, int, int]]
    """The relation of each batch, and its start and end in the file."""


@dataclass(slots=True)
class _BufferFile:
    file: IO[bytes]
    written: list[_WrittenChanges] = field(default_factory=list)

    def append(self, other: _BufferFile) -> None:
        start = _next_start(self.file)
        self.file.seek(start)
        other.file.seek(0)
        shutil.copyfileobj(other.file, self.file)
        for written_changes in other.written:
            batches = [(relation, start + first, start + end) for relation, first, end in written_changes.batches]
            self.written.append(replace(written_changes, batches=batches))


class RowBuffer:
    """Changes in memory, then in a file without a name: rows have values in clear that are masked later."""

    def __init__(self) -> None:
        self._in_memory: list[TableChanges] = []
        self._files: list[_BufferFile] = []
        self.size = 0
        """The bytes in memory and in files."""

    @property
    def has_changes(self) -> bool:
        return bool(self._in_memory or self._files)

    def add(self, changes: TableChanges, *, in_memory: bool) -> None:
        """Add changes, in memory if `in_memory` is True and no file is in use."""
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
        """Take all changes of another buffer, which is empty afterwards."""
        size = self.size + other.size
        for changes in other._in_memory:
            self.add(changes, in_memory=True)
        for file in other._files:
            if self._files and file.file.tell() <= _COPIED:
                self._files[-1].append(file)
                file.file.close()
            else:
                self._files.append(file)
        self.size = size
        other._in_memory, other._files, other.size = [], [], 0

    @property
    def parts(self) -> list[TableChanges]:
        """All changes in order; files are mapped into memory."""
        for file in self._files:
            file.file.flush()
            data = map_file(file.file, file.file.tell())
            file.file.close()
            self._in_memory += [_read(changes, data) for changes in file.written]
        self._files = []
        return self._in_memory

    def close(self) -> None:
        for file in self._files:
            file.file.close()
        self._files = []


def _write(file: IO[bytes], rows: pa.RecordBatch) -> tuple[int, int]:
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
