"""The seconds from a schema change until the Delta table has it: `python -m bench.schema_changes [--scale ROWS]`.

The tables have 1 M rows, one of them in four partitions. After each statement a row is changed, and the time ends when
the table has that change. With `--kept` deleted rows, history and changes are buffered too.
build/bench-schema-changes.json has the same figures.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from bench.writer import connect_writer
from logicalrep.observe.events import CopyEnded, RunEvent
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.config.settings import ReplicateSettings, shared_options
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import LocalServer, find_installation
from logicalrep.postgres.server import query_wal_head

_JSON = Path(__file__).parents[1] / "build" / "bench-schema-changes.json"
_STATEMENTS = (
    ("t", "ALTER TABLE t ADD COLUMN a text"),
    ("t", "ALTER TABLE t ADD COLUMN b int DEFAULT 7"),
    ("t", "ALTER TABLE t RENAME COLUMN b TO c"),
    ("t", "ALTER TABLE t ALTER COLUMN price TYPE numeric(12,2)"),
    ("t", "ALTER TABLE t ALTER COLUMN code TYPE text"),
    ("t", "ALTER TABLE t DROP COLUMN a"),
    ("t", "ALTER TABLE t ALTER COLUMN v SET NOT NULL"),
    ("t", "ALTER TABLE t REPLICA IDENTITY FULL"),
    ("t", "ALTER TABLE t REPLICA IDENTITY DEFAULT"),
    ("t", "ALTER TYPE mood ADD VALUE 'middle'"),
    ("t", "ALTER TYPE mood RENAME VALUE 'low' TO 'lower'"),
    ("t", "ALTER TABLE t ALTER COLUMN v TYPE bigint USING v * 10"),
    ("t", "VACUUM FULL t"),
    ("t", "ALTER PUBLICATION p DROP TABLE t; ALTER PUBLICATION p ADD TABLE t"),
    ("u", "ALTER TABLE t RENAME TO u"),
    ("other.u", "ALTER TABLE u SET SCHEMA other"),
    ("other.u", "TRUNCATE other.u"),
    ("root", "CREATE TABLE leaf4 PARTITION OF root FOR VALUES {beyond}"),
    (
        "root",
        "BEGIN; CREATE TABLE leaf5 PARTITION OF root FOR VALUES {further}; "
        "INSERT INTO root (id, v) SELECT i, 1 FROM generate_series({more}) AS i; COMMIT",
    ),
    ("root", "TRUNCATE leaf1"),
    ("root", "ALTER TABLE root DETACH PARTITION leaf2"),
    ("root", "DROP TABLE leaf1"),
    ("root", "ALTER TABLE root ATTACH PARTITION leaf2 FOR VALUES {third}"),
)
"""Each table whose row is changed afterwards, and the statement."""
_CHANGE = "INSERT INTO {0} (id, v) VALUES (0, 1) ON CONFLICT (id) DO UPDATE SET v = {1}.v + 1"


class _Loads(Observer):
    """The loads since the last look, by their seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_event(self, event: RunEvent) -> None:
        """Note the seconds of a load."""
        match event:
            case CopyEnded(_, _, seconds):
                self.seconds.append(round(seconds, 1))


def main() -> None:
    """Measure, print a line for each statement, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=int, default=1_000_000, help="the rows of the table")
    parser.add_argument("--kept", action="store_true", help="keep deleted rows, history and changes")
    options = parser.parse_args()
    kept = TableSettings(deletes="soft", history=True, append=True) if options.kept else TableSettings()
    folder, stop, observer = Path(tempfile.mkdtemp(prefix="logicalrep-bench-")), threading.Event(), _Loads()
    figures: list[dict[str, Any]] = []
    try:
        with (
            LocalServer(find_installation(18), fsync="off", max_wal_size="4GB", shared_buffers="256MB") as server,
            connect_writer(server.dsn) as connection,
        ):
            connection.execute("CREATE TYPE mood AS ENUM ('low', 'high')")
            connection.execute("CREATE SCHEMA other")
            columns = "v int8, price numeric(10,2), m mood, code varchar(9), filler text"
            connection.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns})".encode())
            connection.execute(f"CREATE TABLE root (id int PRIMARY KEY, {columns}) PARTITION BY RANGE (id)".encode())
            for leaf in range(4):
                leaf_bounds = _bounds(leaf, options.scale)
                connection.execute(f"CREATE TABLE leaf{leaf} PARTITION OF root FOR VALUES {leaf_bounds}".encode())
            for table in ("t", "root"):
                connection.execute(
                    f"INSERT INTO {table} SELECT i, i, i / 7.0, 'low', 'code', repeat('x', 80) FROM "
                    f"generate_series(1, {options.scale - 1}) AS i".encode()
                )
            connection.execute("CREATE PUBLICATION p FOR TABLE t, root WITH (publish_via_partition_root = true)")
            settings = ReplicateSettings(
                dsn=ConnectionSettings(server.dsn),
                to=str(folder),
                publication="p",
                every=0.0,
                **shared_options(kept),
            )
            thread = threading.Thread(target=replicate_with, args=(settings, observer), kwargs={"stop": stop})
            thread.start()
            _wait_until_caught_up(connection, folder)
            for table, text in _STATEMENTS:
                observer.seconds.clear()
                statement = text.format(
                    beyond=_bounds(4, options.scale),
                    further=_bounds(5, options.scale),
                    more=f"{5 * options.scale // 4}, {5 * options.scale // 4 + 999}",
                    third=_bounds(2, options.scale),
                )
                for part in statement.split("; "):
                    connection.execute(part.encode())
                began = time.monotonic()
                connection.execute(_CHANGE.format(table, table.split(".")[-1]).encode())
                _wait_until_caught_up(connection, folder)
                seconds = round(time.monotonic() - began, 1)
                # The next look finds what the stream does not tell.
                time.sleep(6)
                _wait_until_caught_up(connection, folder)
                figure = {"statement": statement, "seconds": seconds, "seconds of loads": [*observer.seconds]}
                print(json.dumps(figure), flush=True)
                figures.append(figure)
            stop.set()
            thread.join(60)
    finally:
        stop.set()
        shutil.rmtree(folder, ignore_errors=True)
    _JSON.parent.mkdir(exist_ok=True)
    _JSON.write_text(json.dumps({"rows": options.scale, "kept": options.kept, "figures": figures}, indent=2))


def _bounds(leaf: int, scale: int) -> str:
    return f"FROM ({leaf * scale // 4}) TO ({(leaf + 1) * scale // 4})"


def _wait_until_caught_up(connection: Any, folder: Path) -> None:
    """Wait until all that has committed is in the tables, and none loads."""
    head = query_wal_head(connection)
    while True:
        state = State.read(Storage(str(folder)))
        if state.lsn >= head and state.tables and all(table.state == "following" for table in state.tables.values()):
            return
        time.sleep(0.02)


if __name__ == "__main__":
    main()
