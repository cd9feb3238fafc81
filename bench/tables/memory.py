"""The most memory of the command's processes for a small and a large input of the same kind: it should not grow."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.tables.setting import Ran, Setting

_MOST = 2 << 10
"""The aim, in MiB."""
_TABLES = (50, 200)
_CHANGES = 2_000
"""The changes of each of many tables in a batch."""
_ROW = 1 << 10
"""The bytes of a row of a large transaction."""
_ENGINES = ("spark", "local")


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure a load, a transaction, and a batch over many tables, each with a tenth or a quarter of it beside it."""
    mega = setting.scale / 1_000_000
    kinds = {
        "a load, rows": ((2 * setting.scale, 20 * setting.scale), _load),
        "a transaction, MiB": ((int(300 * mega), int(3072 * mega)), _write),
        f"a batch of {_CHANGES:,} changes of each table, tables": (_TABLES, _change_many),
    }
    for engine in _ENGINES:
        for number, (what, (sizes, run)) in enumerate(kinds.items()):
            peaks = {}
            for size in sizes:
                to = setting.folder / f"{engine}-{number}-{size}"
                peaks[f"{size:,}"] = run(setting, size, to, engine).used.peak
                shutil.rmtree(to)
                # A slot that nobody reads retains all that is written later.
                setting.connection.execute(
                    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE active_pid IS NULL"
                )
            small, large = (peak["in all"] for peak in peaks.values())
            yield {
                "measured": f"most memory of {what}, {engine}",
                "MiB": peaks,
                "large over small": round(large / small, 2),
                "below 2 GB": large < _MOST,
            }


def _load(setting: Setting, rows: int, to: Path, engine: str) -> Ran:
    setting.make("memory", rows)
    ran = setting.once(to, "--engine", engine)
    setting.connection.execute("DROP TABLE memory")
    return ran


def _write(setting: Setting, mib: int, to: Path, engine: str) -> Ran:
    """Update half of the rows and insert the others, in one transaction of so many bytes."""
    half = (mib << 20) // _ROW // 2
    value = f"repeat(md5((i + %s)::text), {_ROW // 32})"
    setting.connection.execute("CREATE TABLE memory (id int PRIMARY KEY, note text)")
    insert = f"INSERT INTO memory SELECT i, {value} FROM generate_series(%s::int, %s::int) AS i"
    setting.connection.execute(insert, (0, 1, half))
    setting.once(to, "--engine", engine)
    with setting.connection.transaction():
        setting.connection.execute(f"UPDATE memory SET note = {value.replace('i +', 'id +')}", (1,))
        setting.connection.execute(insert, (0, half + 1, 2 * half))
    ran = setting.once(to, "--engine", engine)
    setting.connection.execute("DROP TABLE memory")
    return ran


def _change_many(setting: Setting, count: int, to: Path, engine: str) -> Ran:
    names = [f"memory_{number}" for number in range(count)]
    for name in names:
        setting.make(name, 10 * _CHANGES)
    setting.once(to, "--engine", engine)
    with setting.connection.transaction():
        for name in names:
            setting.connection.execute(f"UPDATE {name} SET abalance = abalance + 1 WHERE aid % 10 = 0")
    ran = setting.once(to, "--engine", engine)
    for name in names:
        setting.connection.execute(f"DROP TABLE {name}")
    return ran


__all__ = ["measure"]
