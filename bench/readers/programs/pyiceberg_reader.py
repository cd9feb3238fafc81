"""pyiceberg."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyiceberg
from pyiceberg.expressions import (
    BooleanExpression,
    EqualTo,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    NotEqualTo,
    NotNull,
)
from pyiceberg.table import DataScan, StaticTable

from bench.readers.conditions import Condition, matching_ids
from bench.readers.examining import run
from bench.readers.reading import ExpressionReader, Table

_PREDICATES: dict[str, Any] = {"=": EqualTo, "<>": NotEqualTo, "<": LessThan, ">=": GreaterThanOrEqual}


class PyIceberg(ExpressionReader):
    name, version, formats = "pyiceberg", pyiceberg.__version__, ("iceberg",)

    def open(self, table: Table) -> DataScan:
        stored = StaticTable.from_metadata(table.metadata)
        return stored.scan(snapshot_id=None if table.is_last else table.version)

    def scan(self, opened: DataScan, columns: Sequence[str]) -> pa.Table:
        return opened.select(*columns).to_arrow()

    def keep(self, opened: DataScan, rows: pa.Table) -> pa.Table:
        return rows

    def ids(self, opened: DataScan | pa.Table, condition: Condition) -> list[int]:
        if isinstance(opened, pa.Table):
            return matching_ids(opened, condition)
        return opened.filter(_expression(condition)).select("id").to_arrow().column("id").to_pylist()


def _expression(condition: Condition) -> BooleanExpression:
    match condition.operator:
        case "IS NULL":
            return IsNull(condition.column)
        case "IS NOT NULL":
            return NotNull(condition.column)
        case "IN":
            return In(condition.column, set(map(_literal, condition.values)))
    return _PREDICATES[condition.operator](condition.column, _literal(condition.values[0]))


def _literal(value: Any) -> Any:
    # Python's times are taken as their texts.
    return value.isoformat() if hasattr(value, "isoformat") else value


if __name__ == "__main__":
    run(PyIceberg)
