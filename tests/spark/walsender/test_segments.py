"""`spark.read` reads segments of a spool like captures."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from logicalrep.spark import feed_schema
from logicalrep.spark.batch import BatchReader
from logicalrep.spark.options import OptionError, read_options
from logicalrep.spark.schemas import TYPED_COLUMNS, arrow_schema
from logicalrep.spark.walsender.spool import SegmentError, Spool
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database
from tests.spark.streams import Stream
from tests.spark.workload import prepare

CAPTURE = next(Path(__file__).parents[2].joinpath("captures").glob("pg18/mixed/v4-late.sql.jsonl.gz"))


def read(path: Path | str, schema: Any = None, **options: str) -> list[dict[str, Any]]:
    reader = BatchReader(read_options({"path": str(path), **options}), schema or feed_schema())
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return read(CAPTURE)


@pytest.fixture
def segments(tmp_path: Path, rows: list[dict[str, Any]]) -> list[Path]:
    """Return several segments with the rows of a capture."""
    schema = arrow_schema(feed_schema())
    spool = Spool(tmp_path, "s", schema, 10_000)
    for at in range(0, len(rows), 10):
        batch = pa.RecordBatch.from_pylist(rows[at : at + 10], schema)
        spool.write(batch, np.arange(at, at + batch.num_rows))
    spool.seal()
    assert len(spool.segments) > 2
    return [segment.path for segment in spool.segments]


def test_one_or_a_folder_or_beside_captures(segments: list[Path], rows: list[dict[str, Any]]) -> None:
    folder = segments[0].parent
    assert read(folder) == rows
    parts = [read(path) for path in segments]
    assert all(parts)
    assert [row for part in parts for row in part] == rows
    assert read(f"{folder / '*.arrow'},{CAPTURE}") == rows + rows


def test_one_that_is_cut_anywhere_is_an_error(segments: list[Path]) -> None:
    data = segments[0].read_bytes()
    for size in [*range(0, len(data), 97), len(data) - 8, len(data) - 1]:
        segments[0].write_bytes(data[:size])
        with pytest.raises(SegmentError, match="damaged"):
            read(segments[0])


def test_one_with_a_damaged_byte_is_an_error_or_is_whole(segments: list[Path]) -> None:
    data = segments[0].read_bytes()
    for place in range(0, len(data), 53):
        segments[0].write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        reader = BatchReader(read_options({"path": str(segments[0])}), feed_schema())
        [partition] = reader.partitions()
        with contextlib.suppress(SegmentError):
            for batch in reader.read(partition):
                assert batch.schema == arrow_schema(feed_schema())
                batch.validate(full=True)


def test_what_is_none(segments: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "other.arrow"
    other.write_bytes(b"something else entirely")
    with pytest.raises(SegmentError, match=re.escape(f"{other}: is no segment, or a damaged one")):
        read(other)
    table = pa.table({"id": [1]})
    with pa.ipc.new_stream(str(other), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(SegmentError, match=re.escape(f"{other}: is no segment")):
        read(other)
    table = table.add_column(0, "_position", [[1]]).replace_schema_metadata({"made": "elsewhere"})
    with pa.ipc.new_stream(str(other), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(SegmentError, match="other columns than requested: id int64"):
        read(other)
    with pytest.raises(SegmentError, match="other columns than requested: op string"):
        read(segments[0], StructType(feed_schema().fields[1:]))
    with pytest.raises(OptionError, match="'tables' is for captures and slots"):
        read(segments[0], tables="public.t")
    reader = BatchReader(read_options({"path": str(segments[0])}), feed_schema())
    [partition] = reader.partitions()
    segments[0].unlink()
    with pytest.raises(SegmentError, match="is gone"):
        list(reader.read(partition))


def test_another_table(tmp_path: Path) -> None:
    schema = StructType([StructField("id", LongType()), *TYPED_COLUMNS])
    spool = Spool(tmp_path, "s", arrow_schema(schema), 1, TableName("public", "a"))
    row = {
        "id": 7,
        "_change_type": "insert",
        "_commit_version": 1,
        "_commit_timestamp": 0,
        "_ordinal": 0,
        "_unchanged": [],
    }
    spool.write(pa.RecordBatch.from_pylist([row], arrow_schema(schema)), np.ones(1, np.int64))
    assert [row["id"] for row in read(spool.folder, schema, table="public.a")] == [7]
    with pytest.raises(SegmentError, match=r"has rows of the table public.a, but the table public.b was requested"):
        read(spool.folder, schema, table="public.b")
    with pytest.raises(SegmentError, match=r"has rows of the table public.a, but the change feed was requested"):
        read(spool.folder)


@pytest.mark.parametrize("table", [None, "public.plain"])
def test_those_of_a_running_query(spark: Any, db18: Database, tmp_path: Path, table: str | None) -> None:
    """The rows of a batch are in segments until Spark has committed them."""
    prepare(db18, "spark")
    db18.execute(
        "INSERT INTO plain SELECT i, 'a' FROM generate_series(1, 300) AS i", "DELETE FROM plain WHERE id < 100"
    )
    of_table = {} if table is None else {"table": table}
    stream = Stream(spark, db18, tmp_path, mode="walsender", segment_bytes="4k", rows_per_record_batch="50", **of_table)
    frame = stream.load()
    found: list[tuple[list[Any], list[Any]]] = []

    def look(batch: Any, _: int) -> None:
        source = batch.sparkSession.read.format("logicalrep").options(**of_table)
        source = source if table is None else source.schema(frame.schema)
        found.append((batch.collect(), source.load(str(tmp_path / "spool")).collect()))

    query = frame.writeStream.foreachBatch(look).trigger(availableNow=True)
    assert query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination(120)
    assert sum(len(batch) for batch, _ in found) == 399
    for batch, in_segments in found:
        assert [row for row in in_segments if row in batch] == batch
