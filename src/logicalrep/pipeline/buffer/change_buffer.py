"""Buffered changes of loading tables: stored before acknowledged, applied once the copied rows are committed."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from logicalrep.arrow.changes.table_changes import TableChanges, together
from logicalrep.arrow.mapped_files import forget_read_pages
from logicalrep.pipeline.buffer.change_files import PARTS, changes_in, contents, parquet, properties_of
from logicalrep.pipeline.buffer.pending_loads import PendingLoad, pending_load
from logicalrep.pipeline.buffer.row_buffer import RowBuffer
from logicalrep.pipeline.schema.stored_json import encode
from logicalrep.pipeline.state.state import FOLDER
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage, below
from logicalrep_runtime.scalars import Lsn

_PENDING = f"{FOLDER}/pending"
_BUFFERS = f"{FOLDER}/buffered"
_LAST, _OTHER = ".parquet", ".part"
"""The suffixes of the last file of an LSN, and of its other files."""
_NONE = Lsn(0)


@dataclass(frozen=True, slots=True, order=True)
class BufferedFile:
    end: Lsn
    previous: Lsn
    """The end of the previous file, also if that was applied and deleted; 0 for a buffer's first file."""
    path: str


class ChangeBuffer:
    def __init__(self, storage: Storage, check: Callable[[], object] = lambda: None) -> None:
        """Take the destination; `check`, called before files are removed, raises if another process writes there."""
        self._storage = storage
        self._check = check

    def pending_loads(self) -> dict[str, PendingLoad]:
        loads = {}
        for path in self._storage.list(_PENDING):
            if path.endswith(".json"):
                load = self._storage.parse(path, pending_load)
                if load is not None:
                    loads[load.folder] = load
        return loads

    def save_pending_load(self, load: PendingLoad) -> None:
        self._storage.write(_pending(load.folder), encode(load))

    def delete_pending_load(self, folder: str) -> None:
        self._storage.delete(_pending(folder))

    def append(self, folder: str, changes: TableChanges, end: Lsn, previous: Lsn = _NONE) -> Lsn:
        """Store the changes of commits before `end` that are not stored yet; return the end of the new last file.
        `previous` is the end of the last file, 0 without one."""
        files = self.files(folder)
        if files:
            changes = changes.between(first=int(files[-1].end))
        if changes.first_lsn is None:
            return previous
        *first_files, (rows, properties) = contents(changes, self._storage.limits.buffer_bytes)
        # A large transaction needs several files. The last file names the others, and completes the batch.
        paths = [self._part(folder, end, secrets.token_hex(8)) for _ in first_files]
        for path, part in zip(paths, first_files, strict=True):
            self._storage.write(path, parquet(*part))
            forget_read_pages()
        if paths:
            properties[PARTS] = json.dumps([path.rpartition("/")[2] for path in paths]).encode()
        path = f"{_BUFFERS}/{folder}/{int(end):016X}-{int(previous):016X}{_LAST}"
        self._storage.write(path, parquet(rows, properties))
        return end

    def changes(self, folder: str) -> Iterator[tuple[Lsn, TableChanges]]:
        """Yield a table's stored changes in order, many batches at once, with the end of the last batch."""
        buffer, previous_end, most_bytes = RowBuffer(), Lsn(0), self._storage.limits.buffer_bytes
        files = self.files(folder)
        try:
            for number, file in enumerate(files, 1):
                for changes in self._stored(folder, file.path):
                    # Two processes may have stored the same changes.
                    buffer.add(changes.between(first=int(previous_end)), in_memory=buffer.size < most_bytes)
                previous_end = file.end
                if number == len(files) or buffer.size >= most_bytes:
                    yield file.end, together(buffer.parts)
                    buffer = RowBuffer()
        finally:
            buffer.close()

    def _stored(self, folder: str, last: str) -> Iterator[TableChanges]:
        data = self._read(last)
        with self._storage.parsing(last):
            names = json.loads(properties_of(data).get(PARTS, b"[]"))
            paths = [f"{_BUFFERS}/{below(folder, name)}" for name in names]
        for path in [*paths, last]:
            content = data if path == last else self._read(path)
            with self._storage.parsing(path):
                changes = changes_in(content)
            yield changes

    def _read(self, path: str) -> bytes:
        data = self._storage.read(path)
        if data is None:
            raise MalformedFileError(
                f"{self._storage.uri_of(path)} is missing: it had buffered changes of a table that loads"
            )
        return data

    def has_after(self, folder: str, lsn: Lsn) -> bool:
        return any(file.end > lsn for file in self.files(folder))

    def forget(self, folder: str, upto: Lsn | None = None) -> None:
        """Remove a table's applied changes up to an end; without `upto` all changes, which a load will include."""
        self._check()
        files = self._storage.list(f"{_BUFFERS}/{folder}")
        # The file that names the others is deleted first: without it nothing reads them.
        for path in sorted(files, key=lambda path: not path.endswith(_LAST)):
            is_buffer_file = path.endswith((_LAST, _OTHER))
            if is_buffer_file and (upto is None or self._end(path) <= upto):
                self._storage.delete(path)

    def remove(self, folder: str) -> None:
        """Remove a table's buffered changes, and then its pending load."""
        self.forget(folder)
        self.delete_pending_load(folder)

    def files(self, folder: str) -> list[BufferedFile]:
        paths = (path for path in self._storage.list(f"{_BUFFERS}/{folder}") if path.endswith(_LAST))
        return sorted(BufferedFile(*self._ends(path), path) for path in paths)

    def _ends(self, path: str) -> tuple[Lsn, Lsn]:
        with self._storage.parsing(path):
            end, previous = path.rpartition("/")[2].removesuffix(_LAST).split("-")
            return Lsn(int(end, 16)), Lsn(int(previous, 16))

    def _end(self, path: str) -> Lsn:
        with self._storage.parsing(path):
            return Lsn(int(re.split("[.-]", path.rpartition("/")[2])[0], 16))

    @staticmethod
    def _part(folder: str, end: Lsn, token: str) -> str:
        return f"{_BUFFERS}/{folder}/{int(end):016X}-{token}{_OTHER}"


def _pending(folder: str) -> str:
    return f"{_PENDING}/{folder}.json"
