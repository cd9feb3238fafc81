"""Values of every kind in keys and in other columns, and tables with as many columns as there can be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.delta.actions import stats
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.data_files import write_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.values import ColumnValueError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.typed_changes import APP, TYPES, change_batches, new_table, table_spec


def reopened(storage: Storage) -> DeltaLog:
    log = DeltaLog.open(storage, "public/t")
    assert log is not None
    return log


def counted(storage: Storage, name: str) -> Counter[str]:
    """Count the rows by the texts of another column, which no type has touched."""
    table = DeltaTable(storage.uri_of("public/t")).to_pyarrow_table(columns=[name])
    return Counter(table.column(name).to_pylist())


@pytest.mark.parametrize("kind", TYPES)
def test_keys_of_every_type_are_found_again(tmp_path: Path, kind: str) -> None:
    oid, modifier, texts = TYPES[kind]
    storage, key = Storage(str(tmp_path)), ("k",)
    log = new_table(storage, table_spec({"k": (oid, modifier), "v": (25, -1)}, key))
    inserts = [("insert", None, {"k": text, "v": f"old {text}"}) for text in texts]
    apply(log, change_batches(inserts, 10, key), Position(APP, Lsn(10)), SequentialEngine())
    updates = [("update", None, {"k": text, "v": f"new {text}"}) for text in texts[1:]]
    deletes: list[tuple[str, Any, Any]] = [("delete", {"k": texts[0]}, None)]
    apply(reopened(storage), change_batches(updates + deletes, 20, key), Position(APP, Lsn(20)), SequentialEngine())
    assert counted(storage, "v") == Counter(f"new {text}" for text in texts[1:])


@pytest.mark.parametrize("kind", TYPES)
def test_rows_without_a_key_are_counted_by_values_of_every_type(tmp_path: Path, kind: str) -> None:
    oid, modifier, texts = TYPES[kind]
    storage = Storage(str(tmp_path))
    log = new_table(storage, table_spec({"k": (oid, modifier), "v": (25, -1)}, None))
    values: list[str | None] = [*texts, None]
    inserts = [("insert", None, {"k": text, "v": str(text)}) for text in values for _ in range(3)]
    apply(log, change_batches(inserts, 10, None), Position(APP, Lsn(10)), SequentialEngine())
    deletes = [("delete", {"k": text, "v": str(text)}, None) for text in values[1:]]
    apply(log, change_batches(deletes, 20, None), Position(APP, Lsn(20)), SequentialEngine())
    assert counted(storage, "v") == Counter({str(text): 2 for text in values[1:]} | {str(values[0]): 3})


def test_statistics_leave_no_row_out(tmp_path: Path) -> None:
    limits = Limits(small_file_bytes=0)
    storage, key = Storage(str(tmp_path), limits=limits), ("id",)
    columns = {"id": (23, -1)} | {f"c{number}": TYPES[kind][:2] for number, kind in enumerate(TYPES)}
    log = new_table(storage, table_spec(columns, key))
    for number in range(7):
        row = {"id": str(number)}
        row |= {f"c{storage}": texts[number % len(texts)] for storage, (_, _, texts) in enumerate(TYPES.values())}
        apply(
            log,
            change_batches([("insert", None, row)], 10 + number, key),
            Position(APP, Lsn(10 + number)),
            SequentialEngine(),
        )
    log = reopened(storage)
    log.write_checkpoint()
    table = DeltaTable(storage.uri_of("public/t"))
    assert table.metadata().configuration["delta.dataSkippingStatsColumns"].startswith("`id`,`c2`,`c5`")
    whole = table.to_pyarrow_table().sort_by("id")
    assert whole.num_rows == 7
    rows_of = table.to_pyarrow_dataset()
    for column in whole.schema:
        if pa.types.is_nested(column.type):
            continue
        for number, value in enumerate(whole.column(column.name)):
            ids = rows_of.to_table(filter=pc.field(column.name) == value).column("id").to_pylist()
            expected = whole.filter(pc.field(column.name) == value).column("id").to_pylist()
            assert sorted(ids) == expected, (column.name, number)
            is_nan = pa.types.is_floating(column.type) and value.as_py() != value.as_py()
            assert (number in ids) != is_nan, (column.name, number)


@pytest.mark.parametrize(("kind", "sql_type"), [("float4", "REAL"), ("float8", "DOUBLE")])
def test_readers_skip_no_row_with_nan(tmp_path: Path, kind: str, sql_type: str) -> None:
    """DataFusion takes the bounds of a Parquet file for bounds of NaN too, which Parquet leaves out of bounds."""
    storage, key = Storage(str(tmp_path)), ("id",)
    log = new_table(storage, table_spec({"id": (23, -1), "v": TYPES[kind][:2], "at": TYPES["int4[]"][:2]}, key))
    rows = [{"id": "1", "v": "NaN", "at": "{}"}, {"id": "2", "v": "1", "at": "{1}"}, {"id": "3", "v": None, "at": None}]
    apply(
        log,
        change_batches([("insert", None, row) for row in rows], 10, key),
        Position(APP, Lsn(10)),
        SequentialEngine(),
    )
    reader = QueryBuilder().register("t", DeltaTable(storage.uri_of("public/t")))
    for condition in (f"v = CAST('NaN' AS {sql_type})", "v > 1", "v <> 1", "v IS NOT NULL AND id = 1"):
        matching = pa.table(reader.execute(f"SELECT id FROM t WHERE {condition}").read_all())
        assert matching["id"].to_pylist() == [1], condition


@pytest.mark.parametrize("texts", [["x" * 40, "x" * 40 + "y", "y"], [chr(0x10FFFF) * 40, "a"], ["", "ä" * 33]])
def test_bounds_of_long_texts(tmp_path: Path, texts: list[str]) -> None:
    rows = pa.table({"id": list(range(len(texts))), "v": texts})
    (file,) = write_rows(Storage(str(tmp_path)), "t", rows.schema, rows)
    for text in texts if "v" in file.statistics.least else []:
        assert file.statistics.least["v"] <= text <= file.statistics.greatest["v"]
    assert len(stats(file)) < 500
    assert ("v" in file.statistics.least) == ("id" in file.statistics.least)


@pytest.mark.slow
def test_1600_columns(tmp_path: Path) -> None:
    names = [f"column {number}" if number % 2 else f"Column.{number}" for number in range(1600)]
    storage, key = Storage(str(tmp_path)), (names[0],)
    log = new_table(storage, table_spec(dict.fromkeys(names, (25, -1)), key))
    first = {name: name for name in names}
    second = first | {names[0]: "other"}
    apply(
        log,
        change_batches([("insert", None, first), ("insert", None, second)], 10, key),
        Position(APP, Lsn(10)),
        SequentialEngine(),
    )
    changed = second | {names[-1]: "changed"}
    apply(
        reopened(storage),
        change_batches([("update", None, changed), ("delete", {names[0]: names[0]}, None)], 20, key),
        Position(APP, Lsn(20)),
        SequentialEngine(),
    )
    (row,) = DeltaTable(storage.uri_of("public/t")).to_pyarrow_table().to_pylist()
    assert list(row.values()) == list(changed.values())
    assert list(row) == list(log.table.names)


def test_a_column_whose_name_begins_with_anothers_and_a_dot(tmp_path: Path) -> None:
    storage, key = Storage(str(tmp_path)), ("a",)
    log = new_table(storage, table_spec({"a": (25, -1), "a.b": (25, -1), "a.b.list.element": (25, -1)}, key))
    row = {"a": "1", "a.b": "2", "a.b.list.element": "3"}
    apply(log, change_batches([("insert", None, row)], 10, key), Position(APP, Lsn(10)), SequentialEngine())
    apply(
        log, change_batches([("update", None, row | {"a.b": "4"})], 20, key), Position(APP, Lsn(20)), SequentialEngine()
    )
    assert DeltaTable(storage.uri_of("public/t")).to_pyarrow_table().to_pylist() == [row | {"a.b": "4"}]


def test_a_value_that_its_type_cannot_hold_is_an_error_and_no_commit(tmp_path: Path) -> None:
    storage, key = Storage(str(tmp_path)), ("id",)
    log = new_table(storage, table_spec({"id": (23, -1), "at": (1114, -1)}, key))
    changes = change_batches([("insert", None, {"id": "1", "at": "infinity"})], 10, key)
    with pytest.raises(ColumnValueError, match="infinity"):
        apply(log, changes, Position(APP, Lsn(10)), SequentialEngine())
    assert (log.version, list(tmp_path.rglob("part-*"))) == (0, [])
