"""mode = auto: peek reads a backlog, the walsender reads near the end of the WAL.

Both modes give the same offsets the same meaning, and a batch the same rows with the same ordinals. So the reader
may change between any two batches, nothing about the mode is stored, and peek reads a batch that was planned before
a restart. The tasks carry a receiver's rows to the executors. If tasks cannot carry a batch, the receiver leaves the
slot, and an executor reads the batch from the slot.

An SQL session decodes four to five times as fast as a walsender, but each session begins at the slot's restart_lsn,
which stays behind the oldest open transaction. A walsender decodes everything once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from logicalrep.postgres.retries import TRANSIENT
from logicalrep.postgres.server import server_major
from logicalrep.postgres.slots.slot import Slot, find_slot
from logicalrep.postgres.timelines import WalPosition
from logicalrep.spark.offsets import Offset, position_of
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from logicalrep.spark.peek.slot_range import SlotRange
from logicalrep.spark.peek.stream import PeekStreamReader
from logicalrep.spark.server_connection import log
from logicalrep.spark.stream_reader import SlotStreamReader
from logicalrep.spark.walsender.spool_folders import default_folder
from logicalrep.spark.walsender.stream import WalsenderStreamReader
from logicalrep.transactions.logs import warn
from logicalrep_runtime.scalars import Lsn

RECEIVE_BACKLOG = 16 << 20
PEEK_BACKLOG = 128 << 20
"""The backlog, in bytes of WAL, from which a query leaves its walsender for peek."""
_BATCH = 256 << 20
_DECODED_AGAIN = 2
"""The most WAL that peek may decode again, as a multiple of the batch; at three peek is no faster."""
PAUSE = 1.0
"""Time between two checks of a walsender's backlog, in seconds."""
_WITHOUT_WALSENDER = 60.0
"""Time before the next attempt after the server refused a walsender, in seconds."""


class AutoStreamReader(SlotStreamReader):
    """Stream reader that reads each batch by peek or by the walsender.

    With `mode = walsender`, peek reads only batches that are too large for the walsender.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._peek = PeekStreamReader(replace(options, mode="peek", two_phase=False), schema, self)
        self.walsender = self._by_walsender(options)
        # `_receives`: the walsender reads, else peek. The other two: which of them can read.
        self._receives = False
        self._can_peek = self._can_receive = True
        self._modes_are_known = False
        self._has_end = False
        self.next_check = 0.0

    # In the driver

    def initialOffset(self) -> Offset:
        self._find_modes({})
        offset = self._peek.initialOffset() if self._can_peek else self.walsender.initialOffset()
        self.position = position_of(offset)
        return offset

    def latestOffset(self, start: Mapping[str, object] | None = None, limit: object | None = None) -> Offset:
        self._find_modes(start)
        if start is not None:
            self.position = position_of(start)
        position = self.position
        self._choose(start, position)
        offset = self._latest(start, limit)
        # Spark 4.0 and 4.1 may ask once, for everything.
        is_rest = not HAS_ADMISSION_CONTROL or position == position_of(offset)
        if self._receives and self.walsender.has_left_slot and is_rest:
            # A transaction comes that is too large for tasks.
            self._leave("a transaction is too large to be sent to the executors within their tasks")
            offset = self._latest(start, limit)
        self.position = position_of(offset)
        return offset

    def reportLatestOffset(self) -> dict[str, str | int] | None:
        return self._reader.reportLatestOffset()

    def prepareForTriggerAvailableNow(self) -> None:
        self._has_end = True
        for reader in (self._peek, self.walsender):
            reader.prepareForTriggerAvailableNow()

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[InputPartition]:
        self._find_modes(start)
        first, last = position_of(start), position_of(end)
        if self.position is None or self.position.lsn < last.lsn:
            self.position = last
        if not self._can_peek:
            return self.walsender.partitions(start, end)
        if self._receives and self.walsender.covers(first.lsn, last.lsn):
            carried = self.walsender.carry(start, end)
            if carried is not None:
                return carried
            self._leave("a batch is too large to be sent to the executors within their tasks")
        elif self._receives and first.lsn != last.lsn:
            self._leave("a batch of an earlier process is read again")
        return self._peek.partitions(start, end)

    def commit(self, end: Mapping[str, object]) -> None:
        self._find_modes(end)
        self._reader.commit(end)

    def stop(self) -> None:
        # All three readers share the connection.
        self.walsender.stop()

    @property
    def _reader(self) -> PeekStreamReader | WalsenderStreamReader:
        return self.walsender if self._receives else self._peek

    def _by_walsender(self, options: SourceOptions) -> WalsenderStreamReader:
        return WalsenderStreamReader(replace(options, mode="walsender"), self._schema, self)

    def _latest(self, start: Mapping[str, object] | None, limit: object | None) -> Offset:
        self._reader.position = self.position
        return self._reader.latestOffset(start, limit)

    def _find_modes(self, offset: Mapping[str, object] | None) -> None:
        self._table.resume_from(offset or {})
        if self._modes_are_known:
            return
        slot = self.run(lambda connection: find_slot(connection, self._slot))
        major = self.run(server_major)
        if self._options.two_phase or (slot is not None and slot.two_phase):
            self._stay_with_walsender("only a walsender sends prepared transactions when they are prepared")
        elif major < 11:
            self._stay_with_walsender("PostgreSQL 10 cannot move a slot by SQL")
        elif self._options.relations:
            log.info("slot %s: 'relations' is set: peek reads every batch", self._options.slot)
            self._can_receive = False
        self._modes_are_known = True

    def _stay_with_walsender(self, reason: str) -> None:
        folder = self._options.spool or default_folder()
        log.info("slot %s: read by walsender through the folder %s: %s", self._slot, folder, reason)
        self.walsender = self._by_walsender(replace(self._options, spool=folder))
        self._can_peek, self._receives = False, True

    def _choose(self, start: Mapping[str, object] | None, position: WalPosition | None) -> None:
        if not (self._can_peek and self._can_receive) or position is None or time.monotonic() < self.next_check:
            # The first batch of a new query on Spark 4.0 and 4.1 may be one of Trigger.AvailableNow: peek is faster.
            return
        prefers_walsender = self._options.mode == "walsender"
        if self._receives and (prefers_walsender or self.walsender.is_idle):
            return
        slot = self._query_slot()
        suits = suits_peek(slot, position.lsn, receives=self._receives, has_end=self._has_end)
        if self._receives:
            self.next_check = time.monotonic() + PAUSE
            if suits and not self.walsender.has_left_slot:
                self._leave(f"it is {slot.sent_up_to - position.lsn} bytes behind the server")
        elif (prefers_walsender or not suits) and self._try_walsender():
            log.info(
                "slot %s: read by walsender, %d bytes behind the server; peek would repeat %d bytes per batch",
                slot.name, slot.sent_up_to - position.lsn, slot.redecoded_bytes(position.lsn),
            )  # fmt: skip
            if start is not None and (self._has_end or self._is_in_checkpoint(position.lsn)):
                # It need not be received.
                self._peek.acknowledge(position)
            self._receives = True

    def _try_walsender(self) -> bool:
        """Return whether the server has a free walsender; if not, stay with peek for `_WITHOUT_WALSENDER` seconds."""
        try:
            self._options.connection.connect(replication=True).close()
        except TRANSIENT as error:
            # A connection for queries was there a moment ago.
            reason = str(error).strip()
            warn([f"Slot {self._slot}: the server refused a walsender, so peek reads the slot: {reason}"])
            self.next_check = time.monotonic() + _WITHOUT_WALSENDER
            return False
        return True

    def _leave(self, reason: str) -> None:
        log.info("slot %s: read by peek, as %s", self._slot, reason)
        self.walsender.leave()
        self._receives = False

    # In an executor

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        reader = self._peek if isinstance(partition, SlotRange) else self.walsender
        return reader.read(partition)


def suits_peek(slot: Slot, position: Lsn, *, receives: bool, has_end: bool) -> bool:
    """Return whether peek should read the next batch from a position, rather than a walsender.

    `receives`: the query has a walsender, which is costly to leave. `has_end`: the query reads to the current end of
    the WAL and stops.
    """
    behind = slot.sent_up_to - position
    least = PEEK_BACKLOG if receives else 0 if has_end else RECEIVE_BACKLOG
    return behind > least and slot.redecoded_bytes(position) <= _DECODED_AGAIN * max(
        min(behind, _BATCH), RECEIVE_BACKLOG
    )
