"""The seconds from a commit to `foreachBatch`, with the server's processor time beside them."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from bench.spark.live import MODES, Query, Server, Writer, a_server, rounded, run_under_load, warm_up
from bench.spark.session import start_quiet_session
from logicalrep.postgres.slots.slot import query_slot

_RATES = (1, 100, 2000)
_WARM_UP = 15.0
"""The seconds that do not count."""
_MINUTES_OF_PEEK = 3


def measured(arguments: Namespace) -> Iterator[dict[str, Any]]:
    """Yield a line for each mode and rate of changes."""
    with a_server() as server, start_quiet_session("local[2]") as spark:
        warm_up(spark, server)
        for rate in _RATES:
            for mode in MODES:
                with run_under_load(spark, server, mode, rate) as (query, writer):
                    time.sleep(_WARM_UP)
                    line = _window(server, query, writer, arguments.seconds)
                    yield {"changes a second": rate, "mode": mode} | line


def steady(arguments: Namespace) -> Iterator[dict[str, Any]]:
    """Yield a line for each minute at 2,000 changes a second, behind a transaction that stays open throughout."""
    for mode, minutes in zip(MODES, (arguments.minutes, min(_MINUTES_OF_PEEK, arguments.minutes)), strict=True):
        with a_server() as server, start_quiet_session("local[2]") as spark, server.open_transaction():
            warm_up(spark, server)
            with run_under_load(spark, server, mode, _RATES[-1]) as (query, writer):
                time.sleep(_WARM_UP)
                for minute in range(1, minutes + 1):
                    line = _window(server, query, writer, 60)
                    retained = query_slot(server.connection, mode).retained_bytes >> 20
                    yield {"mode": mode, "minute": minute} | line | {"WAL behind": f"{retained} MiB"}


def _window(server: Server, query: Query, writer: Writer, seconds: float) -> dict[str, Any]:
    began, rows, batches, cpu = time.time(), query.rows, query.batches, server.cpu_seconds(writer.connection)
    time.sleep(seconds)
    took, cpu = time.time() - began, server.cpu_seconds(writer.connection) - cpu
    if query.query.exception() is not None:
        raise query.query.exception()
    batches = query.batches - batches
    return {
        "from commit to foreachBatch": rounded(query.seconds_since_commit(began, began + took)),
        "seconds of a batch": rounded(query.seconds_of_batches(batches)["triggerExecution"]),
        "batches": batches,
        "changes a second that arrived": round((query.rows - rows) / took),
        "CPU-seconds of the server a minute": round(cpu / took * 60, 1),
    }
