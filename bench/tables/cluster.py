"""The cost of a load and of updates for the tasks and the driver of a cluster, and a model of more executors."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from bench.tables import cluster_program
from bench.tables.setting import Setting
from tests.conftest import ROOT
from tests.pipeline.storage.stores import start_object_store
from tests.spark.cluster import cluster, submitted

_LONGEST = 3600.0
"""The longest time for all phases by one number of workers, in seconds."""
_EXECUTORS = (1, 2, 8, 32)
_KIND = ("tasks", "seconds", "cpu", "sent", "received")


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure by one worker and by two, each pinned to a core, and give the model of more from what one has taken.

    The server, the store and the driver share the same cores, so that the seconds of two workers stand for a cluster
    only if the machine has more; processor seconds and bytes of tasks are the same anyway.
    """
    rows = 3 * setting.scale
    setting.make("accounts", rows)
    setting.connection.execute("VACUUM ANALYZE accounts")
    cores = sorted(os.sched_getaffinity(0))
    for workers in (1, 2):
        folder = setting.folder / f"cluster{workers}"
        folder.mkdir()
        pinned = [cores[number % len(cores)] for number in range(workers)]
        with start_object_store() as store, cluster(folder, workers, cores=pinned) as master:
            done = submitted(
                master,
                ROOT / cluster_program.__file__,
                setting.server.dsn,
                f"s3://lake/by{workers}",
                settings={},
                environment=store.environment,
                timeout=_LONGEST,
            )
            if done.returncode:
                raise RuntimeError(done.stderr)
        for line in done.stdout.splitlines():
            if line.startswith('{"phase"'):
                figures = json.loads(line)
                yield {"measured": f"{rows:,} rows, workers of one core: {workers}", **_of_each_task(figures)}
                if workers == 1:
                    yield {"model": figures["phase"], **{f"seconds by {n}": modelled(figures, n) for n in _EXECUTORS}}
        setting.connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE active_pid IS NULL"
        )


def _of_each_task(figures: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the figures per task in place of the totals of all tasks."""
    tasks = {
        name: {"tasks": kind["tasks"]}
        | {f"{figure} a task": round(kind[figure] / max(kind["tasks"], 1), 4) for figure in _KIND[1:]}
        for name, kind in figures["tasks"].items()
    }
    return {**figures, "tasks": tasks}


def modelled(figures: Mapping[str, Any], executors: int) -> tuple[float, float]:
    """Return the seconds of a phase by more executors of one core, with all that can overlap, and with nothing.

    docs/explanation/performance.md has the formula.
    """
    driver = sum(figures["driver's CPU-seconds"].values())
    of_tasks = sum(kind["cpu"] / kind["tasks"] * -(-kind["tasks"] // executors) for kind in figures["tasks"].values())
    commits = figures["seconds of commits"]
    return round(max(driver, of_tasks) + commits, 2), round(driver + of_tasks + commits, 2)


__all__ = ["measure", "modelled"]
