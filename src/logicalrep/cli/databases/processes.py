"""The independent processes of several databases; a process that ends is restarted."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from logicalrep.cli.databases.lines import DatabaseLines
from logicalrep.pipeline.engines.spark.shared import ServedSpark
from logicalrep_runtime.errors import LogicalRepError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""The seconds before a restart; they double with each end."""
PAUSE_FOR_OPERATOR = 300.0
"""The seconds before a restart if the operator has to do something first."""
_STABLE_AFTER = 600.0
"""A process that ran for so many seconds restarts after FIRST_PAUSE."""
_PROVEN_AFTER = 60.0
"""The seconds for which a process runs before its earlier ends no longer count."""
_FAILING_AFTER = 2
"""The consecutive ends of a process that keeps failing."""
_ERROR = re.compile(r"(error: )?\[[A-Z_]+\]")
"""The beginning of the last line of a process that ends with an error."""
_FINAL_EXIT_CODES = (0, 2, signal.SIGINT + 128)
"""Exit codes without a restart: done, invalid arguments, requested end."""
_NEEDS_OPERATOR = 3
_CHECK_INTERVAL = 0.5
"""The seconds between checks whether the shared Spark's Java has ended."""


@dataclass(frozen=True, kw_only=True)
class SharedParts:
    lines: DatabaseLines
    spark: ServedSpark
    stop: threading.Event
    environment: Mapping[str, str]
    is_once: bool


class DatabaseProcess:
    """Replicates one database; restarted when it ends. It stops with this process, and gets no terminal's signals."""

    def __init__(self, name: str, to: str, arguments: Sequence[str], parts: SharedParts) -> None:
        self.name, self.to = name, to
        self.address: str | None = None
        """The URL of its page and metrics; None while it does not serve them."""
        self.status_text = "starting"
        self.exit_code: int | None = None
        """The final exit code; None until the process has ended for good."""
        self._arguments, self._parts = arguments, parts
        self._began = 0.0
        self._error: str | None = None
        # The ends since a process has run for _PROVEN_AFTER seconds.
        self._ends = 0
        self._process: subprocess.Popen[str] | None = None
        self._socket: socket.socket | None = None
        self._changing = threading.Lock()
        # The number of the start of the Spark that the process uses.
        self._spark: int | None = None

    @property
    def is_failing(self) -> bool:
        """Whether the process has ended several times, and its restart has not run for a minute."""
        return self._ends >= _FAILING_AFTER and time.monotonic() - self._began < _PROVEN_AFTER

    def run(self) -> None:
        stop, pause = self._parts.stop, FIRST_PAUSE
        while True:
            self._began = began = time.monotonic()
            try:
                code = self._run_once()
            except OSError as error:
                # The machine may only temporarily lack resources for a process.
                self._parts.lines.write_event(self.name, f"the process cannot be started: {error}")
                code = 1
            self.address = self._spark = None
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            self.status_text = f"ended {how}"
            self._ends = 1 if time.monotonic() - began >= _PROVEN_AFTER else self._ends + 1
            if stop.is_set() or self._parts.is_once or code in _FINAL_EXIT_CODES:
                break
            pause = FIRST_PAUSE if time.monotonic() - began > _STABLE_AFTER else pause
            wait = PAUSE_FOR_OPERATOR if code == _NEEDS_OPERATOR else pause
            self.status_text = f"ended {how}, restarts within {wait:g} s{self._reason_text}"
            self._parts.lines.write_event(self.name, f"the process ended {how}: it restarts in {wait:g} s")
            pause = min(2 * pause, LONGEST_PAUSE)
            if stop.wait(wait):
                break
        self.exit_code = code
        if not stop.is_set() and not (self._parts.is_once and code == 0):
            self._parts.lines.write_event(self.name, f"the process ended {how}: the other databases are not affected")

    @property
    def _reason_text(self) -> str:
        return "" if self._error is None else f"; its last end: {self._error}"

    def end(self) -> None:
        """Stop the process after its current batch."""
        with self._changing, suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def report_ended_spark(self, number: int) -> None:
        if self._spark is not None and self._spark < number:
            self._send(ended=self._spark)
            self._spark = None

    def _run_once(self) -> int:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "logicalrep.cli.main"),
                    *self._arguments,
                    *("--parent", str(theirs.fileno())),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                pass_fds=[theirs.fileno()],
                env=dict(self._parts.environment),
                # Ctrl-C of a terminal reaches this process, which stops the children.
                start_new_session=True,
            )
            theirs.close()
            self._process, self.status_text = process, f"running as process {process.pid}{self._reason_text}"
            self._error = None
            with self._changing:
                self._socket = ours
            if self._parts.stop.is_set():
                self.end()
            answering = threading.Thread(target=self._answer, args=[ours], name=f"logicalrep-{self.name}")
            answering.start()
            assert process.stdout is not None
            with process.stdout as lines:
                for line in lines:
                    if _ERROR.match(line):
                        self._error = line.rstrip("\n").removeprefix("error: ")
                    self._parts.lines.write_line(self.name, line.rstrip("\n"))
            code = process.wait()
            with self._changing:
                self._socket = None
            answering.join()
        return code

    def _answer(self, ours: socket.socket) -> None:
        with suppress(OSError), ours.makefile() as lines:
            for line in lines:
                message: dict[str, Any] = json.loads(line)
                if "address" in message:
                    self.address = message["address"]
                else:
                    self._share_spark()

    def _share_spark(self) -> None:
        spark = self._parts.spark
        try:
            url = spark.query_url()
        except LogicalRepError as error:
            self._send(text=error.description, code=error.code)
            return
        self._spark = spark.starts
        self._send(url=url, number=spark.starts)

    def _send(self, **message: object) -> None:
        with self._changing, suppress(OSError):
            if self._socket is not None:
                self._socket.sendall(f"{json.dumps(message)}\n".encode())


def run_processes(processes: Sequence[DatabaseProcess], parts: SharedParts) -> None:
    """Run processes in parallel until all have ended for good; call it in the main thread, which gets signals."""
    threads = [threading.Thread(target=process.run, name=f"logicalrep-{process.name}") for process in processes]
    for thread in threads:
        thread.start()
    is_ending = False
    while any(thread.is_alive() for thread in threads):
        if parts.stop.wait(_CHECK_INTERVAL) and not is_ending:
            is_ending = True
            for process in processes:
                process.end()
        if is_ending:
            for thread in threads:
                thread.join(_CHECK_INTERVAL)
        number = parts.spark.starts + parts.spark.has_ended()
        for process in processes:
            process.report_ended_spark(number)
