"""The thread that receives a slot's committed transactions in advance. Needs psycopg 3 and pyarrow."""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from logicalrep.arrow.batch_intake import BatchIntake, WholeTransactions
from logicalrep.postgres.sessions.replication import Replication, Traffic
from logicalrep.postgres.timelines import Timeline
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.frames import GATHERING_SECONDS, ROUND_SECONDS
from logicalrep.transactions.transaction import Decision
from logicalrep_runtime.scalars import Lsn

_LONGEST_PAUSE = 0.25
"""The most seconds between two looks whether a condition holds that is waited for."""


class SlotReceiver(ABC):
    """A thread that receives committed transactions, and reconnects when the connection breaks.

    A subclass stores transactions in methods that the thread calls: `_take`, `_decide` and `_end_round`. The condition
    `_changed` guards the data that the thread shares with its users, and is notified of each change.

    Decoding a round costs milliseconds, even with few messages. So messages wait for further messages, in one round,
    until changes are wanted.
    """

    def __init__(
        self,
        intake: BatchIntake,
        assembler: Assembler,
        connect: Callable[..., Replication],
        *,
        round_seconds: float = ROUND_SECONDS,
        gathering_seconds: float = GATHERING_SECONDS,
    ) -> None:
        """The subclass starts `_thread`, which closes the assembler at its end.

        Args:
            intake: gets the messages of each round.
            assembler: the intake's.
            connect: makes the replication from the intake and its `gathers_until`.
            round_seconds: the least seconds between two rounds of few messages.
            gathering_seconds: the most seconds that messages wait while changes are not wanted.
        """
        self._assembler = assembler
        self._round_seconds, self._gathering_seconds = round_seconds, gathering_seconds
        # The time from which changes are wanted, and the end of the last round with changes, both of time.monotonic.
        self._wanted_at = self._round_at = 0.0
        self.replication = connect(intake, gathers_until=self._gathers_until)
        self._changed = threading.Condition()
        self._stopping = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="logicalrep-receiver", daemon=True)

    # Called by users' threads

    @property
    def traffic(self) -> Traffic:
        return self.replication.traffic

    @property
    def timeline(self) -> Timeline | None:
        """The timeline of all received positions; None before the first connection. Read positions before it."""
        return self.replication.timeline

    @property
    def received(self) -> Lsn:
        """The last position that the server reported; it may be after the last received transaction."""
        return self.replication.received

    def want(self, at: float) -> None:
        """Say from which time of `time.monotonic` on changes are wanted; until then, messages are gathered."""
        self._wanted_at = at

    def wait_until_started(self) -> Lsn:
        """Wait until the first session starts; return the slot's position. Raises the error that ended the thread."""
        with self._changed:
            # The start of a session notifies nobody.
            while not self._await(lambda: self.replication.started_at is not None, 0.02):
                pass
        assert self.replication.started_at is not None
        return self.replication.started_at

    def stop(self) -> None:
        """Stop the thread, which releases the slot; wait up to 30 seconds."""
        self._stopping = True
        with self._changed:
            self._changed.notify_all()
        self._thread.join(30)

    def _await(self, is_reached: Callable[[], bool], seconds: float = math.inf) -> bool:
        """With the lock. Raises the error that ended the thread, unless the condition holds."""
        deadline = time.monotonic() + seconds
        while not is_reached():
            self._check()
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0:
                return False
            self._changed.wait(min(seconds_left, _LONGEST_PAUSE))
        return True

    def _check(self) -> None:
        if self.error is not None:
            raise self.error

    # Called by the thread

    @abstractmethod
    def _take(self, transactions: WholeTransactions) -> None:
        """Store committed transactions."""

    @abstractmethod
    def _decide(self, decision: Decision) -> None:
        """Store the end of a prepared transaction."""

    @abstractmethod
    def _end_round(self) -> None:
        """Record that everything before the replication's position is received."""

    @abstractmethod
    def _acknowledge(self) -> None:
        """Acknowledge to the server all transactions that are stored safely."""

    @abstractmethod
    def _has_room(self) -> bool:
        """Return whether more transactions can be stored; called with the lock."""

    @abstractmethod
    def _may_gather(self, size: int) -> bool:
        """Return whether received messages of so many bytes may wait for further ones."""

    def _gathers_until(self, size: int, began: float) -> float:
        if self._stopping or not self._may_gather(size):
            return 0.0
        wanted_at = max(self._wanted_at, self._round_at + self._round_seconds)
        return min(wanted_at, began + self._gathering_seconds)

    def _is_over(self) -> bool:
        return self._stopping

    def _run(self) -> None:
        try:
            self._receive()
            self._acknowledge()
        except BaseException as error:
            self.error = error
        finally:
            self.replication.close()
            with self._changed:
                self._assembler.close()
                self._changed.notify_all()

    def _receive(self) -> None:
        for events in self.replication.rounds(self._is_over):
            for event in events:
                if isinstance(event, Decision):
                    self._decide(event)
                else:
                    assert isinstance(event, WholeTransactions)
                    self._take(event)
                    self._round_at = time.monotonic()
            self._end_round()

    def _wait_for_room(self) -> None:
        while not self._stopping:
            with self._changed:
                if self._has_room():
                    return
                self._changed.wait(0.5)
            self._acknowledge()
            self.replication.report_in_time()
