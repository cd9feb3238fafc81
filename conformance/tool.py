"""A tool behind its one command: README.md has the contract."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[1]
_STOP_SECONDS = 60.0
Row = dict[str, str | None]
"""The texts of a row's values, as PostgreSQL reads them."""


class NotAvailableError(Exception):
    """A tool that cannot run on this machine; the text is the reason."""


@dataclass
class Contents:
    """What a tool has of a table."""

    rows: list[Row] = field(default_factory=list)
    behind: str = ""
    """Why the rows are not yet current; empty if they are."""
    stopped: str = ""
    """Why the tool no longer updates the table; empty if it does."""


@dataclass(frozen=True)
class Tool:
    """A tool by its command.

    Example:
        >>> Tool.parse("mine=./mine --fast").command
        ('./mine', '--fast')
    """

    key: str
    """The name on the command line."""
    title: str
    """The name on the page."""
    command: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the tool of a text `NAME=COMMAND`. Raises ValueError for another text."""
        name, equals, command = text.partition("=")
        if not (name and equals and command):
            raise ValueError(f"{text!r} is not NAME=COMMAND")
        return cls(name, name, tuple(shlex.split(command)))

    def version(self) -> str:
        """Return the tool's name and version. Raises NotAvailableError if the tool cannot run here."""
        try:
            process = subprocess.run([*self.command, "version"], capture_output=True, text=True, check=False)
        except OSError as error:
            raise NotAvailableError(f"{self.title} is left out: {error}.") from error
        if process.returncode:
            raise NotAvailableError(f"{self.title} is left out: {_last_line(process.stderr)}")
        return process.stdout.strip()

    def follow(self, dsn: str, publication: str, folder: Path, log: Path) -> Follower:
        """Start to replicate a publication's tables; the output is appended to `log`."""
        with log.open("ab") as output:
            return Follower(
                subprocess.Popen(
                    [*self.command, "follow", dsn, publication, str(folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            )

    def read(self, folder: Path, tables: Sequence[str]) -> dict[str, Contents]:
        """Return what the tool has of each table; all are behind if the command fails."""
        process = subprocess.run(
            [*self.command, "read", str(folder), *tables], capture_output=True, text=True, check=False
        )
        if process.returncode:
            reason = f"`read` failed with {process.returncode}: {_last_line(process.stderr)}"
            return {table: Contents(behind=reason) for table in tables}
        contents = {table: Contents() for table in tables}
        for line in map(json.loads, process.stdout.splitlines()):
            table = contents[line["table"]]
            if "row" in line:
                table.rows.append(line["row"])
            table.behind = line.get("behind", table.behind)
            table.stopped = line.get("stopped", table.stopped)
        return contents


class Follower:
    """A running `follow`, with all processes that it started."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while the command runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Send SIGTERM, and wait for a minute at most; then kill what is left."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill all processes of the command's session."""
        while pids := [*_session_processes(self._process.pid)]:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.poll()
        self._process.wait()


def _session_processes(session: int) -> Sequence[int]:
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # The name of the program, in parentheses, may contain anything.
            state, _, _, group = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(group) == session and state != "Z":
                pids.append(int(folder.name))
    return pids


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it gave no reason"


def _module(name: str, *arguments: str) -> tuple[str, ...]:
    return ("env", f"PYTHONPATH={ROOT}", sys.executable, "-P", "-m", f"conformance.tools.{name}", *arguments)


TOOLS = (
    Tool("local", "`replicate`, local", _module("replicate", "local")),
    Tool("spark", "`replicate`, spark", _module("replicate", "spark")),
    Tool("debezium", "Debezium as it comes", _module("debezium", "default")),
    Tool("informed", "Debezium, its options, an informed consumer", _module("debezium", "informed")),
)
"""The tools of the page."""

__all__ = ["ROOT", "TOOLS", "Contents", "Follower", "NotAvailableError", "Row", "Tool"]
