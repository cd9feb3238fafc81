"""The registration of tables in a catalog that has no part in their commits, such as Unity Catalog."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from logicalrep.observe.events import WarningIssued, WarningSolved
from logicalrep.pipeline.formats.catalog_errors import CatalogError
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.table_errors import log_unexpected, reason_of
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError

_JOIN_SECONDS = 5.0
"""The most seconds that the end of a run waits for a request; the next run registers the table again."""


class NotRegisteredError(LogicalRepError, RuntimeError):
    """Tables that a run with `once` could not register in the catalog; their rows are up to date."""

    code = "TABLES_NOT_REGISTERED"


class Registrations:
    """Registers tables in a thread of its own, so that no row waits for the catalog, and no error stops a table.

    A table is registered again when its description changes. A failed registration is a warning, once for each reason,
    and is tried again every `Limits.registration_seconds`.
    """

    def __init__(self, context: RunContext) -> None:
        self._tables, self._observer, self._stop = context.tables, context.observer, context.stop
        self._pause, self._patience = context.limits.registration_seconds, context.settings.patience
        # Guards the tables to register, and wakes the thread.
        self._changed = threading.Condition()
        self._requested: Mapping[str, TableSpec] = {}
        self._has_news = self._is_ending = False
        # Only the thread uses these two; after its end, `finish` uses them.
        self._registered: dict[str, TableSpec] = {}
        self._problems: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name="logicalrep-registrations", daemon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Register tables within this context."""
        if self._tables.are_registered:
            self._thread.start()
        try:
            yield
        finally:
            self._end(_JOIN_SECONDS)

    def request(self, stored_tables: Iterable[StoredTable]) -> None:
        """Set the tables to register, with their descriptions of now; returns at once."""
        if not self._tables.are_registered:
            return
        requested = {stored.folder: stored.table for stored in stored_tables}
        if requested.keys() != self._requested.keys() or any(
            requested[folder] is not self._requested[folder] for folder in requested
        ):
            with self._changed:
                self._requested, self._has_news = requested, True
                self._changed.notify_all()

    def finish(self) -> None:
        """Register all tables before a run with `once` ends; no table can be requested afterwards.

        Raises NotRegisteredError if the catalog refuses a table, or does not answer within `retry_timeout`.
        """
        self._end()
        deadline = time.monotonic() + self._patience
        while self._register() and time.monotonic() < deadline and not self._stop.is_set():
            self._stop.wait(min(1.0, self._pause))
        if self._problems:
            raise NotRegisteredError("; ".join(dict.fromkeys(self._problems.values())))

    def _end(self, seconds: float | None = None) -> None:
        with self._changed:
            self._is_ending = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                pause = self._pause if self._problems else None
                self._changed.wait_for(lambda: self._is_ending or self._has_news, pause)
                if self._is_ending:
                    return
                self._has_news = False
            self._register()

    def _register(self) -> bool:
        """Try to register each requested table that is not registered; return whether a retry may register the rest."""
        problems: dict[str, str] = {}
        may_pass = False
        for folder, table in self._requested.items():
            if self._registered.get(folder) is table:
                continue
            try:
                self._tables.register(folder, table)
            except Exception as error:
                log_unexpected(TableName(table.relation.schema, table.relation.name), error)
                problems[folder] = reason_of(error)
                if isinstance(error, CatalogError) and error.may_pass:
                    # The other tables would wait for the same server.
                    may_pass = True
                    break
            else:
                self._registered[folder] = table
        self._report(problems)
        return may_pass

    def _report(self, problems: dict[str, str]) -> None:
        previous, self._problems = self._problems, problems
        for problem in dict.fromkeys(problems.values()):
            if problem not in previous.values():
                self._observer.on_event(WarningIssued(_warning(problem)))
        for problem in dict.fromkeys(previous.values()):
            if problem not in problems.values():
                self._observer.on_event(WarningSolved(_warning(problem)))


def _warning(problem: str) -> str:
    return f"{problem}; the rows are replicated, and replicate tries again to register the table"
