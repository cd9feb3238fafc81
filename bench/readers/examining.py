"""The comparison of what a reader returns with PostgreSQL's rows, and the program that reads the tables of a request.

The programs of readers import this module where nothing of the project but `bench` is installed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.readers.conditions import conditions_on
from bench.readers.reading import Reader, Result, Table, first_line

_ROW_KEY = ("id",)
_CHANGE_KEY = ("_commit_version", "id", "_change_type")
UNFINISHED = "the process ended"
"""How a process ended that did not replace the result of its last table."""


def examine(reader: Reader, table: Table) -> Result:
    """Read a table in full and under filters, or its change data feed; return the differences."""
    result = Result(table.name, table.feature, table.format)
    try:
        if table.feature == "changes":
            _examine_changes(reader, table, result)
        else:
            _examine_rows(reader, table, result)
    except Exception as error:
        result.error = first_line(error)
    return result


def _examine_changes(reader: Reader, table: Table, result: Result) -> None:
    expected = table.expected()
    changes = _scan(lambda columns: reader.changes(table, columns), expected.column_names, _CHANGE_KEY, result)
    _compare(without_views(changes), expected, _CHANGE_KEY, result)


def _examine_rows(reader: Reader, table: Table, result: Result) -> None:
    opened = reader.open(table)
    expected = table.expected()
    rows = _scan(lambda columns: reader.scan(opened, columns), expected.column_names, _ROW_KEY, result)
    rows = without_views(rows)
    _compare(rows, expected, _ROW_KEY, result)
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


def _scan(
    read: Callable[[Sequence[str]], pa.Table], columns: Sequence[str], key: Sequence[str], result: Result
) -> pa.Table:
    """Return all rows with the columns that the reader accepts; raise its error if it accepts none but the key."""
    try:
        return read(columns)
    except Exception as error:
        whole_error = error
    accepted = list(key)
    for name in columns:
        if name in key:
            continue
        try:
            read([*key, name])
        except Exception as error:
            result.refused_columns[name] = first_line(error)
        else:
            accepted.append(name)
    if len(accepted) == len(key):
        result.refused_columns = {}
        raise whole_error
    return read(accepted)


def without_views(rows: pa.Table) -> pa.Table:
    """Return rows whose texts and bytes have types that Arrow can sort and filter."""
    return rows.cast(pa.schema([field.with_type(_plain(field.type)) for field in rows.schema]))


def _plain(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_list(type_):
        return pa.list_(_plain(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_plain(field.type)) for field in type_])
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(type_, type_)


def _compare(rows: pa.Table, expected: pa.Table, key: Sequence[str], result: Result) -> None:
    keys, expected_keys = _sorted_keys(rows, key), _sorted_keys(expected, key)
    if keys != expected_keys:
        result.wrong_rows = f"{', '.join(key)}: {_difference(keys, expected_keys)}"
        return
    order = [(name, "ascending") for name in key]
    rows, expected = rows.sort_by(order), expected.sort_by(order)
    for name in rows.column_names:
        type_ = expected.schema.field(name).type
        values, expected_values = texts_of(rows.column(name), type_), texts_of(expected.column(name), type_)
        for value, expected_value in zip(values, expected_values, strict=True):
            if value != expected_value:
                result.wrong_columns.setdefault(name, f"{value[:60]} in place of {expected_value[:60]}")


def _sorted_keys(rows: pa.Table, key: Sequence[str]) -> list[tuple[Any, ...]]:
    return sorted(zip(*(rows.column(name).to_pylist() for name in key), strict=True))


def _difference(keys: Sequence[tuple[Any, ...]], expected_keys: Sequence[tuple[Any, ...]]) -> str:
    added = [key for key in keys if key not in expected_keys]
    missing = [key for key in expected_keys if key not in keys]
    return f"{len(keys)} rows in place of {len(expected_keys)}, missing {missing[:5]}, added {added[:5]}"


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


def run(make: Callable[[], Reader]) -> None:
    """Read the tables of a request that have no result, and write the results; the program of each reader calls this.

    The file of results has a result of the current table too: it says that the process ended, and stays if it does.
    """
    request, answer = map(Path, sys.argv[1:3])
    reader = make()
    results: list[dict[str, Any]] = json.loads(answer.read_text("utf-8"))["results"] if answer.exists() else []

    def write(result: Result) -> None:
        content = {"reader": reader.name, "version": reader.version, "results": [*results, asdict(result)]}
        # The command reads the file while the program runs.
        new = answer.with_suffix(".new")
        new.write_text(json.dumps(content), "utf-8")
        new.replace(answer)

    tables = [Table(**content) for content in json.loads(request.read_text("utf-8"))]
    tables = [table for table in tables if table.format in reader.formats and table.feature in reader.features]
    for table in tables[len(results) :]:
        print(reader.name, table.name, table.format, table.feature, file=sys.stderr, flush=True)
        write(Result(table.name, table.feature, table.format, ended=UNFINISHED))
        result = examine(reader, table)
        write(result)
        results.append(asdict(result))
    reader.close()


__all__ = ["UNFINISHED", "examine", "run", "texts_of", "without_views"]
