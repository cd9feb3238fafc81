"""The counts of a batch, also for the log, and the server's position for Spark's progress report."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.message_batch import MessageBatch
from logicalrep.observe.lag import lag_seconds
from logicalrep.observe.log import log_figures
from logicalrep.postgres.slots.slot import Slot
from logicalrep.transactions.logs import logger
from logicalrep_runtime.scalars import Lsn

_log = logger("logicalrep.batch")


@dataclass(slots=True)
class Counts:
    changes: int | None = 0
    """Number of rows; None if unknown."""
    bytes: int | None = 0
    """Bytes of messages; None if unknown."""
    committed: datetime | None = None
    receiving: float = 0.0
    """Time spent receiving messages, in seconds."""
    decoding: float = 0.0
    """Time spent decoding rows, in seconds."""

    def count_messages(self, batches: Iterable[MessageBatch]) -> Iterator[MessageBatch]:
        began = time.monotonic()
        for messages in batches:
            assert self.bytes is not None
            self.receiving += time.monotonic() - began
            self.bytes += messages.size
            yield messages
            began = time.monotonic()
        self.receiving += time.monotonic() - began

    def count_rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        iterator = iter(batches)
        while True:
            began, received = time.monotonic(), self.receiving
            batch = next(iterator, None)
            self.decoding += time.monotonic() - began - (self.receiving - received)
            if batch is None:
                return
            assert self.changes is not None
            self.changes += batch.num_rows
            last = commit_times(batch)[-1:]
            if last.any():
                self.committed = commit_time(int(last[0]))
            yield batch

    def report(
        self, slot: Slot, event: str, mode: str, start: Lsn | None, end: Lsn, seconds: float | None = None
    ) -> None:
        """Log the batch from `start` to `end`, and its lag behind the server; `seconds` is the batch's duration."""
        lag = max(slot.head - end, 0)
        timed = seconds is not None
        log_figures(
            _log,
            event,
            slot=slot.name,
            mode=mode,
            start=None if start is None else str(start),
            end=str(end),
            changes=self.changes,
            bytes=self.bytes,
            seconds=seconds,
            server_seconds=self.receiving if timed else None,
            decoding_seconds=self.decoding if timed else None,
            committed=self.committed,
            lag_bytes=lag,
            lag_seconds=lag_seconds(lag, slot.time, self.committed),
            retained_bytes=slot.retained_bytes,
        )


def commit_time(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def commit_times(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Return each row's commit time in microseconds since 1970; 0 outside of transactions."""
    names = batch.schema.names
    times = batch.column(names.index("_commit_timestamp" if "_commit_timestamp" in names else "commit_timestamp"))
    return times.cast(pa.int64()).fill_null(0).to_numpy()  # type: ignore[no-any-return]


def progress(slot: Slot, position: Lsn, mode: str) -> dict[str, str | int]:
    figures: dict[str, str | int] = {
        "lsn": str(slot.head),
        "behind_bytes": max(slot.head - position, 0),
        "retained_bytes": slot.retained_bytes,
        "mode": mode,
    }
    return figures if slot.retained_limit is None else figures | {"retained_limit_bytes": slot.retained_limit}
