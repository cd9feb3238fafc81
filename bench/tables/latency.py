"""The seconds from a commit until the destination's state names it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.tables.setting import Setting, bytes_written
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.server import query_wal_head
from logicalrep_runtime.scalars import Lsn

_RATE = 2000
"""The changes a second."""
_IN_ONE = 20
"""The changes of a transaction."""
_SMALL = 10_000
_TABLES, _ROWS = 10, 100_000
"""The number of tables of the part `small`, and the rows of each."""


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure inserts, and updates spread over a small and over a large table."""
    for name, rows in (("small", _SMALL), ("large", setting.scale), ("log", 1)):
        setting.make(name, rows)
    storage = setting.folder / "latency"
    setting.once(storage)
    for kind, statement in (
        ("inserts", lambda first: _insert("log", first)),
        (f"updates spread over {_SMALL:,} rows", lambda first: _update("small", _SMALL, first)),
        (f"updates spread over {setting.scale:,} rows", lambda first: _update("large", setting.scale, first)),
    ):
        yield _measured(setting, storage, kind, statement)


def of_small_tables(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure inserts and updates of some small tables, a transaction in one of them after another."""
    names = [f"small_{number}" for number in range(_TABLES)]
    for name in names:
        setting.make(name, _ROWS)
    storage = setting.folder / "small"
    setting.once(storage)
    where = f"over {_TABLES} tables of {_ROWS:,} rows"
    for kind, statement in (
        (f"inserts {where}", lambda first: _insert(random.choice(names), first)),
        (f"updates spread {where}", lambda first: _update(random.choice(names), _ROWS, first)),
    ):
        yield _measured(setting, storage, kind, statement)


def _insert(name: str, first: int) -> str:
    return f"INSERT INTO {name} SELECT i, 1, 1, '' FROM generate_series({first}, {first + _IN_ONE - 1}) AS i"


def _update(name: str, rows: int, value: int) -> str:
    ids = ",".join(str(random.randrange(1, rows)) for _ in range(_IN_ONE))
    return f"UPDATE {name} SET abalance = {value} WHERE aid = ANY('{{{ids}}}')"


def _measured(setting: Setting, storage: Path, kind: str, statement: Callable[[int], str]) -> dict[str, Any]:
    """Return the figure of a kind of statements, each made for a number that no other one has."""
    with setting.following(storage) as usage:
        # The first batches start what the command needs.
        _seconds_to_visible(setting, storage, statement, 5, 10**6)
        setting.wait(storage)
        old_bytes = bytes_written(storage)
        seconds = _seconds_to_visible(setting, storage, statement, setting.seconds, 2 * 10**6)
    return {
        "measured": f"seconds from commit to visible, {kind}, {_RATE:,} changes a second",
        "median": round(float(np.median(seconds)), 2),
        "99th percentile": round(float(np.percentile(seconds, 99)), 2),
        "MB written a second": round((bytes_written(storage) - old_bytes) / 1e6 / setting.seconds, 1),
        **usage.used.figures(round((5 + setting.seconds) * _RATE), "changes"),
    }


def _seconds_to_visible(
    setting: Setting, storage: Path, statement: Callable[[int], str], seconds: float, first: int
) -> list[float]:
    """Return the time of each transaction that commits within some seconds."""
    connection = setting.connection
    commits: list[tuple[Lsn, float]] = []
    seen: list[tuple[Lsn, float]] = []
    ended = threading.Event()

    def look() -> None:
        destination = Storage(str(storage))
        while not ended.is_set():
            lsn = State.read(destination).lsn
            if not seen or lsn > seen[-1][0]:
                seen.append((lsn, time.monotonic()))
            time.sleep(0.01)

    thread = threading.Thread(target=look)
    thread.start()
    began = time.monotonic()
    number = 0
    while (clock := time.monotonic()) - began < seconds:
        due = began + number * _IN_ONE / _RATE
        if due > clock:
            time.sleep(due - clock)
        connection.execute(statement(first + number * _IN_ONE))
        commits.append((query_wal_head(connection), time.monotonic()))
        number += 1
    while not seen or seen[-1][0] < commits[-1][0]:
        time.sleep(0.05)
    ended.set()
    thread.join()
    lsns, moments = [lsn for lsn, _ in seen], [moment for _, moment in seen]
    places = np.searchsorted(lsns, [lsn for lsn, _ in commits])
    return [moments[at] - moment for at, (_, moment) in zip(places.tolist(), commits, strict=True)]


__all__ = ["measure", "of_small_tables"]
