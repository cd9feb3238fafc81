"""The cost of a batch as it grows with the changes, and with the number of tables."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.tables.setting import Setting, bytes_written

_BATCHES = (1_000, 10_000, 100_000, 1_000_000)
_TABLES = (1, 20, 200)
_PARTITIONS = (100, 300, 600, 3_000)
_ROWS = 100_000
"""The rows of all tables together."""
_CHANGES = 1_000
"""The changes of a batch of all tables."""
_ROUNDS = 5
_SMALL_TABLES, _SMALL_ROWS = 300, 10
"""The number of tables of the part `idle`, and the rows of each."""


def of_batches(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure transactions of updates that are spread over a large table."""
    setting.make("large", setting.scale)
    storage = setting.folder / "batches"
    setting.once(storage)
    for changes in _BATCHES:
        if changes > setting.scale:
            continue
        rounds = _ROUNDS if changes < _BATCHES[-1] else 1
        every = setting.scale // changes

        def change(changes: int = changes, every: int = every) -> int:
            statement = f"UPDATE large SET abalance = abalance + 1 WHERE aid % {every} = 0 AND aid <= {changes * every}"
            return int(setting.connection.execute(statement).rowcount)

        yield {"measured": f"a transaction of {changes:,} updates of {setting.scale:,} rows"} | _measured(
            setting, storage, change, rounds
        )


def of_partitions(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure the first load of a table in few and many partitions."""
    for count in _PARTITIONS:
        execute = setting.connection.execute
        execute("DROP TABLE IF EXISTS parted")
        execute("CREATE TABLE parted (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)")
        width = _ROWS // count + 1
        for number in range(count):
            bounds = f"FROM ({number * width}) TO ({number * width + width})"
            execute(f"CREATE TABLE parted_{number} PARTITION OF parted FOR VALUES {bounds}")
        execute(f"INSERT INTO parted SELECT i, i FROM generate_series(0, {_ROWS - 1}) AS i")
        ran = setting.once(setting.folder / f"partitions{count}")
        yield {
            "measured": f"first load of {_ROWS:,} rows in {count:,} partitions",
            "seconds with the start of Spark": round(ran.seconds, 1),
            **ran.used.figures(count, "partitions"),
        }


def of_tables(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure the first load of many tables, and changes of all of them and of one."""
    for count in _TABLES:
        names = [f"t{number}" for number in range(count)]
        rows = _ROWS // count
        for name in names:
            setting.make(name, rows)
        storage = setting.folder / f"tables{count}"
        ran = setting.once(storage)
        yield {
            "measured": f"first load of {_ROWS:,} rows in {count} tables",
            "seconds with the start of Spark": round(ran.seconds, 1),
            **ran.used.figures(_ROWS, "rows"),
        }
        for changed in sorted({1, count}):

            def change(changed: int = changed, changes: int = _CHANGES // changed, names: list[str] = names) -> int:
                with setting.connection.transaction():
                    for name in names[:changed]:
                        setting.connection.execute(f"UPDATE {name} SET abalance = abalance + 1 WHERE aid <= {changes}")
                return changes * changed

            yield {"measured": f"a transaction of {_CHANGES:,} updates of {changed} of {count} tables"} | _measured(
                setting, storage, change, _ROUNDS
            )
        for name in names:
            setting.connection.execute(f"DROP TABLE {name}")


def of_idle_tables(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure the first load of many small tables, and a minute without changes."""
    for number in range(_SMALL_TABLES):
        setting.make(f"small_{number}", _SMALL_ROWS)
    storage = setting.folder / "idle"
    ran = setting.once(storage, "--engine", "local")
    yield {
        "measured": f"first load of {_SMALL_TABLES} tables of {_SMALL_ROWS} rows",
        "seconds": round(ran.seconds, 1),
        "CPU-seconds": round(ran.used.seconds, 1),
        "the server's CPU-seconds": round(ran.used.server_seconds, 1),
    }
    setting.connection.execute("ALTER SYSTEM SET log_statement = 'all'")
    setting.connection.execute("SELECT pg_reload_conf()")
    with setting.following(storage, "--engine", "local") as usage:
        first, began = setting.server.log().count("statement: "), time.monotonic()
        time.sleep(2 * setting.seconds)
        statements, seconds = setting.server.log().count("statement: ") - first, time.monotonic() - began
    yield {
        "measured": f"{_SMALL_TABLES} tables without changes",
        "statements a minute": round(statements * 60 / seconds),
        "of a core": round(usage.used.seconds / seconds, 4),
        "of a core, the server": round(usage.used.server_seconds / seconds, 4),
    }


def _measured(setting: Setting, storage: Path, change: Callable[[], int], rounds: int) -> dict[str, Any]:
    with setting.following(storage) as usage:
        # The first batch starts Spark's workers.
        change()
        setting.wait(storage)
        old_bytes, seconds, changes = bytes_written(storage), [], 0
        for _ in range(rounds):
            changes += change()
            began = time.monotonic()
            setting.wait(storage)
            seconds.append(time.monotonic() - began)
        written = bytes_written(storage) - old_bytes
    return {
        "seconds to visible, median": round(statistics.median(seconds), 2),
        "MB written a batch": round(written / rounds / 1e6, 1),
        **usage.used.figures(changes * (rounds + 1) // rounds, "changes"),
    }


__all__ = ["of_batches", "of_idle_tables", "of_partitions", "of_tables"]
