"""mode = walsender: a receiver in the driver spools what is committed, and the executors read the segments.

An offset is a position in the WAL, with the same meaning as in mode = peek. The server is told of a position only
after Spark has committed it, so a new process starts with an empty spool and receives again what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from logicalrep.postgres.slots import (
    Connection,
    Slot,
    SlotError,
    check_not_passed,
    check_within_wal,
    newest_protocol,
    next_xid,
    sent_up_to,
    server_major,
    the_slot,
)
from logicalrep.postgres.timelines import WalPosition
from logicalrep.spark.metrics import Statistics, progress
from logicalrep.spark.offsets import Offset, first_xid_of, offset_of, position_of
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL, AvailableNow, Limits, limits_of, read_limit
from logicalrep.spark.server_connection import Driver, ensure_slot, log, log_to_standard_error
from logicalrep.spark.typed_tables.table_identity import TableIdentity
from logicalrep.spark.typed_tables.table_schema import with_catalog
from logicalrep.spark.walsender.receiver import Receiver
from logicalrep.spark.walsender.spool import read_segment
from logicalrep.spark.worker import PromptReader, collected_once
from logicalrep.transactions.transaction import Decision
from logicalrep_runtime.scalars import Lsn

_LONGEST_WAIT = 5.0
"""For how long a query is not told that there is nothing, in seconds, while the server has yet to send what it has."""
_PLENTY = 32 << 20
"""So many bytes of messages make a batch that is worth what Spark does for each, however much more is to come."""
_GATHERING = 1.0
"""For how long a batch waits for that where the server has so much more, in seconds."""


@dataclass
class SegmentRange(InputPartition):
    """The part of a segment that belongs to a micro-batch."""

    path: str
    start: Lsn
    end: Lsn


class WalsenderStreamReader(PromptReader, AvailableNow, DataSourceStreamReader):
    """Keeps the receiver in the driver, and plans a partition for each segment."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__()
        self._options = options
        self._schema = schema
        self._table = TableIdentity(options)
        self._driver: Driver | None = None
        self._receiver: Receiver | None = None
        self._position: WalPosition | None = None
        self._target: Lsn | None = None
        self._caught_up = False
        self._is_within_wal = False
        # Whether nothing was there when it was asked last.
        self._is_idle = False
        # The first transaction of which all comes to the query; None without two_phase, where that is so of all.
        self._first_xid: int | None = None
        self._knows_first_xid = False
        """It is known too where there is none, for a slot without prepared transactions."""

    def initialOffset(self) -> Offset:  # noqa: N802
        """The slot's position; the slot is made here if it is to be made."""
        self._position = self._run(self._initial)
        assert self._position is not None
        self._go_on_from({})
        return self._offset(self._position)

    def latestOffset(  # noqa: N802
        self, start: Mapping[str, object] | None = None, limit: object | None = None
    ) -> Offset:
        """The end of the next batch; the start where nothing has come. Spark 4.0 and 4.1 give no arguments."""
        if start is None and self._position is None:
            # Spark 4.0 and 4.1 ask a new query for this before the initial offset.
            self._run(lambda connection: ensure_slot(connection, self._options))
        self._go_on_from(start or {})
        receiver = self._started(None if start is None else position_of(start).lsn)
        if start is not None:
            self._position = position_of(start)
            self._check(receiver, self._position)
            receiver.commit(self._position.lsn)
        if not HAS_ADMISSION_CONTROL and not self._caught_up:
            # With Trigger.AvailableNow this is asked once, and nobody says that it is that trigger.
            reached = self._run(self._sent_up_to)
            self._comes(receiver, reached, reached)
            self._caught_up = True
        if self._position is None:
            # Restarted by a Spark that does not say where; nothing before this has been committed for certain.
            self._position = WalPosition(receiver.started_at, receiver.timeline)
        end = self._next_end(receiver, self._position.lsn, limit)
        if end != self._position.lsn:
            self._position = WalPosition(end, receiver.timeline)
        return self._offset(self._position)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """What the options max_…_per_batch allow."""
        return read_limit(self._options)

    def reportLatestOffset(self) -> dict[str, str | int] | None:  # noqa: N802
        """How far the server is, for Spark's progress report."""
        position = self._position
        if position is None:
            return None
        slot: Slot = self._run(lambda connection: the_slot(connection, self._options.the_slot))
        return progress(slot, position.lsn)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where the WAL ends now: the query reads up to there."""
        self._target = self._run(self._sent_up_to)

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[InputPartition]:
        """A partition for each segment that has rows of the batch."""
        self._go_on_from(start)
        begins, ends = position_of(start), position_of(end)
        first, last = begins.lsn, ends.lsn
        receiver = self._started(first)
        if self._position is None or self._position.lsn < last:
            self._position = ends
        if first == last:
            return []
        self._check(receiver, begins, ends)
        self._run(self._table.look)
        segments = receiver.segments(first, last, self._is_empty)
        statistics = Statistics(self._options.the_slot, first, last)
        statistics.changes, statistics.bytes, statistics.last_commit = receiver.counts(first, last)
        self._run(statistics.report)
        return [SegmentRange(str(segment.path), first, last) for segment in segments]

    def commit(self, end: Mapping[str, object]) -> None:
        """Spark has committed what lies before `end`."""
        position = position_of(end)
        receiver = self._started(position.lsn)
        self._check(receiver, position)
        receiver.commit(position.lsn)

    def stop(self) -> None:
        """End the receiver and close the connections."""
        if self._receiver is not None:
            self._receiver.stop()
            self._receiver = None
        if self._driver is not None:
            self._driver.close()
            self._driver = None

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The record batches of a segment."""
        assert isinstance(partition, SegmentRange)
        return collected_once(read_segment(Path(partition.path), partition.start, partition.end))

    def _run(self, action: Any) -> Any:
        if self._driver is None:
            log_to_standard_error()
            self._driver = Driver(self._options, self._table.look)
        return self._driver.run(action)

    def _started(self, start: Lsn | None) -> Receiver:
        """The receiver, which has all from `start` on, or where that is not known from the slot's position on."""
        receiver = self._receiver
        if receiver is not None and start is not None and receiver.start is not None and start < receiver.start:
            receiver.stop()
            receiver = None
        if receiver is None:
            plugin = self._options.plugin_options(self._run(newest_protocol))
            options = self._run(lambda connection: with_catalog(connection, self._options))
            options = replace(options, relation_id=self._table.relation_id)
            receiver = self._receiver = Receiver(options, plugin, self._schema, start)
        return receiver

    def _offset(self, position: WalPosition) -> Offset:
        known = {"first_xid": self._first_xid, "relation_id": self._table.relation_id}
        return offset_of(position, slot=self._options.the_slot, **known)

    def _go_on_from(self, offset: Mapping[str, object]) -> None:
        """Know the table, and which transaction was the first one: a later one is safe where an offset does not say."""
        self._table.go_on_from(offset)
        first = first_xid_of(offset)
        if first is not None:
            self._first_xid = first
        elif not self._knows_first_xid:
            self._first_xid = self._run(self._next_xid)
        self._knows_first_xid = True

    def _next_xid(self, connection: Connection) -> int | None:
        has_prepared = self._options.two_phase or the_slot(connection, self._options.the_slot).two_phase
        return next_xid(connection) if has_prepared else None

    def _is_empty(self, decision: Decision) -> bool:
        """Whether a prepared transaction of which only the commit came has no changes, as far as can be known.

        Of one that has only locked rows, PostgreSQL 15 to 17 send nothing else. That is so of none that began before
        the query did: it may have been prepared before as well. 18 sends the Prepare too.
        """
        newest, major = self._run(lambda connection: (next_xid(connection), server_major(connection)))
        # The 64-bit id that is the last one to end with these 32 bits.
        xid = newest - 1 - ((newest - 1 - decision.xid) % (1 << 32))
        is_empty = major < 18 and self._first_xid is not None and xid >= self._first_xid
        if is_empty:
            log.warning(
                "slot %s: the prepared transaction %r was committed up to %s, and nothing else of it came: it changed "
                "nothing, or another reader has acknowledged it",
                self._options.the_slot, decision.gid, decision.end_lsn,
            )  # fmt: skip
        return is_empty

    def _sent_up_to(self, connection: Connection) -> Lsn:
        return sent_up_to(connection, self._options.the_slot)

    def _initial(self, connection: Connection) -> WalPosition:
        ensure_slot(connection, self._options)
        return the_slot(connection, self._options.the_slot).confirmed

    def _check(self, receiver: Receiver, *positions: WalPosition) -> None:
        """LostPositionError if the slot was past one of the checkpoint's positions, or the WAL did not come by it."""
        if not self._is_within_wal:
            # Once, as the receiver looks at each connection that follows; and before the server is told of a position
            # that it might take for its own.
            slot: Slot = self._run(lambda connection: the_slot(connection, self._options.the_slot))
            for position in positions:
                check_within_wal(self._options.connection, slot, position)
            self._is_within_wal = True
        first = min(position.lsn for position in positions)
        check_not_passed(self._options.the_slot, receiver.started_at, first)

    def _next_end(self, receiver: Receiver, start: Lsn, limit: object | None) -> Lsn:
        limits = limits_of(limit, self._options)
        if self._target is None:
            if self._is_idle:
                receiver.wait(start, self._options.poll_interval)
            else:
                # That nothing has come yet does not mean that the server has nothing.
                reached = self._run(self._sent_up_to)
                receiver.wait(start, _LONGEST_WAIT, reached)
                if reached - receiver.position > _PLENTY:
                    receiver.wait(start, _GATHERING, reached, _enough(limits))
            end, has_rows = receiver.end_after(start, limits)
            self._is_idle = not has_rows
        else:
            if start >= self._target:
                # The last batch: the process may be gone in a moment.
                receiver.wait_until_told(start)
                return start
            if not self._comes(receiver, start, self._target):
                return start
            receiver.wait(start, _LONGEST_WAIT, self._target, _enough(limits))
            end, has_rows = receiver.end_after(start, limits)
            return end if has_rows else self._target
        if has_rows or end - start >= self._options.idle_advance_bytes:
            return end
        return start

    def _comes(self, receiver: Receiver, after: Lsn, until: Lsn) -> bool:
        """Whether something that committed after a position has come, or all there is up to another, when it has.

        Not where the server waits for its standbys, which may be away for long. SlotError where nothing at all is
        sent for `retry_timeout`: a large transaction may take longer.
        """
        seen, deadline = Lsn(0), 0.0
        while not receiver.wait(after, 0.1, until):
            if receiver.received > seen or not deadline:
                seen, deadline = receiver.received, time.monotonic() + self._options.retry_timeout
            if time.monotonic() > deadline:
                slot: Slot = self._run(lambda connection: the_slot(connection, self._options.the_slot))
                if not slot.waits_for_standbys:
                    raise SlotError(f"the server has not sent what it has up to {until}", code="SERVER_SILENT")
                log.warning(
                    "slot %s: the server sends nothing before the standbys in synchronized_standby_slots have it: they "
                    "are at %s of %s",
                    slot.name, slot.sent_up_to, slot.head,
                )  # fmt: skip
                return False
        return True


def _enough(limits: Limits) -> Limits:
    """With how much a batch need not wait for more."""
    return Limits(limits.changes, min(limits.bytes or _PLENTY, _PLENTY))
