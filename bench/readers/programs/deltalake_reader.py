"""deltalake: its `QueryBuilder`, which reads marked rows too."""

from __future__ import annotations

from typing import Any

import deltalake
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from bench.readers.programs.datafusion_reader import datafusion_literal
from bench.readers.reading import SqlReader, Table, run


class DeltaLake(SqlReader):
    name, version, formats = "deltalake's `QueryBuilder`", deltalake.__version__, ("delta",)

    def open(self, table: Table) -> str:
        self.builder = QueryBuilder().register("stored", DeltaTable(table.uri, version=table.version))
        return "stored"

    def keep(self, opened: str, rows: pa.Table) -> str:
        # The engine cannot take rows into memory, and reads all files where it cannot tell that a condition is true.
        return "(SELECT * FROM stored ORDER BY id LIMIT 1000000000)"

    def query(self, statement: str) -> pa.Table:
        return pa.table(self.builder.execute(statement).read_all())

    def literal(self, value: Any, type_: pa.DataType) -> str:
        return datafusion_literal(value, type_)


if __name__ == "__main__":
    run(DeltaLake)
