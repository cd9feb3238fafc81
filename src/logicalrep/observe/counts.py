"""The observer behind the metrics, the status page and the health checks; its memory is bounded."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from logicalrep.observe.events import (
    BatchApplied,
    CheckpointSaved,
    DestinationFailing,
    ErrorCounted,
    RowsCopied,
    RunEvent,
    RunPrepared,
    WaitEnded,
    WaitReported,
    WarningIssued,
    WarningSolved,
)
from logicalrep.observe.figures import ERROR_KINDS, ErrorKind, Figures, TableFigures
from logicalrep.observe.observer import Observer
from logicalrep.observe.slot_samples import SlotSamples, sampling
from logicalrep.postgres.sessions.replication import Traffic
from logicalrep.postgres.slots.slot import Slot
from logicalrep_runtime.scalars import Lsn

_SAMPLES = 4320
"""Six hours of samples."""
_MESSAGES = 30
_REFUSALS = ("CONNECTION_REFUSED", "PASSWORD_MISSING", "PASSWORD_COMMAND")
"""The codes of waits that seldom end without a person."""
_WAIT_VALID = 150.0
"""The seconds until a wait that was not reported again counts as over."""


@dataclass(frozen=True, slots=True)
class Sample:
    time: float
    """In seconds since 1970."""
    lag_bytes: int
    changes: int


@dataclass(frozen=True, slots=True)
class Message:
    time: float
    """The time of the last report, in seconds since 1970."""
    text: str
    is_waiting: bool
    """Whether it is a wait, which the run reports at least once a minute."""
    problem: str | None = None
    """The problem that a person has to solve; None if nobody has to do anything at once."""


class Stopwatch:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.seconds = 0.0

    @contextmanager
    def measure(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                self.seconds += time.monotonic() - began


class Observed(Observer):
    """Counts since the start, and the current state. Any thread may read the attributes and call the methods."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.changes = self.batches = 0
        self.applying_seconds = 0.0
        self.committed: datetime | None = None
        self.checkpoint_at: float | None = None
        """When the last checkpoint was saved, in seconds since 1970."""
        self.tables: Mapping[str, TableFigures] = {}
        self.rows_copied: dict[str, int] = {}
        self.errors: dict[ErrorKind, int] = dict.fromkeys(ERROR_KINDS, 0)
        self.traffic = Traffic()
        self.engine_time = Stopwatch()
        self.samples: deque[Sample] = deque(maxlen=_SAMPLES)
        self._messages: deque[Message] = deque(maxlen=_MESSAGES)
        self._slot_samples = SlotSamples()
        # There are no figures before the slot is known.
        self._slot_name: str | None = None
        # The destination has every commit before it; None before the first checkpoint.
        self._lsn: Lsn | None = None

    def on_event(self, event: RunEvent) -> None:
        with self._lock:
            match event:
                case RunPrepared(slot):
                    self._slot_name = slot
                case RowsCopied(table, rows):
                    self.rows_copied[str(table)] = self.rows_copied.get(str(table), 0) + rows
                case BatchApplied():
                    self.changes += event.changes
                    self.batches += 1
                    self.applying_seconds += event.seconds
                    self.committed = event.committed or self.committed
                case CheckpointSaved(lsn, tables):
                    self.checkpoint_at, self._lsn, self.tables = time.time(), Lsn(lsn) or None, tables
                    for name in self.rows_copied.keys() - tables.keys():
                        del self.rows_copied[name]
                case ErrorCounted(kind):
                    self.errors[kind] += 1
                case WaitEnded():
                    messages = [message for message in self._messages if not message.is_waiting]
                    self._messages = deque(messages, maxlen=_MESSAGES)
                case WaitReported(text) | DestinationFailing(text) | WarningIssued(text) | WarningSolved(text):
                    # A repeated message is stored once, with its last time.
                    messages = [message for message in self._messages if message.text != text]
                    if not isinstance(event, WarningSolved):
                        is_waiting = isinstance(event, WaitReported | DestinationFailing)
                        messages.append(Message(time.time(), text, is_waiting, _problem(event)))
                    self._messages = deque(messages, maxlen=_MESSAGES)

    def sample(self, slot: Slot) -> None:
        with self._lock:
            self._slot_samples.record_slot(slot)
            lag = self._slot_samples.lag_bytes(self._lsn)
            if lag is not None:
                self.samples.append(Sample(time.time(), lag, self.changes))

    def sampling(self, query_slot: Callable[[], Slot]) -> AbstractContextManager[None]:
        # The main loop meets the same error and handles it; this is for the page.
        return sampling(
            lambda: self.sample(query_slot()),
            lambda error: self.on_event(WarningIssued(f"replicate cannot query the slot: {error}")),
        )

    @property
    def slot(self) -> Slot | None:
        return self._slot_samples.last

    @property
    def lag_bytes(self) -> int | None:
        """The bytes of WAL not applied yet; None before the first sample or the first checkpoint."""
        with self._lock:
            return self._slot_samples.lag_bytes(self._lsn)

    @property
    def lag_seconds(self) -> float | None:
        """An upper bound of the lag in seconds; None if unknown."""
        with self._lock:
            return self._slot_samples.lag_seconds(self._lsn, self.committed)

    def figures(self) -> list[Figures]:
        """Return the figures for metrics; an empty list before the slot is known."""
        slot, traffic = self.slot, self.traffic
        if self._slot_name is None:
            return []
        lag_bytes, lag_seconds = self.lag_bytes, self.lag_seconds
        with self._lock:
            copied, errors = dict(self.rows_copied), dict(self.errors)
        loads = [table.progress.snapshot_since for table in self.tables.values() if table.progress is not None]
        errors["server"] += traffic.restarts
        seconds = {
            "applying": self.applying_seconds,
            "server": traffic.receiving,
            "decoding": traffic.decoding,
            "spark": self.engine_time.seconds,
        }
        return [
            Figures(
                slot=self._slot_name,
                lag_bytes=lag_bytes,
                lag_seconds=lag_seconds,
                retained_bytes=None if slot is None else slot.retained_bytes,
                retained_limit=None if slot is None else slot.retained_limit,
                changes=self.changes,
                bytes=traffic.bytes,
                batches=self.batches,
                restarts=traffic.restarts,
                errors=errors,
                mode="walsender",
                seconds=seconds,
                committed=self.committed,
                checkpointed=self.checkpoint_at,
                load_snapshot=min(map(datetime.fromisoformat, loads), default=None),
                tables={name: replace(table, rows_copied=copied.get(name, 0)) for name, table in self.tables.items()},
            )
        ]

    def all_samples(self) -> list[Sample]:
        with self._lock:
            return list(self.samples)

    def all_messages(self) -> list[Message]:
        """Return unsolved warnings and current waits, newest first."""
        time_now = time.time()
        with self._lock:
            return [
                message
                for message in reversed(self._messages)
                if not message.is_waiting or time_now - message.time < _WAIT_VALID
            ]


def _problem(event: WaitReported | DestinationFailing | WarningIssued) -> str | None:
    if isinstance(event, DestinationFailing):
        return "the destination cannot be written"
    is_refused = isinstance(event, WaitReported) and any(f"[{code}]" in event.text for code in _REFUSALS)
    return "the server refuses the connection" if is_refused else None
