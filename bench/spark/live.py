"""A server, a query whose sink notes when rows arrive, and a writer, for the measurements of running queries."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from bench.writer import connect_writer
from logicalrep.postgres.local_server import LocalServer, find_installation
from logicalrep.postgres.server import Connection
from logicalrep.postgres.slots.creating import create_slot

MODES = ("auto", "peek")


class Server:
    """A PostgreSQL 18 with a table, a publication, and a slot of each mode's name."""

    def __init__(self, server: LocalServer, connection: Connection) -> None:
        self.dsn = server.dsn
        self.connection = connection
        self._postmaster = psutil.Process(int((server.data / "postmaster.pid").read_text().splitlines()[0]))
        connection.execute("CREATE TABLE t (id bigserial PRIMARY KEY, v text)")
        connection.execute("CREATE PUBLICATION p FOR ALL TABLES")
        for mode in MODES:
            create_slot(connection, mode)

    def connect(self) -> Connection:
        """Return another connection."""
        return connect_writer(self.dsn)

    @contextmanager
    def open_transaction(self) -> Iterator[None]:
        """Leave a transaction that has written a row open meanwhile."""
        with self.connect() as other:
            other.execute("BEGIN")
            other.execute("INSERT INTO t (v) VALUES ('open')")
            yield
            other.execute("ROLLBACK")

    def cpu_seconds(self, but: Connection | None = None) -> float:
        """Return the processor time that the server has taken until now, without the time of a writer's session."""
        without = {self.connection.info.backend_pid, but.info.backend_pid if but is not None else 0}
        # The postmaster counts the processes that have ended.
        total = sum(self._postmaster.cpu_times()[:4])
        for process in self._postmaster.children():
            try:
                total += 0 if process.pid in without else sum(process.cpu_times()[:2])
            except psutil.NoSuchProcess:
                # It has ended in between.
                continue
        return total


@contextmanager
def a_server() -> Iterator[Server]:
    """Yield a running server."""
    settings = {"fsync": "off", "max_wal_size": "4GB", "logical_decoding_work_mem": "64MB"}
    with (
        LocalServer(find_installation(18), **settings) as server,
        connect_writer(server.dsn) as connection,
    ):
        yield Server(server, connection)


class Query:
    """A query whose `foreachBatch` takes the rows to the driver, and notes the seconds since their commits."""

    def __init__(self, spark: Any, server: Server, mode: str, folder: Path) -> None:
        self.rows = 0
        self._arrived: list[tuple[float, NDArray[np.float64]]] = []
        options = {"dsn": server.dsn, "slot": mode, "publication": "p", "mode": mode}
        frame = spark.readStream.format("logicalrep").options(**options).load()
        writer = frame.writeStream.foreachBatch(self._sink).option("checkpointLocation", str(folder))
        self.query = writer.start()

    def _sink(self, batch: Any, number: int) -> None:
        commits = batch.selectExpr("unix_micros(commit_timestamp)").toArrow().column(0).to_numpy()
        arrival = time.time()
        self._arrived.append((arrival, arrival - commits / 1e6))
        self.rows += len(commits)

    def wait_for(self, rows: int, seconds: float = 300) -> None:
        """Wait until as many rows have arrived in all."""
        deadline = time.monotonic() + seconds
        while self.rows < rows:
            if self.query.exception() is not None:
                raise self.query.exception()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.rows} of {rows} rows after {seconds:g} seconds")
            time.sleep(0.002)

    def seconds_since_commit(self, since: float, until: float) -> NDArray[np.float64]:
        """Return the seconds from commit to `foreachBatch` of each row that arrived between two times."""
        selected_lags = [lags for moment, lags in self._arrived if since <= moment < until]
        return np.concatenate([np.empty(0), *selected_lags])

    def seconds_of_batches(self, last: int) -> dict[str, list[float]]:
        """Return how long the last batches with rows took, and each of their stages, as Spark reports it."""
        observers = [observer["durationMs"] for observer in self.query.recentProgress if observer["numInputRows"]][
            -last:
        ]
        stages = dict.fromkeys(stage for observer in observers for stage in observer)
        return {stage: [observer.get(stage, 0) / 1000 for observer in observers] for stage in stages}

    @property
    def batches(self) -> int:
        """The number of batches that have come to the sink."""
        return len(self._arrived)

    def stop(self) -> None:
        """End the query."""
        self.query.stop()


class Writer:
    """A thread that commits `rate` rows a second, in transactions of 20 rows or, if there are fewer, of a tenth."""

    def __init__(self, server: Server, rate: int) -> None:
        self._rate = rate
        self._stop = threading.Event()
        self.connection = server.connect()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the current transaction."""
        self._stop.set()
        self._thread.join()
        self.connection.close()

    def _run(self) -> None:
        size = min(max(self._rate // 10, 1), 20)
        began, rows = time.monotonic(), 0
        while not self._stop.wait(max(rows / self._rate - (time.monotonic() - began), 0)):
            self.connection.execute(
                "INSERT INTO t (v) SELECT repeat('x', 100) FROM generate_series(1, %s) AS i", (size,)
            )
            rows += size


@contextmanager
def run_under_load(spark: Any, server: Server, mode: str, rate: int) -> Iterator[tuple[Query, Writer]]:
    """Yield a query of a mode, and the writer of as many changes a second that it reads."""
    folder = Path(tempfile.mkdtemp(prefix="logicalrep-bench-"))
    server.connection.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", (mode,))
    query = Query(spark, server, mode, folder)
    try:
        # The query's start takes seconds, in which no backlog is to grow.
        server.connection.execute("INSERT INTO t (v) VALUES ('first')")
        query.wait_for(1)
        writer = Writer(server, rate)
        try:
            yield query, writer
        finally:
            writer.stop()
    finally:
        query.stop()
        shutil.rmtree(folder, ignore_errors=True)


def warm_up(spark: Any, server: Server) -> None:
    """Run a query of each mode for a while: Java compiles the code that it has run often."""
    for mode in MODES:
        with run_under_load(spark, server, mode, 100):
            time.sleep(15)


def of_batches(query: Query, last: int) -> dict[str, Any]:
    """Return the seconds of the last batches, and the medians of their stages."""
    seconds_by_stage = query.seconds_of_batches(last)
    whole = rounded(seconds_by_stage.pop("triggerExecution"))
    return {
        "seconds of a batch": whole,
        "of which": {stage: rounded(took)["median"] for stage, took in seconds_by_stage.items()},
    }


def rounded(values: Any) -> dict[str, float]:
    """Return the median and the 99th percentile of a number of seconds."""
    return {"median": round(statistics.median(values), 3), "99%": round(float(np.percentile(values, 99)), 3)}
