"""Polars: `scan_delta` and `scan_iceberg`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars
import pyarrow as pa

from bench.readers.conditions import COMPARISONS, Condition
from bench.readers.examining import run
from bench.readers.reading import ExpressionReader, Table


class Polars(ExpressionReader):
    name, version = "Polars", polars.__version__

    def open(self, table: Table) -> polars.LazyFrame:
        if table.format == "delta":
            return polars.scan_delta(table.uri, version=None if table.is_last else table.version)
        return polars.scan_iceberg(table.metadata, snapshot_id=None if table.is_last else table.version)

    def scan(self, opened: polars.LazyFrame, columns: Sequence[str]) -> pa.Table:
        return opened.select(columns).collect().to_arrow()

    def keep(self, opened: polars.LazyFrame, rows: pa.Table) -> polars.LazyFrame:
        return opened.select(rows.column_names).collect().lazy()

    def ids(self, opened: polars.LazyFrame, condition: Condition) -> list[int]:
        return opened.filter(self.expression(opened, condition)).select("id").collect()["id"].to_list()

    def expression(self, opened: polars.LazyFrame, condition: Condition) -> polars.Expr:
        """Return a condition as an expression of Polars."""
        column = polars.col(condition.column)
        match condition.operator:
            case "IS NULL":
                return column.is_null()
            case "IS NOT NULL":
                return column.is_not_null()
        empty: Any = polars.from_arrow(pa.table({"value": pa.array(condition.values, condition.type)}))
        values = empty["value"]
        if condition.operator == "IN":
            return column.is_in(values.implode())
        return COMPARISONS[condition.operator](column, polars.lit(values[0], dtype=values.dtype))


if __name__ == "__main__":
    run(Polars)
