"""The cost of a first load and a backlog: processor seconds and memory of all of a tool's processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.tables.setting import Ran, Setting
from bench.tables.usage import Usage, Used
from conformance.costs.workload import make_backlog, make_tables
from conformance.run import PUBLICATION
from conformance.tools import debezium_engine
from logicalrep.postgres.server import query_wal_head
from logicalrep.postgres.slots.creating import create_slot

HEAD = (
    "tool", "makes", "first load: s", "CPU-s a million rows", "peak MiB",
    "backlog: s", "CPU-s a million changes", "peak MiB",
)  # fmt: skip
_PLAIN = {"key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}
"""The properties of a consumer that knows the schemas."""
_STREAM = (
    "import logicalrep\n"
    "stream = logicalrep.stream({dsn!r}, slot={slot!r}, publication={publication!r}, follow=False)\n"
    "print(sum({counted}))\n"
)
_STREAMS = {
    "objects": (
        "`logicalrep.stream()`",
        "Python objects, counted",
        "len(transaction.changes) for transaction in stream",
    ),
    "arrow": ("`logicalrep.stream().batches()`", "Arrow, counted", "batch.num_rows for batch in stream.batches()"),
}
_LONGEST_WAIT = 120.0
_PAUSE = 0.02


@dataclass(frozen=True)
class Cost:
    """A tool's figures, each of so many rows or changes."""

    tool: str
    makes: str
    load: tuple[Ran, int] | None
    backlog: tuple[Ran, int]

    def cells(self) -> list[str]:
        """Return its row of the table."""
        return [self.tool, self.makes, *_cells(self.load), *_cells(self.backlog)]


def measure(setting: Setting, engines: Sequence[str], *, with_debezium: bool) -> Iterator[Cost]:
    """Measure all tools one after another: first all loads, then the same backlog of each."""
    connection = setting.connection
    rows = make_tables(connection, setting.scale)
    connection.execute(f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES")
    loads: dict[str, tuple[Ran, int]] = {}
    if with_debezium:
        loads["debezium"] = _debezium(setting, rows + 1, lambda: _tick(connection)), rows
    for engine in engines:
        loads[engine] = setting.once(setting.folder / engine, "--engine", engine), rows
    receiver = setting.server.installation.bin / "pg_recvlogical"
    for slot in (*_STREAMS, *["receiver"][: receiver.is_file()]):
        create_slot(connection, slot)
    changes = make_backlog(connection, setting.scale)
    if receiver.is_file():
        yield Cost("pg_recvlogical", "bytes to nothing", None, (_receive(setting, str(receiver)), changes))
    for slot, (tool, makes, counted) in _STREAMS.items():
        program = _STREAM.format(dsn=setting.server.dsn, slot=slot, publication=PUBLICATION, counted=counted)
        yield Cost(tool, makes, None, (_run(setting, [sys.executable, "-P", "-c", program], str(changes)), changes))
    for engine in engines:
        ran = setting.once(setting.folder / engine, "--engine", engine)
        yield Cost(f"`logicalrep replicate`, {engine}", "Delta tables", loads[engine], (ran, changes))
    if with_debezium:
        ran = _debezium(setting, changes, lambda: None)
        yield Cost("Debezium", "events, counted", loads["debezium"], (ran, changes))


def _cells(measured: tuple[Ran, int] | None) -> list[str]:
    if measured is None:
        return [""] * 3
    ran, count = measured
    return [f"{ran.seconds:.1f}", f"{ran.used.seconds / count * 1e6:.1f}", f"{ran.used.peak.get('in all', 0):,}"]


def _tick(connection: Any) -> None:
    """Insert a row once Debezium's slot is there, which then comes after all rows that were there before."""
    deadline = time.monotonic() + _LONGEST_WAIT
    count_slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'debezium'"
    while not connection.execute(count_slots).fetchone()[0]:
        if time.monotonic() > deadline:
            raise RuntimeError("Debezium has made no slot")
        time.sleep(0.1)
    connection.execute("INSERT INTO ticks VALUES (-1)")


def _debezium(setting: Setting, count: int, meanwhile: Callable[[], None]) -> Ran:
    began = time.monotonic()
    with (
        debezium_engine.events(
            setting.server.dsn, "debezium", setting.folder, _PLAIN, out=None, count=count
        ) as process,
        Usage(process.pid, setting.server_pid) as usage,
    ):
        meanwhile()
        code = process.wait()
    log = (setting.folder / "debezium.log").read_text()
    if code:
        raise RuntimeError(log)
    return Ran(time.monotonic() - began, usage.used, log)


def _receive(setting: Setting, program: str) -> Ran:
    end = query_wal_head(setting.connection)
    command = [program, "--dbname", setting.server.dsn, "--slot", "receiver", "--start", "--no-loop", "--file", "-"]
    options = ["--option", "proto_version=1", "--option", f"publication_names={PUBLICATION}", "--endpos", str(end)]
    return _run(setting, [*command, *options], "")


def _run(setting: Setting, command: list[str], expected_output: str) -> Ran:
    """Run a program to its end; raise RuntimeError if it fails, or says something else; "" for anything."""
    began = time.monotonic()
    libraries = {"LD_LIBRARY_PATH": str(setting.server.installation.folder / "lib")} if not expected_output else {}
    out = setting.folder / "said"
    with out.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output if expected_output else subprocess.DEVNULL, stderr=output, env=os.environ | libraries
        )
        peak = 0
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            peak = max(peak, _most_memory(process.pid))
            time.sleep(_PAUSE)
        # It is one process, and may be over before Usage would have looked at it.
        _, code, used = os.wait4(process.pid, 0)
    process.returncode = code
    if code or (expected_output and out.read_text().strip() != expected_output):
        raise RuntimeError(out.read_text())
    seconds = time.monotonic() - began
    return Ran(seconds, Used(used.ru_utime + used.ru_stime, 0, {"in all": peak}), expected_output)


def _most_memory(pid: int) -> int:
    """Return the most MiB that a process has had in memory; 0 if it has just ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM:")), 0)


__all__ = ["HEAD", "Cost", "measure"]
