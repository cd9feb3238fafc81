"""Data files whose values have no place in a log's statistics: the table can be opened again all the same."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from logicalrep.pipeline.formats.delta.actions import stats
from logicalrep.pipeline.storage.data_files import read_rows, write_rows
from logicalrep.pipeline.storage.local_files import LocalFiles
from logicalrep.pipeline.storage.storage import Storage

_DAYS = pa.array([-2_451_545, 5_000_000, None], pa.int32())


@pytest.mark.parametrize(
    "values",
    [
        _DAYS.cast(pa.date32()),
        pc.multiply(_DAYS.cast(pa.int64()), 86_400_000_000).cast(pa.timestamp("us")),
        pc.multiply(_DAYS.cast(pa.int64()), 86_400_000_000).cast(pa.timestamp("us", "UTC")),
        pa.array([{"x": 1.5}, None, {"x": None}], pa.struct([("x", pa.float64())])),
        pa.array([[{"x": 1}], None, []], pa.list_(pa.struct([("x", pa.int32())]))),
        pa.array([[("a", "b")], None, []], pa.map_(pa.string(), pa.string())),
        pa.array(["x" * 100, None, ""]),
    ],
    ids=lambda values: str(values.type),
)
def test_any_value_can_be_written(tmp_path: Path, values: pa.Array) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3]), "v": values})
    (file,) = write_rows(Storage(str(tmp_path)), "t", rows.schema, rows)
    statistics = file.statistics
    is_far = pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)
    # Bounds of some columns alone are taken for empty ones of the others.
    assert statistics.least.get("id") == (None if is_far else 1)
    assert statistics.greatest.get("id") == (None if is_far else 3)
    DeltaTable.create(str(tmp_path / "t"), rows.schema)
    _commit(tmp_path / "t", file.path, file.size, stats(file))
    table = DeltaTable(str(tmp_path / "t"))
    assert pa.table(table.get_add_actions(flatten=True))["num_records"].to_pylist() == [3]
    assert table.to_pyarrow_table().column("id").to_pylist() == [1, 2, 3]


class _Read(io.BytesIO):
    """An object of Python in the place of a file, with the threads that read it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.threads: set[int] = set()

    def read(self, size: int | None = -1) -> bytes:
        self.threads.add(threading.get_ident())
        return super().read(size)


class _Unread(io.BufferedReader):
    """A file of a disk, which Arrow opens itself."""

    def read(self, size: int | None = -1) -> bytes:
        raise AssertionError


def test_threads_of_arrow_hold_no_file_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may let go of it while Python ends, which aborts the process (https://github.com/apache/arrow/issues/34314)."""
    rows = pa.table({f"c{number}": pa.array(range(1000)) for number in range(20)})
    storage = Storage(str(tmp_path))
    (file,) = write_rows(storage, "t", rows.schema, rows)
    opened = _Read((tmp_path / "t" / file.path).read_bytes())
    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "open", lambda *_, **__: opened)
        assert read_rows(storage, "t", file, rows.schema, rows.column_names).equals(rows)
    assert opened.threads == {threading.get_ident()}
    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "open", lambda *_, **__: _Unread(io.FileIO(tmp_path / "t" / file.path)))
        assert read_rows(storage, "t", file, rows.schema, rows.column_names).equals(rows)


def _commit(table: Path, path: str, size: int, stats: str) -> None:
    add = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True, "stats": stats}
    (table / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"add": add}) + "\n")
