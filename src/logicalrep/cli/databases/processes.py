"""The processes of several databases, of which none needs another: one that ends is started again."""

from __future__ import annotations

import json
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
"""The pause before a process is started again that has just ended, in seconds; it doubles with each end."""
PAUSE_FOR_OPERATOR = 300.0
"""The same where somebody has to do something first."""
_STABLE_AFTER = 600.0
"""The seconds after which an end is the first one again."""
_FINAL_EXIT_CODES = (0, 2, signal.SIGINT + 128)
"""The exit codes of processes that are not started again: done, invalid arguments, and an end that was asked for."""
_NEEDS_OPERATOR = 3
_CHECK_INTERVAL = 0.5
"""The time until it is seen that the Java of the shared Spark has ended, in seconds."""


@dataclass(frozen=True, kw_only=True)
class SharedParts:
    """What the processes of all databases share."""

    lines: DatabaseLines
    spark: ServedSpark
    stop: threading.Event
    """Ends them all."""
    environment: Mapping[str, str]
    is_once: bool
    """Whether none is started again."""


class DatabaseProcess:
    """The process that replicates one database, and is started again when it ends.

    It ends by itself once this process asks for it, or has ended. Signals of a terminal do not reach it.
    """

    def __init__(self, name: str, to: str, arguments: Sequence[str], parts: SharedParts) -> None:
        """Take the database's name, its destination, the arguments of the command, and what all share."""
        self.name, self.to = name, to
        self.address: str | None = None
        """The URL of its page and metrics; None while it does not serve them."""
        self.status_text = "starting"
        """How it is, in a few words."""
        self.exit_code: int | None = None
        """The code of the last end, after which it was not started again; None before."""
        self._arguments, self._parts = arguments, parts
        self._process: subprocess.Popen[str] | None = None
        self._socket: socket.socket | None = None
        self._changing = threading.Lock()
        # The number of the Spark's start whose URL it has.
        self._spark: int | None = None

    def run(self) -> None:
        """Run the process, again and again, until it ends for good."""
        stop, pause = self._parts.stop, FIRST_PAUSE
        while True:
            began = time.monotonic()
            try:
                code = self._run_once()
            except OSError as error:
                # The machine has no room for another process, perhaps for a moment.
                self._parts.lines.write_event(self.name, f"its process cannot be started: {error}")
                code = 1
            self.address = self._spark = None
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            self.status_text = f"ended {how}"
            if stop.is_set() or self._parts.is_once or code in _FINAL_EXIT_CODES:
                break
            pause = FIRST_PAUSE if time.monotonic() - began > _STABLE_AFTER else pause
            wait = PAUSE_FOR_OPERATOR if code == _NEEDS_OPERATOR else pause
            self.status_text = f"ended {how}, is started again within {wait:g} s"
            self._parts.lines.write_event(self.name, f"its process has ended {how}; it is started again in {wait:g} s")
            pause = min(2 * pause, LONGEST_PAUSE)
            if stop.wait(wait):
                break
        self.exit_code = code
        if not stop.is_set() and not (self._parts.is_once and code == 0):
            self._parts.lines.write_event(self.name, f"its process has ended {how}; the others go on")

    def end(self) -> None:
        """Ask the process to end, after the batch that it applies."""
        with self._changing, suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()

    def report_ended_spark(self, number: int) -> None:
        """Tell the process if its Spark, which had an earlier number than this one, has ended."""
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
                # Ctrl-C of a terminal goes to this process, which tells the others.
                start_new_session=True,
            )
            theirs.close()
            self._process, self.status_text = process, f"running as process {process.pid}"
            with self._changing:
                self._socket = ours
            if self._parts.stop.is_set():
                self.end()
            answering = threading.Thread(target=self._answer, args=[ours], name=f"logicalrep-{self.name}")
            answering.start()
            assert process.stdout is not None
            with process.stdout as lines:
                for line in lines:
                    self._parts.lines.write_line(self.name, line.rstrip("\n"))
            code = process.wait()
            with self._changing:
                self._socket = None
            answering.join()
        return code

    def _answer(self, ours: socket.socket) -> None:
        """Take what the process says of itself, and start Spark if it needs that."""
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
    """Run processes side by side until all have ended for good; call it in the main thread, which takes signals."""
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
