"""The aims of `logicalrep replicate`'s performance, in one table, and whether a figure reaches them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_MEMORY = "most memory, MiB"
_LOADS = "CPU-seconds a million rows"
_CHANGES = "CPU-seconds a million changes"


@dataclass(frozen=True)
class Aim:
    """The most of a figure."""

    part: str
    measured: str
    """A text in the name of what is measured; of several texts, separated by `…`, each."""
    figure: str
    most: float

    def is_of(self, part: str, figure: Mapping[str, Any]) -> bool:
        """Return whether a part's figure has this aim."""
        return self.part == part and all(text in figure["measured"] for text in self.measured.split("…"))

    def verdict(self, figure: Mapping[str, Any]) -> str:
        """Return the aim with its outcome, in a line."""
        value = figure.get(self.figure)
        if isinstance(value, Mapping):
            value = value["in all"]
        text = f"aim {self.figure} at most {self.most:,}: "
        if value is None:
            return f"{text}not measured"
        return (
            f"{text}holds, {value:,}"
            if value <= self.most
            else f"{text}missed by {value / self.most - 1:.0%}, {value:,}"
        )


AIMS = (
    Aim("first", "nothing to do", "seconds", 1.0),
    Aim("first", "nothing to do", "CPU-seconds", 0.8),
    Aim("first", "idle", _MEMORY, 150),
    Aim("load", "--engine local", _LOADS, 3),
    Aim("load", "--engine spark", _LOADS, 6),
    Aim("load", "first load", "COPY into nothing, times as fast", 2),
    Aim("backlog", "three tables…--engine spark", _MEMORY, 1600),
    Aim("backlog", "three tables…--engine local", _MEMORY, 800),
    *(
        aim
        for part in ("latency", "small")
        for aim in (Aim(part, "", "median", 0.2), Aim(part, "", "99th percentile", 0.5), Aim(part, "", _CHANGES, 150))
    ),
    Aim("few", "", "median", 0.3),
    Aim("few", "", _CHANGES, 600),
    Aim("few", "", "of a core", 0.25),
    Aim("many", "", "median", 1.0),
    Aim("many", "", _CHANGES, 1000),
    Aim("idle", "first load", "the server's CPU-seconds", 5),
    Aim("idle", "without changes", "statements a minute", 100),
    Aim("idle", "without changes", "of a core", 0.005),
)


def verdicts(part: str, figure: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each aim of a part's figure."""
    for aim in AIMS:
        if aim.is_of(part, figure):
            yield aim.verdict(figure)


__all__ = ["AIMS", "Aim", "verdicts"]
