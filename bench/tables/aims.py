"""The aims of `logicalrep replicate`'s performance, in one table, and whether a figure reaches them."""

from __future__ import annotations

from collections.abc import Mapping
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

    def value(self, figure: Mapping[str, Any]) -> float | None:
        """Return the value that the aim bounds; None if the figure does not have it."""
        value = figure.get(self.figure)
        return value["in all"] if isinstance(value, Mapping) else value

    def outcome(self, figure: Mapping[str, Any]) -> str:
        """Return whether the aim holds, and otherwise by how much it is missed."""
        value = self.value(figure)
        if value is None:
            return "not measured"
        return "holds" if value <= self.most else f"missed by {value / self.most - 1:.0%}"

    def verdict(self, figure: Mapping[str, Any]) -> str:
        """Return the aim with its value and outcome, in a line."""
        value = self.value(figure)
        return f"aim {self.figure} at most {self.most:,}: {self.outcome(figure)}" + (
            "" if value is None else f", {value:,}"
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


def aims_of(part: str, figure: Mapping[str, Any]) -> list[Aim]:
    """Return the aims of a part's figure."""
    return [aim for aim in AIMS if aim.is_of(part, figure)]


__all__ = ["AIMS", "Aim", "aims_of"]
