"""How long things take beside each other: in turns, again and again, so that a slow moment hits all alike."""

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
    """How often the value of `to` goes into this one."""
    to: str = ""


@dataclass(frozen=True)
class Contender:
    """Something to measure: `run` does its work on `count` messages."""

    name: str
    count: int
    run: Callable[[], object]


def consume(items: Iterable[object]) -> None:
    """Take each item and let it go, as a reader of a stream does."""
    deque(items, maxlen=0)


def rates(contenders: Sequence[Contender], rounds: int = 7, *, warm_up: int = 1) -> dict[str, float]:
    """Messages per second of each, the median of interleaved rounds after those that do not count."""
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
