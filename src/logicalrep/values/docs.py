"""Writes the table of types: `python -m logicalrep.values.docs docs/reference/types.md`. Needs pyarrow."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

from logicalrep.values.column_type import ColumnType
from logicalrep.values.table import EXTENSIONS, TABLE, Row

BEGIN = "<!-- The table of types: written by python -m logicalrep.values.docs -->"
END = "<!-- The end of the table of types -->"


def table() -> str:
    """Return the table of types as Markdown: a line for each type, and for modifiers that change its targets."""
    lines = ["| PostgreSQL | OID | Python | Arrow | Spark | |", "| --- | --- | --- | --- | --- | --- |"]
    for row in (*TABLE, *EXTENSIONS):
        lines.extend(_lines(row))
    return "\n".join(lines)


def _lines(row: Row) -> Iterator[str]:
    yield _line(row.type, str(row.oid or ""), row.note)
    for modifier in row.examples:
        yield _line(row.modified(modifier), "", "")


def _line(column: ColumnType, oid: str, note: str) -> str:
    # The name of Arrow's only field of a list is omitted: it tells nothing.
    arrow = str(column.arrow_type()).replace("list<item: ", "list<")
    return f"| {column.name} | {oid} | {column.python} | {arrow} | {column.spark_type} | {note} |".replace("  ", " ")


def page(text: str) -> str:
    """Return the page with the lines between its two marks replaced by the table."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no line {BEGIN!r} followed by a line {END!r}")
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def main(arguments: list[str]) -> None:
    for argument in arguments:
        path = pathlib.Path(argument)
        path.write_text(page(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
