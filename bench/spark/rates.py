"""Messages a second of the Spark source, beside what bounds them.

From a slot: by mode, rows of a record batch, sink and master, beside the server's rate without Spark; and the rows of
a snapshot, beside COPY. From captures: the feed and a typed table, beside an identity mapInArrow over the same
messages, and beside the feed's rows from handwritten code, by `parse` in mapInArrow and by pypgoutput in mapInPandas;
and one task beside two, to a sink that drops the rows and to a sink that writes them. Figures are medians of
interleaved rounds after a warm-up.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import sql

from bench.measure import Contender, rates, verdict
from bench.spark.captures import FEED, IDENTITY, PARSE, PYPGOUTPUT, TYPED, Captures
from bench.spark.masters import APART, ONE, TWO, between_masters
from bench.spark.session import start_quiet_session, to_noop
from bench.writer import connect_writer
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.copy_stream import start_copy
from logicalrep.postgres.local_server import LocalServer, find_installation
from logicalrep.postgres.peek import peek_batches
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.server import newest_protocol, query_wal_head
from logicalrep.postgres.sessions.walsender import Walsender
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.spark import snapshot

CAPTURE = Path(__file__).parents[3] / "shared" / "perf" / "v1.bin.gz"
_ROWS = 1_000_000
_WARM_UP = 3
"""The rounds that do not count: in the first ones Java compiles the query's code, which takes as long as a query."""

_PEEK, _WALSENDER, _COPY = "peek without Spark", "walsender without Spark", "COPY without Spark"
_SNAPSHOT = "snapshot to noop"


@dataclass(frozen=True)
class Measured:
    """A line of the table."""

    master: str
    name: str
    messages_per_second: float
    ratio: float | None = None
    to: str = ""
    """The line to which the ratio refers."""
    target: float | None = None
    busy: float | None = None
    """The number of the machine's processors that are busy meanwhile."""


_ONE_SESSION = ", decoded by one session"
_AS_A_TABLE, _WITHOUT_START = ", a typed table", ", without the query's start"
# The ratios of two lines with the least value that each is to reach.
_TARGETS = {
    (f"mode=peek to noop{_WITHOUT_START}", _PEEK): 0.65,
    (f"mode=peek to noop{_AS_A_TABLE}{_WITHOUT_START}", _PEEK): 0.65,
    (FEED, IDENTITY): 0.75,
    (TYPED, IDENTITY): 0.9,
    (FEED, PARSE): 4.0,
    (FEED, PYPGOUTPUT): 20.0,
}
_BETWEEN_MASTERS = 1.4


def measured(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a line for each measurement, with its text."""
    with tempfile.TemporaryDirectory(prefix="logicalrep-bench-") as name, _a_slot() as slot:
        folder = Path(name)
        captures = Captures(arguments.capture, folder) if arguments.capture.is_file() else None
        for master in (ONE, TWO):
            with start_quiet_session(master) as spark:
                contenders = slot.contenders(spark, folder) + (captures.contenders(spark) if captures else [])
                rates_by_name = rates(contenders, arguments.rounds, warm_up=_WARM_UP)
            yield from map(_with_text, _lines(master, rates_by_name | slot.without_start()))
        if captures:
            yield from map(_with_text, _a_second_task(captures, arguments.rounds))


class Slot:
    """A backlog of inserts in transactions of 1000 rows, which is read repeatedly."""

    def __init__(self, server: LocalServer, connection: Any) -> None:
        self._dsn = server.dsn
        self._connection = connection
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, a text, n numeric(12,2), at timestamptz)")
        connection.execute("CREATE PUBLICATION p FOR ALL TABLES")
        create_slot(connection, "backlog")
        for start in range(0, _ROWS, 1000):
            connection.execute(
                "INSERT INTO t SELECT i, 'some text of a row ' || i, i * 0.01, now() "
                "FROM generate_series(%s::bigint, %s) AS i",
                (start, start + 999),
            )
        self._options = PluginOptions(publication_names=("p",), proto_version=newest_protocol(connection))
        self._messages = sum(map(len, peek_batches(connection, "backlog", self._options)))
        self._end = query_wal_head(connection)
        self._batch_seconds: dict[str, list[float]] = {}

    def contenders(self, spark: Any, folder: Path) -> list[Contender]:
        """Return the source's contenders, and the server's without it."""

        def stream(mode: str, sink: str, which: str = "", **options: str) -> Contender:
            name = f"mode={mode} to {sink}{which}"
            run = lambda: self._stream(name, spark, folder, mode, sink, options)  # noqa: E731
            return Contender(name, self._messages, run)

        def sized(rows: int) -> Contender:
            return stream("peek", "noop", f", batches of {rows:,}", rows_per_record_batch=str(rows))

        return [
            Contender(_PEEK, self._messages, self._peek),
            stream("peek", "noop"),
            stream("peek", "noop", _ONE_SESSION, decoding_sessions="1"),
            sized(1000),
            sized(100_000),
            stream("peek", "noop", _AS_A_TABLE, table="public.t"),
            stream("peek", "parquet"),
            Contender(_WALSENDER, self._messages, self._receive),
            stream("walsender", "noop"),
            stream("walsender", "parquet"),
            Contender(_COPY, _ROWS, self._copy_rows),
            Contender(_SNAPSHOT, _ROWS, lambda: self._read_snapshot(spark)),
        ]

    def _peek(self) -> None:
        for _ in peek_batches(self._connection, "backlog", self._options):
            pass

    def without_start(self) -> dict[str, float]:
        """Return the rates of the batches alone, the median of the counted rounds; and forget them."""
        rates_by_name = {
            name + _WITHOUT_START: self._messages / statistics.median(seconds[_WARM_UP:])
            for name, seconds in self._batch_seconds.items()
        }
        self._batch_seconds.clear()
        return rates_by_name

    def _copy_rows(self) -> None:
        for _ in start_copy(self._connection, sql.SQL("COPY {} TO STDOUT").format(sql.Identifier("t"))):
            pass

    def _read_snapshot(self, spark: Any) -> None:
        self._drop_the_copy()
        options = {"dsn": self._dsn, "slot": "copy", "publication": "p", "table": "public.t"}
        with snapshot(**options) as name:
            to_noop(spark.read.format("logicalrep").options(**options, snapshot=name).load())()

    def _drop_the_copy(self) -> None:
        self._connection.execute(
            "SELECT pg_drop_replication_slot('copy') FROM pg_replication_slots WHERE slot_name = 'copy'"
        )

    def _copy_of_the_slot(self) -> None:
        """Create a fresh copy of the slot, so that each reader finds the same state."""
        self._drop_the_copy()
        self._connection.execute("SELECT pg_copy_logical_replication_slot('backlog', 'copy')")

    def _receive(self) -> None:
        self._copy_of_the_slot()
        with Walsender(ConnectionSettings(self._dsn), "copy", self._options) as sender:
            # Not a number of messages: two readings of one WAL may describe tables more or less often.
            while sender.received < self._end:
                sender.receive(10)
        self._wait_until_free()

    def _stream(self, name: str, spark: Any, folder: Path, mode: str, sink: str, options: dict[str, str]) -> None:
        self._copy_of_the_slot()
        run = Path(tempfile.mkdtemp(dir=folder))
        frame = spark.readStream.format("logicalrep").options(
            dsn=self._dsn, slot="copy", publication="p", mode=mode, spool=str(run / "spool"), **options
        )
        writer = frame.load().writeStream.format(sink).option("checkpointLocation", str(run / "checkpoint"))
        if sink == "parquet":
            writer = writer.option("path", str(run / "out"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        took = sum(progress["durationMs"]["triggerExecution"] for progress in query.recentProgress)
        self._batch_seconds.setdefault(name, []).append(took / 1000)
        self._wait_until_free()
        shutil.rmtree(run, ignore_errors=True)

    def _wait_until_free(self) -> None:
        query = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'copy' AND active"
        while self._connection.execute(query).fetchone() is not None:
            time.sleep(0.01)


@contextmanager
def _a_slot() -> Iterator[Slot]:
    server = LocalServer(find_installation(18), logical_decoding_work_mem="64MB", fsync="off")
    with server, connect_writer(server.dsn) as connection:
        yield Slot(server, connection)


def _lines(master: str, rates_by_name: dict[str, float]) -> list[Measured]:
    """Return a line for each measurement, with its ratio to its bound, and a line for each other target."""
    lines = []
    for name, rate in rates_by_name.items():
        bound = _bound(name)
        ratio = rate / rates_by_name[bound] if bound else None
        lines.append(Measured(master, name, rate, ratio, bound, _TARGETS.get((name, bound))))
        for (of, to), target in _TARGETS.items():
            if of == name and to != bound and to in rates_by_name:
                lines.append(Measured(master, name, rate, rate / rates_by_name[to], to, target))
    return lines


def _bound(name: str) -> str:
    if name.startswith("mode=peek"):
        return _PEEK
    if name.startswith("mode=walsender"):
        return _WALSENDER
    if name == _SNAPSHOT:
        return _COPY
    return IDENTITY if name in (FEED, TYPED, PARSE, PYPGOUTPUT) else ""


def _a_second_task(captures: Captures, rounds: int) -> list[Measured]:
    """Return lines for each of the source's ways to read captures."""
    lines = []
    for name, runs in between_masters(captures, 3 * rounds).items():
        for master, run in runs.items():
            ratio, to = (None, "") if master == ONE else (run.ratio, ONE)
            target = _BETWEEN_MASTERS if master == TWO else None
            lines.append(Measured(master, name, run.messages_per_second, ratio, to, target, run.busy))
    return lines


def _with_text(line: Measured) -> dict[str, Any]:
    ratio = "" if line.ratio is None else f"{line.ratio:7.2f} of {line.to}"
    busy = "" if line.busy is None else f", {line.busy:.2f} processors busy"
    rate = f"{line.messages_per_second:12,.0f} messages/s{ratio}{verdict(line.ratio, line.target)}"
    return dataclasses.asdict(line) | {"text": f"{line.master:{len(APART)}}  {line.name:56}{rate}{busy}"}
