"""DataFusion, with deltalake's table provider."""

from __future__ import annotations

from typing import Any

import datafusion
import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from deltalake import DeltaTable

from bench.readers.examining import run
from bench.readers.reading import SqlReader, Table, sql_literal


class DataFusion(SqlReader):
    name, version, formats = "DataFusion", datafusion.__version__, ("delta",)

    def open(self, table: Table) -> str:
        self.context = SessionContext(SessionConfig().set("datafusion.execution.time_zone", "UTC"))
        self.context.register_table("stored", DeltaTable(table.uri, version=table.version))
        return "stored"

    def keep(self, opened: str, rows: pa.Table) -> str:
        self.context.register_record_batches("kept", [rows.to_batches()])
        return "kept"

    def query(self, statement: str) -> pa.Table:
        return self.context.sql(statement).to_arrow_table()

    def literal(self, value: Any, type_: pa.DataType) -> str:
        return datafusion_literal(value, type_)


def datafusion_literal(value: Any, type_: pa.DataType) -> str:
    """Return a constant in DataFusion's SQL."""
    return f"X'{value.hex()}'" if isinstance(value, bytes) else sql_literal(value, type_)


if __name__ == "__main__":
    run(DataFusion)
