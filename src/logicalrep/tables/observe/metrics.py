"""The metrics of `logicalrep replicate`: each one's name, kind, unit and meaning in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from logicalrep.tables.observe.observed import Observed

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric as Family

Values = Iterator[tuple[tuple[str, ...], float | None]]
"""The values of the labels, and the figure; None for one that is unknown."""

_STATES = ("following", "loading", "stopped")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric."""

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    meaning: str
    read: Callable[[Observed], Values]
    labels: tuple[str, ...] = ()


def _one(read: Callable[[Observed], float | None]) -> Callable[[Observed], Values]:
    return lambda observed: iter([((), read(observed))])


def _retained(observed: Observed) -> float | None:
    return None if observed.slot is None else observed.slot.retained_bytes


def _limit(observed: Observed) -> float | None:
    slot = observed.slot
    return None if slot is None or slot.safe_wal_size is None else slot.retained_bytes + max(slot.safe_wal_size, 0)


def _rows_copied(observed: Observed) -> Values:
    return (((name,), rows) for name, rows in observed.all_rows_copied().items())


def _versions(observed: Observed) -> Values:
    return (((name,), table.version) for name, table in observed.tables.items())


def _states(observed: Observed) -> Values:
    return (
        ((name, state), float(table.state == state)) for name, table in observed.tables.items() for state in _STATES
    )


METRICS = (
    Metric(
        "logicalrep_lag_bytes",
        "gauge",
        "bytes",
        "The WAL that the server has written and the tables lack.",
        _one(lambda observed: observed.lag_bytes),
    ),
    Metric(
        "logicalrep_lag_seconds",
        "gauge",
        "seconds",
        "The time for which WAL has waited to be applied, at most; 0 if nothing is behind.",
        _one(lambda observed: observed.lag_seconds),
    ),
    Metric(
        "logicalrep_retained_wal_bytes",
        "gauge",
        "bytes",
        "The WAL that the slot keeps the server from removing.",
        _one(_retained),
    ),
    Metric(
        "logicalrep_retained_wal_limit_bytes",
        "gauge",
        "bytes",
        "The retained WAL at which the slot is lost, by `max_slot_wal_keep_size`; absent if there is no bound.",
        _one(_limit),
    ),
    Metric(
        "logicalrep_changes_total",
        "counter",
        "changes",
        "The changes that were applied, or kept for a table that loads.",
        _one(lambda observed: observed.changes),
    ),
    Metric(
        "logicalrep_batches_total",
        "counter",
        "batches",
        "The batches of changes that were applied.",
        _one(lambda observed: observed.batches),
    ),
    Metric(
        "logicalrep_applying_seconds_total",
        "counter",
        "seconds",
        "The time that applying them took.",
        _one(lambda observed: observed.applying_seconds),
    ),
    Metric(
        "logicalrep_last_commit_timestamp_seconds",
        "gauge",
        "seconds since 1970",
        "The time of the last commit that was applied.",
        _one(lambda observed: None if observed.committed is None else observed.committed.timestamp()),
    ),
    Metric(
        "logicalrep_noted_timestamp_seconds",
        "gauge",
        "seconds since 1970",
        "The time at which the position was last noted at the place: every few seconds, also if nothing commits.",
        _one(lambda observed: observed.noted_at),
    ),
    Metric(
        "logicalrep_table_rows_copied_total",
        "counter",
        "rows",
        "The rows that loads of a table have copied.",
        _rows_copied,
        ("table",),
    ),
    Metric("logicalrep_table_version", "gauge", "", "The Delta table's version.", _versions, ("table",)),
    Metric(
        "logicalrep_table_state",
        "gauge",
        "",
        "1 for the state that a table is in, 0 for the others: `following`, `loading`, `stopped`.",
        _states,
        ("table", "state"),
    ),
)


class _Collector:
    """Reads the metrics at each scrape, so that a table that is gone has none."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed

    def collect(self) -> Iterator[Family]:
        """Yield the metrics that are known."""
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        for metric in METRICS:
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = kind(metric.name, metric.meaning, labels=metric.labels)
            for labels, value in metric.read(self._observed):
                if value is not None:
                    family.add_metric(labels, value)
            if family.samples:
                yield family


def registry(observed: Observed) -> CollectorRegistry:
    """Return a registry of prometheus_client that has the metrics."""
    from prometheus_client import CollectorRegistry

    made = CollectorRegistry()
    made.register(_Collector(observed))
    return made


_PAGE = """# Metrics of `logicalrep replicate`

`--listen HOST:PORT` serves them at `/metrics`, for Prometheus. Counters begin at 0 with each start. A figure that is
not known yet is absent. [examples/alerts.yml](../examples/alerts.yml) has rules for alerts,
[examples/grafana.json](../examples/grafana.json) is a dashboard.

| metric | kind | unit | labels | meaning |
| --- | --- | --- | --- | --- |
{}"""


def page() -> str:
    """Return the documentation's page of all metrics as Markdown."""
    lines = (
        f"| `{each.name}` | {each.kind} | {each.unit} | {', '.join(f'`{label}`' for label in each.labels)} "
        f"| {each.meaning} |\n"
        for each in METRICS
    )
    return _PAGE.format("".join(lines)).replace("|  |", "| |").replace("|  |", "| |")


__all__ = ["METRICS", "Metric", "page", "registry"]
