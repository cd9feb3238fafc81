"""Conditions that rows meet, by which whole files are left out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.storage.data_files import DataFile

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
    """A comparison of a column with a value, or with several for `in`. NULL meets none.

    Example:
        >>> Condition.of(("day", ">=", date(2026, 11, 1)), schema).may_hold(file)
        False
    """

    column: str
    operator: str
    values: tuple[pa.Scalar, ...]

    @classmethod
    def of(cls, condition: Sequence[object], schema: pa.Schema) -> Self:
        """Return a condition on a table's columns.

        Args:
            condition: a column, an operator (`=`, `!=`, `<`, `<=`, `>`, `>=`, `in`), and a value of the column's type,
                or for `in` a list of them. Times and dates may be texts as in ISO 8601.
            schema: the columns.

        Raises OptionError if it is no condition on one of them.
        """
        if len(condition) != 3 or condition[1] not in (*_OPERATORS, "in"):
            raise OptionError(
                f"option 'where' has {condition!r}: expected (column, operator, value), with one of "
                f"{', '.join(_OPERATORS)}, in"
            )
        name, sign, wanted = condition
        if name not in schema.names:
            raise OptionError(f"option 'where' names a column {name!r}, which is not there")
        type_ = schema.field(name).type
        values = tuple(wanted) if sign == "in" else (wanted,)  # type: ignore[arg-type]
        if not values:
            raise OptionError(f"option 'where' compares {name} with no value")
        return cls(str(name), str(sign), tuple(_scalar(value, type_, str(name)) for value in values))

    @property
    def expression(self) -> pc.Expression:
        """The condition on rows."""
        field = pc.field(self.column)
        if self.operator == "in":
            return field.isin(pa.array([value.as_py() for value in self.values], self.values[0].type))
        found: pc.Expression = self.compare(field, self.values[0])
        return found

    def compare(self, left: Any, right: Any) -> Any:
        """Return two sides, of any kind that compares, compared by the operator, which is not `in`."""
        return _OPERATORS[self.operator](left, right)

    def may_hold(self, file: DataFile) -> bool:
        """Return whether a row of a file may meet it, as the bounds of its values tell."""
        known = file.statistics
        if self.column not in known.least or self.column not in known.greatest:
            return known.nulls.get(self.column) != file.rows
        least, greatest = known.least[self.column], known.greatest[self.column]
        return any(_may_hold(self.operator, value.as_py(), least, greatest) for value in self.values)


def _may_hold(sign: str, value: Any, least: Any, greatest: Any) -> bool:
    if sign in ("<", "<="):
        return bool(_OPERATORS[sign](least, value))
    if sign in (">", ">="):
        return bool(_OPERATORS[sign](greatest, value))
    return sign == "!=" or bool(least <= value <= greatest)


def _scalar(value: object, type_: pa.DataType, name: str) -> pa.Scalar:
    """Return a value in a column's type. Raises OptionError if it is none of it, as of no zone for times with one."""
    try:
        if value is None:
            raise TypeError("NULL equals nothing")
        if isinstance(value, str) and pa.types.is_temporal(type_):
            value = datetime.fromisoformat(value) if pa.types.is_timestamp(type_) else value
        if isinstance(value, datetime) and (value.tzinfo is None) != (getattr(type_, "tz", None) is None):
            raise ValueError("the time has a zone, and the column has none, or the other way round")
        if pa.types.is_floating(type_):
            return pa.scalar(float(value), pa.float64())  # type: ignore[arg-type]
        found = pa.scalar(value).cast(type_) if isinstance(value, str) else pa.scalar(value, type_)
        if not isinstance(value, str) and found.as_py() != value:
            raise ValueError(f"it would be taken for {found}")
        return found
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise OptionError(f"option 'where' compares {name}, of the type {type_}, with {value!r}: {error}") from None
