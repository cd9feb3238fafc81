"""A table with marked rows that gets updates for an hour: what is written and why, the files, and a reader's time."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import polars
from deltalake import DeltaTable

from bench.tables.setting import Setting

_RATE, _IN_ONE = 200, 20
"""The updates a second, and the updates of a transaction."""
_PARTS = 12
"""The parts of the time, each with a figure of its own."""
_FLAT = 1.25
"""So many times what the first half has the second half may have."""


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure updates of random rows of a table, while the command marks rows."""
    setting.make("large", setting.scale)
    storage, seconds = setting.folder / "upkeep", setting.minutes * 60 / _PARTS
    setting.once(storage)
    table = storage / "public/large"
    written, figures = Written(table), []
    with setting.following(storage, "--write-mode", "merge-on-read") as usage:
        written.take()
        began, value = time.monotonic(), 0
        for part in range(1, _PARTS + 1):
            while (moment := time.monotonic()) < began + part * seconds:
                due = began + value * _IN_ONE / _RATE
                if due > moment:
                    time.sleep(min(due - moment, 1))
                    continue
                value += 1
                ids = ",".join(str(random.randrange(1, setting.scale)) for _ in range(_IN_ONE))
                setting.connection.execute(f"UPDATE large SET abalance = {value} WHERE aid = ANY('{{{ids}}}')")
            figures.append(_figure(written.take(), seconds) | _looked(table))
            yield {"measured": f"updates of random rows, part {part} of {_PARTS}", **figures[-1]}
        setting.wait(storage)
    halves = figures[: _PARTS // 2], figures[_PARTS // 2 :]
    ratios = {
        name: round(
            mean(period[name] for period in halves[1]) / max(mean(period[name] for period in halves[0]), 1e-9), 2
        )
        for name in figures[0]
    }
    yield {
        "measured": f"{_RATE} random updates a second of {setting.scale:,} rows for {setting.minutes} minutes",
        "the second half over the first": ratios,
        "flat": all(ratios[name] <= _FLAT for name in ("MB written a second", "files", "a reader's CPU-seconds")),
        **usage.used.figures(value * _IN_ONE, "changes"),
    }


class Written:
    """Counts what a table's log tells of: its commits, and the bytes of files, vectors and the log by their causes."""

    def __init__(self, table: Path) -> None:
        """Take the table's folder."""
        self._table, self._version, self._paths = table, -1, set[str]()

    def take(self) -> Counter[str]:
        """Return the counts since the last call."""
        counts: Counter[str] = Counter()
        while (path := self._table / f"_delta_log/{self._version + 1:020}.json").exists():
            self._version += 1
            actions = [json.loads(line) for line in path.read_text().splitlines()]
            is_merge = any(action.get("commitInfo", {}).get("operation") == "OPTIMIZE" for action in actions)
            counts["merges" if is_merge else "batches"] += 1
            vectors = 0
            for added in (action["add"] for action in actions if "add" in action):
                if added["path"] not in self._paths:
                    self._paths.add(added["path"])
                    counts["bytes of merges" if is_merge else "bytes of rows"] += added["size"]
                if "deletionVector" in added:
                    vector = added["deletionVector"]
                    vectors += vector["sizeInBytes"]
                    # A vector in the commit itself has five characters for four bytes.
                    counts["bytes of the log"] -= vector["sizeInBytes"] * 5 // 4 if vector["storageType"] == "i" else 0
            counts["bytes of vectors"] += vectors
            counts["bytes of the log"] += path.stat().st_size
        return counts


def _figure(counts: Counter[str], seconds: float) -> dict[str, float]:
    kinds = ("rows", "vectors", "merges", "the log")
    size = sum(counts[f"bytes of {kind}"] for kind in kinds)
    return {
        "MB written a second": round(size / 1e6 / seconds, 3),
        **{f"of that for {kind}": round(counts[f"bytes of {kind}"] / 1e6 / seconds, 3) for kind in kinds},
        "batches a second": round(counts["batches"] / seconds, 2),
        "kB a batch": round(size / 1e3 / max(counts["batches"], 1), 1),
        "merges": counts["merges"],
    }


def _looked(table: Path) -> dict[str, float]:
    began, processor = time.monotonic(), time.process_time()
    polars.read_delta(str(table))
    return {
        "files": len(DeltaTable(str(table)).file_uris()),
        "a reader's CPU-seconds": round(time.process_time() - processor, 2),
        "its seconds": round(time.monotonic() - began, 2),
    }


__all__ = ["Written", "measure"]
