"""The seconds from a commit until the destination's state names it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
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


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure inserts, and updates spread over a small and over a large table."""
    for name, rows in (("small", _SMALL), ("large", setting.scale), ("log", 1)):
        setting.make(name, rows)
    storage = setting.folder / "latency"
    setting.once(storage)
    update = "UPDATE {} SET abalance = {{next}} WHERE aid = ANY('{{{{{{{}}}}}}}')"
    for kind, statement in (
        ("inserts", "INSERT INTO log SELECT i, 1, 1, '' FROM generate_series({next}, {next} + {more}) AS i"),
        (f"updates spread over {_SMALL:,} rows", update.format("small", "of_small")),
        (f"updates spread over {setting.scale:,} rows", update.format("large", "of_large")),
    ):
        with setting.following(storage) as usage:
            # The first batches start Spark's workers.
            _seconds_to_visible(setting, storage, statement, 5, 10)
            setting.wait(storage)
            before = bytes_written(storage)
            seconds = _seconds_to_visible(setting, storage, statement, setting.seconds, 10**6)
        yield {
            "measured": f"seconds from commit to visible, {kind}, {_RATE:,} changes a second",
            "median": round(float(np.median(seconds)), 2),
            "99th percentile": round(float(np.percentile(seconds, 99)), 2),
            "MB written a second": round((bytes_written(storage) - before) / 1e6 / setting.seconds, 1),
            **usage.used.figures(round((5 + setting.seconds) * _RATE), "changes"),
        }


def _seconds_to_visible(setting: Setting, storage: Path, statement: str, seconds: float, first: int) -> list[float]:
    """Return the time of each transaction that commits within some seconds."""
    connection = setting.connection
    commits: list[tuple[Lsn, float]] = []
    seen: list[tuple[Lsn, float]] = []
    ended = threading.Event()

    def look() -> None:
        there = Storage(str(storage))
        while not ended.is_set():
            lsn = State.read(there).lsn
            if not seen or lsn > seen[-1][0]:
                seen.append((lsn, time.monotonic()))
            time.sleep(0.01)

    thread = threading.Thread(target=look)
    thread.start()
    began = time.monotonic()
    number = 0
    while (now := time.monotonic()) - began < seconds:
        due = began + number * _IN_ONE / _RATE
        if due > now:
            time.sleep(due - now)
        of_small, of_large = (
            ",".join(str(random.randrange(1, rows)) for _ in range(_IN_ONE)) for rows in (_SMALL, setting.scale)
        )
        connection.execute(
            statement.format(next=first + number * _IN_ONE, more=_IN_ONE - 1, of_small=of_small, of_large=of_large)
        )
        commits.append((query_wal_head(connection), time.monotonic()))
        number += 1
    while not seen or seen[-1][0] < commits[-1][0]:
        time.sleep(0.05)
    ended.set()
    thread.join()
    lsns, moments = [lsn for lsn, _ in seen], [moment for _, moment in seen]
    places = np.searchsorted(lsns, [lsn for lsn, _ in commits])
    return [moments[at] - moment for at, (_, moment) in zip(places.tolist(), commits, strict=True)]


__all__ = ["measure"]
