"""What a server of metrics answers."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.request import urlopen

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families


def got(address: str) -> str:
    """Return the text at an address."""
    with urlopen(address, timeout=10) as answer:
        return str(answer.read().decode())


def figures(address: str) -> dict[str, float]:
    """Return what `/metrics` has, as `figures_of` does."""
    return figures_of(text_string_to_metric_families(got(f"{address}metrics")))


def figures_of(families: Iterable[Metric]) -> dict[str, float]:
    """Return samples by name, or by name and the values of labels, other than the slot's, by the labels' names."""
    figures: dict[str, float] = {}
    for family in families:
        for sample in family.samples:
            labels = sorted((name, value) for name, value in sample.labels.items() if name != "slot")
            assert sample.labels["slot"]
            figures[" ".join([sample.name, *(value for _, value in labels)])] = sample.value
    return figures
