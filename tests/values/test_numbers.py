"""The types that store a numeric without a bound."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logicalrep.arrow.changes.typed_values import TextReader
from logicalrep.arrow.table.columns import RowReader
from logicalrep.values import Column, ColumnValueError, arrow_value, column_type
from logicalrep.values.numbers import check_number_type, with_number_type

UNBOUNDED, FIFTY_DIGITS, TEN_DIGITS = (
    column_type(1700),
    column_type(1700, (50 << 16 | 10) + 4),
    column_type(1700, 655366),
)


@pytest.mark.parametrize(
    "text", ["decimal", "decimal(39,0)", "decimal(3,4)", "decimal(0,0)", "float", "", "decimal(5)"]
)
def test_other_types_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected text, double or decimal"):
        check_number_type(text)


def test_only_numbers_that_are_text_get_another_type() -> None:
    for column in (UNBOUNDED, FIFTY_DIGITS):
        assert with_number_type(column, "decimal(20,4)").spark_type == "decimal(20,4)"
        assert with_number_type(column, "double").spark_type == "double"
        assert with_number_type(column, "text") is column
    for other in (TEN_DIGITS, column_type(25), column_type(701), column_type(1231), column_type(23)):
        assert with_number_type(other, "double") is other


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.50000", "1.5"), ("-12345678901234567890123456789.123", None), ("0.00001", None), ("0.0000", "0"),
     ("9999999999999999.9999", "9999999999999999.9999"), ("10000000000000000", None), ("NaN", None), ("1e2", None),
     ("Infinity", None), ("1" + "0" * 15, "1" + "0" * 15), ("0." + "0" * 50_000 + "1", None)],
)  # fmt: skip
def test_a_decimal_holds_a_number_as_it_is_or_not_at_all(text: str, expected: str | None) -> None:
    column = with_number_type(UNBOUNDED, "decimal(20,4)")
    try:
        value = arrow_value(column, column.load("t", text.encode()), for_spark=True)
    except ColumnValueError:
        assert expected is None
    else:
        assert expected is not None
        assert value == Decimal(expected)


def test_a_double_is_the_nearest_one() -> None:
    column = with_number_type(UNBOUNDED, "double")

    def double(text: str) -> object:
        return arrow_value(column, column.load("t", text.encode()), for_spark=True)

    assert double("0.1") == 0.1
    assert double("12345678901234567890.5") == 12345678901234567890.5
    assert double("-Infinity") == -math.inf
    assert math.isnan(double("NaN"))  # type: ignore[arg-type]
    with pytest.raises(ColumnValueError, match="no double is as large"):
        double("1" + "0" * 400)


numbers = st.decimals(allow_nan=True, allow_infinity=True, places=None) | st.decimals(-1000, 1000, places=4)


@settings(deadline=None)
@given(
    st.lists(numbers.map(lambda number: f"{number:f}"), max_size=20),
    st.sampled_from(["decimal(20,4)", "decimal(38,0)", "double"]),
)
def test_compiled_loaders_make_the_same_values(texts: list[str], name: str) -> None:
    texts = [text for text in texts if "s" not in text and text not in ("-0", "-NaN") and not text.startswith("-0.0")]
    column = Column("n", with_number_type(UNBOUNDED, name))
    read = TextReader(RowReader([column], [True], for_spark=True)).read([pa.array(texts, pa.string())], [0])
    unfit = read.unfit.get("n", {})
    for row, text in enumerate(texts):
        value = read.values.column(0)[row].as_py()
        try:
            expected = arrow_value(column, column.load("t", text.encode()), for_spark=True)
        except ColumnValueError:
            assert row in unfit
            assert value is None
        else:
            assert row not in unfit
            np.testing.assert_equal(value, expected)
