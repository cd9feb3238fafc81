"""The index of a table's keys: which rows of which data files have a key.

Data files never change, and their names are unique. So the index covers all rows of files; the table alone says which
files it has and which of their rows are current. A file that the index lacks, such as a file of the commits before a
kill, is read as without an index, and indexed then.

Recent entries are in memory only, as they can be rebuilt from the table. Many of them become a run, and runs of similar
size are merged: each entry is rewritten a few times at most, and a lookup searches few runs.
"""

from __future__ import annotations

import json
import os
import secrets
import uuid
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.pipeline.index import hashes
from logicalrep.pipeline.index.hashes import Hashes, hashes_of
from logicalrep.pipeline.index.runs import (
    Entries,
    IndexDamagedError,
    InMemory,
    Run,
    entries_of_hashes,
    merged,
    no_entries,
    size_of,
    sorted_by_hash,
    write_run,
)
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.field_ids import field_id
from logicalrep.pipeline.schema.row_keys import row_keys
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, read_rows
from logicalrep.pipeline.storage.storage import Storage, below


@dataclass(frozen=True, slots=True)
class IndexedRows:
    """The rows of a data file that may have one of some keys; no other row has one."""

    numbers: NDArray[np.int64]
    """The numbers of the rows in the file, sorted."""
    keys: pa.Array | None = None
    """The rows' keys; None if the keys have to be read from the file, as different keys may have equal hashes."""


_SIZE_RATIO = 2
"""A run is not merged with later runs if it is this many times larger than all of them."""
_ROW = np.uint64(0xFFFFFFFF)
_FILE = np.uint64(32)
_FORM = 1
_SALT_BITS = 64


class IndexTooLargeError(Exception):
    """An index for which there is not enough disk space."""


class KeyIndex:
    """The index of one table's keys. Only one thread at a time may use it.

    Example:
        >>> index = KeyIndex.open(folder, lambda nbytes: None, Limits())
        >>> index.add(storage, "public/orders", table, file)
        >>> index.find([file], pa.array([17]))
        {'part-1.parquet': IndexedRows(numbers=array([16]), keys=None)}
    """

    def __init__(self, folder: Path, take_room: Callable[[int], None], limits: Limits) -> None:
        """Take the folder, and a function that counts written and (negative) removed bytes.

        The function raises IndexTooLargeError if there is no room for the bytes.
        """
        self._folder, self._take_room, self._limits = folder, take_room, limits
        self._key: list[list[str | int]] = []
        self._files: dict[str, tuple[int, int, int]] = {}
        self._next, self._salt = 0, secrets.randbits(_SALT_BITS)
        self._runs: list[Run] = []
        self._recent = no_entries()

    @classmethod
    def open(cls, folder: Path, take_room: Callable[[int], None], limits: Limits) -> KeyIndex:
        """Open the index of a folder; an empty index if there is none, or if it is damaged.

        Raises:
            IndexTooLargeError: there is no room for the bytes of the index.
            OSError: the folder cannot be read or written.
        """
        index = cls(folder, take_room, limits)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            index._load()
        except IndexDamagedError:
            index.clear()
        except (OSError, IndexTooLargeError):
            index.close()
            take_room(-index.size)
            raise
        file_names = {"index.json", *(run.path.name for run in index._runs)}
        for path in folder.iterdir():
            # A file that a killed process had not added to index.json.
            if path.name not in file_names:
                path.unlink(missing_ok=True)
        return index

    def close(self) -> None:
        """Close the files; recent entries are lost and indexed again later."""
        for run in self._runs:
            run.close()

    def clear(self) -> None:
        runs, self._files, self._runs, self._recent = self._runs, {}, [], no_entries()
        self._salt = secrets.randbits(_SALT_BITS)
        for run in runs:
            # A file that cannot be deleted is closed, and its bytes are no longer counted.
            run.close()
            self._take_room(-run.size)
        (self._folder / "index.json").unlink(missing_ok=True)
        for run in runs:
            run.delete()

    @property
    def rows(self) -> int:
        """The number of entries, including entries of files that the table no longer has."""
        return len(self._recent) + sum(run.count for run in self._runs)

    @property
    def size(self) -> int:
        return sum(run.size for run in self._runs)

    def has_key_of(self, table: TableSpec) -> bool:
        """Return whether the index is for the table's current key."""
        return self._key == key_identity(table)

    def drop_missing(self, table: TableSpec, files: Collection[DataFile]) -> None:
        """Remove the files that the table no longer has, and everything if the table's key has changed.

        Raises:
            IndexTooLargeError: there is no room to rewrite the index without these files.
            IndexDamagedError: the index must be rebuilt.
            OSError: the index cannot be read or written.
        """
        if not self.has_key_of(table):
            self.clear()
            self._key = key_identity(table)
        table_paths = {file.path for file in files}
        self._files = {path: entry for path, entry in self._files.items() if path in table_paths}
        if self.rows > 2 * sum(rows for _, _, rows in self._files.values()) + self._limits.recent_entries:
            self._write(self._runs)

    def has(self, file: DataFile) -> bool:
        return self._files.get(file.path, (0, 0, 0))[1:] == (file.size, file.rows)

    def add(self, storage: Storage, folder: str, table: TableSpec, file: DataFile) -> None:
        """Add all rows of a table's file, current or not.

        Raises:
            IndexTooLargeError: there is no room for the entries.
            IndexDamagedError: the index must be rebuilt.
            OSError: the index cannot be read or written.
            DamagedError: the file is missing or damaged.
            StorageError: the file cannot be read.
        """
        keys = row_keys(table, read_rows(storage, folder, replace(file, vector=None), table.stored, table.key_names))
        if len(keys) != file.rows:
            raise IndexDamagedError(f"{file.path} does not have as many rows as its table says")
        locations = (np.uint64(self._next) << _FILE) + np.arange(len(keys), dtype=np.uint64)
        self._recent = sorted_by_hash(
            np.concatenate((self._recent, np.column_stack((hashes_of(keys, self._salt), locations))))
        )
        self._files[file.path] = (self._next, file.size, file.rows)
        self._next += 1
        if len(self._recent) >= self._limits.recent_entries:
            run_count, entry_count = 0, len(self._recent)
            while run_count < len(self._runs) and self._runs[-1 - run_count].count <= _SIZE_RATIO * entry_count:
                run_count += 1
                entry_count += self._runs[-run_count].count
            self._write(self._runs[len(self._runs) - run_count :])

    def find(self, files: Collection[DataFile], keys: pa.Array) -> dict[str, IndexedRows]:
        """Return the rows that may have one of the keys, for each of the files that the index has.

        Raises IndexDamagedError, OSError.
        """
        key_hashes: Hashes = np.unique(hashes_of(keys, self._salt))
        entries = np.concatenate(
            [entries_of_hashes(self._recent, key_hashes), *(run.find(key_hashes) for run in self._runs)]
        )
        locations = np.sort(entries[:, 1])
        numbers = locations >> _FILE
        rows = (locations & _ROW).astype(np.int64)
        by_file: dict[str, IndexedRows] = {}
        for file in files:
            if self.has(file):
                bounds = np.array([self._files[file.path][0], self._files[file.path][0] + 1], np.uint64)
                first, end = np.searchsorted(numbers, bounds)
                by_file[file.path] = IndexedRows(rows[first:end])
        return by_file

    def _write(self, merged_runs: list[Run]) -> None:
        """Merge the recent entries and the given last runs into one run, without entries of removed files."""
        remaining_runs = self._runs[: len(self._runs) - len(merged_runs)]
        file_numbers = np.unique(np.array([number for number, _, _ in self._files.values()], np.uint64))

        def is_wanted(entries: Entries) -> NDArray[np.bool_]:
            return np.isin(entries[:, 1] >> _FILE, file_numbers)

        parts: list[Run | InMemory] = [*merged_runs, InMemory(self._recent)]
        max_bytes = size_of(sum(part.count for part in parts), self._limits.block_entries)
        self._take_room(max_bytes)
        path = self._folder / f"{uuid.uuid4().hex}.run"
        try:
            written = write_run(path, merged(parts, is_wanted, self._limits), self._limits)
        except BaseException:
            path.unlink(missing_ok=True)
            self._take_room(-max_bytes)
            raise
        self._take_room(written.size - max_bytes)
        self._runs, self._recent = [*remaining_runs, written], no_entries()
        self._save()
        for run in merged_runs:
            run.delete()
            self._take_room(-run.size)

    def _save(self) -> None:
        """Replace index.json, which names the runs and the indexed files."""
        content = {
            "format": _FORM,
            "hashes": hashes.FORM,
            "salt": self._salt,
            "key": self._key,
            "next": self._next,
            "files": self._files,
            "runs": [[run.path.name, run.count, run.tail_sum] for run in self._runs],
        }
        text = json.dumps(content).encode()
        temporary = self._folder / f"{uuid.uuid4().hex}.new"
        temporary.write_bytes(b"%08x\n" % zlib.crc32(text) + text)
        os.replace(temporary, self._folder / "index.json")

    def _load(self) -> None:
        try:
            checksum, _, text = (self._folder / "index.json").read_bytes().partition(b"\n")
        except FileNotFoundError:
            return
        if b"%08x" % zlib.crc32(text) != checksum:
            raise IndexDamagedError(f"{self._folder}/index.json is damaged")
        try:
            content = json.loads(text)
            if (content["format"], content["hashes"]) != (_FORM, hashes.FORM):
                raise IndexDamagedError(f"{self._folder}/index.json has another form")
            for name, count, tail_sum in content["runs"]:
                run = Run(self._folder / below(name), count, tail_sum, self._limits)
                try:
                    self._take_room(run.size)
                except IndexTooLargeError:
                    run.close()
                    raise
                self._runs.append(run)
            self._key, self._next = content["key"], int(content["next"])
            self._salt = int(content["salt"])
            if not 0 <= self._salt < 1 << _SALT_BITS:
                raise IndexDamagedError(f"{self._folder}/index.json is damaged: its salt is out of range")
            self._files = {path: (number, size, rows) for path, (number, size, rows) in content["files"].items()}
        except FileNotFoundError as error:
            raise IndexDamagedError(f"{error.filename} is missing") from None
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise IndexDamagedError(f"{self._folder}/index.json is damaged: {error}") from None


def key_identity(table: TableSpec) -> list[list[str | int]]:
    """Return names, types and field ids of the key columns: keys of another name, type or id may have other values.

    In a format with field ids, two columns can swap names while the files stay.
    """
    fields = [table.schema.field(name) for name in table.key_names]
    ids = [field_id(field) for field in fields]
    return [
        [field.name, str(field.type), *([] if number is None else [number])]
        for field, number in zip(fields, ids, strict=True)
    ]
