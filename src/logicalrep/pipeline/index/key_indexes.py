"""The indexes of a run's tables, within their limit of bytes on this machine's disk.

An index only saves work: without it, on another machine or after damage, a batch reads the keys of all files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from logicalrep.pipeline.index.key_index import IndexedRows, IndexTooLargeError, KeyIndex
from logicalrep.pipeline.index.private_folders import private_folder
from logicalrep.pipeline.index.runs import IndexDamagedError, size_of
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError

_UNUSED_SECONDS = 30 * 24 * 3600
"""The seconds for which the indexes of a destination stay without a run."""
_CONSEQUENCE = "its batches read the keys of all files"


class IndexableTable(Protocol):
    """The part of a stored table that an index needs."""

    storage: Storage
    folder: str
    version: int
    files: dict[str, DataFile]
    table: TableSpec


class RowFinder(Protocol):
    """Finds the rows with some keys in a table's files; after an error it finds rows in fewer files."""

    def find(self, table: TableSpec, files: Collection[DataFile], keys: pa.Array) -> Mapping[str, IndexedRows]:
        """Return, for some of the files, the rows that may have one of the keys."""

    def rebuild(self) -> None:
        """Forget all files after a row was not found."""

    def follow(self, stored: IndexableTable) -> None:
        """Take the files of the table after a commit."""


def has_findable_rows(table: TableSpec) -> bool:
    """Return whether rows can be found by keys: not without a key, nor if deleted rows are marked in a column, as the
    number of rows that a batch must find is unknown then."""
    return table.key is not None and table.form in ("rows", "history")


class KeyIndexes:
    """The indexes of all tables of a run; several threads may use them, one for each table.

    Example:
        >>> indexes = KeyIndexes("s3://lake/shop", 4 << 30, warn=print)
        >>> index = indexes.of(stored)
    """

    def __init__(self, uri: str, max_bytes: int, warn: Callable[[str], None], folder: Path | None = None) -> None:
        """Take the destination's URI, and the limit of all indexes.

        Args:
            uri: the URI.
            max_bytes: the most bytes of all indexes; 0 for no indexes.
            warn: called with the reason if a table has no index.
            folder: the parent of the user's private folder; by default the cache folder (`XDG_CACHE_HOME`).
        """
        self._base, self._destination = folder or _cache(), hashlib.sha256(uri.encode()).hexdigest()[:32]
        self._folder: Path | None = None
        self._max_bytes, self._warn = max_bytes, warn
        self._lock = threading.Lock()
        self._tables: dict[str, TableIndex] = {}
        self._used = 0
        self._unused: dict[Path, int] = {}

    def of(self, stored: IndexableTable) -> TableIndex | None:
        """Return the index of a table; None if the table has none.

        A table has no index if it is small, or if an index cannot find its rows.
        """
        limits = stored.storage.limits
        if not self._max_bytes or not has_findable_rows(stored.table):
            return None
        with self._lock:
            if stored.folder not in self._tables:
                if sum(file.rows for file in stored.files.values()) < limits.indexed_rows:
                    return None
                folder = self._private_folder()
                if folder is None:
                    return None
                path = folder / hashlib.sha256(stored.folder.encode()).hexdigest()[:32]
                # Its bytes count once it is opened.
                self._unused.pop(path, None)
                self._tables[stored.folder] = TableIndex(stored.folder, path, self, self._warn, limits)
            return self._tables[stored.folder]

    def _private_folder(self) -> Path | None:
        """Return the folder of the destination's indexes; None, with a single warning, if it is not safe."""
        if self._folder is None:
            try:
                self._folder = Path(private_folder(str(self._base)), "indexes", self._destination)
            except OSError as error:
                self._max_bytes = 0
                self._warn(f"no table has a key index, as {error}: {_CONSEQUENCE}")
                return None
            with suppress(OSError):
                self._folder.mkdir(parents=True, exist_ok=True)
                os.utime(self._folder)
                _remove_unused(self._folder)
                self._unused = {path: _size(path) for path in self._folder.iterdir()}
        return self._folder

    def close(self) -> None:
        for table in self._tables.values():
            table.close()

    def take_room(self, nbytes: int) -> None:
        """Count bytes before they are written, or removed bytes as a negative number.

        Raises IndexTooLargeError if there are too many bytes even after deleting the indexes of other runs.
        """
        with self._lock:
            if nbytes > 0 and self._used + sum(self._unused.values()) + nbytes > self._max_bytes:
                for path in self._unused:
                    shutil.rmtree(path, ignore_errors=True)
                self._unused.clear()
                if self._used + nbytes > self._max_bytes:
                    raise IndexTooLargeError
            self._used += nbytes

    def has_room(self, nbytes: int) -> bool:
        with self._lock:
            return self._used + nbytes <= self._max_bytes


class TableIndex:
    """The index of a table. Its errors fail nothing: a batch finds missing rows without it."""

    def __init__(self, name: str, path: Path, indexes: KeyIndexes, warn: Callable[[str], None], limits: Limits) -> None:
        self._limits = limits
        self._name, self._path, self._indexes, self._warn = name, path, indexes, warn
        self._index: KeyIndex | None = None
        self._is_refused = False
        self._followed = -1
        """The version of the table whose files are all indexed; -1 for none."""

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
        self._index = None

    def is_behind(self, stored: IndexableTable) -> bool:
        """Return whether the index may lack files of the table."""
        return not self._is_refused and self._followed != stored.version

    def find(self, table: TableSpec, files: Collection[DataFile], keys: pa.Array) -> Mapping[str, IndexedRows]:
        """Return, for each indexed file, the rows that may have one of the keys."""
        rows_of_files: Mapping[str, IndexedRows] = {}

        def find(index: KeyIndex) -> None:
            nonlocal rows_of_files
            if index.has_key_of(table):
                rows_of_files = index.find(files, keys)

        self._run(find)
        return rows_of_files

    def rebuild(self) -> None:
        """Rebuild the index after it did not find a row."""
        self._warn(f"the key index of {self._name} lacked rows, and is rebuilt; no row was lost")
        self._run(lambda index: index.clear())

    def follow(self, stored: IndexableTable) -> None:
        """Index new files of the table, up to a limit of rows a call, and remove files that the table no longer has."""

        def follow(index: KeyIndex) -> None:
            files = list(stored.files.values())
            index.drop_missing(stored.table, files)
            # Merging runs may need the indexed bytes once more.
            missing_files = sorted((file for file in files if not index.has(file)), key=lambda file: file.rows)
            max_bytes = size_of(sum(file.rows for file in files), self._limits.block_entries)
            if not self._indexes.has_room(2 * max_bytes - index.size):
                raise IndexTooLargeError
            rows_to_add = max_rows = self._limits.indexed_rows_a_batch
            while missing_files and (rows_to_add == max_rows or missing_files[0].rows <= rows_to_add):
                file = missing_files.pop(0)
                index.add(stored.storage, stored.folder, stored.table, file)
                rows_to_add -= file.rows
            self._followed = -1 if missing_files else stored.version

        self._run(follow)

    def _run(self, action: Callable[[KeyIndex], None]) -> None:
        """Run an action on the index; without the index if that fails."""
        if self._is_refused:
            return
        try:
            if self._index is None:
                self._index = KeyIndex.open(self._path, self._indexes.take_room, self._limits)
            action(self._index)
        except IndexDamagedError as error:
            self._warn(f"the key index of {self._name} is rebuilt: {error}")
            self._drop()
        except IndexTooLargeError:
            self._refuse("index_size has no room for it")
        except OSError as error:
            self._refuse(str(error))
        except (DamagedError, StorageError):
            # The batch meets and reports the same error.
            return

    def _refuse(self, reason: str) -> None:
        """Do without the index until the next run."""
        self._is_refused = True
        self._drop()
        self._warn(f"{self._name} has no key index, as {reason}: {_CONSEQUENCE}")

    def _drop(self) -> None:
        if self._index is not None:
            with suppress(OSError):
                self._index.clear()
            self._index.close()
        self._index = None
        shutil.rmtree(self._path, ignore_errors=True)


def _cache() -> Path:
    # A relative path is invalid by the XDG Base Directory Specification: it would depend on the current folder.
    path = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return path if path.is_absolute() else Path("~/.cache").expanduser()


def _remove_unused(own: Path) -> None:
    """Remove the indexes of other destinations, which may no longer exist, that no run used for a long time."""
    for folder in own.parent.iterdir():
        with suppress(OSError):
            last_use = max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
            if folder != own and last_use < time.time() - _UNUSED_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())
