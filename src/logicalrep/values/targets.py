"""The types of columns in Arrow and in Spark, and the conversion of Python values to them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from types import ModuleType
from typing import TYPE_CHECKING, Any

from logicalrep.values.native_loaders import NativeLoader
from logicalrep.values.types import intervals, numeric, temporal
from logicalrep.values.types.arrays import BoundedArray
from logicalrep.values.types.binary import ToText
from logicalrep.values.types.geometry import Box, Circle, Line, LineSegment, Path, Point, Polygon
from logicalrep.values.types.numeric import Precision

if TYPE_CHECKING:
    import pyarrow as pa


def pyarrow() -> ModuleType:
    """Import pyarrow at the first use: only the functions about Arrow need it."""
    return importlib.import_module("pyarrow")


@dataclass(frozen=True, slots=True)
class Target:
    """A type of Arrow, and the same type in Spark.

    Attributes:
        spark: a DDL string; None if Spark has no such type.
        convert: converts a Python value (never None) to a value that `pyarrow.array` takes for the type, or raises
            ValueError for a value that the type cannot hold; None where pyarrow takes the Python value unchanged.
        lacks_values: whether the type cannot hold some values of the PostgreSQL type, such as infinity.
        is_number_text: whether it is the text of numbers, for which `with_number_type` may choose another type.
    """

    arrow: Callable[[], pa.DataType]
    spark: str | None
    convert: Callable[[Any], object] | None = None
    lacks_values: bool = False
    native: NativeLoader = NativeLoader.NONE
    is_number_text: bool = False


def _named(name: str) -> Callable[[], pa.DataType]:
    return lambda: pyarrow().type_for_alias(name)


BOOLEAN = Target(_named("bool"), "boolean")
INT16 = Target(_named("int16"), "smallint")
INT32 = Target(_named("int32"), "int")
INT64 = Target(_named("int64"), "bigint")
FLOAT = Target(_named("float32"), "float")
DOUBLE = Target(_named("float64"), "double")
STRING = Target(_named("string"), "string")
BINARY = Target(_named("binary"), "binary")
DATE = Target(_named("date32"), "date", temporal.arrow_date, lacks_values=True)
TIMESTAMP = Target(_named("timestamp[us]"), "timestamp_ntz", temporal.arrow_timestamp, lacks_values=True)
TIMESTAMP_UTC = Target(
    lambda: pyarrow().timestamp("us", tz="UTC"), "timestamp", temporal.arrow_timestamp, lacks_values=True
)
TIME = Target(_named("time64[us]"), None, temporal.arrow_time, lacks_values=True)
INTERVAL = Target(_named("month_day_nano_interval"), None, intervals.arrow_interval, lacks_values=True)
STRING_MAP = Target(
    lambda: pyarrow().map_(pyarrow().string(), pyarrow().string()),
    "map<string,string>",
    lambda value: list(value.items()),
)


def text(format: ToText) -> Target:
    return Target(STRING.arrow, STRING.spark, format)


SENT_TEXT = replace(STRING, native=NativeLoader.STRING)
NUMBER_TEXT = replace(text(numeric.format_numeric), is_number_text=True)


# --- decimal ---------------------------------------------------------------------------------------------------

_SPARK_DIGITS = 38
_ARROW_DIGITS = 76


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise ValueError("the target type has no NaN and no infinity")
    return value


def decimal(precision: Precision) -> Target | None:
    """Return the decimal type for every finite number of a numeric column; None if it needs too many digits."""
    digits, scale = precision.decimal
    if digits < 1:  # not the modifier of any numeric column
        return None
    if digits <= _SPARK_DIGITS:
        return Target(
            arrow=lambda: pyarrow().decimal128(digits, scale),
            spark=f"decimal({digits},{scale})",
            convert=_finite,
            lacks_values=True,
            # The native loader checks a number's digits by the decimal's precision and scale.
            native=NativeLoader.DECIMAL if precision == precision.decimal else NativeLoader.NONE,
        )
    if digits <= _ARROW_DIGITS:
        return Target(lambda: pyarrow().decimal256(digits, scale), None, _finite, lacks_values=True)
    return None


# Holds every unsigned integer of 64 bits.
UINT64 = Target(lambda: pyarrow().decimal128(20, 0), "decimal(20,0)", Decimal)


# --- geometry --------------------------------------------------------------------------------------------------


def _point(value: Point) -> dict[str, float]:
    return {"x": value.x, "y": value.y}


def _points(value: tuple[Point, ...]) -> list[dict[str, float]]:
    return [_point(point) for point in value]


def _struct(**fields: Target) -> tuple[Callable[[], pa.DataType], str]:
    def arrow() -> pa.DataType:
        return pyarrow().struct([(name, field.arrow()) for name, field in fields.items()])

    return arrow, f"struct<{','.join(f'{name}:{field.spark}' for name, field in fields.items())}>"


def _line(value: Line) -> dict[str, float]:
    return {"a": value.a, "b": value.b, "c": value.c}


def _segment(value: LineSegment) -> dict[str, dict[str, float]]:
    return {"first": _point(value.first), "second": _point(value.second)}


def _box(value: Box) -> dict[str, dict[str, float]]:
    return {"high": _point(value.high), "low": _point(value.low)}


def _path(value: Path) -> dict[str, object]:
    return {"closed": value.closed, "points": _points(value.points)}


def _polygon(value: Polygon) -> list[dict[str, float]]:
    return _points(value.points)


def _circle(value: Circle) -> dict[str, object]:
    return {"center": _point(value.center), "radius": value.radius}


POINT = Target(*_struct(x=DOUBLE, y=DOUBLE), _point)
POLYGON = Target(lambda: pyarrow().list_(POINT.arrow()), f"array<{POINT.spark}>", _polygon)
LINE = Target(*_struct(a=DOUBLE, b=DOUBLE, c=DOUBLE), _line)
LINE_SEGMENT = Target(*_struct(first=POINT, second=POINT), _segment)
BOX = Target(*_struct(high=POINT, low=POINT), _box)
PATH = Target(*_struct(closed=BOOLEAN, points=POLYGON), _path)
CIRCLE = Target(*_struct(center=POINT, radius=DOUBLE), _circle)


# --- arrays ----------------------------------------------------------------------------------------------------


def array(element: Target) -> Target:
    """Return a list of one dimension that starts at 1: the column's type has neither dimensions nor lower bounds."""
    convert_element = element.convert

    def convert(value: list[object]) -> list[object]:
        if isinstance(value, BoundedArray):
            raise ValueError("the target type has no lower bounds")
        if value and isinstance(value[0], list):
            raise ValueError("the target type has one dimension")
        if convert_element is None:
            return value
        return [None if member is None else convert_element(member) for member in value]

    return Target(
        lambda: pyarrow().list_(element.arrow()),
        None if element.spark is None else f"array<{element.spark}>",
        convert,
        lacks_values=True,
    )


def vector(element: Target) -> Target:
    return Target(lambda: pyarrow().list_(element.arrow()), f"array<{element.spark}>", list)
