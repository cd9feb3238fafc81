"""The indexes of a run's tables, within the bytes that they may have on this machine's disk.

They are a help alone: without one, on another machine or once it is damaged, a batch reads the keys of all files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from logicalrep.pipeline.index.key_index import IndexTooLargeError, KeyIndex, Rows
from logicalrep.pipeline.index.runs import IndexDamagedError, size_of
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError
from logicalrep_runtime.columnar.private_folders import private_folder

_CONSEQUENCE = "its batches read the keys of all files"


class IndexableTable(Protocol):
    """What an index needs of a stored table."""

    storage: Storage
    folder: str
    version: int
    files: dict[str, DataFile]
    table: TableSpec


class KeyIndexes:
    """The indexes of all tables of a run; several threads may use it, one for each table.

    Example:
        >>> indexes = KeyIndexes("s3://lake/shop", 4 << 30, warn=print)
        >>> index = indexes.of(stored)
    """

    def __init__(self, uri: str, max_bytes: int, warn: Callable[[str], None], folder: Path | None = None) -> None:
        """Take the destination's URI, and the most bytes of all indexes.

        Args:
            uri: the URI.
            most: the bytes; 0 for no indexes.
            warn: is told why a table has none.
            folder: the folder, in which the user gets one; by default that for what can be made again
                (`XDG_CACHE_HOME`).
        """
        self._base, self._destination = folder or _cache(), hashlib.sha256(uri.encode()).hexdigest()[:32]
        self._folder: Path | None = None
        self._max_bytes, self._warn = max_bytes, warn
        self._lock = threading.Lock()
        self._tables: dict[str, TableIndex] = {}
        self._used = 0
        self._unused: dict[Path, int] = {}

    def of(self, stored: IndexableTable) -> TableIndex | None:
        """Return the index of a table; None for one that has none.

        Tables without a key have none, and those whose deleted rows are marked in a column: for these alone it is not
        known how many rows must be found. A small table needs none.
        """
        table, limits = stored.table, stored.storage.limits
        if not self._max_bytes or table.key is None or table.form not in ("rows", "history"):
            return None
        with self._lock:
            if stored.folder not in self._tables:
                if sum(file.rows for file in stored.files.values()) < limits.indexed_rows:
                    return None
                folder = self._private_folder()
                if folder is None:
                    return None
                path = folder / hashlib.sha256(stored.folder.encode()).hexdigest()[:32]
                # It counts once it is opened.
                self._unused.pop(path, None)
                self._tables[stored.folder] = TableIndex(stored.folder, path, self, self._warn, limits)
            return self._tables[stored.folder]

    def _private_folder(self) -> Path | None:
        """Return the folder of the destination's indexes; None, once with a warning, if it is not safe."""
        if self._folder is None:
            try:
                self._folder = Path(private_folder(str(self._base)), "indexes", self._destination)
            except OSError as error:
                self._max_bytes = 0
                self._warn(f"no table has an index of its keys, as {error}: {_CONSEQUENCE}")
                return None
            with suppress(OSError):
                self._unused = {path: _size(path) for path in self._folder.iterdir()}
        return self._folder

    def close(self) -> None:
        """Close all of them."""
        for table in self._tables.values():
            table.close()

    def take_room(self, nbytes: int) -> None:
        """Count bytes that are to be written, or, negative, that are removed.

        Raises IndexTooLargeError if they are too many, also without what other runs have left.
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
        """Return whether so many bytes can be written."""
        with self._lock:
            return self._used + nbytes <= self._max_bytes


class TableIndex:
    """The index of a table, which nothing fails for: what it does not have is found without it."""

    def __init__(self, name: str, path: Path, indexes: KeyIndexes, warn: Callable[[str], None], limits: Limits) -> None:
        """Take the table's folder at the destination, and the index's own."""
        self._limits = limits
        self._name, self._path, self._indexes, self._warn = name, path, indexes, warn
        self._index: KeyIndex | None = None
        self._is_refused = False
        self._followed = -1
        """The version of the table of which it has all files; -1 if there is none."""

    def close(self) -> None:
        """Close its files."""
        if self._index is not None:
            self._index.close()
        self._index = None

    def is_behind(self, stored: IndexableTable) -> bool:
        """Return whether it may lack files that a table has."""
        return not self._is_refused and self._followed != stored.version

    def find(self, table: TableSpec, files: Collection[DataFile], keys: pa.Array) -> Mapping[str, Rows]:
        """Return, for each file that the index has, the rows that may have one of some keys; no others have one."""
        rows_of_files: Mapping[str, Rows] = {}

        def find(index: KeyIndex) -> None:
            nonlocal rows_of_files
            if index.has_key_of(table):
                rows_of_files = index.find(files, keys)

        self._run(find)
        return rows_of_files

    def rebuild(self) -> None:
        """Make it anew: a row was not found by it."""
        self._warn(
            f"the index of the keys of {self._name} did not have all rows, and is made anew; none was lost by it"
        )
        self._run(lambda index: index.clear())

    def follow(self, stored: IndexableTable) -> None:
        """Take in files that a table has, a part of them if they are many, and forget those that it has no more."""

        def follow(index: KeyIndex) -> None:
            files = list(stored.files.values())
            index.drop_missing(stored.table, files)
            # What it has may have to be written once more.
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
        """Do something with the index; go on without it if that is not possible."""
        if self._is_refused:
            return
        try:
            if self._index is None:
                self._index = KeyIndex.open(self._path, self._indexes.take_room, self._limits)
            action(self._index)
        except IndexDamagedError as error:
            self._warn(f"the index of the keys of {self._name} is made anew: {error}")
            self._drop()
        except IndexTooLargeError:
            self._refuse("index_size has no room for it")
        except OSError as error:
            self._refuse(str(error))
        except (DamagedError, StorageError):
            # The table's own work meets this too, and says so.
            return

    def _refuse(self, reason: str) -> None:
        """Go on without an index until the next run."""
        self._is_refused = True
        self._drop()
        self._warn(f"{self._name} has no index of its keys, as {reason}: {_CONSEQUENCE}")

    def _drop(self) -> None:
        if self._index is not None:
            with suppress(OSError):
                self._index.clear()
            self._index.close()
        self._index = None
        shutil.rmtree(self._path, ignore_errors=True)


def _cache() -> Path:
    # A relative path is invalid by the XDG Base Directory Specification: it would be one of the current folder.
    path = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return path if path.is_absolute() else Path("~/.cache").expanduser()


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())
