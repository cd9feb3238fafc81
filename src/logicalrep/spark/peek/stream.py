"""mode = peek: each micro-batch reads its part of the slot through SQL, and the slot follows what Spark committed.

An offset is a position in the WAL of a timeline. The batch (start, end] holds a transaction if and only if its commit
record begins at or after start and before end, and a message outside of transactions if its own record does. The slot
never moves past an offset that Spark has committed: so a slot that is past the checkpoint was moved by somebody else,
and that is an error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from logicalrep.postgres.slots import (
    Connection,
    Slot,
    check_not_passed,
    check_within_wal,
    newest_protocol,
    sent_up_to,
    the_slot,
)
from logicalrep.postgres.timelines import WalPosition
from logicalrep.spark.metrics import progress
from logicalrep.spark.offsets import Offset, offset_of, position_of
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.peek.admission import AvailableNow, Limits, limits_of, read_limit
from logicalrep.spark.peek.planning import Planner
from logicalrep.spark.peek.slot_range import SlotRange, check_readable, read_slot
from logicalrep.spark.server_connection import Driver, acknowledge_position, ensure_slot, log_to_standard_error
from logicalrep.spark.typed_tables.table_identity import TableIdentity
from logicalrep.spark.worker import PromptReader, collected_once
from logicalrep.transactions.logs import warn
from logicalrep_runtime.scalars import Lsn


class PeekStreamReader(PromptReader, AvailableNow, DataSourceStreamReader):
    """Plans micro-batches in the driver, reads them in the executors."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__()
        self._options = options
        self._schema = schema
        self._slot = options.the_slot
        self._table = TableIdentity(options)
        self._driver: Driver | None = None
        self._planner: Planner | None = None
        # The newest offset known to have been planned; None right after a start from a checkpoint.
        self._position: WalPosition | None = None
        self._acknowledged = Lsn(0)
        self._target: Lsn | None = None
        self._seen: Slot | None = None
        # The head of the WAL up to which nothing was found, and when to look again.
        self._nothing_up_to = Lsn(0)
        self._look_again = 0.0

    # In the driver

    def initialOffset(self) -> Offset:  # noqa: N802
        """The slot's position; the slot is made here if it is to be made."""
        return self._offset(self._run(self._initial))

    def latestOffset(  # noqa: N802
        self, start: Mapping[str, object] | None = None, limit: object | None = None
    ) -> Offset:
        """The end of the next batch; the start where there is nothing to read. Spark 4.0 and 4.1 give no arguments."""
        if start is not None:
            # Spark has committed all that lies before.
            self._position = position_of(start)
            self._table.go_on_from(start)
            self._acknowledge(self._position)
        elif self._position is None:
            # Spark 4.0 and 4.1 ask a new query for this before the initial offset.
            self._run(lambda connection: ensure_slot(connection, self._options))
        pause = self._look_again - time.monotonic()
        if pause > 0 and self._target is None:
            # Not for long, so that a query can be stopped.
            time.sleep(min(pause, 1))
            if pause > 1 and self._position is not None:
                return self._offset(self._position)
        limits = limits_of(limit, self._options)
        began = time.monotonic()
        end = self._run(lambda connection: self._next_end(connection, limits))
        if end == self._position:
            # A look takes the server time, so the longer it took the later comes the next one.
            took = time.monotonic() - began
            self._look_again = time.monotonic() + max(self._options.poll_interval, 4 * took)
        self._position = end
        return self._offset(end)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """What the options max_…_per_batch allow."""
        return read_limit(self._options)

    def reportLatestOffset(self) -> dict[str, str | int] | None:  # noqa: N802
        """How far the server is, for Spark's progress report."""
        return None if self._seen is None or self._position is None else progress(self._seen, self._position.lsn)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where the WAL ends now: the query reads up to there."""
        self._target = self._run(lambda connection: sent_up_to(connection, self._slot))

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[InputPartition]:
        """One partition, as a slot has one reader at a time."""
        first, last = position_of(start), position_of(end)
        self._table.go_on_from(start)
        if self._position is None or self._position.lsn < last.lsn:
            self._position = last
        if first.lsn == last.lsn:
            return []
        self._run(lambda connection: check_readable(connection, self._options, first, last))
        self._run(self._table.look)
        # So that the server leaves out what came before, also where that cannot be seen of a message.
        self._acknowledge(first)
        return [SlotRange(first, last, self._table.relation_id)]

    def commit(self, end: Mapping[str, object]) -> None:
        """Spark has committed what lies before `end`: the slot may follow."""
        self._acknowledge(position_of(end))

    def stop(self) -> None:
        """Close the connection."""
        if self._driver is not None:
            self._driver.close()
            self._driver = None

    def _run(self, action: Any) -> Any:
        if self._driver is None:
            log_to_standard_error()
            self._driver = Driver(self._options, self._table.look, locks=True)
        return self._driver.run(action)

    def _offset(self, position: WalPosition) -> Offset:
        return offset_of(position, slot=self._slot, relation_id=self._table.relation_id)

    def _initial(self, connection: Connection) -> WalPosition:
        ensure_slot(connection, self._options)
        self._position = the_slot(connection, self._slot).confirmed
        return self._position

    def _acknowledge(self, position: WalPosition) -> None:
        if position.lsn > self._acknowledged:
            self._run(lambda connection: acknowledge_position(connection, self._options, position))
            self._acknowledged = position.lsn

    def _next_end(self, connection: Connection, limits: Limits) -> WalPosition:
        seen = self._seen = the_slot(connection, self._slot)
        if seen.standbys_warning is not None:
            warn([seen.standbys_warning])
        head = seen.sent_up_to
        if self._target is not None:
            head = min(head, self._target)
        position = self._position
        if position is not None:
            check_within_wal(self._options.connection, seen, position)
            check_not_passed(seen.name, seen.confirmed.lsn, position.lsn)
            if head <= max(position.lsn, self._nothing_up_to):
                return position
        if self._planner is None:
            self._planner = Planner(self._slot, self._options.plugin_options(newest_protocol(connection)))
        start = seen.confirmed if position is None else position
        end = self._planner.end(connection, start.lsn, head, limits)
        if end is not None:
            return WalPosition(end, seen.timeline)
        self._nothing_up_to = head
        if position is None or head - position.lsn >= self._options.idle_advance_bytes:
            # Nothing of ours: an empty batch now and then lets the server remove the WAL of it.
            return WalPosition(head, seen.timeline)
        return position

    # In an executor

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The record batches of a part of the slot."""
        assert isinstance(partition, SlotRange)
        log_to_standard_error()
        options = replace(self._options, relation_id=partition.relation_id)
        return collected_once(read_slot(options, self._schema, partition.start, partition.end))
