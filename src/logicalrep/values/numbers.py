"""The types for a column of numbers of any size and scale: text by default, or a decimal, or a double."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal

from logicalrep.values import targets
from logicalrep.values.column_type import ColumnType
from logicalrep.values.native_loaders import NativeLoader
from logicalrep.values.types.numeric import Precision

__all__ = ["check_number_type", "with_number_type"]

_DECIMAL = re.compile(r"decimal\(([0-9]{1,2}),([0-9]{1,2})\)").fullmatch
_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)


def check_number_type(text: str) -> str:
    """Return the normalized name of `text`, `double` or `decimal(p,s)`. Raises ValueError for any other."""
    name = "".join(text.lower().split())
    match = _DECIMAL(name)
    if name not in ("text", "double") and not (match and 1 <= int(match[1]) <= 38 and int(match[2]) <= int(match[1])):
        raise ValueError("expected text, double or decimal(p,s), of at most 38 digits")
    return name


def with_number_type(column: ColumnType, name: str) -> ColumnType:
    """Return the type with a decimal or a double as its Spark target, if that target is the text of numbers.

    A decimal refuses numbers with more digits before or after the point; a double refuses numbers that overflow.
    """
    if name == "text" or not column.spark.is_number_text:
        return column
    if name == "double":
        # The native loader checks no precision: the column's loader does.
        native = NativeLoader.FLOAT64 if column.spark.native is NativeLoader.NUMBER else NativeLoader.NONE
        return replace(column, spark=replace(targets.DOUBLE, convert=_double, lacks_values=True, native=native))
    match = _DECIMAL(name)
    assert match is not None
    precision = Precision(*map(int, match.groups()))
    target = targets.decimal(precision)
    assert target is not None
    convert = target.convert
    assert convert is not None
    # Zeros at the end need no place.
    fitting = replace(target, convert=lambda value: convert(precision.checked(value.normalize(_EXACT))))
    return replace(column, spark=fitting)


def _double(value: Decimal) -> float:
    number = float(value)
    if math.isinf(number) and value.is_finite():
        raise ValueError("no double is as large")
    return number
