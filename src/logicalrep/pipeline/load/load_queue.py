"""The threads that load tables while the loop goes on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from functools import partial
from typing import Self

from logicalrep.observe.figures import LoadProgress
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.load.snapshot_copy import CopiedTable, CopyFailed, LoadRequest, SnapshotCopy
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn

_GATHERING = 0.1
"""The seconds in which tables that come one after another become a group."""


class LoadQueue:
    """Loads the tables that it is given in groups, in about the order in which they come."""

    def __init__(self, loading: SnapshotCopy, stop: threading.Event, limits: Limits) -> None:
        """Take what loads tables, and the event that ends a load; entering the context starts the threads."""
        self._loading = loading
        self._stop = stop
        self._limits = limits
        self._wanted: dict[TableName, LoadRequest] = {}
        # The last load that was asked for of each table: the result of an earlier one is discarded.
        self._last: dict[TableName, LoadRequest] = {}
        self._running: set[TableName] = set()
        self._changed = threading.Condition()
        self._results: queue.SimpleQueue[tuple[LoadRequest, CopiedTable | CopyFailed] | BaseException] = (
            queue.SimpleQueue()
        )
        self._ended: list[tuple[LoadRequest, CopiedTable | CopyFailed]] = []
        self._threads = [
            threading.Thread(target=self._run, name=f"logicalrep-loader-{number}", daemon=True)
            for number in range(limits.load_snapshots)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(30)
        self._loading.close()

    def add(self, loads: Mapping[TableName, LoadRequest]) -> None:
        """Load these tables. Their changes are buffered already, so that none is missed.

        A load of one of them that runs is given up: somebody wants the rows of a later snapshot.
        """
        with self._changed:
            self._wanted |= loads
            self._last |= loads
            self._changed.notify_all()

    def progress(self) -> dict[TableName, LoadProgress]:
        """Return how far the copying of each table is that is being copied, other than for a load that is given up."""
        with self._changed:
            return {
                name: load_progress
                for name, load_progress in self._loading.progress().items()
                if name not in self._wanted
            }

    def results(self, taken: Lsn) -> list[CopiedTable | CopyFailed]:
        """Return what has ended, once each. Raises the error that ended a thread.

        Partitions are put in among the changes before and after their snapshot: they are returned once all commits
        before it are taken, which `taken` tells.
        """
        while not self._results.empty():
            result = self._results.get()
            if isinstance(result, BaseException):
                raise result
            self._ended.append(result)
        ended = [ended_load for ended_load in self._ended if self._last[ended_load[1].name] is ended_load[0]]
        self._ended = [ended_load for ended_load in ended if _is_ahead(ended_load[1], taken)]
        return [outcome for _, outcome in ended if not _is_ahead(outcome, taken)]

    @property
    def waits_for_changes(self) -> bool:
        """Whether partitions are copied that wait for the changes before their snapshot."""
        return bool(self._ended)

    def _run(self) -> None:
        try:
            while group := self._take_group():
                for result in self._loading.load(group, partial(self._is_last, group)):
                    self._results.put((group[result.name], result))
                with self._changed:
                    self._running -= group.keys()
                    self._changed.notify_all()
        except BaseException as error:
            self._results.put(error)

    def _is_last(self, group: Mapping[TableName, LoadRequest], name: TableName) -> bool:
        return self._last[name] is group[name]

    def _free(self) -> list[TableName]:
        """Return the wanted tables that are not being loaded: no table is loaded twice at the same time."""
        return [name for name in self._wanted if name not in self._running]

    def _take_group(self) -> dict[TableName, LoadRequest]:
        """Wait for tables, and take some; none if the end has come."""
        with self._changed:
            while not self._free() and not self._stop.is_set():
                self._changed.wait_for(lambda: self._free() or self._stop.is_set())
                # The other thread may have taken all of them while this one waited.
                self._changed.wait_for(self._stop.is_set, _GATHERING)
            if self._stop.is_set():
                return {}
            group = {name: self._wanted.pop(name) for name in self._free()[: self._limits.snapshot_tables]}
            self._running |= group.keys()
            return group


def _is_ahead(outcome: CopiedTable | CopyFailed, taken: Lsn) -> bool:
    return isinstance(outcome, CopiedTable) and outcome.catalog_table is not None and outcome.position > taken
