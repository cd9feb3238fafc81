"""DuckDB with its extensions for Delta and Iceberg."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from bench.readers.examining import run
from bench.readers.reading import SqlReader, Table, sql_literal


class DuckDb(SqlReader):
    name, version = "DuckDB", duckdb.__version__

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        for extension in ("delta", "avro", "iceberg"):
            package = importlib.import_module(f"duckdb_extension_{extension}")
            assert package.__file__
            (path,) = Path(package.__file__).parent.rglob("*.duckdb_extension")
            self.connection.execute(f"LOAD '{path}'")
        self.connection.execute("SET TimeZone = 'UTC'")

    def open(self, table: Table) -> str:
        if table.format == "delta":
            option = "" if table.is_last else f", version => {table.version}"
            return f"delta_scan('{table.uri}'{option})"
        option = "" if table.is_last else f", snapshot_from_id => {table.version}"
        return f"iceberg_scan('{table.metadata}'{option})"

    def keep(self, opened: str, rows: pa.Table) -> str:
        self.connection.execute("CREATE OR REPLACE TABLE kept AS SELECT * FROM rows")
        return "kept"

    def query(self, statement: str) -> pa.Table:
        return self.connection.execute(statement).to_arrow_table()

    def literal(self, value: Any, type_: pa.DataType) -> str:
        if isinstance(value, bytes):
            return f"unhex('{value.hex()}')"
        return sql_literal(value, type_)


if __name__ == "__main__":
    run(DuckDb)
