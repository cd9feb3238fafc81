"""Streaming by peek: each micro-batch reads its range of the slot through SQL, and the slot follows Spark's commits.

An offset is a position in the WAL of a timeline. The batch (start, end] has a transaction if and only if its commit
record begins at or after start and before end, and a message outside of transactions if its own record does. The
slot never moves past an offset that Spark has committed: if it is past the checkpoint, another reader has moved it,
which is an error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from logicalrep.postgres.server import Connection, newest_protocol
from logicalrep.postgres.slots.positions import check_not_passed, check_within_wal
from logicalrep.postgres.slots.slot import Slot, query_slot
from logicalrep.postgres.timelines import WalPosition
from logicalrep.spark.monitoring.statistics import Counts, progress
from logicalrep.spark.offsets import Offset, position_of
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.peek.admission import ReadLimits, limits_of
from logicalrep.spark.peek.planning import Planner
from logicalrep.spark.peek.slot_range import SlotRange, check_readable, read_slot
from logicalrep.spark.server_connection import acknowledge_position, log, log_to_standard_error
from logicalrep.spark.stream_reader import SlotStreamReader
from logicalrep.spark.worker import collect_garbage_once
from logicalrep.transactions.logs import warn
from logicalrep_runtime.scalars import Lsn

REPEATED_WAL_WARNING = 64 << 20
"""Bytes of WAL decoded again for each batch from which the reader warns."""


class PeekStreamReader(SlotStreamReader):
    def __init__(self, options: SourceOptions, schema: StructType, shared: SlotStreamReader | None = None) -> None:
        super().__init__(options, schema, shared)
        self._planner: Planner | None = None
        self._acknowledged = Lsn(0)
        # The WAL that is decoded again for each batch, when it was last warned of.
        self._warned_of = REPEATED_WAL_WARNING
        self._last_slot: Slot | None = None
        # The end of the WAL up to which nothing was found, and the time of the next peek.
        self._empty_up_to = Lsn(0)
        self._next_peek = 0.0

    # In the driver

    def initialOffset(self) -> Offset:
        self.position = self.run(self._initial)
        return self._offset(self.position)

    def latestOffset(self, start: Mapping[str, object] | None = None, limit: object | None = None) -> Offset:
        self._record_request(start)
        if start is not None:
            self.position = position_of(start)
            self._table.resume_from(start)
            if self._is_in_checkpoint(self.position.lsn):
                self.acknowledge(self.position)
        pause = self._next_peek - time.monotonic()
        if pause > 0 and self._target is None:
            # The pause is short, so that a query can be stopped.
            time.sleep(min(pause, 1))
            if pause > 1 and self.position is not None:
                return self._offset(self.position)
        limits = limits_of(limit, self._options, self._pace)
        began = time.monotonic()
        end = self.run(lambda connection: self._next_end(connection, limits))
        if end == self.position:
            # A peek costs the server time: the longer it took, the later the next one.
            took = time.monotonic() - began
            self._next_peek = time.monotonic() + max(self._options.poll_interval, 4 * took)
            if self.driver.monitor is not None:
                self.driver.monitor.record_position(max(end.lsn, self._empty_up_to))
        elif self.position is not None:
            self._pace.record_batch(self.position.lsn, end.lsn)
        self.position = end
        return self._offset(end)

    def reportLatestOffset(self) -> dict[str, str | int] | None:
        return (
            None
            if self._last_slot is None or self.position is None
            else progress(self._last_slot, self.position.lsn, "peek")
        )

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[InputPartition]:
        first, last = position_of(start), position_of(end)
        self._table.resume_from(start)
        if self.position is None or self.position.lsn < last.lsn:
            self.position = last
        if first.lsn == last.lsn:
            return []
        self._commits.record_batch(first.lsn, last.lsn)
        slot = self.run(lambda connection: check_readable(connection, self._options, first, last))
        self.run(self._table.query)
        # The server then leaves out everything before, even messages that do not show their place.
        self.acknowledge(first)
        # The task counts them.
        Counts(changes=None, bytes=None).report(slot, "batch", "peek", first.lsn, last.lsn)
        monitor, counts_sender = self.driver.monitor, None
        if monitor is not None:
            monitor.record_batch("peek", last.lsn, None)
            counts_sender = monitor.counts_sender(last.lsn)
        return [SlotRange(first, last, self._table.relation_id, counts_sender)]

    def commit(self, end: Mapping[str, object]) -> None:
        position = position_of(end)
        self._commits.record_commit(position.lsn)
        self.acknowledge(position)

    def acknowledge(self, position: WalPosition) -> None:
        if position.lsn > self._acknowledged:
            self.run(lambda connection: acknowledge_position(connection, self._options, position))
            self._acknowledged = position.lsn

    def _next_end(self, connection: Connection, limits: ReadLimits) -> WalPosition:
        slot = self._last_slot = query_slot(connection, self._slot)
        if slot.standbys_warning is not None:
            warn([slot.standbys_warning])
        head = slot.sent_up_to
        if self._target is not None:
            head = min(head, self._target)
        position = self.position
        if position is not None:
            check_within_wal(self._options.connection, slot, position)
            check_not_passed(slot.name, slot.confirmed.lsn, position.lsn)
            if head <= max(position.lsn, self._empty_up_to):
                return position
            self._warn_of_lag(slot, position.lsn, head)
        if self._planner is None:
            self._planner = Planner(self._slot, self._options.plugin_options(newest_protocol(connection)))
        start = slot.confirmed if position is None else position
        end = self._planner.end(connection, start.lsn, head, limits)
        if end is not None:
            return WalPosition(end, slot.timeline)
        self._empty_up_to = head
        if position is None or head - position.lsn >= self._options.idle_advance_bytes:
            # The WAL has no changes to read: an occasional empty batch lets the server remove it.
            return WalPosition(head, slot.timeline)
        return position

    def _warn_of_lag(self, slot: Slot, position: Lsn, head: Lsn) -> None:
        """Warn if the server decodes much WAL before the batch again, and whenever that WAL doubles."""
        repeated_bytes = slot.redecoded_bytes(position)
        if repeated_bytes >= max(self._warned_of, 4 * (head - position)):
            self._warned_of = 2 * repeated_bytes
            log.warning(
                "slot %s: the server decodes %d MiB of WAL before each batch again, behind an open transaction: "
                "end it, or read with mode = auto or walsender",
                self._slot, repeated_bytes >> 20,
            )  # fmt: skip

    # In an executor

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SlotRange)
        log_to_standard_error()
        options = replace(self._options, relation_id=partition.relation_id)
        return collect_garbage_once(
            read_slot(options, self._schema, partition.start, partition.end, partition.counts_sender)
        )
