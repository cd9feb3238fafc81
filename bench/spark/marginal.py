"""The CPU-seconds of another million messages in a running query, apart from the query's start.

Each way reads a backlog of a million messages and a longer one in turns, by `Trigger.AvailableNow`, after a run that
does not count; the difference of two runs has neither the start nor the end of a query. The server's CPU-seconds are
apart from Spark's: the driver's, Java's, and all Python processes'.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.measure import limit_verdict, verdict
from bench.spark.live import Server, a_server
from bench.spark.session import start_quiet_session
from logicalrep.postgres.peek import peek_batches
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.server import newest_protocol
from logicalrep.postgres.slots.creating import create_slot

_MESSAGES = 1_000_000
_TRANSACTION = 1000
_FEED, _TYPED = "feed", "typed table"
_OPTIONS: dict[str, dict[str, str]] = {_FEED: {}, _TYPED: {"table": "public.orders"}}
_LIMITS = {_FEED: 6.0, _TYPED: 4.0}
"""The most CPU-seconds a million messages that each form is to take, without the server's."""
_LEAST_RATE = 200_000.0
"""The least messages a second in a batch, on two quiet processors."""
_PLANNER = "python_streaming_source_runner"


@dataclass(frozen=True)
class Run:
    """The use of one query."""

    seconds: Counter[str]
    """CPU-seconds by kind of process: Python, Java, and the server."""
    batch_seconds: float
    """The duration of the batches, without the query's start."""

    @property
    def spark(self) -> float:
        """The CPU-seconds of all of Spark's processes."""
        return self.seconds["Python"] + self.seconds["Java"]


def measured(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a line for each mode and form of rows, with its text."""
    with a_server() as server:
        backlogs = _Backlogs(server, arguments.millions)
        with start_quiet_session("local[2]") as spark:
            for mode in ("peek", "walsender"):
                for form, options in _OPTIONS.items():
                    yield backlogs.line(spark, mode, form, options, arguments.rounds)


class _Backlogs:
    """Two slots, one of which has the last million messages of the other."""

    def __init__(self, server: Server, millions: int) -> None:
        self._server = server
        connection = server.connection
        connection.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, item text, price numeric(12,2), at timestamptz)"
        )
        create_slot(connection, "long")
        self._write(0, (millions - 1) * _MESSAGES)
        create_slot(connection, "short")
        self._write((millions - 1) * _MESSAGES, millions * _MESSAGES)
        plugin = PluginOptions(publication_names=("p",), proto_version=newest_protocol(connection))
        self._counts = {slot: sum(map(len, peek_batches(connection, slot, plugin))) for slot in ("short", "long")}

    def line(self, spark: Any, mode: str, form: str, options: dict[str, str], rounds: int) -> dict[str, Any]:
        """Return the medians of the rounds, and their text."""
        # Java compiles the query's code in the first runs.
        for slot in ("short", "long"):
            self._run(spark, slot, mode, options)
        pairs = [
            tuple(self._run(spark, slot, mode, options) for slot in ("short", "long")) for _ in range(max(rounds, 1))
        ]
        millions = (self._counts["long"] - self._counts["short"]) / 1e6
        figures = {
            kind: statistics.median((long.seconds[kind] - short.seconds[kind]) / millions for short, long in pairs)
            for kind in ("Python", "Java", "server")
        }
        spark_seconds = statistics.median((long.spark - short.spark) / millions for short, long in pairs)
        short_millions = self._counts["short"] / 1e6
        start = statistics.median(
            short.spark - (long.spark - short.spark) / millions * short_millions for short, long in pairs
        )
        rate = statistics.median(1e6 * millions / (long.batch_seconds - short.batch_seconds) for short, long in pairs)
        parts = ", ".join(f"{kind} {seconds:.2f}" for kind, seconds in figures.items() if kind != "server")
        text = (
            f"mode={mode}, {form}: {spark_seconds:.2f} CPU-seconds a million messages"
            f"{limit_verdict(spark_seconds, _LIMITS[form])}: {parts}; the server {figures['server']:.2f}; "
            f"a query's start and end {start:.1f}; in batches {rate:,.0f} messages/s{verdict(rate, _LEAST_RATE)}"
        )
        return {
            "mode": mode,
            "form": form,
            "CPU-seconds a million": spark_seconds,
            "limit": _LIMITS[form],
            "of which": figures,
            "CPU-seconds of the start": start,
            "messages a second in batches": rate,
            "text": text,
        }

    def _write(self, first: int, last: int) -> None:
        """Insert, update and delete rows: 7, 2 and 1 of ten changes."""
        connection, inserted = self._server.connection, _TRANSACTION * 7 // 10
        for start in range(first, last, _TRANSACTION):
            with connection.transaction():
                connection.execute(
                    "INSERT INTO orders SELECT i, 'some text of a row ' || i, i * 0.01, now() "
                    "FROM generate_series(%s::bigint, %s) AS i",
                    (start, start + inserted - 1),
                )
                connection.execute(
                    "UPDATE orders SET item = item || ', changed' WHERE id BETWEEN %s AND %s",
                    (start, start + _TRANSACTION * 2 // 10 - 1),
                )
                connection.execute(
                    "DELETE FROM orders WHERE id BETWEEN %s AND %s", (start, start + _TRANSACTION // 10 - 1)
                )

    def _run(self, spark: Any, slot: str, mode: str, options: dict[str, str]) -> Run:
        connection = self._server.connection
        # A fresh copy of the slot, so that each query finds the same state.
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'copy'"
        )
        connection.execute("SELECT pg_copy_logical_replication_slot(%s, 'copy')", (slot,))
        folder = Path(tempfile.mkdtemp(prefix="logicalrep-bench-"))
        seconds_at_start = self._seconds()
        frame = spark.readStream.format("logicalrep").options(
            dsn=self._server.dsn, slot="copy", publication="p", mode=mode, **options
        )
        writer = frame.load().writeStream.format("noop").option("checkpointLocation", str(folder))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        self._wait_until_ended()
        seconds_at_end = self._seconds()
        shutil.rmtree(folder, ignore_errors=True)
        batch_seconds = sum(progress["durationMs"]["triggerExecution"] for progress in query.recentProgress) / 1000
        return Run(seconds_at_end - seconds_at_start, batch_seconds)

    def _seconds(self) -> Counter[str]:
        """Return the CPU-seconds of all processes by kind; a parent has the seconds of its ended processes."""
        seconds: Counter[str] = Counter({"server": self._server.cpu_seconds()})
        for process in _spark_processes():
            with suppress(psutil.Error):
                times = process.cpu_times()
                is_java = process.name() == "java"
                seconds["Java" if is_java else "Python"] += times.user + times.system
                seconds["Python"] += times.children_user + times.children_system
        return seconds

    def _wait_until_ended(self) -> None:
        """Wait until the query's Python process in the driver and its server sessions have ended."""
        active = "SELECT 1 FROM pg_replication_slots WHERE slot_name = 'copy' AND active"
        while self._server.connection.execute(active).fetchone() or any(map(_plans, _spark_processes())):
            time.sleep(0.02)


def _spark_processes() -> list[psutil.Process]:
    """Return Java and all processes that it has started."""
    return [
        process
        for java in psutil.Process().children()
        if java.name() == "java"
        for process in (java, *java.children(recursive=True))
    ]


def _plans(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any(_PLANNER in part for part in process.cmdline())
    return False
