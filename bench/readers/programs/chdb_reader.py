"""ClickHouse, as the library chDB."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import chdb
import pyarrow as pa
from chdb.session import Session

from bench.readers.examining import run
from bench.readers.reading import SqlReader, Table

_NAMES = {
    "int16": "Int16",
    "int32": "Int32",
    "int64": "Int64",
    "float": "Float32",
    "double": "Float64",
    "date32[day]": "Date32",
}


class ClickHouse(SqlReader):
    name = "ClickHouse (chDB)"
    features = (*SqlReader.features, "changes")
    batch = 20

    def __init__(self) -> None:
        # ClickHouse reads files below the current folder alone.
        os.chdir("/")
        self.session = Session()
        self.version = f"{chdb.engine_version} ({chdb.__version__})"

    def open(self, table: Table) -> str:
        if table.format == "delta":
            settings = "" if table.is_last else f", SETTINGS delta_lake_snapshot_version = {table.version}"
            self.settings = settings.removeprefix(", ")
            return f"deltaLakeLocal('{table.uri}')"
        self.settings = "" if table.is_last else f"SETTINGS iceberg_snapshot_id = {table.version}"
        return f"icebergLocal('{table.uri}')"

    def changes(self, table: Table, columns: Sequence[str]) -> pa.Table:
        versions = {"start": table.first, "end": table.version}
        settings = ", ".join(f"delta_lake_snapshot_{name}_version = {number}" for name, number in versions.items())
        names = ", ".join(map(self.quoted, columns))
        return self._rows(f"SELECT {names} FROM deltaLakeLocal('{table.uri}') SETTINGS {settings}")

    def keep(self, opened: str, rows: pa.Table) -> str:
        columns = ", ".join(map(self.quoted, rows.column_names))
        self.session.query("CREATE DATABASE IF NOT EXISTS copies")
        self.session.query("DROP TABLE IF EXISTS copies.kept")
        self.session.query(
            f"CREATE TABLE copies.kept ENGINE = Memory AS SELECT {columns} FROM {opened} {self.settings}"
        )
        return "copies.kept"

    def query(self, statement: str) -> pa.Table:
        settings = "" if "copies.kept" in statement else self.settings
        return self._rows(f"{statement} {settings}")

    def _rows(self, statement: str) -> pa.Table:
        try:
            return self._answer(statement)
        except RuntimeError:
            self._discard_leftovers()
            raise

    def _discard_leftovers(self) -> None:
        """Query until the answers are right: chDB 4.4.0 answers later queries with what a failed query has left."""
        right_answers = 0
        for _ in range(50):
            answer = self._answer("SELECT 4711 AS probe")
            right_answers = right_answers + 1 if answer.to_pydict() == {"probe": [4711]} else 0
            if right_answers == 5:
                return

    def _answer(self, statement: str) -> pa.Table:
        return pa.ipc.open_stream(self.session.query(statement, "ArrowStream").bytes()).read_all()

    def quoted(self, name: str) -> str:
        return f"`{name}`"

    def literal(self, value: Any, type_: pa.DataType) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, bytes):
            return f"unhex('{value.hex()}')"
        if isinstance(value, str):
            return f"unhex('{value.encode().hex()}')"
        if pa.types.is_timestamp(type_):
            return f"toDateTime64('{value.replace(tzinfo=None).isoformat(' ')}', 6, 'UTC')"
        if pa.types.is_decimal(type_):
            return f"CAST('{value:f}' AS Decimal({type_.precision}, {type_.scale}))"
        return f"CAST('{value}' AS {_NAMES[str(type_)]})"


if __name__ == "__main__":
    run(ClickHouse)
