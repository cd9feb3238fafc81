"""The seconds from a commit until the destination's state names it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.tables.load import make_orders
from bench.tables.setting import Setting, bytes_written
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.server import query_wal_head
from logicalrep_runtime.scalars import Lsn

_SMALL = 10_000
_TABLES, _ROWS = 10, 100_000
"""The number of tables of the part `small`, and the rows of each."""
_MANY, _FEW_ROWS = 300, 1_000
"""The number of tables of the part `many`, and the rows of each."""


@dataclass(frozen=True)
class _Load:
    """The changes of a measurement, and its options."""

    rate: int
    """The changes a second."""
    size: int
    """The changes of a transaction."""
    options: tuple[str, ...] = ()


_FAST = _Load(2000, 20)
_SLOW = _Load(200, 10, ("--engine", "local", "--write-mode", "merge-on-read"))
_SPREAD = _Load(_MANY, 1, ("--engine", "local", "--every", "0.5"))


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure inserts, and updates spread over a small and over a large table."""
    for name, rows in (("small", _SMALL), ("large", setting.scale), ("log", 1)):
        setting.make(name, rows)
    storage = setting.folder / "latency"
    setting.once(storage)
    for kind, statement in (
        ("inserts", _inserts("log")),
        (f"updates spread over {_SMALL:,} rows", _updates(["small"], _SMALL)),
        (f"updates spread over {setting.scale:,} rows", _updates(["large"], setting.scale)),
    ):
        yield _measured(setting, storage, kind, statement, _FAST)


def of_small_tables(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure inserts and updates of some small tables, a transaction in one of them after another."""
    names = [f"small_{number}" for number in range(_TABLES)]
    for name in names:
        setting.make(name, _ROWS)
    storage = setting.folder / "small"
    setting.once(storage)
    where = f"over {_TABLES} tables of {_ROWS:,} rows"
    for kind, statement in (
        (f"inserts {where}", _inserts(*names)),
        (f"updates spread {where}", _updates(names, _ROWS)),
    ):
        yield _measured(setting, storage, kind, statement, _FAST)


def of_few_changes(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure few updates a second of a large table of eight columns whose rows are marked."""
    rows = 2 * setting.scale
    make_orders(setting, rows)
    storage = setting.folder / "few"
    setting.once(storage, *_SLOW.options)

    def statement(first: int, count: int) -> str:
        ids = ",".join(str(random.randrange(1, rows)) for _ in range(count))
        return f"UPDATE orders SET units = {first} WHERE id = ANY('{{{ids}}}')"

    yield _measured(setting, storage, f"updates spread over {rows:,} rows x 8 columns, marked", statement, _SLOW)


def of_many_tables(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure a change a second of each of many tables."""
    names = [f"many_{number}" for number in range(_MANY)]
    for name in names:
        setting.make(name, _FEW_ROWS)
    storage = setting.folder / "many"
    setting.once(storage, *_SPREAD.options)
    yield _measured(setting, storage, f"updates of {_MANY} tables", _updates(names, _FEW_ROWS), _SPREAD)


def _inserts(*names: str) -> Callable[[int, int], str]:
    def statement(first: int, count: int) -> str:
        numbers = f"generate_series({first}, {first + count - 1})"
        return f"INSERT INTO {random.choice(names)} SELECT i, 1, 1, '' FROM {numbers} AS i"

    return statement


def _updates(names: Sequence[str], rows: int) -> Callable[[int, int], str]:
    def statement(first: int, count: int) -> str:
        ids = ",".join(str(random.randrange(1, rows)) for _ in range(count))
        return f"UPDATE {random.choice(names)} SET abalance = {first} WHERE aid = ANY('{{{ids}}}')"

    return statement


def _measured(
    setting: Setting, storage: Path, kind: str, statement: Callable[[int, int], str], load: _Load
) -> dict[str, Any]:
    """Return the figure of a kind of statements, each made for a number that no other one has, and its changes."""
    with setting.following(storage, *load.options) as usage:
        # The first batches start what the command needs.
        _seconds_to_visible(setting, storage, statement, load, 5, 10**6)
        setting.wait(storage)
        old_bytes = bytes_written(storage)
        seconds, batches = _seconds_to_visible(setting, storage, statement, load, setting.seconds, 2 * 10**6)
    return {
        "measured": f"seconds from commit to visible, {kind}, {load.rate:,} changes a second",
        "median": round(float(np.median(seconds)), 2),
        "99th percentile": round(float(np.percentile(seconds, 99)), 2),
        "batches a second": round(batches / setting.seconds, 1),
        "MB written a second": round((bytes_written(storage) - old_bytes) / 1e6 / setting.seconds, 1),
        "of a core": round(usage.used.seconds / (5 + setting.seconds), 3),
        **usage.used.figures(round((5 + setting.seconds) * load.rate), "changes"),
    }


def _seconds_to_visible(
    setting: Setting, storage: Path, statement: Callable[[int, int], str], load: _Load, seconds: float, first: int
) -> tuple[list[float], int]:
    """Return the time of each transaction that commits within some seconds, and the number of states that were seen."""
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
        due = began + number * load.size / load.rate
        if due > clock:
            time.sleep(due - clock)
        connection.execute(statement(first + number * load.size, load.size))
        commits.append((query_wal_head(connection), time.monotonic()))
        number += 1
    while not seen or seen[-1][0] < commits[-1][0]:
        time.sleep(0.05)
    ended.set()
    thread.join()
    lsns, moments = [lsn for lsn, _ in seen], [moment for _, moment in seen]
    places = np.searchsorted(lsns, [lsn for lsn, _ in commits])
    return [moments[at] - moment for at, (_, moment) in zip(places.tolist(), commits, strict=True)], len(seen)


__all__ = ["measure", "of_few_changes", "of_many_tables", "of_small_tables"]
