"""The gain of a second task with captures, beside the machine's capacity for it, from sessions that run in turns.

One session has one task and another has two. Two more sessions with one task each run at the same time and share only
the machine: they are the bound for a second task. All sessions run nothing else, and warm up for a minute, while Java
compiles their code: the compiler takes the processor that a second task needs, and the figures stand for a stream
that has run for days. The sessions take turns in each round, so that a slow moment affects all of them.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context

import psutil

from bench.measure import Contender
from bench.spark.captures import FEED, PARQUET, TYPED, Captures
from bench.spark.session import start_quiet_session

ONE, APART, TWO = "local[1]", "local[1] twice", "local[2]"
_WARM_UP = 60.0
"""The warm-up of each session, in seconds."""


@dataclass(frozen=True)
class Run:
    """The figures of one run, or the medians of several."""

    messages_per_second: float
    busy: float
    """The number of the machine's processors that are busy meanwhile."""
    ratio: float = 1.0
    """The factor over one task in the same round."""


def between_masters(captures: Captures, rounds: int) -> dict[str, dict[str, Run]]:
    """Return the medians of each kind of session, for each way to read the captures."""
    return {name: _between(captures, name, rounds) for name in (FEED, TYPED, PARQUET)}


def _between(captures: Captures, name: str, rounds: int) -> dict[str, Run]:
    measured_runs: list[dict[str, Run]] = []
    with ExitStack() as stack:
        first, second, two = (stack.enter_context(_process(master, captures)) for master in (ONE, ONE, TWO))
        for process in (first, second, two):
            process.submit(_warm_up, name).result()
        for _ in range(rounds):
            alone = _of((first,), name, None)
            measured_runs.append({ONE: alone, APART: _of((first, second), name, alone), TWO: _of((two,), name, alone)})
    return {kind: _median([runs[kind] for runs in measured_runs]) for kind in (ONE, APART, TWO)}


def _of(processes: tuple[ProcessPoolExecutor, ...], name: str, alone: Run | None) -> Run:
    """Return the figures of processes that run it at the same time, until the last one is done."""
    results = [process.submit(_run, name) for process in processes]
    runs = [result.result() for result in results]
    rate = len(runs) * min(run.messages_per_second for run in runs)
    return Run(rate, statistics.mean(run.busy for run in runs), rate / alone.messages_per_second if alone else 1.0)


def _median(runs: list[Run]) -> Run:
    median = statistics.median
    return Run(
        median(run.messages_per_second for run in runs),
        median(run.busy for run in runs),
        median(run.ratio for run in runs),
    )


@contextmanager
def _process(master: str, captures: Captures) -> Iterator[ProcessPoolExecutor]:
    """Yield a process with such a session, as a process cannot have two."""
    with ProcessPoolExecutor(1, get_context("spawn"), _begin, (master, captures)) as executor:
        try:
            yield executor
        finally:
            executor.submit(_end).result()


_session = ExitStack()
_contenders: dict[str, Contender] = {}


def _begin(master: str, captures: Captures) -> None:
    spark = _session.enter_context(start_quiet_session(master))
    _contenders.update((contender.name, contender) for contender in captures.by_the_source(spark))


def _end() -> None:
    _session.close()


def _warm_up(name: str) -> None:
    end = time.perf_counter() + _WARM_UP
    while time.perf_counter() < end:
        _contenders[name].run()


def _run(name: str) -> Run:
    gc.collect()
    old_times, start = psutil.cpu_times(), time.perf_counter()
    _contenders[name].run()
    new_times, seconds = psutil.cpu_times(), time.perf_counter() - start
    return Run(_contenders[name].count / seconds, psutil.cpu_count() - (new_times.idle - old_times.idle) / seconds)
