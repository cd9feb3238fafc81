"""A backlog of changes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.tables.setting import Setting, bytes_written
from logicalrep.pipeline.receiving import ChangeReceiver
from logicalrep.pipeline.state.state import Identity
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.plugin_options import PluginOptions, most_streaming
from logicalrep.postgres.server import newest_protocol, query_wal_head
from logicalrep_runtime.scalars import Lsn

_NAMES = ("one", "two", "three")
_ORIGIN = Lsn(0)


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure a change for each row of three tables, in transactions of 166 to 333 changes."""
    for name in _NAMES:
        setting.make(name, setting.scale)
    storage = setting.folder / "backlog"
    setting.once(storage)
    changes = sum(_change(setting, name) for name in _NAMES)
    received_in, rows = _receive(setting, storage)
    if rows != changes:
        raise RuntimeError(f"{rows} changes were received, not {changes}")
    before = bytes_written(storage)
    ran = setting.once(storage)
    start_of_spark = _spark_seconds()
    yield {
        "measured": f"a backlog of {changes:,} changes of three tables of {setting.scale:,} rows",
        "changes a second": round(changes / max(ran.seconds - start_of_spark, 0.1)),
        "received and dropped": round(changes / received_in),
        "seconds with the start of Spark": round(ran.seconds, 1),
        "seconds of that for the start": round(start_of_spark, 1),
        **ran.used.figures(changes, "changes"),
        "MB written": round((bytes_written(storage) - before) / 1e6, 1),
    }


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
    with ChangeReceiver(settings, identity.slot, options) as receiver:
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
        "from logicalrep.observe.observer import Observer\n"
        "from logicalrep.pipeline.settings import ReplicateSettings\n"
        "from logicalrep.pipeline.storage.storage import Storage\n"
        "from logicalrep.pipeline.engines.spark.start import start_spark\n"
        "settings = ReplicateSettings('dbname=x', '/tmp')\n"
        "with start_spark(settings, Storage('/tmp'), threading.Event(), Observer()) as engine:\n"
        "    engine.run(len, ['x'], 0)\n"
    )
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", program], check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


__all__ = ["measure"]
