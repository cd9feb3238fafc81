"""A table with marked rows that gets updates for an hour: what is written, the files there are, and a reader's time."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import polars
from deltalake import DeltaTable

from bench.tables.setting import Setting

_RATE, _IN_ONE = 200, 20
"""The updates a second, and those of a transaction."""
_PARTS = 12
"""The parts of the time, each with a figure of its own."""


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure updates of random rows of a table, while the command marks rows."""
    setting.make("large", setting.scale)
    storage, seconds = setting.folder / "upkeep", setting.minutes * 60 / _PARTS
    setting.once(storage)
    table, written = storage / "public/large", _Written()
    figures = []
    with setting.following(storage, "--write-mode", "merge-on-read") as usage:
        written.count(table)
        began, value = time.monotonic(), 0
        for part in range(1, _PARTS + 1):
            while (now := time.monotonic()) < began + part * seconds:
                due = began + value * _IN_ONE / _RATE
                if due > now:
                    time.sleep(min(due - now, 1))
                    continue
                value += 1
                these = ",".join(str(random.randrange(1, setting.scale)) for _ in range(_IN_ONE))
                setting.connection.execute(f"UPDATE large SET abalance = {value} WHERE aid = ANY('{{{these}}}')")
            figures.append(_looked(table, written.count(table) / 1e6 / seconds))
            yield {"measured": f"updates of random rows, part {part} of {_PARTS}", **figures[-1]}
        setting.wait(storage)
    halves = figures[: _PARTS // 2], figures[_PARTS // 2 :]
    yield {
        "measured": f"{_RATE} random updates a second of {setting.scale:,} rows for {setting.minutes} minutes",
        "the second half over the first": {
            name: round(mean(each[name] for each in halves[1]) / mean(each[name] for each in halves[0]), 2)
            for name in figures[0]
        },
        **usage.used.figures(value * _IN_ONE, "changes"),
    }


class _Written:
    """Counts the bytes of all files that the log of a table names, and its own."""

    def __init__(self) -> None:
        self._version, self._paths = -1, set[str]()

    def count(self, table: Path) -> int:
        """Return the bytes since the last call."""
        size = 0
        while (path := table / f"_delta_log/{self._version + 1:020}.json").exists():
            self._version += 1
            size += path.stat().st_size
            for action in map(json.loads, path.read_text().splitlines()):
                added = action.get("add", {"path": ""})
                if added["path"] not in self._paths:
                    self._paths.add(added["path"])
                    size += added.get("size", 0)
                vector = added.get("deletionVector", {"storageType": "i"})
                size += vector["sizeInBytes"] if vector["storageType"] == "u" else 0
        return size


def _looked(table: Path, written: float) -> dict[str, float]:
    began, processor = time.monotonic(), time.process_time()
    polars.read_delta(str(table))
    return {
        "MB written a second": round(written, 3),
        "files": len(DeltaTable(str(table)).file_uris()),
        "a reader's CPU-seconds": round(time.process_time() - processor, 2),
        "its seconds": round(time.monotonic() - began, 2),
    }


__all__ = ["measure"]
