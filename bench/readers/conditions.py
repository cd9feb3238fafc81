"""The filters that are asked of a reader, for each column of a table."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_VALUES, _FEW_VALUES = 3, 2
COMPARISONS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, ">=": operator.ge}
"""The comparisons of expressions that have Python's operators."""
_ARROW_OPERATORS = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, ">=": pc.greater_equal}
_OPERATORS, _FEW_OPERATORS = ("=", "<>", "<", ">="), ("=", ">=")


@dataclass(frozen=True)
class Condition:
    """A filter on one column."""

    column: str
    type: pa.DataType
    operator: str
    """`=`, `<>`, `<`, `>=`, `IN`, `IS NULL` or `IS NOT NULL`."""
    values: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.column, self.operator, ", ".join(map(repr, self.values))]).rstrip()


def matching_ids(rows: pa.Table, condition: Condition) -> list[int]:
    """Return the ids of the rows in memory that a filter selects: Arrow evaluates it."""
    ids: list[int] = rows.filter(arrow_expression(condition)).column("id").to_pylist()
    return ids


def arrow_expression(condition: Condition) -> pc.Expression:
    """Return a filter as an expression of Arrow."""
    column = pc.field(condition.column)
    match condition.operator:
        case "IS NULL":
            return column.is_null()
        case "IS NOT NULL":
            return column.is_valid()
        case "IN":
            return column.isin(pa.array(condition.values, condition.type))
    return _ARROW_OPERATORS[condition.operator](column, pa.scalar(condition.values[0], condition.type))


def conditions_on(rows: pa.Table, *, is_brief: bool = False, is_whole: bool = False) -> list[Condition]:
    """Return filters on every column but `id`, at values that the rows have: at few if brief, at all if whole."""
    columns = [field for field in rows.schema if field.name != "id"]
    options = {"is_brief": is_brief, "is_whole": is_whole}
    return [condition for field in columns for condition in _conditions_on(rows, field, **options)]


def _conditions_on(rows: pa.Table, field: pa.Field, *, is_brief: bool, is_whole: bool) -> Iterator[Condition]:
    yield Condition(field.name, field.type, "IS NULL")
    yield Condition(field.name, field.type, "IS NOT NULL")
    if pa.types.is_nested(field.type):
        return
    values = _distinct(rows.column(field.name))
    # Many types are stored as text, and floats have the most edges.
    is_brief |= pa.types.is_string(field.type) and field.name != "text"
    if not is_whole and (is_brief or not pa.types.is_floating(field.type)):
        values = _spread(values, _FEW_VALUES if is_brief else _VALUES)
    for value in values:
        for sign in _FEW_OPERATORS if is_brief else _OPERATORS:
            yield Condition(field.name, field.type, sign, (value,))
    if values and not is_brief:
        yield Condition(field.name, field.type, "IN", tuple(values[:1] + values[-2:]))


def _distinct(column: pa.ChunkedArray) -> list[Any]:
    """Return the distinct values in ascending order; NaN is the last, and -0.0 is a value beside 0.0."""
    values: dict[str, Any] = {}
    for scalar in column:
        try:
            value = scalar.as_py()
        except (OverflowError, ValueError):
            continue  # Python's dates cover the years 1 to 9999.
        if value is not None:
            values[repr(value)] = value
    return sorted(values.values(), key=_order)


def _order(value: Any) -> tuple[bool, Any, float]:
    return value != value, value, math.copysign(1, value) if value == 0 else 0


def _spread(values: Sequence[Any], most: int) -> list[Any]:
    """Return the first, the last and values between them."""
    if len(values) <= most:
        return list(values)
    step = (len(values) - 1) / (most - 1)
    return [values[round(number * step)] for number in range(most)]


__all__ = ["COMPARISONS", "Condition", "arrow_expression", "conditions_on", "matching_ids"]
