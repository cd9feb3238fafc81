"""The metrics of a session's queries, from the progress reports that Spark sends to the program."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from logicalrep.observe.figures import Figures
from logicalrep.observe.metrics import metric_families
from logicalrep.spark.offsets import offset_in_progress

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family


class MetricsListener(StreamingQueryListener):
    """Spark listener and collector of prometheus_client; create it with `logicalrep.metrics.listener`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By the queries' ids, which a restart does not change, and by the slots' names.
        self._queries: dict[str, dict[str, Figures]] = {}

    def collect(self) -> Iterator[Family]:
        """Yield the metrics for a registry of prometheus_client."""
        yield from metric_families(self.figures())

    def figures(self) -> list[Figures]:
        """Return the figures of each slot of a running or failed query."""
        with self._lock:
            return [figures for slots in self._queries.values() for figures in slots.values()]

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing: the first progress report has the slots."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Add a batch to the figures of its slots."""
        progress = event.progress
        # Spark has these durations in milliseconds.
        took = progress.durationMs
        seconds = (took.get("triggerExecution", 0) - took.get("latestOffset", 0)) / 1000
        with self._lock:
            slots = self._queries.setdefault(str(progress.id), {})
            for source in progress.sources:
                end = offset_in_progress(source.endOffset)
                if not isinstance(end, dict) or not {"slot", "lsn"} <= end.keys():
                    continue
                name = str(end["slot"])
                previous = slots.get(name, Figures(slot=name, changes=0, batches=0, seconds={"spark": 0.0}))
                latest = offset_in_progress(source.latestOffset)
                after = replace(previous, checkpointed=time.time(), **_of_server(latest))
                if source.startOffset != source.endOffset:
                    after = replace(
                        after,
                        changes=(previous.changes or 0) + source.numInputRows,
                        batches=(previous.batches or 0) + 1,
                        seconds={"spark": previous.seconds["spark"] + max(seconds, 0)},
                    )
                slots[name] = after

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Record that an idle query still runs."""
        with self._lock:
            slots = self._queries.get(str(event.id), {})
            slots |= {name: replace(figures, checkpointed=time.time()) for name, figures in slots.items()}

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Forget a query that was stopped; a failed query's figures stay, so that an alert finds them."""
        if event.exception is None:
            with self._lock:
                self._queries.pop(str(event.id), None)


def _of_server(latest: object) -> dict[str, Any]:
    """Return the figures in the source's `latestOffset`, which Spark reports from 4.2 on."""
    if not isinstance(latest, dict) or "behind_bytes" not in latest:
        return {}
    return {
        "lag_bytes": int(latest["behind_bytes"]),
        "retained_bytes": int(latest["retained_bytes"]),
        "retained_limit": latest.get("retained_limit_bytes"),
        "mode": latest.get("mode"),
    }
