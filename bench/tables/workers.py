"""The gain of a second worker of a standalone cluster, into an object store on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bench.tables.setting import Setting
from tests.pipeline.storage.stores import start_object_store
from tests.spark.cluster import cluster, submitted

_PROGRAM = """
import json
import sys

import psycopg

import logicalrep
from logicalrep.observe.events import BatchApplied, CopyEnded
from logicalrep.observe.observer import Observer

dsn, to = sys.argv[1:]


class Timed(Observer):
    load = apply = 0.0

    def on_event(self, event):
        match event:
            case CopyEnded(_, _, seconds):
                self.load = seconds
            case BatchApplied(_, _, seconds):
                self.apply += seconds


slow, timed = Timed(), Timed()
logicalrep.replicate(dsn, f"{to}/slow", once=True, observer=slow, load_rate=20)
logicalrep.replicate(dsn, to, once=True, observer=timed)
with psycopg.connect(dsn) as connection:
    connection.execute("UPDATE public.accounts SET abalance = abalance + 1 WHERE aid % 3 = 0")
logicalrep.replicate(dsn, to, once=True, observer=timed)
print(json.dumps([slow.load, timed.load, timed.apply]))
"""


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure a first load, and an update of a third of the rows, by one worker of one core and by two.

    The server, the store and the workers share the machine's cores, so the load is also measured with sessions that
    read 20 MB a second: more workers are more sessions then.
    """
    rows = 3 * setting.scale
    setting.make("accounts", rows)
    setting.connection.execute("VACUUM ANALYZE accounts")
    program = setting.folder / "program.py"
    program.write_text(_PROGRAM)
    seconds_by_workers: dict[int, list[float]] = {}
    for workers in (1, 2):
        folder = setting.folder / f"cluster{workers}"
        folder.mkdir()
        with start_object_store() as store, cluster(folder, workers) as master:
            storage = f"s3://lake/shop{workers}"
            done = submitted(master, program, setting.server.dsn, storage, settings={}, environment=store.environment)
            if done.returncode:
                raise RuntimeError(done.stderr)
            seconds_by_workers[workers] = slow, load, apply = json.loads(done.stdout.splitlines()[-1])
            yield {
                "measured": f"{rows:,} rows by a cluster with workers of one core: {workers}",
                "first load with 20 MB a second of each session, rows a second": round(rows / slow),
                "first load, rows a second": round(rows / load),
                f"applying {rows // 3:,} updates, changes a second": round(rows / 3 / apply),
                "gains": [
                    round(base_seconds / seconds, 2)
                    for base_seconds, seconds in zip(seconds_by_workers[1], seconds_by_workers[workers], strict=True)
                ],
            }
        setting.connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE active_pid IS NULL"
        )


__all__ = ["measure"]
