"""The tables that readers read, the interface of a reader, and its results: what differs from PostgreSQL's rows.

The programs of readers import this module where nothing of the project but `bench` is installed.
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather

from bench.readers.conditions import Condition, conditions_on

_MOST_EXAMPLES = 5


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


def examine(reader: Reader, table: Table) -> Result:
    """Read a table in full and under filters; return the differences."""
    result = Result(table.name, table.feature, table.format)
    expected = table.expected()
    try:
        opened = reader.open(table)
    except Exception as error:
        result.error = _line(error)
        return result
    scanned = _scan(reader, opened, expected, result)
    if scanned is None:
        return result
    rows = _without_views(scanned)
    _compare(rows, expected, result)
    expected = expected.select([name for name in expected.column_names if name in rows.column_names])
    conditions = conditions_on(
        expected, is_brief=table.feature not in ("types", "partitions"), is_whole=table.feature == "partitions"
    )
    pruned = reader.matching(opened, conditions)
    whole = reader.matching(reader.keep(opened, rows), conditions)
    for condition, skipping, full in zip(conditions, pruned, whole, strict=True):
        if isinstance(skipping, str) or isinstance(full, str):
            result.refused_filters.append(f"{condition}: {skipping if isinstance(skipping, str) else full}")
            continue
        result.filters += 1
        if sorted(skipping) != sorted(full):
            result.wrong_filters.append(f"{condition}: ids {sorted(skipping)}, of a full scan {sorted(full)}")
    return result


def _scan(reader: Reader, opened: Any, expected: pa.Table, result: Result) -> pa.Table | None:
    """Return all rows with the columns that the reader accepts; None if it accepts no rows."""
    try:
        return reader.scan(opened, expected.column_names)
    except Exception as error:
        text = _line(error)
    accepted = ["id"]
    for name in expected.column_names:
        try:
            reader.scan(opened, list(dict.fromkeys(["id", name])))
        except Exception as error:
            result.refused_columns[name] = _line(error)
        else:
            accepted.append(name)
    if len(accepted) < 2:
        result.error, result.refused_columns = text, {}
        return None
    return reader.scan(opened, list(dict.fromkeys(accepted)))


def _without_views(rows: pa.Table) -> pa.Table:
    """Return rows whose texts and bytes have types that Arrow can sort and filter."""
    return rows.cast(pa.schema([field.with_type(_plain(field.type)) for field in rows.schema]))


def _plain(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_list(type_):
        return pa.list_(_plain(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_plain(field.type)) for field in type_])
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(type_, type_)


def _compare(rows: pa.Table, expected: pa.Table, result: Result) -> None:
    ids, expected_ids = sorted(rows.column("id").to_pylist()), sorted(expected.column("id").to_pylist())
    if ids != expected_ids:
        result.wrong_rows = f"ids {ids} in place of {expected_ids}"
        return
    rows, expected = rows.sort_by("id"), expected.sort_by("id")
    for name in rows.column_names:
        type_ = expected.schema.field(name).type
        values, expected_values = texts_of(rows.column(name), type_), texts_of(expected.column(name), type_)
        for value, expected_value in zip(values, expected_values, strict=True):
            if value != expected_value:
                result.wrong_columns.setdefault(name, f"{value[:60]} in place of {expected_value[:60]}")


def texts_of(column: pa.ChunkedArray, type_: pa.DataType) -> list[str]:
    """Return a text of each value, under the expected type: days and microseconds as numbers, floats in full."""
    try:
        # Some programs have no times without a zone.
        column = column.cast(type_)
        if _as_numbers(type_) != type_:
            column = column.cast(_as_numbers(type_))
    except pa.ArrowException:
        # Another type, whose texts show it.
        pass
    return [repr(value) for value in column.to_pylist(maps_as_pydicts="lossy")]


def _as_numbers(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(type_):
        return pa.int32()
    if pa.types.is_timestamp(type_):
        return pa.int64()
    if pa.types.is_list(type_):
        return pa.list_(_as_numbers(type_.value_type))
    return type_


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in f"{type(error).__name__}: {error}".splitlines() if line.strip()]
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
                        ids.append(_line(error))
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
                ids.append(_line(error))
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


def run(make: Callable[[], Reader]) -> None:
    """Read the tables of a request, and write the results; the program of each reader calls this."""
    request, answer = map(Path, sys.argv[1:3])
    reader = make()
    results: list[dict[str, Any]] = []
    for content in json.loads(request.read_text("utf-8")):
        table = Table(**content)
        if table.format in reader.formats and table.feature in reader.features:
            results.append(asdict(examine(reader, table)))
            print(reader.name, table.name, table.format, table.feature, file=sys.stderr, flush=True)
            # A program that ends early leaves the results of its first tables.
            answer.write_text(
                json.dumps({"reader": reader.name, "version": reader.version, "results": results}), "utf-8"
            )
