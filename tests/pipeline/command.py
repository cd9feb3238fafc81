"""`logicalrep replicate` in processes of its own, which are killed or stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.postgres.servers import Database
from tests.spark.writer import ROOT

# The labels of an enum change all the time too, each time with a load, which is no failure here.
_COMMAND = """
from logicalrep.cli.main import argument_parser
from logicalrep.cli.replicate_settings import stop_on_signals, settings_of
from logicalrep.observe.terminal import show_progress
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.run import replicate_with

# Rows are marked in small files too. So do small tables have indexes, of many files.
limits = Limits(small_file_bytes=1, marked_share=1, indexed_rows=0, recent_entries=500, loads_at_once=1_000_000)
with show_progress(quiet=False) as observer:
    settings = settings_of(argument_parser().parse_args())
    replicate_with(settings, observer, stop=stop_on_signals(), limits=limits)
"""


class Command:
    """The command in processes of its own."""

    def __init__(self, db: Database, storage: Path, log: Path, engine: str, options: Sequence[str]) -> None:
        name = "spark" if engine == "connect" else engine
        self._arguments = [sys.executable, "-c", _COMMAND, "replicate", "--engine", name, *options]
        # Its server is in the command's own Java, at any free port, and tries tasks again.
        of_connect = {"SPARK_REMOTE": "local[2,4]", "SPARK_TESTING": "1", "PYSPARK_PYTHON": sys.executable}
        self._environment = os.environ | (of_connect if engine == "connect" else {})
        self._arguments += ["--dsn", db.dsn, "--to", str(storage)]
        self._environment |= {"XDG_CACHE_HOME": str(storage.parent / "cache")}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._arguments, *more],
                cwd=ROOT, env=self._environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def once(self, seconds: float = 240) -> None:
        self.start("--once")
        assert self._process is not None
        try:
            code = self._process.wait(seconds)
        finally:
            self.kill("")
        assert code == 0, self.log()

    def kill(self, program: str) -> None:
        """Kill the processes whose command line has a text; all of them for an empty text."""
        assert self._process is not None
        self._signal(signal.SIGKILL, program)
        if not program:
            self._process.wait()

    def stop(self) -> None:
        """Stop all processes, which know nothing of it, until `resume_processes`."""
        self._signal(signal.SIGSTOP)

    def resume_processes(self) -> None:
        """Resume the stopped processes."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals, program: str = "") -> None:
        assert self._process is not None
        listing = subprocess.run(["ps", "-eo", "pid,sid,args"], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines()[1:]:
            pid, group, arguments = line.split(None, 2)
            if int(group) == self._process.pid and program in arguments:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), number)

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]
