"""Conditions on rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.options.kinds import OptionError

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """A comparison of a column with a value, or with several values for `in`. NULL satisfies no condition.

    Example:
        >>> Condition.of(("day", ">=", date(2026, 11, 1)), schema).expression
        <pyarrow.compute.Expression (day >= 2026-11-01)>
    """

    column: str
    operator: str
    """`=`, `==`, `!=`, `<`, `<=`, `>`, `>=` or `in`."""
    values: tuple[pa.Scalar, ...]
    """One value, or for `in` at least one; of the column's type."""

    @classmethod
    def of(cls, condition: Sequence[object], schema: pa.Schema) -> Self:
        """Return the condition for a triple of column, operator and value.

        Args:
            condition: a column's name, an operator (`=`, `!=`, `<`, `<=`, `>`, `>=`, `in`), and a value of the
                column's type, or for `in` a list of values. Times and dates may be texts in ISO 8601.
            schema: the table's columns.

        Raises:
            OptionError: the triple is malformed, the column does not exist, or the value does not have its type.

        Example:
            >>> Condition.of(("price", ">", 10), pa.schema([("price", pa.int64())])).operator
            '>'
        """
        if len(condition) != 3 or condition[1] not in (*_OPERATORS, "in"):
            raise OptionError(
                f"option 'where' has {condition!r}: expected (column, operator, value), with one of "
                f"{', '.join(_OPERATORS)}, in"
            )
        name, sign, operand = condition
        if name not in schema.names:
            raise OptionError(f"option 'where' names a column {name!r}, which does not exist")
        type_ = schema.field(name).type
        values = tuple(operand) if sign == "in" else (operand,)  # type: ignore[arg-type]
        if not values:
            raise OptionError(f"option 'where' compares {name} with no value")
        return cls(str(name), str(sign), tuple(_scalar(value, type_, str(name)) for value in values))

    @property
    def expression(self) -> pc.Expression:
        """The condition as an expression of pyarrow."""
        field = pc.field(self.column)
        if self.operator == "in":
            return field.isin(pa.array([value.as_py() for value in self.values], self.values[0].type))
        comparison: pc.Expression = self.compare(field, self.values[0])
        return comparison

    def compare(self, left_side: Any, right_side: Any) -> Any:
        """Return the comparison of two operands, such as columns of Spark, by an operator other than `in`."""
        return _OPERATORS[self.operator](left_side, right_side)


def _scalar(value: object, type_: pa.DataType, name: str) -> pa.Scalar:
    try:
        if value is None:
            raise TypeError("NULL equals nothing")
        if isinstance(value, str) and pa.types.is_temporal(type_):
            value = datetime.fromisoformat(value) if pa.types.is_timestamp(type_) else value
        if isinstance(value, datetime) and (value.tzinfo is None) != (getattr(type_, "tz", None) is None):
            raise ValueError("only one of the time and the column has a zone")
        if pa.types.is_floating(type_):
            return pa.scalar(float(value), pa.float64())  # type: ignore[arg-type]
        scalar = pa.scalar(value).cast(type_) if isinstance(value, str) else pa.scalar(value, type_)
        if not isinstance(value, str) and scalar.as_py() != value:
            raise ValueError(f"it would be read as {scalar}")
        return scalar
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise OptionError(f"option 'where' compares {name}, of the type {type_}, with {value!r}: {error}") from None
