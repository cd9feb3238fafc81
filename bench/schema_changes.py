"""The seconds from a schema change until the Delta table has it: `python -m bench.schema_changes [--scale ROWS]`.

The table has 1 M rows. After each statement a row is changed, and the time ends when the table has that change. With
`--kept` deleted rows, history and changes are kept too. build/bench-schema-changes.json has the same figures.
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

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import LocalServer, find_installation
from logicalrep.postgres.slots import wal_head
from logicalrep.tables.delta.place import Place
from logicalrep.tables.follow.state import State
from logicalrep.tables.replicate.replicate import replicate_with
from logicalrep.tables.report import Report
from logicalrep.tables.settings import ReplicateSettings
from logicalrep.tables.table_settings import TableSettings
from logicalrep.transactions.table_names import TableName

_JSON = Path(__file__).parents[1] / "build" / "bench-schema-changes.json"
_STATEMENTS = (
    "ALTER TABLE t ADD COLUMN a text",
    "ALTER TABLE t ADD COLUMN b int DEFAULT 7",
    "ALTER TABLE t RENAME COLUMN b TO c",
    "ALTER TABLE t ALTER COLUMN price TYPE numeric(12,2)",
    "ALTER TABLE t DROP COLUMN a",
    "ALTER TABLE t REPLICA IDENTITY FULL",
    "ALTER TABLE t REPLICA IDENTITY DEFAULT",
    "ALTER TYPE mood ADD VALUE 'middle'",
    "ALTER TYPE mood RENAME VALUE 'low' TO 'lower'",
    "ALTER TABLE t ALTER COLUMN v TYPE bigint USING v * 10",
    "ALTER TABLE t RENAME TO u",
    "TRUNCATE u",
)


_CHANGE = "INSERT INTO {0} (id, v) VALUES (0, 1) ON CONFLICT (id) DO UPDATE SET v = {0}.v + 1"


class _Loads(Report):
    """The loads since the last look, by their seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def loaded(self, table: TableName, rows: int, seconds: float) -> None:
        """Note the seconds of a load."""
        self.seconds.append(round(seconds, 1))


def main() -> None:
    """Measure, print a line for each statement, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=int, default=1_000_000, help="the rows of the table")
    parser.add_argument("--kept", action="store_true", help="keep deleted rows, history and changes")
    options = parser.parse_args()
    kept = TableSettings(deletes="soft", history=True, append=True) if options.kept else TableSettings()
    folder, stop, report = Path(tempfile.mkdtemp(prefix="logicalrep-bench-")), threading.Event(), _Loads()
    figures: list[dict[str, Any]] = []
    try:
        with (
            LocalServer(find_installation(18), fsync="off", max_wal_size="4GB", shared_buffers="256MB") as server,
            ConnectionSettings(server.dsn, options="-c search_path=public").connect() as connection,
        ):
            connection.execute("CREATE TYPE mood AS ENUM ('low', 'high')")
            connection.execute("CREATE TABLE t (id int PRIMARY KEY, v int8, price numeric(10,2), m mood, filler text)")
            connection.execute(
                b"INSERT INTO t SELECT i, i, i / 7.0, 'low', repeat('x', 80) FROM generate_series(1, %s) AS i",
                (options.scale,),
            )
            connection.execute("CREATE PUBLICATION p FOR TABLE t")
            settings = ReplicateSettings(
                connection=ConnectionSettings(server.dsn),
                to=str(folder),
                publication="p",
                every=0.0,
                table_settings=kept,
            )
            thread = threading.Thread(target=replicate_with, args=(settings, report), kwargs={"stop": stop})
            thread.start()
            _caught_up(connection, folder)
            for statement in _STATEMENTS:
                report.seconds.clear()
                connection.execute(statement.encode())
                began = time.monotonic()
                connection.execute(_CHANGE.format("u" if statement.endswith(" u") else "t").encode())
                _caught_up(connection, folder)
                seconds = round(time.monotonic() - began, 1)
                # The next look finds what the stream does not tell.
                time.sleep(6)
                _caught_up(connection, folder)
                figure = {"statement": statement, "seconds": seconds, "seconds of loads": [*report.seconds]}
                print(json.dumps(figure), flush=True)
                figures.append(figure)
            stop.set()
            thread.join(60)
    finally:
        stop.set()
        shutil.rmtree(folder, ignore_errors=True)
    _JSON.parent.mkdir(exist_ok=True)
    _JSON.write_text(json.dumps({"rows": options.scale, "kept": options.kept, "figures": figures}, indent=2))


def _caught_up(connection: Any, folder: Path) -> None:
    """Wait until all that has committed is in the tables, and none loads."""
    head = wal_head(connection)
    while True:
        state = State.read(Place(str(folder)))
        if state.lsn >= head and state.tables and all(each.state == "following" for each in state.tables.values()):
            return
        time.sleep(0.02)


if __name__ == "__main__":
    main()
