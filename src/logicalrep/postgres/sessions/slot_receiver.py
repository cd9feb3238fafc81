"""The thread that receives a slot's committed transactions, ahead of their use. Needs psycopg 3 and numba."""

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
from logicalrep.transactions.intake import Intake
from logicalrep.transactions.transaction import Decision
from logicalrep_runtime.columnar.compiling import acting_meanwhile
from logicalrep_runtime.scalars import Lsn


class SlotReceiver(ABC):
    """A thread that receives committed transactions, and connects again whenever the connection breaks.

    A subclass stores what is received, in the methods that the thread calls: `_take`, `_decide` and `_end_round`. The
    condition `_changed` guards what the thread and its users share; it is notified of each change.
    """

    def __init__(
        self, intake: BatchIntake, assembler: Assembler, connect: Callable[[Intake[WholeTransactions]], Replication]
    ) -> None:
        """Take what a subclass prepares; it starts the thread, `_thread`, itself.

        Args:
            intake: takes the received messages.
            assembler: makes transactions of messages; it is closed with the thread.
            connect: returns the replication that feeds an intake.
        """
        self._assembler = assembler
        self.replication = connect(intake)
        self._changed = threading.Condition()
        self._stopping = False
        self.error: BaseException | None = None
        """The error that ended the thread."""
        self._thread = threading.Thread(target=self._run, name="logicalrep-receiver", daemon=True)

    # For its users' threads

    @property
    def traffic(self) -> Traffic:
        """The counts since the start."""
        return self.replication.traffic

    @property
    def timeline(self) -> Timeline | None:
        """The timeline of all received positions, None before the first connection: read the positions first."""
        return self.replication.timeline

    @property
    def received(self) -> Lsn:
        """The last position that the server reported, which may be after the last received transaction."""
        return self.replication.received

    def wait_until_started(self) -> Lsn:
        """Wait until the slot is read; return its position then. Raises the error that keeps it from being read."""
        with self._changed:
            self._await(lambda: self.replication.started_at is not None)
        assert self.replication.started_at is not None
        return self.replication.started_at

    def stop(self) -> None:
        """End the thread, which leaves the slot."""
        self._stopping = True
        with self._changed:
            self._changed.notify_all()
        self._thread.join(30)

    def _await(self, is_reached: Callable[[], bool], seconds: float = math.inf) -> bool:
        """Wait, with the lock, until something is reached, for `seconds` at most; return whether it is.

        Raises the error that ended the thread, if it is not reached.
        """
        deadline = time.monotonic() + seconds
        while not is_reached():
            self._check()
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._changed.wait(min(left, 0.05))
        return True

    def _check(self) -> None:
        """Raise the error that ended the thread."""
        if self.error is not None:
            raise self.error

    # In the thread

    @abstractmethod
    def _take(self, transactions: WholeTransactions) -> None:
        """Store committed transactions."""

    @abstractmethod
    def _decide(self, decision: Decision) -> None:
        """Take the end of a prepared transaction."""

    @abstractmethod
    def _end_round(self) -> None:
        """Take that everything before the replication's position is received."""

    @abstractmethod
    def _acknowledge(self) -> None:
        """Acknowledge to the server what is stored safely by now."""

    @abstractmethod
    def _has_room(self) -> bool:
        """Return whether more can be stored; called with the lock."""

    def _is_over(self) -> bool:
        """Return whether no more is to be received."""
        return self._stopping

    def _run(self) -> None:
        try:
            # The server ends a session that says nothing for a minute, which compiling loops may take.
            with acting_meanwhile(self.replication.report_in_time):
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
            self._end_round()

    def _wait_for_room(self) -> None:
        """Wait while there is no room; the server holds the rest, and gets status updates."""
        while not self._stopping:
            with self._changed:
                if self._has_room():
                    return
                self._changed.wait(0.5)
            self._acknowledge()
            self.replication.report_in_time()
