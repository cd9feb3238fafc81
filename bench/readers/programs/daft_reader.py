"""Daft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import daft
import pyarrow as pa
from daft.expressions import Expression
from pyiceberg.table import StaticTable

from bench.readers.conditions import COMPARISONS, Condition
from bench.readers.examining import run
from bench.readers.reading import ExpressionReader, Table


class Daft(ExpressionReader):
    name, version = "Daft", daft.__version__

    def open(self, table: Table) -> daft.DataFrame:
        if table.format == "delta":
            return daft.read_deltalake(table.uri, version=None if table.is_last else table.version)
        stored = StaticTable.from_metadata(table.metadata)
        return daft.read_iceberg(stored, snapshot_id=None if table.is_last else table.version)

    def scan(self, opened: daft.DataFrame, columns: Sequence[str]) -> pa.Table:
        return opened.select(*columns).to_arrow()

    def keep(self, opened: daft.DataFrame, rows: pa.Table) -> daft.DataFrame:
        return opened.select(*rows.column_names).collect()

    def ids(self, opened: daft.DataFrame, condition: Condition) -> list[int]:
        return opened.where(_expression(condition)).select("id").to_pydict()["id"]


def _expression(condition: Condition) -> Expression:
    column = daft.col(condition.column)
    match condition.operator:
        case "IS NULL":
            return column.is_null()
        case "IS NOT NULL":
            return column.not_null()
    type_ = daft.DataType.from_arrow_type(condition.type)
    values: Any = [daft.lit(value).cast(type_) for value in condition.values]
    return column.is_in(values) if condition.operator == "IN" else COMPARISONS[condition.operator](column, values[0])


if __name__ == "__main__":
    run(Daft)
