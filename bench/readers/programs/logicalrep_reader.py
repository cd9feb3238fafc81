"""logicalrep.read, as a dataset of pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import pyarrow as pa

import logicalrep
from bench.readers.conditions import Condition, arrow_expression, matching_ids
from bench.readers.examining import run
from bench.readers.reading import ExpressionReader, Table


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
        if isinstance(opened, pa.Table):
            return matching_ids(opened, condition)
        return opened.to_table(columns=["id"], filter=arrow_expression(condition)).column("id").to_pylist()


if __name__ == "__main__":
    run(OwnReader)
