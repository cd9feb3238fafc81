"""The program of the part `cluster`, by `spark-submit`: a load, and updates by copying and by marking.

It prints a JSON object for each: seconds, the processor seconds of the driver and of each kind of tasks, and commits.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from typing import Any

import psutil
import psycopg
from pyspark.sql import SparkSession

from bench.tables.measured_tasks import MeasuredEngine
from logicalrep.observe.events import BatchApplied, CopyEnded, RunEvent
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.by_size import BySizeEngine
from logicalrep.pipeline.engines.spark.engine import SparkEngine
from logicalrep.pipeline.engines.spark.jobs import ClassicJobs
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.run import replicate_with

UPDATE = "UPDATE public.accounts SET abalance = abalance + 1 WHERE aid % 3 = 0"


class Timed(Observer):
    """The seconds of loads and of batches."""

    load = applied = 0.0

    def on_event(self, event: RunEvent) -> None:
        match event:
            case CopyEnded(_, _, seconds):
                self.load = seconds
            case BatchApplied(_, _, seconds):
                self.applied += seconds


class Commits:
    """The number and the seconds of commits."""

    def __init__(self) -> None:
        """Measure all commits from now on."""
        self.count, self.seconds = 0, 0.0
        commit = DeltaLog._write

        def write(*arguments: Any, **named: Any) -> Any:
            began = time.monotonic()
            try:
                return commit(*arguments, **named)
            finally:
                self.count += 1
                self.seconds += time.monotonic() - began

        DeltaLog._write = write  # type: ignore[method-assign]


def driver_cpu() -> dict[str, float]:
    """Return the processor seconds of the driver's Python, and of its Java."""
    own = psutil.Process()
    java = next((process for process in own.parents() if process.name() == "java"), None)
    return {
        "Python": sum(own.cpu_times()[:2]),
        "Java": 0.0 if java is None else sum(java.cpu_times()[:2]),
    }


def main(dsn: str, to: str) -> None:
    """Measure, and print."""
    spark = SparkSession.builder.getOrCreate()
    commits = Commits()

    @contextmanager
    def phase(name: str, timed: Timed | None = None) -> Iterator[BySizeEngine]:
        engine, old_seconds = MeasuredEngine(SparkEngine(ClassicJobs(spark))), driver_cpu()
        commits.count, commits.seconds, began = 0, 0.0, time.monotonic()
        with BySizeEngine(lambda _: nullcontext(engine), threading.Event(), "now", Limits()) as by_size:
            yield by_size
        seconds = time.monotonic() - began
        figures = {
            "phase": name,
            "seconds": round(seconds, 2),
            "seconds of the load, or of batches": None if timed is None else round(timed.load + timed.applied, 2),
            "driver's CPU-seconds": {
                name: round(new_seconds - old_seconds[name], 2) for name, new_seconds in driver_cpu().items()
            },
            "tasks": {name: asdict(kind) for name, kind in engine.kinds.items()},
            "bytes for each executor": engine.shared,
            "commits": commits.count,
            "seconds of commits": round(commits.seconds, 3),
            "load of the machine": os.getloadavg()[0],
        }
        print(json.dumps(figures), flush=True)

    def replicate(name: str, mode: str, storage: str) -> None:
        timed = Timed()
        with phase(name, timed) as engine:
            settings = ReplicateSettings(dsn, storage, once=True, write_mode=mode)  # type: ignore[arg-type]
            replicate_with(settings, timed, engine=engine)

    replicate("load", "copy-on-write", f"{to}/copied")
    replicate("load again", "merge-on-read", f"{to}/marked")
    with psycopg.connect(dsn) as connection:
        connection.execute(UPDATE)
    replicate("update by copying", "copy-on-write", f"{to}/copied")
    replicate("update by marking", "merge-on-read", f"{to}/marked")


if __name__ == "__main__":
    main(*sys.argv[1:])
