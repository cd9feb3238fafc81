"""Arrow arrays from loaded values. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from logicalrep.values.column import Column
from logicalrep.values.column_type import ColumnType
from logicalrep.values.errors import ColumnValueError
from logicalrep.values.targets import Target, pyarrow

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_array", "arrow_array_or_text", "arrow_value"]


def arrow_value(column: Column | ColumnType, value: object, *, for_spark: bool = False) -> object:
    """Convert a loaded value (or None) to a value that `pyarrow.array` takes for the column's Arrow type.

    Args:
        column: the column or its type.
        value: a value loaded by the column's type; None for NULL.
        for_spark: use Spark's Arrow type (see `ColumnType.arrow_type`).

    Raises:
        ColumnValueError: the Arrow type cannot hold the value, such as an infinite date.

    Example:
        >>> date = column_type(1082)
        >>> arrow_value(date, date.load("t", b"2024-02-29"))
        datetime.date(2024, 2, 29)
    """
    column_type = column.type if isinstance(column, Column) else column
    convert = _target(column_type, for_spark).convert
    if convert is None or value is None:
        return value
    try:
        return convert(value)
    except ValueError as error:
        raise _refused(column, column_type, value, error, None) from None


def arrow_array(
    column: Column | ColumnType, values: Sequence[object], *, for_spark: bool = False
) -> pa.Array | pa.ChunkedArray:
    """Return a `pyarrow.Array` of the column's Arrow type; a `pyarrow.ChunkedArray` beyond 2 GiB of text or bytes.

    Args:
        column: the column or its type.
        values: values loaded by the column's type; None for NULL.
        for_spark: use Spark's Arrow type (see `ColumnType.arrow_type`).

    Raises:
        ColumnValueError: the Arrow type cannot hold a value; `row` is its index.

    Example:
        >>> arrow_array(column_type(23), [1, None]).to_pylist()
        [1, None]
    """
    column_type = column.type if isinstance(column, Column) else column
    target = _target(column_type, for_spark)
    convert = target.convert
    if convert is not None:
        converted: list[object] = []
        for value in values:
            try:
                converted.append(None if value is None else convert(value))
            except ValueError as error:
                raise _refused(column, column_type, value, error, len(converted)) from None
        values = converted
    return pyarrow().array(values, type=target.arrow())


def arrow_array_or_text(
    column: Column | ColumnType, values: Sequence[object], *, for_spark: bool = False
) -> tuple[pa.Array | pa.ChunkedArray, dict[int, str]]:
    """Return an array like `arrow_array`, but with NULL for a value that the Arrow type cannot hold.

    Returns:
        The array, and the text of the values that became NULL, by row.

    Example:
        >>> date = column_type(1082)
        >>> array, texts = arrow_array_or_text(date, [date.load("t", b"infinity")])
        >>> texts
        {0: 'infinity'}
    """
    column_type = column.type if isinstance(column, Column) else column
    target = _target(column_type, for_spark)
    convert = target.convert
    unfit: dict[int, str] = {}
    if convert is not None:
        converted: list[object] = []
        for value in values:
            try:
                converted.append(None if value is None else convert(value))
            except ValueError:
                unfit[len(converted)] = column_type.to_text(value)
                converted.append(None)
        values = converted
    return pyarrow().array(values, type=target.arrow()), unfit


def _target(column_type: ColumnType, for_spark: bool) -> Target:
    return column_type.spark if for_spark else column_type.arrow


def _refused(
    column: Column | ColumnType, column_type: ColumnType, value: object, error: ValueError, row: int | None
) -> ColumnValueError:
    refused = ColumnValueError(str(error), type_name=column_type.name, text=column_type.to_text(value), row=row)
    return refused.at(column.table, column.name) if isinstance(column, Column) else refused
