"""The first loads of a large table with few columns, and of one with many types, by both engines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import Any

from deltalake import DeltaTable, write_deltalake
from psycopg import sql

from bench.tables.setting import Setting
from logicalrep.postgres.copy_stream import receive_rows, send

_TYPES = """
CREATE TABLE orders (id int PRIMARY KEY, customer text, units bigint, price numeric(10,2), at timestamptz, day date,
    is_paid bool, token uuid)
"""
_ROWS = """
INSERT INTO orders SELECT i, 'customer number ' || i, 7 * i, i % 100000 / 100.0, '2026-01-01'::timestamptz
    + i * interval '1 second', '2026-01-01'::date + i % 1000, i % 2 = 0, gen_random_uuid()
    FROM generate_series(1, {}) AS i
"""

_SIZE = 4
"""The rows of the tables, as a multiple of the scale."""


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure the loads, beside COPY into nothing and beside the same rows written to a Delta table from memory."""
    count = _SIZE * setting.scale
    setting.make("accounts", count)
    make_orders(setting, count)
    setting.connection.execute("VACUUM ANALYZE")
    for table, engine in product(("accounts", "orders"), ("spark", "local")):
        began = time.monotonic()
        send(setting.connection, sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(table)))
        for _ in receive_rows(setting.connection):
            pass
        copy = time.monotonic() - began
        storage = setting.folder / f"load-{table}-{engine}"
        ran = setting.once(storage, "--engine", engine, "--tables", f"public.{table}")
        rows = DeltaTable(str(storage / "public" / table)).to_pyarrow_table()
        began = time.monotonic()
        write_deltalake(str(setting.folder / f"memory-{table}-{engine}"), rows)
        memory = time.monotonic() - began
        line = next(line for line in ran.output.splitlines() if " loaded " in line)
        loaded = float(line.rpartition(" in ")[2].partition(" ")[0])
        yield {
            "measured": f"first load of {count:,} rows of {table}, --engine {engine}",
            "rows a second, with the start of Spark": round(count / loaded),
            "COPY into nothing": round(count / copy),
            "COPY into nothing, times as fast": round(loaded / copy, 1),
            "written to Delta from memory": round(count / memory),
            "seconds of the command": round(ran.seconds, 1),
            **ran.used.figures(count, "rows"),
        }


def make_orders(setting: Setting, rows: int) -> None:
    """Make the table `orders`, with columns of many types."""
    setting.connection.execute(_TYPES)
    setting.connection.execute(_ROWS.format(rows))


__all__ = ["make_orders", "measure"]
