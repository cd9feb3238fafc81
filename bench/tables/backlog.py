"""A backlog of changes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.tables.setting import Setting, bytes_written
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.receiving import ChangeReceiver
from logicalrep.pipeline.state.state import Identity
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.plugin_options import PluginOptions, most_streaming
from logicalrep.postgres.server import newest_protocol, query_wal_head
from logicalrep_runtime.scalars import Lsn

_NAMES = ("one", "two", "three")
_ORIGIN = Lsn(0)
_OF_A_TRANSACTION = 1000
"""The changes of a transaction that are spread over a table."""


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure a change for each row of three tables, in transactions of 166 to 333 changes."""
    for name in _NAMES:
        setting.make(name, setting.scale)
    storages = {engine: setting.folder / f"backlog-{engine}" for engine in ("spark", "local")}
    for engine, storage in storages.items():
        setting.once(storage, "--engine", engine)
    changes = sum(_change(setting, name) for name in _NAMES)
    received_in, rows = _receive(setting, storages["spark"])
    if rows != changes:
        raise RuntimeError(f"{rows} changes were received, not {changes}")
    for engine, storage in storages.items():
        old_bytes = bytes_written(storage)
        ran = setting.once(storage, "--engine", engine)
        start_of_spark = _spark_seconds() if engine == "spark" else 0.0
        what = f"a backlog of {changes:,} changes of three tables of {setting.scale:,} rows"
        yield {
            "measured": f"{what}, --engine {engine}",
            "changes a second": round(changes / max(ran.seconds - start_of_spark, 0.1)),
            "received and dropped": round(changes / received_in),
            "seconds with the start of Spark": round(ran.seconds, 1),
            "seconds of that for the start": round(start_of_spark, 1),
            **ran.used.figures(changes, "changes"),
            "MB written": round((bytes_written(storage) - old_bytes) / 1e6, 1),
        }


def of_one_table(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure as many changes as a table has rows, spread over all of it: how often it is committed to, and written."""
    for mode in ("copy-on-write", "merge-on-read"):
        setting.connection.execute("DROP TABLE IF EXISTS spread")
        setting.make("spread", setting.scale)
        storage = setting.folder / mode
        setting.once(storage, "--write-mode", mode)
        changes = _spread(setting)
        log, old_bytes = storage / "public/spread/_delta_log", bytes_written(storage)
        commits = len(list(log.glob("*.json")))
        ran = setting.once(storage, "--write-mode", mode)
        yield {
            "measured": f"a backlog of {changes:,} changes spread over {setting.scale:,} rows, {mode}",
            "commits": len(list(log.glob("*.json"))) - commits,
            "MB of data files in the log": round((bytes_written(storage) - old_bytes) / 1e6, 1),
            "seconds": round(ran.seconds, 1),
            **ran.used.figures(changes, "changes"),
        }


def _spread(setting: Setting) -> int:
    """Make transactions of 600 updates, 200 deletes and 200 inserts; return the number of changes."""
    changes = 0
    for number in range(setting.scale // _OF_A_TRANSACTION):
        # A prime step spreads the rows of each transaction over the table, and no row is deleted twice.
        rows = f"1 + (i * 7919 + {number}::bigint * 1000) * 104729 % {setting.scale}"
        with setting.connection.transaction():
            for statement in (
                f"UPDATE spread SET abalance = {number} WHERE aid IN (SELECT {rows} FROM generate_series(0, 599) AS i)",
                f"DELETE FROM spread WHERE aid IN (SELECT {rows} FROM generate_series(600, 799) AS i)",
                f"INSERT INTO spread SELECT {10**8 + number * 1000} + i, 1, 1, '' FROM generate_series(1, 200) AS i",
            ):
                changes += setting.connection.execute(statement).rowcount
    return changes


def _change(setting: Setting, name: str) -> int:
    """Update a third of the rows twice, delete a sixth, and insert a sixth; return the number of changes."""
    changes = 0
    for start in range(1, setting.scale, 1000):
        stop, first = start + 333, start + 10**8
        for statement in (
            f"UPDATE {name} SET abalance = abalance + 1 WHERE aid BETWEEN {start} AND {stop - 1}",
            f"UPDATE {name} SET bid = bid + 1 WHERE aid BETWEEN {start} AND {stop - 1}",
            f"DELETE FROM {name} WHERE aid BETWEEN {stop} AND {stop + 166}",
            f"INSERT INTO {name} SELECT i, 1, 1, '' FROM generate_series({first}, {first + 166}) AS i",
        ):
            changes += setting.connection.execute(statement).rowcount
    return changes


def _receive(setting: Setting, storage: Path) -> tuple[float, int]:
    """Receive what the slot has, and drop it. Returns the seconds and the number of changes."""
    identity = Identity.read(Storage(str(storage)))
    if identity is None:
        raise RuntimeError(f"{storage} has no identity")
    end, rows = query_wal_head(setting.connection), 0
    settings = ConnectionSettings(setting.server.dsn)
    version = newest_protocol(setting.connection)
    options = PluginOptions(
        publication_names=(identity.publication,), proto_version=version, streaming=most_streaming(version)
    )
    with ChangeReceiver(settings, identity.slot, options, limits=Limits()) as receiver:
        receiver.wait_until_started()
        began = time.monotonic()
        reached = _ORIGIN
        while reached < end:
            receiver.wait(0.1)
            taken = receiver.take()
            rows += sum(part.num_rows for part in taken.parts)
            reached = taken.end
        return time.monotonic() - began, rows


def _spark_seconds() -> float:
    """Return the seconds that a local session takes to start and end, with a first task."""
    program = (
        "import threading\n"
        "from logicalrep.observe.observer import Observers\n"
        "from logicalrep.pipeline.config.settings import ReplicateSettings\n"
        "from logicalrep.pipeline.storage.storage import Storage\n"
        "from logicalrep.pipeline.engines.spark.start import start_spark\n"
        "settings = ReplicateSettings('dbname=x', '/tmp')\n"
        "with start_spark(settings, Storage('/tmp'), threading.Event(), Observers()) as engine:\n"
        "    engine.run(len, ['x'], 0)\n"
    )
    began = time.monotonic()
    subprocess.run([sys.executable, "-P", "-c", program], check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


__all__ = ["measure", "of_one_table"]
