"""The seconds from a commit until its rows are visible, at 200 changes a second."""

from __future__ import annotations

import random
import re
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.tables.setting import Setting
from bench.tables.usage import Usage
from conformance.tools import debezium_engine
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.server import query_wal_head
from logicalrep_runtime.scalars import Lsn

HEAD = ("tool", "median, s", "99 %, s", "cores", "peak MiB")
_OPTIONS = ("--every 10", "--every 0", "--every 0 --write-mode merge-on-read")
_TRANSACTIONS = 50
"""The transactions a second: three updates of orders, and the insert of a tick."""
_WARM = 5.0
"""The seconds of load before a measurement begins."""
_LONGEST_WAIT = 120.0
_PAUSE = 0.01
_TICK = re.compile(rb'"after":\{"id":(\d+)\}')
_Seen = Callable[[Sequence[Lsn]], int]
"""Takes the LSNs of the commits so far; returns how many of them are visible."""


def measure(setting: Setting, engines: Sequence[str], *, with_debezium: bool) -> Iterator[list[str]]:
    """Measure `replicate` as it comes, as fast as it goes, and by marking rows, then Debezium into a file."""
    for engine in engines:
        for number, arguments in enumerate(_OPTIONS):
            lake, options = setting.folder / f"visible-{engine}-{number}", ("--engine", engine, *arguments.split())
            setting.once(lake, *options)
            with setting.following(lake, *options) as usage:
                seconds, lasted = _measured(setting, _of_lake(lake))
            yield [f"`logicalrep replicate {arguments}`, {engine}", *_cells(seconds, lasted, usage)]
    if with_debezium:
        out = setting.folder / "visible.events"
        more = {"snapshot.mode": "no_data", "value.converter.schemas.enable": "false"}
        with debezium_engine.events(setting.server.dsn, "visible", setting.folder, more, out=out) as process:
            _wait_until_active(setting.connection, "visible")
            with Usage(process.pid, setting.server_pid) as usage:
                seconds, lasted = _measured(setting, _of_file(out))
        yield ["Debezium, into a file", *_cells(seconds, lasted, usage)]


def _cells(seconds: list[float], lasted: float, usage: Usage) -> list[str]:
    used = usage.used
    figures = (np.median(seconds), np.percentile(seconds, 99), used.seconds / lasted)
    return [*(f"{float(figure):.2f}" for figure in figures), f"{used.peak.get('in all', 0):,}"]


def _of_lake(lake: Path) -> _Seen:
    storage = Storage(str(lake))
    return lambda lsns: bisect_right(lsns, State.read(storage).lsn)


def _of_file(out: Path) -> _Seen:
    position, last, first = 0, -1, -1

    def seen(lsns: Sequence[Lsn]) -> int:
        nonlocal position, last, first
        with out.open("rb") as file:
            file.seek(position)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        position += len(whole)
        for tick in map(int, _TICK.findall(whole)):
            first = tick if first < 0 else first
            last = tick
        return last - first + 1 if last >= 0 else 0

    return seen


def _wait_until_active(connection: Any, slot: str) -> None:
    deadline = time.monotonic() + _LONGEST_WAIT
    active = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = %s AND active"
    while not connection.execute(active, [slot]).fetchone()[0]:
        if time.monotonic() > deadline:
            raise RuntimeError(f"nobody reads the slot {slot}")
        time.sleep(0.1)


def _measured(setting: Setting, seen: _Seen) -> tuple[list[float], float]:
    """Return the seconds of each transaction after the first ones, and how long all lasted."""
    lsns: list[Lsn] = []
    moments: list[float] = []
    visible: list[float] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set() or len(visible) < len(lsns):
            visible.extend([time.monotonic()] * (seen(lsns) - len(visible)))
            if ended.is_set() and time.monotonic() > moments[-1] + _LONGEST_WAIT:
                return
            time.sleep(_PAUSE)

    thread = threading.Thread(target=look)
    thread.start()
    connection, began = setting.connection, time.monotonic()
    (first,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM ticks").fetchone()
    while time.monotonic() - began < _WARM + setting.seconds:
        time.sleep(max(began + len(lsns) / _TRANSACTIONS - time.monotonic(), 0))
        with connection.transaction():
            for _ in range(3):
                order = random.randrange(1, setting.scale)
                connection.execute(f"UPDATE orders SET amount = amount + 1 WHERE id = {order}")
            connection.execute(f"INSERT INTO ticks VALUES ({first + len(lsns)})")
        moments.append(time.monotonic())
        lsns.append(query_wal_head(connection))
    ended.set()
    thread.join()
    if len(visible) < len(lsns):
        raise RuntimeError(f"{len(lsns) - len(visible)} of {len(lsns)} transactions have not become visible")
    pairs = zip(visible, moments, strict=True)
    return [visible_at - moment for visible_at, moment in pairs if moment >= began + _WARM], time.monotonic() - began


__all__ = ["HEAD", "measure"]
