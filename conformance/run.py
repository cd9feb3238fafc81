"""A run of one tool: it is started, stopped, killed and compared on a server."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psycopg

from conformance.tool import Follower, Tool
from conformance.verdicts import PublishedTable, Verdict, compare, query_published

PUBLICATION = "conformance"
_MARKS = "public.conformance_marks"
_OPTIONS = "-c search_path=public -c TimeZone=UTC -c lock_timeout=5s"
_MOST_EXITS = 5
_PAUSE = 0.5


class ToolFailedError(Exception):
    """A tool that does not come to an end; the text says why."""


@dataclass(frozen=True)
class Patience:
    """How long a run waits for a tool, in seconds."""

    longest: float = 300.0
    """For a mark, and for a table that is behind."""
    settled: float = 10.0
    """For a table that differs and is not behind: it is wrong once its rows have not changed for so long."""


class Run:
    """One tool on one database, from an empty folder; leaving the context kills the tool."""

    def __init__(self, tool: Tool, dsn: str, folder: Path, patience: Patience | None = None) -> None:
        """Prepare a run.

        Args:
            tool: the tool.
            dsn: the connection string of a database without tables and publications.
            folder: a folder that does not exist; the tool's folder and its log are in it.
            patience: how long the run waits; a default if None.
        """
        self.dsn = dsn
        self.folder = folder
        self.log = folder / "log"
        self.kills = 0
        self.exits = 0
        """The times that the tool exited by itself."""
        self._tool = tool
        self._patience = patience or Patience()
        self._follower: Follower | None = None
        self._mark = 0

    def __enter__(self) -> Self:
        """Create the publication and the table of marks."""
        (self.folder / "tables").mkdir(parents=True)
        self.connection = self.connect()
        self.connection.execute(
            f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES WITH (publish_via_partition_root = true)".encode()
        )
        self.connection.execute(f"CREATE TABLE {_MARKS} (number int PRIMARY KEY)".encode())
        return self

    def __exit__(self, *exception: object) -> None:
        """Kill the tool."""
        if self._follower is not None:
            self._follower.kill()
        self.connection.close()

    def connect(self) -> psycopg.Connection[Any]:
        """Open a connection that commits each statement, with tables without a schema in public."""
        return psycopg.connect(self.dsn, autocommit=True, options=_OPTIONS)

    def start(self) -> None:
        """Start the tool."""
        self._follower = self._tool.follow(self.dsn, PUBLICATION, self.folder / "tables", self.log)

    def stop(self) -> None:
        """Stop the tool with SIGTERM."""
        assert self._follower is not None
        self._follower.stop()
        self._follower = None

    def kill(self) -> None:
        """Kill the tool with all its processes, unless it has exited by itself."""
        assert self._follower is not None
        if self._follower.exit_code is None:
            self.kills += 1
        else:
            self.exits += 1
        self._follower.kill()
        self._follower = None

    def catch_up(self) -> None:
        """Wait until the tool has what was committed so far. Raises ToolFailedError if it does not come to that."""
        self._mark += 1
        self.connection.execute(f"INSERT INTO {_MARKS} VALUES ({self._mark})".encode())
        deadline, mark = time.monotonic() + self._patience.longest, {"number": str(self._mark)}
        while mark not in self._tool.read(self.folder / "tables", [_MARKS])[_MARKS].rows:
            self._restart()
            if time.monotonic() > deadline:
                raise ToolFailedError(f"the mark did not come within {self._patience.longest:.0f} seconds")
            time.sleep(_PAUSE)

    def compare(self) -> dict[str, Verdict]:
        """Return the verdict on each table of the publication, by name, once no table changes."""
        tables = {str(table): table for table in query_published(self.connection, PUBLICATION) if str(table) != _MARKS}
        verdicts: dict[str, Verdict] = {}
        remaining, changed_at = list(tables), time.monotonic()
        deadline = changed_at + self._patience.longest
        while remaining:
            current, behind = self._look([tables[name] for name in remaining])
            if any(verdicts.get(name) != verdict for name, verdict in current.items()):
                changed_at = time.monotonic()
            verdicts |= current
            remaining = [name for name in remaining if verdicts[name].result != "right"]
            is_settled = time.monotonic() - changed_at >= self._patience.settled
            if time.monotonic() > deadline or (is_settled and not behind):
                break
            if remaining:
                self._restart()
                time.sleep(_PAUSE)
        return {name: verdicts[name] for name in tables}

    def failed(self, reason: str) -> dict[str, Verdict]:
        """Return the verdicts on all tables after the tool failed."""
        return {
            str(table): Verdict("failed", reason)
            for table in query_published(self.connection, PUBLICATION)
            if str(table) != _MARKS
        }

    def _look(self, tables: list[PublishedTable]) -> tuple[dict[str, Verdict], bool]:
        """Return the verdicts of this moment, and whether a table is behind."""
        contents = self._tool.read(self.folder / "tables", [str(table) for table in tables])
        verdicts = {}
        for table in tables:
            content = contents[str(table)]
            if content.behind:
                verdict = Verdict("failed", content.behind)
            elif content.stopped:
                verdict = Verdict("stopped", content.stopped)
            else:
                verdict = compare(self.connection, table, content.rows)
            verdicts[str(table)] = verdict
        return verdicts, any(contents[str(table)].behind for table in tables)

    def _restart(self) -> None:
        """Start the tool again if it has exited. Raises ToolFailedError if it exits too often."""
        assert self._follower is not None
        code = self._follower.exit_code
        if code is None:
            return
        self._follower.kill()
        self.exits += 1
        if self.exits > _MOST_EXITS:
            lines = self.log.read_text(errors="replace").strip().splitlines()
            raise ToolFailedError(
                f"`follow` exited with {code} too often: {lines[-1] if lines else 'without a reason'}"
            )
        self.start()


__all__ = ["PUBLICATION", "Patience", "Run", "ToolFailedError"]
