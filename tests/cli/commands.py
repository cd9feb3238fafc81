"""The command replicate in processes of its own: run to its end, started, and sent signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conftest import ROOT
from tests.postgres.servers import Database

COMMAND = [sys.executable, "-m", "logicalrep.cli.main", "replicate"]


def run_replicate(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_command("replicate", *arguments, **environment)


def run_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND[:-1], *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | environment,
    )


@contextmanager
def start_command(
    db: Database, lake: Path, log: Path, *options: str, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the command, in a session and a group of its own."""
    with log.open("ab") as written:
        process = subprocess.Popen(
            [*COMMAND, "--dsn", db.dsn, "--to", str(lake), "--every", "0", *options],
            stderr=written,
            stdout=written,
            cwd=ROOT,
            start_new_session=True,
            env=os.environ | environment,
        )
    try:
        yield process
    finally:
        for pid in processes(process):
            os.kill(pid, signal.SIGKILL)
        process.wait()


def processes(command: subprocess.Popen[bytes], program: str = "") -> list[int]:
    """Return the processes of the command's session whose command line has a text."""
    listing = subprocess.run(["ps", "-wweo", "pid,sid,stat,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 3) for line in listing.splitlines()[1:]]
    return [
        int(pid)
        for pid, session, state, arguments in rows
        if int(session) == command.pid and program in arguments and not state.startswith("Z")
    ]


def send_signal(command: subprocess.Popen[bytes], number: signal.Signals) -> int:
    """Send a signal to all processes of the command, as a service's manager does, and return the exit code."""
    for pid in processes(command):
        if pid != command.pid:
            # One of Spark's workers may have ended meanwhile.
            with suppress(ProcessLookupError):
                os.kill(pid, number)
    os.kill(command.pid, number)
    return command.wait(60)


LARGE_TABLE = [
    "CREATE TABLE large (id int PRIMARY KEY, v text)",
    "INSERT INTO large SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 30000) AS i",
]
"""A table whose load, and whose update, is no little work."""
