"""The merging of files concurrently with batches, at a bounded rate."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.storage.storage import DamagedError, StorageError
from logicalrep.pipeline.upkeep.merging import Merge, Merged, commit_merged, delete_merged, due_merge, merge_files


@dataclass(frozen=True)
class BegunMerge:
    """A merge that runs in another thread."""

    stored: StoredTable
    work: Merge
    merged: Future[Merged]

    def commit(self) -> bool:
        """Commit the merge; return False if a batch has changed the merged files too much.

        Raises:
            DamagedError: a file of the table is damaged.
            Exception: the errors of commits and engines.
        """
        try:
            merged = self.merged.result()
        except DamagedError:
            # A file that a batch has rewritten may be deleted already.
            if any(file.path not in self.stored.files for file in self.work.files):
                return False
            raise
        return commit_merged(self.stored, self.work, merged)

    def drop(self) -> None:
        """Delete the merged files of a table that gets no more batches."""
        if self.merged.exception() is None:
            delete_merged(self.stored, self.merged.result())


class BackgroundMerges:
    """One merge at a time in another thread; the thread that applies batches commits it.

    Example:
        >>> merges.begin(table.stored_tables)
        >>> merges.take_finished()
    """

    def __init__(self, engine: Engine, pool: Executor) -> None:
        """Take the engine, and a pool of which one thread waits for the merge."""
        self._engine, self._pool = engine, pool
        self._begun: BegunMerge | None = None
        self._not_before = 0.0
        # The versions at which tables needed no merge, and the numbers of failed merges since the last commit.
        self._at_rest: WeakKeyDictionary[StoredTable, int] = WeakKeyDictionary()
        self._tries: WeakKeyDictionary[StoredTable, int] = WeakKeyDictionary()

    @property
    def is_running(self) -> bool:
        """Whether a merge was begun and not taken."""
        return self._begun is not None

    def begin(self, tables: Iterable[StoredTable]) -> None:
        """Begin the first due merge of the tables, unless a merge runs or the rate limit asks for a pause."""
        if self._begun is not None or time.monotonic() < self._not_before:
            return
        for stored in tables:
            if self._at_rest.get(stored) == stored.version:
                continue
            work = due_merge(stored)
            if work is not None:
                self._not_before = time.monotonic() + work.size / stored.storage.limits.merged_bytes_a_second
                self._begun = BegunMerge(stored, work, self._pool.submit(self._merge, work))
                return
            self._at_rest[stored] = stored.version

    def _merge(self, work: Merge) -> Merged:
        (merged,) = self._engine.run(merge_files, [work], work.size)
        return merged

    def take_finished(self, *, wait: bool = False) -> BegunMerge | None:
        """Return the finished merge, to be committed or dropped; None if there is none.

        A merge that failed at the destination is dropped: the next batch would report the error, and wait.
        """
        begun = self._begun
        if begun is None or not (wait or begun.merged.done()):
            return None
        self._begun = None
        if isinstance(begun.merged.exception(), StorageError):
            self._not_before = time.monotonic() + begun.stored.storage.limits.merge_pause_seconds
            return None
        return begun

    def record_result(self, stored: StoredTable, *, is_committed: bool) -> bool:
        """Count a committed or failed merge; return whether so many failed in a row that batches must wait."""
        limits = stored.storage.limits
        self._tries[stored] = 0 if is_committed else self._tries.get(stored, 0) + 1
        if not is_committed:
            self._not_before = time.monotonic() + limits.merge_pause_seconds
        return self._tries[stored] >= limits.merge_tries
