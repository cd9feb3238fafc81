"""The first load of a large table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
from deltalake import DeltaTable, write_deltalake

from bench.tables.setting import Setting
from logicalrep.postgres.copy_stream import receive_rows, send


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure the load, beside COPY into nothing and beside the same rows written to a Delta table from memory."""
    setting.make("accounts", setting.scale)
    setting.connection.execute("VACUUM ANALYZE accounts")
    began = time.monotonic()
    send(setting.connection, psycopg.sql.SQL("COPY accounts TO STDOUT"))  # type: ignore[arg-type]
    for _ in receive_rows(setting.connection):
        pass
    copy = time.monotonic() - began
    storage = setting.folder / "load"
    ran = setting.once(storage)
    rows = DeltaTable(str(storage / "public" / "accounts")).to_pyarrow_table()
    began = time.monotonic()
    write_deltalake(str(setting.folder / "memory"), rows)
    memory = time.monotonic() - began
    line = next(line for line in ran.output.splitlines() if " loaded " in line)
    loaded = float(line.rpartition(" in ")[2].partition(" ")[0])
    yield {
        "measured": f"first load of {setting.scale:,} rows",
        "rows a second": round(setting.scale / loaded),
        "COPY into nothing": round(setting.scale / copy),
        "written to Delta from memory": round(setting.scale / memory),
        "seconds with the start of Spark": round(ran.seconds, 1),
        **ran.used.figures(setting.scale, "rows"),
    }


__all__ = ["measure"]
