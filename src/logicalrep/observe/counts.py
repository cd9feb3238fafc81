"""The observer that counts what happens, for metrics, the page and the checks of health; its memory is bounded."""

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
    ErrorCounted,
    RowsCopied,
    RunEvent,
    RunPrepared,
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
"""The samples that are held: those of six hours."""
_MESSAGES = 30
_WAIT_VALID = 150.0
"""The seconds after which what the work waited for is over, if it was not said again."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The figures of one moment."""

    time: float
    """The seconds since 1970."""
    lag_bytes: int
    changes: int
    """The number of changes that were applied until then."""


@dataclass(frozen=True, slots=True)
class Message:
    """A warning, or what the work waits for."""

    time: float
    """The seconds since 1970 at which it was said last."""
    text: str
    is_waiting: bool
    """Whether the work waits for it, which is said again once a minute at least."""


class Stopwatch:
    """A counter of the seconds of some work; several threads may measure at the same time."""

    def __init__(self) -> None:
        """Begin with no time."""
        self._lock = threading.Lock()
        self.seconds = 0.0
        """The seconds of all that was measured, which may overlap."""

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Add the time that the context takes."""
        began = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                self.seconds += time.monotonic() - began


class Observed(Observer):
    """Counts since the start, and what is so now. Any thread may read the attributes and call the methods."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._lock = threading.Lock()
        self.changes = self.batches = 0
        self.applying_seconds = 0.0
        self.committed: datetime | None = None
        """The time of the last applied commit."""
        self.checkpoint_at: float | None = None
        """The time at which the last checkpoint was saved at the destination."""
        self.tables: Mapping[str, TableFigures] = {}
        self.rows_copied: dict[str, int] = {}
        self.errors: dict[ErrorKind, int] = dict.fromkeys(ERROR_KINDS, 0)
        """The errors by their kinds, without the receiver's broken connections."""
        self.traffic = Traffic()
        """The counts of all receivers, one after another."""
        self.engine_time = Stopwatch()
        """The time of the engine's work."""
        self.samples: deque[Sample] = deque(maxlen=_SAMPLES)
        self._messages: deque[Message] = deque(maxlen=_MESSAGES)
        self._slot_samples = SlotSamples()
        # Nothing is served before the slot is known.
        self._slot_name: str | None = None
        # Every commit before it is at the destination; None before the first checkpoint.
        self._lsn: Lsn | None = None

    def on_event(self, event: RunEvent) -> None:
        """Count an event, and hold a warning until it is solved, or what the work waits for while it is repeated."""
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
                case WaitReported(text) | WarningIssued(text) | WarningSolved(text):
                    # A repeated message is held once, with its last time.
                    messages = [message for message in self._messages if message.text != text]
                    if not isinstance(event, WarningSolved):
                        messages.append(Message(time.time(), text, isinstance(event, WaitReported)))
                    self._messages = deque(messages, maxlen=_MESSAGES)

    def sample(self, slot: Slot) -> None:
        """Take the slot as the server has it now."""
        with self._lock:
            self._slot_samples.record_slot(slot)
            lag = self._slot_samples.lag_bytes(self._lsn)
            if lag is not None:
                self.samples.append(Sample(time.time(), lag, self.changes))

    def sampling(self, query_slot: Callable[[], Slot]) -> AbstractContextManager[None]:
        """Return the context in which the slot is asked for, and taken, every few seconds."""
        # The loop finds the same error, and decides; here it is shown.
        return sampling(
            lambda: self.sample(query_slot()),
            lambda error: self.on_event(WarningIssued(f"the slot cannot be queried: {error}")),
        )

    @property
    def slot(self) -> Slot | None:
        """The slot at the last sample."""
        return self._slot_samples.last

    @property
    def lag_bytes(self) -> int | None:
        """The bytes of WAL that are not applied yet; None before the first sample, or the first checkpoint."""
        with self._lock:
            return self._slot_samples.lag_bytes(self._lsn)

    @property
    def lag_seconds(self) -> float | None:
        """The seconds for which something has waited to be applied at most; None if that is unknown."""
        with self._lock:
            return self._slot_samples.lag_seconds(self._lsn, self.committed)

    def figures(self) -> list[Figures]:
        """Return the figures for metrics; none before the slot is known."""
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
        """Return the samples as they are now, the oldest first."""
        with self._lock:
            return list(self.samples)

    def all_messages(self) -> list[Message]:
        """Return the last warnings, and what the work waits for, the newest first."""
        time_now = time.time()
        with self._lock:
            return [
                message
                for message in reversed(self._messages)
                if not message.is_waiting or time_now - message.time < _WAIT_VALID
            ]
