"""Rows as texts: equal for equal values, in whatever chunks and slices they are, and different for all others."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from logicalrep.pipeline.schema.row_texts import row_texts

POINT = pa.struct([("x", pa.float64()), ("y", pa.float64())])
VALUES = {
    pa.int64(): [0, -1, 10, None],
    pa.bool_(): [True, False, None],
    pa.float64(): [0.0, -0.0, float("nan"), float("inf"), 0.1, 0.1 + 2**-56, 1e300, None],
    pa.float32(): [0.0, -0.0, float("nan"), 0.1, None],
    pa.decimal128(10, 2): [Decimal("0.10"), Decimal("0.01"), Decimal("-0.01"), None],
    pa.string(): ["", "-", "1:a", "a", "ä", None],
    pa.binary(): [b"", b"\x00", b"\xff", None],
    pa.date32(): [date(1, 1, 1), date(9999, 12, 31), None],
    pa.timestamp("us", "UTC"): [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None],
    pa.list_(pa.string()): [[], [""], ["", ""], [None], ["1:a"], ["a", "1:"], ["a1:"], None],
    pa.list_(pa.list_(pa.int32())): [[], [[]], [[], []], [[1], [2]], [[1, 2]], [None, [1, 2]], None],
    POINT: [{"x": 1.0, "y": 2.0}, {"x": 12.0, "y": None}, {"x": None, "y": None}, None],
    pa.list_(POINT): [[], [{"x": 1.0, "y": 2.0}], [None], [{"x": 1.0, "y": 2.0}] * 2, None],
    pa.map_(pa.string(), pa.string()): [[], [("a", "b")], [("a", None)], [("a", ""), ("b", "")], None],
}


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_each_value_has_a_text_of_its_own(type_: pa.DataType) -> None:
    array = pa.array(VALUES[type_], type_)
    texts = row_texts([array]).to_pylist()
    assert len(set(texts)) == len(array)
    assert None not in texts
    chunked = pa.chunked_array([array.slice(0, 1), array.slice(1, 1), array.slice(2)], type_)
    assert row_texts([chunked]).to_pylist() == texts
    assert row_texts([pa.concat_arrays([array, array]).slice(1)]).to_pylist() == (texts + texts)[1:]
    assert len(row_texts([pa.chunked_array([], type_)])) == 0


def test_days_that_have_no_text_differ() -> None:
    days = pa.array([5_000_000, 5_000_001, -2_000_000], pa.int32()).cast(pa.date32())
    moments = pc.multiply(days.cast(pa.int32()).cast(pa.int64()), 86_400_000_000).cast(pa.timestamp("us"))
    for column in (days, moments):
        assert len(set(row_texts([column]).to_pylist())) == 3


def test_columns_do_not_run_into_each_other() -> None:
    rows = [("a", "bc"), ("ab", "c"), ("", "abc"), (None, "abc"), ("abc", None), ("1:a", "b"), ("a", "1:b")]
    texts = row_texts([pa.array(column, pa.string()) for column in zip(*rows, strict=True)]).to_pylist()
    assert len(set(texts)) == len(rows)
