"""A column of a table: it loads values, and its name is in their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from logicalrep.values.column_type import ColumnType
from logicalrep.values.errors import ColumnValueError
from logicalrep_runtime.errors import codec_name

__all__ = ["Column"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column and its type.

    Attributes:
        name: the column's name.
        type: from `column_type()`.
        table: the table's name with its schema, for errors: `public.orders`.
        encoding: the Python codec of the session's client_encoding.
    """

    name: str
    type: ColumnType
    table: str = ""
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        codec_name(self.encoding)

    def load(self, kind: str | int, value: bytes) -> Any:
        """Return the Python value of a value of this column.

        Args:
            kind: `t` or `b`, text or binary format; or the byte of that letter.
            value: the bytes as received.

        Raises:
            ColumnValueError: the bytes are not a value of the type; the error names the table, the column and the
                type.
        """
        try:
            return self.type.load(kind, value, self.encoding)
        except ColumnValueError as error:
            raise error.at(self.table, self.name) from None

    def load_or_text(self, kind: str | int, value: bytes) -> tuple[Any, str | None]:
        """Load a value like `load`, but return a refused value as text.

        Returns:
            The value and None; or None and the value's text as in `ColumnValueError.text`, to be stored beside the
            NULL.
        """
        try:
            return self.load(kind, value), None
        except ColumnValueError as error:
            return None, error.text
