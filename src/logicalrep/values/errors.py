"""The one error of this package: a column value that its type does not allow."""

from __future__ import annotations

from logicalrep_runtime.errors import LogicalRepError

__all__ = ["ColumnValueError", "shortened"]

_SHOWN = 80


def shortened(text: str) -> str:
    if len(text) <= _SHOWN:
        return repr(text)
    return f"{text[:_SHOWN]!r}… ({len(text)} characters)"


class ColumnValueError(LogicalRepError, ValueError):
    """A value that does not parse as its column's type, or that the Arrow or Spark type cannot hold.

    Attributes:
        reason: the fault, in a few words.
        type_name: PostgreSQL's name of the column's type, such as `numeric(10,2)`.
        text: the whole value as text, to be stored beside a NULL: the server's text if it came in text format,
            `\\x` and hexadecimal digits if it came in binary format.
        table: the table's name with its schema, such as `public.orders`; empty if not known.
        column: the column's name; empty if not known.
        kind: `t` or `b`, the format of the value; empty for a value that was parsed already.
        row: the value's index in the list for an Arrow array; None elsewhere.
    """

    code = "COLUMN_VALUE"

    def __init__(
        self,
        reason: str,
        *,
        type_name: str,
        text: str,
        kind: str = "",
        table: str = "",
        column: str = "",
        row: int | None = None,
    ) -> None:
        super().__init__(reason, type_name, text, kind, table, column, row)
        self.reason = reason
        self.type_name = type_name
        self.text = text
        self.kind = kind
        self.table = table
        self.column = column
        self.row = row

    def at(self, table: str, column: str) -> ColumnValueError:
        """Return this error with the names of the table and the column."""
        return ColumnValueError(
            self.reason,
            type_name=self.type_name,
            text=self.text,
            kind=self.kind,
            table=table,
            column=column,
            row=self.row,
        )

    def __reduce__(self) -> tuple[object, ...]:
        # The error must cross process boundaries; the default would pass the keyword arguments by position.
        return _rebuild, self.args

    @property
    def description(self) -> str:
        """The error in words."""
        where = ".".join(name for name in (self.table, self.column) if name)
        if self.row is not None:
            where = f"{where} row {self.row}".lstrip()
        form = {"t": "text format, ", "b": "binary format, "}.get(self.kind, "")
        return f"{where + ': ' if where else ''}{shortened(self.text)} ({form}type {self.type_name}): {self.reason}"


def _rebuild(
    reason: str, type_name: str, text: str, kind: str, table: str, column: str, row: int | None
) -> ColumnValueError:
    return ColumnValueError(reason, type_name=type_name, text=text, kind=kind, table=table, column=column, row=row)
