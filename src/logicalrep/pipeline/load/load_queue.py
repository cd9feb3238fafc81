"""The threads that load tables while the loop runs."""

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
"""The seconds during which successive tables are gathered into a group."""


class LoadQueue:
    """Loads tables in groups, in about the order of their requests."""

    def __init__(self, loading: SnapshotCopy, stop: threading.Event, limits: Limits) -> None:
        self._loading = loading
        self._stop = stop
        self._limits = limits
        self._wanted: dict[TableName, LoadRequest] = {}
        # The last requested load of each table: results of earlier loads are discarded.
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
        """Queue loads of tables whose changes are already buffered; they replace running loads by later snapshots."""
        with self._changed:
            self._wanted |= loads
            self._last |= loads
            self._changed.notify_all()

    def progress(self) -> dict[TableName, LoadProgress]:
        with self._changed:
            return {
                name: load_progress
                for name, load_progress in self._loading.progress().items()
                if name not in self._wanted
            }

    def results(self, taken: Lsn) -> list[CopiedTable | CopyFailed]:
        """Return each finished load once; partitions once `taken` has reached their snapshot. Raises the error that
        ended a thread."""
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
        return [name for name in self._wanted if name not in self._running]

    def _take_group(self) -> dict[TableName, LoadRequest]:
        """Wait for tables, and take a group; return an empty group at the end."""
        with self._changed:
            while not self._free() and not self._stop.is_set():
                self._changed.wait_for(lambda: self._free() or self._stop.is_set())
                # Another thread may have taken all tables during the wait.
                self._changed.wait_for(self._stop.is_set, _GATHERING)
            if self._stop.is_set():
                return {}
            group = {name: self._wanted.pop(name) for name in self._free()[: self._limits.snapshot_tables]}
            self._running |= group.keys()
            return group


def _is_ahead(outcome: CopiedTable | CopyFailed, taken: Lsn) -> bool:
    return isinstance(outcome, CopiedTable) and outcome.catalog_table is not None and outcome.position > taken
