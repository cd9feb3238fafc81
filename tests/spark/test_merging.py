"""What batches of changes make of a copy, held to a table in Python that was changed in the same way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from logicalrep_pipeline.spark.schemas import TYPED_COLUMNS
from logicalrep_pipeline.tables import changed_rows, merged
from logicalrep_pipeline.tables.events import column

pytestmark = pytest.mark.spark

BIG, KEY = "big.`value`", "Ké. `y"
COLUMNS = [StructField("id", IntegerType()), StructField(KEY, StringType()), StructField(BIG, StringType())]
TABLE = StructType([*COLUMNS, StructField("small", StringType())])
CHANGES = StructType([*TABLE, *TYPED_COLUMNS])
COMMITTED = datetime(2026, 1, 1, tzinfo=UTC)

Row = tuple[Any, ...]


class Table:
    """Rows by `id` and KEY, its replica identity; BIG and now and then KEY are stored out of line."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.rows: dict[tuple[int, str], tuple[str | None, str | None]] = {}
        self.version = 0

    def transaction(self, length: int) -> Iterator[Row]:
        """Changes of all kinds, as rows of a typed table."""
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
        # The server sends the key's columns that it leaves out of the new row in the old one, though the key stays.
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


@pytest.mark.parametrize("seed", range(2))
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
    ("changes", "error"),
    [
        (
            [("update_postimage", (2, "a", None, "s"), [BIG])],
            "the values of big.`value` were not sent for the row id = 2",
        ),
        # A row filter lets a row in: what was there under its key has nothing to do with it.
        (
            [("delete", (1, "a", None, None), []), ("insert", (1, "a", None, "s"), [BIG])],
            "were not sent for the row id = 1",
        ),
        ([("delete", (None, "a", None, None), [])], "no value for the key id"),
    ],
)
def test_what_nobody_has_is_an_error(spark: Any, changes: list[tuple[str, Row, list[str]]], error: str) -> None:
    rows = [change(kind, row, number, unchanged) for number, (kind, row, unchanged) in enumerate(changes)]
    with pytest.raises(Exception, match=error):
        merged(*frames(spark, [(1, "a", "big", "small")], rows), ["id"]).collect()


def test_frames_that_do_not_fit(spark: Any) -> None:
    copied, changed = frames(spark, [], [])
    for arguments, error in (
        ((copied, copied, ["id"]), "no rows of a typed table"),
        ((copied.drop("small"), changed, ["id"]), "the columns of the copy are"),
        ((copied, changed, "id"), "no list of columns"),
        ((copied, changed, ["other"]), "no list of columns"),
        (
            (copied.withColumn("_deleted", copied.id), changed.withColumn("_deleted", changed.id), ["id"]),
            "_deleted itself",
        ),
    ):
        with pytest.raises(ValueError, match=error):
            merged(*arguments)
