"""Round trips: psycopg writes the binary format and reads our text."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from ipaddress import ip_interface, ip_network
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format
from psycopg.types import multirange, numeric, range

from logicalrep.values import BoundedArray, Interval, Range, column_type
from logicalrep.values.types import hstore as hstore_module
from logicalrep.values.types.arrays import ArrayText
from logicalrep.values.types.records import format_record, parse_record
from logicalrep.values.types.scalars import float4_text, format_float4

pytestmark = pytest.mark.slow

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
OFFSETS = st.integers(-15 * 60 - 59, 15 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

SCALARS: dict[int, st.SearchStrategy[Any]] = {
    16: st.booleans(),
    21: st.integers(-(2**15), 2**15 - 1),
    23: INT32,
    20: INT64,
    701: st.floats(),
    1700: st.one_of(st.decimals(allow_nan=False, allow_infinity=True), st.just(Decimal("NaN"))),
    25: TEXT,
    17: st.binary(max_size=40),
    1082: st.dates(),
    1083: st.times(),
    1266: st.times(timezones=OFFSETS),
    1114: st.datetimes(),
    1184: st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=OFFSETS),
    2950: st.uuids(),
    869: st.one_of(
        st.ip_addresses(),
        st.tuples(st.ip_addresses(v=4), st.integers(0, 31)).map(lambda parts: ip_interface(parts)),
        st.tuples(st.ip_addresses(v=6), st.integers(0, 127)).map(lambda parts: ip_interface(parts)),
    ),
    650: st.one_of(
        st.tuples(st.ip_addresses(v=4), st.integers(0, 32)), st.tuples(st.ip_addresses(v=6), st.integers(0, 128))
    ).map(lambda parts: ip_network(parts, strict=False)),
}


# psycopg chooses the type of an integer and of a range by the value; these wrappers fix it.
WRAPPERS: dict[int, Any] = {
    21: numeric.Int2, 23: numeric.Int4, 20: numeric.Int8,
    3904: range.Int4Range, 3926: range.Int8Range, 3906: range.NumericRange,
    3908: range.TimestampRange, 3910: range.TimestamptzRange, 3912: range.DateRange,
    4451: multirange.Int4Multirange, 4536: multirange.Int8Multirange, 4532: multirange.NumericMultirange,
    4533: multirange.TimestampMultirange, 4534: multirange.TimestamptzMultirange, 4535: multirange.DateMultirange,
}  # fmt: skip


def identity(value: Any) -> Any:
    return value


def psycopg_binary(value: Any) -> bytes:
    dumped = Transformer().get_dumper(value, PyFormat.BINARY).dump(value)
    assert dumped is not None
    return bytes(dumped)


def psycopg_reads(oid: int, text: str) -> Any:
    return Transformer().get_loader(oid, Format.TEXT).load(text.encode())


def equal(value: Any, other: Any) -> bool:
    return value == other or (value != value and other != other)


@pytest.mark.parametrize("oid", SCALARS, ids=[column_type(oid).name for oid in SCALARS])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_scalars(oid: int, data: st.DataObject) -> None:
    value = data.draw(SCALARS[oid])
    column = column_type(oid)
    loaded = column.load("b", psycopg_binary(WRAPPERS.get(oid, identity)(value)))
    assert equal(loaded, value)
    text = column.to_text(loaded)
    assert equal(column.load("t", text.encode()), value)
    assert equal(psycopg_reads(oid, text), value)
    if isinstance(value, Decimal) and value.is_finite():
        assert format(loaded, "f") == format(value, "f").replace("-0", "0" if not value else "-0")


@pytest.mark.parametrize("oid", SCALARS, ids=[column_type(oid).name for oid in SCALARS])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_arrays_in_text_format(oid: int, data: st.DataObject) -> None:
    elements = st.one_of(st.none(), SCALARS[oid])
    width = data.draw(st.integers(1, 3))
    value: list[Any] = data.draw(
        st.one_of(
            st.lists(elements, max_size=5),
            st.lists(st.lists(elements, min_size=width, max_size=width), min_size=1, max_size=3),
        )
    )
    element = column_type(oid)
    array = ArrayText(element.from_text, element.to_text, ",")
    loaded = array.load(array.format(value))
    assert array.format(loaded) == array.format(value)
    assert str(loaded).replace("nan", "") == str(array.load(array.format(loaded))).replace("nan", "")
    if value and not isinstance(value[0], list):
        assert all(
            equal(loaded_value, expected_value) for loaded_value, expected_value in zip(loaded, value, strict=True)
        )


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.none(), TEXT), min_size=1, max_size=6), st.integers(-3, 3))
def test_arrays_of_text_are_what_psycopg_reads(value: list[str | None], lower_bound: int) -> None:
    column = column_type(1009)
    assert psycopg_reads(1009, column.to_text(value)) == value
    bounded = BoundedArray(value, (lower_bound,))
    if lower_bound != 1:
        assert column.load("t", column.to_text(bounded).encode()) == bounded
    if any(element is not None for element in value):
        assert column.load("b", psycopg_binary(value)) == value


RANGES = {
    3904: SCALARS[23],
    3926: SCALARS[20],
    3906: st.decimals(allow_nan=False, allow_infinity=False),
    3908: SCALARS[1114],
    3910: SCALARS[1184],
    3912: SCALARS[1082],
}
MULTIRANGES = {3904: 4451, 3926: 4536, 3906: 4532, 3908: 4533, 3910: 4534, 3912: 4535}


@pytest.mark.parametrize("oid", RANGES, ids=[column_type(oid).name for oid in RANGES])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_ranges(oid: int, data: st.DataObject) -> None:
    bound = st.one_of(st.none(), RANGES[oid])
    lower, upper = data.draw(bound), data.draw(bound)
    if lower is not None and upper is not None and upper < lower:
        lower, upper = upper, lower
    theirs = WRAPPERS[oid](lower, upper, data.draw(st.sampled_from(["[]", "[)", "(]", "()"])))
    column, multiple = column_type(oid), column_type(MULTIRANGES[oid])
    value = Range(lower, upper, theirs.bounds)
    assert column.load("b", psycopg_binary(theirs)) == value
    assert column.load("t", column.to_text(value).encode()) == value
    assert psycopg_reads(oid, column.to_text(value)) == theirs
    assert multiple.load("b", psycopg_binary(WRAPPERS[MULTIRANGES[oid]]([theirs, theirs]))) == (value, value)
    assert multiple.load("t", multiple.to_text((value, value)).encode()) == (value, value)


@given(INT32, INT32, INT64)
def test_intervals(months: int, days: int, microseconds: int) -> None:
    column = column_type(1186)
    value = Interval(months, days, microseconds)
    assert column.load("t", str(value).encode()) == value
    assert column.load("b", microseconds.to_bytes(8, "big", signed=True) + days.to_bytes(4, "big", signed=True)
                       + months.to_bytes(4, "big", signed=True)) == value  # fmt: skip


@given(st.timedeltas())
def test_intervals_are_what_psycopg_writes(value: timedelta) -> None:
    loaded = column_type(1186).load("b", psycopg_binary(value))
    assert loaded.months == 0
    assert timedelta(days=loaded.days, microseconds=loaded.microseconds) == value


@pytest.mark.parametrize("oid", [1082, 1114, 1184])
@given(data=st.data())
def test_every_day_and_microsecond_of_the_server(oid: int, data: st.DataObject) -> None:
    lowest, highest, size = {
        1082: (-2_451_545, 2_145_031_948, 4),
        1114: (-211_813_488_000_000_000, 9_223_371_331_199_999_999, 8),
        1184: (-211_813_488_000_000_000, 9_223_371_331_199_999_999, 8),
    }[oid]
    count = data.draw(st.integers(lowest, highest))
    column = column_type(oid)
    value = column.load("b", count.to_bytes(size, "big", signed=True))
    assert column.load("t", column.to_text(value).encode()) == value
    epoch: Any = {1082: date(2000, 1, 1), 1114: datetime(2000, 1, 1), 1184: datetime(2000, 1, 1, tzinfo=UTC)}[oid]
    if isinstance(value, date):
        unit = timedelta(days=1) if oid == 1082 else timedelta(microseconds=1)
        assert (value - epoch) // unit == count
    else:
        assert count in (getattr(value, "days", None), getattr(value, "microseconds", None))


@given(st.floats(width=32))
def test_real(value: float) -> None:
    text = format_float4(value)
    assert equal(float4_text(text), value)
    assert math.copysign(1, float4_text(text)) == math.copysign(1, value) or value != value


def test_real_is_rounded_once() -> None:
    # This is just above the middle between 1 and the next single-precision number; a double rounds it to the middle.
    assert float4_text("1.0000000596046447753906250000001") == 1 + 2.0**-23
    assert float4_text("1.000000059604644775390625") == 1.0
    assert float4_text("1.0000000596046447753906249999999") == 1.0


@given(st.dictionaries(TEXT, st.one_of(st.none(), TEXT), max_size=5))
def test_hstore(value: dict[str, str | None]) -> None:
    assert hstore_module.hstore_text(hstore_module.format_hstore(value)) == value
    binary = len(value).to_bytes(4, "big")
    for key, text in value.items():
        binary += len(key.encode()).to_bytes(4, "big") + key.encode()
        binary += b"\xff" * 4 if text is None else len(text.encode()).to_bytes(4, "big") + text.encode()
    assert hstore_module.hstore_binary(binary, "utf-8") == value


@given(st.lists(st.one_of(st.none(), TEXT), min_size=1, max_size=5))
def test_records(fields: list[str | None]) -> None:
    assert parse_record(format_record(fields)) == tuple(fields)


@given(st.binary(max_size=40))
def test_bytea_in_the_escape_form(value: bytes) -> None:
    escaped = "".join(
        "\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte <= 0x7E else f"\\{byte:03o}" for byte in value
    )
    assert column_type(17).load("t", escaped.encode()) == value


@given(st.integers(1, 1000), st.integers(-1000, 1000), st.integers(0, 10**40), st.booleans())
def test_numeric_with_a_modifier(precision: int, scale: int, digits: int, negative: bool) -> None:
    column = column_type(1700, (precision << 16 | scale & 0x7FF) + 4)
    assert column.name == f"numeric({precision},{scale})"
    digits %= 10**precision
    value = Decimal(f"{'-' if negative and digits else ''}{digits}E{-scale}")
    text = format(value, "f")
    assert column.load("t", text.encode()) == value
    assert column.load("b", psycopg_binary(value)) == value
    assert column.to_text(column.load("t", text.encode())) == text
