"""The keys of data files that batches search again and again, in the memory of a run's process.

Data files never change, and their names are unique. So replicate reads the keys of a file once, and afterwards finds
the rows of a batch without opening the files that have none. A lookup never misses a row. A file whose keys are
integers of a range of 32 bits has the keys themselves in memory: a lookup returns the rows of these keys alone, with
the keys. Of other keys, memory has parts of their hashes: a lookup may return rows of other keys, which are compared.
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
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.pipeline.index.hashes import Hashes, hashes_of
from logicalrep.pipeline.index.key_index import IndexedRows, key_identity
from logicalrep.pipeline.index.key_indexes import IndexableTable, has_findable_rows
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.row_keys import row_keys
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, read_rows
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError

_Entries = NDArray[np.uint64]
"""A number for each row, sorted: 32 bits of its key or of the key's hash, then the number of the row."""

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_GREATEST = np.iinfo(np.int64).max
_ENTRY_BYTES = 8
_SALT_BITS = 64


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys of the rows of a data file."""

    entries: _Entries
    least: int | None
    """The least key, an integer, whose differences to the keys the entries begin with; None if hashes are there."""

    def find(self, keys: pa.Array, salt: int) -> IndexedRows:
        """Return the rows that may have one of the keys."""
        if self.least is None:
            first, counts = self._bounds(np.unique(_upper_halves(keys, salt)))
            return IndexedRows(np.sort(self._numbers(first, counts)))
        distinct = np.unique(keys.drop_null().to_numpy(zero_copy_only=False).astype(np.int64))
        last = min(self.least + int(_LOW), _GREATEST)
        in_range = distinct[np.searchsorted(distinct, self.least) : np.searchsorted(distinct, last, "right")]
        first, counts = self._bounds(_differences(in_range, self.least))
        numbers = self._numbers(first, counts)
        order = np.argsort(numbers)
        return IndexedRows(numbers[order], pa.array(np.repeat(in_range, counts)[order]).cast(keys.type))

    def _bounds(self, halves: _Entries) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first entry with each upper half, and the number of these entries."""
        first = np.searchsorted(self.entries, halves)
        return first, np.searchsorted(self.entries, halves | _LOW, "right") - first

    def _numbers(self, first: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        numbers: NDArray[np.int64] = (self.entries[places] & _LOW).astype(np.int64)
        return numbers


def _keys_in_memory(keys: pa.Array, salt: int) -> _Keys:
    least = None
    if pa.types.is_signed_integer(keys.type) and len(keys) and not keys.null_count:
        bounds = pc.min_max(keys).as_py()
        least = bounds["min"] if bounds["max"] - bounds["min"] <= int(_LOW) else None
    if least is None:
        halves = _upper_halves(keys, salt)
    else:
        halves = _differences(keys.to_numpy(zero_copy_only=False).astype(np.int64), least)
    entries = halves | np.arange(len(keys), dtype=np.uint64)
    entries.sort()
    return _Keys(entries, least)


def _differences(keys: NDArray[np.int64], least: int) -> _Entries:
    return (keys - least).astype(np.uint64) << _HALF


def _upper_halves(keys: pa.Array, salt: int) -> Hashes:
    return hashes_of(keys, salt) & ~_LOW


@dataclass(slots=True)
class _FileKeys:
    """A data file that was searched, with its keys from the second lookup on: many files are searched once."""

    size: int
    identity: object
    """The identity of the key."""
    keys: _Keys | None
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

    def find(
        self, storage: Storage, folder: str, table: TableSpec, file: DataFile, keys: pa.Array
    ) -> IndexedRows | None:
        """Return the rows of a file that may have one of the keys; None if the file's keys are not in memory."""
        keys_of_file = self._keys_of(storage, folder, table, file)
        return None if keys_of_file is None else keys_of_file.find(keys, self._salt)

    def _keys_of(self, storage: Storage, folder: str, table: TableSpec, file: DataFile) -> _Keys | None:
        name, identity, current_time = (folder, file.path), key_identity(table), time.monotonic()
        with self._lock:
            file_keys = self._files.get(name)
            if file_keys is None or (file_keys.size, file_keys.identity) != (file.size, identity):
                self._forget(name)
                self._files[name] = _FileKeys(file.size, identity, None, current_time)
                return None
            self._files.move_to_end(name)
            file_keys.used = current_time
            if file_keys.keys is not None:
                return file_keys.keys
        is_little = file.size <= self._limits.in_process_bytes * self._limits.marked_weight
        # Only one file at a time needs the memory of its keys and hashes, too.
        if not is_little or not self._is_reading.acquire(blocking=False):
            return None
        try:
            keys = self._read(storage, folder, table, file) if self._has_room(_ENTRY_BYTES * file.rows) else None
        finally:
            self._is_reading.release()
        with self._lock:
            if keys is not None and self._files.get(name) is file_keys:
                file_keys.keys = keys
                self._bytes += keys.entries.nbytes
        return keys

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
            for name, file_keys in list(self._files.items()):
                if self._bytes + nbytes <= self._limits.key_bytes or file_keys.used > used_before:
                    break
                self._forget(name)
            return self._bytes + nbytes <= self._limits.key_bytes

    def _forget(self, name: tuple[str, str]) -> None:
        file_keys = self._files.pop(name, None)
        if file_keys is not None and file_keys.keys is not None:
            self._bytes -= file_keys.keys.entries.nbytes

    def _read(self, storage: Storage, folder: str, table: TableSpec, file: DataFile) -> _Keys | None:
        try:
            rows = read_rows(storage, folder, replace(file, vector=None), table.stored, table.key_names)
        except (DamagedError, StorageError):
            # The batch meets and reports the same error.
            return None
        if rows.num_rows != file.rows or file.rows > int(_LOW):
            return None
        return _keys_in_memory(row_keys(table, rows), self._salt)


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The keys of a table in memory; its methods equal the methods of an index."""

    recent: RecentKeys
    storage: Storage
    folder: str

    def find(self, table: TableSpec, files: Collection[DataFile], keys: pa.Array) -> Mapping[str, IndexedRows]:
        """Return, for each file whose keys are in memory, the rows that may have one of the keys."""
        by_file = {file.path: self.recent.find(self.storage, self.folder, table, file, keys) for file in files}
        return {path: rows for path, rows in by_file.items() if rows is not None}

    def rebuild(self) -> None:
        """Forget the keys after a batch did not find a row."""
        self.recent.forget_missing(self.folder, ())

    def follow(self, stored: IndexableTable) -> None:
        """Forget the files that the table no longer has."""
        self.recent.forget_missing(self.folder, stored.files)
