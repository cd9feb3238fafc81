"""The page and the metrics of several databases, from the answers of their processes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from logicalrep.observe.figures import Standing
from logicalrep.observe.page import STYLE, as_text, bytes_text, clock_text, seconds_text

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric as Family

UP = "logicalrep_database_up"
_UP_MEANING = (
    "1 if the database's process answers; 0 if it has ended, hangs or is starting, and after several ends in "
    "succession until it has run for a minute."
)


@dataclass(frozen=True, kw_only=True)
class DatabaseAnswer:
    name: str
    uri: str
    process: str
    """The state of the process, in a few words, with the error of its last exit."""
    is_failing: bool
    """Whether the process has ended several times, and its restart has not run for a minute."""
    metrics: str | None
    """The metrics in Prometheus' text format; None if the process has not answered."""

    @property
    def is_up(self) -> bool:
        return self.metrics is not None and not self.is_failing

    @cached_property
    def families(self) -> Sequence[Family]:
        from prometheus_client.parser import text_string_to_metric_families

        return list(text_string_to_metric_families(self.metrics or ""))

    def value(self, name: str) -> float | None:
        """Return the value of a metric without further labels; None if unknown."""
        return next(
            (sample.value for family in self.families for sample in family.samples if sample.name == name), None
        )

    def count_state(self, state: str) -> int:
        return sum(
            int(sample.value)
            for family in self.families
            for sample in family.samples
            if sample.name == "logicalrep_table_state" and sample.labels["state"] == state
        )


class _LabelledMetrics:
    def __init__(self, answers: Sequence[DatabaseAnswer]) -> None:
        self._answers = answers

    def collect(self) -> Iterator[Family]:
        from prometheus_client.metrics_core import GaugeMetricFamily, Metric

        up = GaugeMetricFamily(UP, _UP_MEANING, labels=["database"])
        families: dict[str, Family] = {}
        for answer in self._answers:
            up.add_metric([answer.name], float(answer.is_up))
            for family in answer.families:
                labelled = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                for sample in family.samples:
                    labelled.add_sample(sample.name, {**sample.labels, "database": answer.name}, sample.value)
        yield up
        yield from families.values()


def labelled_registry(answers: Sequence[DatabaseAnswer]) -> CollectorRegistry:
    from prometheus_client import CollectorRegistry

    metrics = CollectorRegistry()
    metrics.register(_LabelledMetrics(answers))
    return metrics


def overview(answers: Sequence[DatabaseAnswer]) -> str:
    up = sum(answer.is_up for answer in answers)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="refresh" content="5"><title>logicalrep: {len(answers)} databases</title><style>{STYLE}</style></head>
<body>
<h1>{len(answers)} databases</h1>
<p class="pale">{up} running, {len(answers) - up} not; {clock_text(time.time())} UTC; <a href="metrics">metrics</a></p>
<section class="card"><h2>Databases</h2>{"".join(map(_row, sorted(answers, key=lambda answer: answer.is_up)))}</section>
</body></html>
"""


def _row(answer: DatabaseAnswer) -> str:
    name = as_text(answer.name)
    head = f'<b>{name}</b> <span class="bad">does not answer</span>'
    figures = []
    if answer.metrics is not None:
        head = f'<b><a href="{name}/">{name}</a></b>' + ' <span class="bad">keeps failing</span>' * answer.is_failing
        stopped = answer.count_state(Standing.STOPPED)
        figures = [f"{answer.count_state(state):,} {state}" for state in (Standing.FOLLOWING, Standing.LOADING)]
        figures.append(f'<span class="bad">{stopped:,} stopped</span>' if stopped else "0 stopped")
        lag, seconds = answer.value("logicalrep_lag_bytes"), answer.value("logicalrep_lag_seconds")
        if lag is not None:
            figures.append(f"{bytes_text(lag)}{'' if seconds is None else f', {seconds_text(seconds)}'} behind")
    return (
        f'<div class="row"><span>{head}<br><small>{as_text(answer.uri)}; {as_text(answer.process)}</small></span>'
        f"<span>{'; '.join(figures)}</span></div>"
    )
