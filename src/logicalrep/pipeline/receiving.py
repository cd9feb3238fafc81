"""The thread that receives a slot's committed changes, as rows of the change feed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

import pyarrow as pa

from logicalrep.arrow.committing import Committing
from logicalrep.arrow.row_form import feed_form
from logicalrep.pipeline.load.row_buffer import RowBuffer
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.replication import Replication, Traffic
from logicalrep.postgres.retries import Waiting
from logicalrep.postgres.timelines import Timeline
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.transaction import Decision
from logicalrep_runtime.scalars import Lsn

_NONE = Lsn(0)


@dataclass(frozen=True, slots=True)
class Changes:
    """Whole transactions, one after another."""

    batches: Sequence[pa.RecordBatch]
    """Rows of the change feed."""
    end: Lsn
    """Every commit before this LSN is among them or among those taken before."""

    @property
    def commit_timestamp(self) -> datetime | None:
        """The time of the last commit, in UTC; None if there is none."""
        return last_commit(self.batches)


def last_commit(batches: Sequence[pa.RecordBatch]) -> datetime | None:
    """Return the time of the last commit in rows of the change feed, in UTC; None if there is none."""
    times = (time for batch in reversed(batches) for time in reversed(batch.column("commit_timestamp")))
    return next((time.as_py() for time in times if time.is_valid), None)


class ChangeReceiver:
    """A receiver that runs ahead of the batches, until it has as much as it may hold.

    A single transaction may be larger than that: the excess is held in a temporary file.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        slot: str,
        options: PluginOptions,
        *,
        most_bytes: int = 64 << 20,
        acknowledged: Lsn = _NONE,
        waiting: Waiting | float = 60,
        traffic: Traffic | None = None,
    ) -> None:
        """Take the slot; entering the context starts the thread.

        Args:
            settings: the server.
            slot: the slot's name.
            options: the options of the slot's session.
            most_bytes: the bytes to hold.
            acknowledged: every commit before this LSN is stored safely, and is not sent again.
            waiting: how a server is waited for that is away, or just for how many seconds.
            traffic: the counts of an earlier receiver, which are continued.
        """
        self._assembler = Assembler(memory_limit=most_bytes)
        form = feed_form(memory_limit=most_bytes, marks_unreadable=True, each_relation=True)
        self._committing = Committing(form, self._assembler)
        self._replication = Replication(
            settings,
            slot,
            options,
            self._committing.intake,
            waiting=waiting,
            traffic=traffic,
            acknowledged=acknowledged,
        )
        self._most_bytes = most_bytes
        self._changed = threading.Condition()
        # Received and not yet taken: rows of whole transactions, then those of one that is being received.
        self._whole = RowBuffer()
        self._open = RowBuffer()
        self._position = Lsn(0)
        self._acknowledged = acknowledged
        self._begins_after: Lsn | None = None
        self._stopping = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="logicalrep-receiver", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopping = True
        with self._changed:
            self._changed.notify_all()
        self._thread.join(30)

    @property
    def traffic(self) -> Traffic:
        """The counts since the start."""
        return self._replication.traffic

    @property
    def timeline(self) -> Timeline | None:
        """The timeline of all received positions; None before the first connection."""
        return self._replication.timeline

    @property
    def received(self) -> Lsn:
        """The last position that the server reported."""
        return self._replication.received

    def wait_until_started(self) -> None:
        """Wait until the slot is read. Raises the error that keeps it from being read."""
        with self._changed:
            while self._replication.started_at is None:
                self._check()
                self._changed.wait(0.05)

    def wait(self, seconds: float) -> bool:
        """Wait until there are changes to take, for `seconds` at most. Raises the error that ended the thread."""
        with self._changed:
            self._changed.wait_for(lambda: self._whole.batches or self._error is not None, seconds)
            if not self._whole.batches:
                self._check()
            return bool(self._whole.batches)

    @property
    def has_changes(self) -> bool:
        """Whether there are changes to take."""
        return bool(self._whole.batches)

    @property
    def is_full(self) -> bool:
        """Whether nothing more is received until what there is has been taken."""
        return self._whole.size + self._open.size >= self._most_bytes

    def take(self) -> Changes:
        """Return what has been received, and hold it no more."""
        with self._changed:
            self._check()
            taken, self._whole = self._whole, RowBuffer()
            self._changed.notify_all()
            return Changes(taken.batches, self._position)

    def acknowledge(self, lsn: Lsn) -> None:
        """Let the server forget every commit before an LSN: all that was taken up to it is stored safely."""
        self._acknowledged = max(self._acknowledged, lsn)

    def begin_again(self, after: Lsn) -> None:
        """Have a new session of the server begin once every commit before an LSN is acknowledged."""
        self._begins_after = after

    @property
    def is_to_begin_again(self) -> bool:
        """Whether the session is one from before `begin_again`, until what there is has been acknowledged."""
        return self._begins_after is not None

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    # In the thread

    def _run(self) -> None:
        try:
            for events in self._replication.rounds(lambda: self._stopping):
                for event in events:
                    if isinstance(event, Decision):
                        if event.error is not None:
                            raise event.error
                        continue
                    for batch in self.traffic.time_decoding(self._committing.committed(event).batches):
                        self._hold(batch)
                    self._finish()
                self._finish()
                self._replication.acknowledge(self._acknowledged)
                if self._begins_after is not None and self._replication.acknowledged >= self._begins_after:
                    self._replication.begin_again()
                    self._begins_after = None
                self._wait_for_room()
            self._replication.acknowledge(self._acknowledged)
        except BaseException as error:
            self._error = error
        finally:
            self._replication.close()
            self._assembler.close()
            with self._changed:
                self._changed.notify_all()

    def _hold(self, batch: pa.RecordBatch) -> None:
        with self._changed:
            self._open.add(batch, in_memory=not self.is_full)
        self._replication.report_in_time()

    def _finish(self) -> None:
        with self._changed:
            self._whole.append(self._open)
            self._open = RowBuffer()
            position = self._replication.position
            if position > self._position or self._whole.batches:
                self._position = position
                self._changed.notify_all()

    def _wait_for_room(self) -> None:
        while not self._stopping and self.is_full:
            with self._changed:
                self._changed.wait(0.5)
            self._replication.acknowledge(self._acknowledged)
            self._replication.report_in_time()
