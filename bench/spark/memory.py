"""The memory of a stream over time: a writer commits for some minutes, a query reads, and both are sampled.

    python -m bench.spark.memory [--minutes MINUTES] [--mode peek|walsender] [--rate ROWS] [--limit PERCENT]

Prints one JSON object with the resident memory of the stream's processes in MiB, at a tenth of the time, in the middle,
at the end and at its peak, and its growth: for the JVM, with the used heap once a minute; for the Python process that
plans, and in walsender mode receives; and for the Python workers together. Exits with 1 if the planner's or the
workers' memory has grown by more than the limit from the second quarter of the time to the last.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import linear_regression, median
from typing import Any

from bench.spark.session import start_quiet_session
from bench.writer import connect_writer as open_writer
from logicalrep.postgres.local_server import LocalServer, find_installation
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import query_slot

MIB = 1 << 20
EVERY = 3.0
EACH_HEAP = 20
KINDS = ("jvm", "planner", "workers")


class Writer:
    """A thread that commits `rate` rows a second, in transactions of different sizes."""

    def __init__(self, dsn: str, rate: int) -> None:
        self._dsn = dsn
        self._rate = rate
        self._stop = threading.Event()
        self.rows = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the current transaction."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        with open_writer(self._dsn) as connection:
            number = 0
            while not self._stop.wait(max(self.rows / self._rate - (time.monotonic() - began), 0)):
                number += 1
                size = (1, 10, 100, 1000)[number % 4]
                connection.execute(
                    "INSERT INTO t SELECT i, repeat('x', 100), now() FROM generate_series(%s::bigint, %s) AS i",
                    (self.rows, self.rows + size - 1),
                )
                self.rows += size
                if number % 100 == 0:
                    connection.execute("DELETE FROM t")
                    connection.execute("VACUUM t")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--mode", choices=("peek", "walsender"), default="peek")
    parser.add_argument("--rate", type=int, default=3000, help="rows that the writer inserts in a second")
    parser.add_argument("--limit", type=float, default=5.0, help="limit of the growth, in percent")
    arguments = parser.parse_args()

    with (
        tempfile.TemporaryDirectory(prefix="logicalrep-memory-") as folder,
        LocalServer(find_installation(18), fsync="off") as server,
        open_writer(server.dsn) as connection,
        start_quiet_session("local[2]", "512m") as spark,
    ):
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, v text, at timestamptz)")
        connection.execute("CREATE PUBLICATION p FOR ALL TABLES")
        create_slot(connection, "memory")
        options = {"dsn": server.dsn, "slot": "memory", "publication": "p", "mode": arguments.mode, "spool": folder}
        query = (
            spark.readStream.format("logicalrep")
            .options(**options)
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(Path(folder) / "checkpoint"))
            .start()
        )
        writer = Writer(server.dsn, arguments.rate)
        samples: list[dict[str, int]] = []
        heaps: list[int] = []
        retained: list[int] = []
        deadline = time.monotonic() + arguments.minutes * 60
        while time.monotonic() < deadline:
            time.sleep(EVERY)
            if query.exception() is not None:
                raise query.exception()
            samples.append(resident())
            retained.append(query_slot(connection, "memory").retained_bytes)
            if len(samples) % EACH_HEAP == 0:
                heaps.append(live_heap(spark))
        writer.stop()
        query.processAllAvailable()
        at_the_end = query_slot(connection, "memory")
        batches = query.lastProgress["batchId"]
        query.stop()
    observer: dict[str, Any] = {
        "mode": arguments.mode,
        "minutes": arguments.minutes,
        "rows": writer.rows,
        "batches": batches,
        "retained_wal_mib": {
            "median": in_mib(median(retained)),
            "peak": in_mib(max(retained)),
            "end": in_mib(at_the_end.retained_bytes),
        },
    }
    if heaps:
        observer["jvm_live_heap_mib"] = [in_mib(size) for size in heaps]
    observer |= {kind: summary([sample[kind] for sample in samples]) for kind in KINDS}
    print(json.dumps(observer))
    return int(any(observer[kind]["growth_percent"] > arguments.limit for kind in ("planner", "workers")))


def resident() -> dict[str, int]:
    """Return the resident memory of Spark's processes, which are the descendants of this one, in bytes by kind."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            commands[int(folder.name)] = (folder / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            # The process has ended in between.
            continue
    sizes = dict.fromkeys(KINDS, 0)
    for process, command in commands.items():
        ancestor = process
        while ancestor and ancestor != os.getpid():
            ancestor = parents.get(ancestor, 0)
        if not ancestor or process == ancestor:
            continue
        kind = _kind(command)
        if kind is not None:
            sizes[kind] += _resident(process)
    return sizes


def live_heap(spark: Any) -> int:
    """Return the JVM's heap in bytes after a full collection: growth here is a leak."""
    spark._jvm.java.lang.System.gc()
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def _kind(command: str) -> str | None:
    if "org.apache.spark" in command:
        return "jvm"
    if "python_streaming_source_runner" in command:
        return "planner"
    return "workers" if "pyspark.daemon" in command else None


def _resident(process: int) -> int:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def summary(sizes: list[int]) -> dict[str, float]:
    """Return the memory in MiB over time, and its growth after the warm-up, from the second quarter on."""
    count = len(sizes)
    second, last = median(sizes[count // 4 : count // 2]), median(sizes[count * 3 // 4 :])
    slope = _slope(sizes[count // 4 :]) * 60 / EVERY
    return {
        "start": in_mib(sizes[count // 10]),
        "middle": in_mib(sizes[count // 2]),
        "end": in_mib(sizes[-1]),
        "peak": in_mib(max(sizes)),
        "growth_percent": round((last - second) / max(second, 1) * 100, 1),
        "mib_a_minute": in_mib(slope, 2),
    }


def _slope(values: list[int]) -> float:
    """Return the slope of the best-fitting straight line through the values, for each sample."""
    if len(values) < 2:
        return 0.0
    return linear_regression(range(len(values)), values).slope


def in_mib(size: float, digits: int = 0) -> float:
    return round(size / MIB, digits or None)


if __name__ == "__main__":
    sys.exit(main())
