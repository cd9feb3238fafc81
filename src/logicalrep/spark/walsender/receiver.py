"""The thread in the driver that receives from the walsender and writes committed changes into the spool."""

from __future__ import annotations

import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable

import numpy as np
from pyspark.sql.types import StructType

from logicalrep.arrow.committing import Committed, Committing
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.replication import Replication
from logicalrep.postgres.slots import SlotError
from logicalrep.postgres.timelines import Timeline
from logicalrep.spark.metrics import commit_times
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.peek.admission import Limits
from logicalrep.spark.row_form import row_form
from logicalrep.spark.server_connection import log
from logicalrep.spark.walsender.spool import Segment, Spool
from logicalrep.spark.walsender.spool_folders import default_folder
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import Decision
from logicalrep_runtime.scalars import Lsn


class Receiver:
    """A receiver that runs ahead of the batches until the spool is full."""

    def __init__(self, options: SourceOptions, plugin: PluginOptions, schema: StructType, start: Lsn | None) -> None:
        """Start the thread. Spark has all that committed before `start`, which is left out; None: unknown."""
        self.start = start
        self._options = options
        form = row_form(options, schema)
        folder = options.spool or default_folder()
        self._spool = Spool(folder, options.the_slot, form.schema, options.segment_bytes, options.table)
        after = None if start is None else ResumeToken(delivered=start)
        self._assembler = Assembler(after=after, memory_limit=options.memory_limit, directory=self._spool.folder)
        self._committing = Committing(form, self._assembler)
        self._replication = Replication(
            options.connection,
            options.the_slot,
            plugin,
            self._committing.intake,
            messages=options.rows_per_record_batch,
            retry_timeout=options.retry_timeout,
        )
        self._changed = threading.Condition()
        self._stopping = False
        self._error: BaseException | None = None
        self._position = Lsn(0)
        self._committed = self._acknowledged = Lsn(0)
        # The end of the batch being read, which the spool must hold, and whether the spool takes nothing after it.
        self._needed = Lsn(0)
        self._has_no_room = False
        # For each transaction with rows: its end, the total rows and bytes up to it, and its commit time.
        self._ends, self._rows, self._bytes = array("Q"), array("Q"), array("Q")
        self._moments = array("q")
        self._total_rows = self._total_bytes = 0
        # The commits of prepared transactions whose changes were not sent.
        self._alone: list[Decision] = []
        self._thread = threading.Thread(target=self._run, name="logicalrep-receiver", daemon=True)
        self._thread.start()

    # For the reader's thread

    @property
    def started_at(self) -> Lsn:
        """The slot's position at the start of the session; waits for that start."""
        with self._changed:
            while self._replication.started_at is None:
                self._check()
                self._changed.wait(0.05)
            return self._replication.started_at

    @property
    def timeline(self) -> Timeline | None:
        """The timeline of all received positions: read the positions first, and then this."""
        return self._replication.timeline

    @property
    def received(self) -> Lsn:
        """The last position that the server reported, which may be after the last delivered transaction."""
        return self._replication.received

    @property
    def position(self) -> Lsn:
        """The LSN before which every commit has been received."""
        with self._changed:
            return self._position

    def end_after(self, start: Lsn, limits: Limits) -> tuple[Lsn, bool]:
        """Return the end of the batch from `start`, at most the received position, and whether it has rows."""
        with self._changed:
            self._check()
            first = bisect_left(self._ends, start + 1)
            if first == len(self._ends):
                return max(self._position, start), False
            rows_before, bytes_before = self._before(first)
            last = len(self._ends) - 1
            if limits.changes is not None:
                last = min(last, bisect_left(self._rows, rows_before + limits.changes + 1) - 1)
            if limits.bytes is not None:
                last = min(last, bisect_left(self._bytes, bytes_before + limits.bytes + 1) - 1)
            if limits.wal is not None:
                last = min(last, bisect_left(self._ends, start + limits.wal + 1) - 1)
            last = max(last, first)
            if last == len(self._ends) - 1:
                # The rest has no rows and needs no batch of its own.
                return max(self._position, Lsn(self._ends[last])), True
            return Lsn(self._ends[last]), True

    def segments(self, start: Lsn, end: Lsn, is_empty: Callable[[Decision], bool]) -> list[Segment]:
        """Return the segments of a batch; wait until all of it is received.

        `is_empty` decides whether a committed prepared transaction without received changes has none. Raises
        TransactionError if it has: they were sent before the reading began.
        """
        with self._changed:
            self._needed = end
            self._changed.notify_all()
            while self._position < end:
                self._check()
                self._changed.wait(0.05)
            self._check()
            for decision in self._alone:
                if start < decision.end_lsn <= end and decision.error is not None and not is_empty(decision):
                    raise decision.error
            self._spool.seal()
            return self._spool.overlapping(start, end)

    def counts(self, start: Lsn, end: Lsn) -> tuple[int, int, float | None]:
        """Return the changes and bytes of a batch, and its last commit time in seconds since 1970."""
        with self._changed:
            first, last = bisect_left(self._ends, start + 1), bisect_left(self._ends, end + 1)
            if first == last:
                return 0, 0, None
            rows_before, bytes_before = self._before(first)
            moment = self._moments[last - 1]
            seconds = moment / 1e6 if moment else None
            return self._rows[last - 1] - rows_before, self._bytes[last - 1] - bytes_before, seconds

    def wait(self, after: Lsn, seconds: float, until: Lsn | None = None, enough: Limits | None = None) -> bool:
        """Wait for `seconds` at most until commits after a position are received, or everything up to `until`.

        `enough` is the number of changes or bytes to wait for; None: any. Returns true once received, or if the spool
        is full, so that nothing more can be received.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            while not (self._is_full or self._has(after, enough) or (until is not None and self._position >= until)):
                pause = deadline - time.monotonic()
                if pause <= 0:
                    return False
                self._check()
                self._changed.wait(pause)
            return True

    def commit(self, lsn: Lsn) -> None:
        """Note that Spark has committed everything before a position: remove its segments and acknowledge it."""
        with self._changed:
            if lsn <= self._committed:
                return
            self._committed = lsn
            self._alone = [decision for decision in self._alone if decision.end_lsn > lsn]
            self._spool.remove_before(lsn)
            gone = bisect_left(self._ends, lsn + 1)
            if gone:
                self._rows_dropped, self._bytes_dropped = self._rows[gone - 1], self._bytes[gone - 1]
                del self._ends[:gone], self._rows[:gone], self._bytes[:gone], self._moments[:gone]
            self._changed.notify_all()

    def wait_until_told(self, lsn: Lsn) -> None:
        """Wait until a position is acknowledged to the server, for a second at most."""
        deadline = time.monotonic() + 1
        with self._changed:
            while self._acknowledged < lsn and time.monotonic() < deadline:
                self._check()
                self._changed.wait(0.01)

    def stop(self) -> None:
        """End the thread, and remove the spool."""
        self._stopping = True
        with self._changed:
            self._changed.notify_all()
        self._thread.join(30)
        # Not at the end of the thread: after an error, batches planned before it can still be read.
        self._spool.close()

    _rows_dropped = _bytes_dropped = 0

    def _before(self, transaction: int) -> tuple[int, int]:
        """Return the rows and bytes of all transactions before an index."""
        if not transaction:
            return self._rows_dropped, self._bytes_dropped
        return self._rows[transaction - 1], self._bytes[transaction - 1]

    def _has(self, after: Lsn, enough: Limits | None) -> bool:
        first = bisect_left(self._ends, after + 1)
        if enough is None:
            return first < len(self._ends)
        rows, size = self._before(first)
        return (enough.changes is not None and self._total_rows - rows >= enough.changes) or (
            enough.bytes is not None and self._total_bytes - size >= enough.bytes
        )

    @property
    def _is_full(self) -> bool:
        return self._has_no_room and self._spool.size > self._options.spool_bytes

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
        if not self._thread.is_alive():
            raise SlotError("the receiver has ended: start the query again", code="RECEIVER_ENDED")

    # In the thread

    def _run(self) -> None:
        try:
            for events in self._replication.rounds(lambda: self._stopping):
                for event in events:
                    if isinstance(event, Decision):
                        self._note(event)
                    else:
                        self._write(self._committing.committed(event))
                    self._advance()
                # Repeated when idle: a crashed server has lost the position, and prepared transactions delay it.
                self._advance(tells=True)
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()
        finally:
            self._replication.close()
            with self._changed:
                self._assembler.close()
                self._changed.notify_all()

    def _advance(self, *, tells: bool = False) -> None:
        """Publish the received position, acknowledge the committed one, and wait while the spool is full."""
        with self._changed:
            position = self._replication.position
            if position > self._position:
                self._position = position
                self._changed.notify_all()
            committed = self._committed
        if tells or committed > self._acknowledged:
            self._tell(committed)
        self._wait_for_room()

    def _note(self, decision: Decision) -> None:
        if decision.error is not None:
            with self._changed:
                self._alone.append(decision)
                # It counts as a transaction, so that a batch ends there and checks it.
                self._add(decision.end_lsn, 0, 0, 0)

    def _add(self, end: int, rows: int, size: int, moment: int) -> None:
        self._total_rows += rows
        self._total_bytes += size
        self._ends.append(end)
        self._rows.append(self._total_rows)
        self._bytes.append(self._total_bytes)
        self._moments.append(moment)

    def _write(self, committed: Committed) -> None:
        count = len(committed.positions)
        rows, moments = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for made in committed.rows:
            numbers = committed.numbers(made)
            rows += np.bincount(numbers, minlength=count)
            moments[numbers] = commit_times(made.batch)
            with self._changed:
                self._spool.write(made.batch, made.positions)
            self._replication.report_in_time()
        with self._changed:
            for number in np.flatnonzero(rows).tolist():
                self._add(
                    int(committed.ends[number]), int(rows[number]), int(committed.sizes[number]), int(moments[number])
                )
            # Some rows may have been sent again that Spark has committed.
            self._spool.remove_before(self._committed)

    def _wait_for_room(self) -> None:
        """Wait while the spool is full; the server keeps the rest, and gets status updates.

        A batch that an earlier process planned is received whole all the same.
        """
        told = False
        while not self._stopping:
            with self._changed:
                is_full = self._spool.size > self._options.spool_bytes
                self._has_no_room = is_full and self._position >= self._needed
                if not self._has_no_room:
                    return
                if not told:
                    log.info("slot %s: the spool is full, waiting for Spark", self._options.the_slot)
                    told = True
                    self._changed.notify_all()
                self._changed.wait(0.5)
                committed = self._committed
            self._tell(committed)
            self._replication.report_in_time()

    def _tell(self, committed: Lsn) -> None:
        self._replication.acknowledge(committed)
        self._acknowledged = committed
