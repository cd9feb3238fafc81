"""The thread that loads tables while the loop goes on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from logicalrep.tables.load.loading import Loaded, Loading, NotLoaded
from logicalrep.transactions.table_names import TableName


class Loader:
    """Loads the tables that it is given, in the order in which they come."""

    def __init__(self, loading: Loading, stop: threading.Event) -> None:
        """Take what loads tables, and the event that ends a load; entering the context starts the thread."""
        self._loading = loading
        self._stop = stop
        self._wanted: queue.SimpleQueue[Mapping[TableName, str] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Loaded | NotLoaded | BaseException] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="logicalrep-loader", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._wanted.put(None)
        self._thread.join(30)

    def add(self, folders: Mapping[TableName, str]) -> None:
        """Load these tables into their folders. Their changes are kept already, so that none is missed."""
        self._wanted.put(folders)

    def results(self) -> list[Loaded | NotLoaded]:
        """Return what has ended since the last call. Raises the error that ended the thread."""
        found: list[Loaded | NotLoaded] = []
        while not self._results.empty():
            result = self._results.get()
            if isinstance(result, BaseException):
                raise result
            found.append(result)
        return found

    def _run(self) -> None:
        try:
            while (folders := self._wanted.get()) is not None and not self._stop.is_set():
                for result in self._loading.load(folders):
                    self._results.put(result)
        except BaseException as error:
            self._results.put(error)


__all__ = ["Loader"]
