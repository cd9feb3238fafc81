"""The receiver that writes the log of `logicalrep replicate`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from logicalrep.observe.lag import lag_seconds
from logicalrep.observe.log import log_figures
from logicalrep.observe.observer import Observer, listed
from logicalrep.transactions.logs import logger
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn

_batches = logger("logicalrep.batch")
_log = logger("logicalrep.replicate")


class Logged(Observer):
    """Logs what happens: work at INFO, what a person should look into at WARNING, what is stopped at ERROR."""

    def __init__(self) -> None:
        """Begin before the slot is known: nothing that happens until then has its name."""
        self._slot: str | None = None

    def on_prepared(self, slot: str) -> None:
        """Name the slot in all lines of figures from now on."""
        self._slot = slot

    def on_loads_needed(self, tables: Sequence[TableName], reason: str) -> None:
        """Log that tables are to be loaded."""
        log_figures(_log, "load needed", slot=self._slot, table=listed(tables), tables=len(tables), reason=reason)

    def on_load_begun(self, table: TableName, rows: int) -> None:
        """Log that a load has begun."""
        log_figures(_log, "loading", slot=self._slot, table=str(table), estimate=rows)

    def on_load_ended(self, table: TableName, rows: int, seconds: float) -> None:
        """Log that a load has ended."""
        log_figures(_log, "loaded", slot=self._slot, table=str(table), rows=rows, seconds=seconds)

    def on_batch_applied(self, changes: int, tables: int, seconds: float, lag: int, committed: datetime | None) -> None:
        """Log that a batch is applied."""
        log_figures(
            _batches,
            "batch",
            slot=self._slot,
            mode="walsender",
            changes=changes,
            tables=tables,
            seconds=seconds,
            committed=committed,
            lag_bytes=lag,
            lag_seconds=lag_seconds(lag, datetime.now(UTC), committed),
        )

    def on_table_stopped(self, table: TableName, reason: str) -> None:
        """Log that a table is stopped."""
        _log.error("%s is stopped: %s", table, reason)

    def on_schema_changed(self, table: TableName, changes: Sequence[str]) -> None:
        """Log that a table has other columns."""
        log_figures(_log, "schema changed", slot=self._slot, table=str(table), changes="; ".join(changes))

    def on_listening(self, address: str) -> None:
        """Log the address of the page and of the metrics."""
        _log.info("the page is at %s, the metrics are at %smetrics", address, address)

    def on_step(self, text: str) -> None:
        """Log what the start does."""
        _log.info("%s", text)

    def on_going_on(self, tables: int, lsn: int) -> None:
        """Log that a run goes on."""
        log_figures(_log, "going on", slot=self._slot, tables=tables, lsn=str(Lsn(lsn)))

    def on_warning_solved(self, text: str) -> None:
        """Log that the reason of a warning is gone."""
        _log.info("solved: %s", text)

    def on_waiting(self, text: str) -> None:
        """Log what the work waits for."""
        _log.warning("%s", text)

    def on_warning(self, text: str) -> None:
        """Log what a person should know."""
        _log.warning("%s", text)

    def on_ended(self, error: Exception, is_meant: bool) -> None:
        """Log the error that ends it all; `is_meant` if somebody wanted it so."""
        _log.log(logging.WARNING if is_meant else logging.ERROR, "%s", error)
