"""Rates in comparison: the contenders take turns for several rounds, so that a slow moment affects all of them."""

from __future__ import annotations

import gc
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    value: float
    unit: str
    ratio: float | None = None
    """The factor between this value and the value of `to`."""
    to: str = ""
    target: float | None = None
    """The least value that the ratio is to reach."""


def verdict(reached: float | None, target: float | None) -> str:
    """Return a target, and whether it holds in this run; nothing without a target."""
    if target is None or reached is None:
        return ""
    return f" (target {target:g}: {'holds' if reached >= target else 'missed'})"


def limit_verdict(reached: float, limit: float) -> str:
    """Return a limit, and whether it holds in this run."""
    return f" (limit {limit:g}: {'holds' if reached <= limit else 'missed'})"


@dataclass(frozen=True)
class Contender:
    """A contender: `run` processes `count` messages."""

    name: str
    count: int
    run: Callable[[], object]


def consume(items: Iterable[object]) -> None:
    """Discard each item, as the reader of a stream does."""
    deque(items, maxlen=0)


def rates(contenders: Sequence[Contender], rounds: int = 7, *, warm_up: int = 1) -> dict[str, float]:
    """Return the messages per second of each contender: the median of interleaved rounds after the warm-up."""
    seconds: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for number in range(warm_up + rounds):
        for contender in contenders:
            gc.collect()
            start = time.perf_counter()
            contender.run()
            elapsed = time.perf_counter() - start
            if number >= warm_up:
                seconds[contender.name].append(elapsed)
    return {contender.name: contender.count / statistics.median(seconds[contender.name]) for contender in contenders}
