"""The metrics: each one's name, kind, unit and meaning in one table, and who gives it."""

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
"""The values of the labels after `slot`, and the figure; None for one that is unknown."""

_MODES = ("peek", "walsender")
_ALL: tuple[Source, ...] = ("replicate", "source", "listener")
_REPLICATE: tuple[Source, ...] = ("replicate",)
_READERS: tuple[Source, ...] = ("replicate", "source")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric; each has the label `slot`, and more if `labels` names some."""

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    meaning: str
    read: Callable[[Figures], Values]
    labels: tuple[str, ...] = ()
    sources: tuple[Source, ...] = _ALL
    """`replicate`, the Spark source with the option `listen`, the listener of Spark's progress."""


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
        "The WAL that the server has written and that is not yet in the tables, or in Spark's checkpoint.",
        _single(lambda figures: figures.lag_bytes),
    ),
    Metric(
        "logicalrep_lag_seconds",
        "gauge",
        "seconds",
        "An upper bound of the delay: 0 if no WAL is missing; else the time since the last commit that the tables "
        "have, or since they last had everything, whichever is later. It grows while the server does not answer.",
        _single(lambda figures: figures.lag_seconds),
        sources=_READERS,
    ),
    Metric(
        "logicalrep_retained_wal_bytes",
        "gauge",
        "bytes",
        "The WAL that the slot keeps the server from removing.",
        _single(lambda figures: figures.retained_bytes),
    ),
    Metric(
        "logicalrep_retained_wal_limit_bytes",
        "gauge",
        "bytes",
        "The retained WAL at which the slot is lost, by `max_slot_wal_keep_size`; absent if there is no bound.",
        _single(lambda figures: figures.retained_limit),
    ),
    Metric(
        "logicalrep_changes_total",
        "counter",
        "changes",
        "The changes that were applied, or kept for a table that loads; of a stream, the rows that Spark has got.",
        _single(lambda figures: figures.changes),
    ),
    Metric(
        "logicalrep_bytes_total",
        "counter",
        "bytes",
        "The server's messages that were received.",
        _single(lambda figures: figures.bytes),
        sources=_READERS,
    ),
    Metric(
        "logicalrep_batches_total",
        "counter",
        "batches",
        "The batches of changes that were applied, or that Spark has ended.",
        _single(lambda figures: figures.batches),
    ),
    Metric(
        "logicalrep_restarts_total",
        "counter",
        "connections",
        "The connections to the server that were made anew after they had broken.",
        _single(lambda figures: figures.restarts),
        sources=_READERS,
    ),
    Metric(
        "logicalrep_errors_total",
        "counter",
        "errors",
        "The errors that did not end the command, by kind. `server`: a connection broke, or a query failed as the "
        "server was away; `destination`: it could not be read or written, each try, or a file was gone; `load`: a "
        "table could not be copied, each try; `changes`: changes of a table could not be applied, so that it is "
        "stopped.",
        lambda figures: (((kind,), count) for kind, count in figures.errors.items()),
        ("kind",),
        _REPLICATE,
    ),
    Metric(
        "logicalrep_mode",
        "gauge",
        "",
        "1 for the way in which the slot is read, 0 for the other: `peek`, `walsender`.",
        _modes,
        ("mode",),
    ),
    Metric(
        "logicalrep_seconds_total",
        "counter",
        "seconds",
        "The time, by what it was spent on. `server`: receiving messages; `decoding`: making rows of them; "
        "`applying`: writing batches into tables; `spark`: of `replicate` its tasks, of a stream each batch from its "
        "plan to its end. They overlap, as batches are received ahead.",
        lambda figures: (((stage,), seconds) for stage, seconds in figures.seconds.items()),
        ("stage",),
    ),
    Metric(
        "logicalrep_last_commit_timestamp_seconds",
        "gauge",
        "seconds since 1970",
        "The time of the last commit with changes that was read.",
        _single(lambda figures: _since_1970(figures.committed)),
        sources=_READERS,
    ),
    Metric(
        "logicalrep_noted_timestamp_seconds",
        "gauge",
        "seconds since 1970",
        "The time at which the last checkpoint was saved at the destination, every few seconds, also if nothing "
        "commits; of a stream, at which Spark last asked for a batch, or reported one.",
        _single(lambda figures: figures.checkpointed),
    ),
    Metric(
        "logicalrep_load_snapshot_timestamp_seconds",
        "gauge",
        "seconds since 1970",
        "The time since when the oldest snapshot of a load is held, which holds back VACUUM; absent without one.",
        _single(lambda figures: _since_1970(figures.load_snapshot)),
        sources=_REPLICATE,
    ),
    Metric(
        "logicalrep_table_rows",
        "gauge",
        "rows",
        "The stored table's rows, with those that are marked as deleted.",
        _by_table(lambda table: table.rows),
        ("table",),
        _REPLICATE,
    ),
    Metric(
        "logicalrep_table_unrepresentable_values",
        "gauge",
        "values",
        "The values since a table's load that their columns' types cannot hold, which are NULL, as `--unrepresentable` "
        "says.",
        _by_table(lambda table: table.unfit),
        ("table",),
        _REPLICATE,
    ),
    Metric(
        "logicalrep_table_rows_copied_total",
        "counter",
        "rows",
        "The rows that loads of a table have copied.",
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
        "The time of the last commit with changes of the table; absent before the first one after its load.",
        _by_table(lambda table: _since_1970(table.committed)),
        ("table",),
        _REPLICATE,
    ),
    Metric(
        "logicalrep_table_state",
        "gauge",
        "",
        "1 for the state that a table is in, 0 for the others: `following`, `loading`, `stopped`.",
        _states,
        ("table", "state"),
        _REPLICATE,
    ),
)


def metric_families(readers: Sequence[Figures]) -> Iterator[Family]:
    """Yield the known metrics of some readers, as a collector of prometheus_client does."""
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
    """Reads the figures at each scrape, so that a table that is gone has none."""

    def __init__(self, read: Callable[[], Iterable[Figures]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Family]:
        """Yield the metrics that are known."""
        return metric_families(list(self._read()))


def registry(read: Callable[[], Iterable[Figures]]) -> CollectorRegistry:
    """Return a registry of prometheus_client with the metrics of the figures that a function returns."""
    from prometheus_client import CollectorRegistry

    metrics = CollectorRegistry()
    metrics.register(_Collector(read))
    return metrics


_PAGE = """# Metrics

One set of names, for Prometheus, from three sources:

* `logicalrep replicate --listen HOST:PORT` serves them at `/metrics`;
* the Spark source with the option `listen` does so in the driver, for its query: see
  [Monitoring](../how-to/spark-monitoring.md);
* `logicalrep.metrics.listener()` takes them from Spark's progress reports, for all queries of a session; the lag, the
  retained WAL and the mode from Spark 4.2 on.

Each has the label `slot`, the replication slot. With [many databases from one file](../how-to/many-databases.md) each
has the label `database` too, and `logicalrep_database_up` is 1 for one whose process answers, else 0.

Counters begin at 0 with each start. A figure that is not known yet is absent.
[examples/alerts.yml](../../examples/alerts.yml) has rules for alerts,
[examples/grafana.json](../../examples/grafana.json) is a dashboard.

| metric | kind | unit | more labels | given by | meaning |
| --- | --- | --- | --- | --- | --- |
{}"""


def page() -> str:
    """Return the documentation's page of all metrics as Markdown."""
    lines = (
        f"| `{metric.name}` | {metric.kind} | {metric.unit} | {', '.join(f'`{label}`' for label in metric.labels)} "
        f"| {'all' if metric.sources == _ALL else ', '.join(metric.sources)} | {metric.meaning} |\n"
        for metric in METRICS
    )
    return _PAGE.format("".join(lines)).replace("|  |", "| |").replace("|  |", "| |")
