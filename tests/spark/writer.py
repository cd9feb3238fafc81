"""A writer that survives restarts of the server."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import psycopg

from conformance.rows import run
from tests.postgres.servers import Database

ROOT = Path(__file__).parents[2]


class Writer:
    """A writer on its own connection, which it reopens after the server was down."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.seeds = 0
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.2):
            with contextlib.suppress(psycopg.Error), self._db.writer() as connection:
                while not self._stop.is_set():
                    self.seeds += 1
                    run(connection, self.seeds, 6)
                    self._stop.wait(1)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
