"""The observer that reports a run as OpenLineage events, in the classes of the project's own client."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from logicalrep.observe.event_queue import EventQueue
from logicalrep.observe.events import CheckpointSaved, CopyEnded, RunEnded, RunEvent, RunPrepared, SchemaChanged
from logicalrep.observe.figures import Standing
from logicalrep.observe.observer import Observer
from logicalrep.transactions.logs import logger
from logicalrep_runtime.visible import visible

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, OutputDataset, RunState

_TIMEOUT = 5.0
"""In seconds."""
_log = logger("logicalrep.replicate")


@dataclass(frozen=True, slots=True)
class LineageNames:
    """The names of a run's datasets, by OpenLineage's rules for PostgreSQL and files."""

    server: str
    """`host:port`."""
    database: str
    destination: str
    """A folder or an object store's URI."""

    @property
    def source(self) -> str:
        return f"postgres://{self.server}"

    def source_name(self, table: str) -> str:
        return f"{self.database}.{table}"

    def output(self, folder: str) -> tuple[str, str]:
        """Return the namespace and the name of a stored table.

        Example:
            >>> LineageNames("db:5432", "shop", "s3://lake/shop").output("public/orders")
            ('s3://lake', 'shop/public/orders')
        """
        scheme, separator, path = self.destination.removeprefix("file://").partition("://")
        if not separator:
            return "file", f"{os.path.abspath(scheme)}/{folder}"
        bucket, _, prefix = path.partition("/")
        return f"{scheme}://{bucket}", "/".join(filter(None, [prefix.strip("/"), folder]))


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """A stored table's folder, below the destination, and its columns' types by their names."""

    folder: str
    types: Mapping[str, str]


class Lineage(Observer):
    """Sends START, RUNNING, and COMPLETE, FAIL or ABORT from its own thread, so that no table waits for a receiver.

    RUNNING lists the tables that follow. It is sent when another table follows or columns have changed, and otherwise
    at most once an `interval`, in seconds. If an event cannot be sent, the log has a warning.
    """

    def __init__(
        self,
        url: str,
        names: LineageNames,
        describe: Callable[[str], StoredColumns | None],
        *,
        interval: float = 60.0,
    ) -> None:
        """`url`: the receiver, to which `/api/v1/lineage` is added; `describe` reads a stored table by its name."""
        from openlineage.client import OpenLineageClient
        from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport, TokenProvider
        from openlineage.client.uuid import generate_new_uuid

        key = os.environ.get("OPENLINEAGE_API_KEY")
        auth = ApiKeyTokenProvider({"apiKey": key}) if key else TokenProvider({})
        config = HttpConfig(url, timeout=_TIMEOUT, auth=auth, retry={"total": 1, "connect": 1, "read": 1})
        self._client = OpenLineageClient(transport=HttpTransport(config))
        self._names, self._describe, self._interval = names, describe, interval
        self._run_id = str(generate_new_uuid())
        self._slot = ""
        self._columns: dict[str, StoredColumns] = {}
        self._copied: dict[str, int] = {}
        self._followed: set[str] = set()
        self._queue: EventQueue[RunEvent] = EventQueue("logicalrep-lineage", self._run)

    def on_event(self, event: RunEvent) -> None:
        if isinstance(event, RunPrepared | CheckpointSaved | CopyEnded | SchemaChanged | RunEnded):
            self._queue.put(event)

    def sending(self) -> AbstractContextManager[None]:
        """Send events within this context; its end waits up to 20 seconds for the last events."""
        return self._queue.handling()

    def _run(self, events: Iterator[RunEvent]) -> None:
        from openlineage.client.event_v2 import RunState

        error: RunEnded | None = None
        has_changed, sent_at = False, 0.0
        for event in events:
            match event:
                case RunPrepared(slot) if not self._slot:
                    self._slot = slot
                    self._send(RunState.START)
                case CopyEnded(table, rows):
                    self._copied[str(table)] = self._copied.get(str(table), 0) + rows
                    self._columns.pop(str(table), None)
                    has_changed = True
                case SchemaChanged(table):
                    self._columns.pop(str(table), None)
                    has_changed = True
                case CheckpointSaved(tables=tables):
                    followed = {name for name, figures in tables.items() if figures.state is Standing.FOLLOWING}
                    has_changed |= followed != self._followed
                    self._followed = followed
                    if has_changed or time.monotonic() - sent_at > self._interval:
                        has_changed, sent_at = False, time.monotonic()
                        self._send(RunState.RUNNING)
                case RunEnded():
                    error = event
        if not self._slot:
            return
        if error is None:
            self._send(RunState.COMPLETE)
        else:
            self._send(RunState.ABORT if error.is_requested else RunState.FAIL, str(error.error))

    def _send(self, state: RunState, error: str | None = None) -> None:
        try:
            self._client.emit(self._event(state, error))
        except Exception as failure:
            _log.warning("the OpenLineage event %s cannot be sent: %s", state.value, visible(str(failure)))
        else:
            for name in self._followed:
                self._copied.pop(name, None)

    def _event(self, state: RunState, error: str | None) -> Any:
        from openlineage.client.event_v2 import Job, Run
        from openlineage.client.event_v2 import RunEvent as LineageEvent
        from openlineage.client.facet_v2 import error_message_run, job_type_job, processing_engine_run

        release = version("logicalrep")
        run_facets: dict[str, Any] = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(release, "logicalrep", release)
        }
        if error is not None:
            run_facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(visible(error), "python")
        kind = job_type_job.JobTypeJobFacet("STREAMING", "LOGICALREP", "JOB")
        pairs = [self._datasets(name) for name in sorted(self._followed)]
        return LineageEvent(
            eventTime=datetime.now(UTC).isoformat(),
            producer=f"https://pypi.org/project/logicalrep/{release}",
            run=Run(self._run_id, run_facets),
            job=Job(self._names.source, f"{self._names.database}.{self._slot}", {"jobType": kind}),
            eventType=state,
            inputs=[pair[0] for pair in pairs if pair is not None],
            outputs=[pair[1] for pair in pairs if pair is not None],
        )

    def _datasets(self, name: str) -> tuple[InputDataset, OutputDataset] | None:
        from openlineage.client.event_v2 import InputDataset, OutputDataset
        from openlineage.client.facet_v2 import output_statistics_output_dataset, schema_dataset

        if name not in self._columns:
            if (columns := self._describe(name)) is None:
                return None
            self._columns[name] = columns
        stored = self._columns[name]
        fields = [
            schema_dataset.SchemaDatasetFacetFields(column, type_, ordinal_position=number)
            for number, (column, type_) in enumerate(stored.types.items(), 1)
        ]
        statistics: dict[str, Any] = {}
        if (rows := self._copied.get(name)) is not None:
            facet = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
            statistics["outputStatistics"] = facet
        namespace, path = self._names.output(stored.folder)
        return (
            InputDataset(self._names.source, self._names.source_name(name)),
            OutputDataset(
                namespace, path, facets={"schema": schema_dataset.SchemaDatasetFacet(fields)}, outputFacets=statistics
            ),
        )
