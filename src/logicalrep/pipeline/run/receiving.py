"""The thread that receives a slot's committed changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Self

from logicalrep.arrow.batch_intake import BatchIntake, WholeTransactions
from logicalrep.arrow.changes.change_decoder import ChangeDecoder
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.pipeline.buffer.row_buffer import RowBuffer
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.state.state import State
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.retries import Wait
from logicalrep.postgres.sessions.commit_log import History
from logicalrep.postgres.sessions.replication import Replication, Traffic
from logicalrep.postgres.sessions.slot_receiver import SlotReceiver
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.transaction import Decision
from logicalrep_runtime.scalars import Lsn

_NOTHING = State()


@dataclass(frozen=True, slots=True)
class Changes:
    parts: Sequence[TableChanges]
    """The changes in order, each part of one table; a table may have several parts."""
    end: Lsn
    """The end: every commit before this LSN was taken with this batch or an earlier one."""

    @property
    def commit_timestamp(self) -> datetime | None:
        """The time of the last commit with a change, in UTC; None if there is none."""
        times = [part.commit_timestamp for part in self.parts]
        return max((time for time in times if time is not None), default=None)


class ChangeReceiver(SlotReceiver):
    """A receiver that runs ahead of the batches up to its limit; a single transaction may exceed it."""

    def __init__(
        self,
        settings: ConnectionSettings,
        slot: str,
        options: PluginOptions,
        *,
        state: State = _NOTHING,
        waiting: Wait | float = 60,
        traffic: Traffic | None = None,
        limits: Limits,
    ) -> None:
        assembler = Assembler(memory_limit=limits.received_bytes)
        super().__init__(
            BatchIntake(assembler, limits.received_bytes),
            assembler,
            partial(
                Replication,
                settings,
                slot,
                options,
                waiting=waiting,
                traffic=traffic,
                acknowledged=state.lsn,
                history=state.history,
                is_new_slot=not state.lsn,
            ),
            round_seconds=limits.round_seconds,
            gathering_seconds=limits.gathering_seconds,
        )
        self._limits = limits
        self._decoder = ChangeDecoder()
        # Received and not yet taken: whole transactions, then the open transaction.
        self._whole = RowBuffer()
        self._open = RowBuffer()
        self._position = Lsn(0)
        self._acknowledged = state.lsn
        self._begins_after: Lsn | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def wait(self, seconds: float) -> bool:
        """Wait for changes; return whether there are some. Raises the error that ended the thread."""
        with self._changed:
            return self._await(lambda: self._whole.has_changes, seconds)

    @property
    def has_changes(self) -> bool:
        return self._whole.has_changes

    @property
    def is_full(self) -> bool:
        """Whether the receiver is at its limit, and waits until `take`."""
        return self._size >= self._limits.held_bytes

    @property
    def _size(self) -> int:
        return self._whole.size + self._open.size

    def is_behind(self, lsn: Lsn) -> bool:
        return self._position < lsn

    def take(self) -> Changes:
        """Return and release the received whole transactions; the next ones are gathered until `want`.

        Raises the error that ended the thread.
        """
        self.want(math.inf)
        with self._changed:
            self._check()
            taken, self._whole = self._whole, RowBuffer()
            self._changed.notify_all()
            return Changes(taken.parts, self._position)

    def acknowledge(self, lsn: Lsn) -> None:
        """Acknowledge every commit before an LSN to the server: all of them are stored durably."""
        self._acknowledged = max(self._acknowledged, lsn)

    @property
    def acknowledged(self) -> Lsn:
        """The acknowledged LSN: every commit before it is stored durably."""
        return self._acknowledged

    @property
    def server_started(self) -> str:
        return self.replication.server_started

    def history_before(self, lsn: Lsn) -> History | None:
        """Return the evidence of an LSN that is not before the acknowledged one; None without evidence."""
        return self.replication.history_before(lsn)

    def restart_session(self, after: Lsn) -> None:
        self._begins_after = after

    @property
    def is_renewal_pending(self) -> bool:
        return self._begins_after is not None

    # In the thread

    def _may_gather(self, size: int) -> bool:
        # `restart_session` waits for the end of a round.
        return not self.is_renewal_pending and self._size + size < self._limits.received_bytes

    def _take(self, transactions: WholeTransactions) -> None:
        for changes in self.traffic.time_decoding(self._decoder.changes(transactions)):
            with self._changed:
                self._open.add(changes, in_memory=self._size < self._limits.received_bytes)
            self.replication.report_in_time()
        self._finish()

    def _decide(self, decision: Decision) -> None:
        if decision.error is not None:
            raise decision.error

    def _end_round(self) -> None:
        self._finish()
        self._acknowledge()
        if self._begins_after is not None and self.replication.acknowledged >= self._begins_after:
            self.replication.restart_session()
            self._begins_after = None
        self._wait_for_room()

    def _acknowledge(self) -> None:
        self.replication.acknowledge(self._acknowledged)

    def _has_room(self) -> bool:
        return not self.is_full

    def _finish(self) -> None:
        with self._changed:
            self._whole.append(self._open)
            self._open = RowBuffer()
            position = self.replication.position
            if position > self._position or self._whole.has_changes:
                self._position = position
                self._changed.notify_all()
