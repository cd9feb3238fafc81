"""Receives a slot's committed transactions as they commit, and reconnects after failures."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import psycopg

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.retries import TRANSIENT, Retries, Wait
from logicalrep.postgres.server_faults import has_stale_sessions
from logicalrep.postgres.sessions.commit_log import CommitLog, History
from logicalrep.postgres.sessions.history_check import HistoryCheck
from logicalrep.postgres.sessions.walsender import Gathering, Received, Walsender, without_gathering
from logicalrep.postgres.silence import Backend, SilentServerError
from logicalrep.postgres.slots.positions import check_within_wal, divergence_error
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.postgres.timelines import Timeline, WalPosition
from logicalrep.transactions.intake import Intake
from logicalrep.transactions.transaction import CommitColumns, Event, Transaction, columns_of
from logicalrep_runtime.scalars import Lsn

if TYPE_CHECKING:
    from logicalrep.arrow.batch_intake import WholeTransactions

_Item = TypeVar("_Item")

_NONE = Lsn(0)
_PAUSE, _IDLE_PAUSE = 0.05, 0.2
"""The seconds without a message that end a round, and the same after many such rounds."""


@dataclass(slots=True)
class Traffic:
    """Counts since the start of a receiver."""

    bytes: int = 0
    restarts: int = 0
    receiving: float = 0.0
    decoding: float = 0.0

    def time_decoding(self, items: Iterable[_Item]) -> Iterator[_Item]:
        iterator = iter(items)
        while True:
            began = time.monotonic()
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                self.decoding += time.monotonic() - began
            yield item


class Replication:
    """A receiver that connects, reconnects and feeds an intake; it has yielded every event before `position`."""

    def __init__(
        self,
        settings: ConnectionSettings,
        slot: str,
        options: PluginOptions,
        intake: Intake[WholeTransactions],
        *,
        messages: int = 10_000,
        waiting: Wait | float = 60,
        traffic: Traffic | None = None,
        acknowledged: Lsn = _NONE,
        history: History | None = None,
        is_new_slot: bool = False,
        gathers_until: Gathering = without_gathering,
    ) -> None:
        """Nothing connects before `rounds`. Sessions start once the server has proven the history.

        Args:
            messages: the most messages that the intake gets at a time.
            traffic: the counts of an earlier receiver, to continue.
            acknowledged: the first session sends commits at or after it, or after the slot's position if that is later.
            history: the evidence of `acknowledged`.
            is_new_slot: whether the slot was created for this reader and never advanced.
            gathers_until: until when the messages of a round wait for further messages.
        """
        self._settings = settings
        self._slot = slot
        self._options = options
        self._intake = intake
        self._messages = messages
        self._gathers_until = gathers_until
        self._waiting = waiting
        self.session: Walsender | None = None
        # With other options the server sends other commits.
        is_comparable = history is not None and history.origin == options.origin
        self._commits = CommitLog(history.last if history is not None and is_comparable else None)
        self._check: HistoryCheck | None = None
        self._is_new_slot = is_new_slot
        self._slot_began = Lsn(0) if history is None else history.slot_began
        self._server_started = "" if history is None else history.server_started
        # The start time of the server that has proven its history, for the next session.
        self._proven_by = ""
        self._acknowledged = acknowledged
        self._received = Lsn(0)
        self.silence = settings.patience
        # The server process of the last session, which may still use the slot.
        self._previous_backend: Backend | None = None
        # The last reported position when the server became silent.
        self._silent_at = Lsn(0)
        self._is_requested_restart = False
        self._has_prepared = False
        # Earlier values of `position.delivered`, each with the LSN to acknowledge when everything before it is stored.
        self._allowed: deque[tuple[Lsn, Lsn]] = deque()
        self.unfinished_bytes = 0
        """The bytes of messages since the last event, which belong to an unfinished transaction."""
        self.started_at: Lsn | None = None
        self.timeline: Timeline | None = None
        """The timeline of the last session's server, on which `position` lies; None for a standby."""
        self.traffic = traffic or Traffic()

    @property
    def position(self) -> Lsn:
        """Every commit before this LSN has been yielded."""
        return max(self._intake.position.delivered, self.started_at or Lsn(0))

    @property
    def received(self) -> Lsn:
        session = self.session
        return self._received if session is None else max(session.received, self._received)

    @property
    def acknowledged(self) -> Lsn:
        """Every event before this LSN is acknowledged; later sessions do not send them."""
        return self._acknowledged

    def acknowledge(self, lsn: Lsn) -> None:
        """Acknowledge every event before an LSN; they must have been yielded and stored safely."""
        self._acknowledged = max(self._acknowledged, lsn)
        self._commits.forget_before(self._acknowledged)
        if self.session is not None:
            # `rounds` notices a broken connection and opens a new one.
            with suppress(psycopg.Error):
                self.session.acknowledge(self._safe)

    @property
    def server_started(self) -> str:
        """The start of the last session's server, in seconds since 1970; empty before the first session."""
        return self._server_started

    def history_before(self, lsn: Lsn) -> History | None:
        """Return the evidence of a position at or after the acknowledged position; None without any commit."""
        last = self._commits.last_before(lsn)
        return None if last is None else History(last, self._slot_began, self._server_started, self._options.origin)

    @property
    def _safe(self) -> Lsn:
        """The LSN to acknowledge: before every prepared transaction that was undecided at the acknowledged position.

        Later decisions are not stored safely yet. After a restart the LSN is 0 until the server has sent these
        transactions again.
        """
        if not self._has_prepared:
            return self._acknowledged
        while len(self._allowed) > 1 and self._allowed[1][0] <= self._acknowledged:
            self._allowed.popleft()
        delivered, allowed = self._allowed[0] if self._allowed else (Lsn(0), Lsn(0))
        return allowed if delivered <= self._acknowledged else Lsn(0)

    def _record_allowed(self) -> None:
        position = self._intake.position
        positions = position.delivered, position.acknowledged
        if self._has_prepared and (not self._allowed or self._allowed[-1] != positions):
            self._allowed.append(positions)

    def rounds(self, stop: Callable[[], bool]) -> Iterator[Iterator[Event | WholeTransactions]]:
        """Yield rounds of finished transactions until `stop` returns true; consume each round before the next round.

        A round is empty after a moment without messages. Raises ConnectError if the server was away for too long,
        LostPositionError if it has another history, and SlotError.
        """
        retries, pause = Retries(self._waiting), _PAUSE
        while not stop():
            try:
                if not self._prove_history():
                    retries.record_success()
                    yield iter(())
                    continue
                session = self._connect()
                began = time.monotonic()
                received = session.receive(pause, self._messages)
                pause = _PAUSE if received.size else min(1.1 * pause, _IDLE_PAUSE)
                if received.size:
                    self.traffic.receiving += time.monotonic() - began - received.gathering
                retries.record_success()
            except TRANSIENT as error:
                silent = self._current
                if isinstance(error, SilentServerError) and silent is not None:
                    self._choose_silence(silent)
                self.close()
                retries.wait_or_raise(error)
                yield iter(())
            else:
                yield self._receive_round(received)

    def _choose_silence(self, session: Walsender) -> None:
        has_come_further = self.received > self._silent_at or session.heard_for > self.silence
        self.silence = self._settings.patience if has_come_further else 2 * self.silence
        self._silent_at = self.received

    def _receive_round(self, received: Received) -> Iterator[Event | WholeTransactions]:
        self.unfinished_bytes += received.size
        self.traffic.bytes += received.size
        if received.envelopes:
            for event in self.traffic.time_decoding(self._intake.take_envelopes(received.envelopes)):
                self.unfinished_bytes = 0
                self._commits.add(_commits_of(event))
                yield event
        if received.keepalive is not None:
            self._intake.take_keepalive(received.keepalive)
        self._record_allowed()

    def report_in_time(self) -> None:
        """Send a status update if one is due; call it while no messages are received."""
        session = self._current
        if session is not None:
            try:
                session.report_in_time()
            except psycopg.Error:
                # `rounds` reconnects.
                self.close()

    def restart_session(self) -> None:
        """Let `rounds` start a new session from the acknowledged position, which does not count as a restart."""
        self.close()
        self._is_requested_restart = True

    def close(self) -> None:
        """Close the connection; `rounds` reconnects."""
        if self._check is not None:
            self._previous_backend = self._check.session.backend
            self._check.session.close()
            self._check = None
        if self.session is not None:
            self._received = self.received
            self._previous_backend = self.session.backend
            self.session.close()
        self.session = None

    @property
    def _current(self) -> Walsender | None:
        return self.session if self._check is None else self._check.session

    def _prove_history(self) -> bool:
        """Return whether the proof is complete: a slot at the position, or a HistoryCheck of the commits before it."""
        if self.session is not None:
            return True
        if self._check is None:
            position, last = max(self.position, self._acknowledged), self._commits.last
            with self._settings.connect() as connection:
                slot = query_slot(connection, self._slot)
                # Such a server's sessions may omit commits that a later session sends.
                is_stale = has_stale_sessions(connection) and slot.server_started == self._server_started
            self._proven_by = slot.server_started
            if slot.confirmed.lsn < self._slot_began:
                raise divergence_error(
                    f"replication slot {self._slot!r} is at {slot.confirmed.lsn}, but was made at {self._slot_began}: "
                    "the server was restored to an earlier state with another slot of that name"
                )
            if last is None or slot.confirmed.lsn >= position or slot.two_phase or self._options.two_phase:
                return True
            check_within_wal(self._settings, slot, WalPosition(position, self.timeline))
            self._check = HistoryCheck(
                self._settings,
                self._slot,
                self._options,
                last=last,
                position=position,
                judges_unknown=not is_stale,
                silence=self.silence,
                previous_backend=self._previous_backend,
            )
            self._proven_by = self._check.session.slot.server_started
        if isinstance(self._waiting, Wait) and self._waiting.is_over:
            raise psycopg.OperationalError("the server has not proven yet that it has the history that was read")
        if not self._check.step(_PAUSE):
            return False
        self.close()
        return True

    def _connect(self) -> Walsender:
        if self.session is None:
            position = self._acknowledged or None
            if self.started_at is not None:
                # The slot is past the acknowledged position only if another process has advanced it.
                position = max(self._safe, self.started_at)
            reached = WalPosition(self.position, self.timeline)
            self.session = Walsender(
                self._settings,
                self._slot,
                self._options,
                position=position,
                reached=reached,
                silence=self.silence,
                previous_backend=self._previous_backend,
                gathers_until=self._gathers_until,
            )
            slot = self.session.slot
            if slot.server_started != self._proven_by:
                raise psycopg.OperationalError("the server was restarted while its history was checked")
            self._server_started = slot.server_started
            self.timeline = slot.timeline
            self._has_prepared = self.session.slot.two_phase or self._options.two_phase
            self.unfinished_bytes = 0
            self._intake.connect(self._options.decoder(slot_two_phase=self.session.slot.two_phase))
            if self.started_at is None:
                self.started_at = self.session.started_at
                if self._is_new_slot:
                    self._slot_began = self.started_at
                # The intake skips commits before its position.
                self._commits.begin(max(self.position, self._acknowledged))
            else:
                self.traffic.restarts += not self._is_requested_restart
            self._is_requested_restart = False
        return self.session


def _commits_of(event: Event | WholeTransactions) -> CommitColumns:
    if isinstance(event, Transaction):
        return columns_of((event,))
    # The server does not send other events again as whole transactions.
    return getattr(event, "commits", CommitColumns())
