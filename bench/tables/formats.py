"""The cost of a commit in each format, beside the other, as a table grows and as its commits become many.

The tables are made without a server, and the batches are applied in this process, as an engine does it for one table.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.tables.amplification import APP, NARROW, make_table, updates_of, usage
from bench.tables.setting import Setting
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import Position, StoredTable
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.schema.table_settings import WriteMode
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.upkeep.merging import merge_next
from logicalrep_runtime.scalars import Lsn

_FORMATS: tuple[FormatName, ...] = ("delta", "iceberg")
_MODES: tuple[WriteMode, ...] = ("copy-on-write", "merge-on-read")
_SIZES = (2, 10)
"""The rows of the tables, as multiples of the scale."""
_CHANGES = (1_000, 55_000)
_ROUNDS = 3
_COMMITS = (100, 1_000, 5_000, 10_000)
"""The numbers of commits after which the last commits are reported, if the scale has a hundred times as many rows."""
_LAST = 50


@dataclass(frozen=True)
class _CountingStorage(Storage):
    """A destination that counts what is written to it, by paths and bytes."""

    written: list[tuple[str, int]] = field(default_factory=list)

    def write(self, path: str, data: bytes) -> None:
        self.written.append((path, len(data)))
        super().write(path, data)

    def create(self, path: str, data: bytes) -> bool:
        self.written.append((path, len(data)))
        return super().create(path, data)


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure random updates of tables in both formats and both write modes."""
    for rows in (size * setting.scale for size in _SIZES):
        for mode in _MODES:
            for name in _FORMATS:
                stored, written = _table(setting.folder, rows, mode, name)
                for count in (changes for changes in _CHANGES if changes <= rows):
                    costs = [_commit(stored, written, rows, count, 1000 * count + number) for number in range(_ROUNDS)]
                    processor, seconds, nbytes, objects = (
                        statistics.median(values) for values in zip(*costs, strict=True)
                    )
                    yield {
                        "measured": f"{count:,} random updates of {rows:,} rows, {name}, {mode}",
                        "CPU-seconds": round(processor, 3),
                        "seconds": round(seconds, 3),
                        "written, MB": round(nbytes / 1e6, 3),
                        "objects a commit": objects,
                    }


def of_commits(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure the last commits of many in both formats, of ten updates each, with the upkeep that is due."""
    rows = 10_000
    for name in _FORMATS:
        stored, written = _table(setting.folder, rows, "merge-on-read", name)
        costs: list[tuple[float, float, int, int]] = []
        for number in range(1, max(count for count in _COMMITS if count <= max(setting.scale // 100, _COMMITS[0])) + 1):
            costs.append(_commit(stored, written, rows, 10, 1000 + number))
            if number in _COMMITS:
                processor, seconds, nbytes, _ = (
                    statistics.median(values) for values in zip(*costs[-_LAST:], strict=True)
                )
                logs = [(path, size) for path, size in written if not path.endswith(".parquet")]
                files = [
                    path for path in (setting.folder / f"{name}-{rows}-merge-on-read").rglob("*") if path.is_file()
                ]
                yield {
                    "measured": f"a commit of 10 updates after {number:,} of them, {name}",
                    "CPU-seconds": round(processor, 4),
                    "seconds": round(seconds, 4),
                    "written, KB": round(nbytes / 1e3, 1),
                    "of these in the log or metadata, KB a commit": round(
                        sum(size for _, size in logs) / _LAST / 1e3, 1
                    ),
                    "MB at the destination": round(sum(path.stat().st_size for path in files) / 1e6, 1),
                    "files at the destination": len(files),
                    "seconds to open": round(_seconds_to_open(stored), 3),
                }
            if number % _LAST == 0:
                written.clear()


def _table(folder: Path, rows: int, mode: WriteMode, name: FormatName) -> tuple[StoredTable, list[tuple[str, int]]]:
    storage = _CountingStorage(str(folder / f"{name}-{rows}-{mode}"))
    return make_table(storage, NARROW, rows, mode, name), storage.written


def _commit(
    stored: StoredTable, written: list[tuple[str, int]], rows: int, count: int, lsn: int
) -> tuple[float, float, int, int]:
    """Apply updates; return the seconds of the processor and of the clock, and the bytes and objects written."""
    ids = np.random.default_rng(lsn).choice(rows, count, replace=False)
    changes = updates_of(NARROW, ids, lsn)
    first, (_, _, processor_start), began = len(written), usage(), time.monotonic()
    apply(stored, [changes], Position(APP, Lsn(lsn)), SequentialEngine())
    seconds, (_, _, processor_end) = time.monotonic() - began, usage()
    sizes = [size for _, size in written[first:]]
    while merge_next(stored, SequentialEngine()):
        pass
    if stored.is_upkeep_due(24):
        stored.maintain(24)
    return processor_end - processor_start, seconds, sum(sizes), len(sizes)


def _seconds_to_open(stored: StoredTable) -> float:
    began = time.monotonic()
    assert table_format(stored.storage, stored.table.settings.format).open(stored.folder) is not None
    return time.monotonic() - began


__all__ = ["measure", "of_commits"]
