"""A few rows of a file in an object store: what is read is the file's end, and the pages that have the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pytest
from obstore.store import MemoryStore

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage import store_files
from logicalrep.pipeline.storage.data_files import DataFile, open_data_file, write_rows
from logicalrep.pipeline.storage.storage import DamagedError, Storage

ROWS = 100_000
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("few", pa.string())])


class Requests:
    """The requests to a store that read: the bytes of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        get, get_range, get_ranges = obstore.get, obstore.get_range, obstore.get_ranges

        def counted(store: Any, path: str) -> Any:
            response = get(store, path)
            self.sizes.append(response.meta["size"])
            return response

        def counted_range(*of: Any, **which: Any) -> Any:
            data = get_range(*of, **which)
            self.sizes.append(len(data))
            return data

        def counted_ranges(*of: Any, **which: Any) -> Any:
            ranges = get_ranges(*of, **which)
            self.sizes.append(sum(map(len, ranges)))
            return ranges

        memory = MemoryStore()
        monkeypatch.setattr(store_files, "from_url", lambda *_, **__: memory)
        monkeypatch.setattr(obstore, "get", counted)
        monkeypatch.setattr(obstore, "get_range", counted_range)
        monkeypatch.setattr(obstore, "get_ranges", counted_ranges)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    return Requests(monkeypatch)


def _written(storage: Storage) -> tuple[DataFile, pa.Table]:
    chance = np.random.default_rng(1)
    texts = pa.array([f"{number:x}" for number in chance.integers(0, 1 << 62, ROWS)])
    few = pa.array([f"one of few {number}" for number in range(10)]).take(pa.array(chance.integers(0, 10, ROWS)))
    rows = pa.table([pa.array(range(ROWS), pa.int64()), texts, few], schema=SCHEMA)
    (file,) = write_rows(storage, "public/t", SCHEMA, rows)
    return file, rows


@pytest.mark.parametrize("most_whole", [16 << 20, 1 << 10], ids=["a small file", "a large file"])
def test_a_few_rows_cost_few_bytes(requests: Requests, monkeypatch: pytest.MonkeyPatch, most_whole: int) -> None:
    limits = Limits(whole_file_bytes=most_whole)
    storage = Storage("s3://lake/shop", limits=limits)
    file, rows = _written(storage)
    positions = np.array([7, 8, 50_000, ROWS - 1], np.int64)
    with open_data_file(storage, "public/t", file, len(positions)) as opened:
        ids = opened.restricted_to(positions).read(SCHEMA, ["id"])
        assert len(requests.sizes) == 2
        texts = opened.restricted_to(positions).read(SCHEMA, ["few", "text"])
    assert ids.equals(rows.select(["id"]).take(pa.array(positions)))
    assert texts.equals(rows.select(["few", "text"]).take(pa.array(positions)))
    # The end, the pages of the key, and the pages of both other columns; the end has the dictionary of one column.
    assert len(requests.sizes) == 3
    assert sum(requests.sizes) < file.size / 8


def test_all_rows_of_a_small_file_of_which_a_few_were_wanted_are_one_more_request(requests: Requests) -> None:
    storage = Storage("s3://lake/shop")
    file, rows = _written(storage)
    with open_data_file(storage, "public/t", file, 1) as opened:
        assert opened.read(SCHEMA, SCHEMA.names).equals(rows)
    assert len(requests.sizes) == 2
    assert requests.sizes[1] == file.size


def test_many_rows_are_read_of_the_whole_file_by_one_request(requests: Requests) -> None:
    storage = Storage("s3://lake/shop")
    file, rows = _written(storage)
    positions = np.arange(0, ROWS, 1000)
    with open_data_file(storage, "public/t", file, len(positions)) as opened:
        assert (
            opened.restricted_to(positions).read(SCHEMA, ["id"]).equals(rows.select(["id"]).take(pa.array(positions)))
        )
    assert requests.sizes == [file.size]


def test_a_missing_file_is_damage_to_the_table(requests: Requests) -> None:
    storage = Storage("s3://lake/shop")
    file, _ = _written(storage)
    storage.delete(f"public/t/{file.path}")
    with pytest.raises(DamagedError), open_data_file(storage, "public/t", file, 1):
        pass
