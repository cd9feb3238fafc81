"""The statistics of a batch for the log, and the server's position for Spark's progress report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.message_batch import MessageBatch
from logicalrep.observe.lag import lag_seconds
from logicalrep.postgres.slots import Connection, Slot, find_slot
from logicalrep.spark.server_connection import log
from logicalrep_runtime.scalars import Lsn


class Statistics:
    """The counts of one batch, and its lag behind the server."""

    def __init__(self, slot: str, start: Lsn | None, end: Lsn) -> None:
        self._slot = slot
        self._start = start
        self._end = end
        self.clear()

    def clear(self) -> None:
        """Reset the counts."""
        self.changes = 0
        self.bytes = 0
        self.last_commit: datetime | None = None
        """The commit time of the last transaction."""

    def count(self, batches: Iterable[MessageBatch]) -> Iterator[MessageBatch]:
        """Yield the same message batches, and count their bytes."""
        for messages in batches:
            self.bytes += messages.size
            yield messages

    def see(self, batch: Any) -> None:
        """Count the rows of a record batch."""
        self.changes += batch.num_rows
        last = commit_times(batch)[-1:]
        if last.any():
            self.last_commit = datetime.fromtimestamp(int(last[0]) / 1e6, UTC)

    def report(self, connection: Connection, seconds: float | None = None) -> None:
        """Log the counts and the lag; `seconds` is the time that the batch took."""
        slot = find_slot(connection, self._slot)
        if slot is None:
            return
        took = "" if seconds is None else f" in {seconds:.1f} s"
        seconds_behind = lag_seconds(max(slot.head - self._end, 0), slot.time, self.last_commit)
        behind = "" if seconds_behind is None else f", {seconds_behind:.1f} s"
        log.info(
            "slot %s: %s to %s: %d changes, %d bytes%s; behind the server by %d bytes%s; the slot retains %d bytes",
            self._slot,
            self._start,
            self._end,
            self.changes,
            self.bytes,
            took,
            max(slot.head - self._end, 0),
            behind,
            slot.retained_bytes,
        )


def commit_times(batch: Any) -> NDArray[np.int64]:
    """Return each row's commit time in microseconds since 1970; 0 outside of transactions."""
    names = batch.schema.names
    times = batch.column(names.index("_commit_timestamp" if "_commit_timestamp" in names else "commit_timestamp"))
    return times.cast(pa.int64()).fill_null(0).to_numpy()  # type: ignore[no-any-return]


def progress(slot: Slot, position: Lsn) -> dict[str, str | int]:
    """Return the `latestOffset` of Spark's progress report; Spark only displays it."""
    return {
        "lsn": str(slot.head),
        "behind_bytes": max(slot.head - position, 0),
        "retained_bytes": slot.retained_bytes,
    }
