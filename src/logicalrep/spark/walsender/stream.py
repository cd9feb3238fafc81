"""Streaming by walsender: a receiver in the driver holds committed changes, which the executors fetch.

An offset is a position in the WAL, with the same meaning as in mode = peek. A position is acknowledged only after
Spark has committed it, so a new process starts with nothing and receives the missing changes again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from logicalrep.postgres.server import Connection, newest_protocol, query_next_xid, server_major
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.slots.positions import check_not_passed, check_within_wal
from logicalrep.postgres.slots.slot import find_slot, query_slot
from logicalrep.postgres.timelines import WalPosition
from logicalrep.spark.monitoring.statistics import progress
from logicalrep.spark.offsets import Offset, offset_of, position_of
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL, ReadLimits, limits_of
from logicalrep.spark.server_connection import log
from logicalrep.spark.stream_reader import SlotStreamReader
from logicalrep.spark.typed_tables.table_schema import with_catalog
from logicalrep.spark.walsender.receiver import SpoolReceiver
from logicalrep.spark.walsender.spool import SegmentRange
from logicalrep.spark.walsender.stored_rows import CarriedRows
from logicalrep.spark.worker import collect_garbage_once
from logicalrep.transactions.transaction import Decision
from logicalrep_runtime.scalars import Lsn

LONGEST_WAIT = 5.0
"""Longest wait for changes that the server has not sent yet, in seconds, before an empty answer."""
TARGET_BATCH = 32 << 20
"""Bytes of messages that make a batch worth Spark's overhead."""
TARGET_WAIT = 1.0
"""Longest wait for TARGET_BATCH while the server has more to send, in seconds."""


class WalsenderStreamReader(SlotStreamReader):
    def __init__(self, options: SourceOptions, schema: StructType, shared: SlotStreamReader | None = None) -> None:
        super().__init__(options, schema, shared, locks=False)
        self.receiver: SpoolReceiver | None = None
        self._caught_up = False
        self._is_within_wal = False
        # Received, and without rows from the last position on.
        self._nothing_before = Lsn(0)
        self.is_idle = False
        """Whether the last call of latestOffset found nothing."""
        # The first transaction that the query receives whole; None without two_phase, where that holds for all.
        self._first_xid: int | None = None
        self._knows_first_xid = False
        """Whether `_first_xid` is known, which may be None."""

    def initialOffset(self) -> Offset:
        self.position = self.run(self._initial)
        self._resume_from({})
        return self._offset(self.position)

    def latestOffset(self, start: Mapping[str, object] | None = None, limit: object | None = None) -> Offset:
        self._record_request(start)
        self._resume_from(start or {})
        if start is not None:
            self.position = position_of(start)
            if self._is_in_checkpoint(self.position.lsn):
                self._acknowledge(self.position)
        receiver = self.start_receiver(None if self.position is None else self.position.lsn)
        if not HAS_ADMISSION_CONTROL and not self._caught_up:
            # With Trigger.AvailableNow this is called once, and Spark does not report the trigger.
            reached = self._sent_up_to()
            self._wait_for_commits(receiver, reached, reached)
            self._caught_up = True
        if self.position is None:
            # Spark 4.0 and 4.1 do not pass the position after a restart; the slot's is certainly committed.
            self.position = WalPosition(receiver.wait_until_started(), receiver.timeline)
        end = self._wait_for_end(receiver, self.position.lsn, limit)
        if self.driver.monitor is not None and self._nothing_before > self.position.lsn:
            self.driver.monitor.record_position(self._nothing_before)
        if end != self.position.lsn:
            self._pace.record_batch(self.position.lsn, end)
            self.position = WalPosition(end, receiver.timeline)
        return self._offset(self.position)

    def reportLatestOffset(self) -> dict[str, str | int] | None:
        position = self.position
        return None if position is None else progress(self._query_slot(), position.lsn, "walsender")

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[InputPartition]:
        carried = self.carry(start, end)
        assert carried is not None
        return carried

    def carry(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[InputPartition] | None:
        """Return the partitions with the rows of the batch; None if tasks cannot carry them."""
        self._resume_from(start)
        begins, ends = position_of(start), position_of(end)
        first, last = begins.lsn, ends.lsn
        receiver = self.start_receiver(first)
        if self.position is None or self.position.lsn < last:
            self.position = ends
        if first == last:
            return []
        self._commits.record_batch(first, last)
        self._check(receiver, begins, ends)
        self.run(self._table.query)
        partitions = receiver.partitions(first, last, self._is_empty)
        if partitions is None:
            return None
        counts = receiver.counts(first, last)
        slot = self.run(lambda connection: find_slot(connection, self._slot))
        if slot is not None:
            counts.report(slot, "batch", "walsender", first, last)
        if self.driver.monitor is not None:
            # The receiver's traffic has its bytes.
            self.driver.monitor.record_batch("walsender", last, replace(counts, bytes=0))
        return partitions

    def commit(self, end: Mapping[str, object]) -> None:
        position = position_of(end)
        self._commits.record_commit(position.lsn)
        self._acknowledge(position)

    def _acknowledge(self, position: WalPosition) -> None:
        receiver = self.start_receiver(position.lsn)
        self._check(receiver, position)
        receiver.commit(position.lsn)

    def stop(self) -> None:
        self.leave()
        super().stop()

    def leave(self) -> None:
        """End the receiver, which releases the slot; the next call of another method starts a receiver again."""
        if self.receiver is not None:
            self.receiver.stop()
            self.receiver = None
        self.is_idle = False

    @property
    def has_left_slot(self) -> bool:
        return self.receiver is not None and self.receiver.has_left_slot

    def covers(self, start: Lsn, end: Lsn) -> bool:
        return self.receiver is not None and self.receiver.covers(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, CarriedRows | SegmentRange)
        return collect_garbage_once(partition.read())

    def start_receiver(self, start: Lsn | None) -> SpoolReceiver:
        """Return the receiver, which has everything from `start` on, or from the slot's position if `start` is None."""
        receiver = self.receiver
        if receiver is not None and start is not None and receiver.start is not None and start < receiver.start:
            receiver.stop()
            receiver = None
        if receiver is None:
            plugin = self._options.plugin_options(self.run(newest_protocol))
            options = self.run(lambda connection: with_catalog(connection, self._options))
            options = replace(options, relation_id=self._table.relation_id)
            traffic = None if self.driver.monitor is None else self.driver.monitor.traffic
            receiver = self.receiver = SpoolReceiver(options, plugin, self._schema, start, traffic)
        return receiver

    def _offset(self, position: WalPosition) -> Offset:
        return offset_of(position, slot=self._slot, first_xid=self._first_xid, relation_id=self._table.relation_id)

    def _resume_from(self, offset: Mapping[str, object]) -> None:
        """Take the table and the first transaction from an offset; by default the next transaction."""
        self._table.resume_from(offset)
        first = offset.get("first_xid")
        if first is not None:
            self._first_xid = int(str(first))
        elif not self._knows_first_xid:
            self._first_xid = self.run(self._next_xid)
        self._knows_first_xid = True

    def _next_xid(self, connection: Connection) -> int | None:
        has_prepared = self._options.two_phase or query_slot(connection, self._slot).two_phase
        return query_next_xid(connection) if has_prepared else None

    def _is_empty(self, decision: Decision) -> bool:
        """Whether a prepared transaction that arrives only as its commit has no changes.

        PostgreSQL 15 to 17 send only the commit of a transaction that just locked rows; 18 sends the Prepare too. A
        transaction that began before the query may have been prepared before the query.
        """
        newest, major = self.run(lambda connection: (query_next_xid(connection), server_major(connection)))
        # The latest 64-bit id that ends with these 32 bits.
        xid = newest - 1 - ((newest - 1 - decision.xid) % (1 << 32))
        is_empty = major < 18 and self._first_xid is not None and xid >= self._first_xid
        if is_empty:
            log.warning(
                "slot %s: the prepared transaction %r was committed up to %s, and its changes were not sent: it has "
                "none, or another reader has acknowledged them",
                self._slot, decision.gid, decision.end_lsn,
            )  # fmt: skip
        return is_empty

    def _check(self, receiver: SpoolReceiver, *positions: WalPosition) -> None:
        """Raise LostPositionError if the slot was past one of the checkpoint's positions, or the WAL lacks it."""
        if not self._is_within_wal:
            # Once, as the receiver checks each later connection; and before a position is acknowledged, which another
            # server would take for its own.
            slot = self._query_slot()
            for position in positions:
                check_within_wal(self._options.connection, slot, position)
            self._is_within_wal = True
        first = min(position.lsn for position in positions)
        check_not_passed(self._slot, receiver.wait_until_started(), first)

    def _wait_for_end(self, receiver: SpoolReceiver, start: Lsn, limit: object | None) -> Lsn:
        limits = limits_of(limit, self._options, self._pace)
        # The size at which a batch need not wait for more.
        enough = ReadLimits(limits.changes, min(limits.bytes or TARGET_BATCH, TARGET_BATCH))
        if self._target is None:
            if self.is_idle:
                receiver.wait(start, self._options.poll_interval)
            else:
                # The server may have changes that have not been received yet.
                reached = self._sent_up_to()
                receiver.wait(start, LONGEST_WAIT, reached)
                if reached - receiver.position > TARGET_BATCH and not receiver.has_left_slot:
                    receiver.wait(start, TARGET_WAIT, reached, enough)
            end, has_rows = receiver.end_after(start, limits)
            self.is_idle = not has_rows
            self._nothing_before = start if has_rows else end
        else:
            if start >= self._target:
                # After the last batch the process may end at once.
                receiver.wait_until_acknowledged(start)
                return start
            if not self._wait_for_commits(receiver, start, self._target):
                return start
            receiver.wait(start, LONGEST_WAIT, self._target, enough)
            end, has_rows = receiver.end_after(start, limits)
            return end if has_rows or receiver.has_left_slot else self._target
        if has_rows or end - start >= self._options.idle_advance_bytes:
            return end
        return start

    def _wait_for_commits(self, receiver: SpoolReceiver, after: Lsn, until: Lsn) -> bool:
        """False if the server waits for its standbys. Raises SlotError if it sends nothing for `retry_timeout`."""
        seen, deadline = Lsn(0), 0.0
        while not receiver.wait(after, 0.1, until):
            if receiver.received > seen or not deadline:
                seen, deadline = receiver.received, time.monotonic() + self._options.retry_timeout
            if time.monotonic() > deadline:
                slot = self._query_slot()
                if not slot.waits_for_standbys:
                    raise SlotError(f"the server has not sent its changes up to {until}", code="SERVER_SILENT")
                log.warning(
                    "slot %s: the server waits for the standbys in synchronized_standby_slots, which are "
                    "at %s of %s",
                    slot.name, slot.sent_up_to, slot.head,
                )  # fmt: skip
                return False
        return True
