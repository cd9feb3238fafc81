"""The metrics in one table: name, kind, unit, meaning and sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from logicalrep.observe.figures import Figures, Standing, TableFigures

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric as Family

Source = Literal["replicate", "source", "listener"]
Values = Iterator[tuple[tuple[str, ...], float | None]]
"""The values of the labels after `slot`, and the figure; None for an unknown figure."""

_MODES = ("peek", "walsender")
_ALL: tuple[Source, ...] = ("replicate", "source", "listener")
_REPLICATE: tuple[Source, ...] = ("replicate",)
_READERS: tuple[Source, ...] = ("replicate", "source")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with the label `slot`, and the labels of `labels`."""

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    meaning: str
    read: Callable[[Figures], Values]
    labels: tuple[str, ...] = ()
    sources: tuple[Source, ...] = _ALL
    """`replicate`, the Spark source with the option `listen` (`source`), `logicalrep.metrics.listener()`."""


def _single(read: Callable[[Figures], float | None]) -> Callable[[Figures], Values]:
    return lambda figures: iter([((), read(figures))])


def _by_table(read: Callable[[TableFigures], float | None]) -> Callable[[Figures], Values]:
    return lambda figures: (((name,), read(table)) for name, table in figures.tables.items())


def _since_1970(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _modes(figures: Figures) -> Values:
    return (((mode,), None if figures.mode is None else float(mode == figures.mode)) for mode in _MODES)


def _states(figures: Figures) -> Values:
    return (
        ((name, state), float(table.state == state)) for name, table in figures.tables.items() for state in Standing
    )


METRICS = (
    Metric(
        "logicalrep_lag_bytes",
        "gauge",
        "bytes",
        "The WAL that the server has written and that the tables, or Spark's checkpoint, lack.",
        _single(lambda figures: figures.lag_bytes),
    ),
    Metric(
        "logicalrep_lag_seconds",
        "gauge",
        "seconds",
        "An upper bound of the lag: 0 if the tables lack no WAL; otherwise the time since the last applied commit, or "
        "since the tables last lacked no WAL, whichever is shorter. It grows while the server does not answer.",
        _single(lambda figures: figures.lag_seconds),
        sources=_READERS,
    ),
    Metric(
        "logicalrep_retained_wal_bytes",
        "gauge",
        "bytes",
        "The WAL that the server retains for the slot.",
        _single(lambda figures: figures.retained_bytes),
    ),
    Metric(
        "logicalrep_retained_wal_limit_bytes",
        "gauge",
        "bytes",
        "The retained WAL at which PostgreSQL invalidates the slot (`max_slot_wal_keep_size`); absent without a limit.",
        _single(lambda figures: figures.retained_limit),
    ),
    Metric(
        "logicalrep_changes_total",
        "counter",
        "changes",
        "The changes that were applied, or buffered for a table that loads; of a stream, the rows that Spark received.",
        _single(lambda figures: figures.changes),
    ),
    Metric(
        "logicalrep_bytes_total",
        "counter",
        "bytes",
        "The messages received from the server.",
        _single(lambda figures: figures.bytes),
        sources=_READERS,
    ),
    Metric(
        "logicalrep_batches_total",
        "counter",
        "batches",
        "The batches of changes that replicate applied or Spark completed.",
        _single(lambda figures: figures.batches),
    ),
    Metric(
        "logicalrep_restarts_total",
        "counter",
        "connections",
        "The reconnects after a connection to the server broke.",
        _single(lambda figures: figures.restarts),
        sources=_READERS,
    ),
    Metric(
        "logicalrep_errors_total",
        "counter",
        "errors",
        "The errors that did not end the command, by kind. `server`: a connection broke, or a query failed because the "
        "server was not available; `destination`: an attempt to read or write it failed, or a file was missing; "
        "`load`: an attempt to copy a table failed; `changes`: a table's changes could not be applied, and replicate "
        "stopped the table.",
        lambda figures: (((kind,), count) for kind, count in figures.errors.items()),
        ("kind",),
        _REPLICATE,
    ),
    Metric(
        "logicalrep_mode",
        "gauge",
        "",
        "1 for the mode that reads the slot, 0 for the other mode: `peek`, `walsender`.",
        _modes,
        ("mode",),
    ),
    Metric(
        "logicalrep_seconds_total",
        "counter",
        "seconds",
        "The time by stage. `server`: receiving messages; `decoding`: decoding them into rows; `applying`: writing "
        "batches to tables; `spark`: tasks of `replicate`, or batches of a stream from plan to end. Stages overlap, "
        "because batches are received in advance.",
        lambda figures: (((stage,), seconds) for stage, seconds in figures.seconds.items()),
        ("stage",),
    ),
    Metric(
        "logicalrep_last_commit_timestamp_seconds",
        "gauge",
        "seconds since 1970",
        "The time of the last commit read that has changes.",
        _single(lambda figures: _since_1970(figures.committed)),
        sources=_READERS,
    ),
    Metric(
        "logicalrep_noted_timestamp_seconds",
        "gauge",
        "seconds since 1970",
        "When replicate last saved a checkpoint, which it does every few seconds, even without commits; of a stream, "
        "when Spark last requested or reported a batch.",
        _single(lambda figures: figures.checkpointed),
    ),
    Metric(
        "logicalrep_load_snapshot_timestamp_seconds",
        "gauge",
        "seconds since 1970",
        "When the oldest snapshot of a current load was exported; a snapshot holds back VACUUM. Absent without a load.",
        _single(lambda figures: _since_1970(figures.load_snapshot)),
        sources=_REPLICATE,
    ),
    Metric(
        "logicalrep_table_rows",
        "gauge",
        "rows",
        "The rows in the stored table's files, including rows marked as deleted.",
        _by_table(lambda table: table.rows),
        ("table",),
        _REPLICATE,
    ),
    Metric(
        "logicalrep_table_unrepresentable_values",
        "gauge",
        "values",
        "The values since the table's load that the type of their column cannot hold and that were stored as NULL "
        "(`--unrepresentable`).",
        _by_table(lambda table: table.unfit),
        ("table",),
        _REPLICATE,
    ),
    Metric(
        "logicalrep_table_rows_copied_total",
        "counter",
        "rows",
        "The rows that loads of the table copied.",
        _by_table(lambda table: table.rows_copied),
        ("table",),
        _REPLICATE,
    ),
    Metric(
        "logicalrep_table_version",
        "gauge",
        "",
        "The stored table's version.",
        _by_table(lambda table: table.version),
        ("table",),
        _REPLICATE,
    ),
    Metric(
        "logicalrep_table_last_commit_timestamp_seconds",
        "gauge",
        "seconds since 1970",
        "The time of the last commit that changed the table; absent until the first such commit after the load.",
        _by_table(lambda table: _since_1970(table.committed)),
        ("table",),
        _REPLICATE,
    ),
    Metric(
        "logicalrep_table_state",
        "gauge",
        "",
        "1 for the table's state, 0 for the other states: `following`, `loading`, `stopped`.",
        _states,
        ("table", "state"),
        _REPLICATE,
    ),
)


def metric_families(readers: Sequence[Figures]) -> Iterator[Family]:
    """Yield the metrics of the readers for a collector of prometheus_client, without unknown figures."""
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

    for metric in METRICS:
        kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family = kind(metric.name, metric.meaning, labels=("slot", *metric.labels))
        for figures in readers:
            for labels, value in metric.read(figures):
                if value is not None:
                    family.add_metric((figures.slot, *labels), value)
        if family.samples:
            yield family


class _Collector:
    # The figures are read at each scrape, so that a dropped table disappears.
    def __init__(self, read: Callable[[], Iterable[Figures]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Family]:
        return metric_families(list(self._read()))


def registry(read: Callable[[], Iterable[Figures]]) -> CollectorRegistry:
    """Return a registry of prometheus_client that calls `read` at each scrape."""
    from prometheus_client import CollectorRegistry

    metrics = CollectorRegistry()
    metrics.register(_Collector(read))
    return metrics


_PAGE = """# Metrics

Three sources serve metrics for Prometheus under the same names:

* `logicalrep replicate --listen HOST:PORT` (`replicate`) serves them at `/metrics`;
* the Spark source with the option `listen` (`source`) serves the metrics of its query from the driver: see
  [Monitoring](../how-to/spark-monitoring.md);
* `logicalrep.metrics.listener()` (`listener`) reads Spark's progress reports of all queries of a session; it has the
  lag, the retained WAL and the mode since Spark 4.2.

Each metric has the label `slot`, the replication slot. With [many databases from one
file](../how-to/many-databases.md) each metric also has the label `database`, and `logicalrep_database_up` is 1 if the
database's process answers and does not exit again and again, otherwise 0.

Counters start at 0 with each process. Unknown figures are absent.
[examples/alerts.yml](../../examples/alerts.yml) has alert rules,
[examples/grafana.json](../../examples/grafana.json) is a dashboard.

| metric | kind | unit | more labels | sources | meaning |
| --- | --- | --- | --- | --- | --- |
{}"""


def page() -> str:
    lines = (
        f"| `{metric.name}` | {metric.kind} | {metric.unit} | {', '.join(f'`{label}`' for label in metric.labels)} "
        f"| {'all' if metric.sources == _ALL else ', '.join(metric.sources)} | {metric.meaning} |\n"
        for metric in METRICS
    )
    return _PAGE.format("".join(lines)).replace("|  |", "| |").replace("|  |", "| |")
