"""deltalake: its `QueryBuilder`, which reads marked rows too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import deltalake
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from bench.readers.examining import run
from bench.readers.programs.datafusion_reader import datafusion_literal
from bench.readers.reading import SqlReader, Table


class DeltaLake(SqlReader):
    name, version, formats = "deltalake's `QueryBuilder`, `load_cdf`", deltalake.__version__, ("delta",)
    features = (*SqlReader.features, "changes")

    def open(self, table: Table) -> str:
        self.builder = QueryBuilder().register("stored", DeltaTable(table.uri, version=table.version))
        return "stored"

    def keep(self, opened: str, rows: pa.Table) -> str:
        # The engine cannot take rows into memory, and reads all files where it cannot tell that a condition is true.
        return "(SELECT * FROM stored ORDER BY id LIMIT 1000000000)"

    def changes(self, table: Table, columns: Sequence[str]) -> pa.Table:
        feed = DeltaTable(table.uri).load_cdf(table.first, table.version, columns=list(columns))
        return pa.table(feed.read_all())

    def query(self, statement: str) -> pa.Table:
        return pa.table(self.builder.execute(statement).read_all())

    def literal(self, value: Any, type_: pa.DataType) -> str:
        return datafusion_literal(value, type_)


if __name__ == "__main__":
    run(DeltaLake)
