"""Copies that batches of changes are applied to, compared with a table in Python that gets the same changes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql.functions import lit
from pyspark.sql.types import DataType, IntegerType, StringType, StructField, StructType

from logicalrep.spark.frames import changed_rows, merged
from logicalrep.spark.frames.events import column
from logicalrep.spark.schemas import TYPED_COLUMNS
from tests.spark.failures import fails

BIG, KEY = "big.`value`", "Ké. `y"
COLUMNS = [StructField("id", IntegerType()), StructField(KEY, StringType()), StructField(BIG, StringType())]
TABLE = StructType([*COLUMNS, StructField("small", StringType())])
CHANGES = StructType([*TABLE, *TYPED_COLUMNS])
COMMITTED = datetime(2026, 1, 1, tzinfo=UTC)

Row = tuple[Any, ...]


class Table:
    """Rows by `id` and KEY, its replica identity; BIG and sometimes KEY are stored out of line."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.rows: dict[tuple[int, str], tuple[str | None, str | None]] = {}
        self.version = 0

    def transaction(self, length: int) -> Iterator[Row]:
        """Yield changes of all kinds as rows of a typed table."""
        self.version += 100
        for ordinal in range(length):
            for kind, row, unchanged in self._change():
                yield (*row, kind, self.version, COMMITTED, ordinal, unchanged)

    def _change(self) -> Iterator[tuple[str, Row, list[str]]]:
        chance = self.chance
        kind = chance.choices(("insert", "update", "big", "move", "delete", "truncate"), (4, 6, 2, 5, 3, 0.1))[0]
        if kind == "truncate":
            self.rows.clear()
            yield "truncate", (None,) * 4, []
            return
        free = chance.choice([key for key in self._keys() if key not in self.rows])
        if kind == "insert" or not self.rows:
            self.rows[free] = self._value(), self._value()
            yield "insert", (*free, *self.rows[free]), []
            return
        key = chance.choice(sorted(self.rows))
        big, _ = self.rows.pop(key)
        if kind == "delete":
            yield "delete", (*key, None, None), []
            return
        new = free if kind == "move" else key
        self.rows[new] = self._value() if kind == "big" else big, self._value()
        unchanged = [BIG] if kind != "big" and big is not None else []
        # The server sends key columns that it leaves out of the new row in the old one, even if the key is unchanged.
        is_key_left_out = new[1] == key[1] and key[1] == "out of line"
        if new != key or is_key_left_out:
            yield "update_preimage", (*key, None, None), []
        sent = (
            new[0],
            None if is_key_left_out else new[1],
            None if unchanged else self.rows[new][0],
            self.rows[new][1],
        )
        yield "update_postimage", sent, [KEY] * is_key_left_out + unchanged

    def _keys(self) -> Iterator[tuple[int, str]]:
        return ((number, text) for number in range(40) for text in ("", "out of line"))

    def _value(self) -> str | None:
        return self.chance.choice((None, "", str(self.chance.random())))


def frames(spark: Any, copy: list[Row], changes: list[Row]) -> tuple[Any, Any]:
    return spark.createDataFrame(copy, TABLE), spark.createDataFrame(changes, CHANGES)


def found(frame: Any) -> list[Row]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_batches_of_changes_of_all_kinds(spark: Any, seed: int) -> None:
    table = Table(seed)
    copy: list[Row] = []
    for length in (20, 60, 10):
        changes = [row for _ in range(3) for row in table.transaction(length)]
        copied, changed = frames(spark, copy, changes)
        after = found(merged(copied.select(*map(column, copied.columns[::-1])), changed, [KEY, "id"]))
        assert after == sorted(((*key, *values) for key, values in table.rows.items()), key=repr)
        copy = after
    assert len(copy) > 5


def change(kind: str, row: Row, ordinal: int, unchanged: list[str]) -> Row:
    return (*row, kind, 100, COMMITTED, ordinal, unchanged)


def test_a_merge_gets_a_row_for_each_key(spark: Any) -> None:
    changes = [
        change("insert", (1, "a", None, "new"), 0, []),
        change("update_postimage", (1, "a", None, "newer"), 1, []),
        change("insert", (2, "a", None, "new"), 2, []),
        change("delete", (2, "a", None, None), 3, []),
        change("update_preimage", (3, "a", None, None), 4, []),
        change("update_postimage", (4, "a", None, "moved"), 4, [BIG]),
    ]
    copied, changed = frames(spark, [(3, "a", "big", "small"), (5, "a", "b", "c")], changes)
    rows = found(changed_rows(copied, changed, ["id", KEY]))
    assert rows == [
        (1, "a", None, "newer", False),
        (2, "a", None, None, True),
        (3, "a", None, None, True),
        (4, "a", "big", "moved", False),
    ]
    truncated = changed.union(frames(spark, [], [change("truncate", (None,) * 4, 5, [])])[1])
    assert found(changed_rows(copied, truncated, ["id", KEY])) == [
        (3, "a", None, None, True),
        (5, "a", None, None, True),
    ]


@pytest.mark.parametrize(
    ("changes", "code", "error"),
    [
        (
            [("update_postimage", (2, "a", None, "s"), [BIG])],
            "VALUE_NOT_SENT",
            "the values of big.`value` were not sent for the row id = 2",
        ),
        # A row filter lets a row in: the earlier row under its key is unrelated.
        (
            [("delete", (1, "a", None, None), []), ("insert", (1, "a", None, "s"), [BIG])],
            "VALUE_NOT_SENT",
            "were not sent for the row id = 1",
        ),
        ([("delete", (None, "a", None, None), [])], "KEY_NULL", "a change has no value for the key id"),
    ],
)
def test_what_nobody_has_is_an_error(
    spark: Any, changes: list[tuple[str, Row, list[str]]], code: str, error: str
) -> None:
    rows = [change(kind, row, number, unchanged) for number, (kind, row, unchanged) in enumerate(changes)]
    with fails(code, error):
        merged(*frames(spark, [(1, "a", "big", "small")], rows), ["id"]).collect()


def test_frames_that_do_not_fit(spark: Any) -> None:
    copied, changed = frames(spark, [], [])
    for arguments, error in (
        ((copied, copied, ["id"]), r"CHANGES_NOT_TYPED\] the changes are not rows"),
        (
            (copied.withColumn("old", lit(1)), changed, ["id"]),
            r"COPY_DIFFERS\] the copy has the columns old.*table\.drop\('old'\)",
        ),
        ((copied.drop("id"), changed, ["id"]), "the copy lacks the key's column id"),
        ((copied, changed, "id"), "not a list of columns"),
        ((copied, changed, ["other"]), "not a list of columns"),
        ((copied, changed, ["id", "id"]), "not a list of columns"),
        ((copied, changed, []), r"KEYS_INVALID\] .* a table without a key.*log"),
    ):
        with pytest.raises(ValueError, match=error):
            merged(*arguments)


@pytest.mark.parametrize(
    ("name", "copy", "change"),
    [
        ("n", "decimal(20,5)", "string"),
        ("n", "decimal(38,0)", "decimal(38,10)"),
        ("id", "bigint", "double"),
        ("n", "array<int>", "array<bigint>"),
        ("n", "timestamp", "timestamp_ntz"),
    ],
)
def test_types_are_never_coerced(spark: Any, name: str, copy: str, change: str) -> None:
    types = {"id": "bigint", "n": "string"}
    copied = copy_of(spark, types | {name: copy})
    error = rf"COPY_DIFFERS\] the column {name} is {re.escape(copy)} in the copy and {re.escape(change)} in the changes: .*cast"
    for apply in (merged, changed_rows):
        with pytest.raises(ValueError, match=error):
            apply(copied, changes_of(spark, types | {name: change}), ["id"])


def test_types_may_differ_in_what_may_be_null(spark: Any) -> None:
    changed = changes_of(spark, {"id": "int", "list": "array<int>"})
    copied = spark.sql("SELECT 1 AS id, array(2) AS list")
    assert copied.schema["list"].dataType != changed.schema["list"].dataType
    assert found(merged(copied, changed, ["id"])) == [(1, [2])]


def test_a_copy_takes_a_new_type_once_it_is_cast(spark: Any) -> None:
    """The option text_columns and ALTER COLUMN … TYPE require such a cast."""
    exact = "123456789012345.12345"
    copied = spark.sql(f"SELECT 1 AS id, {exact}BD AS n UNION ALL SELECT 2, 0.5BD")
    changed = changes_of(spark, {"id": "int", "n": "string"}, [("update_postimage", (2, "NaN"), [])])
    assert found(merged(copied.withColumn("n", copied["n"].cast("string")), changed, ["id"])) == [
        (1, exact),
        (2, "NaN"),
    ]


def test_a_copy_from_before_a_column_was_added(spark: Any) -> None:
    copied, changed = frames(
        spark, [(1, "a", "big", "s"), (2, "a", "b", "s")], [change("insert", (3, "a", "b", "s"), 0, [])]
    )
    copied = copied.drop("small")
    assert found(merged(copied, changed, ["id"])) == [
        (1, "a", "big", None),
        (2, "a", "b", None),
        (3, "a", "b", "s"),
    ]
    assert found(changed_rows(copied, changed, ["id"])) == [(3, "a", "b", "s", False)]
    # A value that the server leaves out is stored out of line and not NULL: the copy never had it.
    without_big, changed = frames(
        spark, [(1, "a", None, "s")], [change("update_postimage", (1, "a", None, "t"), 0, [BIG])]
    )
    for copied in (without_big, without_big.select("id", column(KEY), "small")):
        with fails("VALUE_NOT_SENT", r"the values of big.`value` were not sent for the row id = 1"):
            merged(copied, changed, ["id"]).collect()


def test_rows_without_a_key_do_not_outlive_a_truncate(spark: Any) -> None:
    """A unique index allows rows with NULL in its columns."""
    types = {"id": "int", "k": "string"}
    inserted: tuple[str, Row, list[str]] = ("insert", (3, "k"), [])
    copied = copy_of(spark, types, [(1, None), (2, "k")])
    assert found(merged(copied, changes_of(spark, types, [inserted]), ["k"])) == [(1, None), (3, "k")]
    changed = changes_of(spark, types, [("truncate", (None, None), []), inserted])
    assert found(merged(copied, changed, ["k"])) == [(3, "k")]
    with fails("KEY_NULL", r"a row of the copy has no value for the key k"):
        changed_rows(copied, changed, ["k"]).collect()


def test_names_that_are_in_use_here(spark: Any) -> None:
    names = ["LAST", "latest", "state", "kind"]
    types = dict.fromkeys(names, "string")
    copied = copy_of(spark, types, [("1", "2", "3", "4")])
    changed = changes_of(spark, types, [("update_postimage", ("1", "2", None, "5"), ["state"])])
    assert found(merged(copied, changed, names[:2])) == [("1", "2", "3", "5")]


def test_names_that_spark_takes_for_one(spark: Any) -> None:
    for names in (("_deleted",), ("_DELETED",), ("a", "A")):
        types = {"id": "int"} | dict.fromkeys(names, "int")
        copied, changed = copy_of(spark, types), changes_of(spark, types)
        with pytest.raises(
            ValueError, match=rf"COLUMNS_AMBIGUOUS\] Spark cannot tell the columns {'.*'.join(names)}.* apart"
        ):
            merged(copied, changed, ["id"])
    copied, changed = copy_of(spark, {"id": "int"}), changes_of(spark, {"id": "int", "_ORDINAL": "int"})
    with pytest.raises(ValueError, match=r"cannot tell the columns _ORDINAL, _ordinal apart"):
        merged(copied, changed, ["id"])
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        types = dict.fromkeys(("id", "a", "A", "_DELETED"), "int")
        copied = copy_of(spark, types, [(1, 2, 3, 4)])
        changed = changes_of(spark, types, [("insert", (2, 3, 4, 5), [])])
        assert found(merged(copied, changed, ["id"])) == [(1, 2, 3, 4), (2, 3, 4, 5)]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def copy_of(spark: Any, types: dict[str, str], rows: Sequence[Row] = ()) -> Any:
    return spark.createDataFrame(rows, of_types(types))


def of_types(types: dict[str, str]) -> StructType:
    return StructType([StructField(name, DataType.fromDDL(type_)) for name, type_ in types.items()])


def changes_of(spark: Any, types: dict[str, str], changes: Sequence[tuple[str, Row, list[str]]] = ()) -> Any:
    """Return changes in order as rows of a typed table."""
    rows = [change(kind, row, number, unchanged) for number, (kind, row, unchanged) in enumerate(changes)]
    return spark.createDataFrame(rows, StructType([*of_types(types), *TYPED_COLUMNS]))
