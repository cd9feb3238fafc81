"""The thread in the driver that receives from the walsender and holds committed changes for Spark."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from logicalrep.arrow.batch_intake import WholeTransactions
from logicalrep.arrow.committing import Committing
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.sessions.replication import Replication, Traffic
from logicalrep.postgres.sessions.slot_receiver import SlotReceiver
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.spark.monitoring.statistics import Counts, commit_times
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.peek.admission import ReadLimits
from logicalrep.spark.schemas import row_form
from logicalrep.spark.server_connection import log
from logicalrep.spark.walsender.backlog import Backlog
from logicalrep.spark.walsender.spool import Spool
from logicalrep.spark.walsender.spool_folders import default_folder
from logicalrep.spark.walsender.stored_rows import MOST_IN_MEMORY, RowsInMemory
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.frames import GATHERING_SECONDS
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import Decision
from logicalrep_runtime.scalars import Lsn

_NOWHERE = Lsn(0)


@dataclass(frozen=True, slots=True)
class ReceiverState:
    """The state of a receiver's thread, which replaces it as a whole."""

    position: Lsn = _NOWHERE
    acknowledged: Lsn = _NOWHERE
    waits_for_room: bool = False


class SpoolReceiver(SlotReceiver):
    def __init__(
        self,
        options: SourceOptions,
        plugin: PluginOptions,
        schema: StructType,
        start: Lsn | None,
        traffic: Traffic | None = None,
        *,
        gathering_seconds: float = GATHERING_SECONDS,
    ) -> None:
        """Start the thread. Spark has all commits before `start`, which are left out; None: unknown."""
        self.start = start
        self._options = options
        form = row_form(options, schema)
        self._rows: RowsInMemory | Spool = RowsInMemory()
        # The bytes of rows, and of an unfinished transaction, at which the receiver stops.
        self._room, self._most_unfinished = MOST_IN_MEMORY, MOST_IN_MEMORY
        folder: Path | None = None
        if options.uses_spool:
            within = options.spool or default_folder()
            self._rows = spool = Spool(within, options.the_slot, form.schema, options.segment_bytes)
            self._room, self._most_unfinished, folder = options.spool_bytes, 0, spool.folder
        after = None if start is None else ResumeToken(delivered=start)
        connect = partial(
            Replication,
            options.connection,
            options.the_slot,
            plugin,
            messages=options.rows_per_record_batch,
            waiting=options.retry_timeout,
            traffic=traffic,
        )
        assembler = Assembler(after=after, memory_limit=options.memory_limit, directory=folder)
        self._committing = Committing(form, assembler)
        super().__init__(self._committing.intake, assembler, connect, gathering_seconds=gathering_seconds)
        self._progress = ReceiverState()
        self._backlog = Backlog()
        # The commits of prepared transactions whose changes were not sent.
        self._decisions: list[Decision] = []
        # Told to the thread: Spark's commits, and the end of the batch being read, which must be received.
        self._committed = self._needed = Lsn(0)
        self._thread.start()

    # For the reader's thread

    @property
    def position(self) -> Lsn:
        return self._progress.position

    @property
    def has_left_slot(self) -> bool:
        """Whether the receiver has left the slot because a transaction is too large for memory."""
        return not self._thread.is_alive() and self._is_too_large

    def covers(self, start: Lsn, end: Lsn) -> bool:
        return self.start is not None and max(self.start, self._committed) <= start and end <= self.position

    def end_after(self, start: Lsn, limits: ReadLimits) -> tuple[Lsn, bool]:
        """Return the end of the batch from `start`, at most the received position, and whether it has rows."""
        with self._changed:
            self._check()
            return self._backlog.end_after(start, self.position, limits)

    def partitions(self, start: Lsn, end: Lsn, is_empty: Callable[[Decision], bool]) -> list[InputPartition] | None:
        """Return a batch's partitions, all of which wait for the batch; None if tasks cannot carry them.

        `is_empty` decides whether a committed prepared transaction without received changes has none. If it has
        changes, raises TransactionError: the server sent them before the reader started.
        """
        with self._changed:
            self._needed = end
            self._changed.notify_all()
            self._await(lambda: self.position >= end)
            self._check()
            for decision in self._decisions:
                if start < decision.end_lsn <= end and decision.error is not None and not is_empty(decision):
                    raise decision.error
            return self._rows.partitions(start, end)

    def counts(self, start: Lsn, end: Lsn) -> Counts:
        with self._changed:
            return self._backlog.counts(start, end)

    def wait(self, after: Lsn, seconds: float, until: Lsn | None = None, enough: ReadLimits | None = None) -> bool:
        """Wait for commits after a position, or for everything up to `until`; true also if it waits for Spark."""

        def is_enough() -> bool:
            has_all = until is not None and self.position >= until
            return self.is_full or self.has_left_slot or self._backlog.has(after, enough) or has_all

        self.want(0.0)
        try:
            with self._changed:
                return self._await(is_enough, seconds)
        finally:
            # Spark is busy until it waits again.
            self.want(math.inf)

    @property
    def is_full(self) -> bool:
        return self._progress.waits_for_room and self._rows.size > self._room

    def commit(self, lsn: Lsn) -> None:
        """Remove the rows of all commits before a position, which Spark has committed, and acknowledge it."""
        with self._changed:
            if lsn <= self._committed:
                return
            self._committed = lsn
            self._decisions = [decision for decision in self._decisions if decision.end_lsn > lsn]
            self._rows.remove_before(lsn)
            self._backlog.remove_up_to(lsn)
            self._changed.notify_all()

    def wait_until_acknowledged(self, lsn: Lsn) -> None:
        """Wait until a position is acknowledged to the server, for a second at most."""
        with self._changed:
            self._await(lambda: self._progress.acknowledged >= lsn or self.has_left_slot, 1)

    def stop(self) -> None:
        super().stop()
        # Not at the end of the thread: after an error, batches planned before it can still be read.
        self._rows.close()

    def _check(self) -> None:
        super()._check()
        if not self._thread.is_alive() and not self.has_left_slot:
            raise SlotError("the receiver has ended: restart the query", code="RECEIVER_ENDED")

    # In the thread

    def _publish(self, **changes: Any) -> None:
        with self._changed:
            self._progress = replace(self._progress, **changes)
            self._changed.notify_all()

    @property
    def _is_too_large(self) -> bool:
        """Whether the current transaction is too large for memory; a spool takes any."""
        return 0 < self._most_unfinished < self.replication.unfinished_bytes

    def _is_over(self) -> bool:
        return self._stopping or self._is_too_large

    def _may_gather(self, size: int) -> bool:
        # A commit is acknowledged, and a planned batch received, at the end of a round.
        return self._committed <= self._progress.acknowledged and self.position >= self._needed

    def _end_round(self) -> None:
        # Repeated when idle: a crashed server has lost the position, and prepared transactions delay it.
        self._advance(tells=True)

    def _advance(self, *, tells: bool = False) -> None:
        """Publish the received position, acknowledge the committed position, and wait while there is no room."""
        position = self.replication.position
        if position > self.position:
            self._publish(position=position)
        if tells or self._committed > self._progress.acknowledged:
            self._acknowledge()
        self._wait_for_room()

    def _decide(self, decision: Decision) -> None:
        if decision.error is not None:
            with self._changed:
                self._decisions.append(decision)
                # It counts as a transaction, so that a batch ends there and checks it.
                self._backlog.add(decision.end_lsn, 0, 0, 0)
        self._advance()

    def _take(self, transactions: WholeTransactions) -> None:
        committed = self._committing.committed(transactions)
        count = len(committed.positions)
        rows, committed_at = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for rows_of_commits in self.replication.traffic.time_decoding(committed.rows):
            numbers = committed.numbers(rows_of_commits)
            rows += np.bincount(numbers, minlength=count)
            committed_at[numbers] = commit_times(rows_of_commits.batch)
            with self._changed:
                self._rows.write(rows_of_commits.batch, rows_of_commits.positions)
            self.replication.report_in_time()
        with self._changed:
            for number in np.flatnonzero(rows).tolist():
                self._backlog.add(
                    int(committed.ends[number]),
                    int(rows[number]),
                    int(committed.sizes[number]),
                    int(committed_at[number]),
                )
            # Some rows may have been sent again that Spark has committed.
            self._rows.remove_before(self._committed)
        self._advance()

    def _has_room(self) -> bool:
        # A batch that an earlier process planned is received whole all the same.
        waits = self._rows.size > self._room and self.position >= self._needed
        if waits != self._progress.waits_for_room:
            self._publish(waits_for_room=waits)
            if waits:
                log.info(
                    "slot %s: the driver has reached its limit of unread rows: the receiver waits for Spark",
                    self._options.the_slot,
                )
        return not waits

    def _acknowledge(self) -> None:
        committed = self._committed
        self.replication.acknowledge(committed)
        if committed > self._progress.acknowledged:
            self._publish(acknowledged=committed)
