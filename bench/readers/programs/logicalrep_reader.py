"""logicalrep.read, as a dataset of pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import logicalrep
from bench.readers.conditions import Condition
from bench.readers.reading import ExpressionReader, Table, run

_OPERATORS = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, ">=": pc.greater_equal}


class OwnReader(ExpressionReader):
    name, version = "`logicalrep.read`", installed_version("logicalrep")
    features = ("types", "changed", "marked", "partitions", "version 3")

    def open(self, table: Table) -> Any:
        path = Path(table.uri)
        return logicalrep.read(path.parents[1], f"public.{path.name}")

    def scan(self, opened: Any, columns: Sequence[str]) -> pa.Table:
        return opened.to_table(columns=list(columns))

    def keep(self, opened: Any, rows: pa.Table) -> pa.Table:
        return rows

    def ids(self, opened: Any, condition: Condition) -> list[int]:
        expression = _expression(condition)
        if isinstance(opened, pa.Table):
            return opened.filter(expression).column("id").to_pylist()
        return opened.to_table(columns=["id"], filter=expression).column("id").to_pylist()


def _expression(condition: Condition) -> pc.Expression:
    column = pc.field(condition.column)
    match condition.operator:
        case "IS NULL":
            return column.is_null()
        case "IS NOT NULL":
            return column.is_valid()
        case "IN":
            return column.isin(pa.array(condition.values, condition.type))
    return _OPERATORS[condition.operator](column, pa.scalar(condition.values[0], condition.type))


if __name__ == "__main__":
    run(OwnReader)
