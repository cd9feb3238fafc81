"""The keys of data files that batches search again and again, in the memory of a run's process.

Data files never change, and their names are unique. So replicate reads the keys of a file once, and afterwards finds
the rows of a batch without opening the files that have none. Like an index on a disk, the keys in memory only narrow
down the rows to compare: a lookup may return rows of other keys, and never misses a row.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.pipeline.index.hashes import Hashes, hashes_of
from logicalrep.pipeline.index.key_index import Rows, key_identity
from logicalrep.pipeline.index.key_indexes import IndexableTable, has_findable_rows
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.row_keys import row_keys
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, read_rows
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError

_Entries = NDArray[np.uint64]
"""A number for each row, sorted: the upper half of its key's hash, then the number of the row."""

_LOW = np.uint64(0xFFFFFFFF)
_ENTRY_BYTES = 8
_SALT_BITS = 64


@dataclass(slots=True)
class _FileKeys:
    """The keys of a data file."""

    size: int
    identity: object
    """The identity of the key."""
    entries: _Entries | None
    """None after the first lookup: many files are searched once and then replaced."""
    used: float
    """The time of the last lookup."""


class RecentKeys:
    """The keys of the files of a run's tables, within `Limits.key_bytes`; several threads may use them, one a table.

    Example:
        >>> keys = RecentKeys(Limits()).of(stored)
    """

    def __init__(self, limits: Limits) -> None:
        """Take the limits of the run."""
        self._limits, self._salt = limits, secrets.randbits(_SALT_BITS)
        self._files: OrderedDict[tuple[str, str], _FileKeys] = OrderedDict()
        self._bytes = 0
        self._lock, self._is_reading = threading.Lock(), threading.Lock()

    def of(self, stored: IndexableTable) -> TableKeys | None:
        """Return the keys of a table; None for a table that is copied on write, or whose rows an index cannot find."""
        if not stored.table.marks_rows or not has_findable_rows(stored.table):
            return None
        return TableKeys(self, stored.storage, stored.folder)

    @property
    def nbytes(self) -> int:
        """The bytes of the keys in memory."""
        return self._bytes

    def hashes_of(self, keys: pa.Array) -> Hashes:
        """Return the halves of the keys' hashes that entries begin with, at the place where entries have them."""
        return hashes_of(keys, self._salt) & ~_LOW

    def entries_of(self, storage: Storage, folder: str, table: TableSpec, file: DataFile) -> _Entries | None:
        """Return the entries of a file, which the second lookup reads; None if the file has none yet or no room."""
        name, identity, current_time = (folder, file.path), key_identity(table), time.monotonic()
        with self._lock:
            keys = self._files.get(name)
            if keys is None or (keys.size, keys.identity) != (file.size, identity):
                self._forget(name)
                self._files[name] = _FileKeys(file.size, identity, None, current_time)
                return None
            self._files.move_to_end(name)
            keys.used = current_time
            if keys.entries is not None:
                return keys.entries
        is_little = file.size <= self._limits.in_process_bytes * self._limits.marked_weight
        # Only one file at a time needs the memory of its keys and hashes, too.
        if not is_little or not self._is_reading.acquire(blocking=False):
            return None
        try:
            entries = self._read(storage, folder, table, file) if self._has_room(_ENTRY_BYTES * file.rows) else None
        finally:
            self._is_reading.release()
        with self._lock:
            if entries is not None and self._files.get(name) is keys:
                keys.entries = entries
                self._bytes += entries.nbytes
        return entries

    def forget_missing(self, folder: str, paths: Collection[str]) -> None:
        """Forget the files of a folder that are no longer in its table."""
        with self._lock:
            for name in [name for name in self._files if name[0] == folder and name[1] not in paths]:
                self._forget(name)

    def _has_room(self, nbytes: int) -> bool:
        """Return whether there is room for bytes, once files are forgotten that no lookup has used for a while.

        Files that are still used stay: otherwise tables that together have no room would replace each other's keys.
        """
        with self._lock:
            used_before = time.monotonic() - self._limits.key_seconds
            for name, keys in list(self._files.items()):
                if self._bytes + nbytes <= self._limits.key_bytes or keys.used > used_before:
                    break
                self._forget(name)
            return self._bytes + nbytes <= self._limits.key_bytes

    def _forget(self, name: tuple[str, str]) -> None:
        keys = self._files.pop(name, None)
        if keys is not None and keys.entries is not None:
            self._bytes -= keys.entries.nbytes

    def _read(self, storage: Storage, folder: str, table: TableSpec, file: DataFile) -> _Entries | None:
        try:
            rows = read_rows(storage, folder, replace(file, vector=None), table.stored, table.key_names)
        except (DamagedError, StorageError):
            # The batch meets and reports the same error.
            return None
        if rows.num_rows != file.rows or file.rows > int(_LOW):
            return None
        entries = self.hashes_of(row_keys(table, rows)) | np.arange(file.rows, dtype=np.uint64)
        entries.sort()
        return entries


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The keys of a table in memory; its methods equal the methods of an index."""

    recent: RecentKeys
    storage: Storage
    folder: str

    def find(self, table: TableSpec, files: Collection[DataFile], keys: pa.Array) -> Mapping[str, Rows]:
        """Return, for each file whose keys are in memory, the sorted rows that may have one of the keys."""
        key_hashes = np.unique(self.recent.hashes_of(keys))
        rows_of_files = {}
        for file in files:
            entries = self.recent.entries_of(self.storage, self.folder, table, file)
            if entries is not None:
                first = np.searchsorted(entries, key_hashes)
                counts = np.searchsorted(entries, key_hashes | _LOW, "right") - first
                places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
                rows_of_files[file.path] = np.sort((entries[places] & _LOW).astype(np.int64))
        return rows_of_files

    def rebuild(self) -> None:
        """Forget the keys after a batch did not find a row."""
        self.recent.forget_missing(self.folder, ())

    def follow(self, stored: IndexableTable) -> None:
        """Forget the files that the table no longer has."""
        self.recent.forget_missing(self.folder, stored.files)
