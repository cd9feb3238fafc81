"""The merging of files beside batches: never in their way, and at a bounded rate."""

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
    """A merge that another thread does."""

    stored: StoredTable
    work: Merge
    merged: Future[Merged]

    def put(self) -> bool:
        """Commit it; return False if batches have changed too much of the table meanwhile.

        Raises:
            DamagedError: a file of the table is damaged.
            Exception: what a commit and an engine raise.
        """
        try:
            merged = self.merged.result()
        except DamagedError:
            # A file that a batch has written anew may be deleted already.
            if any(file.path not in self.stored.files for file in self.work.files):
                return False
            raise
        return commit_merged(self.stored, self.work, merged)

    def drop(self) -> None:
        """Delete what it has written: batches go to the table no more."""
        if self.merged.exception() is None:
            delete_merged(self.stored, self.merged.result())


class BackgroundMerges:
    """One merge at a time in another thread; what it has written is committed by the thread that applies batches.

    Example:
        >>> merges.begin(table.stored_tables)
        >>> merges.take_finished()
    """

    def __init__(self, engine: Engine, pool: Executor) -> None:
        """Take the runner of the work, and the threads of which one waits for it."""
        self._engine, self._pool = engine, pool
        self._begun: BegunMerge | None = None
        self._not_before = 0.0
        # The versions at which tables were at rest, and the numbers of merges for nothing since the last one.
        self._at_rest: WeakKeyDictionary[StoredTable, int] = WeakKeyDictionary()
        self._tries: WeakKeyDictionary[StoredTable, int] = WeakKeyDictionary()

    def begin(self, tables: Iterable[StoredTable]) -> None:
        """Begin the first merge that is due for some table, unless one runs, or there were many bytes just now."""
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
        """Return the merge that is done, to be committed or dropped; None if there is none.

        One that the destination refused is forgotten: a batch would tell of that, and wait.
        """
        begun = self._begun
        if begun is None or not (wait or begun.merged.done()):
            return None
        self._begun = None
        if isinstance(begun.merged.exception(), StorageError):
            self._not_before = time.monotonic() + begun.stored.storage.limits.merge_pause_seconds
            return None
        return begun

    def record_result(self, stored: StoredTable, *, was_put: bool) -> bool:
        """Count whether a merge was put; return whether batches hinder the table's merges so often that they wait."""
        limits = stored.storage.limits
        self._tries[stored] = 0 if was_put else self._tries.get(stored, 0) + 1
        if not was_put:
            self._not_before = time.monotonic() + limits.merge_pause_seconds
        return self._tries[stored] >= limits.merge_tries
