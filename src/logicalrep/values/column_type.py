"""A column's type, ready to load values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from logicalrep.values import targets
from logicalrep.values.errors import ColumnValueError
from logicalrep.values.targets import Target
from logicalrep.values.types import scalars
from logicalrep.values.types.binary import FromBinary, FromText, ToText

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ColumnType", "string_type"]

# The format of a column value, as the letter or as its byte in the message.
_TEXT: tuple[object, ...] = ("t", ord("t"))
_BINARY: tuple[object, ...] = ("b", ord("b"))


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The loaders and targets of one type. Get a type from `column_type()`.

    Attributes:
        name: PostgreSQL's name of the type, with its modifier: `numeric(10,2)`, `integer[]`, `public.mood`.
        python: the Python types of loaded values, in words.
        from_text: loads the text format, decoded to str; ValueError gives the reason of a refusal.
        from_binary: loads the binary format, given the Python codec of the session's client_encoding.
        to_text: returns PostgreSQL's text of a loaded value (ISO DateStyle, UTC, IntervalStyle postgres, hex bytea).
        arrow: the type in Arrow.
        spark: the type in Spark, as its Arrow form in Spark.
    """

    name: str
    python: str
    from_text: FromText = field(repr=False)
    from_binary: FromBinary = field(repr=False)
    to_text: ToText = field(repr=False)
    arrow: Target = field(repr=False)
    spark: Target = field(repr=False)

    @property
    def spark_type(self) -> str:
        """Spark's type as a DDL string, such as `decimal(10,2)` or `array<int>`."""
        assert self.spark.spark is not None
        return self.spark.spark

    def arrow_type(self, *, for_spark: bool = False) -> pa.DataType:
        """Return the `pyarrow.DataType`: Arrow's best type, or with `for_spark` the Arrow form of `spark_type`.

        They differ where Spark has no such type: time, interval, and decimals of more than 38 digits.
        """
        return (self.spark if for_spark else self.arrow).arrow()

    def load(self, kind: str | int, value: bytes, encoding: str = "utf-8") -> Any:
        """Return the Python value of a column value that is neither NULL nor an unchanged TOAST value.

        Args:
            kind: `t` or `b`, text or binary format; or the byte of that letter.
            value: the bytes as received.
            encoding: the Python codec of the session's client_encoding.

        Raises:
            ColumnValueError: the bytes are not a value of this type.
        """
        try:
            if kind in _TEXT:
                return self.from_text(str(value, encoding))
            if kind in _BINARY:
                return self.from_binary(value, encoding)
        except ValueError as error:
            raise self._refused(error, kind, value, encoding) from None
        raise TypeError(f"a column value of kind {kind!r}: only t (text) and b (binary) carry bytes")

    def _refused(self, error: ValueError, kind: str | int, value: bytes, encoding: str) -> ColumnValueError:
        reason = f"not valid in the encoding: {error}" if isinstance(error, UnicodeError) else str(error)
        if kind in _TEXT:
            text, kind = str(value, encoding, "backslashreplace"), "t"
        else:
            text, kind = f"\\x{value.hex()}", "b"
        return ColumnValueError(reason, type_name=self.name, text=text, kind=kind)

    def as_text(self) -> ColumnType:
        """Return the type with text as its target in Arrow and Spark, for values that the typed target refuses."""
        text = targets.text(self.to_text)
        return replace(self, arrow=text, spark=text)

    def as_sent(self) -> ColumnType:
        """Return a type of the same name whose values are text: the server's, or PostgreSQL's text of binary values."""
        return string_type(self.name, lambda value, encoding: self.to_text(self.from_binary(value, encoding)))


def string_type(name: str, from_binary: Callable[[bytes, str], str]) -> ColumnType:
    return ColumnType(
        name=name,
        python="`str`",
        from_text=scalars.text_text,
        from_binary=from_binary,
        to_text=scalars.text_text,
        arrow=targets.SENT_TEXT,
        spark=targets.SENT_TEXT,
    )
