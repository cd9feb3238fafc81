"""Arrow and Spark: the types, the arrays, and the values that neither can hold."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from logicalrep.values import (
    BoundedArray,
    Column,
    ColumnValueError,
    ExtendedDate,
    ExtendedTime,
    ExtendedTimestamp,
    Interval,
    Path,
    Point,
    arrow_array,
    arrow_array_or_text,
    arrow_value,
    column_type,
)
from logicalrep.values.table import EXTENSIONS, TABLE
from tests.values.value_literals import LITERALS, Literal

pa = pytest.importorskip("pyarrow")

DATE, TIMESTAMP, TIMESTAMPTZ, TIME, INTERVAL, INT4_ARRAY = 1082, 1114, 1184, 1083, 1186, 1007
INFINITY = ExtendedTimestamp(2**63 - 1, True)


def spark_to_arrow(ddl: str) -> Any:
    """Return the Arrow type that Spark exchanges for a type, from the type's DDL string."""
    simple = {
        "boolean": pa.bool_(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
        "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(),
        "date": pa.date32(), "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us"),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
    }  # fmt: skip
    if ddl in simple:
        return simple[ddl]
    name, _, rest = ddl.partition("(" if ddl.startswith("decimal") else "<")
    inner = rest[:-1]
    if name == "decimal":
        return pa.decimal128(*map(int, inner.split(",")))
    if name == "array":
        return pa.list_(spark_to_arrow(inner))
    assert name == "struct"
    fields, depth, start = [], 0, 0
    for position, character in enumerate(inner + ","):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            field, _, field_type = inner[start:position].partition(":")
            fields.append((field, spark_to_arrow(field_type)))
            start = position + 1
    return pa.struct(fields)


TYPES = [row.modified(modifier) for row in (*TABLE, *EXTENSIONS) for modifier in (-1, *row.examples)]


@pytest.mark.parametrize("column", TYPES, ids=[column.name for column in TYPES])
def test_the_spark_type_is_the_arrow_type(column: Any) -> None:
    assert column.arrow_type(for_spark=True) == spark_to_arrow(column.spark_type)


@pytest.mark.parametrize("row", TABLE, ids=[row.typname for row in TABLE])
def test_arrays_are_lists_of_their_elements(row: Any) -> None:
    for modifier in (-1, *row.examples):
        element, array = row.modified(modifier), column_type(row.array_oid, modifier)
        assert array.arrow_type() == pa.list_(element.arrow_type())
        assert array.arrow_type(for_spark=True) == spark_to_arrow(array.spark_type)
        assert array.spark_type == f"array<{element.spark_type}>"


def refused_by_arrow(value: Any) -> bool:
    if isinstance(value, list):
        return isinstance(value, BoundedArray) or any(isinstance(m, list) or refused_by_arrow(m) for m in value)
    if isinstance(value, ExtendedTime):
        return value.utc_offset is None
    if isinstance(value, ExtendedDate):
        return value.is_infinite
    if isinstance(value, ExtendedTimestamp):
        return value.is_infinite or value.microseconds > 2**63 - 1 - 946_684_800_000_000
    return isinstance(value, Interval) and (value.is_infinite or abs(value.microseconds) > 2**63 // 1000)


@pytest.mark.parametrize("literal", LITERALS, ids=[f"{literal.name} {literal.text[:20]}" for literal in LITERALS])
def test_every_literal_becomes_arrow_or_is_refused(literal: Literal) -> None:
    column = column_type(literal.oid, literal.modifier)
    # The decimals of numeric(p,s) cannot hold NaN.
    not_a_number = column.arrow_type() != pa.string() and "NaN" in repr(literal.value) and "numeric" in column.name
    if refused_by_arrow(literal.value) or not_a_number:
        with pytest.raises(ColumnValueError) as caught:
            arrow_array(column, [None, literal.value])
        assert caught.value.text == literal.text
        assert caught.value.row == 1
        array, kept = arrow_array_or_text(column, [None, literal.value])
        assert array.null_count == 2
        assert kept == {1: literal.text}
    else:
        array = arrow_array(column, [literal.value, None])
        assert array.null_count == 1
    assert array.type == column.arrow_type()
    array.validate(full=True)
    text = arrow_array(column.as_text(), [literal.value, None])
    assert text.to_pylist() == [literal.text, None]
    for_spark, _ = arrow_array_or_text(column, [literal.value, None], for_spark=True)
    assert for_spark.type == column.arrow_type(for_spark=True)


def test_values_are_kept() -> None:
    def through_arrow(oid: int, *values: Any, modifier: int = -1) -> Any:
        return arrow_array(column_type(oid, modifier), values).to_pylist()

    assert through_arrow(20, 2**63 - 1, -(2**63), None) == [2**63 - 1, -(2**63), None]
    assert through_arrow(5069, 2**64 - 1) == [Decimal(2**64 - 1)]
    assert through_arrow(700, 1.10000002384185791015625) == [1.10000002384185791015625]
    assert through_arrow(1700, Decimal("0.10"), Decimal("NaN")) == ["0.10", "NaN"]
    assert through_arrow(1700, Decimal("0.10"), modifier=(10 << 16 | 2) + 4) == [Decimal("0.10")]
    assert through_arrow(1700, Decimal("1E+4"), modifier=(5 << 16 | 0x7FE) + 4) == [Decimal(10000)]
    assert through_arrow(17, b"\0\xff") == [b"\0\xff"]
    assert through_arrow(TIMESTAMPTZ, datetime(2024, 1, 1, tzinfo=UTC))[0] == datetime(2024, 1, 1, tzinfo=UTC)
    assert through_arrow(TIME, time.max) == [time.max]
    assert through_arrow(INTERVAL, Interval(14, -3, 5)) == [pa.MonthDayNano([14, -3, 5000])]
    assert through_arrow(INT4_ARRAY, [1, None], []) == [[1, None], []]
    assert through_arrow(600, Point(1.0, -2.0)) == [{"x": 1.0, "y": -2.0}]
    path = {"closed": True, "points": [{"x": 1.0, "y": 2.0}]}
    assert through_arrow(602, Path(True, (Point(1.0, 2.0),))) == [path]
    assert through_arrow(1017, [Point(1.0, 2.0), None]) == [[{"x": 1.0, "y": 2.0}, None]]


def test_dates_and_timestamps_that_python_has_not_are_exact() -> None:
    days = arrow_array(column_type(DATE), [date(1970, 1, 2), ExtendedDate(2145031948), ExtendedDate(-2451545)])
    assert days.cast(pa.int32()).to_pylist() == [1, 2145031948 + 10957, -2451545 + 10957]
    first, last = ExtendedTimestamp(-211813488000000000), ExtendedTimestamp(2**63 - 1 - 946_684_800_000_000)
    instants = arrow_array(column_type(TIMESTAMP), [first, last, datetime(1969, 12, 31, 23, 59, 59, 999999)])
    assert instants.cast(pa.int64()).to_pylist() == [-211813488000000000 + 946_684_800_000_000, 2**63 - 1, -1]
    assert str(last) == "294247-01-10 04:00:54.775807"


def test_what_arrow_cannot_hold_is_an_error_that_names_the_column() -> None:
    column = Column("until", column_type(TIMESTAMPTZ), table="public.contract")
    with pytest.raises(ColumnValueError) as caught:
        arrow_array(column, [datetime(2024, 1, 1, tzinfo=UTC), INFINITY])
    assert str(caught.value) == (
        "[COLUMN_VALUE] public.contract.until row 1: 'infinity' (type timestamp with time zone): "
        "the target type has no infinite timestamp"
    )
    array, kept = arrow_array_or_text(column, [INFINITY, datetime(2024, 1, 1, tzinfo=UTC)])
    assert array.to_pylist() == [None, datetime(2024, 1, 1, tzinfo=UTC)]
    assert kept == {0: "infinity"}


def test_arrays_of_more_dimensions_are_refused() -> None:
    column = column_type(INT4_ARRAY)
    for value, text in ([[1], [2]], "{{1},{2}}"), (BoundedArray([1], (0,)), "[0:0]={1}"):
        with pytest.raises(ColumnValueError, match="the target type has"):
            arrow_array(column, [value])
        assert arrow_array_or_text(column, [value])[1] == {0: text}
        assert arrow_array(column.as_text(), [value]).to_pylist() == [text]


def test_one_value() -> None:
    column = Column("c", column_type(TIMESTAMPTZ), "public.t")
    assert arrow_value(column, None) is None
    assert arrow_value(column, ExtendedTimestamp(-(2**60), True)) == -(2**60) + 946_684_800_000_000
    with pytest.raises(ColumnValueError, match=r"^\[COLUMN_VALUE\] public\.t\.c: 'infinity'"):
        arrow_value(column, INFINITY)
    assert arrow_value(column_type(TIME), time(1)) == time(1)
    assert arrow_value(column_type(TIME), time(1), for_spark=True) == "01:00:00"


def test_for_spark_what_spark_has_not_is_text() -> None:
    values = {
        TIME: (ExtendedTime(86_400_000_000), "24:00:00"),
        INTERVAL: (Interval(2**31 - 1, 2**31 - 1, 2**63 - 1), "infinity"),
        1183: ([time(1), None], ["01:00:00", None]),
    }
    for oid, (value, text) in values.items():
        assert arrow_array(column_type(oid), [value], for_spark=True).to_pylist() == [text]
    wide = column_type(1700, (50 << 16) + 4)
    assert arrow_array(wide, [Decimal(10**49)]).to_pylist() == [Decimal(10**49)]
    assert arrow_array(wide, [Decimal(10**49)], for_spark=True).to_pylist() == [str(10**49)]


def test_pyarrow_is_imported_late_and_pyspark_never() -> None:
    program = """
import sys
from logicalrep.values import column_type
column_type(1184).load("t", b"2024-01-01 00:00:00+00")
assert column_type(1231, 655366).spark_type == "array<decimal(10,2)>"
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"pyarrow", "pyspark", "psycopg", "numpy"}, loaded
column_type(1184).arrow_type()
assert "pyarrow" in sys.modules and "pyspark" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
