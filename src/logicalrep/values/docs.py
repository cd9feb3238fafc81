"""Writes the table of types: `python -m logicalrep.values.docs docs/reference/types.md`. Needs pyarrow."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from logicalrep.values.column_type import ColumnType
from logicalrep.values.numbers import with_number_type
from logicalrep.values.table import EXTENSIONS, TABLE, Row

if TYPE_CHECKING:
    import pyarrow as pa

BEGIN = "<!-- The table of types: written by python -m logicalrep.values.docs -->"
END = "<!-- The end of the table of types -->"


def table() -> str:
    """Return the table of types as Markdown: a line for each type, and for modifiers that change its targets."""
    lines = [
        "| PostgreSQL | OID | Python | Arrow | Spark, and a Delta table | an Iceberg table | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in (*TABLE, *EXTENSIONS):
        lines.extend(_lines(row))
    return "\n".join(lines)


def _lines(row: Row) -> Iterator[str]:
    note = "Known by its name, in any schema." if row.extension else row.note
    yield _line(row.type, str(row.oid or ""), note)
    for modifier in row.examples:
        yield _line(row.modified(modifier), "", "")
    for option in ("double", "decimal(20,4)") if row.type.spark.is_number_text else ():
        column = with_number_type(row.type, option)
        yield _line(replace(column, name=f"{column.name}, with `--numeric {option}`"), "", "")


def _line(column: ColumnType, oid: str, note: str) -> str:
    # The name of Arrow's only field of a list is omitted: it has no meaning.
    arrow = str(column.arrow_type()).replace("list<item: ", "list<")
    iceberg = iceberg_type(column.arrow_type(for_spark=True))
    cells = (column.name, oid, column.python, arrow, column.spark_type, iceberg, note)
    return f"| {' | '.join(cells)} |".replace("  ", " ")


def iceberg_type(type_: pa.DataType) -> str:
    """Return Iceberg's type, as a name, for a column whose Spark type has this Arrow form."""
    text = str(type_)
    if text.startswith("list<"):
        return f"list<{iceberg_type(type_.value_type)}>"
    if text.startswith("map<"):
        return f"map<{iceberg_type(type_.key_type)}, {iceberg_type(type_.item_type)}>"
    if text.startswith("struct<"):
        return f"struct<{', '.join(f'{field.name}: {iceberg_type(field.type)}' for field in type_)}>"
    return _ICEBERG.get(text, text).replace("decimal128", "decimal")


_ICEBERG = {
    "bool": "boolean",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "timestamp[us, tz=UTC]": "timestamptz",
}


def page(text: str) -> str:
    beginning, begin, remainder = text.partition(BEGIN)
    _, end, ending = remainder.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no line {BEGIN!r} followed by a line {END!r}")
    return f"{beginning}{BEGIN}\n\n{table()}\n\n{END}{ending}"


def main(arguments: list[str]) -> None:
    for argument in arguments:
        path = pathlib.Path(argument)
        path.write_text(page(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
