"""A whole run over a catalog that owns its tables: loads, changes, changed columns, kills, a reload and the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import logicalrep
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.dropping import drop
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.command import Command
from tests.pipeline.formats.iceberg.catalogs.live_servers import LiveCatalog
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database
from tests.waiting import eventually

CHANGES_OF_COLUMNS = (
    "SELECT 1",
    "DELETE FROM lines WHERE id > 3",
    "ALTER TABLE lines ADD COLUMN c numeric(5, 2) DEFAULT 1.5",
    "ALTER TABLE lines RENAME COLUMN a TO name",
    "ALTER TABLE lines DROP COLUMN b",
    "UPDATE lines SET c = 2 WHERE id = 2",
)
"""The statements after each of which a run follows, of a table with the columns `id`, `a` and `b`."""
_KILLS = 3


class WholeRun:
    def __init__(self, db: Database, lake: Path, live: LiveCatalog, **options: Any) -> None:
        self.db, self.lake, self.live = db, lake, live
        self.catalog = CatalogSettings(live.uri, live.options)
        self.storage = Storage(str(lake), dict(live.storage_options))
        self.connection = ConnectionSettings(db.dsn)
        self.of_reader: dict[str, Any] = {
            "catalog": live.uri,
            "catalog_options": dict(live.options),
            "storage_options": dict(live.storage_options),
        }
        self.options = {
            **self.of_reader,
            "format": "iceberg",
            "write_mode": "merge-on-read",
            "history": True,
            **options,
        }

    def play(self) -> None:
        self.db.execute(
            "CREATE TABLE lines (id int PRIMARY KEY, a text, b int)",
            "INSERT INTO lines SELECT i, 'text ' || i, i FROM generate_series(1, 20) AS i",
            'CREATE TABLE "Odd #1?" (k text PRIMARY KEY, v numeric)',
            """INSERT INTO "Odd #1?" SELECT 'k' || i, i / 7.0 FROM generate_series(1, 300) AS i""",
        )
        self._follow_changes_of_columns()
        self._survive_kills()
        resync(self.connection, self.storage, ())
        self.db.execute("DELETE FROM lines WHERE id % 3 = 0", "ALTER TABLE lines RENAME TO rows")
        self._replicate()
        self._check("rows", 'public."Odd #1?"')
        drop(self.connection, self.storage, deletes_tables=True, catalog=self.catalog)
        assert not table_format(self.storage, "iceberg", self.catalog).find_folders()
        assert not [path for path in self.lake.rglob("*") if path.is_file()]

    def _replicate(self) -> None:
        # Rows are marked in small files too.
        limits = Limits(small_file_bytes=1, marked_share=1, past_state_seconds=1e-6, upkeep_versions=4)
        replicate_once(self.db, self.lake, limits=limits, **self.options)

    def _follow_changes_of_columns(self) -> None:
        times: list[datetime] = []
        for statement in CHANGES_OF_COLUMNS:
            self.db.execute(statement)
            self._replicate()
            times.append(self.db.value("SELECT clock_timestamp()"))
        self._check("lines", 'public."Odd #1?"')
        assert logicalrep.read(self.lake, "lines~history", **self.of_reader).arrow().num_rows == 21
        if not self.live.has_past:
            return
        versions = [logicalrep.read(self.lake, "lines", at, **self.of_reader).arrow() for at in times]
        assert [version.num_rows for version in versions] == [20, 3, 3, 3, 3, 3]
        names = [version.schema.names for version in versions]
        assert [names[0], names[2], names[-1]] == [["id", "a", "b"], ["id", "a", "b", "c"], ["id", "name", "c"]]

    def _survive_kills(self) -> None:
        options = ["--format", "iceberg", "--history", "--write-mode", "merge-on-read", "--every", "0.1"]
        options += ["--catalog", self.live.uri]
        for name, values in (
            ("--catalog-option", self.live.options),
            ("--storage-option", self.live.storage_options),
        ):
            options += [text for key, value in values.items() for text in (name, f"{key}={value}")]
        command = Command(self.db, self.lake, self.lake.parent / "log", "local", options)
        for number in range(_KILLS):
            with self._changing(1000 * (number + 1)):
                start = State.read(self.storage).lsn
                command.start()
                try:
                    eventually(partial(self._is_past, start, command))
                finally:
                    command.kill("")
        self._replicate()
        self._check("lines", 'public."Odd #1?"')

    def _is_past(self, start: Lsn, command: Command) -> bool:
        assert command.is_alive(), command.log()
        return State.read(self.storage).lsn > start

    @contextmanager
    def _changing(self, first: int) -> Iterator[None]:
        """Change rows all the time."""
        ends = threading.Event()

        def change() -> None:
            with closing(self.db.writer()) as connection:
                number = first
                while not ends.wait(0.01):
                    number += 1
                    connection.execute("INSERT INTO lines VALUES (%s, 'new', 1)", (number,))
                    connection.execute("UPDATE lines SET c = c + 1 WHERE id = %s", (number // 2,))
                    connection.execute("DELETE FROM lines WHERE id = %s", (number - 7,))
                    connection.execute('UPDATE "Odd #1?" SET v = v + 1 WHERE k = %s', (f"k{number % 300}",))

        thread = threading.Thread(target=change)
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()

    def _check(self, *names: str) -> None:
        verdicts = [verdict.result for verdict in verify(self.connection, self.storage, catalog=self.catalog)]
        assert verdicts == ["equal"] * len(names)
        for name in names:
            rows = logicalrep.read(self.lake, name, **self.of_reader).arrow()
            assert rows.num_rows == self.db.value(f"SELECT count(*) FROM {name}")
