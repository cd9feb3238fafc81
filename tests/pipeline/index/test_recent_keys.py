"""The keys of data files in memory: they find what a search of all files does, within their limit of bytes."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.errors import MissingRows
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable
from logicalrep.pipeline.index.recent_keys import RecentKeys, TableKeys
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import write_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.upkeep.merging import merge_next
from logicalrep_runtime.scalars import Lsn, Oid
from tests.pipeline.histories import History, table
from tests.pipeline.stored import APP, MARKS_IN_SMALL_FILES, PicklingTasks, new_stored, rows_at

_ROW_BYTES = 8


def _keys_of(keys: RecentKeys, stored: StoredTable) -> TableKeys:
    table_keys = keys.of(stored)
    assert table_keys is not None
    return table_keys


def _with_rows(storage: Storage, file_ids: list[range], folder: str = "public/t", load: str = "y") -> StoredTable:
    """Return a table that marks rows, with a file for each range of ids."""
    stored = new_stored(storage, ("id",), folder, "merge-on-read")
    schema = stored.table.stored
    files = [
        file
        for ids in file_ids
        for file in write_rows(
            storage, folder, schema, pa.table([[*ids], ["b"] * len(ids), *[[None] * len(ids)] * 2], schema=schema)
        )
    ]
    new = NewTable(stored.table, files, Position(APP, Lsn(999)), load=load, keep_hours=24)
    return table_format(storage, "delta").replace(folder, new, stored)


def _found(keys: RecentKeys, stored: StoredTable, ids: list[int]) -> dict[str, list[int]]:
    rows_of_files = _keys_of(keys, stored).find(stored.table, list(stored.files.values()), pa.array(ids, pa.int32()))
    return {path: rows.numbers.tolist() for path, rows in rows_of_files.items()}


@pytest.mark.slow
@pytest.mark.parametrize("format_name", ["delta", "iceberg"])
@pytest.mark.parametrize("key", [("id",), ("b", "id")], ids=str)
def test_random_histories_with_keys_end_as_without(
    tmp_path: Path, key: tuple[str, ...], format_name: FormatName
) -> None:
    chance = random.Random(5)
    history = History(key, chance, ids=300)
    storages = [Storage(str(tmp_path / name), limits=MARKS_IN_SMALL_FILES) for name in ("with", "without")]
    tables = [new_stored(storage, key, mode="merge-on-read", table_format=format_name) for storage in storages]
    keys, searched_files = RecentKeys(storages[0].limits), 0
    for number in range(15):
        for _ in range(chance.randrange(1, 8) if number else 200):
            chance.choice([history.insert, history.update, history.delete] if number else [history.insert])()
        changes, position = history.take(), Position(APP, Lsn(history.lsn - 1))
        for stored, index in zip(tables, (_keys_of(keys, tables[0]), None), strict=True):
            apply(stored, changes, position, PicklingTasks(), index=index)
        if chance.random() < 0.2:
            for stored in tables:
                merge_next(stored, PicklingTasks())
        with_keys, without = (
            sorted((file.rows, file.live_rows) for file in stored.files.values()) for stored in tables
        )
        assert with_keys == without
        searched_files += keys.nbytes > 0
    assert searched_files > 3
    assert rows_at(storages[0]) == rows_at(storages[1]) == history.truth()


def test_the_second_lookup_reads_the_keys_of_a_file_once(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    stored, keys = _with_rows(storage, [range(100), range(100, 150)]), RecentKeys(Limits())
    first, second = stored.files
    assert _found(keys, stored, [3, 120]) == {}
    assert keys.nbytes == 0
    expected = {first: [3, 99], second: [0, 20]}
    assert _found(keys, stored, [120, 3, 100, 99, 1000, 3]) == expected
    assert keys.nbytes == 150 * _ROW_BYTES
    for path in (tmp_path / "public/t").glob("*.parquet"):
        path.unlink()
    assert _found(keys, stored, [120, 3, 100, 99, 1000, 3]) == expected


@pytest.mark.parametrize(
    ("ids", "is_exact"),
    [
        ([*range(-5, 60), -(2**63), 2**63 - 1], False),
        ([2**63 - 1, 2**63 - 2**32, 2**63 - 7], True),
        ([-(2**63), -(2**63) + 2**32 - 1, 17 - 2**63], True),
        ([-(2**63), -(2**63) + 2**32, 17 - 2**63], False),
        ([2**31, -(2**31) + 1, 0, -1, 1], True),
    ],
    ids=["wide", "greatest", "least", "too wide", "around zero"],
)
def test_rows_of_integer_keys_are_found_with_their_keys(tmp_path: Path, ids: list[int], *, is_exact: bool) -> None:
    storage = Storage(str(tmp_path))
    spec = _with_bigint(table(("id",), TableSettings(write_mode="merge-on-read")))
    columns = [ids, ["b"] * len(ids), *[[None] * len(ids)] * 2]
    (file,) = write_rows(storage, "public/t", spec.stored, pa.table(columns, schema=spec.stored))
    keys = RecentKeys(Limits())
    other_ids = [2**62, -(2**62), 3 - 2**63, 2**63 - 2, 1 - 2**32, 0, 2, -6]
    for searched_ids in (ids, [*reversed(ids), *other_ids], other_ids, ids[1:], [None, ids[0]]):
        for _ in range(2):
            rows = keys.find(storage, "public/t", spec, file, pa.array(searched_ids, pa.int64()))
        assert rows is not None
        matching_rows = [row for row, id_ in enumerate(ids) if id_ in searched_ids]
        assert {*rows.numbers.tolist()} >= {*matching_rows}
        assert (rows.keys is not None) == is_exact
        if rows.keys is not None:
            assert rows.numbers.tolist() == matching_rows
            assert rows.keys.to_pylist() == [ids[row] for row in matching_rows]


def _with_bigint(spec: TableSpec) -> TableSpec:
    first, *other_columns = spec.relation.columns
    columns = (replace(first, type_id=Oid(20)), *other_columns)
    return replace(spec, relation=replace(spec.relation, columns=columns))


def test_rows_of_keys_in_memory_are_marked_without_reading_the_keys(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path), limits=MARKS_IN_SMALL_FILES)
    stored, keys = _with_rows(storage, [range(200)]), RecentKeys(storage.limits)
    for _ in range(2):
        _found(keys, stored, [51])
    (path,) = (tmp_path / "public/t").glob("*.parquet")
    data = path.read_bytes()
    path.write_bytes(data[:4] + bytes(len(data) // 2) + data[4 + len(data) // 2 :])
    history = History(("id",), random.Random(1))
    for id_ in (51, 52):
        history.add_change("delete", (str(id_), "b", None, None), None, ())
        changes, position = history.take(), Position(APP, Lsn(history.lsn - 1))
        apply(stored, changes, position, PicklingTasks(), index=_keys_of(keys, stored))
    (file,) = stored.files.values()
    assert file.vector is not None
    assert file.vector.read(storage, "public/t").tolist() == [51, 52]


def test_keys_of_files_that_left_the_table_are_forgotten(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    stored, keys = _with_rows(storage, [range(100), range(100, 150)]), RecentKeys(Limits())
    other, ids = _with_rows(storage, [range(7)], "public/other"), [1, 120]
    for table_in_use in (stored, stored, other, other):
        _found(keys, table_in_use, ids)
    file = next(iter(stored.files.values()))
    stored.commit([], [file], Position(APP, Lsn(1000)))
    _keys_of(keys, stored).follow(stored)
    assert keys.nbytes == 57 * _ROW_BYTES
    reloaded = _with_rows(storage, [range(40)], load="z")
    assert _found(keys, reloaded, ids) == {}
    assert _found(keys, reloaded, ids) == {path: [1] for path in reloaded.files}
    _keys_of(keys, reloaded).follow(reloaded)
    assert keys.nbytes == 47 * _ROW_BYTES


def test_keys_of_another_key_or_another_file_are_not_used(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    stored, keys = _with_rows(storage, [range(100)]), RecentKeys(Limits())
    for _ in range(2):
        rows_of_files = _found(keys, stored, [5])
    assert rows_of_files
    (file,) = stored.files.values()
    table_keys = _keys_of(keys, stored)
    assert table_keys.find(table(("b", "id")), [file], pa.array(["x"])) == {}
    assert table_keys.find(stored.table, [replace(file, size=file.size + 1)], pa.array([5], pa.int32())) == {}


def test_keys_stay_within_their_limit_and_those_in_use_stay(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    tables = [_with_rows(storage, [range(100)], f"public/t{number}") for number in range(3)]
    keys = RecentKeys(Limits(key_bytes=200 * _ROW_BYTES, key_seconds=3600))
    for _ in range(3):
        hits = [bool(_found(keys, stored, [5])) for stored in tables]
    assert hits == [True, True, False]
    assert keys.nbytes == 200 * _ROW_BYTES
    replacing = RecentKeys(Limits(key_bytes=200 * _ROW_BYTES, key_seconds=0))
    for _ in range(3):
        hits = [bool(_found(replacing, stored, [5])) for stored in tables]
    assert hits == [False, True, True]
    assert replacing.nbytes == 200 * _ROW_BYTES


def test_a_missing_row_is_missing_with_keys_too(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path), limits=MARKS_IN_SMALL_FILES)
    stored, keys = _with_rows(storage, [range(0, 200, 2)]), RecentKeys(storage.limits)
    for _ in range(2):
        _found(keys, stored, [5])
    history = History(("id",), random.Random(1))
    history.add_change("delete", ("51", "a", None, None), None, ())
    with pytest.raises(MissingRows, match="1 of 1 updated or deleted rows"):
        apply(stored, history.take(), Position(APP, Lsn(history.lsn)), PicklingTasks(), index=_keys_of(keys, stored))
    assert keys.nbytes == 0


def test_tables_that_are_copied_on_write_or_have_no_key_have_no_keys(tmp_path: Path) -> None:
    storage, keys = Storage(str(tmp_path)), RecentKeys(Limits())
    assert keys.of(new_stored(storage, ("id",), "public/a")) is None
    assert keys.of(new_stored(storage, None, "public/b", "merge-on-read")) is None
