"""A server, tables on it, and the command in processes of its own, for every part."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.tables.usage import Usage, Used, processor_seconds
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.server import query_wal_head
from logicalrep_runtime.scalars import Lsn

_TABLE = "CREATE TABLE {} (aid int PRIMARY KEY, bid int, abalance int, filler char(84))"
_ROWS = "INSERT INTO {} SELECT i, i % 100, 0, '' FROM generate_series(1, {}) AS i"
# An installed package has its compiled modules.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
_LONGEST_WAIT = 300.0
_LOOK, _IDLE = 3.0, 0.3
"""The seconds between two looks at the command, and its processor seconds meanwhile with nothing to do, at most."""


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    seconds: float
    used: Used
    output: str
    """Its log."""


@dataclass(frozen=True)
class Setting:
    """A server of a part's own, and a folder for destinations."""

    server: LocalServer
    connection: Any
    folder: Path
    scale: int
    """The rows of large tables."""
    seconds: float
    """The seconds of a measurement of latency."""
    minutes: float
    """The minutes of the measurement of upkeep."""

    def make(self, name: str, rows: int) -> None:
        """Make a table like pgbench's accounts."""
        self.connection.execute(_TABLE.format(name))
        self.connection.execute(_ROWS.format(name, rows))

    def once(self, storage: Path, *more: str, **environment: str) -> Ran:
        """Run the command with --once and more options; `environment` has variables that differ from those here."""
        log = self.folder / f"{storage.name}.once.log"
        began = time.monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._command(storage, "--once", *more),
                stdout=output,
                stderr=output,
                env={**_ENVIRONMENT, **environment},
            )
            with Usage(process.pid, self.server_pid) as usage:
                code = process.wait()
                seconds = time.monotonic() - began
        log_text = log.read_text()
        if code:
            raise RuntimeError(log_text)
        return Ran(seconds, usage.used, log_text)

    @contextmanager
    def following(self, storage: Path, *more: str) -> Iterator[Usage]:
        """Let the command follow as fast as it goes, with more options; it is up to date at first."""
        with (self.folder / f"{storage.name}.log").open("ab") as output:
            command = self._command(storage, "--every", "0", *more)
            process = subprocess.Popen(command, stdout=output, stderr=output, env=_ENVIRONMENT)
        try:
            self.wait(storage)
            _wait_until_idle(process.pid)
            with Usage(process.pid, self.server_pid) as usage:
                yield usage
        finally:
            process.terminate()
            process.wait(60)

    @property
    def server_pid(self) -> int:
        """The process id of the server."""
        return int((self.server.data / "postmaster.pid").read_text().split()[0])

    def wait(self, storage: Path) -> None:
        """Wait until a destination has all that has committed, and all its tables follow."""
        end, deadline = query_wal_head(self.connection), time.monotonic() + _LONGEST_WAIT
        while not self._has(State.read(Storage(str(storage))), end):
            if time.monotonic() > deadline:
                raise RuntimeError((self.folder / f"{storage.name}.log").read_text())
            time.sleep(0.01)

    @staticmethod
    def _has(state: State, end: Lsn) -> bool:
        return state.lsn >= end and all(table.state == "following" for table in state.tables.values())

    def _command(self, storage: Path, *more: str) -> list[str]:
        command = [sys.executable, "-P", "-m", "logicalrep.cli.main", "replicate", "--dsn", self.server.dsn]
        # A second --engine replaces the first.
        return [*command, "--to", str(storage), "--engine", "spark", *more]


def _wait_until_idle(pid: int) -> None:
    """Wait until a process and those that it started do nothing: the command starts Spark beside its first work."""
    previous_seconds = -_IDLE
    while (current_seconds := processor_seconds(pid)) - previous_seconds >= _IDLE:
        previous_seconds = current_seconds
        time.sleep(_LOOK)


def bytes_written(storage: Path) -> int:
    """Return the bytes of data files that have been written, by the logs: some of the files may be gone."""
    sizes: dict[str, int] = {}
    for path in storage.rglob("_delta_log/*.json"):
        for line in path.read_text().splitlines():
            # A file of which more rows are marked is added again, and written once.
            added = json.loads(line).get("add")
            if added is not None:
                sizes[added["path"]] = added["size"]
    return sum(sizes.values())


__all__ = ["Ran", "Setting", "bytes_written"]
