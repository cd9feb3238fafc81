"""A few rows of a Parquet file are read from their pages alone, and equal the rows of the whole column."""

from __future__ import annotations

import io
import random
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logicalrep.pipeline.storage.data_files import open_data_file, write_rows
from logicalrep.pipeline.storage.pages import PagedSource
from logicalrep.pipeline.storage.storage import DamagedError, Storage

ROWS = 20_000
chance = random.Random(1)
NUMBERS = [chance.getrandbits(40) for _ in range(ROWS)]
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "small": pa.array([number % 30_000 for number in NUMBERS], pa.int16()),
        "text": [None if number % 5 == 0 else f"text {number}" for number in NUMBERS],
        "few": [None if number % 5 == 0 else f"text {number % 5}" for number in NUMBERS],
        "nothing": pa.nulls(ROWS, pa.string()),
        "number": pa.array([Decimal(number) for number in NUMBERS], pa.decimal128(20, 2)),
        "day": pa.array([date.fromordinal(700_000 + number % 9_000) for number in NUMBERS]),
        "at": pa.array([datetime.fromtimestamp(number % 10**9, UTC) for number in NUMBERS], pa.timestamp("us", "UTC")),
        "is": [number % 2 == 0 for number in NUMBERS],
        "bytes": [b"x" * (number % 40) for number in NUMBERS],
        "list": [[number % 3] for number in NUMBERS],
    }
)
FLAT = [name for name in TABLE.column_names if name != "list"]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["snappy", "zstd", "none"])
@pytest.mark.parametrize("rows", [[0], [ROWS - 1], [7, 8, 9], [*range(0, ROWS, 5_000)], []])
def test_rows_are_those_of_the_whole_column(version: str, compression: str, rows: list[int]) -> None:
    sink = io.BytesIO()
    options: dict[str, Any] = {"compression": compression, "data_page_version": version}
    pq.write_table(TABLE, sink, data_page_size=1_000, dictionary_pagesize_limit=9_000, write_page_index=True, **options)
    size = sink.tell()
    wanted = np.array(rows, np.int64)
    for name in [name for name in FLAT if name not in ("is", "few", "nothing")]:
        column = PagedSource(sink, size).read_rows([name], wanted)
        assert column is not None, name
        assert column.column(0).to_pylist() == TABLE.column(name).take(pa.array(wanted)).to_pylist()


@pytest.mark.slow
def test_a_file_without_page_indexes_is_read_whole() -> None:
    for options in ({"write_page_index": False}, {"write_page_index": True, "row_group_size": 100}):
        sink = io.BytesIO()
        pq.write_table(TABLE, sink, data_page_size=1_000, **options)
        assert PagedSource(sink, sink.tell()).read_rows(["id"], np.array([1])) is None
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, data_page_size=1_000, write_page_index=True)
    assert PagedSource(sink, sink.tell()).read_rows(["list"], np.array([1])) is None
    # Nor is a column whose pages are mostly wanted.
    assert PagedSource(sink, sink.tell()).read_rows(["id"], np.arange(ROWS)) is None


class Counted(io.BytesIO):
    count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.count += len(data)
        return data


def test_little_of_a_data_file_is_read_for_a_few_rows(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    table = pa.table({"id": np.random.default_rng(1).permutation(200_000), "v": ["text"] * 200_000})
    (file,) = write_rows(storage, "t", table.schema, table)
    source = Counted((tmp_path / "t" / file.path).read_bytes())
    column = PagedSource(source, file.size).read_rows(["id"], np.array([5, 150_000]))
    assert column is not None
    assert column.column("id").to_pylist() == table.column("id").take([5, 150_000]).to_pylist()
    assert source.count < 50_000
    assert file.size > 900_000
    source.count = 0
    PagedSource(source, file.size).read_rows(["id"], np.array([150_000]))
    assert source.count < 40_000
    with open_data_file(storage, "t", file) as opened:
        few_rows = opened.restricted_to(np.array([7, 199_999]))
        assert (
            few_rows.read(table.schema, ["v", "id"]).to_pydict()
            == table.select(["v", "id"]).take([7, 199_999]).to_pydict()
        )


@pytest.mark.slow
def test_damaged_pages_give_right_rows_or_one_error(tmp_path: Path) -> None:
    """Bits of pages, of their headers and of their index are flipped."""
    storage, table = Storage(str(tmp_path)), TABLE.select(["id", "text"])
    (file,) = write_rows(storage, "t", table.schema, table)
    path, wanted, outcomes = tmp_path / "t" / file.path, np.array([7, 9_999, 19_990]), Counter[str]()
    data, expected = path.read_bytes(), table.take(pa.array(wanted)).to_pydict()
    # The index of pages is before the footer, which has no checksum.
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    places = [chance.randrange(end) for _ in range(60)] + [end - 1 - chance.randrange(3_000) for _ in range(240)]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            with open_data_file(storage, "t", file) as opened:
                rows = opened.restricted_to(wanted).read(table.schema, ["id", "text"]).to_pydict()
        except DamagedError:
            outcomes["error"] += 1
        else:
            assert rows == expected, place
            outcomes["rows"] += 1
    assert min(outcomes["error"], outcomes["rows"]) > 20
