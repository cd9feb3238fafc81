"""Batches of one change, with more and more WAL behind an open transaction, which each peek decodes again."""

from __future__ import annotations

import shutil
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.spark.live import MODES, Query, Server, a_server, of_batches, rounded, warm_up
from bench.spark.session import start_quiet_session
from logicalrep.postgres.slots.slot import query_slot

MIB = 1 << 20
_BEHIND = (0, 100 * MIB, 1024 * MIB)
_BATCHES, _LEAST, _LONGEST = 30, 3, 45.0
"""The batches of a measurement; after so many seconds it ends with fewer, but at least with three."""


def measured(arguments: Namespace) -> Iterator[dict[str, Any]]:
    """Yield a line for each mode and amount of WAL."""
    with a_server() as server, start_quiet_session("local[2]") as spark, server.open_transaction():
        warm_up(spark, server)
        for behind in _BEHIND:
            _grow(server, behind)
            for mode in MODES:
                retained = query_slot(server.connection, mode).retained_bytes
                line = {"WAL behind": f"{retained / MIB:,.0f} MiB", "mode": mode}
                yield line | _batches_of_one(spark, server, mode)


def _grow(server: Server, behind: int) -> None:
    """Commit rows until the slots retain as much, and let them go past these rows."""
    while query_slot(server.connection, MODES[0]).retained_bytes < behind:
        server.connection.execute("INSERT INTO t (v) SELECT repeat('x', 1000) FROM generate_series(1, 1000) AS i")
    for mode in MODES:
        server.connection.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", (mode,))


def _batches_of_one(spark: Any, server: Server, mode: str) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="logicalrep-bench-"))
    began = time.time()
    query = Query(spark, server, mode, folder)
    try:
        for number in range(1, 4):
            _commit(server, query, number)
        warm, cpu = time.time(), server.cpu_seconds()
        batches = 0
        while batches < _BATCHES and (batches < _LEAST or time.time() - warm < _LONGEST):
            _commit(server, query, query.rows + 1)
            batches += 1
        cpu = server.cpu_seconds() - cpu
        # The last batch is reported when it has been committed.
        query.query.processAllAvailable()
        return of_batches(query, batches) | {
            "from commit to foreachBatch": rounded(query.seconds_since_commit(warm, time.time())),
            "CPU-seconds of the server a batch": round(cpu / batches, 3),
            "first three, with the query's start": round(warm - began, 1),
            "batches": batches,
        }
    finally:
        query.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _commit(server: Server, query: Query, rows: int) -> None:
    server.connection.execute("INSERT INTO t (v) VALUES ('one')")
    query.wait_for(rows)
