"""The disk that a table's destination takes by its options, beside the bytes of the last version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from bench.tables.setting import Setting, bytes_written

_BATCHES = 40
_CHANGES = 1_000
"""The updates of a transaction, spread over the table."""
_TABLE = "CREATE TABLE orders (id int PRIMARY KEY, customer uuid, item text, note text, price numeric(10, 2))"
_ROWS = (
    "INSERT INTO orders SELECT i, gen_random_uuid(), md5(i::text), md5((-i)::text), i % 500 "
    "FROM generate_series(1, {}) AS i"
)
_OPTIONS = (
    (),
    ("--every", "5"),
    ("--keep", "0"),
    ("--write-mode", "merge-on-read"),
    ("--write-mode", "merge-on-read", "--keep", "0"),
    ("--append",),
)
"""The options beside the defaults; all runs commit as soon as changes arrive, unless these say otherwise."""


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure transactions of updates that are spread over a table, once with each set of options."""
    setting.connection.execute(_TABLE)
    setting.connection.execute(_ROWS.format(setting.scale))
    yield {"measured": "the table on the server, MB", "MB": _megabytes(_query_size(setting))}
    for number, options in enumerate(_OPTIONS):
        storage = setting.folder / f"disk{number}"
        setting.once(storage, "--engine", "local", *options)
        loaded, most = _size(storage), 0
        with setting.following(storage, "--engine", "local", *options):
            for batch in range(_BATCHES):
                setting.connection.execute(
                    f"UPDATE orders SET price = price + 1 WHERE id % {setting.scale // _CHANGES} = {batch}"
                )
                if "--every" not in options:
                    setting.wait(storage)
                    most = max(most, _size(storage))
            setting.wait(storage)
        table = DeltaTable(storage / "public" / "orders")
        last_version = sum(table.get_add_actions().column("size_bytes").to_pylist())
        yield {
            "measured": f"{_BATCHES} transactions of {_CHANGES:,} updates, {' '.join(options) or 'defaults'}",
            "commits": table.version(),
            "MB after the load": _megabytes(loaded),
            "MB of the last version": _megabytes(last_version),
            "MB at the end": _megabytes(_size(storage)),
            "most MB": _megabytes(max(most, _size(storage))),
            "MB written": _megabytes(bytes_written(storage)),
        }
        setting.connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


def _query_size(setting: Setting) -> int:
    row = setting.connection.execute("SELECT pg_total_relation_size('orders')").fetchone()
    return int(row[0])


def _size(folder: Path) -> int:
    """Return the bytes of a folder's files; replicate may delete some of them meanwhile."""
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return size


def _megabytes(size: int) -> int:
    return round(size / 1e6)


__all__ = ["measure"]
