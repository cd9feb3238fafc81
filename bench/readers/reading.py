"""The tables that readers read, and the interface of a reader.

The programs of readers import this module where nothing of the project but `bench` is installed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather

from bench.readers.conditions import Condition


@dataclass(frozen=True)
class Table:
    """A version of a stored table, and where its expected rows are."""

    name: str
    feature: str
    """The column of the page that it belongs to."""
    format: str
    uri: str
    rows: str
    """The file with the expected rows."""
    version: int
    """The number of a Delta version, or the id of an Iceberg snapshot."""
    is_last: bool
    metadata: str = ""
    """The file with the last metadata of an Iceberg table."""
    first: int = 0
    """The first version in the expected change data feed."""

    def expected(self) -> pa.Table:
        return feather.read_table(self.rows)


@dataclass
class Result:
    """What a reader returned for one table."""

    table: str
    feature: str
    format: str
    error: str = ""
    """Why the reader refuses the table."""
    ended: str = ""
    """How the reader's process ended while it read the table."""
    refused_columns: dict[str, str] = field(default_factory=dict)
    """The columns that the reader refuses, with its error."""
    wrong_columns: dict[str, str] = field(default_factory=dict)
    """The columns whose values differ from PostgreSQL's, with an example."""
    wrong_rows: str = ""
    """How the rows of a full scan differ from PostgreSQL's."""
    filters: int = 0
    """The number of compared filters."""
    refused_filters: list[str] = field(default_factory=list)
    wrong_filters: list[str] = field(default_factory=list)
    """Filters under which the reader returns other rows than from a copy of its full scan."""


class RefusedError(Exception):
    """A reader cannot do what the table needs."""


class Reader(ABC):
    """A library or a program that reads tables."""

    name: str
    version: str
    formats: Sequence[str] = ("delta", "iceberg")
    features: Sequence[str] = ("types", "changed", "marked", "partitions", "past", "version 3")
    """The features that the reader has a call for."""

    @abstractmethod
    def open(self, table: Table) -> Any:
        """Return the table for the other methods."""

    @abstractmethod
    def scan(self, opened: Any, columns: Sequence[str]) -> pa.Table:
        """Return all rows of a table."""

    @abstractmethod
    def keep(self, opened: Any, rows: pa.Table) -> Any:
        """Return the rows in memory, for `matching` without files that could be skipped."""

    @abstractmethod
    def matching(self, opened: Any, conditions: Sequence[Condition]) -> list[list[int] | str]:
        """Return for each condition the ids of its rows, or an error."""

    def changes(self, table: Table, columns: Sequence[str]) -> pa.Table:
        """Return the change data feed of the versions from `first`; the feed's own columns are among the columns."""
        raise NotImplementedError(f"{self.name} has no call for the change data feed")

    def close(self) -> None:  # noqa: B027
        """End what keeps the process alive: nothing, for most readers."""


def first_line(error: BaseException) -> str:
    """Return the type and the first line of an error."""
    # py4j's text begins with the call.
    text = getattr(error, "java_exception", None) or f"{type(error).__name__}: {error}"
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return lines[0][:300]


def ids_by_condition(rows: pa.Table, count: int) -> list[list[int]]:
    """Return the ids of each condition from rows of its number `q` and `id`."""
    ids: list[list[int]] = [[] for _ in range(count)]
    for number, id_ in zip(rows.column("q").to_pylist(), rows.column("id").to_pylist(), strict=True):
        ids[number].append(id_)
    return ids


class SqlReader(Reader):
    """A reader of SQL; what `open` and `keep` return is the name or the call of a relation."""

    batch = 40
    """The filters of one statement."""

    @abstractmethod
    def query(self, statement: str) -> pa.Table:
        """Return the rows of a statement."""

    @abstractmethod
    def literal(self, value: Any, type_: pa.DataType) -> str:
        """Return a value as a constant of the dialect, with the column's type."""

    def quoted(self, name: str) -> str:
        return f'"{name}"'

    def scan(self, opened: Any, columns: Sequence[str]) -> pa.Table:
        return self.query(f"SELECT {', '.join(map(self.quoted, columns))} FROM {opened}")

    def matching(self, opened: Any, conditions: Sequence[Condition]) -> list[list[int] | str]:
        ids: list[list[int] | str] = []
        for first in range(0, len(conditions), self.batch):
            batch = conditions[first : first + self.batch]
            try:
                ids += self._matching(opened, batch)
            except Exception:
                for condition in batch:
                    try:
                        ids += self._matching(opened, [condition])
                    except Exception as error:
                        ids.append(first_line(error))
        return ids

    def _matching(self, opened: Any, conditions: Sequence[Condition]) -> list[list[int]]:
        selects = [
            f"SELECT {number} AS q, id FROM {opened} WHERE {self.text(condition)}"
            for number, condition in enumerate(conditions)
        ]
        return ids_by_condition(self.query(" UNION ALL ".join(selects)), len(conditions))

    def text(self, condition: Condition) -> str:
        """Return a condition in SQL."""
        values = ", ".join(self.literal(value, condition.type) for value in condition.values)
        column = self.quoted(condition.column)
        return f"{column} IN ({values})" if condition.operator == "IN" else f"{column} {condition.operator} {values}"


class ExpressionReader(Reader):
    """A reader of expressions, one filter at a time."""

    @abstractmethod
    def ids(self, opened: Any, condition: Condition) -> list[int]:
        """Return the ids of the rows of a filter."""

    def matching(self, opened: Any, conditions: Sequence[Condition]) -> list[list[int] | str]:
        ids: list[list[int] | str] = []
        for condition in conditions:
            try:
                ids.append(self.ids(opened, condition))
            except Exception as error:
                ids.append(first_line(error))
        return ids


_SQL_NAMES = {
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE",
    "date32[day]": "DATE",
    "timestamp[us]": "TIMESTAMP",
    "timestamp[us, tz=UTC]": "TIMESTAMPTZ",
}


def sql_literal(value: Any, type_: pa.DataType, names: Mapping[str, str] = _SQL_NAMES) -> str:
    """Return a value as a constant of standard SQL: a cast of its text, except texts and booleans.

    `names` has the names of types in SQL by their names in Arrow.
    """
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    text = value.isoformat(" ") if pa.types.is_timestamp(type_) else str(value)
    text = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text, text)
    decimal = pa.types.is_decimal(type_)
    name = f"DECIMAL({type_.precision}, {type_.scale})" if decimal else {**_SQL_NAMES, **names}[str(type_)]
    return f"CAST('{text}' AS {name})"
